//! Whether the values of a contrast's trials resemble those of the passes before them. An
//! interval over trials takes them for independent; where a state of the machine outlasts a
//! pass they are not, and there are fewer values than there are trials.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::Neighbours;
use crate::interval::{Moments, count};

/// Passes from which on anything can be told.
const PASSES_MIN: usize = 8;

/// Inflation from which on it matters: that of values of which each has 0.15 of the one
/// before, (1 + 0.15) / (1 - 0.15).
const INFLATION_MIN: f64 = 1.35;

/// Weights of the lags that decide whether it is chance: values that have a share of the one
/// before show it at the first, a state that lasts shows at all.
const WEIGHTS: [f64; 3] = [1.0, 2.0 / 3.0, 1.0 / 3.0];

/// Standard deviations beyond chance, one-sided 95 %.
const BEYOND: f64 = 1.645;

/// Lags that are looked at, for what chance does; beyond them a run has enough of them.
const LAGS_MAX: usize = 100;

/// The values of one contrast, by pass.
pub(crate) type Series = BTreeMap<u32, f64>;

/// What the values of all contrasts of a run say together; `None` with too few passes.
///
/// Each contrast is scaled to the same spread, so that none decides alone. Contrasts of one
/// cell share their baseline, and those of one pass the machine's mood, so that many of them
/// may tell no more than a few: how far chance can take their mean is therefore taken from
/// what all pairs of passes have in common, neighbours or not.
pub(crate) fn of(series: &[Series]) -> Option<Neighbours> {
    let series: Vec<&Series> = series.iter().filter(|one| one.len() >= PASSES_MIN).collect();
    let passes: BTreeSet<u32> = series.iter().flat_map(|one| one.keys().copied()).collect();
    let scaled: Vec<Vec<f64>> = series.iter().filter_map(|one| scaled(one, &passes)).collect();
    if scaled.is_empty() {
        return None;
    }
    let lags = Lags::of(&scaled, passes.len());
    let inflation = lags.inflation();
    Some(Neighbours {
        lag1: lags.correlation(1, inflation),
        inflation,
        passes: count(passes.len()),
        contrasts: count(scaled.len()),
        matters: inflation > INFLATION_MIN && lags.beyond_chance() > BEYOND,
    })
}

/// Values less their mean, with squares that add up to 1, one for each pass; 0 where there is
/// none. `None` without spread.
fn scaled(series: &Series, passes: &BTreeSet<u32>) -> Option<Vec<f64>> {
    let values: Vec<f64> = series.values().copied().collect();
    let moments = Moments::of(&values)?;
    let norm = moments.sd? * (values.len() as f64 - 1.0).sqrt();
    let of = |pass: &u32| series.get(pass).map_or(0.0, |value| (value - moments.mean) / norm);
    (norm > 1e-9).then(|| passes.iter().map(of).collect())
}

/// What passes have in common with those so many before them, summed over all passes and in
/// the mean over contrasts; the squares of the passes themselves add up to 1.
struct Lags {
    passes: usize,
    /// At lag 1, 2, ….
    sums: Vec<f64>,
    /// Variance of what two passes have in common.
    variance: f64,
}

impl Lags {
    fn of(scaled: &[Vec<f64>], passes: usize) -> Lags {
        let common = |a: usize, b: usize| {
            scaled.iter().map(|one| one[a] * one[b]).sum::<f64>() / scaled.len() as f64
        };
        let (mut sums, mut squares, mut pairs) = (Vec::new(), 0.0, 0.0);
        for lag in 1..passes.min(LAGS_MAX) {
            let each: Vec<f64> = (lag..passes).map(|at| common(at - lag, at)).collect();
            sums.push(each.iter().sum());
            squares += each.iter().map(|value| value * value).sum::<f64>();
            pairs += each.len() as f64;
        }
        let lags = Lags { passes, sums, variance: 0.0 };
        Lags { variance: squares / pairs - lags.by_chance().powi(2), ..lags }
    }

    /// What two passes have in common on average: all of them add up to nothing, being
    /// deviations from a mean, and each with itself to 1.
    fn by_chance(&self) -> f64 {
        let n = self.passes as f64;
        -1.0 / (n * (n - 1.0))
    }

    /// The autocorrelation at a lag, given the inflation: a mean over few values takes a
    /// part of what they have in common away.
    fn correlation(&self, lag: usize, inflation: f64) -> f64 {
        let (n, sum) = (self.passes as f64, self.sums[lag - 1]);
        sum * n / (n - lag as f64) * (1.0 - inflation / n) + inflation / n
    }

    /// The lags up to which pairs of autocorrelations are above 0: the initial positive
    /// sequence (Geyer, Practical Markov Chain Monte Carlo, 1992), at most a quarter of the
    /// passes.
    fn last(&self) -> usize {
        let most = (self.passes / 4).min(self.sums.len());
        let pair = |lag: &usize| self.correlation(*lag, 1.0) + self.correlation(lag + 1, 1.0);
        let pairs = (2..most).step_by(2).take_while(|lag| pair(lag) > 0.0);
        1 + 2 * pairs.count()
    }

    /// The variance of a mean over the passes, over that of a mean of independent values.
    fn inflation(&self) -> f64 {
        /// The inflation is in the correction of what it follows from; that converges fast.
        const ROUNDS: u32 = 20;
        let n = self.passes as f64;
        let last = self.last();
        let next = |inflation: f64| {
            let share =
                |lag: usize| 2.0 * (1.0 - lag as f64 / n) * self.correlation(lag, inflation);
            (1.0 + (1..=last).map(share).sum::<f64>()).clamp(1.0, n / 4.0)
        };
        (0..ROUNDS).fold(1.0, |inflation, _| next(inflation))
    }

    /// By how many standard deviations of chance the weighted lags are above what chance
    /// gives on average.
    fn beyond_chance(&self) -> f64 {
        let weighted = || (1usize..).zip(WEIGHTS).zip(&self.sums);
        let pairs = |lag: usize| (self.passes - lag) as f64;
        let excess: f64 =
            weighted().map(|((lag, w), sum)| w * (sum - pairs(lag) * self.by_chance())).sum();
        let variance: f64 =
            weighted().map(|((lag, w), _)| w * w * pairs(lag) * self.variance).sum();
        excess / variance.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use iolens_model::arm::Role;
    use iolens_model::run::Run;

    use super::*;
    use crate::analyse;
    use crate::fixture::{self, ArmTime};
    use crate::remark::Warning;
    use crate::simulation::Normal;

    /// Forty passes of one cell, the arm slower by `slow` in every second stretch of ten.
    fn run(slow: f64) -> Run {
        let mut normal = Normal::seeded(7);
        let mut run = fixture::run(fixture::plan(&["base", "arm"]));
        let cell = run.header.plan.cells().remove(0);
        for pass in 0..40 {
            let mut time = || 500.0 * (0.01 * normal.draw()).exp();
            let state = if pass / 10 % 2 == 1 { 1.0 + slow } else { 1.0 };
            let arms = [
                ArmTime::new("base", Role::Baseline, &[time(); 4]),
                ArmTime::new("arm", Role::Compared, &[state * time(); 4]),
                ArmTime::new("base (A/A)", Role::SelfCheck, &[time(); 4]),
            ];
            run.trials.push(fixture::trial(pass + 1, &cell, &arms));
        }
        run
    }

    #[test]
    fn states_that_last_widen_every_interval_and_are_said() {
        let [without, with] = [0.0, 0.06].map(|slow| analyse(&run(slow)));
        let said = |analysis: &crate::analysis::Analysis| {
            analysis.warnings.iter().any(|warning| matches!(warning, Warning::Neighbours { .. }))
        };
        assert!(!said(&without) && !without.neighbours.expect("passes").matters);
        let found = with.neighbours.expect("passes");
        assert!(said(&with) && found.matters && found.lag1 > 0.15, "{found:?}");
        // The states are on the intervals of the arm and of the self-check, which is alike in
        // both but for the widening.
        let half = |analysis: &crate::analysis::Analysis, label: &str| {
            let arm = analysis.arms().find(|arm| arm.arm.label == label);
            arm.and_then(|arm| arm.contrast.as_ref()?.half_width()).expect("a width")
        };
        let wider = half(&with, "base (A/A)") / half(&without, "base (A/A)");
        let expect = crate::student::StudentTable::of_neighbours(1, with.neighbours.as_ref());
        let expect = { expect }.multipliers(40).expect("multipliers").pointwise / 2.0227;
        assert!((wider / expect - 1.0).abs() < 0.01 && wider > 1.2, "{wider} {expect}");
    }

    #[test]
    fn few_passes_and_values_without_spread_say_nothing() {
        let series = |n: u32, of: fn(u32) -> f64| (0..n).map(|i| (i, of(i))).collect::<Series>();
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[series(7, f64::from)]), None);
        assert_eq!(of(&[series(20, |_| 1.0)]), None);
        let up = of(&[series(20, f64::from)]).expect("something");
        assert!(up.matters && up.inflation <= 5.0, "{up:?}");
        let swings = of(&[series(20, |i| f64::from(i % 2))]).expect("something");
        assert!(!swings.matters && swings.lag1 < -0.5, "{swings:?}");
    }
}
