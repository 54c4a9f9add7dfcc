//! Issue 25: two copies of one build, measured in turn, do not differ.

use std::fs;

use super::{Bench, Judged, Outcome, handicap, results};

/// Comparisons, each of a run of its own.
const COMPARISONS: u32 = 20;

/// What a build is compared with: a copy of itself.
const COPY: &str = "copy-of-iolens";

pub(crate) fn check(bench: &Bench) -> Judged {
    let copy = bench.home("fresh")?.join(COPY);
    fs::copy(&bench.tool, &copy).map_err(|e| format!("cannot copy the tool: {e}"))?;
    let copy = copy.display().to_string();
    let run = ["run", "net", "--quick", "--sizes", "4KiB", "--network", "loopback"];
    let arms = ["--methods", "send,write", "--passes", "12", "--budget", "60s", "--json"];
    let plan = [&run[..], &arms[..]].concat();
    let first = bench.iolens_json("fresh", &plan, 5)?;
    let id = results::run_id(&first.json)?;
    let (mut evidence, mut apart, mut changes) = (Vec::new(), 0, 0);
    for nth in 1..=COMPARISONS {
        let args = ["compare", &id, "--rerun", &copy, "--progress", "none", "--json"];
        // Exit code 1 says that something is slower, which is what is looked for.
        let done = bench.iolens("fresh", &args)?.limit_minutes(5).run()?;
        let json: serde_json::Value = serde_json::from_str(&done.stdout())
            .map_err(|e| format!("`compare --rerun` printed no JSON: {e}\n{}", done.stderr()))?;
        for change in json["changes"].as_array().ok_or("no changes")? {
            changes += 1;
            let differs =
                ["FASTER", "SLOWER", "SMALL"].iter().any(|word| change["verdict"] == *word);
            apart += u32::from(differs);
            if differs {
                evidence.push(format!("comparison {nth}: {}", handicap::words(change)));
            }
        }
    }
    evidence.push(format!("{apart} of {changes} changes in {COMPARISONS} comparisons excluded 1"));
    let evidence = evidence.join("\n");
    Ok(if apart == 0 && changes > 0 { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}
