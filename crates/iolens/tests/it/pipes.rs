//! A reader that goes before it has read everything, as `head` does: no message and no
//! panic, and the exit code of what was done.

use std::process::Command;

use crate::harness::{Finished, Place, finished, list};
use crate::sample;

/// Runs a command whose stdout nobody reads any more.
fn unread(mut command: Command) -> Finished {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    finished(command.stdout(writer).output().unwrap())
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let place = Place::new();
    place.with_runs(&[sample::header("ab000001")]);
    for line in [
        "list methods",
        "list methods --json",
        "list metrics",
        "runs",
        "runs --json",
        "completions bash",
        "--help",
        "run --help",
        "--version",
        "run net --print-plan",
        "run net --dry-run --network loopback",
        "show last",
        "show last --json",
        "export last --format csv",
        "report last",
    ] {
        let expect = place.run(line).code;
        let done = unread(place.command(line));
        assert_eq!((done.code, &*done.stderr), (expect, ""), "{line}");
    }
}

#[test]
fn a_run_whose_answer_nobody_reads_is_stored() {
    const RUN: &str = "run net --methods send --sizes 1KiB --threads 1 --network loopback \
                       --quick --passes 1 --progress none";
    let place = Place::new();
    for line in [RUN.to_owned(), format!("{RUN} --json")] {
        let done = unread(place.command(&line)).ended(0);
        assert!(!done.stderr.contains("panicked") && !done.stderr.contains("roken pipe"));
    }
    let runs = place.json("runs --json");
    let ends: Vec<bool> = list(&runs).iter().map(|run| run["end"].is_null()).collect();
    assert_eq!(ends, [false, false]);
}

#[test]
fn neither_output_being_read_is_no_panic() {
    let place = Place::new();
    for (line, expect) in [("list methods", 0), ("show last", 4), ("run net --sizes 0", 2)] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = place.command(line);
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        assert_eq!(command.status().unwrap().code(), Some(expect), "{line}");
    }
}
