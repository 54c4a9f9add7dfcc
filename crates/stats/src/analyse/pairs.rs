//! Two arms of which neither is the baseline, against each other: which of
//! them is cheapest is a claim too, and overlapping intervals do not decide it.

use std::collections::BTreeMap;

use iolens_model::arm::Role;

use super::cell::{Draft, Partner, Ratios};
use crate::analysis::PairContrast;
use crate::interval::Moments;
use crate::student::StudentTable;

/// Pairs of `compared` arms.
pub(super) fn number_of(compared: usize) -> usize {
    compared * compared.saturating_sub(1) / 2
}

/// All pairs of a cell by one quantity. The difference of two typical ln ratios of one
/// trial has what the baseline's noise has in common taken out.
pub(super) fn of<'a>(
    drafts: &'a [Draft<'a>],
    quantity: impl Fn(&'a Draft<'a>) -> &'a Ratios,
    table: &mut StudentTable,
) -> Vec<PairContrast> {
    let usable: Vec<&Draft<'_>> = drafts
        .iter()
        .filter(|draft| draft.arm.role == Role::Compared && draft.standing.refusal.is_none())
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
    match in_a_trial.is_empty() && asked(first).is_some() && asked(first) == asked(second) {
        true => together(Partner::of_pass),
        false => in_a_trial,
    }
}

/// What a server was asked for: a rate, or null for as much as it can; nothing where the
/// arm is no server. Servers that cannot stand ready together share no trial, but each
/// has the baseline beside it; through that they are compared where they were asked for
/// the same.
fn asked(draft: &Draft<'_>) -> Option<Option<f64>> {
    let servers = draft.used.iter().map(|(_, arm)| arm.outcome.server.as_ref());
    let rates: Vec<Option<f64>> = servers.map(|s| s.map(|s| s.rate)).collect::<Option<_>>()?;
    let first = *rates.first()?;
    rates.iter().all(|rate| *rate == first).then_some(first)
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
