//! What counting itself costs: the baseline with its counters open against the
//! same with its counters closed, slice by slice in the same trials.
//!
//! And what sampling stacks costs: the baseline against its unsampled double.
//!
//! Judged is what every run opens by default. On a machine without a PMU that
//! is what the kernel counts on whole CPUs; the software events of threads,
//! which a run opens only when it is asked to, are shown beside it.

use serde_json::Value;

use crate::json::ratio_words;
use crate::prelude::*;

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
pub fn counters(bench: &Bench) -> Res {
    let json = bench.json(RUN)?;
    let open = open_counters(&json);
    if open.is_empty() {
        bench.missing("no counter can be opened here");
        return Ok(());
    }
    bench.note("open by default", open.join(", "));
    judge(bench, &json);
    // Not judged.
    let asked = bench.json(format!("{RUN} --software-events"))?;
    costs(&asked).iter().for_each(|row| bench.note("with --software-events", words(row)));
    Ok(())
}

fn judge(check: &Check, json: &Value) {
    let costs = costs(json);
    check.judge("cells", !costs.is_empty(), costs.len());
    for row in costs {
        check.within(words(row), row.num("ratio_high"), ..=COST_MAX);
    }
    let share = |key: &str| json["spent"].num(key) / json.num("spent/trials_ns");
    let (reading, slices) = (share("reading_ns"), share("slices_ns"));
    check.within("reading, of the trials", reading, ..=READING_MAX);
    check.within("slices and reading together", reading + slices, ..=1.0);
}

/// The hidden arm runs with its counters closed, and its ratio is the
/// baseline's time over its own.
fn costs(json: &Value) -> Vec<&Value> {
    json.rows_where("role", "self_check")
}

fn words(row: &Value) -> String {
    format!("{}, {}", row.word("mode"), ratio_words(row))
}

/// The counters that the machine gives a thread.
fn open_counters(json: &Value) -> Vec<&str> {
    let facts = json.list("run/host/facts").iter().filter(|fact| fact["group"] == "counters");
    let counted = facts.filter(|fact| fact.word("name").starts_with("counted"));
    counted.filter_map(|fact| fact["value"]["exact"].as_str()).collect()
}

/// Sampling at 1 kHz costs less than 2 % of a slice's time.
pub fn sampling(bench: &Bench) -> Res {
    bench.run(
        "run net --methods send --baseline send --sizes 64,64KiB --threads 1 --quick --network \
         loopback --json",
    )?;
    for (number, cell) in [(1, "64 B × 1, stream"), (2, "64 KiB × 1, stream")] {
        let mut explained = Value::Null;
        // Sampled trials are made in rounds of at least five, and add up.
        for _ in 0..4 {
            explained = bench.json(format!("explain last {number} --again --json"))?;
        }
        let attribution = &explained["attribution"];
        let cost = attribution.at("sampling_cost/ratio");
        let period_ms = attribution.num("period_ns") / 1e6;
        let words = format!(
            "{cell}: {}, {} trials, a sample every {period_ms:.2} ms of CPU time, upper end",
            cost.interval(["value", "interval/low", "interval/high"]),
            cost["n"]
        );
        bench.within(words, cost.need("interval/high")?, ..=COST_MAX);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::passes;

    #[test]
    fn what_counting_costs_is_read() {
        let json = |high: f64, reading: u64| {
            serde_json::json!({
                "cells": [
                    {"role": "baseline", "mode": "rr", "message_bytes": 64, "threads": 1},
                    {"role": "self_check", "mode": "rr", "message_bytes": 64, "threads": 1,
                     "ratio": 1.01, "ratio_low": 1.0, "ratio_high": high, "verdict": "SMALL"},
                ],
                "run": {"host": {"facts": [
                    {"group": "counters", "name": "counted", "value": {"exact": "cycles_user"}},
                    {"group": "cpu", "name": "counted", "value": {"exact": "sheep"}},
                ]}},
                "spent": {"reading_ns": reading, "slices_ns": 90, "trials_ns": 100},
            })
        };
        let good = json(1.02, 2);
        assert_eq!(words(costs(&good)[0]), "rr, 64 B × 1 SMALL 1.0100 [1.0000, 1.0200]");
        assert_eq!(open_counters(&good), ["cycles_user"]);
        let good = |json: Value| passes(|check| judge(check, &json));
        assert!(good(json(1.02, 2)));
        assert!(!good(json(1.03, 2)) && !good(json(1.02, 6)) && !good(json(1.02, 11)));
        assert!(!good(serde_json::json!({})));
    }
}
