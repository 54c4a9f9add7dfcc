//! The values of a contrast, its centre and its intervals, on the logarithm.

use iolens_model::ab::{AbQuantity, whole_ln_ratio};
use statrs::distribution::{Binomial, DiscreteCDF};

use super::links::{Linked, LinkedValue};
use super::trials::AbTrial;
use super::trimmed::{TrialValue, TrimmedMean};
use super::{AbInput, AbUnit};
use crate::estimate::Interval;
use crate::interval::{Moments, count, median};

/// An arm, and which of its copies.
type Runner = (usize, usize);

/// What is known of ln(one / other).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    /// Units that have a value.
    pub(super) units: u32,
    pub(super) values: Values,
}

/// The values, and what their centre is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    /// One for each trial: the mean without the outermost.
    Trials(Option<TrimmedMean>),
    /// One for each pair of runs, sorted: the median.
    Pairs(Vec<f64>),
    /// By link: the mean over links.
    Links(Linked),
}

impl Sample {
    /// An arm against the baseline.
    pub(super) fn of_arms(input: &AbInput<'_>, arm: usize, quantity: AbQuantity) -> Sample {
        if input.by_link {
            return Sample::of_links(input, arm, quantity);
        }
        let pair = |base, copy| [(0, base), (arm, copy)];
        match input.unit {
            AbUnit::Trial => {
                let pairs = [pair(0, 0), pair(0, 1), pair(1, 0), pair(1, 1)];
                let lean = |trial: &AbTrial| lean(trial, arm, quantity);
                Sample::of_trials(input.trials, &pairs, quantity, lean)
            }
            AbUnit::Round => Sample::of_rounds(input.trials, &[pair(0, 0), pair(1, 1)], quantity),
        }
    }

    /// The hidden copy of an arm against the arm.
    pub(super) fn of_copies(input: &AbInput<'_>, arm: usize, quantity: AbQuantity) -> Sample {
        let pairs = [[(arm, 0), (arm, 1)]];
        match input.unit {
            AbUnit::Trial => Sample::of_trials(input.trials, &pairs, quantity, |_| None),
            AbUnit::Round => Sample::of_rounds(input.trials, &pairs, quantity),
        }
    }

    fn of_links(input: &AbInput<'_>, arm: usize, quantity: AbQuantity) -> Sample {
        let (mut values, mut units) = (Vec::new(), 0u32);
        for trial in input.trials {
            let Some(links) = links(trial, arm) else { continue };
            let alone = AbInput { trials: std::slice::from_ref(trial), by_link: false, ..*input };
            let own = Sample::of_arms(&alone, arm, quantity);
            units = units.saturating_add(own.units);
            let lns = match own.values {
                Values::Trials(trimmed) => {
                    trimmed.map(|trimmed| trimmed.mean).into_iter().collect()
                }
                Values::Pairs(pairs) => pairs,
                Values::Links(_) => Vec::new(),
            };
            values.extend(lns.into_iter().map(|ln| LinkedValue { links, ln }));
        }
        Sample { units, values: Values::Links(Linked::of(&values, input.unit)) }
    }

    fn of_trials(
        trials: &[AbTrial],
        pairs: &[[Runner; 2]],
        quantity: AbQuantity,
        lean: impl Fn(&AbTrial) -> Option<f64>,
    ) -> Sample {
        let of_trial = |trial: &AbTrial| {
            let lns = pairs.iter().filter_map(|&pair| typical(trial, pair, quantity));
            let ln = Moments::of(&lns.collect::<Vec<_>>())?.mean;
            Some(TrialValue { ln, first: trial.first, lean: lean(trial) })
        };
        let values: Vec<TrialValue> = trials.iter().filter_map(of_trial).collect();
        Sample { units: count(values.len()), values: Values::Trials(TrimmedMean::of(&values)) }
    }

    fn of_rounds(trials: &[AbTrial], pairs: &[[Runner; 2]], quantity: AbQuantity) -> Sample {
        let (mut values, mut units) = (Vec::new(), 0);
        for trial in trials {
            let mut has_value = Vec::new();
            for &pair in pairs {
                for (round, ln) in ln_ratios(trial, pair, quantity).enumerate() {
                    if has_value.len() <= round {
                        has_value.push(false);
                    }
                    has_value[round] |= ln.is_some();
                    values.extend(ln);
                }
            }
            units += has_value.iter().filter(|&&has| has).count();
        }
        values.sort_unstable_by(f64::total_cmp);
        Sample { units: count(units), values: Values::Pairs(values) }
    }

    /// What is known by link; `None` where links are not the unit.
    pub(super) fn linked(&self) -> Option<&Linked> {
        match &self.values {
            Values::Links(linked) => Some(linked),
            Values::Trials(_) | Values::Pairs(_) => None,
        }
    }

    /// The mean, or the median; `None` without values.
    pub(super) fn centre(&self) -> Option<f64> {
        match &self.values {
            Values::Trials(trimmed) => trimmed.map(|trimmed| trimmed.mean),
            Values::Pairs(pairs) => median(&mut pairs.clone()),
            Values::Links(linked) => linked.centre(),
        }
    }

    /// The interval that misses with this chance, both sides together; `None` with too few
    /// values for one.
    pub(super) fn interval(&self, error: f64) -> Option<Interval> {
        match &self.values {
            Values::Trials(trimmed) => {
                let trimmed = trimmed.as_ref()?;
                Some(Interval::about(trimmed.mean, trimmed.half_width(error)?))
            }
            Values::Pairs(pairs) => {
                let rank = usize::try_from(sign_rank(count(pairs.len()), error)?).ok()?;
                let (low, high) = (rank.checked_sub(1)?, pairs.len().checked_sub(rank)?);
                Some(Interval { low: *pairs.get(low)?, high: *pairs.get(high)? })
            }
            Values::Links(linked) => linked.interval(error),
        }
    }
}

/// The links that the baseline and an arm ran in a trial.
fn links(trial: &AbTrial, arm: usize) -> Option<[u32; 2]> {
    let link = |arm: usize| trial.arms.get(arm)?.link;
    Some([link(0)?, link(arm)?])
}

/// The middle over rounds of ln(second / first).
fn typical(trial: &AbTrial, pair: [Runner; 2], quantity: AbQuantity) -> Option<f64> {
    median(&mut ln_ratios(trial, pair, quantity).flatten().collect::<Vec<_>>())
}

/// Half of how much further apart the copies of the baseline lie than those of an arm; `None`
/// where one of them has no copy.
fn lean(trial: &AbTrial, arm: usize, quantity: AbQuantity) -> Option<f64> {
    let apart = |arm| Some(typical(trial, [(arm, 0), (arm, 1)], quantity)?.abs());
    Some((apart(0)? - apart(arm)?) / 2.0)
}

/// By round, ln(second / first) of an operation, `None` where either was not measured.
fn ln_ratios(
    trial: &AbTrial,
    [first, second]: [Runner; 2],
    quantity: AbQuantity,
) -> impl Iterator<Item = Option<f64>> {
    let rounds = move |(arm, copy): Runner| {
        trial.arms.get(arm).and_then(|arm| arm.copies.get(copy)).into_iter().flatten()
    };
    let fixed = |(arm, _): Runner| trial.arms.get(arm).map_or(0.0, |arm| arm.fixed_share);
    let fixed = f64::midpoint(fixed(first), fixed(second));
    rounds(first).zip(rounds(second)).map(move |(first, second)| {
        let ln = second.ln(quantity)? - first.ln(quantity)?;
        Some(whole_ln_ratio(ln, (first.operations / second.operations).ln(), fixed))
    })
}

/// The rank, from 1, of the value from below and from above that bound the exact interval of a
/// median of `n` values: the largest k with 2·P(X ≤ k − 1) ≤ error for X from the binomial
/// distribution of n at one half (sign test). `None` where even the extremes miss more often.
pub(super) fn sign_rank(n: u32, error: f64) -> Option<u32> {
    let below = Binomial::new(0.5, u64::from(n)).ok()?;
    let fits = |k: u32| k == 0 || 2.0 * below.cdf(u64::from(k - 1)) <= error;
    let (mut rank, mut too_large) = (0, n / 2 + 1);
    while too_large - rank > 1 {
        let middle = rank + (too_large - rank) / 2;
        if fits(middle) {
            rank = middle;
        } else {
            too_large = middle;
        }
    }
    (rank > 0).then_some(rank)
}
