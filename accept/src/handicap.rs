//! Issue 8: an arm that has become slower between two runs, by how much is known.
//!
//! Servers that work for a fixed time on each request are the one place where a user can
//! set the cost of an arm to the microsecond, and `--external` makes any program an arm: so
//! iolens itself serves twice beside the model that is the baseline, in both runs with as
//! much work for each request but for one of the two, which has 20 % more in the second. No
//! arm is changed for the sake of the test.
//!
//! A request costs something besides the work, some hundred microseconds: by right the arm
//! becomes slower by what it took in the first run, over that and the work that was added.
//! Of that something a part grows with the work (ticks, interrupts), so the work is long: with
//! one of 4 ms the right ratio was known to 0.001, and on a quiet machine its interval is narrower.

use serde_json::Value;

use super::{Bench, Judged, Outcome, results};

/// Work on each request, µs: so long that what else a request costs is little beside it.
const WORK_US: u32 = 40_000;

/// The same with the handicap.
const HANDICAPPED_US: u32 = WORK_US * 12 / 10;

pub(crate) fn check(bench: &Bench) -> Judged {
    let runs = [run(bench, WORK_US)?, run(bench, HANDICAPPED_US)?];
    let changes = results::changes(bench, "handicap", &runs[0], &runs[1])?;
    let (slow, others): (Vec<&Value>, Vec<&Value>) =
        changes.iter().partition(|change| change["primitive"] == "slow");
    let is_slower = |change: &&Value| change["verdict"] == "SLOWER";
    let is_right = |change: &&Value| {
        let end = |name: &str| change["pointwise"][name].as_f64();
        let known = end("low").zip(end("high")).zip(right(change));
        is_slower(change) && known.is_some_and(|((low, high), right)| (low..=high).contains(&right))
    };
    let passes = !slow.is_empty()
        && slow.iter().all(is_right)
        && others.len() >= slow.len()
        && !others.iter().any(is_slower);
    let mut evidence: Vec<String> = changes.iter().map(words).collect();
    evidence.extend(slow.iter().map(|change| {
        let quantity = change["quantity"].as_str().unwrap_or("none");
        let right = right(change).unwrap_or(f64::NAN);
        format!("{quantity} by right {right:.4}")
    }));
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// By how much an arm with the handicap changes by right, from what it took before.
fn right(change: &Value) -> Option<f64> {
    let before_ns = change["own"]["ns_a"].as_f64()?;
    let added_ns = f64::from(HANDICAPPED_US - WORK_US) * 1000.0;
    Some(before_ns / (before_ns + added_ns))
}

/// A run in which `slow` works so long on each request; its id.
fn run(bench: &Bench, slow_us: u32) -> Result<String, String> {
    let program = |name: &str, work_us: u32| {
        let tool = bench.tool.display();
        format!("{name}={tool} serve epoll_lt --service burn:{work_us} --listen :{{port}}")
    };
    let (same, slow) = (program("same", WORK_US), program("slow", slow_us));
    let service = format!("burn:{WORK_US}");
    let line = "run server --models epoll_lt --connections 1 --keep-alive yes --load closed \
                --network loopback --budget 4m --progress none --json";
    let mut args: Vec<&str> = line.split_whitespace().collect();
    args.extend(["--service", &service, "--external", &same, "--external", &slow]);
    results::run_id(&bench.iolens_json("handicap", &args, 8)?.json)
}

/// `slow, time: SLOWER 0.8337 [0.8330, 0.8344]`.
pub(super) fn words(change: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let interval = &change["pointwise"];
    format!(
        "{}, {}: {} {:.4} [{:.4}, {:.4}]",
        word(&change["arm"]),
        word(&change["quantity"]),
        word(&change["verdict"]),
        number(&change["ratio"]),
        number(&interval["low"]),
        number(&interval["high"])
    )
}
