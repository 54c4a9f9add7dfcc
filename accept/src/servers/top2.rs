//! `top2` beside an independent reading of /proc, with hostile names running.

use serde_json::Value;

use crate::prelude::*;
use crate::process::own_user;
use crate::servers::serving::models;

/// The other reading, and the processes that have the names.
const SCRIPT: &str = include_str!("top2.py");

pub fn check(bench: &Bench) -> Res {
    let models = models(bench)?;
    // Who is not root gets the same with a user namespace, where the machine allows it.
    let user = if own_user()? == 0 { "" } else { "--user --map-root-user" };
    let apart = format!("unshare {user} --pid --fork --kill-child --mount-proc python3 -c");
    for (place, command) in [("in a pid namespace", apart.as_str()), ("anywhere", "python3 -c")] {
        let job = Job::of(command).arg(SCRIPT).arg(&bench.tool).args(&models);
        let json = bench.at_home(job).minutes(4).json()?;
        bench.note(place, format!("first {} and {}", json.at("first/0"), json.at("first/1")));
        if place != "anywhere" {
            bench.same("hostile ones first", &json["hostile_first"], true);
        }
        judge(bench, &json, &models);
    }
    Ok(())
}

/// Whether every reply was the other reading's too, in all models.
fn judge(check: &Check, json: &Value, models: &[String]) {
    for phase in ["resting", "burning"] {
        let of = |model: &String| &json[phase][model];
        let sum = |key: &str| models.iter().map(|model| of(model).int(key)).sum::<u64>();
        check.same(format!("{phase}: the same two"), sum("same"), 20 * models.len() as u64);
        check.note("with the same ticks before and after", sum("exact"));
        for model in models {
            of(model).list("wrong").iter().take(1).for_each(|why| check.judge(model, false, why));
        }
    }
    for model in models {
        check.same(format!("{model} ended with"), &json["ended"][model], 0);
    }
}
