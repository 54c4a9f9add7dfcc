//! What is counted when it is asked for, and what is not: in every slice a
//! value or, in the run, a reason.

use crate::harness::Place;

const RUN: &str = "run net --methods send --sizes 1KiB --threads 2 --network loopback \
                   --quick --passes 2 --rounds 3 --progress none";

/// The values of columns in the rows of slices, by the arm of each row.
fn slices(place: &Place, columns: &[&str]) -> Vec<(String, Vec<String>)> {
    let csv = place.run("export last --rows slices --format csv").stdout;
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    let at = |name: &str| header.iter().position(|column| *column == name).expect("a column");
    lines
        .map(|row| {
            let values = columns.iter().map(|name| row[at(name)].to_owned()).collect();
            (row[at("arm")].to_owned(), values)
        })
        .collect()
}

/// Columns that the kernel fills where it is permitted to.
const EVENTS: [&str; 4] = [
    "tx_perf_task_clock_ns",
    "rx_perf_context_switches",
    "tx_perf_minor_faults",
    "rx_cpu_context_switches",
];

/// A value in all of these rows, or a reason in the run.
fn check_counted(place: &Place, rows: &[(String, Vec<String>)]) {
    let reasons = place.json("show last --json")["not_measured"].clone();
    for (i, column) in EVENTS.iter().enumerate() {
        let known = rows.iter().filter(|(_, values)| !values[i].is_empty()).count();
        let why = reasons[&column[3..]].as_str().unwrap_or_default();
        assert!(known == rows.len() || !why.is_empty(), "{column}: {known} of {}", rows.len());
        assert!(known > 0 || !why.contains("closed"), "{column}: {why}");
    }
}

#[test]
fn software_events_and_tracepoints_are_counted_when_asked_for() {
    let place = Place::new();
    let done = place.run(RUN);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let asked_not = place.json("show last --json")["not_measured"].clone();
    for (metric, flag) in [("perf_migrations", "--software-events"), ("sys_enter", "--tracepoints")]
    {
        assert!(asked_not[metric].as_str().expect("a reason").contains(flag), "{asked_not}");
    }
    let done = place.run(&format!("{RUN} --software-events --tracepoints"));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    check_counted(&place, &slices(&place, &EVENTS));
    let reasons = place.json("show last --json")["not_measured"].to_string();
    assert!(!reasons.contains("not asked for"), "{reasons}");
}

#[test]
fn counters_may_be_closed_in_all_slices_or_in_those_of_the_hidden_arm() {
    let place = Place::new();
    let done = place.run(&format!("{RUN} --software-events --counters alternate"));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let warnings = place.json("show last --json")["warnings"].to_string();
    assert!(warnings.contains("the hidden copy ran with its counters closed"), "{warnings}");
    let (hidden, open): (Vec<_>, Vec<_>) =
        slices(&place, &EVENTS).into_iter().partition(|(arm, _)| arm.ends_with("(A/A)"));
    assert!(!hidden.is_empty() && !open.is_empty());
    assert!(hidden.iter().all(|(_, values)| values.iter().all(String::is_empty)), "{hidden:?}");
    check_counted(&place, &open);

    let done = place.run(&format!("{RUN} --software-events --counters off"));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let rows = slices(&place, &[&EVENTS[..], &["tx_voluntary_switches", "tx_cpu_ns"]].concat());
    for (_, values) in rows {
        let (events, accounts) = values.split_at(EVENTS.len());
        assert!(events.iter().all(String::is_empty), "{events:?}");
        assert!(accounts.iter().all(|value| !value.is_empty()), "the accounts need no counter");
    }
}
