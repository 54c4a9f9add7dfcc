//! Runs that cannot be compared, and what to do.

use std::fmt;

use iolens_model::arm::Role;
use iolens_model::command_line;
use iolens_model::run::RunHeader;

use super::{Side, common_cells, labels};
use crate::analysis::Analysis;

/// Why two runs have nothing to compare. Prints as what was tried, on what, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// They are of different studies.
    Studies([String; 2]),
    /// Their baselines differ.
    Baselines([String; 2]),
    /// They have no cell in common.
    Cells([String; 2]),
    /// They have no arm in common but the baseline.
    Arms([String; 2]),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, [a, b], advice) = match self {
            Refused::Studies(runs) => (
                "they are of different studies",
                runs,
                "`iolens runs` lists the runs of each study",
            ),
            Refused::Baselines(runs) => (
                "their baselines differ, and a change is that of a ratio to the baseline",
                runs,
                "measure one of them again with `--baseline` of the other",
            ),
            Refused::Cells(runs) => (
                "they have no cell in common",
                runs,
                "measure one of them again with the sizes, threads and settings of the other",
            ),
            Refused::Arms(runs) => (
                "they have no arm in common that is compared with the baseline",
                runs,
                "measure one of them again with `--methods` of the other",
            ),
        };
        write!(f, "cannot compare these runs: {what}\n  {a}\n  {b}\n  {advice}")
    }
}

impl std::error::Error for Refused {}

/// Whether there is anything to compare.
pub(super) fn check(a: &Side<'_>, b: &Side<'_>) -> Result<(), Refused> {
    let (plan_a, plan_b) = (&a.header.plan, &b.header.plan);
    let both = |of: &dyn Fn(&Side<'_>) -> String| {
        [a, b].map(|side| format!("run {}: {}", side.header.id, of(side)))
    };
    if plan_a.study() != plan_b.study() {
        return Err(Refused::Studies(both(&|side| side.header.plan.study().to_string())));
    }
    if plan_a.baseline != plan_b.baseline {
        return Err(Refused::Baselines(both(&|side| side.header.plan.baseline.clone())));
    }
    if common_cells(a, b).is_empty() {
        return Err(Refused::Cells(both(&|side| cells(side.header, side.analysis))));
    }
    let of_b = compared(b.analysis);
    if !compared(a.analysis).iter().any(|label| of_b.contains(label)) {
        return Err(Refused::Arms(both(&|side| compared(side.analysis).join(", "))));
    }
    Ok(())
}

/// Arms of a run that are compared with its baseline.
fn compared(analysis: &Analysis) -> Vec<&str> {
    let is_compared = |label: &&str| {
        let mut arms = analysis.arms();
        arms.any(|arm| arm.arm.label == *label && arm.arm.role == Role::Compared)
    };
    labels(analysis).into_iter().filter(is_compared).collect()
}

/// The first cells of a run, and the command that measured it.
fn cells(header: &RunHeader, analysis: &Analysis) -> String {
    const SHOWN: usize = 3;
    let cells: Vec<String> =
        analysis.cells.iter().take(SHOWN).map(|cell| cell.cell.to_string()).collect();
    let more = match analysis.cells.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let command = match header.command.is_empty() {
        true => String::new(),
        false => format!(" (`{}`)", command_line::join(&header.command)),
    };
    format!("{}{more}{command}", cells.join("; "))
}
