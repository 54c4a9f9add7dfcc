//! The lines: what is promised of a subject, and how it is shown. Most are data (`lines/*.toml`):
//! what is run, and what has to be said then. What takes more is a function of the same name.

use serde::Deserialize;

use crate::bench::Asks;
use crate::prelude::*;
use crate::process::tests;

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
    /// What the function asks of documents.
    #[serde(default)]
    pub asks: Asks,
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
    /// A script that comes before, with the tool as `$IOLENS`.
    prepare: Option<String>,
    /// Words of the tool. The JSON that it prints is what filters are asked about.
    run: Option<String>,
    /// Its exit code, if not 0.
    code: Option<i32>,
    /// A file in the workspace whose text stands beside the JSON, instead of what was before.
    file: Option<String>,
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
            bench.at_home(Job::shell(script)).env("IOLENS", &bench.tool).success()?;
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
        let mut done = run()?;
        for _ in 1..self.times.unwrap_or(1) {
            done = done.success().and_then(|_| run())?;
        }
        match self.code {
            Some(code) => bench.same("exit code", done.status.code(), Some(code)),
            None => done = done.success()?,
        }
        if let Some(condition) = &self.seconds {
            let seconds = json!(done.seconds());
            ask(bench, [&seconds, before], ["seconds", ".", condition]);
        }
        match &self.file {
            Some(file) => {
                let text = fs::read_to_string(crate::root().join(file))?;
                self.judge(bench, [&done.json()?, &json!(text)])
            }
            None => self.judge(bench, [&done.json()?, before]),
        }
    }

    fn judge(&self, check: &Check, documents: [&Value; 2]) -> Res<Option<Value>> {
        if let Some([why, filter]) = &self.unless
            && query(documents, filter)? != [true]
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

/// Whether what a function of a line asks of documents is so.
#[cfg(test)]
pub fn asked(name: &str, what: &str, json: &Value, beside: &Value) -> bool {
    let lines = crate::lines();
    let line = lines.iter().find(|line| format!("{} {}", line.subject, line.name) == name);
    let asks = &line.expect("there is such a line").asks;
    crate::check::passes(|check| Bench::default().of_line(check, asks).ask(what, json, beside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::passes;
    use crate::json::judging;

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
        for line in crate::lines() {
            let unless = line.steps.iter().filter_map(|step| step.unless.as_ref());
            let expected = line.steps.iter().flat_map(|step| &step.expect);
            let asked = expected.chain(line.asks.values().flatten());
            let asked = asked.map(|[_, filter, condition]| judging(filter, condition));
            for filter in asked.chain(unless.map(|[_, filter]| filter.clone())) {
                let said = query([&Value::Null, &Value::Null], &filter);
                let why = said.err().map(|why| why.to_string()).unwrap_or_default();
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
        let told = |outcome: &str, poll: Value, method: Option<&str>| {
            let run = json!({
                "cells": [server("epoll_lt"), with(server("iterative"), &by_design),
                          with(server("poll"), &poll)],
                "findings": [{"finding": "ranking", "quantity": "server_cpu",
                              "outcome": outcome, "method": method}],
            });
            good("servers first-look", &run, &here)
        };
        let judged = |poll: Value, method: Option<&str>| told("fastest", poll, method);
        assert!(!told("undecided", json!({}), Some("poll")), "any may be");
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
        let query = |filter| query([&run(1.02, 2), &json!(0)], filter).ok();
        assert_eq!(query("open_counters"), Some(vec![json!(["cycles_user"])]));
        let words = json!("rr 64 B × 1: SMALL 1.01 [1.0, 1.02] ");
        assert_eq!(query("in_role(\"self_check\")[] | words"), Some(vec![words]));
        assert!(!judged(with(run(1.02, 2), &json!({"cells": []}))), "no cell");
        assert!(
            !judged(with(run(1.02, 2), &json!({"run": {"host": {"facts": []}}}))),
            "no counter"
        );
    }

    #[test]
    fn copies_of_a_build_are_the_same_beside_the_baseline_and_by_themselves() {
        let judged = |verdict: Value, own: Value| {
            let change = json!({"arm": "write", "quantity": "time", "verdict": verdict,
                                "own": {"verdict": own, "ratio": 1.0}});
            asked("truth fresh-copies", "two runs", &json!({"changes": [change]}), &json!(0))
        };
        assert!(judged(json!("EQUIVALENT"), json!("INCONCLUSIVE")));
        assert!(!judged(json!("EQUIVALENT"), json!("SLOWER")), "all of it is slower");
        assert!(!judged(json!("SMALL"), json!("EQUIVALENT")));
        for nothing in [json!(null), json!("INVALID"), json!("UNRANKED")] {
            assert!(!judged(json!("EQUIVALENT"), nothing.clone()));
            assert!(!judged(nothing, json!("EQUIVALENT")));
        }
    }

    #[test]
    fn comparisons_rest_on_as_many_trials_as_there_are_passes() {
        let row = |arm: &str, role: &str, n: u64| json!({"arm": arm, "role": role, "status": "ok", "n": n});
        let second = [row("b", "baseline", 3), row("z", "compared", 9)];
        let rows = [row("b", "baseline", 3), row("x", "compared", 3), row("y", "self_check", 2)];
        let run = |rows: &[Value], n: u64| {
            let findings = json!([{"method": "x", "against": {"n": n}}, {"method": "y"}]);
            let cells = [rows, &second].concat();
            json!({"cells": cells, "findings": findings})
        };
        let slice = |pass: u64, arm: &str| json!({"kind": "measured", "pass": pass, "position": 0, "arm": arm});
        let slices =
            json!({"slices": [slice(0, "x"), slice(1, "x"), slice(2, "y"), slice(3, "x")]});
        let good = |rows: &[Value], n| asked("truth groups", "a run", &run(rows, n), &slices);
        assert!(good(&rows, 3) && !good(&rows, 6));
        assert!(!good(&[rows[0].clone(), row("x", "compared", 4)], 3));
        assert!(!good(&[rows[0].clone(), row("x", "compared", 0)], 3));
        assert!(asked("truth groups", "slices", &slices, &json!(0)), "two groups");
        assert!(!asked("truth groups", "slices", &json!({"slices": [slice(1, "x")]}), &json!(0)));
    }

    #[test]
    fn what_goes_wrong_at_a_server_is_told_without_what_does_not() {
        let served = json!({"mishaps": {"reset": 3, "cut_off": 0}});
        let good = |most: u64| asked("hostile clients", "the server", &served, &json!(most));
        assert!(good(3) && !good(2));
        let other = json!({"mishaps": {"no_task": 1}});
        assert!(!asked("hostile clients", "the server", &other, &json!(3)));
        let none = json!({"mishaps": {"cut_off": 0}});
        assert!(asked("servers echo-in-c", "our server", &none, &json!(0)));
        assert!(!asked("servers echo-in-c", "our server", &served, &json!(0)));
        assert!(!asked("servers echo-in-c", "another", &none, &json!(0)), "nothing is asked");
    }

    #[test]
    fn a_stall_is_seen_by_who_waits_and_not_by_who_sends() {
        let load = |sent: u64, max: f64| {
            json!({"outcomes": {"ok": 6000}, "from_due": {"max_ns": max, "p99_ns": 1160e6},
                   "from_sent": {"p99_ns": sent, "buckets": [[1_000_000, 5999], [1_400_000_000, 1]]},
                   "client_limited": false})
        };
        let good = |load: Value| {
            let schedule = json!({"p99_ns": 1160e6});
            asked("servers oracle", "a server that stalls", &load, &schedule)
        };
        assert!(good(load(2_000_000, 1.4e9)));
        assert!(!good(load(1_160_000_000, 1.4e9)) && !good(load(2_000_000, 1.3e9)));
    }

    #[test]
    fn a_change_that_is_known_is_found_and_no_other() {
        let change = |primitive: &str, verdict: &str, low: f64| {
            let ns = if primitive == "half" { 20_040_000 } else { 40_080_000 };
            json!({"primitive": primitive, "arm": primitive, "quantity": "time", "verdict": verdict,
                   "ratio": 0.8337, "pointwise": {"low": low, "high": 0.8344}, "own": {"ns_a": ns}})
        };
        let good = |changes: [Value; 2]| {
            let half = change("half", "EQUIVALENT", 0.8);
            let changes = [&[half], &changes[..]].concat();
            asked("truth handicap", "two runs", &json!({ "changes": changes }), &json!(0))
        };
        let same = || change("same", "EQUIVALENT", 0.8);
        assert!(good([same(), change("slow", "SLOWER", 0.833)]));
        assert!(!good([same(), change("slow", "SMALL", 0.833)]));
        assert!(!good([same(), change("slow", "SLOWER", 0.834)]), "the right ratio is not in it");
        assert!(!good([change("same", "SLOWER", 0.8), change("slow", "SLOWER", 0.833)]));
        assert!(!good([same(), same()]));
    }

    fn said(code: i32, err: &str) -> Value {
        json!({"code": code, "err": err, "out": ""})
    }

    fn of_file_systems(what: &str, all: Value, left: &str) -> bool {
        asked("files file-systems", what, &all, &json!({"left": left, "changed": false}))
    }

    #[test]
    fn on_a_file_system_each_tool_gives_a_result_or_one_message() {
        let printed = |json: Value| with(said(0, ""), &json!({"out": json.to_string()}));
        let good = |more: Value, left: &str| {
            let all = json!({
                "read-read": printed(json!({"checksum": "7"})),
                "copy-read_write": said(0, ""),
                "show": printed(json!({"cells": [{"status": "ok", "cache": "warm"}]})),
            });
            of_file_systems("all works, or says why not", with(all, &more), left)
        };
        let reader = |sum: &str| json!({"read-mmap": printed(json!({"checksum": sum}))});
        assert!(good(reader("7"), "f") && !good(reader("8"), "f") && !good(reader("7"), "f w"));
        let one = |code, err| json!({"read-x": said(code, err)});
        assert!(good(one(4, "iolens: no\n  do\n"), "f"));
        assert!(!good(one(4, ""), "f") && !good(one(0, "iolens: a\n"), "f"));
        assert!(!good(one(4, "iolens: a\niolens: b\n"), "f") && !good(one(-1, "iolens: a\n"), "f"));
        assert!(!good(json!({"read-x": {"code": null, "err": ""}}), "f"), "it was not started");
        let cells = |more: &[Value]| {
            let cells = [&[json!({"status": "ok", "cache": "warm"})], more].concat();
            good(json!({"show": printed(json!({ "cells": cells }))}), "f")
        };
        assert!(cells(&[]) && cells(&[json!({"status": "skipped", "reason": "why"})]));
        assert!(!cells(&[json!({"status": "failed", "reason": "why"})]));
        assert!(!cells(&[json!({"status": "invalid"})]));
        assert!(!good(json!({"show": printed(json!({"cells": []}))}), "f"));
    }

    #[test]
    fn a_quota_is_named_by_all_and_nothing_stays() {
        let good = |name: &str, last: Value, left: &str| {
            let met = || said(4, "iolens: cannot write w: EDQUOT\n");
            let mut all: serde_json::Map<String, Value> =
                (0..5).map(|n| (format!("write-{n}"), met())).collect();
            all.insert(name.to_owned(), last);
            of_file_systems("a quota that is used up", all.into(), left)
        };
        let elsewhere = || said(4, "iolens: it failed: EXDEV\n");
        assert!(good("copy-reflink", elsewhere(), "") && !good("copy-reflink", elsewhere(), "w"));
        assert!(!good("copy-read_write", elsewhere(), ""));
        assert!(!good("copy-reflink", said(4, "iolens: oh\n"), ""));
        assert!(!good("write-x", said(0, ""), ""));
    }

    #[test]
    fn a_device_that_fails_is_named_by_all() {
        let named = || said(4, "iolens: cannot read f: EIO\n");
        let failed = "committed: failed: `read`: cannot read f: EIO\n";
        let numbers = "committed: : ok, \n";
        let good = |read: Value, midway: Value| {
            let all = json!({"read-read": read, "read-direct": named(), "read-mmap": named(),
                             "run": said(4, failed), "midway": midway});
            of_file_systems("a device that fails", all, "")
        };
        let midway = |code| said(code, &format!("{numbers}{failed}"));
        assert!(good(named(), midway(0)));
        assert!(!good(named(), midway(101)) && !good(named(), Value::Null));
        assert!(!good(named(), said(0, numbers)));
        assert!(!good(said(4, "iolens: oh\n"), midway(0)));
    }

    #[test]
    fn copies_are_warm_and_cold_and_what_shares_blocks_is_not_compared() {
        let good = |reflink: Value, code: i32| {
            let row = |cache: &str, id: &str, more: &Value| {
                with(json!({"cache": cache, "primitive": id, "status": "ok"}), more)
            };
            let rate = json!({"copied_bytes_per_s": 1e9});
            let cells = ["warm", "cold"]
                .map(|cache| [row(cache, "read_write", &rate), row(cache, "reflink", &reflink)]);
            let shown = json!({ "cells": cells.concat() }).to_string();
            let all = json!({"shown": {"code": 0, "out": shown, "err": ""},
                             "interrupted": said(130, ""), "resumed": said(code, "committed: x\n")});
            of_file_systems("a run of copies", all, "f")
        };
        assert!(good(json!({}), 0) && good(json!({"status": "skipped"}), 0));
        assert!(!good(json!({}), 1) && !good(json!({"status": "failed"}), 0));
        assert!(!good(json!({"copied_bytes_per_s": 1e12}), 0));
    }
}
