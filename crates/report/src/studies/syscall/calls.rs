//! The calls of a run of `syscall` by cost, and its cells by what tells them apart.

use iolens_model::arm::Role;
use iolens_model::call::CallFacts;
use iolens_model::cell::Cell;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Estimate, Interval};

use crate::arms;
use crate::groups::grouped;

/// One call of a cell that has a figure.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) arm: &'a ArmAnalysis,
    pub(crate) facts: Option<&'a CallFacts>,
    /// Time of a call, ns.
    pub(crate) ns: Estimate,
    /// Bytes that it moves.
    bytes: u64,
}

impl Row<'_> {
    /// Time over that of the baseline, with its pointwise interval; the
    /// baseline's is 1.
    pub(crate) fn times(&self) -> Option<(f64, Option<Interval>)> {
        if self.arm.arm.role == Role::Baseline {
            return Some((1.0, None));
        }
        let contrast = self.arm.contrast.as_ref()?;
        Some((1.0 / contrast.ratio, contrast.pointwise.map(Interval::inverse)))
    }

    /// Bytes per second, where a call moves any.
    pub(crate) fn bytes_per_s(&self) -> Option<f64> {
        (self.bytes > 0).then(|| 1e9 / self.ns.value * self.bytes as f64)
    }
}

/// Bytes that a call moves in a cell; `None` where the run does not say.
pub(crate) fn bytes_of(run: &Run, cell: &Cell, call: &str) -> Option<u64> {
    run.header.calls.iter().find(|facts| facts.id == call).map(|facts| facts.bytes_in(cell))
}

/// The calls of a cell that have figures and were not refused, cheapest first, without the A/A
/// arm. By the ratio to the baseline where there is one: arms of different trials met the machine
/// in different moods, and ratios do not hold those.
pub(crate) fn rows<'a>(run: &'a Run, cell: &'a CellAnalysis) -> Vec<Row<'a>> {
    let row = |arm: &'a ArmAnalysis| {
        let ns = time(arm)?;
        let facts = run.header.calls.iter().find(|facts| facts.id == arm.arm.primitive);
        let bytes = facts.map_or(0, |facts| facts.bytes_in(&cell.cell));
        (arm.arm.role != Role::SelfCheck).then_some(Row { arm, facts, ns, bytes })
    };
    let mut rows: Vec<Row> = cell.arms.iter().filter_map(row).collect();
    let of_baseline = |row: &&Row| row.arm.arm.role == Role::Baseline;
    let baseline_ns = rows.iter().find(of_baseline).map(|row| row.ns.value);
    let cost = |row: &Row| {
        let by_ratio = row.times().zip(baseline_ns).map(|((times, _), ns)| times * ns);
        by_ratio.unwrap_or(row.ns.value)
    };
    rows.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    rows
}

/// The cells whose slices are filled, by thread count and block.
pub(crate) fn filled(analysis: &Analysis) -> Vec<&CellAnalysis> {
    let fills = |cell: &&CellAnalysis| cell.cell.syscall().is_some_and(|s| s.in_a_row.is_none());
    let mut cells: Vec<&CellAnalysis> = analysis.cells.iter().filter(fills).collect();
    cells.sort_by_key(|cell| (cell.cell.threads, cell.cell.size));
    cells
}

/// The same where they differ in threads alone, for each block.
pub(crate) fn by_threads(analysis: &Analysis) -> Vec<Vec<&CellAnalysis>> {
    apart(analysis, |cell| cell.size)
}

/// The same where they differ in their blocks alone, for each thread count.
pub(crate) fn by_size(analysis: &Analysis) -> Vec<Vec<&CellAnalysis>> {
    apart(analysis, |cell| cell.threads)
}

/// The same in groups that have a value in common, those of several cells.
fn apart<K: PartialEq>(analysis: &Analysis, common: fn(&Cell) -> K) -> Vec<Vec<&CellAnalysis>> {
    let groups = grouped(filled(analysis).into_iter().map(|cell| (common(&cell.cell), cell)));
    groups.into_iter().map(|(_, cells)| cells).filter(|cells| cells.len() > 1).collect()
}

/// The cell whose slices are filled beside cells of calls in a row.
pub(crate) fn steady(analysis: &Analysis) -> Option<&CellAnalysis> {
    let row = series(analysis).first().map(|(_, cell)| &cell.cell);
    let is_its = |cell: &&CellAnalysis| {
        let Some(row) = row else { return true };
        (cell.cell.threads, cell.cell.size) == (row.threads, row.size)
    };
    filled(analysis).into_iter().find(is_its)
}

/// The cells of so many calls in a row, and how many, rising.
pub(crate) fn series(analysis: &Analysis) -> Vec<(u64, &CellAnalysis)> {
    let counted = |cell| -> Option<(u64, &CellAnalysis)> {
        let cell: &CellAnalysis = cell;
        Some((cell.cell.syscall()?.in_a_row?, cell))
    };
    let mut cells: Vec<(u64, &CellAnalysis)> = analysis.cells.iter().filter_map(counted).collect();
    cells.sort_by_key(|(calls, cell)| (*calls, cell.cell.threads));
    cells
}

/// Time of a call in a cell, ns.
pub(crate) fn time_of(cell: &CellAnalysis, call: &str) -> Option<Estimate> {
    time(arms::of(cell, call)?)
}

/// Time of a call of an arm, ns; `None` where checks refused it.
pub(crate) fn time(arm: &ArmAnalysis) -> Option<Estimate> {
    arm.time().filter(|_| arm.status == Status::Ok)
}

/// The calls of a cell that were measured and refused.
pub(crate) fn invalid(cell: &CellAnalysis) -> impl Iterator<Item = &ArmAnalysis> {
    cell.arms.iter().filter(|arm| arm.status == Status::Invalid)
}
