//! What `tune` found: a screen for people, an object for programs, and what has changed
//! since an earlier result.

use iolens_document::{Style, terminal};
use iolens_model::shell;
use iolens_model::tune::{CacheWish, Facts, Pruned, Record, Work};
use iolens_model::units::{Bytes, three_digits};
use iolens_stats::tune::{Ratio, Share, Verdict};
use serde_json::{Value, json};

use crate::bounds;
use crate::number;
use crate::rates::rate;

mod code;
mod cure;
mod drift;
mod screen;

pub(crate) use code::size_argument;
pub use code::{baseline, command};
pub use drift::{Replay, drift, replay_json, replay_text};

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
        Work::Engine(one) if *one == code::baseline(record.wishes.task) => {
            format!("plain {}, {}", one.engine, Bytes(one.block_bytes))
        }
        Work::Program(program) => {
            let found = record.programs.iter().find(|(name, _)| name == program);
            let is_path = |argument: &&String| argument.contains('/');
            let short = |arguments: &[String]| -> Vec<String> {
                arguments.iter().filter(|argument| !is_path(argument)).cloned().collect()
            };
            found.map_or_else(|| program.clone(), |(_, arguments)| shell::join(short(arguments)))
        }
        other => other.words(),
    }
}

/// The result for a person, with all that was noticed where `verbose`.
#[must_use]
pub fn text(record: &Record, verdict: &Verdict, style: &Style, verbose: bool) -> String {
    terminal::draw(&screen::screen(record, verdict, verbose), style)
}

/// What people would use instead: plain calls and programs.
fn is_rival(record: &Record, work: &Work) -> bool {
    match work {
        Work::Program(_) => true,
        Work::Engine(one) => *one == code::baseline(record.wishes.task),
        Work::Limit { .. } => false,
    }
}

/// `96.1% of one thread at 22.0 GiB/s`, or that the limit is none.
fn limit_share(share: &Share, is_bound: bool) -> String {
    let end = if is_bound { ": nothing is left to win" } else { "" };
    match bounds::standing(share.share, share.interval, 1.0) {
        bounds::Standing::Below(value) => {
            format!("{}% of {}{end}", three_digits(value * 100.0), share.of)
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
        (CacheWish::AsIs, Some(share)) if share > 0.999 => "fully cached",
        (CacheWish::AsIs, Some(_)) => "cached by the first read",
        (CacheWish::AsIs, None) => "cache state unknown",
    }
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

#[cfg(test)]
mod tests;
