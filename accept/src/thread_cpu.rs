//! CPU time that threads of the kernel's spend for an arm: as the conformance test of the engine
//! compares it with that of the process, and as the tool shows it beside what `file write` reads
//! of its own process.

use serde_json::Value;

use super::issue_5::{rows, words};
use super::process::Job;
use super::{Bench, Judged, Outcome};

const TEST: [&str; 6] = ["test", "--release", "--package", "iolens-engine", "--test", "cpu_time"];

/// Arms whose work threads of the kernel's do, in part at least, on every kernel that has them.
const RINGS: [&str; 4] =
    ["file uring_sqpoll", "write uring_fixed", "copy uring_copy", "net uring_send"];

const RUN: &str = "run write --engines write,uring_fixed --baseline write --block-sizes 256KiB \
                   --threads 1 --target new --quick --passes 5 --json";

/// How much dearer the ring is in the study, of how much dearer it is in a process of its own: a
/// study that leaves its threads out shows it as the cheaper one.
const SHARE_MIN: f64 = 0.5;

/// Processes of each engine; the one that spent least was disturbed least.
const PROCESSES: u32 = 3;

pub(super) fn check(bench: &Bench) -> Judged {
    let done = Job::cargo(&TEST).limit_minutes(30).run()?;
    let text = done.stdout();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("cpu_time ")).collect();
    let of = |ring: &&str| lines.iter().copied().find(|line| line.contains(&format!("{ring}:")));
    let mut evidence: Vec<String> = RINGS.iter().filter_map(of).map(str::to_owned).collect();
    if evidence.len() < RINGS.len() {
        evidence.push(done.stderr());
        return Ok(Outcome::Skip(format!("not every ring was measured\n{}", evidence.join("\n"))));
    }
    evidence.push(format!("{} arms compared with their processes", lines.len()));
    let done = done.success();
    let conforms = done.is_ok();
    evidence.extend(done.err());
    let (shown, whole) = (shown(bench)?, [whole(bench, "write")?, whole(bench, "uring_fixed")?]);
    let ratio = |[write, ring]: [f64; 2]| ring / write;
    evidence.push(format!(
        "run write: {:.3} ns/B with write, {:.3} with uring_fixed, {:.2} times; CPU time of whole \
         processes of `file write`: {:.3} and {:.3}, {:.2} times",
        shown[0],
        shown[1],
        ratio(shown),
        whole[0],
        whole[1],
        ratio(whole)
    ));
    let evidence = evidence.join("\n");
    let passes = conforms && ratio(shown) >= SHARE_MIN * ratio(whole);
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// CPU time per byte of both arms in the study.
fn shown(bench: &Bench) -> Result<[f64; 2], String> {
    let json = bench.iolens_json("thread-cpu", &words(RUN), 5)?.json;
    let of = |id: &str| {
        let is_it = |row: &&Value| row["primitive"] == id && row["role"] != "self_check";
        let row = rows(&json).find(is_it).and_then(|row| row["cpu_ns_per_byte"].as_f64());
        row.ok_or_else(|| format!("`run write` shows no CPU time of {id}"))
    };
    Ok([of("write")?, of("uring_fixed")?])
}

/// CPU time of whole processes that write with an engine, per byte, with the making of the blocks
/// in it: of one which was disturbed least. Its parts are told apart by the clock's ticks alone.
fn whole(bench: &Bench, engine: &str) -> Result<f64, String> {
    let line = format!(
        "file write whole-{engine} --engine {engine} --block-size 256KiB --count 2048 --overwrite --json"
    );
    let args: Vec<&str> = line.split_whitespace().collect();
    let mut least = f64::INFINITY;
    for _ in 0..PROCESSES {
        let json = bench.iolens_json("thread-cpu", &args, 2)?.json;
        let number = |key: &str| {
            json[key].as_f64().ok_or_else(|| format!("`iolens {line}` says nothing of {key}"))
        };
        let cpu_ns = number("cpu_user_ns")? + number("cpu_system_ns")?;
        least = least.min(cpu_ns / number("bytes")?);
    }
    Ok(least)
}
