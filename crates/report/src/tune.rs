//! What `tune` found: sentences and lines for people, an object for programs, and
//! what has changed since an earlier result.

use iolens_model::file::Consumer;
use iolens_model::shell;
use iolens_model::tune::{
    CacheWish, Configuration, FOLIOS_SMALL, Facts, LimitKind, Pruned, Record, Stage, Stop, Task,
    Trial, Work,
};
use iolens_model::units::{Bytes, Nanos, three_digits};
use iolens_stats::analysis::Interval;
use iolens_stats::tune::{Against, DELTA, Ratio, Share, Verdict};
use serde_json::{Value, json};

use crate::bounds;
use crate::number;
use crate::rates::{self, Unit, rate};

mod code;
mod cure;
mod drift;

pub use code::{baseline, command};
pub use drift::{Replay, drift, replay_json, replay_text};

/// Where the values stand, behind the names.
const INDENT: usize = 12;

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

fn percents(value: f64, interval: Option<Interval>) -> String {
    let percent = |share: f64| three_digits(share * 100.0);
    match interval {
        Some(interval) => {
            format!("{} % ({})", percent(value), number::span(interval, percent))
        }
        None => format!("{} %", percent(value)),
    }
}

/// What was compared with, as people would type it.
fn name(record: &Record, work: &Work) -> String {
    match work {
        Work::Engine(one) if *one == code::baseline(record.wishes.task) => {
            format!("plain {}, {}", one.engine, Bytes(one.block_bytes))
        }
        Work::Program(program) => {
            let found = record.programs.iter().find(|(name, _)| name == program);
            found.map_or_else(|| program.clone(), |(_, arguments)| shell::join(arguments))
        }
        other => other.words(),
    }
}

/// The result for a person.
#[must_use]
pub fn text(record: &Record, verdict: &Verdict) -> String {
    let mut text = headline(record, verdict);
    let mut row = |name: &str, value: String| {
        text.push_str(&format!("  {name:width$}{value}\n", width = INDENT - 2));
    };
    row("rate", format!("{}, {} rounds", rate_words(verdict), verdict.bytes_per_s.n));
    row("class", verdict.way.to_string());
    for other in &verdict.against {
        if !matches!(other.work, Work::Limit { .. }) {
            row("against", against(record, other));
        }
    }
    for (nth, share) in verdict.limits.iter().enumerate() {
        row(if nth == 0 { "bound" } else { "" }, limit_words(share, nth == 0 && verdict.is_bound));
    }
    if let Some(cpu) = verdict.cpu_s_per_gib {
        row("CPU time", format!("{} s per GiB", three_digits(cpu)));
    }
    row("cache", cache(record, &verdict.winner));
    row("command", command(record, &verdict.winner));
    for (nth, line) in code::in_code(record, &verdict.winner).into_iter().enumerate() {
        row(if nth == 0 { "in code" } else { "" }, line);
    }
    row("bytes", proof(record));
    row("ended", stop(record.stop).to_owned());
    for note in notes(record, verdict) {
        text.push_str(&format!("  note: {note}\n"));
    }
    for Pruned { what, why } in &record.pruned {
        let why = why.replace('\n', " ");
        text.push_str(&format!("  not tried: {what}: {why}\n"));
    }
    text
}

/// One sentence or two: what is fastest, by how much, and what is left.
fn headline(record: &Record, verdict: &Verdict) -> String {
    let facts = &record.facts;
    let verb = match record.wishes.task {
        Task::Read => "read",
        Task::Copy => "copy",
    };
    let consumer = match (record.wishes.task, record.wishes.consumer) {
        (Task::Read, Consumer::None) => ", bytes not looked at",
        (Task::Read, _) => ", every byte looked at",
        (Task::Copy, _) => "",
    };
    let mut text = format!(
        "The fastest way to {verb} {} here ({}, {}, {}{consumer}) is {}: {}.",
        facts.file,
        Bytes(facts.file_bytes),
        facts.file_system,
        state(record),
        verdict.winner.words(),
        rate(verdict.bytes_per_s.value)
    );
    let wins = |other: &&Against| !matches!(other.work, Work::Limit { .. });
    let others: Vec<String> = verdict
        .against
        .iter()
        .filter(wins)
        .filter(|other| is_rival(record, &other.work))
        .map(|other| {
            let name = name(record, &other.work);
            match other.ratio {
                ratio if ratio.is_above(DELTA) || ratio.is_below(DELTA) => {
                    format!("{} × {name}", number::ratio(ratio.value))
                }
                ratio if ratio.is_equivalent(DELTA) => {
                    format!("within {} of {name}", number::percent(DELTA))
                }
                _ => format!("not told apart from {name}"),
            }
        })
        .collect();
    if !others.is_empty() {
        text.push_str(&format!(" That is {}.", others.join(", ")));
    }
    if let Some(share) = verdict.limits.first() {
        text.push_str(&format!(" It is {}.", limit_share(share, verdict.is_bound, None)));
    }
    text.push('\n');
    text
}

/// What people would use instead: plain calls and programs.
fn is_rival(record: &Record, work: &Work) -> bool {
    match work {
        Work::Program(_) => true,
        Work::Engine(one) => *one == code::baseline(record.wishes.task),
        Work::Limit { .. } => false,
    }
}

/// `17.2 GiB/s (16.9 to 17.5)`.
fn rate_words(verdict: &Verdict) -> String {
    let Unit { size: scale, .. } = Unit::of(rates::BYTES, [verdict.bytes_per_s.value]);
    let value = rate(verdict.bytes_per_s.value);
    match verdict.bytes_per_s.interval {
        Some(interval) => {
            let ends = |i| number::from_to(i, |end| three_digits(end / scale));
            format!("{value} ({})", number::interval(interval, verdict.bytes_per_s.n, ends))
        }
        None => value,
    }
}

fn against(record: &Record, other: &Against) -> String {
    let cpu = other.cpu_s_per_gib.map(|cpu| format!(", {} s CPU per GiB", three_digits(cpu)));
    format!(
        "{} × {}, {}{}",
        times(&other.ratio),
        name(record, &other.work),
        rate(other.bytes_per_s),
        cpu.unwrap_or_default()
    )
}

fn limit_words(share: &Share, is_bound: bool) -> String {
    format!("{}: {}", share.kind, limit_share(share, is_bound, share.interval))
}

/// `96.1 % of one thread at 22.0 GiB/s`, with this interval, or that the limit is none.
fn limit_share(share: &Share, is_bound: bool, shown: Option<Interval>) -> String {
    let end = if is_bound { ": nothing is left to win" } else { "" };
    match bounds::standing(share.share, share.interval, 1.0) {
        bounds::Standing::Below(value) => {
            format!("{} of {}{end}", percents(value, shown), share.of)
        }
        bounds::Standing::At => format!("as much as {}{end}", share.of),
        bounds::Standing::Above => format!("above {}, which {}", share.of, bounds::NO_BOUND),
    }
}

/// `warm`, or what the cache was like.
fn state(record: &Record) -> &'static str {
    match (record.wishes.cache, record.facts.resident_share) {
        (CacheWish::Warm, _) => "warm",
        (CacheWish::Cold, _) if record.facts.hypervisor.is_some() => "guest-cold",
        (CacheWish::Cold, _) => "cold",
        (CacheWish::AsIs, Some(share)) if share > 0.999 => "warm as it was",
        (CacheWish::AsIs, Some(_)) => "warm since the first reading",
        (CacheWish::AsIs, None) => "cache state unknown",
    }
}

/// What of the extent was cached around the winner's trials.
fn cache(record: &Record, winner: &Configuration) -> String {
    let of_winner =
        |trial: &&Trial| trial.stage == Stage::Final && trial.work.configuration() == Some(winner);
    let trials: Vec<&Trial> = record.trials.iter().filter(of_winner).collect();
    let mean = |pick: fn(&Trial) -> Option<f64>| {
        let shares: Option<Vec<f64>> = trials.iter().map(|trial| pick(trial)).collect();
        shares.map(|shares| shares.iter().sum::<f64>() / shares.len().max(1) as f64)
    };
    let before = mean(|trial| trial.resident_before_share);
    let after = mean(|trial| trial.resident_after_share);
    let found = match record.facts.resident_share {
        Some(share) => format!("{} % at the beginning", three_digits(share * 100.0)),
        None => "not told at the beginning".to_owned(),
    };
    match (before, after) {
        (Some(before), Some(after)) => format!(
            "{found}; around the winner's trials {} % before, {} % after",
            three_digits(before * 100.0),
            three_digits(after * 100.0)
        ),
        _ => format!("{found}; not told around trials"),
    }
}

fn proof(record: &Record) -> String {
    match &record.proof {
        Some(proof) if proof.winner == proof.plain => format!(
            "equal: checksum {} of {}, as of an independent plain reading",
            proof.winner,
            Bytes(proof.bytes)
        ),
        Some(proof) => format!("DIFFERENT: checksum {} and {} plain", proof.winner, proof.plain),
        None => "not compared".to_owned(),
    }
}

fn stop(stop: Stop) -> &'static str {
    match stop {
        Stop::Precision => "each ratio of ours is known to ±3 %",
        Stop::Bound => "the limit is reached: nothing is left to win",
        Stop::Equivalent => "the best ones differ by less than 3 %",
        Stop::Decided => "the best one is faster than each of the others",
        Stop::Budget => "the time was up (--budget)",
    }
}

fn tie(verdict: &Verdict) -> Option<String> {
    let tied: Vec<String> = verdict.tied.iter().map(Configuration::words).collect();
    (!tied.is_empty()).then(|| {
        format!(
            "a tie: not shown to differ by more than {} from {}; the one named takes the least CPU \
             time, or is simpler",
            number::percent(DELTA),
            tied.join("; ")
        )
    })
}

fn notes(record: &Record, verdict: &Verdict) -> Vec<String> {
    let mut notes = Vec::new();
    let facts = &record.facts;
    notes.extend(tie(verdict));
    if let Some((engine, seconds)) = &verdict.shared {
        notes.push(format!(
            "{engine} makes a copy in {} without moving a byte: it shares the blocks, and is no \
             rate of bytes",
            number::nanoseconds(seconds * 1e9)
        ));
    }
    let is_scan = verdict.limits.iter().any(|share| share.kind == LimitKind::Scan);
    if let Some(share) = facts.huge_mapped_share.filter(|&s| is_scan && s < FOLIOS_SMALL) {
        notes.push(format!(
            "{} % of the file is in the page cache as huge pages; the rest is mapped 4 KiB at a \
             time, which costs a mapping part of its rate (a file that was read from its device \
             in order is often cached in larger pieces than one that was written){}",
            three_digits(share * 100.0),
            if record.cure.is_none() { cure::OFFER } else { "" }
        ));
    }
    notes.extend(cure::told(record));
    let compares_programs = verdict.against.iter().any(|o| matches!(o.work, Work::Program(_)));
    let is_looked_at = record.wishes.task == Task::Read && record.wishes.consumer == Consumer::Scan;
    if is_looked_at && compares_programs {
        notes.push(
            "dd does not look at what it reads; the engines here do, which is more work".to_owned(),
        );
    }
    if let Some(hypervisor) = &facts.hypervisor {
        notes.push(format!("a virtual machine ({hypervisor}): memory and device are shared"));
    }
    if let Some(stolen) = record.stolen.filter(|stolen| stolen.0 > 0) {
        notes.push(format!("the hypervisor took {stolen} of processor time meanwhile"));
    }
    let most = record.trials.iter().filter(|trial| trial.stage == Stage::Final);
    if let Some(bytes) = most.map(|trial| trial.extent.bytes).max()
        && bytes < facts.file_bytes
    {
        notes.push(format!(
            "trials took the first {} of {}, as the time allows",
            Bytes(bytes),
            Bytes(facts.file_bytes)
        ));
    }
    let failed = record.trials.iter().filter_map(|trial| {
        let why = trial.failure.as_ref()?.lines().next()?;
        Some(format!("{} is out: {why}", trial.work.words()))
    });
    for failure in failed {
        if !notes.contains(&failure) {
            notes.push(failure);
        }
    }
    notes.extend(facts.warnings.iter().chain(&record.notes).cloned());
    notes.push(format!(
        "{} trials in {} with seed {}",
        record.trials.len(),
        Nanos(record.duration.0),
        record.wishes.seed
    ));
    notes
}

/// The result for programs: the record with every trial, and what follows from it.
#[must_use]
pub fn json(record: &Record, verdict: &Verdict) -> Value {
    json!({
        "schema": crate::json::SCHEMA,
        "kind": "tune",
        "verdict": verdict,
        "command": command(record, &verdict.winner),
        "state": state(record),
        "code": code::in_code(record, &verdict.winner),
        "record": record,
    })
}

/// The record in a result that was printed as JSON.
///
/// Errors: why it is none.
pub fn record_of(text: &str) -> Result<Record, String> {
    let whole: Value = serde_json::from_str(text).map_err(|e| format!("it is no JSON: {e}"))?;
    if whole["kind"] != "tune" {
        return Err("it is no result of `iolens tune`".to_owned());
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
#[must_use]
pub fn facts_text(facts: &Facts, pruned: &[Pruned], candidates: usize) -> String {
    let share = facts.resident_share.map_or_else(
        || "an unknown share".to_owned(),
        |share| format!("{} %", three_digits(share * 100.0)),
    );
    format!(
        "{}: {} on {}, {share} of it in the page cache; {candidates} engines, {} left out",
        facts.file,
        Bytes(facts.file_bytes),
        facts.file_system,
        pruned.len()
    )
}

#[cfg(test)]
mod tests;
