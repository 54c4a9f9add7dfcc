//! A file system that fills up or may not be written: a clear end, and nothing
//! lost that was committed.

use std::process::{Command, Stdio};

use crate::harness::{Finished, Place, finished, list};
use crate::skip;

/// Seconds at least, so that a file system can fill up under it.
const RUN: &str = "run net --methods send,sendmsg_iov --sizes 1KiB --threads 1 \
                   --network loopback --passes 400 --precision 1% --progress plain";

/// A shell in a mount namespace of its own, with a tmpfs of `size` on `$DIR`.
/// None where the machine refuses one, which is said.
pub(crate) fn in_tmpfs(test: &str, place: &Place, size: &str, script: &str) -> Option<Finished> {
    let unshared = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command.env("DIR", place.folder.path()).env("SIZE", size).stdin(Stdio::null());
        command.env("HOME", place.folder.path()).env("IOLENS_LOCK_DIR", place.folder.path());
        command.env("TOOL", place.command("").get_program());
        command.output()
    };
    const MOUNT: &str = "set -e; mkdir -p $DIR/small; mount -t tmpfs -o size=$SIZE none $DIR/small";
    if !unshared(MOUNT).is_ok_and(|output| output.status.success()) {
        skip::note(test, "a user namespace may not mount a tmpfs here");
        return None;
    }
    let script = format!("{MOUNT}; set +e; DB=$DIR/small/x.db; {script}");
    Some(finished(unshared(&script).unwrap()))
}

#[test]
fn a_full_disk_is_a_clear_end_and_loses_nothing() {
    let place = Place::new();
    let script = format!(
        "$TOOL {RUN} --db $DB >&2; echo code $?; $TOOL {RUN} --db $DB; echo code $?; \
         mount -o remount,size=64m $DIR/small; $TOOL runs --json --db $DB"
    );
    let test = "storage::a_full_disk_is_a_clear_end_and_loses_nothing";
    let Some(done) = in_tmpfs(test, &place, "1m", &script) else { return };
    let (first, rest) = done.stdout.split_once('\n').unwrap();
    assert_eq!(first, "code 4", "{}", done.stderr);
    done.says("free space on that file system");
    let (second, runs) = rest.split_once('\n').unwrap();
    assert_eq!(second, "code 4", "a second run into the full disk: {}", done.stderr);
    let committed = done.stderr.lines().filter(|line| line.starts_with("committed:")).count();
    let runs: serde_json::Value = serde_json::from_str(runs).unwrap();
    let stored: u64 = list(&runs).iter().map(|run| run["trials"].as_u64().unwrap()).sum();
    assert!(committed > 0);
    assert_eq!(stored, committed as u64, "{}", done.stderr);
}

#[test]
fn a_database_that_may_not_be_written_is_refused_before_the_start() {
    let place = Place::new();
    let script = "$TOOL run net --methods send --sizes 1KiB --threads 1 --network loopback \
                  --quick --passes 1 --progress none --db $DB >/dev/null 2>&1; echo code $?; \
                  mount -o remount,ro $DIR/small || { echo refused; exit; }; \
                  $TOOL run net --methods send --quick --network loopback --db $DB; echo code $?";
    let test = "storage::a_database_that_may_not_be_written_is_refused_before_the_start";
    let Some(done) = in_tmpfs(test, &place, "64m", script) else { return };
    if done.stdout.ends_with("refused\n") {
        return skip::note(test, "a user namespace may not make a tmpfs read-only here");
    }
    assert_eq!(done.stdout, "code 0\ncode 4\n", "{}", done.stderr);
    done.says("must be writable");
    assert!(!done.stderr.contains("trials a pass"), "it began: {}", done.stderr);
}

#[test]
fn an_existing_database_on_a_full_file_system_says_that_it_is_full() {
    let place = Place::new();
    let script = "$TOOL run net --methods send --sizes 1KiB --threads 1 --network loopback \
                  --quick --passes 1 --progress none --db $DB >/dev/null 2>&1; echo code $?; \
                  cat /dev/zero >$DIR/small/fill 2>/dev/null; \
                  $TOOL run net --methods send --quick --network loopback --db $DB; \
                  echo code $?; \
                  $TOOL runs --db $DB; echo code $?";
    let test = "storage::an_existing_database_on_a_full_file_system_says_that_it_is_full";
    let Some(done) = in_tmpfs(test, &place, "8m", script) else { return };
    done.prints("code 0\ncode 4\n");
    done.says("the file system of that file");
    done.says("is full");
    assert!(!done.stderr.contains("dmesg"), "it is no fault of the device: {}", done.stderr);
}

#[test]
fn an_empty_database_is_not_said_to_be_missing() {
    let place = Place::new();
    place.write("empty.db", "");
    for line in ["runs", "show last", "report last", "export last --format csv"] {
        let done = place.run(&format!("{line} --db PLACE/empty.db"));
        done.says("the file is empty");
        assert!(!done.stderr.contains("does not exist"), "{line}: {}", done.stderr);
    }
}
