//! What a user gets wrong: one clear message, the right exit code, nothing
//! left behind.

use crate::harness::Place;

/// Runs a line that must fail and leave no database behind.
pub(crate) fn refused(line: &str, code: i32, expect: &str) {
    let place = Place::new();
    let done = place.run(line);
    assert_eq!(done.code, Some(code), "{line}: {}{}", done.stdout, done.stderr);
    assert!(done.stderr.contains(expect), "{line}: {}", done.stderr);
    assert_eq!(done.stdout, "", "{line}");
    let left = std::fs::read_dir(place.folder.path()).unwrap().count();
    assert_eq!(left, 0, "{line} leaves something behind");
}

#[test]
fn values_that_cannot_be_are_usage_errors() {
    refused("run net --methods sendd", 2, "unknown method `sendd`, did you mean `send`?");
    refused("run net --sizes 0", 2, "a size of zero moves nothing");
    refused("run net --sizes -5", 2, "`-5` is not a size");
    refused("net send sendmsg_iov --size -5", 2, "`-5` is not a size");
    refused("run net --sizes 12parsecs", 2, "is not a size");
    refused("run net --threads 0", 2, "at least 1");
    refused("run net --sizes 99999999999999999999", 2, "is too large a size");
    refused("run net --budget 0s", 2, "write a time of at least 1ns and at most 168h");
    refused("run net --quick --db missing/x.db", 2, "there is no folder missing");
    refused("serve pol --listen :0", 2, "did you mean `poll`?");
    refused("run net --network moon", 2, "unknown network `moon`");
    refused("run net --mode rain", 2, "unknown mode `rain`");
    refused(
        "run net --methods send,sendmsg_iov --network loopback --budget 1s",
        2,
        "shorter than one pass",
    );
    refused("run net --precision 200%", 2, "write a percentage above 0%");
    refused("run net --methods send --cpus 8000", 2, "cannot use CPU 8000");
    refused(
        "run net --methods send --congestion warp",
        2,
        "cannot use the congestion control `warp`: ENOENT",
    );
    refused("run nit", 2, "unknown study or plan `nit`, did you mean `net`?");
    refused("resume last", 4, "there are no results yet");
    refused("run", 2, "start with: iolens run net --quick");
    refused("runn net", 2, "run");
    refused("export last --format xml", 2, "csv, json");
    refused("audit", 2, "required");
    refused("audit missing.csv", 2, "cannot read missing.csv");
    refused("audit /dev/null", 2, "neither a table with a header nor what perf stat prints");
    refused("audit x --map thread=T", 2, "did you mean `threads`?");
    refused("audit x --clock-max 5", 2, "is not a frequency such as 5GHz");
    refused("show last", 4, "there are no results yet");
}

#[test]
fn memory_and_descriptors_are_checked_before_the_start() {
    let large = "run net --methods send,memcpy --sizes 1GiB --threads 64";
    refused(large, 4, "arms × 64 threads × a ring of 2 messages of 1 GiB");
    // Whichever is least: half of the machine, what is free, what a cgroup leaves.
    refused(large, 4, " need 7");
    refused(large, 4, ", more than ");
    let place = Place::new();
    let mut shell = std::process::Command::new("sh");
    let tool = place.command("").get_program().to_owned();
    shell.args(["-c", "ulimit -n 80; exec \"$0\" run net --methods send,sendmsg_iov --threads 8 --sizes 1KiB --quick"]);
    let done = shell.arg(tool).env("HOME", place.folder.path()).output().unwrap();
    let stderr = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("descriptors per process"), "{stderr}");
}

#[test]
fn a_file_that_is_not_ours_is_refused_untouched() {
    let place = Place::new();
    let file = place.path("notes.txt");
    std::fs::write(&file, "precious").unwrap();
    for line in ["run net --methods send --quick", "runs", "show last"] {
        let done = place.run(&format!("{line} --db {}", file.display()));
        assert_eq!(done.code, Some(4), "{line}: {}", done.stderr);
        assert!(done.stderr.contains("notes.txt"), "{line}: {}", done.stderr);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    let below = place.run(&format!("run net --methods send --quick --db {}/x.db", file.display()));
    assert_eq!(below.code, Some(4), "{}", below.stderr);
}
