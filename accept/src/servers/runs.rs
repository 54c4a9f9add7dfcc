//! Whole runs that compare servers: a first look at all models, and very many connections.

use serde_json::Value;

use crate::json::ranked;
use crate::prelude::*;
use crate::servers::serving::{CONNECTIONS, CROWD, models, outcomes};

/// `run server --quick`: every model of this machine, and the cheapest with its interval.
pub fn first_look(bench: &Bench) -> Res {
    let available = models(bench)?;
    let run = bench.run("run server --quick --json")?;
    judge_first_look(bench, &run.json()?, &available);
    // What a first look may take, without the build.
    bench.within("seconds", run.seconds(), ..120.0);
    Ok(())
}

/// Models that serve no connections that stay, which a first look has.
const NOT_FOR_MANY: [&str; 2] = ["fork", "iterative"];

fn judge_first_look(check: &Check, run: &Value, available: &[String]) {
    let mut measured = 0;
    for id in available {
        let row = run.own_row(id).unwrap_or(&Value::Null);
        let reason = row.word("reason");
        match row.word("status") {
            "ok" if row.num("server_cpu_ns_per_request") > 0.0 => measured += 1,
            "ok" => check.judge(id, false, "it has no number"),
            "skipped" if NOT_FOR_MANY.contains(&id.as_str()) => check.note(id, reason),
            status => check.judge(id, false, format!("without numbers: {status}: {reason}")),
        }
    }
    check.within(format!("of {} models measured", available.len()), measured, 2..);
    let named = ranked(run, "server_cpu", None);
    let known = |name: &&str| available.iter().any(|id| id == name);
    let good = !named.is_empty() && named.iter().all(known);
    check.judge("cheapest", good, format!("{named:?}"));
}

/// `run server` with ten thousand long connections: numbers without an error, or the limit
/// that stopped them.
pub fn crowd(bench: &Bench) -> Res {
    let run = bench.json(format!(
        "run server --quick --models {} --connections {CONNECTIONS} --network loopback --passes 2 \
         --budget 4m --json",
        CROWD.join(",")
    ))?;
    judge_crowd(bench, &run);
    Ok(())
}

/// Whether each model answered all requests of its connections, or says which limit kept it
/// from having them.
fn judge_crowd(check: &Check, run: &Value) {
    const LIMITS: [&str; 3] = ["RLIMIT_NOFILE", "ip_local_port_range", "nf_conntrack_max"];
    for id in CROWD {
        let Ok(row) = run.own_row(id) else {
            check.judge(id, false, "it is not in the run");
            continue;
        };
        let (status, reason) = (row.word("status"), row.word("reason"));
        if status == "skipped" {
            let is_named = LIMITS.iter().any(|limit| reason.contains(limit));
            check.judge(id, is_named, format!("not on this machine: {reason}"));
            continue;
        }
        let [ok, wrong] = outcomes(row, "requests_");
        let cost_ns = row.num("server_cpu_ns_per_request");
        let good = status == "ok" && ok >= CONNECTIONS && wrong == 0 && cost_ns > 0.0;
        let words = format!(
            "{status}, {ok} requests ok, {wrong} otherwise, {cost_ns:.0} ns of server CPU for \
             each {reason}"
        );
        check.judge(id, good, words);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::passes;

    fn row(id: &str, more: Value) -> Value {
        let mut row = json!({
            "primitive": id, "role": "compared", "status": "ok",
            "server_cpu_ns_per_request": 9000.0, "requests_ok": 20_000,
        });
        more.as_object().unwrap().iter().for_each(|(key, value)| row[key] = value.clone());
        row
    }

    #[test]
    fn a_first_look_has_every_model_and_an_answer() {
        let available = ["epoll_lt", "iterative", "poll"].map(str::to_owned);
        let by_design = json!({"status": "skipped", "reason": "one at a time"});
        let good = |poll: Value, method: Option<&str>| {
            let run = json!({
                "cells": [row("epoll_lt", json!({})), row("iterative", by_design.clone()), poll],
                "findings": [{"finding": "ranking", "quantity": "server_cpu", "method": method}],
            });
            passes(|check| judge_first_look(check, &run, &available))
        };
        assert!(good(row("poll", json!({})), Some("poll")));
        assert!(!good(row("poll", json!({"status": "failed"})), Some("poll")));
        assert!(!good(row("poll", json!({"server_cpu_ns_per_request": null})), Some("poll")));
        assert!(!good(row("poll", json!({})), None));
    }

    #[test]
    fn a_crowd_is_answered_or_its_limit_is_named() {
        let good = |last: Value| {
            let rows = [row("epoll_lt", json!({})), row("epoll_et", json!({})), row("uring", last)];
            passes(|check| judge_crowd(check, &json!({ "cells": rows })))
        };
        assert!(good(json!({})));
        assert!(!good(json!({"requests_reset": 1})));
        let named = "needs 10065 descriptors (RLIMIT_NOFILE, hard)";
        assert!(good(json!({"status": "skipped", "reason": named})));
        assert!(!good(json!({"status": "skipped", "reason": "no"})));
    }
}
