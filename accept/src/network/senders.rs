//! The socket programs of a course, as arms: what each does is known.

use crate::prelude::*;

const SENDER: &str = include_str!("sender.c");

/// Each way with the method that does the same.
const WAYS: [(&str, &str); 3] =
    [("two", "send_staged"), ("one", "sendmsg_iov"), ("zero", "sendmsg_zerocopy")];

/// How far a program may be from the method that does the same, as a factor of time.
const TOLERANCE: f64 = 1.10;

fn external(way: &str) -> String {
    format!("{way}=./sender {way} {{host}} {{port}} {{size}} {{threads}} {{messages}}")
}

/// The result of a run with these programs, and what it printed.
fn measured(bench: &Bench, run: &str, ways: &[&str]) -> Res<(Value, String)> {
    let mut job = bench.at_home(bench.iolens(format!("run net --network loopback {run}")));
    for way in ways {
        let (name, command) = (way.replace('+', "-"), external(way));
        let command = command.split_once('=').map_or("", |(_, command)| command);
        job = job.args(["--external", &format!("{name}={command}")]);
    }
    let done = job.minutes(10).run()?;
    let text = done.stdout();
    Ok((bench.json("show last --json")?, text))
}

/// The row of an arm.
fn row<'a>(result: &'a Value, id: &str) -> Res<&'a Value> {
    let rows = result["cells"].as_array().context("no cells")?;
    let own = |row: &&Value| row["primitive"] == id && row["role"] != "self_check";
    rows.iter().find(own).with_context(|| format!("no row of {id}"))
}

/// A program is as fast as the method that does the same, and what others do wrong is named.
pub fn senders(bench: &Bench) -> Res {
    bench.write("sender.c", SENDER)?;
    bench.at_home(Job::of("cc -O2 -pthread -o sender sender.c")).success()?;
    let methods = WAYS.map(|(_, method)| method).join(",");
    let run = format!("--sizes 16KiB --threads 1 --methods {methods} --budget 3m");
    let (result, _) = measured(bench, &run, &WAYS.map(|(way, _)| way))?;
    for (way, method) in WAYS {
        let rate = |id: &str| -> Res<f64> {
            let row = row(&result, id)?;
            let ratio = row["ratio"].as_f64();
            if row["role"] == "baseline" {
                return Ok(1.0);
            }
            ratio.with_context(|| format!("{id} has no ratio: {}", row["reason"]))
        };
        let factor = rate(way)? / rate(method)?;
        bench.within(format!("{way} over {method}"), factor, 1.0 / TOLERANCE..=TOLERANCE);
    }
    for (way, threads, expect) in [
        ("two+size", 1, "16392.0 each"),
        ("two+early", 1, "ended after"),
        ("two+shared", 2, "makes 1 connection for 2 threads"),
        ("two+nagle", 1, "without TCP_NODELAY"),
    ] {
        let run = format!("--sizes 16KiB --threads {threads} --methods send_staged --quick");
        let (_, text) = measured(bench, &run, &[way])?;
        let told = text.lines().find(|line| line.contains(expect)).unwrap_or(&text);
        bench.judge(way, text.contains(expect), told.trim());
    }
    Ok(())
}

// Every sending primitive against the bare loop of the same calls.

/// Of a run with the primitive as baseline. On `sink` there is one process and
/// nothing else to wait for, so that the loop is the largest share it ever is;
/// over loopback there is a stream. A message of several fields that is not
/// copied lies on more pages than one datagram refers to; one that may be a
/// segment or a frame is no larger than the MTU leaves room for. On `sink` alone
/// each arm that sends frames has a queue of the device for itself.
const RUN: &str = "run net --threads 1 --threshold 3% --precision 1.5% --budget 30s --json";
const SINK: &str = "--network sink --sizes 64,4KiB,64000";
const SINGLE: &str = "--network sink --sizes 64,4KiB,64000 --fields 1";
const SEGMENTS: &str = "--network sink --sizes 64,512,1400";
const LOOPBACK: &str = "--network loopback --sizes 64,4KiB,64KiB";
const CELLS: usize = 3;

#[derive(Debug, PartialEq)]
enum Verdict {
    Equivalent,
    /// FASTER or SLOWER in a cell, or no data.
    Different,
    Undecided,
}

/// All primitives that send, each in every topology where it can be. What is undecided is
/// measured once more.
pub fn bare_loops(bench: &Bench) -> Res {
    let listed = bench.json("list methods --all --json")?;
    for entry in listed.list("methods").iter().filter(|entry| sends(entry)) {
        let name = entry.word("name");
        if let Err(why) = twin(&listed, entry) {
            bench.judge(name, false, why);
            continue;
        }
        for options in settings(entry) {
            let (mut verdict, mut words) = measure(bench, name, options)?;
            if verdict == Verdict::Undecided {
                bench.note(format!("{name}, undecided"), words);
                (verdict, words) = measure(bench, name, options)?;
            }
            let name = format!("{name}, {}", options.split(' ').nth(1).unwrap_or_default());
            bench.judge(name, verdict == Verdict::Equivalent, words);
        }
    }
    Ok(())
}

fn sends(entry: &Value) -> bool {
    entry["control"] == false && entry["hidden"] == false
}

/// Whether a primitive has a bare loop that works here.
fn twin(listed: &Value, entry: &Value) -> Res {
    let bare = format!("bare_{}", entry.word("name"));
    let is_it = |other: &Value| other["name"] == bare.as_str() && other["available"] == true;
    match (listed.list("methods").iter().any(is_it), entry["unavailable_reason"].as_str()) {
        (true, _) => Ok(()),
        (false, Some(why)) => bail!("not here: {why}"),
        (false, None) => bail!("it has no bare loop"),
    }
}

fn settings(entry: &Value) -> Vec<&'static str> {
    let late = || entry.list("data_path/hops").iter().any(|hop| hop["movement"] == "late_copy");
    match (entry["transport"] == "udp", entry["datagrams"] == true) {
        // Over loopback a datagram may be lost.
        (true, _) => vec![SEGMENTS],
        (false, true) => vec![if late() { SINGLE } else { SINK }, LOOPBACK],
        (false, false) => vec![LOOPBACK],
    }
}

fn measure(bench: &Bench, primitive: &str, options: &str) -> Res<(Verdict, String)> {
    let arms = format!("--methods {primitive},bare_{primitive} --baseline {primitive}");
    let json = bench.json(format!("{RUN} {options} {arms}"))?;
    let rows = |then| query([&json, &Value::Null], &format!("rows(\"bare_{primitive}\")[]{then}"));
    Ok((verdict(&rows("")?), format!("{:?}", rows(" | words")?)))
}

fn verdict(cells: &[Value]) -> Verdict {
    let all_of = |words: &[&str]| {
        cells.len() == CELLS && cells.iter().all(|row| words.contains(&row.word("verdict")))
    };
    if all_of(&["EQUIVALENT"]) {
        Verdict::Equivalent
    } else if all_of(&["EQUIVALENT", "SMALL", "INCONCLUSIVE"]) {
        Verdict::Undecided
    } else {
        Verdict::Different
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_undecided_is_judged_again() {
        let of = |words: [&str; 3]| {
            let rows = words.map(|word| json!({ "verdict": word }));
            verdict(&rows)
        };
        assert_eq!(of(["EQUIVALENT"; 3]), Verdict::Equivalent);
        assert_eq!(of(["EQUIVALENT", "INCONCLUSIVE", "SMALL"]), Verdict::Undecided);
        for word in ["FASTER", "SLOWER", "INVALID"] {
            assert_eq!(of(["EQUIVALENT", "INCONCLUSIVE", word]), Verdict::Different);
        }
        assert_eq!(verdict(&[]), Verdict::Different, "no data is no equivalence");
    }

    #[test]
    fn a_primitive_without_its_bare_loop_is_named() {
        let entry = |name: &str, hidden: bool, why: Option<&str>| {
            json!({"name": name, "control": false, "hidden": hidden, "datagrams": true,
                   "available": why.is_none(), "unavailable_reason": why,
                   "data_path": {"hops": [{"movement": "late_copy"}]}})
        };
        let (send, splice) = (entry("send", false, None), entry("splice", false, Some("no pipe")));
        let (write, bare) = (entry("write", false, None), entry("bare_send", true, None));
        assert!(sends(&send) && !sends(&bare));
        assert_eq!(settings(&send), [SINGLE, LOOPBACK]);
        let listed = json!({ "methods": [send, bare, write, splice] });
        let said = |at| {
            let why = twin(&listed, &listed["methods"][at]).err();
            why.map(|why| why.to_string()).unwrap_or_default()
        };
        assert_eq!(said(0), "");
        assert_eq!(said(2), "it has no bare loop");
        assert_eq!(said(3), "not here: no pipe");
    }
}
