//! The plausibility gates on tables of others.

use serde_json::Value;

use super::{Bench, Judged, Outcome};

/// A fixture of the crate that audits.
fn fixture(name: &str) -> String {
    crate::root().join("crates/audit/fixtures").join(name).display().to_string()
}

/// Planted rows and texts, and what `audit` says of them.
pub(crate) fn check(bench: &Bench) -> Judged {
    let mut evidence = Vec::new();
    let mut passes = true;
    for name in ["planted.csv", "planted_files.csv"] {
        let (planted, sound) = planted_lines(name)?;
        let (code, flagged) = flagged_lines(bench, name)?;
        let right = flagged == planted && code == 1;
        passes &= right && !planted.is_empty() && !sound.is_empty();
        evidence.push(format!(
            "{name}: {} of {} impossible rows flagged, {} of {} possible ones, exit code {code}",
            planted.iter().filter(|line| flagged.contains(line)).count(),
            planted.len(),
            sound.iter().filter(|line| flagged.contains(line)).count(),
            sound.len()
        ));
    }
    let file = audit(bench, "perf_impossible.txt")?.1;
    let texts: Vec<&str> =
        impossible(&file).filter_map(|finding| finding["text"].as_str()).collect();
    let switches = texts.iter().any(|text| text.contains("hold 11.00, not 305"));
    let clock = texts.iter().any(|text| text.contains("a clock of 0.1310 GHz"));
    passes &= switches && clock && texts.len() == 2;
    evidence.push(format!("perf_impossible.txt: {}", texts.join("; ")));
    let (code, flagged) = flagged_lines(bench, "perf_possible.txt")?;
    passes &= flagged.is_empty() && code == 0;
    evidence.push(format!("perf_possible.txt: {} flagged, exit code {code}", flagged.len()));
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// Exit code and findings of one fixture.
fn audit(bench: &Bench, name: &str) -> Result<(i32, Value), String> {
    let done = bench.iolens("audit", &["audit", "--json", &fixture(name)])?.run()?;
    let json: Value = serde_json::from_str(&done.stdout())
        .map_err(|e| format!("`iolens audit --json {name}` printed no JSON: {e}"))?;
    let code = done.status.code().ok_or_else(|| format!("`iolens audit {name}` was killed"))?;
    Ok((code, json["files"][0].clone()))
}

fn impossible(file: &Value) -> impl Iterator<Item = &Value> {
    let findings = file["findings"].as_array().into_iter().flatten();
    findings.filter(|finding| finding["severity"] == "impossible")
}

/// Exit code, and lines in any finding that is more than a remark.
fn flagged_lines(bench: &Bench, name: &str) -> Result<(i32, Vec<u64>), String> {
    let (code, file) = audit(bench, name)?;
    let findings = file["findings"].as_array().into_iter().flatten();
    let flags = findings.filter(|finding| finding["severity"] != "remark");
    let mut lines: Vec<u64> = flags
        .flat_map(|finding| finding["lines"].as_array().into_iter().flatten())
        .filter_map(Value::as_u64)
        .collect();
    lines.sort_unstable();
    lines.dedup();
    Ok((code, lines))
}

/// Lines of rows that the fixture itself calls impossible, and of those that
/// it calls possible.
fn planted_lines(name: &str) -> Result<(Vec<u64>, Vec<u64>), String> {
    let path = fixture(name);
    let text = std::fs::read_to_string(&path).map_err(|e| format!("cannot read {path}: {e}"))?;
    let lines = |word: &str| {
        let numbered = (1u64..).zip(text.lines());
        numbered.filter(|(_, line)| line.starts_with(word)).map(|(number, _)| number).collect()
    };
    Ok((lines("impossible"), lines("possible")))
}
