//! What the machine's limits do not allow is skipped with the arithmetic, and
//! everything else goes on.

use crate::harness::{Finished, Place, finished, is_root, started_by};
use crate::skip;

/// The binary with 64 KiB of locked memory and no right to exceed it.
pub(crate) fn run_with_little_locked_memory(place: &Place, line: &str) -> Finished {
    let drop_right = ["setpriv", "--bounding-set=-ipc_lock"];
    let words = [&["prlimit", "--memlock=65536:65536"][..], &drop_right].concat();
    let words = if is_root() { &words[..] } else { &words[..2] };
    finished(started_by(words, &place.command(line)).output().unwrap())
}

/// How many rows of an arm have this status; of one size, where that is given.
fn count(place: &Place, arm: &str, size: &str, status: &str) -> usize {
    let rows = place.rows("arms", ["primitive", "message_bytes", "status"]).into_iter();
    rows.filter(|row| row[0] == arm && (size.is_empty() || row[1] == size) && row[2] == status)
        .count()
}

/// All that was said of arms.
fn exported(place: &Place) -> String {
    place.run("export last --format csv").stdout
}

#[test]
fn zero_copy_that_cannot_fit_is_skipped_with_the_arithmetic() {
    let place = Place::new();
    let run = "run net --methods send_staged,sendmsg_zerocopy --sizes 1KiB,1MiB --threads 1 \
               --network loopback --quick --passes 2";
    run_with_little_locked_memory(&place, run).ended(0);
    let zerocopy = |size, status| count(&place, "sendmsg_zerocopy", size, status);
    assert_eq!((zerocopy("1024", "ok") > 0, zerocopy("1024", "skipped")), (true, 0));
    assert_eq!((zerocopy("1048576", "ok"), zerocopy("1048576", "skipped") > 0), (0, true));
    let csv = exported(&place);
    assert!(csv.contains("RLIMIT_MEMLOCK is 64 KiB"), "{csv}");
    assert!(csv.contains("message needs 1.01 MiB of locked memory"), "{csv}");
}

#[test]
fn a_baseline_that_cannot_fit_is_a_run_without_numbers_and_with_the_reason() {
    let place = Place::new();
    let run = "run net --methods sendmsg_zerocopy --sizes 1MiB --threads 1 \
               --network loopback --quick --passes 2";
    run_with_little_locked_memory(&place, run).ended(4);
    let csv = exported(&place);
    assert!(csv.contains(",skipped,") && csv.contains("RLIMIT_MEMLOCK is 64 KiB"), "{csv}");
}

#[test]
fn buffers_that_cannot_be_registered_are_skipped_with_the_arithmetic() {
    let place = Place::new();
    let run = "run net --methods send,write,uring_send_zc_fixed --baseline send --sizes 16KiB \
               --threads 1 --network loopback --quick --passes 2 --rounds 3";
    run_with_little_locked_memory(&place, run).ended(0);
    let of_arm = |arm, status| count(&place, arm, "", status);
    let csv = exported(&place);
    assert!(of_arm("send", "ok") > 0, "{csv}");
    assert_eq!(of_arm("uring_send_zc_fixed", "ok"), 0, "{csv}");
    assert!(of_arm("uring_send_zc_fixed", "skipped") > 0, "{csv}");
    // A kernel without rings, or without this one, skips it with another reason.
    let limit = csv.contains("(RLIMIT_MEMLOCK is 64 KiB): ENOMEM");
    assert!(limit || csv.contains("cannot set up an io_uring"), "{csv}");
}

/// The binary in a network namespace of its own whose optmem_max is this.
fn run_with_optmem(place: &Place, bytes: u32, line: &str) -> Finished {
    let script = format!(
        "ip link set lo up && echo {bytes} >/proc/sys/net/core/optmem_max || exit 99; exec \"$@\""
    );
    let words = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", &script, "sh"];
    finished(started_by(&words, &place.command(line)).output().unwrap())
}

#[test]
fn zero_copy_without_memory_for_notifications_is_skipped_or_waits() {
    let place = Place::new();
    let run = "run net --methods send,write,sendmsg_zerocopy --baseline send --sizes 64KiB \
               --threads 1 --network loopback --quick --passes 1 --rounds 3";
    // Less than one notification takes (`struct sk_buff` and the
    // least head of one).
    let done = run_with_optmem(&place, 500, run);
    if done.code == Some(99) || done.stderr.contains("unshare") {
        return skip::note(
            "limits::zero_copy_without_memory_for_notifications_is_skipped_or_waits",
            &format!("needs a network namespace with its own optmem_max: {}", done.stderr.trim()),
        );
    }
    done.assert_code(0);
    let csv = exported(&place);
    let zerocopy = || csv.lines().filter(|row| row.contains(",sendmsg_zerocopy,"));
    assert!(zerocopy().count() > 0 && zerocopy().all(|row| row.contains(",skipped,")), "{csv}");
    assert!(csv.contains("optmem_max is 500 B"), "{csv}");
    // Room for one or two: what is refused beyond is sent when there is room. Whether any
    // is depends on the machine: completions may be back before the next send is made.
    run_with_optmem(&place, 1500, run).ended(0);
    let csv = exported(&place);
    let zerocopy = || csv.lines().filter(|row| row.contains(",sendmsg_zerocopy,"));
    assert!(zerocopy().count() > 0 && zerocopy().all(|row| row.contains(",ok,")), "{csv}");
}

#[test]
fn what_calibration_takes_is_said_before_and_within_what_is_free() {
    let place = Place::new();
    place.run("run file --quick --dry-run").ended(0).prints("calibration: up to ");
    let taken = place.json("run file --quick --dry-run --json")["calibration_memory_bytes"].clone();
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
    let kib: u64 = total.trim().trim_end_matches(" kB").parse().unwrap();
    let taken = taken.as_u64().unwrap();
    assert!(taken > 0 && taken <= kib * 1024 / 16, "{taken} of {kib} KiB");
}
