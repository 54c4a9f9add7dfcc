//! Our counts beside those of perf(1), which is told by us when to count: the
//! same slices, counted by somebody else.

use serde_json::Value;

use super::process::{Job, need};
use super::{Bench, Judged, Outcome};

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
pub(crate) fn check(bench: &Bench) -> Judged {
    if let Err(missing) = need("perf", "linux-perf") {
        return Ok(Outcome::Skip(missing));
    }
    let mut evidence = Vec::new();
    let mut passes = true;
    for cell in CELLS {
        let (counted, rows) = both(bench, cell)?;
        let slices = sum(&rows, &["slices"]).ok_or("no trial is stored")?;
        evidence.extend(accounts(&rows).map(|accounts| format!("{cell}: {accounts}")));
        for (event, metrics) in PAIRS {
            let (Some(theirs), Some(ours)) = (perf_count(&counted, event), sum(&rows, metrics))
            else {
                evidence.push(format!("{cell}: {event} is not counted here"));
                continue;
            };
            let agrees = agrees(ours, theirs, slices);
            passes &= agrees;
            evidence.push(format!(
                "{cell}: {event}: perf {theirs:.0}, ours {ours:.0}, {:+.2} %{}",
                100.0 * (ours - theirs) / theirs.max(1.0),
                if agrees { "" } else { ": DIFFERS" }
            ));
        }
    }
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// The other clock, which is not compared: the kernel's accounts of a thread
/// have the switches to it and from it, perf's clock stands within them.
fn accounts(rows: &[Value]) -> Option<String> {
    let cpu_ns = sum(rows, &["tx_cpu_ns", "rx_cpu_ns"])?;
    let between_ns = cpu_ns - sum(rows, &["perf_task_clock_ns"])?;
    let switches = sum(rows, &["context_switches"])?.max(1.0);
    Some(format!(
        "CPU time in the accounts {cpu_ns:.0} ns, {:.0} ns more per context switch, not judged",
        between_ns / switches
    ))
}

fn agrees(ours: f64, theirs: f64, slices: f64) -> bool {
    (ours - theirs).abs() <= DIFFERENCE_MAX * theirs + EDGE_COUNTS * slices
}

/// What perf printed, and our rows of the same slices.
fn both(bench: &Bench, cell: &str) -> Result<(String, Vec<Value>), String> {
    const NAME: &str = "agreement";
    let home = bench.home(NAME)?;
    let [ctl, ack, out] = ["ctl", "ack", "perf.csv"].map(|name| home.join(name));
    let path = |path: &std::path::Path| path.display().to_string();
    for pipe in [&ctl, &ack] {
        let _ = std::fs::remove_file(pipe);
        Job::new("mkfifo").args(&[&path(pipe)]).run()?.success()?;
    }
    let control = format!("fifo:{},{}", path(&ctl), path(&ack));
    let events: Vec<&str> = PAIRS.iter().map(|(event, _)| *event).collect();
    let (events, tool, out_path) = (events.join(","), path(&bench.tool), path(&out));
    let perf = ["stat", "-D", "-1", "-x", ",", "-e", &events, "-o", &out_path];
    let perf = perf.into_iter().chain(["--control", &control, "--", &tool]);
    let ours = RUN.split_whitespace().chain(cell.split_whitespace());
    let args: Vec<&str> = perf.chain(ours).chain(["--perf-control", &control]).collect();
    bench.at_home(NAME, Job::new("perf"))?.args(&args).limit_minutes(3).run()?.success()?;
    let counted = std::fs::read_to_string(&out)
        .map_err(|e| format!("cannot read what perf wrote, {out_path}: {e}"))?;
    let rows = bench.iolens_json(NAME, &["export", "last", "--format", "json"], 1)?.json;
    Ok((counted, rows["arms"].as_array().cloned().unwrap_or_default()))
}

/// The count of an event in the text of `perf stat -x ,`: value, unit, event.
/// The clock is printed in ms. Null for what is not counted.
fn perf_count(text: &str, event: &str) -> Option<f64> {
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let fields = lines.find(|fields| fields.get(2) == Some(&event))?;
    let value: f64 = fields[0].parse().ok()?;
    Some(if fields[1] == "msec" { value * 1e6 } else { value })
}

/// The sum of some metrics over all rows; null where one is missing.
fn sum(rows: &[Value], metrics: &[&str]) -> Option<f64> {
    let values = rows.iter().flat_map(|row| metrics.iter().map(|metric| row[*metric].as_f64()));
    values.sum::<Option<f64>>().filter(|_| !rows.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_perf_prints_is_read() {
        let text = "# started on Sat Nov 21 2026\n\n2084.67,msec,task-clock,2084670000,100.00,1.5,\
                    CPUs utilized\n<not supported>,,cycles:u,0,100.00,,\n\
                    57012,,context-switches,2084670000,100.00,27.3,K/sec\n";
        assert_eq!(perf_count(text, "task-clock"), Some(2_084_670_000.0));
        assert_eq!(perf_count(text, "context-switches"), Some(57_012.0));
        assert_eq!(perf_count(text, "cycles:u"), None);
        assert_eq!(perf_count(text, "page-faults"), None);
    }

    #[test]
    fn counts_of_the_same_agree() {
        assert!(agrees(100_900.0, 100_000.0, 1.0) && !agrees(101_100.0, 100_000.0, 1.0));
        assert!(agrees(0.0, 6.0, 3.0) && !agrees(0.0, 7.0, 3.0));
        let rows = [serde_json::json!({"a": 1, "b": 2}), serde_json::json!({"a": 3, "b": null})];
        assert_eq!(sum(&rows, &["a"]), Some(4.0));
        assert_eq!((sum(&rows, &["a", "b"]), sum(&[], &["a"])), (None, None));
    }
}
