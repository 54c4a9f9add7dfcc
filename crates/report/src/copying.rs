//! The study `copy`: what its sentences, tables and figures have in common.

mod sentences;
#[cfg(test)]
pub(crate) mod tests;

use iolens_model::copy::ProgramStart;
use iolens_model::run::{Run, RunHeader};
use iolens_stats::analysis::Told;

pub(crate) use self::sentences::sentences;

/// What the column of starts means.
pub(crate) const START_READ: &str = "Start-up: the median time of a program with an empty file, \
    from the call that starts it to the end of waiting for it, measured apart and never subtracted.";

/// How the table is read.
pub(crate) fn reading(run: &Run) -> String {
    let baseline = &run.header.plan.baseline;
    format!(
        "ratio: time per copy of {baseline} over the arm's; above 1 the arm is faster. start-up: a \
         program with an empty file, measured apart and never subtracted."
    )
}

/// Whether an arm is a program, whose calls nobody counts.
pub(crate) fn is_program(header: &RunHeader, id: &str) -> bool {
    header.engines.iter().any(|facts| facts.id == id && facts.program.is_some())
}

/// What starting a program took, over all trials of the run: the median of their
/// medians, the shortest and the longest; null for engines.
pub(crate) fn start_of(header: &RunHeader, told: &Told, id: &str) -> Option<ProgramStart> {
    let all = told.starts.get(id).filter(|_| is_program(header, id))?;
    let mut medians: Vec<u64> = all.iter().map(|start| start.median_ns).collect();
    medians.sort_unstable();
    Some(ProgramStart {
        arm: 0,
        runs: all.iter().map(|start| start.runs).sum(),
        median_ns: *medians.get(medians.len() / 2)?,
        min_ns: all.iter().map(|start| start.min_ns).min()?,
        max_ns: all.iter().map(|start| start.max_ns).max()?,
    })
}

/// Arms that move no bytes, as the run knew them.
pub(crate) fn is_control(arm: &iolens_stats::analysis::ArmAnalysis) -> bool {
    arm.arm.role == iolens_model::arm::Role::Control
}
