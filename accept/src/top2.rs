//! `top2` beside an independent reading of /proc, with hostile names running.

use serde_json::Value;

use super::process::{Job, need};
use super::{Bench, Judged, Outcome, serving};

/// The other reading, and the processes that have the names.
const SCRIPT: &str = include_str!("top2.py");

pub(crate) fn check(bench: &Bench) -> Judged {
    for (program, package) in [("python3", "python3"), ("unshare", "util-linux")] {
        if let Err(missing) = need(program, package) {
            return Ok(Outcome::Skip(missing));
        }
    }
    let models = serving::models(bench)?;
    let tool = bench.tool.display().to_string();
    let words: Vec<&str> =
        ["-c", SCRIPT, &tool].into_iter().chain(models.iter().map(String::as_str)).collect();
    // Who is not root gets the same with a user namespace, where the machine allows it.
    let user: &[&str] =
        if super::process::own_user()? == 0 { &[] } else { &["--user", "--map-root-user"] };
    let apart = ["--pid", "--fork", "--kill-child", "--mount-proc", "python3"];
    let (mut evidence, mut passes) = (Vec::new(), true);
    for (where_, job) in [
        ("in a pid namespace", Job::new("unshare").args(user).args(&apart)),
        ("among all processes", Job::new("python3")),
    ] {
        let done = bench.at_home("top2", job.args(&words))?.limit_minutes(4).run()?.success()?;
        let json: Value = serde_json::from_str(&done.stdout())
            .map_err(|e| format!("the script printed no JSON: {e}: {}", done.stderr()))?;
        let (is_good, words) = judged(&json, where_, &models);
        eprintln!("   {words}");
        passes &= is_good;
        evidence.push(words);
    }
    let evidence = evidence.join("\n");
    Ok(if passes { Outcome::Pass(evidence) } else { Outcome::Fail(evidence) })
}

/// Whether every reply was the other reading's too, in all models.
fn judged(json: &Value, where_: &str, models: &[String]) -> (bool, String) {
    let apart = where_.contains("namespace");
    let mut passes = !apart || json["hostile_first"] == true;
    let mut words = format!("{where_}, first {} and {}", json["first"][0], json["first"][1]);
    for phase in ["resting", "burning"] {
        let sum = |key: &str| -> u64 {
            models.iter().filter_map(|model| json[phase][model][key].as_u64()).sum()
        };
        let (same, wrong) = (sum("same"), first_wrong(&json[phase], models));
        passes &= same == 20 * models.len() as u64 && wrong.is_none();
        words += &format!(
            "; {phase}: {same} of {} replies the same two, {} of them with the same ticks before \
             and after",
            20 * models.len(),
            sum("exact")
        );
        words += &wrong.map(|wrong| format!("; WRONG: {wrong}")).unwrap_or_default();
    }
    passes &= models.iter().all(|model| json["ended"][model] == 0);
    (passes, format!("{words}; {} models", models.len()))
}

fn first_wrong(phase: &Value, models: &[String]) -> Option<String> {
    models.iter().find_map(|model| {
        let wrong = phase[model]["wrong"].as_array()?.first()?;
        Some(format!("{model}: {wrong}"))
    })
}
