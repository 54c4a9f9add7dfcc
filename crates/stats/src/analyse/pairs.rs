//! Two arms of which neither is the baseline, against each other: which of
//! them is cheapest is a claim too, and overlapping intervals do not decide it.

use std::collections::BTreeMap;

use iolens_model::arm::Role;

use super::cell::Draft;
use crate::analysis::PairContrast;
use crate::interval::Moments;
use crate::student::StudentTable;

/// Pairs of `compared` arms.
pub(super) fn number_of(compared: usize) -> usize {
    compared * compared.saturating_sub(1) / 2
}

/// All pairs of a cell. The difference of two typical ln ratios of one trial
/// has what the baseline's noise has in common taken out.
pub(super) fn of(drafts: &[Draft<'_>], table: &mut StudentTable) -> Vec<PairContrast> {
    let usable: Vec<&Draft<'_>> = drafts
        .iter()
        .filter(|draft| draft.arm.role == Role::Compared && draft.standing.refusal.is_none())
        .collect();
    let mut pairs = Vec::with_capacity(number_of(usable.len()));
    for (i, first) in usable.iter().enumerate() {
        for second in &usable[i + 1..] {
            pairs.extend(pair(first, second, table));
        }
    }
    pairs
}

fn pair(first: &Draft<'_>, second: &Draft<'_>, table: &mut StudentTable) -> Option<PairContrast> {
    let others: BTreeMap<_, f64> = second.typical.iter().copied().collect();
    let differences: Vec<f64> =
        first.typical.iter().filter_map(|(trial, ln)| Some(ln - others.get(trial)?)).collect();
    let moments = Moments::of(&differences)?;
    Some(PairContrast {
        first: first.arm.label.clone(),
        second: second.arm.label.clone(),
        ratio: moments.mean.exp(),
        n: moments.n,
        simultaneous: moments.interval(table, |t| t.simultaneous),
    })
}
