//! `iolens tune` twice on one warm file: the same class of winner, its bound and how
//! much of it, and how far ahead of dd.

use serde_json::Value;

use super::{Bench, Judged, Outcome, file_rivals};

/// Least share of the memory scan bound.
const SHARE_MIN: f64 = 0.85;

/// Least rate over that of dd with 128 KiB.
const OVER_DD_MIN: f64 = 1.5;

/// Three times the default: on a shared machine the share of a bound comes from rounds of
/// which any is 10 % off, and 20 s have 8 to 16 of them.
const BUDGET: &str = "60s";

/// What one run has found.
struct Found {
    class: String,
    words: String,
    share: f64,
    over_dd: f64,
}

pub(crate) fn check(bench: &Bench) -> Judged {
    let path = file_rivals::file(bench, 1 << 30)?;
    let name = path.display().to_string();
    // As a program finds a file that was read from its device before, not written just now.
    let again = ["file", "read", &name, "--block-size", "1MiB", "--evict", "--json"];
    bench.iolens_json("rivals", &again, 3)?;
    let mut runs = Vec::new();
    for seed in ["1", "2"] {
        let args = ["tune", "read", &name, "--seed", seed, "--budget", BUDGET, "--json"];
        let json = bench.iolens_json("rivals", &args, 3)?.json;
        runs.push(found(&json)?);
    }
    let evidence: Vec<&str> = runs.iter().map(|run| run.words.as_str()).collect();
    let evidence = evidence.join("\n");
    let is_same = runs.windows(2).all(|two| two[0].class == two[1].class);
    let reaches = |run: &Found| run.share >= SHARE_MIN && run.over_dd >= OVER_DD_MIN;
    let passes = is_same && runs.iter().all(reaches);
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

fn found(json: &Value) -> Result<Found, String> {
    let verdict = &json["verdict"];
    let class = verdict["way"].as_str().ok_or("the result names no class")?.to_owned();
    let limits = verdict["limits"].as_array().into_iter().flatten();
    let scan = limits.clone().find(|limit| limit["kind"] == "scan");
    let scan = scan.ok_or("the result has no bound of memory")?;
    let share = scan["share"].as_f64().ok_or("the bound has no share")?;
    let part = |end: &str| scan["interval"][end].as_f64().unwrap_or(f64::NAN) * 100.0;
    let dd = verdict["against"].as_array().into_iter().flatten();
    let dd = dd.clone().find(|other| other["work"]["program"] == "dd");
    let ratio = &dd.ok_or("dd is not in the final")?["ratio"];
    // The lower end: as much at least.
    let over_dd = ratio["interval"]["low"].as_f64().ok_or("dd's ratio has no interval")?;
    // Decides what mapping costs: a file in small pieces of the page cache is another one.
    let huge = json["record"]["facts"]["huge_mapped_share"].as_f64();
    let words = format!(
        "{class}: {}; bound {} {:.1} % [{:.1}, {:.1}] of {}; {:.2} × dd bs=128K ({over_dd:.2} at least); {} of \
         the file mapped by huge pages",
        json["command"].as_str().unwrap_or("no command"),
        verdict["limits"][0]["kind"].as_str().unwrap_or("none"),
        share * 100.0,
        part("low"),
        part("high"),
        scan["of"].as_str().unwrap_or("memory"),
        ratio["value"].as_f64().unwrap_or(f64::NAN),
        huge.map_or_else(
            || "unknown how much".to_owned(),
            |share| format!("{:.0} %", share * 100.0)
        ),
    );
    Ok(Found { class, words, share, over_dd })
}
