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
pub fn check(bench: &Bench) -> Res {
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
