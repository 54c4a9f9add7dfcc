//! Which arms a run has: the same list for every cell, so that an arm which
//! never ran in one of them still has its row and its place among the
//! contrasts.

use std::collections::BTreeSet;

use iolens_model::arm::{Arm, Role};
use iolens_model::cell::Cell;
use iolens_model::plan::Plan;

use crate::values::TrialValues;

/// The arms of a run: the baseline, then the compared ones in the plan's
/// order, then self-checks, then controls.
///
/// A plan names primitives only; which of them are controls, and whether
/// there are self-checks, is learnt from the trials.
pub(crate) fn arms(plan: &Plan, trials: &[TrialValues]) -> Vec<Arm> {
    let seen = || trials.iter().flat_map(|trial| &trial.arms).map(|arm| &arm.outcome.arm);
    let mut arms: Vec<Arm> = Vec::new();
    for primitive in &plan.primitives {
        let known = seen().find(|arm| arm.label == *primitive);
        let role = if *primitive == plan.baseline { Role::Baseline } else { Role::Compared };
        let planned = || Arm { label: primitive.clone(), primitive: primitive.clone(), role };
        push_new(&mut arms, &known.cloned().unwrap_or_else(planned));
    }
    for arm in seen() {
        push_new(&mut arms, arm);
    }
    arms.sort_by_key(|arm| match arm.role {
        Role::Baseline => 0,
        Role::Compared => 1,
        Role::SelfCheck => 2,
        Role::Control => 3,
    });
    arms
}

fn push_new(arms: &mut Vec<Arm>, arm: &Arm) {
    if arms.iter().all(|known| known.label != arm.label) {
        arms.push(arm.clone());
    }
}

/// Whether an arm is compared with the baseline, and so counts in J.
pub(crate) fn has_contrast(arm: &Arm) -> bool {
    matches!(arm.role, Role::Compared | Role::SelfCheck)
}

/// The cells of a plan, each once.
pub(crate) fn cells(plan: &Plan) -> Vec<Cell> {
    let mut seen = BTreeSet::new();
    plan.cells().into_iter().filter(|cell| seen.insert(cell.clone())).collect()
}
