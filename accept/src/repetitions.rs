//! Issue 8: one plan, five times; whatever is SLOWER in one of them is not.

use serde_json::Value;

use super::{Bench, Judged, Outcome, results};

const RUN: &str = "run net --methods send_staged,sendmsg_iov,send --sizes 1KiB,16KiB,256KiB \
                   --threads 1 --network loopback --budget 2m --progress none --json";

const REPETITIONS: usize = 5;

pub(crate) fn check(bench: &Bench) -> Judged {
    let args: Vec<&str> = RUN.split_whitespace().collect();
    let mut runs = Vec::new();
    for _ in 0..REPETITIONS {
        runs.push(results::run_id(&bench.iolens_json("repetitions", &args, 5)?.json)?);
    }
    let (mut evidence, mut slower, mut judged) = (Vec::new(), 0, 0);
    for (index, a) in runs.iter().enumerate() {
        for b in &runs[index + 1..] {
            let (words, changes) = compare(bench, a, b)?;
            judged += changes.len();
            slower += changes.iter().filter(|verdict| *verdict == "SLOWER").count();
            evidence.push(words);
        }
    }
    evidence.push(format!("{judged} changes judged, {slower} SLOWER"));
    let passes = slower == 0 && judged > 0;
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// What a comparison says, and its verdicts.
fn compare(bench: &Bench, a: &str, b: &str) -> Result<(String, Vec<String>), String> {
    let changes = results::changes(bench, "repetitions", a, b)?;
    let verdict = |change: &Value| Some(change["verdict"].as_str()?.to_owned());
    let verdicts: Vec<String> = changes.iter().filter_map(verdict).collect();
    let of = |word: &str| verdicts.iter().filter(|verdict| *verdict == word).count();
    let words = format!(
        "{a} {b}: {} EQUIVALENT, {} SMALL, {} INCONCLUSIVE, {} FASTER, {} SLOWER",
        of("EQUIVALENT"),
        of("SMALL"),
        of("INCONCLUSIVE"),
        of("FASTER"),
        of("SLOWER")
    );
    eprintln!("   {words}");
    Ok((words, verdicts))
}
