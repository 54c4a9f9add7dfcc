//! CPU time that threads of the kernel's spend for an arm: as the conformance test of the engine
//! compares it with that of the process, and as the tool shows it beside what `file write` reads
//! of its own process.

use crate::prelude::*;

/// Arms whose work threads of the kernel's do, in part at least, on every kernel that has them.
const RINGS: [&str; 4] =
    ["file uring_sqpoll", "write uring_fixed", "copy uring_copy", "net uring_send"];

/// How much dearer the ring is in the study, of how much dearer it is in a process of its own: a
/// study that leaves its threads out shows it as the cheaper one.
const SHARE_MIN: f64 = 0.5;

pub fn check(bench: &Bench) -> Res {
    let done = Job::cargo("test --release --package iolens-engine --test cpu_time").run()?;
    let compared = done.out_lines().filter(|line| line.starts_with("cpu_time "));
    bench.note("arms compared with their processes", compared.count());
    for ring in RINGS {
        match done.line(&format!("{ring}:")) {
            line if line.starts_with("cpu_time ") => bench.note(ring, line),
            _ => bench.missing(format!("{ring} was not measured\n{}", done.stderr())),
        }
    }
    bench.part("conformance", done.success().map(|_| "it passes"));
    let run = "run write --engines write,uring_fixed --baseline write --block-sizes 256KiB \
               --threads 1 --target new --quick --passes 5 --json";
    let json = bench.json(run)?;
    let shown = |id: &str| json.own_row(id)?.need("cpu_ns_per_byte");
    let dearer = shown("uring_fixed")? / shown("write")?;
    let whole = whole(bench, "uring_fixed")? / whole(bench, "write")?;
    bench.note("ns/B of write in the study", shown("write")?);
    let words = format!("{dearer:.2}, {whole:.2}");
    bench.note("uring_fixed over write in the study, in processes", words);
    bench.within("one over the other", dearer / whole, SHARE_MIN..);
    Ok(())
}

/// CPU time of whole processes that write with an engine, per byte, with the making of the blocks
/// in it: of three the one which was disturbed least. Its parts are told apart by the clock's ticks
/// alone.
fn whole(bench: &Bench, engine: &str) -> Res<f64> {
    let line = format!(
        "file write whole-{engine} --engine {engine} --block-size 256KiB --count 2048 --overwrite \
         --json"
    );
    let mut least = f64::INFINITY;
    for _ in 0..3 {
        let json = bench.json(&line)?;
        let cpu_ns = json.need("cpu_user_ns")? + json.need("cpu_system_ns")?;
        least = least.min(cpu_ns / json.need("bytes")?);
    }
    Ok(least)
}
