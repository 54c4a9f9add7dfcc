//! What the machine's limits do not allow is skipped with the arithmetic, and
//! everything else goes on.

use std::process::Command;

use crate::harness::{Finished, Place, finished};

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
    command.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    finished(command.output().unwrap())
}

#[test]
fn zero_copy_that_cannot_fit_is_skipped_with_the_arithmetic() {
    let place = Place::new();
    let run = "run net --primitives send_staged,sendmsg_zerocopy --sizes 1KiB,1MiB --threads 1 \
               --topologies loopback --quick --passes 2";
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
    let run = "run net --primitives sendmsg_zerocopy --sizes 1MiB --threads 1 \
               --topologies loopback --quick --passes 2";
    let done = run_with_little_locked_memory(&place, run);
    assert_eq!(done.code, Some(4), "{}{}", done.stdout, done.stderr);
    let csv = place.run("export last --format csv").stdout;
    assert!(csv.contains(",skipped,") && csv.contains("RLIMIT_MEMLOCK is 64 KiB"), "{csv}");
}
