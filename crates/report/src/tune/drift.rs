//! An earlier result, checked again.

use iolens_model::tune::{Facts, Record};
use iolens_model::units::Bytes;
use iolens_stats::tune::Verdict;
use serde::Serialize;
use serde_json::{Value, json};

use super::{is_rival, name, rate, times};

/// What came of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replay {
    /// What is another than it was then.
    pub drift: Vec<String>,
    /// Whether the earlier winner still wins.
    pub is_so: bool,
    /// In a sentence.
    pub words: String,
}

/// What is another than it was then: kernel, file system, device, processor, file.
#[must_use]
pub fn drift(then: &Facts, now: &Facts) -> Vec<String> {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    let folder = |facts: &Facts| facts.folder.as_ref().map(|(_, file_system)| file_system.clone());
    let share = |facts: &Facts| facts.resident_share.map(|share| format!("{:.0}%", share * 100.0));
    let pairs = [
        ("the file", then.file.clone(), now.file.clone()),
        ("the file's size", Bytes(then.file_bytes).to_string(), Bytes(now.file_bytes).to_string()),
        ("the kernel", then.kernel.clone(), now.kernel.clone()),
        ("the file system", then.file_system.clone(), now.file_system.clone()),
        ("the folder's file system", text(&folder(then)), text(&folder(now))),
        ("the device", then.device.clone(), now.device.clone()),
        ("the processor", then.cpu.clone(), now.cpu.clone()),
        ("the number of processors", then.cpus.to_string(), now.cpus.to_string()),
        ("the hypervisor", text(&then.hypervisor), text(&now.hypervisor)),
        ("the share in the page cache", text(&share(then)), text(&share(now))),
    ];
    let mut all: Vec<String> = pairs
        .into_iter()
        .filter(|(_, then, now)| then != now)
        .map(|(what, then, now)| format!("{what} was {then} and is {now}"))
        .collect();
    if then.file_bytes == now.file_bytes && then.changed_ns != now.changed_ns {
        all.push("the file was written to since".to_owned());
    }
    all
}

/// The check for a person.
#[must_use]
pub fn replay_text(replay: &Replay, record: &Record, then: &Verdict, now: &Verdict) -> String {
    let mut text = format!("{}\n", replay.words);
    let winner = then.winner.words();
    text.push_str(&format!("  then      {winner}: {}\n", rate(then.bytes_per_s.value)));
    let same = match now.winner == then.winner {
        true => "the same".to_owned(),
        false => now.winner.words(),
    };
    text.push_str(&format!("  now       {same}: {}\n", rate(now.bytes_per_s.value)));
    for (when, verdict) in [("then", then), ("now", now)] {
        for other in verdict.against.iter().filter(|other| is_rival(record, &other.work)) {
            let name = name(record, &other.work);
            text.push_str(&format!("  {when:10}{} × {name}\n", times(&other.ratio)));
        }
    }
    if replay.drift.is_empty() {
        text.push_str("  no drift: kernel, file system, device, processor and file are as then\n");
    }
    for drift in &replay.drift {
        text.push_str(&format!("  drift: {drift}\n"));
    }
    text
}

/// The check for programs.
#[must_use]
pub fn replay_json(replay: &Replay, record: &Record, then: &Verdict, now: &Verdict) -> Value {
    json!({
        "schema": crate::json::SCHEMA,
        "kind": "tune_replay",
        "replay": replay,
        "then": then,
        "now": now,
        "record": record,
    })
}
