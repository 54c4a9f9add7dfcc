//! Arms over several cells: their names with what became of their copies, and
//! their times against each other.

use iolens_model::arm::Role;
use iolens_model::data_path::DataPath;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Interval, PairContrast};

use crate::number::{self, percent};

/// The three ways that textbooks compare, most copies first.
pub(crate) const CLASSIC: [&str; 3] = ["send_staged", "sendmsg_iov", "sendmsg_zerocopy"];

/// The methods of a cell: the baseline and what is compared with it.
pub(crate) fn methods(cell: &CellAnalysis) -> impl Iterator<Item = &ArmAnalysis> {
    let plays = |arm: &&ArmAnalysis| matches!(arm.arm.role, Role::Baseline | Role::Compared);
    cell.arms.iter().filter(plays)
}

/// The arm of a primitive in a cell; never the self-check.
pub(crate) fn of<'a>(cell: &'a CellAnalysis, primitive: &str) -> Option<&'a ArmAnalysis> {
    let of = |arm: &&ArmAnalysis| arm.arm.primitive == primitive && arm.arm.role != Role::SelfCheck;
    cell.arms.iter().find(of)
}

/// The declared path of a primitive's bytes to a receiver, where the run has
/// it; as to `recv` where nobody receives.
pub(crate) fn path(run: &Run, primitive: &str, receiver: &str) -> Option<DataPath> {
    let facts = run.header.primitives.iter().find(|facts| facts.id == primitive)?;
    let known = run.header.receivers.iter().find(|facts| facts.id == receiver);
    Some(known.map_or_else(
        || facts.data_path.clone(),
        |receiver| facts.data_path.received_by(&receiver.hops),
    ))
}

/// The receiver that stands for a run where one has to: the plan's first.
pub(crate) fn receiver(run: &Run) -> &str {
    run.header.plan.receivers().first().map_or("recv", String::as_str)
}

/// The cells of one receiver.
pub(crate) fn received_with<'a>(
    analysis: &'a Analysis,
    receiver: &'a str,
) -> impl Iterator<Item = &'a CellAnalysis> + Clone + 'a {
    analysis.cells.iter().filter(move |cell| cell.cell.receiver().is_none_or(|own| own == receiver))
}

/// What the kernel decided while it ran, each lowest and highest over some
/// cells; `None` where it was not measured.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Shares {
    /// Of zero-copy sends, those that were copied late.
    pub(crate) late: Option<(f64, f64)>,
    /// Of the bytes received, those that were mapped.
    pub(crate) mapped: Option<(f64, f64)>,
}

impl Shares {
    /// Of an arm in these cells.
    pub(crate) fn of<'a>(
        cells: impl Iterator<Item = &'a CellAnalysis> + Clone,
        label: &str,
    ) -> Shares {
        let arms = cells.clone().filter_map(|cell| labelled(cell, label));
        Shares { late: copied(cells, label), mapped: span(arms.filter_map(|arm| arm.mapped_share)) }
    }

    /// Of all arms that a receiver received.
    pub(crate) fn received<'a>(cells: impl Iterator<Item = &'a CellAnalysis>) -> Shares {
        let arms = cells.flat_map(|cell| &cell.arms);
        Shares { late: None, mapped: span(arms.filter_map(|arm| arm.mapped_share)) }
    }

    /// Lowest and highest number of copies that a path makes, at the sender and
    /// end to end; `None` where what decides it was not measured.
    pub(crate) fn copies(&self, path: &DataPath) -> Option<[(f64, f64); 2]> {
        let none = Some((0.0, 0.0));
        let late = if path.may_copy_late() { self.late } else { none }?;
        let mapped = if path.may_map() { self.mapped } else { none }?;
        Some([
            (path.copies_sender(late.0), path.copies_sender(late.1)),
            (path.copies_end_to_end(late.0, mapped.1), path.copies_end_to_end(late.1, mapped.0)),
        ])
    }
}

/// A number of copies, or two where it depends: `1 to 2`.
pub(crate) fn copies_range((low, high): (f64, f64)) -> String {
    let [low, high] = [low, high].map(|copies| number::copies(Some(copies)));
    number::extent(low, high)
}

/// Lowest and highest of some values; `None` where there is none.
pub(crate) fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |span, value| {
        let (low, high) = span.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}

/// Lowest and highest share of zero-copy sends of an arm that the kernel
/// reported as copied; `None` where no cell has one.
pub(crate) fn copied<'a>(
    cells: impl IntoIterator<Item = &'a CellAnalysis>,
    label: &str,
) -> Option<(f64, f64)> {
    let arms = cells.into_iter().filter_map(|cell| labelled(cell, label));
    span(arms.filter_map(|arm| arm.zerocopy?.copied_share))
}

/// A share or a range of shares: `100 %`, `0 % to 12 %`.
pub(crate) fn share((low, high): (f64, f64)) -> String {
    number::extent(percent(low), percent(high))
}

fn labelled<'a>(cell: &'a CellAnalysis, label: &str) -> Option<&'a ArmAnalysis> {
    cell.arms.iter().find(|arm| arm.arm.label == label)
}

/// The cells of one curve.
pub(crate) fn on_curve<'a>(
    analysis: &'a Analysis,
    curve: &iolens_model::cell::Cell,
) -> Vec<&'a CellAnalysis> {
    analysis.cells.iter().filter(|cell| cell.cell.curve() == curve.curve()).collect()
}

/// How long one arm takes as a multiple of another, from the same trials, with the simultaneous
/// 95% interval.
pub(crate) type Multiple = (f64, Interval);

/// The time per message of `a` over that of `b`, both labels of this cell;
/// `None` where the analysis does not compare them.
pub(crate) fn multiple(cell: &CellAnalysis, a: &str, b: &str) -> Option<Multiple> {
    let baseline = cell.arms.iter().find(|arm| arm.arm.role == Role::Baseline)?;
    let contrast = |label: &str| {
        let contrast = labelled(cell, label)?.contrast.as_ref()?;
        Some((contrast.ratio, contrast.simultaneous?))
    };
    if baseline.arm.label == a {
        return contrast(b);
    }
    if baseline.arm.label == b {
        return contrast(a).map(inverse);
    }
    let (pair, is_turned) = pair(cell, a, b)?;
    let found = (pair.ratio, pair.simultaneous?);
    Some(if is_turned { found } else { inverse(found) })
}

/// The contrast of two arms, and whether the second of the pair is the first of these.
pub(crate) fn pair<'a>(
    cell: &'a CellAnalysis,
    a: &str,
    b: &str,
) -> Option<(&'a PairContrast, bool)> {
    let found = cell
        .pairs
        .iter()
        .find(|pair| [(a, b), (b, a)].contains(&(pair.first.as_str(), pair.second.as_str())))?;
    Some((found, found.second == a))
}

fn inverse((ratio, interval): Multiple) -> Multiple {
    (1.0 / ratio, interval.inverse())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture_findings::findings;

    #[test]
    fn multiples_are_each_others_inverse_whoever_is_the_baseline() {
        let (_, analysis) = findings();
        let cell = &analysis.cells[0];
        for (a, b) in [("send_staged", "sendmsg_iov"), ("sendmsg_iov", "sendmsg_zerocopy")] {
            let there = multiple(cell, a, b).expect("compared");
            let back = multiple(cell, b, a).expect("compared");
            assert!((there.0 * back.0 - 1.0).abs() < 1e-9);
            assert!((there.1.low * back.1.high - 1.0).abs() < 1e-9);
        }
        assert!(multiple(cell, "sendmsg_iov", "memcpy").is_none());
    }
}
