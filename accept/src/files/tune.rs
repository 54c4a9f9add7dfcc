//! `iolens tune` twice on one warm file: the same class of winner, its bound and how
//! much of it, and how far ahead of dd.

use serde_json::Value;

use super::rivals;

use crate::prelude::*;

/// Least share of the memory scan bound.
const SHARE_MIN: f64 = 0.85;

/// Least rate over that of dd with 128 KiB.
const OVER_DD_MIN: f64 = 1.5;

pub fn check(bench: &Bench) -> Res {
    let rivals = rivals::file(bench, rivals::GIB)?;
    let file = rivals::name(rivals::GIB);
    // As a program finds a file that was read from its device before, not written just now.
    rivals.json(format!("file read {file} --block-size 1MiB --evict --json"))?;
    let mut classes = Vec::new();
    for seed in [1, 2] {
        // Three times the default: on a shared machine the share of a bound comes from rounds of
        // which any is 10 % off, and 20 s have 8 to 16 of them.
        let tune = format!("tune read {file} --seed {seed} --budget 60s --json");
        classes.push(judge(bench, &rivals.json(&tune)?)?);
    }
    bench.same("class of the winner", &classes[1], &classes[0]);
    Ok(())
}

/// The class of the winner of one run.
fn judge(check: &Check, json: &Value) -> Res<String> {
    let verdict = &json["verdict"];
    let class = verdict["way"].as_str().ok_or("the result names no class")?;
    check.note(class, json.word("command"));
    check.note("bound", verdict.word("limits/0/kind"));
    let scan = verdict.find("limits", "kind", "scan");
    let [low, high] = ["low", "high"].map(|end| 100.0 * scan.num(&format!("interval/{end}")));
    let of = format!("share of {} [{low:.1}%, {high:.1}%]", scan.word("of"));
    check.within(of, scan.need("share")?, SHARE_MIN..);
    let ratio = &verdict.find("against", "work/program", "dd")["ratio"];
    check.note("over dd bs=128K", ratio.num("value"));
    // The lower end: as much at least.
    check.within("at least", ratio.need("interval/low")?, OVER_DD_MIN..);
    // Decides what mapping costs: a file in small pieces of the page cache is another one.
    check.note("mapped by huge pages", json.at("record/facts/huge_mapped_share"));
    Ok(class.to_owned())
}
