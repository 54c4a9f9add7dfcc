//! What counting itself costs: the baseline with its counters open against the
//! same with its counters closed, slice by slice in the same trials.
//!
//! And what sampling stacks costs: the baseline against its unsampled double.
//!
//! Judged is what every run opens by default. On a machine without a PMU that
//! is what the kernel counts on whole CPUs; the software events of threads,
//! which a run opens only when it is asked to, are shown beside it.

use serde_json::Value;

use super::results;
use super::{Bench, Judged, Outcome};

/// Time with counters open over time with them closed, at most.
const COST_MAX: f64 = 1.02;
/// Time spent reading over the time of the trials, at most.
const READING_MAX: f64 = 0.05;

/// Small and large messages, one way and as request and response: with few
/// context switches in a slice and with many.
const RUN: &str = "run net --methods send --sizes 64,64KiB --threads 1 --mode stream,rr \
                   --network loopback --passes 20 --budget 5m --counters alternate --json";

/// Counters open cost less than 2 % of a slice's time, and reading them less
/// than 5 % of a trial's, outside of every slice's clock.
pub(crate) fn check_counters(bench: &Bench) -> Judged {
    let words = |more: &'static str| -> Vec<&'static str> {
        RUN.split_whitespace().chain(more.split_whitespace()).collect()
    };
    let json = bench.iolens_json("overhead", &words(""), 10)?.json;
    let open = open_counters(&json);
    if open.is_empty() {
        return Ok(Outcome::Skip("no counter can be opened here".to_owned()));
    }
    let asked = bench.iolens_json("overhead", &words("--software-events"), 10)?.json;
    let (costs, shown) = (costs(&json)?, costs(&asked)?);
    let spent = Spent::of(&json)?;
    let evidence = format!(
        "open by default: {}\n{}\nreading: {:.2} % of the trials; slices and reading together \
         {:.0} %\nwith --software-events, not judged: {}",
        open.join(", "),
        written(&costs),
        100.0 * spent.reading,
        100.0 * (spent.reading + spent.slices),
        written(&shown),
    );
    let cheap = costs.iter().all(|cost| cost.high <= COST_MAX);
    let passes = cheap && spent.reading <= READING_MAX && spent.reading + spent.slices <= 1.0;
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// Sampled trials are made in rounds of at least five, and add up.
const SAMPLED_ROUNDS: u32 = 4;
const SAMPLED: [(&str, &str); 2] = [("1", "64 B × 1, stream"), ("2", "64 KiB × 1, stream")];

/// Sampling at 1 kHz costs less than 2 % of a slice's time.
pub(crate) fn check_sampling(bench: &Bench) -> Judged {
    let words = |line: &'static str| line.split_whitespace().collect::<Vec<_>>();
    let run = "run net --methods send --baseline send --sizes 64,64KiB --threads 1 --quick \
               --network loopback --json";
    bench.iolens("sampling", &words(run))?.limit_minutes(3).run()?.success()?;
    let mut evidence = Vec::new();
    let mut passes = true;
    for (number, cell) in SAMPLED {
        let mut explained = Value::Null;
        for _ in 0..SAMPLED_ROUNDS {
            let args = ["explain", "last", number, "--again", "--json"];
            explained = bench.iolens_json("sampling", &args, 3)?.json;
        }
        let cost = &explained["attribution"]["sampling_cost"]["ratio"];
        let high = cost["interval"]["high"].as_f64().ok_or("no cost of sampling is told")?;
        passes &= high <= COST_MAX;
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        evidence.push(format!(
            "{cell}: {:.3} [{:.3}, {high:.3}], {} trials, a sample every {:.2} ms of CPU time",
            number(&cost["value"]),
            number(&cost["interval"]["low"]),
            cost["n"],
            number(&explained["attribution"]["period_ns"]) / 1e6,
        ));
    }
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// Time with counters open over time with them closed, in one cell.
#[derive(Debug, PartialEq)]
struct Cost {
    cell: String,
    ratio: f64,
    low: f64,
    high: f64,
}

/// The hidden arm runs with its counters closed, and its ratio is the
/// baseline's time over its own.
fn costs(json: &Value) -> Result<Vec<Cost>, String> {
    let rows = json["cells"].as_array().into_iter().flatten();
    let closed = rows.filter(|row| row["role"] == "self_check");
    let cost = |row: &Value| {
        let number = |key: &str| row[key].as_f64();
        let cell = format!("{}, {}", results::cell_words(row), row["mode"].as_str()?);
        let (low, high) = (number("ratio_low")?, number("ratio_high")?);
        Some(Cost { cell, ratio: number("ratio")?, low, high })
    };
    let costs: Option<Vec<Cost>> = closed.map(cost).collect();
    costs.filter(|costs| !costs.is_empty()).ok_or_else(|| "a cell has no numbers".to_owned())
}

fn written(costs: &[Cost]) -> String {
    let one = |c: &Cost| format!("{}: {:.3} [{:.3}, {:.3}]", c.cell, c.ratio, c.low, c.high);
    costs.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The counters that the machine gives a thread.
fn open_counters(json: &Value) -> Vec<String> {
    let facts = json["run"]["host"]["facts"].as_array().into_iter().flatten();
    let counted = facts.filter(|fact| {
        fact["group"] == "counters"
            && fact["name"].as_str().is_some_and(|n| n.starts_with("counted"))
    });
    counted.filter_map(|fact| fact["value"]["exact"].as_str().map(str::to_owned)).collect()
}

/// Shares of the time of the trials.
#[derive(Debug, PartialEq)]
struct Spent {
    reading: f64,
    slices: f64,
}

impl Spent {
    fn of(json: &Value) -> Result<Spent, String> {
        let number = |key: &str| json["spent"][key].as_f64();
        let total = number("trials_ns").filter(|&ns| ns > 0.0);
        let shares = total.and_then(|total| {
            let share = |key: &str| Some(number(key)? / total);
            Some(Spent { reading: share("reading_ns")?, slices: share("slices_ns")? })
        });
        shares.ok_or_else(|| "the run does not say what its trials spent".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counting_costs_is_read() {
        let json = serde_json::json!({
            "cells": [
                {"role": "baseline", "mode": "rr", "message_bytes": 64, "threads": 1},
                {"role": "self_check", "mode": "rr", "message_bytes": 64, "threads": 1,
                 "ratio": 1.01, "ratio_low": 1.0, "ratio_high": 1.02},
            ],
            "run": {"host": {"facts": [
                {"group": "counters", "name": "counted", "value": {"exact": "cycles_user"}},
                {"group": "cpu", "name": "counted", "value": {"exact": "sheep"}},
            ]}},
            "spent": {"reading_ns": 2, "slices_ns": 90, "trials_ns": 100},
        });
        let cell = "64 B × 1, rr".to_owned();
        let cost = Cost { cell, ratio: 1.01, low: 1.0, high: 1.02 };
        assert_eq!(written(std::slice::from_ref(&cost)), "64 B × 1, rr: 1.010 [1.000, 1.020]");
        assert_eq!(costs(&json), Ok(vec![cost]));
        assert_eq!(open_counters(&json), ["cycles_user"]);
        assert_eq!(Spent::of(&json), Ok(Spent { reading: 0.02, slices: 0.9 }));
        assert!(costs(&serde_json::json!({})).is_err());
    }
}
