//! Our counts beside those of perf(1), which is told by us when to count: the
//! same slices, counted by somebody else.

use crate::prelude::*;

/// What two counts of the same may differ by.
const DIFFERENCE_MAX: f64 = 0.01;

/// Counts that perf has of what its own commands make the threads do on either
/// side of a slice, at most: it stands outside of the bracket.
const EDGE_COUNTS: f64 = 2.0;

/// A stream, and requests and responses with two context switches each.
const CELLS: [&str; 2] = ["--sizes 64KiB --mode stream", "--sizes 64 --mode rr"];
const RUN: &str = "run net --methods send --baseline send --threads 1 --network loopback \
                   --isolate --slice 200ms --rounds 10 --passes 3 --software-events --json";

/// What is compared: perf's event, and our metrics whose sum is the same.
const PAIRS: [(&str, &[&str]); 5] = [
    ("task-clock", &["perf_task_clock_ns"]),
    ("context-switches", &["context_switches"]),
    ("page-faults", &["minor_faults", "major_faults"]),
    ("cycles:u", &["cycles_user"]),
    ("cycles:k", &["cycles_kernel"]),
];

/// Every pair agrees in every cell.
pub fn check(bench: &Bench) -> Res {
    for cell in CELLS {
        let (counted, export) = both(bench, cell)?;
        let rows = export.list("arms");
        let slices = sum(rows, &["slices"]);
        if slices.is_nan() {
            bail!("no trial is stored");
        }
        // The other clock, which is not compared: the kernel's accounts of a thread
        // have the switches to it and from it, perf's clock stands within them.
        let between_ns = sum(rows, &["tx_cpu_ns", "rx_cpu_ns"]) - sum(rows, PAIRS[0].1);
        let each_ns = between_ns / sum(rows, PAIRS[1].1).max(1.0);
        bench.note(cell, format!("{each_ns:.0} ns more in the accounts per context switch"));
        for (event, metrics) in PAIRS {
            let (theirs, ours) = (perf_count(&counted, event), sum(rows, metrics));
            if (theirs + ours).is_nan() {
                match event.starts_with("cycles") {
                    true => bench.note(event, "it is not counted here"),
                    false => bench.missing(format!("{event} is not counted")),
                }
                continue;
            }
            let percent = 100.0 * (ours - theirs) / theirs.max(1.0);
            let words = format!("perf {theirs:.0}, ours {ours:.0}, {percent:+.2}%");
            bench.judge(event, agrees(ours, theirs, slices), words);
        }
    }
    Ok(())
}

fn agrees(ours: f64, theirs: f64, slices: f64) -> bool {
    (ours - theirs).abs() <= DIFFERENCE_MAX * theirs + EDGE_COUNTS * slices
}

/// What perf printed, and our export of the same slices.
fn both(bench: &Bench, cell: &str) -> Res<(String, Value)> {
    for pipe in ["ctl", "ack"] {
        let _ = std::fs::remove_file(bench.path(pipe));
        Job::new("mkfifo").arg(bench.path(pipe)).success()?;
    }
    let control = format!("fifo:{},{}", bench.path("ctl").display(), bench.path("ack").display());
    let perf = format!("perf stat -D -1 -x , -o perf.csv --control {control} -e");
    let events = PAIRS.map(|(event, _)| event).join(",");
    let ours = format!("{RUN} {cell} --perf-control {control}");
    bench.under(Job::of(&perf).arg(events).arg("--"), &ours).minutes(3).success()?;
    Ok((bench.read("perf.csv")?, bench.json("export last --format json")?))
}

/// The count of an event in the text of `perf stat -x ,`: value, unit, event.
/// The clock is printed in ms. NaN for what is not counted.
fn perf_count(text: &str, event: &str) -> f64 {
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let Some(fields) = lines.find(|fields| fields.get(2) == Some(&event)) else { return f64::NAN };
    let value = fields[0].parse().unwrap_or(f64::NAN);
    if fields[1] == "msec" { value * 1e6 } else { value }
}

/// The sum of some metrics over all rows; NaN where one is missing.
fn sum(rows: &[Value], metrics: &[&str]) -> f64 {
    let values = rows.iter().flat_map(|row| metrics.iter().map(|metric| row.num(metric)));
    if rows.is_empty() { f64::NAN } else { values.sum() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_perf_prints_is_read() {
        let text = "# started on Sat Nov 21 2026\n\n2084.67,msec,task-clock,2084670000,100.00,1.5,\
                    CPUs utilized\n<not supported>,,cycles:u,0,100.00,,\n\
                    57012,,context-switches,2084670000,100.00,27.3,K/sec\n";
        assert_eq!(perf_count(text, "task-clock"), 2_084_670_000.0);
        assert_eq!(perf_count(text, "context-switches"), 57_012.0);
        assert!(perf_count(text, "cycles:u").is_nan() && perf_count(text, "page-faults").is_nan());
    }

    #[test]
    fn counts_of_the_same_agree() {
        assert!(agrees(100_900.0, 100_000.0, 1.0) && !agrees(101_100.0, 100_000.0, 1.0));
        assert!(agrees(0.0, 6.0, 3.0) && !agrees(0.0, 7.0, 3.0));
        let rows = [json!({"a": 1, "b": 2}), json!({"a": 3, "b": null})];
        assert_eq!(sum(&rows, &["a"]), 4.0);
        assert!(sum(&rows, &["a", "b"]).is_nan() && sum(&[], &["a"]).is_nan());
    }
}
