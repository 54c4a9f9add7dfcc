//! Runs that cannot be compared, and what to do.

use std::fmt;

use iolens_model::arm::Role;
use iolens_model::command_line;
use iolens_model::run::RunHeader;

use super::{Side, common_cells, labels};
use crate::analysis::Analysis;

/// Why two runs have nothing to compare. Prints as what was tried, on what, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    what: &'static str,
    advice: &'static str,
    runs: [String; 2],
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { what, advice, runs: [a, b] } = self;
        write!(f, "cannot compare these runs: {what}\n  {a}\n  {b}\n  {advice}")
    }
}

impl std::error::Error for Refused {}

/// Whether there is anything to compare.
pub(super) fn check(a: &Side<'_>, b: &Side<'_>) -> Result<(), Refused> {
    let (plan_a, plan_b) = (&a.header.plan, &b.header.plan);
    let refused = |what, advice, of: &dyn Fn(&Side<'_>) -> String| {
        let runs = [a, b].map(|side| format!("run {}: {}", side.header.id, of(side)));
        Err(Refused { what, advice, runs })
    };
    if plan_a.study() != plan_b.study() {
        return refused(
            "they are of different studies",
            "`iolens runs` lists the runs of each study",
            &|side| side.header.plan.study().to_string(),
        );
    }
    if plan_a.baseline != plan_b.baseline {
        return refused(
            "their baselines differ, and a change is that of a ratio to the baseline",
            "measure one of them again with `--baseline` of the other",
            &|side| side.header.plan.baseline.clone(),
        );
    }
    if common_cells(a, b).is_empty() {
        return refused(
            "they have no setting in common",
            "measure one of them again with the sizes, threads and settings of the other",
            &|side| cells(side.header, side.analysis),
        );
    }
    let of_b = compared(b.analysis);
    if !compared(a.analysis).iter().any(|label| of_b.contains(label)) {
        return refused(
            "they have no arm in common that is compared with the baseline",
            "measure one of them again with `--methods` of the other",
            &|side| compared(side.analysis).join(", "),
        );
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
