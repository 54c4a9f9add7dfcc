//! What contradicts the account of a run by copies, calls and sizes.

use iolens_document::{change, change_interval};
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Interval, RemovedCopy};

use super::setting;
use crate::arms::{self, Multiple};

/// A method that is behind another by more than the threshold, against what copies and calls say.
struct Behind<'a> {
    cell: &'a CellAnalysis,
    ahead: &'a str,
    behind: &'a str,
    by: Multiple,
}

/// What contradicts the account by which time follows copies, or the trend along the sizes.
pub(super) fn claims(run: &Run, analysis: &Analysis) -> Vec<String> {
    let ahead = farthest(analysis, copied_yet_ahead).map(|found| {
        format!(
            "At {}, {} is fastest although the kernel copied its sends; the next, {}, takes {}.",
            setting(run, &found.cell.cell),
            found.ahead,
            found.behind,
            longer(&found)
        )
    });
    let apart = farthest(analysis, alike_yet_apart).map(|found| {
        let (at, longer) = (setting(run, &found.cell.cell), longer(&found));
        format!("At {at}, {} takes {longer}, with equal copies and calls.", found.behind)
    });
    let mut claims: Vec<String> = ahead.into_iter().chain(apart).collect();
    claims.extend(saves_more_than_a_copy(run, analysis));
    claims.extend(off_the_trend(run, analysis, claims.is_empty()));
    claims
}

/// `12% longer than send`, `6.2× as long as send`.
fn longer(found: &Behind) -> String {
    match found.by.0 {
        ratio if ratio < 2.0 => {
            format!("{} longer than {}", changed(&found.by).trim_start_matches('+'), found.ahead)
        }
        ratio => format!("{}× as long as {}", three_digits(ratio), found.ahead),
    }
}

/// The most striking of what is found in the cells.
fn farthest<'a>(
    analysis: &'a Analysis,
    find: fn(&Analysis, &'a CellAnalysis) -> Option<Behind<'a>>,
) -> Option<Behind<'a>> {
    let found = analysis.cells.iter().filter_map(|cell| find(analysis, cell));
    found.max_by(|a, b| a.by.0.total_cmp(&b.by.0))
}

/// How far `behind` is behind `ahead`, where that is surely more than the threshold.
fn surely<'a>(
    analysis: &Analysis,
    cell: &'a CellAnalysis,
    ahead: &'a str,
    behind: &'a str,
) -> Option<Behind<'a>> {
    let by = arms::multiple(cell, behind, ahead)?;
    (by.1.low > 1.0 + analysis.delta).then_some(Behind { cell, ahead, behind, by })
}

/// Methods of a cell that can be used.
fn usable(cell: &CellAnalysis) -> impl Iterator<Item = &ArmAnalysis> {
    arms::methods(cell).filter(|arm| arm.status == Status::Ok)
}

/// Zero-copy that the kernel copied, and that is ahead of every copying method.
fn copied_yet_ahead<'a>(analysis: &Analysis, cell: &'a CellAnalysis) -> Option<Behind<'a>> {
    let copied = |arm: &&ArmAnalysis| arm.zerocopy.is_some_and(|z| z.is_copied());
    let arm = usable(cell).find(copied)?;
    let others = usable(cell).filter(|other| other.zerocopy.is_none());
    let behind: Option<Vec<Behind>> =
        others.map(|other| surely(analysis, cell, &arm.arm.label, &other.arm.label)).collect();
    behind?.into_iter().min_by(|a, b| a.by.0.total_cmp(&b.by.0))
}

/// Two methods that make as many copies and calls, and take different times.
fn alike_yet_apart<'a>(analysis: &Analysis, cell: &'a CellAnalysis) -> Option<Behind<'a>> {
    let arms: Vec<&ArmAnalysis> = usable(cell).filter(|arm| arm.zerocopy.is_none()).collect();
    let calls = |arm: &ArmAnalysis| Some(arm.figure(|f| f.tx_calls_per_message)?.value);
    let alike = |a: &ArmAnalysis, b: &ArmAnalysis| {
        let as_many = calls(a).zip(calls(b)).is_some_and(|(a, b)| (a / b - 1.0).abs() < 0.01);
        let copies = a.copies_sender.zip(b.copies_sender);
        as_many && copies.is_some_and(|(a, b)| (a - b).abs() < 0.01)
    };
    let pairs = arms.iter().flat_map(|a| arms.iter().map(move |b| (*a, *b)));
    let pairs = pairs.filter(|(a, b)| a.arm.label != b.arm.label && alike(a, b));
    let found = pairs.filter_map(|(a, b)| surely(analysis, cell, &a.arm.label, &b.arm.label));
    found.max_by(|a, b| a.by.0.total_cmp(&b.by.0))
}

/// An iovec that saves surely more than the `memcpy` that it removes takes.
fn saves_more_than_a_copy(run: &Run, analysis: &Analysis) -> Option<String> {
    let surely = |copy: &&RemovedCopy| copy.beyond_memcpy_ns_per_byte.is_some_and(|i| i.low > 0.0);
    let multiple =
        |copy: &RemovedCopy| copy.staged_less_iov_ns_per_byte.value / copy.memcpy_ns_per_byte.value;
    let found = analysis.removed_copies.iter().filter(surely);
    let copy = found.max_by(|a, b| multiple(a).total_cmp(&multiple(b)))?;
    Some(format!(
        "At {}, the iovec saves {}× what a memcpy of the same bytes takes.",
        setting(run, &copy.cell),
        three_digits(multiple(copy))
    ))
}

/// The measurement that is farthest from its neighbours along the sizes.
fn off_the_trend(run: &Run, analysis: &Analysis, is_alone: bool) -> Option<String> {
    let found = analysis.unexpected.as_ref()?;
    let interval = found
        .simultaneous
        .filter(Interval::is_usable)
        .map_or_else(String::new, |i| format!(" {}", change_interval((i.low, i.high))));
    let facts = format!(
        "{} at {}, {}{interval} against the trend",
        found.label,
        setting(run, &found.cell),
        change(found.ratio)
    );
    match found.beyond_interval {
        true => Some(format!("Off its own curve: {facts}.")),
        false if is_alone => {
            Some(format!("Nothing. The largest deviation is within noise: {facts}."))
        }
        false => None,
    }
}

/// `+33% [+30, +36]`.
pub(super) fn changed(found: &Multiple) -> String {
    let &(ratio, interval) = found;
    match interval.is_usable() {
        true => format!("{} {}", change(ratio), change_interval((interval.low, interval.high))),
        false => change(ratio),
    }
}
