//! What could be seen: how far beyond its bound a change must lie to be called SLOWER in nine of
//! ten runs.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal};

use super::links::Linked;
use super::sample::{Sample, Values, sign_rank};
use super::trimmed::TrimmedMean;
use crate::interval::count;
use crate::student::quantile;

/// The share of runs in which the change is seen.
const CHANCE: f64 = 0.9;

/// The normal quantile of [`CHANCE`].
const CHANCE_Z: f64 = 1.281_551_565_545;

/// Quartiles: closer to the centre of a sample there are too few values to tell how far apart
/// they lie.
const QUARTILE: f64 = 0.25;

/// How far the logarithm of a change must lie beyond the bound, for so many units and an interval
/// that misses with this chance; `None` where so many have no interval.
pub(super) fn reach(sample: &Sample, units: u32, error: f64) -> Option<f64> {
    match &sample.values {
        Values::Trials(trimmed) => reach_of_mean(trimmed.as_ref()?, units, error),
        Values::Pairs(sorted) => {
            let per_unit = sorted.len() as f64 / f64::from(sample.units);
            // As a cast saturates: no run has so many.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let pairs = (per_unit * f64::from(units)).round() as u32;
            reach_of_median(sorted, pairs, error)
        }
        Values::Links(linked) => {
            reach_of_links(linked, f64::from(units) / f64::from(sample.units), error)
        }
    }
}

/// The textbook's (t + 1.28)·s/√n, where the spreads of the run that states it and of the run
/// that is judged are both estimated.
///
/// With λ·s/√n stated, the other run's lower end is beyond the bound where
/// Z + λ·s₁/σ − t·s₂/σ > 0, and s/σ has about mean 1 − 1/(4ν) and variance 1/(2ν). For a chance
/// of nine in ten (λ − t)·(1 − 1/(4ν)) = 1.28·√(1 + λ²/(2ν₁) + t²/(2ν₂)), a quadratic in λ.
/// With 12 trials at an early look λ is 7.1 in the place of 5.7; simulated, 85 % of such changes
/// are seen, and 70 % of the textbook's. With many trials both agree.
///
/// What was taken from this run's spread stays in that of some others: those are taken not to see
/// the change, so that more of the rest must, and z is larger than 1.28.
fn reach_of_mean(trimmed: &TrimmedMean, units: u32, error: f64) -> Option<f64> {
    let freedom = [trimmed.freedom(trimmed.n)?, trimmed.freedom(units)?];
    let z = Normal::standard().inverse_cdf(CHANCE / trimmed.chance_of_alike());
    let reach = trimmed.errors(errors_beyond(z, freedom, error)?, units)?;
    Some(reach).filter(|reach| reach.is_finite())
}

/// λ, with the degrees of freedom of the run that states it and of the one that is judged.
fn errors_beyond(z: f64, [known, freedom]: [f64; 2], error: f64) -> Option<f64> {
    let t = quantile(freedom, 1.0 - error / 2.0)?;
    let (mean, z2) = (1.0 - 1.0 / (4.0 * known), z * z);
    let of_square = mean * mean - z2 / (2.0 * known);
    let half = t * mean * mean;
    let rest = half * t - z2 * (1.0 + t * t / (2.0 * freedom));
    let lambda = (half + (half * half - of_square * rest).sqrt()) / of_square;
    (of_square > 0.0).then_some(lambda)
}

/// The same where the links are the unit, with so many times as many trials of them: those leave
/// the degrees of freedom as they are.
fn reach_of_links(linked: &Linked, times: f64, error: f64) -> Option<f64> {
    let freedom = linked.spread()?.freedom;
    let variance =
        if times == 1.0 { linked.spread()?.variance } else { linked.variance_after(times)? };
    let reach = errors_beyond(CHANCE_Z, [freedom; 2], error)? * variance.sqrt();
    Some(reach).filter(|reach| reach.is_finite())
}

/// The same for the sign test. An interval from the k-th of m values lies beyond the bound where
/// at most k − 1 are within it. A value is within it with the chance p that the median's distance
/// to the bound leaves, so what is asked is the largest p with P(X ≤ k − 1) ≥ 0.9 for X from the
/// binomial distribution of m at p; the distance is then that from the p-th quantile to the
/// median.
///
/// It is read off the sample, as half the distance between the p-th quantiles from below and from
/// above, since without a difference ratios are as likely inverted. Where p is beyond the
/// quartiles (many more pairs in the budget than there are), the distance of the quartiles is
/// scaled as for normal values; those with heavier tails lie closer together in the middle, so
/// that the line then rather says too much than too little. Simulated with bursts of noise, 83 to
/// 90 % are seen.
fn reach_of_median(sorted: &[f64], pairs: u32, error: f64) -> Option<f64> {
    let within = share_within(pairs, sign_rank(pairs, error)?)?;
    let share = within.min(QUARTILE);
    let half = (at(sorted, 1.0 - share)? - at(sorted, share)?) / 2.0;
    let normal = Normal::standard();
    let scale = normal.inverse_cdf(within) / normal.inverse_cdf(share);
    Some(half * scale).filter(|reach| reach.is_finite())
}

/// The largest p with P(X ≤ k − 1) ≥ 0.9 of n.
fn share_within(n: u32, k: u32) -> Option<f64> {
    let below = u64::from(k.checked_sub(1)?);
    let (mut enough, mut too_much) = (0.0, 0.5);
    for _ in 0..40 {
        let middle = f64::midpoint(enough, too_much);
        if Binomial::new(middle, u64::from(n)).ok()?.cdf(below) >= CHANCE {
            enough = middle;
        } else {
            too_much = middle;
        }
    }
    (enough > 0.0).then_some(enough)
}

/// Half the interval that misses with this chance, of another run of so many units; `None` where
/// so many have none. Nine in ten such runs have a narrower one: of two spreads estimated with ν
/// and ν′ degrees of freedom, the variance of the ratio is about 1/(2ν) + 1/(2ν′). The width of a
/// sign test's interval is taken as it is.
pub(super) fn half_elsewhere(sample: &Sample, units: u32, error: f64) -> Option<f64> {
    match &sample.values {
        Values::Trials(trimmed) => {
            let trimmed = trimmed.as_ref()?;
            let (known, freedom) = (trimmed.freedom(trimmed.n)?, trimmed.freedom(units)?);
            let doubt = 1.0 + CHANCE_Z * (0.5 / known + 0.5 / freedom).sqrt();
            trimmed.errors(doubt * quantile(freedom, 1.0 - error / 2.0)?, units)
        }
        Values::Pairs(_) | Values::Links(_) => {
            let narrowed = (f64::from(sample.units) / f64::from(units)).sqrt();
            let interval = sample.interval(error)?;
            Some(narrowed * (interval.high - interval.low) / 2.0)
        }
    }
}

/// The quantile of sorted values, between neighbours in proportion.
fn at(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * f64::from(count(sorted.len().checked_sub(1)?));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "share is 0 to 1")]
    let (below, rest) = (place as usize, place.fract());
    let low = *sorted.get(below)?;
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    Some(low + rest * (high - low))
}
