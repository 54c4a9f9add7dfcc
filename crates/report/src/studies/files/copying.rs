//! The study `copy`: what its sections and exports have in common.

#[cfg(test)]
pub(crate) mod tests;

use iolens_model::copy::ProgramStart;
use iolens_model::file::EngineFacts;
use iolens_model::run::RunHeader;
use iolens_stats::analysis::Told;

/// What starting a program took, over all trials of the run: the median of their
/// medians, the shortest and the longest; `None` for engines.
pub(crate) fn start_of(header: &RunHeader, told: &Told, id: &str) -> Option<ProgramStart> {
    let is_program = |facts: &EngineFacts| facts.id == id && facts.program.is_some();
    let all = told.starts.get(id).filter(|_| header.engines.iter().any(is_program))?;
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
