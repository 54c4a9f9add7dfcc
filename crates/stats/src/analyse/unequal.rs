//! Slices of an arm that are not as long as the baseline's. What a slice holds besides its
//! messages weighs more in a short one, so a ratio of the two holds a part of it: c/T of the
//! baseline less c/T of the arm, with c for that time and T for the slice's.

use super::draft::Used;
use crate::interval::median;
use crate::reason::VerdictReason;
use crate::remark::UnequalSlices;

/// What is above this share of δ is said beside a ratio.
const SAID: f64 = 0.1;

/// What is above this share of δ leaves no room for a verdict.
const TOO_MUCH: f64 = 0.5;

/// Of the trials of an arm and those of its baseline; `None` where either is not known.
pub(super) fn of(arm: &Used<'_>, baseline: &Used<'_>) -> Option<UnequalSlices> {
    let own = arm.iter().filter_map(|&(trial, own)| {
        // Isolated trials have no other arm.
        let beside = trial.baseline().map(|baseline| baseline.brief.slice_ns);
        Some((trial.slice_overhead_ns?, own.brief.slice_ns, beside))
    });
    let own: Vec<(f64, u64, Option<u64>)> = own.filter(|(_, own, _)| *own > 0).collect();
    let mut alone: Vec<f64> = baseline.iter().map(|(_, arm)| arm.brief.slice_ns as f64).collect();
    let alone_ns = median(&mut alone).filter(|&ns| ns > 0.0);
    let of_trial = |&(overhead, own, beside): &(f64, u64, Option<u64>)| {
        let beside = beside.filter(|&ns| ns > 0).map(|ns| ns as f64).or(alone_ns)?;
        Some((overhead, own as f64, beside))
    };
    let all: Vec<(f64, f64, f64)> = own.iter().map(of_trial).collect::<Option<_>>()?;
    let shift = |&(overhead, own, beside): &(f64, f64, f64)| overhead / beside - overhead / own;
    let mean = |value: &dyn Fn(&(f64, f64, f64)) -> f64| {
        all.iter().map(value).sum::<f64>() / all.len() as f64
    };
    let middle = |value: fn(&(f64, f64, f64)) -> f64| {
        median(&mut all.iter().map(value).collect::<Vec<f64>>())
    };
    Some(UnequalSlices {
        arm_ns: middle(|all| all.1)?,
        baseline_ns: middle(|all| all.2)?,
        overhead_ns: mean(&|all| all.0),
        bias: mean(&shift).abs(),
    })
}

/// What is said beside the numbers; `None` where it is too little.
pub(super) fn remark(slices: UnequalSlices, delta: f64) -> Option<UnequalSlices> {
    (slices.bias > SAID * delta).then_some(slices)
}

/// Why an arm gets no verdict; `None` where it may have one.
pub(super) fn unranked(slices: UnequalSlices, delta: f64) -> Option<VerdictReason> {
    (slices.bias > TOO_MUCH * delta).then_some(VerdictReason::UnequalSlices { slices, delta })
}
