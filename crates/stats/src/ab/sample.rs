//! The values of a contrast, its centre and its intervals, on the logarithm.

use iolens_model::ab::{AbQuantity, whole_ln_ratio};
use statrs::distribution::{Binomial, DiscreteCDF};

use super::links::{Linked, LinkedValue};
use super::trials::AbTrial;
use super::{AbInput, AbUnit};
use crate::estimate::Interval;
use crate::interval::{Moments, count, median};
use crate::student::quantile;

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
                Sample::of_trials(input.trials, &pairs, quantity)
            }
            AbUnit::Round => Sample::of_rounds(input.trials, &[pair(0, 0), pair(1, 1)], quantity),
        }
    }

    /// The hidden copy of an arm against the arm.
    pub(super) fn of_copies(input: &AbInput<'_>, arm: usize, quantity: AbQuantity) -> Sample {
        let pairs = [[(arm, 0), (arm, 1)]];
        match input.unit {
            AbUnit::Trial => Sample::of_trials(input.trials, &pairs, quantity),
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

    fn of_trials(trials: &[AbTrial], pairs: &[[Runner; 2]], quantity: AbQuantity) -> Sample {
        let typical = |trial: &AbTrial| {
            let of_pair = |&pair: &[Runner; 2]| {
                median(&mut ln_ratios(trial, pair, quantity).flatten().collect::<Vec<_>>())
            };
            Some(Moments::of(&pairs.iter().filter_map(of_pair).collect::<Vec<_>>())?.mean)
        };
        let values: Vec<f64> = trials.iter().filter_map(typical).collect();
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
                let (mean, half) = (trimmed.as_ref()?.mean, trimmed.as_ref()?.half_width(error)?);
                Some(Interval { low: mean - half, high: mean + half })
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

// The mean of trials without the outermost.
//
// Of most programs a trial in ten or twenty is far from the others: a process that lies badly in
// memory, a neighbour. In the mean of all, and in its spread, few of them outweigh the rest.

/// One of so many values is left out at each end: of 12 one, of 24 three.
const LEFT_OUT_OF: usize = 8;

/// The mean of the values that are left, and how well it is known (Tukey and McLaughlin, Less
/// vulnerable confidence and significance procedures for location, Sankhya A 25, 1963; Yuen, The
/// two-sample trimmed t for unequal population variances, Biometrika 61, 1974).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TrimmedMean {
    /// Values; at least 1.
    pub(super) n: u32,
    pub(super) mean: f64,
    /// The standard error of the mean; `None` under two values.
    error: Option<f64>,
}

impl TrimmedMean {
    /// Of some values; `None` without any, or where one of them is not a number.
    pub(super) fn of(values: &[f64]) -> Option<TrimmedMean> {
        if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len();
        let (first, last) = (n / LEFT_OUT_OF, n - 1 - n / LEFT_OUT_OF);
        let kept = kept(n) as f64;
        let mean = sorted[first..=last].iter().sum::<f64>() / kept;
        // Winsorized: those that are left out count as the outermost that are not.
        let of_all = sorted.iter().map(|value| value.clamp(sorted[first], sorted[last]));
        let centre = of_all.clone().sum::<f64>() / n as f64;
        let squares: f64 = of_all.map(|value| (value - centre).powi(2)).sum();
        let error = (kept > 1.0).then(|| (squares / (kept * (kept - 1.0))).sqrt());
        Some(TrimmedMean { n: count(n), mean, error })
    }

    /// Degrees of freedom of the spread of so many values; `None` under two.
    pub(super) fn freedom(n: u32) -> Option<f64> {
        let freedom =
            kept(usize::try_from(n).ok()?).checked_sub(1).filter(|&freedom| freedom > 0)?;
        Some(freedom as f64)
    }

    /// So many standard errors of the mean of `n` such values.
    pub(super) fn errors(&self, times: f64, n: u32) -> Option<f64> {
        Some(times * self.error? * (f64::from(self.n) / f64::from(n)).sqrt())
    }

    /// Half the interval that misses with this chance, both sides together.
    pub(super) fn half_width(&self, error: f64) -> Option<f64> {
        self.errors(quantile(TrimmedMean::freedom(self.n)?, 1.0 - error / 2.0)?, self.n)
    }
}

/// How many of so many values are left.
fn kept(n: usize) -> usize {
    n - 2 * (n / LEFT_OUT_OF)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 1 to 11 and 100, 2 to 11 are left, with mean 6.5; winsorized they are 2, 2 to 11, 11,
    /// with the squares 2·4.5² + 82.5 = 123.
    #[test]
    fn the_outermost_weigh_as_the_next() {
        let values: Vec<f64> = (1..12).map(f64::from).chain([100.0]).collect();
        let found = TrimmedMean::of(&values).unwrap();
        assert_eq!((found.n, found.mean), (12, 6.5));
        let expect = (123.0f64 / 90.0).sqrt();
        assert!((found.error.unwrap() - expect).abs() < 1e-12, "{found:?}");
        // t₉ at 0.975 is 2.262 (NIST/SEMATECH e-Handbook, table 1.3.6.7.2).
        assert!((found.half_width(0.05).unwrap() / expect - 2.262).abs() < 1e-3);
        assert_eq!(found.errors(2.0, 48), Some(expect));
    }

    #[test]
    fn of_few_values_all_count() {
        let found = TrimmedMean::of(&[1.0, 2.0, 6.0]).unwrap();
        assert_eq!((found.mean, found.error), (3.0, Some((14.0f64 / 6.0).sqrt())));
        assert_eq!(TrimmedMean::of(&[1.0]).unwrap().half_width(0.05), None);
        assert_eq!(TrimmedMean::of(&[]), None);
        assert_eq!(TrimmedMean::of(&[1.0, f64::NAN]), None);
    }
}
