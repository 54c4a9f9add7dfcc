//! The study `write`: what it takes that a block is on the device before the next one.

pub(crate) mod screen;
#[cfg(test)]
pub(crate) mod tests;

use iolens_model::arm::Role;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{ArmAnalysis, CellAnalysis, Estimate, Interval};

use crate::arms;
use crate::studies::files;

/// Whether an engine brings each block to the device, as the run knew it.
pub(crate) fn is_durable(run: &Run, engine: &str) -> bool {
    files::engine(run, engine).is_some_and(|facts| facts.is_durable)
}

/// The durable arms of a cell that have usable numbers.
pub(crate) fn durable<'a>(run: &Run, cell: &'a CellAnalysis) -> Vec<&'a ArmAnalysis> {
    let own = |arm: &&ArmAnalysis| {
        let has_numbers = arm.status == Status::Ok && arm.figures.is_some();
        has_numbers && is_durable(run, &arm.arm.primitive)
    };
    arms::methods(cell).filter(own).collect()
}

/// Whether the baseline leaves a block to the kernel, so that durable arms are compared with it.
pub(crate) fn is_lazy(run: &Run, cell: &CellAnalysis) -> bool {
    let baseline = cell.arms.iter().find(|arm| arm.arm.role == Role::Baseline);
    baseline.is_some_and(|arm| !is_durable(run, &arm.arm.primitive) && arm.status == Status::Ok)
}

/// The time of a block over the baseline's, of slices that alternated.
pub(crate) fn over_baseline(arm: &ArmAnalysis) -> Option<Estimate> {
    let contrast = arm.contrast.as_ref().filter(|contrast| contrast.ratio > 0.0)?;
    let positive = contrast.simultaneous.filter(|interval| interval.low > 0.0);
    let interval = positive.map(Interval::inverse);
    Some(Estimate { value: 1.0 / contrast.ratio, interval, n: contrast.n })
}

/// The time of a durable engine over that of the one which promises less, where both were
/// measured.
pub(crate) fn over_next<'a>(
    run: &Run,
    cell: &'a CellAnalysis,
    arm: &ArmAnalysis,
) -> Option<(&'a str, Estimate)> {
    const LESS: [(&str, &str); 2] =
        [("write_fsync", "write_fdatasync"), ("write_fdatasync", "write_dsync")];
    let (_, less) = LESS.iter().find(|(more, _)| *more == arm.arm.primitive)?;
    let other = durable(run, cell).into_iter().find(|other| other.arm.primitive == *less)?;
    Some((&other.arm.label, over(cell, &arm.arm.label, &other.arm.label)?))
}

/// The time of one arm over that of another, of what they were measured in together: totals of
/// each alone hold how fast the machine was at that time. Its interval is the simultaneous one
/// of pairs; `None` where they never met.
fn over(cell: &CellAnalysis, slow: &str, fast: &str) -> Option<Estimate> {
    let (pair, is_turned) = arms::pair(cell, slow, fast)?;
    let value = if is_turned { pair.ratio } else { 1.0 / pair.ratio };
    Some(Estimate { value, interval: pair.interval_of(fast), n: pair.n })
}
