//! Programs that speak the loop protocol, as arms: what each does is known.

use crate::prelude::*;

const PROGRAM: &str = include_str!("looped.c");

/// How far a program may be from the method that does the same, as a factor of time.
const SAME: f64 = 1.03;

/// How far what was planted may be from itself, as a factor.
const PLANTED: f64 = 1.05;

/// A run, the method that the program does the same as, and the program that does it once and
/// twice in an operation.
const WAYS: [(&str, &str, &str); 3] = [
    ("syscall --calls getppid --bursts full", "getppid", "call TIMES"),
    (
        "file --engines pread --baseline pread --cache warm --consumer none \
         --block-sizes 4KiB,64KiB --file-size 64MiB",
        "pread",
        "read TIMES {file} {block}",
    ),
    (
        "net --loop --network loopback --methods send --baseline send --sizes 4KiB,64KiB",
        "send",
        "send TIMES {host} {port} {size}",
    ),
];

/// How long a planted operation lasts, ns.
const SPIN_NS: u64 = 20_000;

fn measured(bench: &Bench, run: &str, programs: &[(&str, String)]) -> Res<Value> {
    // Half of an interval is to be less than what is asked.
    let run = format!("run {run} --threads 1 --threshold 1% --budget 60s");
    let mut job = bench.at_home(bench.iolens(&run));
    for (name, command) in programs {
        job = job.args(["--external", &format!("{name}=./looped {command}")]);
    }
    job.minutes(10).run()?;
    bench.json("show last --json")
}

/// The rows of an arm, one for each size.
fn rows<'a>(result: &'a Value, id: &str) -> Res<Vec<&'a Value>> {
    let rows = result["cells"].as_array().context("no cells")?;
    let own: Vec<&Value> = rows.iter().filter(|row| row["arm"] == id).collect();
    ensure!(!own.is_empty(), "no row of {id}");
    Ok(own)
}

/// By how much an arm is faster than the baseline.
fn ratio(row: &Value) -> Res<f64> {
    row["ratio"].as_f64().with_context(|| format!("{} failed: {}", row["arm"], row["reason"]))
}

/// Programs cost what our methods cost that do the same; twice the work and a stated time are read
/// as what they are.
pub fn check(bench: &Bench) -> Res {
    bench.write("looped.c", PROGRAM)?;
    bench.at_home(Job::of("cc -O2 -pthread -o looped looped.c")).success()?;
    for (run, method, command) in WAYS {
        let times = |times: u32| command.replace("TIMES", &times.to_string());
        let mut programs = vec![("once", times(1))];
        // More bytes would not be what a message was told to have.
        if method != "send" {
            programs.extend([("ten", times(10)), ("twenty", times(20))]);
        }
        let result = measured(bench, run, &programs)?;
        let ratios = |name| rows(&result, name)?.into_iter().map(ratio).collect::<Res<Vec<_>>>();
        for (nth, once) in ratios("once")?.into_iter().enumerate() {
            bench.within(format!("once over {method}, size {nth}"), once, 1.0 / SAME..=SAME);
        }
        if method == "send" {
            continue;
        }
        for (nth, (ten, twenty)) in ratios("ten")?.into_iter().zip(ratios("twenty")?).enumerate() {
            let what = format!("20 of {method} take so many times as long as 10, size {nth}");
            bench.within(what, ten / twenty, 2.0 / PLANTED..=2.0 * PLANTED);
        }
    }
    let spin = ("spin", format!("spin {SPIN_NS}"));
    let result = measured(bench, "syscall --calls getppid --bursts full", &[spin])?;
    let took_ns = rows(&result, "spin")?[0]["ns_per_call"].as_f64().context("no time of spin")?;
    bench.within("an operation of 20 µs", took_ns / SPIN_NS as f64, 0.99..=PLANTED);
    Ok(())
}
