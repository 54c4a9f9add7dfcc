//! System calls per operation: exact, in several languages and as an ordinary user.

use super::{KINDS, built, compared, times};
use crate::prelude::*;
use crate::process::users;

/// An example of the guide: its language, file, how it is built, and how it starts.
const EXAMPLES: [(&str, &str, &str, &str, &str); 3] = [
    ("C", "bench.c", include_str!("../../../docs/ab/bench.c"), "cc -O2 -o c bench.c", "./c"),
    (
        "Rust",
        "bench.rs",
        include_str!("../../../docs/ab/bench.rs"),
        "rustc -O -o r bench.rs",
        "./r",
    ),
    ("Python", "bench.py", include_str!("../../../docs/ab/bench.py"), "true", "python3 bench.py"),
];

/// Has time for a verdict and for counting of programs that take 0.1 s to start, as Python does
/// behind a shim of pyenv's. Where a budget has time for a verdict alone, calls are not counted.
const FLAGS: &str = "ab --loop --budget 20s --progress none --wait --json";

/// Twenty reads of a block against twenty-one.
pub fn calls(bench: &Bench) -> Res {
    for user in users(bench)? {
        let (id, room) = (user.id, &user.bench);
        for (language, file, source, build, start) in EXAMPLES {
            room.write(file, source)?;
            room.at_home(Job::of(build)).env("TMPDIR", "/tmp").success()?;
            let job = user.job(&room.tool, FLAGS).minutes(5);
            let done = job.args([20, 21].map(|reads| format!("{start} {reads}"))).run()?;
            let result = done.json().with_context(|| done.stderr())?;
            counted(bench, &format!("{language}, user {id}"), &result)?;
        }
    }
    for (language, .., start) in EXAMPLES {
        by_tracepoints(bench, language, start)?;
    }
    Ok(())
}

/// By the tracepoints, where tracefs is mounted, here for one command alone.
fn by_tracepoints(bench: &Bench, language: &str, start: &str) -> Res {
    const SCRIPT: &str = "[ -e /sys/kernel/tracing/events ] || mount -t tracefs nodev /sys/kernel/tracing; \
         exec \"$@\"";
    let Some(root) = users(bench)?.into_iter().find(|user| user.id == 0) else {
        bail!("needs root");
    };
    let job = Job::of("unshare -m sh -c").arg(SCRIPT).arg("sh").arg(&root.bench.tool);
    let job = job.words(FLAGS).minutes(5);
    let job = job.env("HOME", root.bench.path("")).directory(&root.bench.path(""));
    let done = job.args([20, 21].map(|reads| format!("{start} {reads}"))).run()?;
    let result = done.json().with_context(|| done.stderr())?;
    counted(bench, &format!("{language}, by tracepoints"), &result)?;
    let by = |arm: usize| result["settings"][0]["arms"][arm]["calls_by"].as_str();
    bench.same("counted by", [by(0), by(1)], [Some("tracepoints"); 2]);
    Ok(())
}

/// Twenty reads of an operation, and twenty-one.
fn counted(bench: &Bench, who: &str, result: &Value) -> Res {
    for (arm, expected) in [(0, 20.0), (1, 21.0)] {
        let all = result["settings"][0]["arms"][arm]["calls"].as_array();
        let all = all.with_context(|| format!("no calls in {result}"))?;
        let own = all.iter().find(|one| one["name"] == "pread64").context("no pread64")?;
        let what = format!("{who}: pread64 per operation");
        bench.same(what, own["per_operation"].as_f64(), Some(expected));
        bench.same("exactly", own["is_exact"].as_bool(), Some(true));
        let more = all.iter().filter(|one| one["per_operation"] != 0.0).count() - 1;
        bench.note("other calls of each operation", more);
    }
    Ok(())
}

// What asking for a slice costs, and how far it takes away from a change.

/// What asking for a slice may take, ns.
const ASKING_NS_MAX: f64 = 20_000.0;

/// Five operations more for each hundred.
pub fn cost(bench: &Bench) -> Res {
    built(bench)?;
    for kind in &KINDS[..2] {
        let mut changes = Vec::new();
        for _ in 0..times() {
            // What equals the threshold is not decided: all of the budget is measured.
            let flags = "--loop --threshold 5% --budget 10s";
            let commands = [format!("./work {kind} 100"), format!("./work {kind} 105")];
            let commands = commands.each_ref().map(String::as_str);
            changes.push(compared(bench, flags, commands)?.0[1].change * 100.0);
        }
        changes.sort_by(f64::total_cmp);
        let words: Vec<String> = changes.iter().map(|change| format!("{change:.2}")).collect();
        bench.note(format!("{kind}, changes in CPU time, %"), words.join(", "));
        let middle = changes[changes.len() / 2];
        bench.within(format!("{kind}: 5 % planted read, median, as %"), middle, 4.7..=5.1);
    }
    let shown = bench.json("show last --json")?;
    for arm in [0, 1] {
        let asking = &shown["settings"][0]["arms"][arm]["asking_ns_per_slice"];
        let asking = asking.as_f64().with_context(|| format!("no time of asking in {shown}"))?;
        bench.within(format!("asking for a slice, ns, program {arm}"), asking, ..=ASKING_NS_MAX);
    }
    read_whole(bench)
}

/// Changes read as they are, whatever of a slice is asking for it, or caches that turns leave cold.
fn read_whole(bench: &Bench) -> Res {
    const PLANTED: f64 = 0.18;
    for kind in ["fixed", "memory", "cache"] {
        let commands = [format!("./work {kind} 100"), format!("./work {kind} 118")];
        let commands = commands.each_ref().map(String::as_str);
        // As much as is planted, which no look decides: the whole budget is measured.
        let [_, cpu] = compared(bench, "--loop --threshold 18% --budget 14s", commands)?.0;
        let shown = bench.json("show last --json")?;
        let arm = &shown["settings"][0]["arms"][0];
        let number = |key: &str| arm[key].as_f64().with_context(|| format!("no {key} in {arm}"));
        let fixed = number("fixed_share_of_slice")?;
        let slice_ns = number("cpu_ns_per_operation")? * number("operations_per_slice")?;
        bench.note(
            format!("{kind}, slices of {slice_ns:.0} ns"),
            format!("{fixed:.3} does not grow with operations, as stated"),
        );
        if kind == "fixed" {
            let said = "fixed: time of a slice that does not grow, us";
            bench.within(said, fixed * slice_ns / 1e3, 130.0..=190.0);
            bench.within("fixed: part of a planted 18 % read", cpu.change / PLANTED, 0.97..=1.03);
        }
        let [low, high] = cpu.interval.context("one trial has no interval")?;
        let words =
            format!("{:+.1} % [{:.1}, {:.1}]", cpu.change * 100.0, low * 100.0, high * 100.0);
        // Twice the half-width: the interval that is shown misses once in twenty.
        let half = (high - low) / 2.0;
        let is_there = (cpu.change - PLANTED).abs() <= 2.0 * half && half < 0.03;
        bench.judge(format!("{kind}: a planted 18 % is read as it is"), is_there, words);
    }
    for _ in 0..times() {
        let commands = ["./work cache 100", "./work cache 103"];
        let (contrasts, _) = compared(bench, "--loop --threshold 2% --budget 20s", commands)?;
        let [time, cpu] = &contrasts;
        let words = format!(
            "{}, {:+.2} %; CPU {:+.2} %",
            time.verdict,
            time.change * 100.0,
            cpu.change * 100.0
        );
        bench.judge("cache: 3 % is not the same at 2 %", time.verdict != "EQUIVALENT", words);
    }
    Ok(())
}
