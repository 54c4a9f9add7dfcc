//! What leaves a comparison without a verdict: limits of the load on a server, and slices that
//! are not as long as the baseline's. What a slice holds besides its messages weighs more in a
//! short one, so a ratio of the two holds a part of it: c/T of the baseline less c/T of the arm,
//! with c for that time and T for the slice's.

use crate::analysis::Limits;
use crate::gates::{Flag, Limit};
use crate::interval::{count, median};
use crate::passes::Used;
use crate::quantity::Quantity;
use crate::remark::{Limited, UnequalSlices, VerdictReason};
use crate::values::ArmValues;

/// What is above this share of δ is said beside a ratio.
const SAID: f64 = 0.1;

/// What is above this share of δ leaves no room for a verdict.
const TOO_MUCH: f64 = 0.5;

/// Of the trials of an arm and those of its baseline; `None` where either is not known.
pub(super) fn unequal_slices(arm: &Used<'_>, baseline: &Used<'_>) -> Option<UnequalSlices> {
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
pub(super) fn by_slices(slices: UnequalSlices, delta: f64) -> Option<VerdictReason> {
    (slices.bias > TOO_MUCH * delta).then_some(VerdictReason::UnequalSlices { slices, delta })
}

/// What bounded the load on an arm in more than half of these trials of it.
pub(super) fn limits(trials: &[&ArmValues]) -> Limits {
    let found = |limit: Limit| {
        let flags = trials.iter().flat_map(|arm| &*arm.flags);
        let found: Vec<f64> = flags.filter_map(|flag| value(flag, limit)).collect();
        let is_rule = found.len() * 2 > trials.len();
        is_rule.then(|| limited(limit, &found, trials.len()))
    };
    Limits {
        client_busy: found(Limit::ClientBusy),
        client_late: found(Limit::ClientLate),
        rate_not_kept: found(Limit::RateNotKept),
    }
}

/// Why an arm gets no verdict on a quantity against the baseline; `None` where nothing
/// keeps it from one.
///
/// What keeps the baseline from being ranked, with which all are compared, keeps them too.
pub(super) fn by_limits(
    quantity: Quantity,
    arm: &Limits,
    baseline: &Limits,
) -> Option<VerdictReason> {
    let reason = |limited, of_baseline| VerdictReason::Limited { limited, of_baseline };
    let own = arm.against(quantity).map(|limited| reason(limited, false));
    own.or_else(|| Some(reason(baseline.against(quantity)?, true)))
}

fn value(flag: &Flag, wanted: Limit) -> Option<f64> {
    match flag {
        Flag::Limit { limit, value } if *limit == wanted => Some(*value),
        _ => None,
    }
}

/// A limit with the worst of its values.
pub(super) fn limited(limit: Limit, values: &[f64], of: usize) -> Limited {
    let most = values.iter().copied().max_by(f64::total_cmp).unwrap_or(f64::NAN);
    let least = values.iter().copied().min_by(f64::total_cmp).unwrap_or(f64::NAN);
    let (trials, of) = (count(values.len()), count(of));
    match limit {
        Limit::ClientBusy => Limited::ClientBusy { busy_share: most, trials, of },
        Limit::ClientLate => Limited::ClientLate { late_p99_ns: most, trials, of },
        Limit::RateNotKept => Limited::RateNotKept { answered_share: least, trials, of },
    }
}
