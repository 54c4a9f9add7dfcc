//! Two arms of which neither is the baseline, against each other: which of
//! them is cheapest is a claim too, and overlapping intervals do not decide it.

use std::collections::{BTreeMap, BTreeSet};

use iolens_model::arm::Role;

use super::draft::{Draft, Partner, Ratios};
use crate::analysis::PairContrast;
use crate::interval::Moments;
use crate::student::StudentTable;
use crate::values::ArmValues;

/// Pairs of `compared` arms.
pub(super) fn number_of(compared: usize) -> usize {
    compared * compared.saturating_sub(1) / 2
}

/// All pairs of a cell by one quantity. The difference of two typical ln ratios of one
/// trial has what the baseline's noise has in common taken out; arms of different groups
/// share a pass, and each its own trial's baseline.
pub(super) fn of<'a>(
    drafts: &'a [Draft<'a>],
    quantity: impl Fn(&'a Draft<'a>) -> &'a Ratios,
    table: &mut StudentTable,
) -> Vec<PairContrast> {
    let usable: Vec<&Draft<'_>> = drafts
        .iter()
        .filter(|draft| draft.arm.role == Role::Compared && draft.standing.is_comparable())
        .collect();
    let mut pairs = Vec::with_capacity(number_of(usable.len()));
    for (i, first) in usable.iter().enumerate() {
        for second in &usable[i + 1..] {
            let differences = differences(first, second, &quantity);
            pairs.extend(pair(first, second, &differences, table));
        }
    }
    pairs
}

fn differences<'a>(
    first: &'a Draft<'a>,
    second: &'a Draft<'a>,
    quantity: impl Fn(&'a Draft<'a>) -> &'a Ratios,
) -> Vec<f64> {
    let together = |key: fn(Partner) -> Partner| {
        let others = quantity(second).typical.iter().map(|&(partner, ln)| (key(partner), ln));
        let others: BTreeMap<Partner, f64> = others.collect();
        let own = quantity(first).typical.iter();
        let both = own.filter_map(|&(partner, ln)| Some(ln - others.get(&key(partner))?));
        both.collect::<Vec<f64>>()
    };
    let in_a_trial = together(|partner| partner);
    match in_a_trial.is_empty() && asked(first).len() == 1 && asked(first) == asked(second) {
        true => together(Partner::of_pass),
        false => in_a_trial,
    }
}

/// What an arm was asked for, each once: a server a rate, all others as much as they can. Arms
/// that share no trial each have the baseline beside them; through that they are compared where
/// they were asked for the same.
fn asked(draft: &Draft<'_>) -> BTreeSet<Option<u64>> {
    let rate = |arm: &ArmValues| arm.outcome.server.as_ref()?.rate.map(f64::to_bits);
    draft.used.iter().map(|(_, arm)| rate(arm)).collect()
}

fn pair(
    first: &Draft<'_>,
    second: &Draft<'_>,
    differences: &[f64],
    table: &mut StudentTable,
) -> Option<PairContrast> {
    let moments = Moments::of(differences)?;
    Some(PairContrast {
        first: first.arm.label.clone(),
        second: second.arm.label.clone(),
        ratio: moments.mean.exp(),
        n: moments.n,
        simultaneous: moments.interval(table, |t| t.simultaneous),
    })
}
