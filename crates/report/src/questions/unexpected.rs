//! Which result is unexpected: what contradicts the simple account by which
//! time follows copies, then the measurement that is farthest from its
//! neighbours along the sizes, or from its cost model. Whatever is named, its
//! interval holds for all that was looked through together.

use iolens_model::arm::Role;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, CostModel, RemovedCopy, Unexpected,
};

use super::{Outcome, measured};
use crate::arms::{self, Multiple};
use crate::number::{self, percent, range, ratio};
use crate::words;

pub(super) fn outcome(run: &Run, analysis: &Analysis) -> Outcome {
    let mut sentences: Vec<String> = Vec::new();
    sentences.extend(copied_yet_ahead(run, analysis));
    sentences.extend(saves_more_than_a_copy(run, analysis));
    sentences.extend(alike_yet_apart(run, analysis));
    let contradicted = !sentences.is_empty();
    let off_curve = analysis.unexpected.as_ref();
    match off_curve {
        Some(found) if found.beyond_interval || !contradicted => {
            sentences.push(sentence(run, analysis, found));
        }
        None if !contradicted => {
            return Outcome::not_decidable(
                "No expectation can be formed: that takes an arm with numbers at four or more \
                 sizes of one curve, or two arms that make as many copies.",
            );
        }
        _ => {}
    }
    if contradicted || off_curve.is_some_and(|found| found.beyond_interval) {
        sentences.push(format!(
            "The run does not say why. A profile of such a cell would show where the time goes: \
             iolens explain {} CELL.",
            run.header.id
        ));
    }
    let evidence = analysis.cost_models.iter().map(|model| line(run, model)).collect();
    Outcome::Answered { sentences, evidence }
}

/// Something found in some cells: the most striking one, and how many.
struct Found<'a> {
    cell: &'a CellAnalysis,
    /// Label of the arm that is ahead, and of the other.
    ahead: &'a str,
    behind: &'a str,
    /// Time of the one behind over that of the one ahead.
    by: Multiple,
}

impl Found<'_> {
    /// `send takes 1.26× the time of sendmsg_iov (simultaneous 95 % …)`.
    fn words(&self) -> String {
        format!(
            "{} takes {}× the time of {} ({}, n = {})",
            self.behind,
            ratio(self.by.ratio),
            self.ahead,
            number::interval(self.by.interval, self.by.n, |i| {
                format!("simultaneous 95 % interval {}", range(i))
            }),
            self.by.n
        )
    }
}

/// The found with the largest multiple, and how many other cells there are.
fn most<'a>(found: Vec<Found<'a>>) -> Option<(Found<'a>, String)> {
    let mut cells: Vec<_> = found.iter().map(|found| &found.cell.cell).collect();
    cells.dedup();
    let others = match cells.len() - usize::from(!cells.is_empty()) {
        0 => String::new(),
        1 => "; the same holds in 1 more cell".to_owned(),
        n => format!("; the same holds in {n} more cells"),
    };
    let farthest = found.into_iter().max_by(|a, b| a.by.ratio.total_cmp(&b.by.ratio))?;
    Some((farthest, others))
}

/// How far `behind` is behind `ahead`, where that is surely more than δ.
fn surely<'a>(
    analysis: &Analysis,
    cell: &'a CellAnalysis,
    ahead: &'a str,
    behind: &'a str,
) -> Option<Found<'a>> {
    let by = arms::multiple(cell, behind, ahead)?;
    (by.interval.low > 1.0 + analysis.delta).then_some(Found { cell, ahead, behind, by })
}

/// Baseline and compared arms of a cell that can be used.
fn usable(cell: &CellAnalysis) -> impl Iterator<Item = &ArmAnalysis> {
    let sends = |arm: &&ArmAnalysis| matches!(arm.arm.role, Role::Baseline | Role::Compared);
    cell.arms.iter().filter(|arm| arm.status == Status::Ok).filter(sends)
}

/// Zero-copy that the kernel copied, and that is ahead of every copying arm.
fn copied_yet_ahead(run: &Run, analysis: &Analysis) -> Option<String> {
    let in_cell = |cell| {
        let copied = |arm: &&ArmAnalysis| arm.zerocopy.is_some_and(|z| z.is_copied());
        let arm = usable(cell).find(copied)?;
        let others = usable(cell).filter(|other| other.zerocopy.is_none());
        let ahead: Option<Vec<Found>> =
            others.map(|other| surely(analysis, cell, &arm.arm.label, &other.arm.label)).collect();
        // The closest of those behind.
        ahead?.into_iter().min_by(|a, b| a.by.ratio.total_cmp(&b.by.ratio))
    };
    let (found, others) = most(analysis.cells.iter().filter_map(in_cell).collect())?;
    Some(format!(
        "Zero-copy is ahead although the kernel copied its bytes after all: at {}, the \
         next best, {}{others}.",
        words::subject(&run.header, &found.cell.cell),
        found.words()
    ))
}

/// An iovec that saves surely more than the `memcpy` that it removes takes.
fn saves_more_than_a_copy(run: &Run, analysis: &Analysis) -> Option<String> {
    let surely = |copy: &&RemovedCopy| copy.beyond_memcpy_ns_per_byte.is_some_and(|i| i.low > 0.0);
    let multiple =
        |copy: &RemovedCopy| copy.staged_less_iov_ns_per_byte.value / copy.memcpy_ns_per_byte.value;
    let found = analysis.removed_copies.iter().filter(surely);
    let copy = found.max_by(|a, b| multiple(a).total_cmp(&multiple(b)))?;
    let beyond = copy.beyond_memcpy_ns_per_byte?;
    Some(format!(
        "The iovec saves more than the copy it removes: at {}, sendmsg_iov takes {} ns per byte \
         less than send_staged, {}× the {} ns per byte of a memcpy of the same bytes alone (the \
         difference of the two: simultaneous 95 % interval {} to {}, n = {}).",
        words::subject(&run.header, &copy.cell),
        three_digits(copy.staged_less_iov_ns_per_byte.value),
        ratio(multiple(copy)),
        three_digits(copy.memcpy_ns_per_byte.value),
        three_digits(beyond.low),
        three_digits(beyond.high),
        copy.staged_less_iov_ns_per_byte.n
    ))
}

/// Two arms that make as many copies and calls, and take different times.
fn alike_yet_apart(run: &Run, analysis: &Analysis) -> Option<String> {
    let mut found = Vec::new();
    for cell in &analysis.cells {
        let arms: Vec<&ArmAnalysis> = usable(cell).filter(|arm| arm.zerocopy.is_none()).collect();
        for (a, b) in arms.iter().flat_map(|a| arms.iter().map(move |b| (a, b))) {
            if a.arm.label != b.arm.label && alike(a, b) {
                found.extend(surely(analysis, cell, &a.arm.label, &b.arm.label));
            }
        }
    }
    let (found, others) = most(found)?;
    Some(format!(
        "Two arms with as many copies and calls take different times: at {}, {}{others}.",
        words::subject(&run.header, &found.cell.cell),
        found.words()
    ))
}

fn alike(a: &ArmAnalysis, b: &ArmAnalysis) -> bool {
    let calls = |arm: &ArmAnalysis| Some(arm.figures.as_ref()?.tx_calls_per_message?.value);
    let as_many = calls(a).zip(calls(b)).is_some_and(|(a, b)| (a / b - 1.0).abs() < 0.01);
    let copies = a.copies_sender.zip(b.copies_sender);
    as_many && copies.is_some_and(|(a, b)| (a - b).abs() < 0.01)
}

fn sentence(run: &Run, analysis: &Analysis, found: &Unexpected) -> String {
    let place = words::subject(&run.header, &found.cell);
    let interval = found.simultaneous.map_or_else(String::new, |interval| {
        format!(" (95 % interval {} for all {} together)", range(interval), found.candidates)
    });
    let facts = format!(
        "{} at {place} takes {} ns per message where its neighbours along the sizes let expect \
         {}, {}× that{interval}",
        found.label,
        three_digits(found.measured_ns.value),
        three_digits(found.expected_ns),
        ratio(found.ratio)
    );
    let delta = percent(analysis.delta);
    match found.beyond_interval {
        true => format!("Off its own curve: {facts}; that is more than δ = {delta} off."),
        false => format!(
            "None. The farthest from expectation is no farther than its interval and δ = {delta} \
             allow: {facts}."
        ),
    }
}

/// `1 thread: send_staged takes about 1100 ns + 0.200 ns per byte …`.
fn line(run: &Run, model: &CostModel) -> String {
    let curve = words::curve(&run.header, &model.curve);
    let worst =
        format!("largest deviation {} at {}", percent(model.worst_residual.abs()), model.worst_at);
    if !model.is_affine() {
        return format!(
            "{curve}: {} does not follow a fixed part plus a part per byte ({worst})",
            model.label
        );
    }
    let bound = if model.fixed_is_upper_bound { "at most " } else { "" };
    format!(
        "{curve}: {} takes {bound}{} plus {} ({worst})",
        model.label,
        measured(&model.fixed_ns, "ns per message"),
        measured(&model.per_byte_ns, "ns per byte")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture_findings::findings;
    use iolens_stats::analysis::Interval;

    fn first(run: &Run, analysis: &Analysis) -> String {
        match outcome(run, analysis) {
            Outcome::Answered { mut sentences, .. } => sentences.remove(0),
            Outcome::NotDecidable { why, .. } => why,
        }
    }

    #[test]
    fn the_farthest_is_named_or_nothing_is() {
        let (run, mut analysis) = findings();
        analysis.cells.iter_mut().for_each(|cell| cell.pairs.clear());
        assert!(
            first(&run, &analysis)
                .contains("1.24× that (95 % interval 1.21–1.27 for all 24 together)")
        );
        if let Some(found) = &mut analysis.unexpected {
            found.beyond_interval = false;
        }
        assert!(first(&run, &analysis).starts_with("None. The farthest"));
    }

    /// A send that was copied late, 1.4 times as fast as every other arm.
    #[test]
    fn what_contradicts_the_count_of_copies_comes_first() {
        let (run, mut analysis) = findings();
        let cell = &mut analysis.cells[1];
        let ahead = Some(Interval { low: 1.3, high: 1.5 });
        for pair in &mut cell.pairs {
            let zero_first = pair.first == "sendmsg_zerocopy";
            if zero_first || pair.second == "sendmsg_zerocopy" {
                (pair.ratio, pair.simultaneous) = match zero_first {
                    true => (1.4, ahead),
                    false => (1.0 / 1.4, Some(Interval { low: 1.0 / 1.5, high: 1.0 / 1.3 })),
                };
            }
        }
        for arm in cell.arms.iter_mut().filter(|arm| arm.arm.label == "sendmsg_zerocopy") {
            let contrast = arm.contrast.as_mut().expect("compared");
            (contrast.ratio, contrast.simultaneous) = (1.4, ahead);
        }
        let said = first(&run, &analysis);
        assert!(said.starts_with("Zero-copy is ahead although"), "{said}");
        assert!(said.contains("takes 1.40× the time of sendmsg_zerocopy (simul"), "{said}");
        let beyond = Some(Interval { low: 0.01, high: 0.02 });
        analysis.removed_copies[0].beyond_memcpy_ns_per_byte = beyond;
        let Outcome::Answered { sentences, .. } = outcome(&run, &analysis) else { panic!() };
        assert!(sentences[1].starts_with("The iovec saves more than"), "{sentences:?}");
        assert!(sentences[2].starts_with("Two arms with as many copies"), "{sentences:?}");
        assert!(sentences.last().is_some_and(|s| s.contains("iolens explain")), "{sentences:?}");
    }

    #[test]
    fn short_curves_let_nothing_be_expected() {
        let (run, mut analysis) = findings();
        analysis.cells.iter_mut().for_each(|cell| cell.pairs.clear());
        analysis.unexpected = None;
        assert!(first(&run, &analysis).contains("four or more sizes"));
    }
}
