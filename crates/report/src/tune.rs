//! What `tune` found: a screen for people, an object for programs, and what has changed
//! since an earlier result.

use iolens_document::{Style, terminal};
use iolens_model::command_line::{self, quoted};
use iolens_model::file::Consumer;
use iolens_model::tune::{CacheWish, Configuration, Facts, Pruned, Record, Task, Way, Work};
use iolens_model::units::{Bytes, three_digits};
use iolens_stats::physics::Standing;
use iolens_stats::tune::{Ratio, Share, Verdict};
use serde::Serialize;
use serde_json::{Value, json};

use crate::number;
use crate::number::rate;

mod cure;
mod screen;
#[cfg(test)]
mod tests;

/// `1.96 (1.90–2.03)`.
fn times(ratio: &Ratio) -> String {
    match ratio.interval {
        Some(interval) => {
            let words = number::interval(interval, ratio.n, number::range);
            format!("{} ({words})", number::ratio(ratio.value))
        }
        None => number::ratio(ratio.value),
    }
}

/// What was compared with, as people would type it, without paths.
fn name(record: &Record, work: &Work) -> String {
    match work {
        Work::Engine(one) if *one == baseline(record.wishes.task) => {
            format!("plain {}, {}", one.engine, Bytes(one.block_bytes))
        }
        Work::Program(program) => {
            let found = record.programs.iter().find(|(name, _)| name == program);
            let is_path = |argument: &&String| argument.contains('/');
            let short = |arguments: &[String]| -> Vec<String> {
                arguments.iter().filter(|argument| !is_path(argument)).cloned().collect()
            };
            found.map_or_else(
                || program.clone(),
                |(_, arguments)| command_line::join(short(arguments)),
            )
        }
        other => other.words(),
    }
}

/// The result for a person, with all that was noticed where `verbose`.
pub fn text(record: &Record, verdict: &Verdict, style: &Style, verbose: bool) -> String {
    terminal::draw(&screen::screen(record, verdict, verbose), style)
}

/// What people would use instead: plain calls and programs.
fn is_rival(record: &Record, work: &Work) -> bool {
    match work {
        Work::Program(_) => true,
        Work::Engine(one) => *one == baseline(record.wishes.task),
        Work::Limit { .. } => false,
    }
}

/// `96.1% of one thread at 22.0 GiB/s`, or that the limit is none.
fn limit_share(share: &Share, is_bound: bool) -> String {
    let end = if is_bound { ": nothing is left to win" } else { "" };
    match share.standing() {
        Standing::Below(value) => format!("{}% of {}{end}", three_digits(value * 100.0), share.of),
        Standing::At => format!("as much as {}{end}", share.of),
        Standing::Above => format!("above {}, which is therefore no bound", share.of),
    }
}

/// `warm`, or what the cache was like.
fn state(record: &Record) -> &'static str {
    match (record.wishes.cache, record.facts.resident_share) {
        (CacheWish::Warm, _) => "warm",
        (CacheWish::Cold, _) if record.facts.hypervisor.is_some() => "guest-cold",
        (CacheWish::Cold, _) => "cold",
        (CacheWish::AsIs, Some(share)) if share > 0.999 => "fully cached",
        (CacheWish::AsIs, Some(_)) => "cached by the first read",
        (CacheWish::AsIs, None) => "cache state unknown",
    }
}

/// The result for programs: the record with every trial, and what follows from it.
pub fn json(record: &Record, verdict: &Verdict) -> Value {
    json!({
        "schema": crate::json::SCHEMA,
        "kind": "tune",
        "verdict": verdict,
        "command": command(record, &verdict.winner),
        "state": state(record),
        "code": in_code(record, &verdict.winner),
        "record": record,
    })
}

/// The record in a result that was printed as JSON.
///
/// Errors: why it is none.
pub fn record_of(text: &str) -> Result<Record, String> {
    let whole: Value = serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?;
    if whole["kind"] != "tune" {
        return Err("it is not a result of `iolens tune`".to_owned());
    }
    let record: Record = serde_json::from_value(whole["record"].clone())
        .map_err(|e| format!("its record cannot be read: {e}"))?;
    match record.schema {
        iolens_model::tune::SCHEMA => Ok(record),
        other => Err(format!(
            "its layout is version {other}, and this build reads version {}",
            iolens_model::tune::SCHEMA
        )),
    }
}

/// What is known before anything is timed, a line each, for who waits.
pub fn facts_text(facts: &Facts, pruned: &[Pruned], candidates: usize) -> String {
    let share = facts.resident_share.map_or_else(
        || "an unknown share".to_owned(),
        |share| format!("{}%", three_digits(share * 100.0)),
    );
    format!(
        "{}: {} on {}, {share} of it in the page cache; {candidates} engines, {} left out",
        facts.file,
        Bytes(facts.file_bytes),
        facts.file_system,
        pruned.len()
    )
}

/// What a program does that does nothing special.
pub fn baseline(task: Task) -> Configuration {
    let engine = match task {
        Task::Read => "read",
        Task::Copy => "read_write",
    };
    Configuration { engine: engine.to_owned(), block_bytes: 128 << 10, threads: 1, depth: 1 }
}

/// A size as the command line takes it: `128KiB`.
fn size_argument(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(Bytes::MIB) => format!("{}MiB", bytes / Bytes::MIB),
        _ if bytes.is_multiple_of(Bytes::KIB) => format!("{}KiB", bytes / Bytes::KIB),
        _ => bytes.to_string(),
    }
}

/// The command that does again what a configuration does.
pub fn command(record: &Record, winner: &Configuration) -> String {
    let file = quoted(&record.facts.file);
    let Configuration { engine, block_bytes, threads, depth } = winner;
    let block = size_argument(*block_bytes);
    let mut text = match (record.wishes.task, &record.facts.folder) {
        (Task::Copy, Some((folder, _))) => {
            let name = record.facts.file.rsplit('/').next().unwrap_or("copy");
            let copy = quoted(&format!("{}/{name}.copy", folder.trim_end_matches('/')));
            format!("iolens file copy {file} {copy} --engine {engine} --block-size {block}")
        }
        _ => format!("iolens file read {file} --engine {engine} --block-size {block}"),
    };
    if *threads > 1 {
        text.push_str(&format!(" --threads {threads}"));
    }
    if *depth > 1 {
        text.push_str(&format!(" --queue-depth {depth}"));
    }
    if record.wishes.task == Task::Read && record.wishes.consumer == Consumer::Scan {
        text.push_str(" --scan");
    }
    text
}

/// The same for who writes the program: calls and flags, block, threads.
fn in_code(record: &Record, winner: &Configuration) -> Vec<String> {
    let found = record.candidates.iter().find(|candidate| candidate.engine == winner.engine);
    let calls = found.map_or_else(|| winner.engine.clone(), |candidate| candidate.calls.clone());
    let threads = match winner.threads {
        1 => "1 thread".to_owned(),
        n => format!("{n} threads, each with a contiguous range and a descriptor of its own"),
    };
    let depth = match winner.depth {
        1 => String::new(),
        n => format!(", {n} under way in each"),
    };
    let mut lines =
        vec![calls, format!("blocks of {}, {threads}{depth}", Bytes(winner.block_bytes))];
    let is_direct = found.is_some_and(|candidate| candidate.way == Way::Direct);
    if let Some(alignment) = record.facts.direct_alignment_bytes.filter(|_| is_direct) {
        lines.push(format!("offsets, lengths and buffers multiples of {alignment} bytes"));
    }
    lines
}

/// What came of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replay {
    /// What is another than it was then.
    pub drift: Vec<String>,
    /// Whether the earlier winner still wins; `None` where that is not decided.
    pub is_so: Option<bool>,
    /// In a sentence.
    pub words: String,
}

/// What is another than it was then: kernel, file system, device, processor, file.
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
        all.push("the file has been written to since".to_owned());
    }
    all
}

/// The check for a person.
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
        text.push_str("  unchanged: kernel, file system, device, processor and file\n");
    }
    for drift in &replay.drift {
        text.push_str(&format!("  drift: {drift}\n"));
    }
    text
}

/// The check for programs.
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
