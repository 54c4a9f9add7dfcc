//! The lines: what is promised of a subject, and how it is shown. Most are data (`lines/*.toml`):
//! what is run, and what has to be said then. What takes more is a function of the same name.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::check::{Check, Res};
use crate::process::{Job, tests};
use crate::query::ask;

/// Functions that show what a line promises, by its name.
pub type Functions = &'static [(&'static str, fn(&Bench) -> Res)];

/// One promise.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    #[serde(skip)]
    pub subject: &'static str,
    /// Says what is checked; unique within its subject.
    pub name: String,
    pub promise: String,
    /// Names of peers, or `root`.
    #[serde(default)]
    pub needs: Vec<String>,
    #[serde(default)]
    steps: Vec<Step>,
    /// What somebody has to do.
    by_hand: Option<String>,
    /// After the steps.
    #[serde(skip)]
    function: Option<fn(&Bench) -> Res>,
}

/// A command of the tool, or tests that are always run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// Scripts that run meanwhile.
    #[serde(default)]
    beside: Vec<String>,
    /// A script that comes before.
    prepare: Option<String>,
    /// Words of the tool. The JSON that it prints is what filters are asked about.
    run: Option<String>,
    /// How often it is run, if not once.
    times: Option<u32>,
    /// A condition on the time it took, s.
    seconds: Option<String>,
    /// Words that have to be on stderr; then it may fail.
    says: Option<String>,
    /// Why nothing can be shown where a filter is not true.
    unless: Option<[String; 2]>,
    /// Name, filter and condition.
    #[serde(default)]
    expect: Vec<[String; 3]>,
    /// Words of `cargo test`.
    tests: Option<String>,
    /// What these print is in lines with this mark,
    mark: Option<String>,
    /// so many of each kind: kind and condition.
    #[serde(default)]
    prints: Vec<[String; 2]>,
}

#[derive(Deserialize)]
struct Lines {
    line: Vec<Line>,
}

/// The lines of a subject.
pub fn of(subject: &'static str, text: &str, functions: Functions) -> Vec<Line> {
    let mut lines = toml::from_str::<Lines>(text).expect("tests read this table").line;
    for line in &mut lines {
        let function = functions.iter().find(|(name, _)| *name == line.name);
        (line.subject, line.function) = (subject, function.map(|(_, function)| *function));
    }
    lines
}

impl Line {
    pub fn check(&self, bench: &Bench) -> Res {
        let mut before = Value::Null;
        for step in &self.steps {
            match step.take(bench, &before)? {
                Some(json) => before = json,
                None => return Ok(()),
            }
        }
        self.by_hand.iter().for_each(|what| bench.missing(what));
        self.function.map_or(Ok(()), |function| function(bench))
    }
}

impl Step {
    /// What the tool printed; nothing where the line can go no further.
    fn take(&self, bench: &Bench, before: &Value) -> Res<Option<Value>> {
        let beside = self.beside.iter().map(|script| Job::shell(script).start());
        let _beside = beside.collect::<Res<Vec<_>>>()?;
        if let Some(script) = &self.prepare {
            bench.at_home(Job::shell(script)).success()?;
        }
        if let Some(words) = &self.tests {
            self.test(bench, words)?;
        }
        let Some(words) = &self.run else { return Ok(Some(Value::Null)) };
        let root = crate::root().display().to_string();
        let run = || {
            let words = words.split_whitespace().map(|word| word.replace("ROOT", &root));
            bench.iolens("").args(words).minutes(40).run()
        };
        if let Some(part) = &self.says {
            bench.said(part, run()?.noted(part));
            return Ok(Some(Value::Null));
        }
        let mut done = run()?.success()?;
        for _ in 1..self.times.unwrap_or(1) {
            done = run()?.success()?;
        }
        if let Some(condition) = &self.seconds {
            let seconds = json!(done.seconds());
            ask(bench, [&seconds, before], ["seconds", ".", condition]);
        }
        self.judge(bench, [&done.json()?, before])
    }

    fn judge(&self, check: &Check, documents: [&Value; 2]) -> Res<Option<Value>> {
        if let Some([why, filter]) = &self.unless
            && crate::query::query(documents, filter)? != [true]
        {
            check.missing(why);
            return Ok(None);
        }
        for expected in &self.expect {
            ask(check, documents, expected.each_ref().map(String::as_str));
        }
        Ok(Some(documents[0].clone()))
    }

    /// They must pass, and print as many lines of each kind as are asked for.
    fn test(&self, check: &Check, words: &str) -> Res {
        let done = tests(check, words)?;
        let mark = self.mark.as_deref().unwrap_or_default();
        // A test's name may stand in front of its first line.
        let lines = done.out_lines().filter(|line| line.contains(mark));
        let lines = lines.map(|line| line.split_once("figure: ").map_or(line, |(_, line)| line));
        let lines: Vec<&str> = lines.collect();
        for [kind, condition] in &self.prints {
            let own: Vec<&&str> = lines.iter().filter(|line| line.contains(&**kind)).collect();
            own.iter().for_each(|line| check.note(kind, line));
            ask(check, [&json!(own.len()), &Value::Null], [kind, ".", condition]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::passes;

    /// Whether a line's last step that judges is content with such documents.
    fn good(name: &str, json: &Value, before: &Value) -> bool {
        let lines = crate::lines();
        let line = lines.iter().find(|line| format!("{} {}", line.subject, line.name) == name);
        let judges = |step: &&Step| !step.expect.is_empty();
        let step = line.and_then(|line| line.steps.iter().find(judges)).expect("it has one");
        passes(|check| step.judge(check, [json, before]).map(drop).expect("it can be judged"))
    }

    #[test]
    fn a_line_is_shown_in_one_way_and_every_function_is_one_of_a_line() {
        let lines = crate::lines();
        for line in &lines {
            let is_shown = !line.steps.is_empty() || line.function.is_some();
            assert!(is_shown != line.by_hand.is_some(), "{}", line.name);
        }
        let functions = crate::SUBJECTS.iter().map(|(_, _, functions)| functions.len());
        let named = lines.iter().filter(|line| line.function.is_some()).count();
        assert_eq!(named, functions.sum::<usize>());
    }

    /// The filters of all lines compile.
    #[test]
    fn every_filter_is_one() {
        for step in crate::lines().iter().flat_map(|line| &line.steps) {
            let filters = step.expect.iter().map(|[_, filter, _]| filter);
            for filter in filters.chain(step.unless.iter().map(|[_, filter]| filter)) {
                let said = crate::query::query([&Value::Null, &Value::Null], filter);
                let why = said.err().unwrap_or_default();
                assert!(!why.contains("is no filter"), "{why}");
            }
        }
    }

    fn with(mut row: Value, more: &Value) -> Value {
        more.as_object().unwrap().iter().for_each(|(key, value)| row[key] = value.clone());
        row
    }

    #[test]
    fn a_copy_that_is_judged_different_fails_the_line() {
        let arms = |role: &str, verdict: &str| {
            vec![json!({"primitive": "send", "role": role, "verdict": verdict}); 20]
        };
        let judged =
            |rows: Vec<Value>| good("truth equal-time", &json!({ "cells": rows }), &json!(0));
        let both = |copy: &str, twin: &str| {
            judged([arms("self_check", copy), arms("compared", twin)].concat())
        };
        assert!(both("EQUIVALENT", "INCONCLUSIVE") && both("SMALL", "UNRANKED"));
        assert!(!both("INVALID", "EQUIVALENT"));
        assert!(!both("", "EQUIVALENT"), "no verdict");
        assert!(!both("EQUIVALENT", "SLOWER"));
        assert!(!judged(arms("self_check", "EQUIVALENT")), "half of the arms");
    }

    fn server(id: &str) -> Value {
        json!({"primitive": id, "role": "compared", "status": "ok",
               "server_cpu_ns_per_request": 9000.0, "requests_ok": 20_000})
    }

    #[test]
    fn a_first_look_has_every_model_and_an_answer() {
        let models = ["epoll_lt", "iterative", "poll"];
        let models = models.map(|id| json!({"name": id, "available": true}));
        let here = json!({ "models": models });
        let by_design = json!({"status": "skipped", "reason": "one at a time"});
        let judged = |poll: Value, method: Option<&str>| {
            let run = json!({
                "cells": [server("epoll_lt"), with(server("iterative"), &by_design),
                          with(server("poll"), &poll)],
                "findings": [{"finding": "ranking", "quantity": "server_cpu", "method": method}],
            });
            good("servers first-look", &run, &here)
        };
        assert!(judged(json!({}), Some("poll")));
        assert!(!judged(json!({"status": "failed"}), Some("poll")));
        assert!(!judged(by_design.clone(), Some("poll")));
        assert!(!judged(json!({"server_cpu_ns_per_request": null}), Some("poll")));
        assert!(!judged(json!({"primitive": "other"}), Some("poll")), "it is not in the run");
        assert!(!judged(json!({}), None) && !judged(json!({}), Some("unknown")));
    }

    #[test]
    fn a_crowd_is_answered_or_its_limit_is_named() {
        let judged = |last: Value| {
            let rows = [server("epoll_lt"), server("epoll_et"), with(server("uring"), &last)];
            good("servers crowd-run", &json!({ "cells": rows }), &json!(0))
        };
        assert!(judged(json!({})));
        assert!(!judged(json!({"requests_reset": 1})) && !judged(json!({"requests_ok": 9_999})));
        let named = "needs 10065 descriptors (RLIMIT_NOFILE, hard)";
        assert!(judged(json!({"status": "skipped", "reason": named})));
        assert!(!judged(json!({"status": "skipped", "reason": "no"})));
    }

    #[test]
    fn what_counting_costs_is_read() {
        let run = |high: f64, reading: u64| {
            json!({
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
        let judged = |json: Value| good("truth counters", &json, &json!(0));
        assert!(judged(run(1.02, 2)));
        assert!(!judged(run(1.03, 2)) && !judged(run(1.02, 6)) && !judged(run(1.02, 11)));
        let query = |filter| crate::query::query([&run(1.02, 2), &json!(0)], filter);
        assert_eq!(query("open_counters"), Ok(vec![json!(["cycles_user"])]));
        let words = json!("rr 64 B × 1: SMALL 1.01 [1.0, 1.02] ");
        assert_eq!(query("in_role(\"self_check\")[] | words"), Ok(vec![words]));
        assert!(!judged(with(run(1.02, 2), &json!({"cells": []}))), "no cell");
        assert!(
            !judged(with(run(1.02, 2), &json!({"run": {"host": {"facts": []}}}))),
            "no counter"
        );
    }
}
