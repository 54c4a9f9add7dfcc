//! Whole runs that compare servers: a first look at all models, and very many connections.

use serde_json::Value;

use super::results;
use super::serving::number;
use super::{Bench, Judged, Outcome};

/// What a first look may take, without the build.
const QUICK_S_MAX: f64 = 120.0;

/// Models that hold very many connections in one process.
const CROWD: [&str; 3] = ["epoll_lt", "epoll_et", "uring"];

const CONNECTIONS: u64 = 10_000;

/// The rows of the models of a run, the baseline's copy left out.
fn models(json: &Value) -> Vec<&Value> {
    let rows = json["cells"].as_array().into_iter().flatten();
    rows.filter(|row| row["role"] != "self_check").collect()
}

fn word<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or("")
}

/// `run server --quick`: every model of this machine, and the cheapest with its interval.
pub(crate) fn first_look(bench: &Bench) -> Judged {
    let list = bench.iolens_json("first-look", &["list", "models", "--json"], 1)?.json;
    let listed = list["models"].as_array().into_iter().flatten();
    let available: Vec<String> = listed
        .filter(|model| model["available"] == true)
        .map(|model| word(model, "name").to_owned())
        .collect();
    let begun = std::time::Instant::now();
    let run = bench.iolens_json("first-look", &["run", "server", "--quick", "--json"], 4)?.json;
    let seconds = begun.elapsed().as_secs_f64();
    Ok(judge_first_look(&run, &available, seconds))
}

fn judge_first_look(run: &Value, available: &[String], seconds: f64) -> Outcome {
    let rows = models(run);
    let of = |id: &String| rows.iter().find(|row| row["primitive"] == id.as_str());
    let (mut measured, mut skipped, mut lacking) = (0, Vec::new(), Vec::new());
    for id in available {
        match of(id) {
            Some(row) if word(row, "status") == "ok" => {
                let has = number(row, "server_cpu_ns_per_request") > 0.0;
                measured += usize::from(has);
                lacking.extend((!has).then(|| id.clone()));
            }
            Some(row) if word(row, "reason").starts_with("by design") => skipped.push(id.clone()),
            _ => lacking.push(id.clone()),
        }
    }
    let rankings = results::rankings(run);
    let answer = rankings.iter().find(|ranking| ranking.quantity == "server_cpu");
    let named: Vec<&String> = answer.into_iter().flat_map(|ranking| &ranking.methods).collect();
    let names = !named.is_empty() && named.iter().all(|named| available.contains(named));
    let evidence = format!(
        "{seconds:.0} s; {measured} of {} models measured, by design not with 16 long connections: \
         {}; without numbers: {}; {}",
        available.len(),
        listed_or_none(&skipped),
        listed_or_none(&lacking),
        match named.as_slice() {
            [] => "no model is named the cheapest".to_owned(),
            named => format!("cheapest: {named:?}"),
        }
    );
    let passes = lacking.is_empty() && measured > 1 && names && seconds < QUICK_S_MAX;
    if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) }
}

fn listed_or_none(ids: &[String]) -> String {
    if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
}

/// `run server` with ten thousand long connections: numbers without an error, or the limit
/// that stopped them.
pub(crate) fn crowd(bench: &Bench) -> Judged {
    let (connections, ids) = (CONNECTIONS.to_string(), CROWD.join(","));
    let line = [
        "run",
        "server",
        "--quick",
        "--models",
        &ids,
        "--connections",
        &connections,
        "--network",
        "loopback",
        "--passes",
        "2",
        "--budget",
        "4m",
        "--json",
    ];
    let run = bench.iolens_json("crowd-run", &line, 8)?.json;
    Ok(judge_crowd(&run))
}

fn judge_crowd(run: &Value) -> Outcome {
    let rows = models(run);
    let (mut evidence, mut passes) = (Vec::new(), true);
    for id in CROWD {
        let row = rows.iter().find(|row| row["primitive"] == id);
        let (is_good, words) = row.map_or((false, "not in the run".to_owned()), |row| held(row));
        passes &= is_good;
        evidence.push(format!("{id}: {words}"));
    }
    let evidence = evidence.join("\n");
    if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) }
}

/// Whether a model answered all requests of its connections, or says which limit kept it
/// from having them.
fn held(row: &Value) -> (bool, String) {
    const LIMITS: [&str; 3] = ["RLIMIT_NOFILE", "ip_local_port_range", "nf_conntrack_max"];
    let (status, reason) = (word(row, "status"), word(row, "reason"));
    if status == "skipped" {
        let is_named = LIMITS.iter().any(|limit| reason.contains(limit));
        return (is_named, format!("not on this machine: {reason}"));
    }
    let ok = number(row, "requests_ok");
    let kinds = ["timeout", "refused", "reset", "invalid", "abandoned"];
    let wrong: f64 = kinds.iter().map(|kind| number(row, &format!("requests_{kind}"))).sum();
    let cost_ns = number(row, "server_cpu_ns_per_request");
    let words = format!(
        "{status}, {ok:.0} requests ok, {wrong:.0} otherwise, {:.1} µs of server CPU for each{}{reason}",
        cost_ns / 1e3,
        if reason.is_empty() { "" } else { ": " },
    );
    (status == "ok" && ok >= CONNECTIONS as f64 && wrong == 0.0 && cost_ns > 0.0, words)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(id: &str, more: Value) -> Value {
        let mut row = json!({
            "primitive": id, "role": "compared", "status": "ok",
            "server_cpu_ns_per_request": 9000.0, "requests_ok": 20_000,
        });
        more.as_object().unwrap().iter().for_each(|(key, value)| row[key] = value.clone());
        row
    }

    fn passes(outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Pass(_))
    }

    #[test]
    fn a_first_look_has_every_model_and_an_answer() {
        let available = ["epoll_lt", "iterative", "poll"].map(str::to_owned);
        let by_design = json!({"status": "skipped", "reason": "by design: one at a time"});
        let run = |poll: Value, method: Option<&str>| {
            json!({
                "cells": [row("epoll_lt", json!({})), row("iterative", by_design.clone()), poll],
                "findings": [{"finding": "ranking", "quantity": "server_cpu", "method": method}],
            })
        };
        let good = run(row("poll", json!({})), Some("poll"));
        assert!(passes(&judge_first_look(&good, &available, 90.0)));
        assert!(!passes(&judge_first_look(&good, &available, 130.0)));
        let lost = run(row("poll", json!({"status": "failed"})), Some("poll"));
        assert!(!passes(&judge_first_look(&lost, &available, 90.0)));
        let silent = run(row("poll", json!({})), None);
        assert!(!passes(&judge_first_look(&silent, &available, 90.0)));
    }

    #[test]
    fn a_crowd_is_answered_or_its_limit_is_named() {
        let run = |last: Value| json!({"cells": [row("epoll_lt", json!({})), row("epoll_et", json!({})), last]});
        assert!(passes(&judge_crowd(&run(row("uring", json!({}))))));
        let reset = run(row("uring", json!({"requests_reset": 1})));
        assert!(!passes(&judge_crowd(&reset)));
        let named =
            json!({"status": "skipped", "reason": "needs 10065 descriptors (RLIMIT_NOFILE, hard)"});
        assert!(passes(&judge_crowd(&run(row("uring", named)))));
        let silent = json!({"status": "skipped", "reason": "no"});
        assert!(!passes(&judge_crowd(&run(row("uring", silent)))));
    }
}
