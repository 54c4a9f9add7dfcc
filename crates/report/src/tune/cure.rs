//! What the cure for small folios took, and what the file gives after it.

use iolens_model::tune::{Cure, Record, Stage, Trial, Work};
use iolens_model::units::three_digits;

use crate::number::NONE;
use crate::rates::rate;

/// What is said where it was not allowed.
pub(super) const OFFER: &str = "; with --allow-evict tune drops it from the page cache once, reads it \
                                again in large folios, and says what that takes and gives";

/// Less of the file in huge pages than this is no cure.
const GAIN_LEAST: f64 = 0.1;

/// The price and the gain; null where it was not tried.
pub(super) fn told(record: &Record) -> Option<String> {
    let cure = record.cure.as_ref()?;
    let Some(time) = cure.time else {
        let why = cure.failure.as_deref().unwrap_or("no reason was stored");
        return Some(format!("the cure, reading the file again in large folios, failed: {why}"));
    };
    let works = works(record);
    let rates: Vec<String> = works.iter().filter_map(|work| rates(record, work)).collect();
    Some(format!(
        "the cure, tried: dropped from the page cache and read again through a mapping with \
         MADV_HUGEPAGE, in {time}. {}. {}; it lasts until the kernel drops the pages",
        folios(cure),
        rates.join("; ")
    ))
}

/// `Huge pages map 98.1 % of it then, 0 % before`.
fn folios(cure: &Cure) -> String {
    let share = |share: Option<f64>| {
        share.map_or_else(|| NONE.to_owned(), |s| format!("{} %", three_digits(100.0 * s)))
    };
    let (before, after) = (cure.huge_before_share, cure.huge_after_share);
    let told = format!("Huge pages map {} of it then, {} before", share(after), share(before));
    match before.zip(after) {
        Some((before, after)) if after < before + GAIN_LEAST => {
            format!("{told}: this kernel and file system keep it in small pieces")
        }
        _ => told,
    }
}

/// What was read before and after, in order of first use.
fn works(record: &Record) -> Vec<&Work> {
    let mut works: Vec<&Work> = Vec::new();
    for trial in record.trials.iter().filter(|trial| trial.stage == Stage::Cured) {
        if !works.contains(&&trial.work) {
            works.push(&trial.work);
        }
    }
    works
}

/// `mmap, 1 MiB, 1 thread: 18.2 GiB/s then (17.9 to 18.4), 6.01 GiB/s before (5.9 to 6.1)`.
fn rates(record: &Record, work: &Work) -> Option<String> {
    let of = |stage| {
        let own = record.trials.iter().filter(|t| t.stage == stage && t.work == *work);
        middle(own.filter_map(bytes_per_s).collect())
    };
    let (after, before) = (of(Stage::Cured)?, of(Stage::Uncured)?);
    Some(format!("{}: {after} then, {before} before", work.words()))
}

fn bytes_per_s(trial: &Trial) -> Option<f64> {
    Some(trial.extent.bytes as f64 * 1e9 / trial.time_ns.filter(|&ns| ns > 0)? as f64)
}

/// The middle one, with the least and the most.
fn middle(mut rates: Vec<f64>) -> Option<String> {
    rates.sort_by(f64::total_cmp);
    let (least, most) = (rates.first()?, rates.last()?);
    Some(format!("{} ({} to {})", rate(rates[rates.len() / 2]), rate(*least), rate(*most)))
}
