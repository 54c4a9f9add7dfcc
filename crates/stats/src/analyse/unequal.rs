//! Slices of an arm that are not as long as the baseline's. What a slice holds besides its
//! messages weighs more in a short one, so a ratio of the two holds a part of it: c/T of the
//! baseline less c/T of the arm, with c for that time and T for the slice's.

use super::cell::Used;
use crate::interval::median;
use crate::wording::percent;

/// What is above this share of δ is said beside a ratio.
const SAID: f64 = 0.1;

/// What is above this share of δ leaves no room for a verdict.
const TOO_MUCH: f64 = 0.5;

/// What slices of unequal length may do to a ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Unequal {
    /// How far the ratio may be off, as a fraction.
    bias: f64,
    /// Median slice of the arm, and of the baseline beside it, ns.
    slices_ns: [f64; 2],
    /// Time in each that is not its messages', at most, ns.
    overhead_ns: f64,
}

impl Unequal {
    /// Of the trials of an arm and those of its baseline; null where either is not known.
    pub(super) fn of(arm: &Used<'_>, baseline: &Used<'_>) -> Option<Unequal> {
        let own = arm.iter().filter_map(|&(trial, own)| {
            // Isolated trials have no other arm.
            let beside = trial.baseline().map(|baseline| baseline.brief.slice_ns);
            Some((trial.slice_overhead_ns?, own.brief.slice_ns, beside))
        });
        let own: Vec<(f64, u64, Option<u64>)> = own.filter(|(_, own, _)| *own > 0).collect();
        let mut alone: Vec<f64> =
            baseline.iter().map(|(_, arm)| arm.brief.slice_ns as f64).collect();
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
        Some(Unequal {
            slices_ns: [middle(|all| all.1)?, middle(|all| all.2)?],
            bias: mean(&shift).abs(),
            overhead_ns: mean(&|all| all.0),
        })
    }

    /// What is said of it beside the numbers; null where it is too little.
    pub(super) fn remark(&self, delta: f64) -> Option<String> {
        (self.bias > SAID * delta).then(|| self.words())
    }

    /// Why the arm gets no verdict; null where it may have one.
    pub(super) fn unranked(&self, delta: f64) -> Option<String> {
        let words = || format!("{}, more than half of δ = {}", self.words(), percent(delta));
        (self.bias > TOO_MUCH * delta).then(words)
    }

    fn words(&self) -> String {
        let [own, baseline] = self.slices_ns.map(|ns| ns / 1e6);
        format!(
            "slices are not equal in time, {own:.2} ms beside the baseline's {baseline:.2} ms: up \
             to {:.1} µs in each that are not its work may shift the ratio by {}",
            self.overhead_ns / 1e3,
            percent(self.bias)
        )
    }
}
