//! One way alone: a run that compares nothing.

use iolens_model::arm::Role;
use iolens_model::outcome::Status;
use iolens_stats::analysis::{ArmAnalysis, CellAnalysis};

/// Whether nothing is compared in any of these cells.
pub(crate) fn is_alone<'a>(cells: impl IntoIterator<Item = &'a CellAnalysis>) -> bool {
    let compares = |cell: &CellAnalysis| cell.arms.iter().any(|a| a.arm.role == Role::Compared);
    !cells.into_iter().any(compares)
}

/// The arm of a cell that compares nothing, if it has usable numbers.
pub(crate) fn of(cell: &CellAnalysis) -> Option<&ArmAnalysis> {
    let own = |arm: &&ArmAnalysis| arm.arm.role == Role::Baseline && arm.status == Status::Ok;
    is_alone([cell]).then(|| cell.arms.iter().find(own))?.filter(|arm| arm.figures.is_some())
}
