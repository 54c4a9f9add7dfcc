//! The arms of a cell before they are judged.

use std::collections::BTreeSet;

use iolens_model::arm::Arm;
use iolens_model::cell::Cell;
use iolens_model::plan::Plan;

use crate::contrast::{Measured, Pair};
use crate::passes::{Used, Visits};
use crate::quantity::Quantity;
use crate::roster::Groups;
use crate::student::StudentTable;
use crate::values::{Refusal, TrialValues};

/// The trials of one cell.
pub(super) struct CellVisits<'a> {
    /// Which arms share the primary ones.
    pub(super) groups: Groups,
    /// Those that the plan's contrasts rest on.
    pub(super) primary: Visits<'a>,
    /// Isolated trials beside shared ones; `None` where they are the primary.
    pub(super) isolated: Option<Visits<'a>>,
}

impl<'a> CellVisits<'a> {
    /// Of the trials that the plan's contrasts rest on, and of others.
    pub(super) fn of(
        plan: &Plan,
        cell: &Cell,
        arms: &[Arm],
        (primary, others): (Vec<&'a TrialValues>, Vec<&'a TrialValues>),
        complete: &'a BTreeSet<u32>,
    ) -> CellVisits<'a> {
        // Shared trials of what is measured by itself would answer no question of it.
        let isolated = (!plan.measures_alone(cell)).then(|| Visits::of(others, complete));
        CellVisits {
            groups: Groups::of(arms, &primary),
            primary: Visits::of(primary, complete),
            isolated,
        }
    }
}

/// One arm of the cell before it is judged.
pub(super) struct Draft<'a> {
    pub(super) arm: &'a Arm,
    pub(super) used: Used<'a>,
    pub(super) standing: Standing,
    /// What decides in the cell, of the trials that the plan's contrasts rest on.
    pub(super) primary: Ratios,
    /// CPU time of the same trials; empty where none is compared.
    pub(super) cpu: Ratios,
    /// What the copy of the baseline shows in each group; empty for all other arms.
    pub(super) checks: Vec<Check>,
    /// What decides, of isolated trials beside shared ones.
    pub(super) isolated: Option<Measured>,
    /// How the arm stands in the isolated trials beside the shared ones.
    pub(super) isolated_standing: Option<Standing>,
    /// Those trials of it; none where isolated ones are the primary.
    pub(super) isolated_used: Used<'a>,
}

/// One quantity of an arm against the baseline.
#[derive(Default)]
pub(super) struct Ratios {
    pub(super) measured: Option<Measured>,
    /// Typical ln ratios of the trials behind it, by what pairs them with those of
    /// other arms.
    pub(super) typical: Vec<(Partner, f64)>,
}

impl Ratios {
    pub(super) fn of(pairs: Vec<(Partner, Pair)>, table: &mut StudentTable) -> Ratios {
        let typical = pairs.iter().map(|(partner, pair)| (*partner, pair.typical_ln)).collect();
        let pairs: Vec<Pair> = pairs.into_iter().map(|(_, pair)| pair).collect();
        Ratios { measured: Measured::of(&pairs, table), typical }
    }

    /// Of what meets no other arm.
    pub(super) fn alone(measured: Option<&Measured>) -> Ratios {
        Ratios { measured: measured.cloned(), typical: Vec::new() }
    }
}

/// What pairs the values of two arms: one trial, or in isolated plans one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Partner {
    Trial { pass: u32, position: u32 },
    Pass(u32),
}

impl Partner {
    /// Its pass.
    pub(super) fn pass(self) -> u32 {
        match self {
            Partner::Trial { pass, .. } | Partner::Pass(pass) => pass,
        }
    }

    /// Its pass, whatever the trial.
    pub(super) fn of_pass(self) -> Partner {
        Partner::Pass(self.pass())
    }
}

/// The copy of the baseline in one group: what is measured there is no surer than this.
pub(super) struct Check {
    pub(super) primary: Option<Measured>,
    pub(super) cpu: Option<Measured>,
}

impl Check {
    /// Of a copy's trials in each group.
    pub(super) fn of_groups<'t>(
        cell: &Cell,
        copy: &Used<'t>,
        groups: &Groups,
        mut ratios: impl FnMut(&Used<'t>, Quantity) -> Ratios,
    ) -> Vec<Check> {
        let own = |group: usize| -> Used<'t> {
            copy.iter().copied().filter(|(trial, _)| groups.is_of(trial, group)).collect()
        };
        let mut check = |used: &Used<'t>| Check {
            primary: ratios(used, Quantity::of(cell)).measured,
            cpu: Quantity::cpu_of(cell).and_then(|cpu| ratios(used, cpu).measured),
        };
        (0..groups.count()).map(|group| check(&own(group))).collect()
    }

    /// The widest of those with an interval, else any.
    pub(super) fn widest<'a>(
        checks: &'a [Check],
        of: impl Fn(&'a Check) -> Option<&'a Measured>,
    ) -> Option<&'a Measured> {
        let width = |measured: &&Measured| measured.typical.half_width().unwrap_or(-1.0);
        checks.iter().filter_map(of).max_by(|a, b| width(a).total_cmp(&width(b)))
    }
}

/// How an arm stands after all trials.
pub(super) struct Standing {
    /// Why the numbers, if any, cannot be used.
    pub(super) refusal: Option<Refusal>,
    /// Complete passes in which the arm ran and was refused.
    pub(super) passes_refused: u32,
    /// The latest of their reasons.
    pub(super) latest: Option<Refusal>,
    /// Why the baseline cannot be used, where it is in trials of its own: one that shares the
    /// arm's refuses them with it.
    pub(super) of_baseline: Option<Refusal>,
}

impl Standing {
    /// Whether the arm can be compared with the baseline, as far as trials go.
    pub(super) fn is_comparable(&self) -> bool {
        self.refusal.is_none() && self.of_baseline.is_none()
    }
}
