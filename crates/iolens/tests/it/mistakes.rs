//! What a user gets wrong: one clear message, the right exit code, nothing
//! left behind.

use crate::harness::{Place, entries, finished, started_by};

/// Runs a line that must fail and leave no database behind.
pub(crate) fn refused(line: &str, code: i32, expect: &str) {
    let place = Place::new();
    place.refuses(line, code, expect);
    let left = entries(place.folder.path());
    assert_eq!(left, 0, "{line} leaves something behind");
}

#[test]
fn values_that_cannot_be_are_usage_errors() {
    for (line, expect) in [
        ("run net --methods sendd", "unknown method `sendd`, did you mean `send`?"),
        ("run net --sizes 0", "a size of zero moves nothing"),
        ("run net --sizes -5", "`-5` is not a size"),
        ("net send sendmsg_iov --size -5", "`-5` is not a size"),
        ("run net --sizes 12parsecs", "is not a size"),
        ("run net --threads 0", "at least 1"),
        ("run net --sizes 99999999999999999999", "is too large a size"),
        ("run net --budget 0s", "write a time of at least 1ns and at most 168h"),
        ("run net --quick --db missing/x.db", "there is no folder missing"),
        ("serve pol --listen :0", "did you mean `poll`?"),
        ("run net --network moon", "unknown network `moon`"),
        ("run net --mode rain", "unknown mode `rain`"),
        (
            "run net --methods send,sendmsg_iov --network loopback --budget 1s",
            "shorter than one pass",
        ),
        ("run net --precision 200%", "write a percentage above 0%"),
        ("run net --methods send --cpus 8000", "cannot use CPU 8000"),
        (
            "run net --methods send --congestion warp",
            "cannot use the congestion control `warp`: ENOENT",
        ),
        ("run nit", "unknown study or plan `nit`, did you mean `net`?"),
        ("run", "start with: iolens run net --quick"),
        ("runn net", "run"),
        ("export last --format xml", "csv, json"),
        ("show last 1 --json", "cannot be used with"),
        ("audit", "required"),
        ("audit missing.csv", "cannot read missing.csv"),
        ("audit /dev/null", "neither a table with a header nor what perf stat prints"),
        ("audit x --map thread=T", "did you mean `threads`?"),
        ("audit x --clock-max 5", "is not a frequency such as 5GHz"),
    ] {
        refused(line, 2, expect);
    }
    refused("resume last", 4, "there are no results yet");
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
    let words = ["sh", "-c", "ulimit -n 80; exec \"$@\"", "sh"];
    let run = "run net --methods send,sendmsg_iov --threads 8 --sizes 1KiB --quick";
    let done = finished(started_by(&words, &place.command(run)).output().unwrap());
    done.ended(4).says("open files per process");
}

#[test]
fn a_file_that_is_not_ours_is_refused_untouched() {
    let place = Place::new();
    place.write("notes.txt", "precious");
    for line in ["run net --methods send --quick", "runs", "show last"] {
        let why = "notes.txt is not a file of results: it is not an SQLite database";
        place.fails(&format!("{line} --db PLACE/notes.txt"), 4, why);
    }
    assert_eq!(place.read("notes.txt"), "precious");

    place.run("run net --methods send --quick --db PLACE/notes.txt/x.db").ended(4);
}

#[test]
fn old_flags_are_answered_with_the_new_ones() {
    for (line, expect) in [
        ("run net --primitives send", "--primitives is now --methods"),
        ("run server --primitives all", "--primitives is now --models"),
        ("run net --topologies=host", "--topologies is now --network"),
        ("run file --sizes 1KiB", "--sizes is now --block-sizes"),
        ("run copy --sizes 1KiB", "--sizes is now --file-sizes"),
        ("run copy --evict", "--evict is now --allow-evict"),
        ("run net --window 3s", "--window is now --sequential-time"),
        ("run classic-48 --delta 1%", "--delta is now --threshold\n  iolens run net --help"),
        ("run net --resume last", "run --resume is now: iolens resume RUN"),
        ("run --resume last", "run --resume is now: iolens resume last"),
        ("net send send --listen :0 --size 1 --working-set hot", "is now --send-memory"),
        ("tune read /dev/null --evict", "--evict is now --allow-evict"),
        ("file read /dev/null --block-size 1 --depth 2", "--depth is now --queue-depth"),
        ("ask --size 1KiB --primitives all", "--primitives is now --methods"),
        ("list primitives", "`list primitives` is now `list methods`"),
        ("run net --iovec prepared", "`prepared` is now `prebuilt`"),
        ("run net --network host", "`host` is now `peer`"),
        ("run server --keep-alive short", "`short` is now `no`"),
        ("run syscall --bursts fill", "`fill` is now `full`"),
    ] {
        refused(line, 2, expect);
    }
}

#[test]
fn a_flag_of_another_study_says_whose_it_is() {
    for (line, expect) in [
        ("run net --connections 5", "run net has no --connections; it belongs to run server"),
        ("run classic-48 --load closed", "run net has no --load; it belongs to run server"),
        ("run server-models --methods all", "--methods is --models in run server"),
        ("run file --peer env", "run file has no --peer; it belongs to run net"),
        ("run --quick net", "name the study first"),
    ] {
        refused(line, 2, expect);
    }
}

#[test]
fn the_help_of_a_plan_is_that_of_its_study() {
    let place = Place::new();
    let of = |line: &str| place.run(line).stdout;
    assert_eq!(of("run classic-48 --help"), of("run net --help"));
    assert_eq!(of("run copy-vs-dd -h"), of("run copy -h"));
    assert_ne!(of("run copy -h"), of("run copy --help"));
    place.write("mine.toml", "study = \"server\"\n");
    let mine = format!("run {} --help", place.path("mine.toml").display());
    assert_eq!(of(&mine), of("run server --help"));
}

#[test]
fn words_of_textbooks_are_noted() {
    let done =
        Place::new().run("run net --methods two-copy,zero-copy --threads 1..3 --dry-run").ended(0);
    done.says("two-copy is called send_staged here");
    done.prints("3 threads");
}
