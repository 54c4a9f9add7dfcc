//! What the machine's limits do not allow is skipped with the arithmetic, and
//! everything else goes on.

use std::process::Command;

use crate::harness::{Finished, Place, finished};
use crate::skip;

/// The binary with 64 KiB of locked memory and no right to exceed it.
pub(crate) fn run_with_little_locked_memory(place: &Place, line: &str) -> Finished {
    let inner = place.command(line);
    let mut command = Command::new("prlimit");
    command.arg("--memlock=65536:65536");
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    if is_root {
        command.args(["setpriv", "--bounding-set=-ipc_lock"]);
    }
    finished(started_by(command, &inner).output().unwrap())
}

/// A command that starts another one, whose words come behind its own.
pub(crate) fn started_by(mut command: Command, inner: &Command) -> Command {
    command.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

#[test]
fn zero_copy_that_cannot_fit_is_skipped_with_the_arithmetic() {
    let place = Place::new();
    let run = "run net --methods send_staged,sendmsg_zerocopy --sizes 1KiB,1MiB --threads 1 \
               --network loopback --quick --passes 2";
    let done = run_with_little_locked_memory(&place, run);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let csv = place.run("export last --format csv").stdout;
    let rows = |size: &str, status: &str| {
        let zerocopy = csv.lines().filter(|row| row.contains(",sendmsg_zerocopy,"));
        let of_size = zerocopy.filter(|row| row.contains(&format!(",{size},")));
        of_size.filter(|row| row.contains(&format!(",{status},"))).count()
    };
    assert_eq!((rows("1024", "ok") > 0, rows("1024", "skipped")), (true, 0), "{csv}");
    assert_eq!((rows("1048576", "ok"), rows("1048576", "skipped") > 0), (0, true), "{csv}");
    assert!(csv.contains("RLIMIT_MEMLOCK is 64 KiB"), "{csv}");
    assert!(csv.contains("message needs 1.01 MiB of locked memory"), "{csv}");
}

#[test]
fn a_baseline_that_cannot_fit_is_a_run_without_numbers_and_with_the_reason() {
    let place = Place::new();
    let run = "run net --methods sendmsg_zerocopy --sizes 1MiB --threads 1 \
               --network loopback --quick --passes 2";
    let done = run_with_little_locked_memory(&place, run);
    assert_eq!(done.code, Some(4), "{}{}", done.stdout, done.stderr);
    let csv = place.run("export last --format csv").stdout;
    assert!(csv.contains(",skipped,") && csv.contains("RLIMIT_MEMLOCK is 64 KiB"), "{csv}");
}

#[test]
fn buffers_that_cannot_be_registered_are_skipped_with_the_arithmetic() {
    let place = Place::new();
    let run = "run net --methods send,write,uring_send_zc_fixed --baseline send --sizes 16KiB \
               --threads 1 --network loopback --quick --passes 2 --rounds 3";
    let done = run_with_little_locked_memory(&place, run);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let csv = place.run("export last --format csv").stdout;
    let of_arm = |arm: &str, status: &str| {
        let rows = csv.lines().filter(|row| row.contains(&format!(",{arm},")));
        rows.filter(|row| row.contains(&format!(",{status},"))).count()
    };
    assert!(of_arm("send", "ok") > 0, "{csv}");
    assert_eq!(of_arm("uring_send_zc_fixed", "ok"), 0, "{csv}");
    assert!(of_arm("uring_send_zc_fixed", "skipped") > 0, "{csv}");
    // A kernel without rings, or without this one, skips it with another reason.
    let limit = csv.contains("(RLIMIT_MEMLOCK is 64 KiB): ENOMEM");
    assert!(limit || csv.contains("cannot set up an io_uring"), "{csv}");
}

/// The binary in a network namespace of its own whose optmem_max is this.
fn run_with_optmem(place: &Place, bytes: u32, line: &str) -> Finished {
    let mut command = Command::new("unshare");
    let script = format!(
        "ip link set lo up && echo {bytes} >/proc/sys/net/core/optmem_max || exit 99; exec \"$@\""
    );
    command.args(["--user", "--map-root-user", "--net", "sh", "-c", &script, "sh"]);
    finished(started_by(command, &place.command(line)).output().unwrap())
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
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let csv = place.run("export last --format csv").stdout;
    let zerocopy = || csv.lines().filter(|row| row.contains(",sendmsg_zerocopy,"));
    assert!(zerocopy().count() > 0 && zerocopy().all(|row| row.contains(",skipped,")), "{csv}");
    assert!(csv.contains("optmem_max is 500 B"), "{csv}");
    // Room for one or two: what is refused beyond is sent when there is room. Whether any
    // is depends on the machine: completions may be back before the next send is made.
    let done = run_with_optmem(&place, 1500, run);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let csv = place.run("export last --format csv").stdout;
    let zerocopy = || csv.lines().filter(|row| row.contains(",sendmsg_zerocopy,"));
    assert!(zerocopy().count() > 0 && zerocopy().all(|row| row.contains(",ok,")), "{csv}");
}

#[test]
fn what_calibration_takes_is_said_before_and_within_what_is_free() {
    let place = Place::new();
    let done = place.run("run file --quick --dry-run");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout.contains("calibration: up to "), "{}", done.stdout);
    let taken = place.json("run file --quick --dry-run --json")["calibration_memory_bytes"].clone();
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
    let kib: u64 = total.trim().trim_end_matches(" kB").parse().unwrap();
    let taken = taken.as_u64().unwrap();
    assert!(taken > 0 && taken <= kib * 1024 / 16, "{taken} of {kib} KiB");
}
