//! What is counted when it is asked for, and what is not: in every slice a
//! value or, in the run, a reason.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Command;

use crate::harness::{Finished, Place};

const RUN: &str = "run net --methods send --sizes 1KiB --threads 2 --network loopback \
                   --quick --passes 2 --rounds 3 --progress none";

/// Columns that the kernel fills where it is permitted to.
const EVENTS: [&str; 5] = [
    "arm",
    "tx_perf_task_clock_ns",
    "rx_perf_context_switches",
    "tx_perf_minor_faults",
    "rx_cpu_context_switches",
];

/// A value in all of these rows, or a reason in the run.
fn check_counted(place: &Place, rows: &[[String; 5]]) {
    let reasons = place.json("show last --json")["not_measured"].clone();
    for (i, column) in EVENTS.iter().enumerate().skip(1) {
        let known = rows.iter().filter(|row| !row[i].is_empty()).count();
        let why = reasons[&column[3..]].as_str().unwrap_or_default();
        assert!(known == rows.len() || !why.is_empty(), "{column}: {known} of {}", rows.len());
        assert!(known > 0 || !why.contains("closed"), "{column}: {why}");
    }
}

#[test]
fn software_events_and_tracepoints_are_counted_when_asked_for() {
    let place = Place::new();
    place.run(RUN).ended(0);
    let asked_not = place.json("show last --json")["not_measured"].clone();
    for (metric, flag) in [("perf_migrations", "--software-events"), ("sys_enter", "--tracepoints")]
    {
        assert!(asked_not[metric].as_str().expect("a reason").contains(flag), "{asked_not}");
    }
    place.run(&format!("{RUN} --software-events --tracepoints")).ended(0);
    check_counted(&place, &place.rows("slices", EVENTS));
    let reasons = place.json("show last --json")["not_measured"].to_string();
    assert!(!reasons.contains("not asked for"), "{reasons}");
}

#[test]
fn counters_may_be_closed_in_all_slices_or_in_those_of_the_hidden_arm() {
    let place = Place::new();
    place.run(&format!("{RUN} --software-events --counters alternate")).ended(0);
    let warnings = place.json("show last --json")["warnings"].to_string();
    assert!(warnings.contains("the hidden copy ran with its counters closed"), "{warnings}");
    let (hidden, open): (Vec<_>, Vec<_>) =
        place.rows("slices", EVENTS).into_iter().partition(|row| row[0].ends_with("(A/A)"));
    assert!(!hidden.is_empty() && !open.is_empty());
    assert!(hidden.iter().all(|row| row[1..].iter().all(String::is_empty)), "{hidden:?}");
    check_counted(&place, &open);

    place.run(&format!("{RUN} --software-events --counters off")).ended(0);
    for events in place.rows("slices", EVENTS) {
        assert!(events[1..].iter().all(String::is_empty), "{events:?}");
    }
    for accounts in place.rows("slices", ["tx_voluntary_switches", "tx_cpu_ns"]) {
        assert!(accounts.iter().all(|value| !value.is_empty()), "the accounts need no counter");
    }
}

/// The run, with both pipes.
fn run(place: &Place) -> Finished {
    let [ctl, ack] = ["ctl", "ack"].map(|name| place.path(name).display().to_string());
    place.run(&format!("{RUN} --perf-control fifo:{ctl},{ack}"))
}

/// A named pipe, open as perf has it: to be read and to be written.
fn pipe(place: &Place, name: &str) -> File {
    let path = place.path(name);
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success(), "mkfifo {}", path.display());
    open(&path)
}

fn open(path: &Path) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

#[test]
fn perf_counts_the_slices_that_count() {
    let place = Place::new();
    let (ctl, mut ack) = (pipe(&place, "ctl"), pipe(&place, "ack"));
    let mut end = open(&place.path("ctl"));
    let perf = std::thread::spawn(move || {
        let mut heard = Vec::new();
        for line in BufReader::new(ctl).lines() {
            let line = line.unwrap();
            if line == "end of test" {
                break;
            }
            heard.push(line);
            ack.write_all(b"ack\n\0").unwrap();
        }
        heard
    });
    let done = run(&place);
    end.write_all(b"end of test\n").unwrap();
    let heard = perf.join().unwrap();
    done.assert_code(0);
    let rows = place.rows("slices", ["kind"]);
    let measured = rows.iter().filter(|[kind]| kind == "measured").count();
    assert!(measured > 0, "{rows:?}");
    assert_eq!(heard, ["enable", "disable"].repeat(measured));
}

#[test]
fn pipes_that_nobody_reads_are_a_mistake_that_is_told_at_once() {
    let place = Place::new();
    run(&place).ended(2).says("cannot open perf's control pipe");
    drop((pipe(&place, "ctl"), pipe(&place, "ack")));
    run(&place).ended(2).says("start perf with --control first");
}
