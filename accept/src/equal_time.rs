//! Issue 25: on a machine whose processors others want too, no arm that does what the baseline
//! does is judged different from it.

use serde_json::Value;

use super::process::{Job, Running};
use super::results::{self, ArmResult};
use super::{Bench, Judged, Outcome};

/// The baseline, a bare loop of the same call, and the hidden copy; 20 cells.
/// Not a quick run: those have no verdicts.
const RUN: &str = "run net --methods send,bare_send --baseline send \
                   --sizes 64,512,4KiB,16KiB,64KiB --threads 1,2,3,4 --network loopback \
                   --passes 12 --budget 5m --json";
const CELLS: usize = 20;

/// As many as the processors of the machine that the promise is about.
const BUSY: usize = 2;

/// Longer than the run.
const LOOP_MINUTES: u64 = 20;

/// A loop that wants a processor for itself, and says when it has begun.
const LOOP: &str = "echo on; while :; do :; done";

pub(crate) fn check(bench: &Bench) -> Judged {
    let loops =
        (0..BUSY).map(|_| Job::new("sh").args(&["-c", LOOP]).limit_minutes(LOOP_MINUTES).start());
    let loops = loops.collect::<Result<Vec<Running>, String>>()?;
    let answer = bench.iolens_json("equal-time", &RUN.split_whitespace().collect::<Vec<_>>(), 6);
    // All of them end, whatever becomes of one.
    let ended: Vec<_> = loops.into_iter().map(Running::kill).collect();
    ended.into_iter().collect::<Result<Vec<_>, String>>()?;
    let json = answer?.json;
    let (passes, evidence) = judge(&results::arms(&json), &notes(&json));
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// What is said of slices that differ.
fn notes(json: &Value) -> Vec<String> {
    let text = json.to_string();
    let parts = text.split('"').filter(|part| part.contains("slices are not equal in time"));
    parts.map(str::to_owned).collect()
}

fn judge(arms: &[ArmResult], notes: &[String]) -> (bool, String) {
    let of_role = |role: &'static str| arms.iter().filter(move |arm| arm.role == role);
    // The copy is never called a winner, but the cell invalid.
    let is_different = |arm: &&ArmResult| {
        matches!(arm.verdict.as_str(), "FASTER" | "SLOWER")
            || (arm.role == "self_check" && arm.verdict == "INVALID")
    };
    let both = || of_role("compared").chain(of_role("self_check"));
    let different: Vec<String> = both()
        .filter(is_different)
        .map(|arm| format!("{}, {}: {}", arm.cell, arm.primitive, arm.verdict))
        .collect();
    let of_word = |word: &str| both().filter(|arm| arm.verdict == word).count();
    let counts = ["EQUIVALENT", "SMALL", "INCONCLUSIVE", "UNRANKED"]
        .map(|word| format!("{} {word}", of_word(word)));
    let [copies, twins] = ["self_check", "compared"].map(|role| of_role(role).count());
    let mut evidence = vec![format!(
        "{copies} A/A arms and {twins} bare loops of the baseline's call: {}, {} judged different; \
         {} remarks on slices of unequal length",
        counts.join(", "),
        different.len(),
        notes.len()
    )];
    evidence.extend_from_slice(&different);
    let is_judged = both().all(|arm| !arm.verdict.is_empty());
    let passes = is_judged && (copies, twins) == (CELLS, CELLS) && different.is_empty();
    (passes, evidence.join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arms(role: &str, verdict: &str) -> Vec<ArmResult> {
        let row = json!({"primitive": "send", "role": role, "verdict": verdict});
        results::arms(&json!({ "cells": vec![row; CELLS] }))
    }

    #[test]
    fn a_copy_that_is_judged_different_fails_the_line() {
        let with = |copy: &str, twin: &str| {
            judge(&[arms("self_check", copy), arms("compared", twin)].concat(), &[]).0
        };
        assert!(with("EQUIVALENT", "INCONCLUSIVE"));
        assert!(with("SMALL", "UNRANKED"));
        assert!(!with("INVALID", "EQUIVALENT"));
        assert!(!with("", "EQUIVALENT"), "no verdict");
        assert!(!with("EQUIVALENT", "SLOWER"));
        assert!(!judge(&arms("self_check", "EQUIVALENT"), &[]).0, "half of the arms");
    }
}
