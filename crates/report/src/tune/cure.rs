//! What the cure for small folios took, and what the file gives after it.

use iolens_model::tune::{Cure, Record, Stage, Trial, Work};
use iolens_model::units::three_digits;

use crate::groups::distinct;
use crate::number::NONE;
use crate::number::rate;

/// What is said where it was not allowed.
pub(super) const OFFER: &str = "; with --allow-evict tune drops it from the page cache once, reads it \
                                again in large folios, and reports the cost and the gain";

/// Less of the file in huge pages than this is no cure.
const GAIN_LEAST: f64 = 0.1;

/// The price and the gain; `None` where it was not tried.
pub(super) fn told(record: &Record) -> Option<String> {
    let cure = record.cure.as_ref()?;
    let Some(time) = cure.time else {
        let why = cure.failure.as_deref().unwrap_or("no reason was stored");
        return Some(format!("the cure, reading the file again in large folios, failed: {why}"));
    };
    let works = works(record);
    let rates: Vec<String> = works.iter().filter_map(|work| rates(record, work)).collect();
    let gain = match rates.is_empty() {
        true => "What it gives was not measured".to_owned(),
        false => rates.join("; "),
    };
    Some(format!(
        "the cure, tried: dropped from the page cache and read again through a mapping with \
         MADV_HUGEPAGE, in {time}. {}. {gain}; it lasts until the kernel drops the pages",
        folios(cure)
    ))
}

/// `Huge pages map 98.1 % of it then, 0 % before`.
fn folios(cure: &Cure) -> String {
    let share = |share: Option<f64>| {
        share.map_or_else(|| NONE.to_owned(), |s| format!("{}%", three_digits(100.0 * s)))
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
    let cured = record.trials.iter().filter(|trial| trial.stage == Stage::Cured);
    distinct(cured.map(|trial| &trial.work))
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

#[cfg(test)]
mod tests {
    use iolens_model::units::Nanos;

    use super::super::tests::{arms, engine, record};
    use super::*;

    /// A record in which a file of one GiB was cured: what five readings each took before and
    /// after, in ms.
    fn cured(before_ms: [u64; 5], after_ms: [u64; 5], huge_after: Option<f64>) -> Record {
        let mut record = record(&arms(60.0));
        record.cure = Some(Cure {
            time: Some(Nanos(400_000_000)),
            huge_before_share: Some(0.0),
            huge_after_share: huge_after,
            failure: None,
        });
        let template = record.trials[0].clone();
        for (stage, all_ms) in [(Stage::Uncured, before_ms), (Stage::Cured, after_ms)] {
            for ms in all_ms {
                let time_ns = Some(ms * 1_000_000);
                let work = engine("mmap", 1 << 20);
                record.trials.push(Trial { work, stage, time_ns, ..template.clone() });
            }
        }
        record
    }

    const BEFORE_MS: [u64; 5] = [160, 150, 170, 155, 165];
    const AFTER_MS: [u64; 5] = [50, 55, 52, 51, 60];

    #[test]
    fn the_price_and_the_gain_are_told() {
        assert_eq!(told(&record(&arms(60.0))), None, "it was not tried");
        let told = told(&cured(BEFORE_MS, AFTER_MS, Some(0.98))).unwrap();
        let wanted = "the cure, tried: dropped from the page cache and read again through a \
                      mapping with MADV_HUGEPAGE, in 400 ms. Huge pages map 98.0% of it then, 0% \
                      before. mmap, 1 MiB, 1 thread: 19.2 GiB/s (16.7 GiB/s to 20.0 GiB/s) then, \
                      6.25 GiB/s (5.88 GiB/s to 6.67 GiB/s) before; it lasts until the kernel drops \
                      the pages";
        assert_eq!(told, wanted);
    }

    #[test]
    fn small_pieces_that_stay_are_no_cure() {
        let small = "this kernel and file system keep it in small pieces";
        let of = |share| told(&cured(BEFORE_MS, AFTER_MS, share)).unwrap();
        assert!(of(Some(0.05)).contains(small) && !of(Some(0.2)).contains(small));
        let unknown = of(None);
        assert!(!unknown.contains(small), "{unknown}");
        assert!(unknown.contains(&format!("map {NONE} of it then, 0% before")), "{unknown}");
    }

    #[test]
    fn what_failed_has_its_reason_and_no_number() {
        let mut record = cured(BEFORE_MS, AFTER_MS, Some(0.98));
        let cure = record.cure.as_mut().unwrap();
        (cure.time, cure.failure) = (None, Some("EPERM (operation not permitted)".to_owned()));
        let why = "the cure, reading the file again in large folios, failed: EPERM (operation not \
                   permitted)";
        assert_eq!(told(&record).unwrap(), why);
        record.cure.as_mut().unwrap().failure = None;
        assert!(told(&record).unwrap().ends_with("failed: no reason was stored"));
    }

    #[test]
    fn readings_that_failed_give_no_gain() {
        let mut record = cured(BEFORE_MS, AFTER_MS, Some(0.98));
        for trial in record.trials.iter_mut().filter(|trial| trial.stage == Stage::Cured) {
            trial.time_ns = None;
        }
        let told = told(&record).unwrap();
        assert!(told.contains("0% before. What it gives was not measured; it lasts"), "{told}");
    }
}
