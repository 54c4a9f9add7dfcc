//! Whether the machine became slower or faster while the run lasted, and whether trials resemble
//! those before them.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::{Drift, Neighbours};
use crate::estimate::Interval;
use crate::interval::{Moments, count};
use crate::roster::{Point, Track};
use crate::student::quantile;

/// Trials that a slope takes: fewer do not tell drift from mood.
const TRIALS_MIN: usize = 8;

/// Seconds that the trials must span.
const SPAN_MIN_S: f64 = 60.0;

/// One trial: hours and ln of what is compared per message, both less their means over the
/// trials of the same arm and cell, averaged over the trial's arms.
#[derive(Clone, Copy, Default)]
struct Offset {
    hours: f64,
    ln_time: f64,
    arms: f64,
}

impl Offset {
    fn mean(&self) -> (f64, f64) {
        (self.hours / self.arms, self.ln_time / self.arms)
    }
}

/// The slope of ln time per message (or of what else is compared) over the hours of the
/// run; `None` with too few trials or a run that is too short.
///
/// The arms of a trial share the machine's mood, so a trial is one value.
pub(crate) fn of(tracks: &[Track<'_>], precision: f64) -> Option<Drift> {
    let starts = || tracks.iter().flat_map(Track::started_unix_ns);
    let first_ns = starts().min()?;
    let span_h = hours(starts().max()? - first_ns);
    let trials: Vec<(f64, f64)> = offsets(tracks, first_ns).iter().map(Offset::mean).collect();
    if trials.len() < TRIALS_MIN || span_h * 3600.0 <= SPAN_MIN_S {
        return None;
    }
    let mut cells: Vec<_> = tracks.iter().map(|track| &track.cell).collect();
    cells.dedup();
    // Where each trial has one arm, each arm of a cell has a level of its own.
    let values: usize = tracks.iter().map(Track::len).sum();
    let levels = if values == trials.len() { tracks.len() } else { cells.len() };
    slope(&trials, levels, span_h, precision)
}

/// The slope of trials whose hours and ln are less the means of their levels, by least squares.
/// The freedom left is that of the trials less the levels and the slope.
fn slope(trials: &[(f64, f64)], levels: usize, span_h: f64, precision: f64) -> Option<Drift> {
    let freedom = trials.len().checked_sub(levels + 1)?;
    let sum = |of: fn(&(f64, f64)) -> f64| trials.iter().map(of).sum::<f64>();
    let spread = sum(|(x, _)| x * x);
    let slope = sum(|(x, y)| x * y) / spread;
    let rest: f64 = trials.iter().map(|(x, y)| (y - slope * x).powi(2)).sum();
    let half = quantile(count(freedom), 0.975)? * (rest / freedom as f64 / spread).sqrt();
    if !slope.is_finite() || !half.is_finite() {
        return None;
    }
    let interval = Interval::about(slope, half).map(f64::exp_m1);
    let over_run = (slope * span_h).exp_m1();
    Some(Drift {
        per_hour: slope.exp_m1(),
        interval,
        over_run,
        n: count(trials.len()),
        matters: over_run.abs() > precision && !interval.contains(0.0),
    })
}

fn hours(ns: u64) -> f64 {
    ns as f64 / 3.6e12
}

/// Offsets of each trial of some arms, cell by cell.
fn offsets(tracks: &[Track<'_>], first_ns: u64) -> Vec<Offset> {
    let cells = tracks.chunk_by(|a, b| a.cell == b.cell);
    cells.flat_map(|arms| offsets_in_cell(arms, first_ns)).collect()
}

fn offsets_in_cell(arms: &[Track<'_>], first_ns: u64) -> Vec<Offset> {
    let mut all: Vec<((u32, u32), Offset)> = Vec::new();
    for track in arms {
        let of = |point: Point| {
            let hours = hours(point.started_unix_ns - first_ns);
            let ln_time = point.compared_per_message().ln();
            ((point.pass, point.position), Offset { hours, ln_time, arms: 1.0 })
        };
        let from = all.len();
        all.extend(track.points().map(of));
        let (mean_h, mean_ln) = sum(&all[from..]).mean();
        for (_, one) in &mut all[from..] {
            (one.hours, one.ln_time) = (one.hours - mean_h, one.ln_time - mean_ln);
        }
    }
    all.sort_by_key(|(trial, _)| *trial);
    all.chunk_by(|(a, _), (b, _)| a == b).map(sum).collect()
}

/// Of offsets, each with the pass and the position of its trial.
fn sum(offsets: &[((u32, u32), Offset)]) -> Offset {
    offsets.iter().fold(Offset::default(), |sum, (_, one)| Offset {
        hours: sum.hours + one.hours,
        ln_time: sum.ln_time + one.ln_time,
        arms: sum.arms + one.arms,
    })
}

// Whether the values of a contrast's trials resemble those of the passes before them. An
// interval over trials takes them for independent; where a state of the machine outlasts a
// pass they are not, and there are fewer values than there are trials.

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
pub(crate) fn neighbours(series: &[Series]) -> Option<Neighbours> {
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

/// Values less their mean, with squares that add up to 1, one for each of all passes; 0 where
/// there is none. `None` without spread.
fn scaled(series: &Series, passes: &BTreeSet<u32>) -> Option<Vec<f64>> {
    let values: Vec<f64> = series.values().copied().collect();
    let moments = Moments::of(&values)?;
    let norm = moments.sd? * (values.len() as f64 - 1.0).sqrt();
    let mut own = series.iter().peekable();
    let mut of = |pass: &u32| {
        own.next_if(|(known, _)| *known == pass).map_or(0.0, |(_, v)| (v - moments.mean) / norm)
    };
    (norm > 1e-9).then(|| passes.iter().map(&mut of).collect())
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
    use iolens_model::run::Run;

    use super::*;
    use crate::analyse;
    use crate::fixture::{self, time};
    use crate::remark::Warning;
    use crate::simulation::Normal;

    /// Two cells, a trial every `seconds`, times per message multiplied by
    /// `factor` of the hours since the start; the two arms of a trial stray
    /// together.
    fn run(passes: u32, seconds: u64, factor: impl Fn(f64) -> f64) -> Run {
        let after_ns =
            |pass, position| u64::from((pass - 1) * 2 + position) * seconds * 1_000_000_000;
        let plan = fixture::sized(&["base", "arm"], &[1024, 4096]);
        let mut run = fixture::run_of(plan, passes, |pass, position, cell| {
            let scale = factor(hours(after_ns(pass, position))) * cell.size.0 as f64;
            [time("base", 0.5 * scale), time("arm", 0.4 * scale)]
        });
        run.header.started_unix_ns = 1_700_000_000_000_000_000;
        for trial in &mut run.trials {
            let after_ns = after_ns(trial.pass, trial.position);
            trial.started_unix_ns = run.header.started_unix_ns + after_ns;
        }
        run
    }

    #[test]
    fn a_machine_that_slows_down_steadily_is_measured() {
        // 20 % an hour on the logarithm, 38 minutes: 11.5 %.
        let drift = analyse(&run(12, 100, |h| (0.2f64.ln_1p() * h).exp())).drift.expect("drift");
        assert!((drift.per_hour - 0.2).abs() < 1e-5, "{}", drift.per_hour);
        let span_h = 23.0 * 100.0 / 3600.0;
        assert!((drift.over_run - ((1.2f64).powf(span_h) - 1.0)).abs() < 1e-5);
        assert_eq!(drift.n, 24);
        assert!(drift.matters);
    }

    #[test]
    fn drift_below_the_precision_or_within_its_interval_does_not_matter() {
        let small = analyse(&run(12, 100, |h| 1.0 + 0.02 * h)).drift.expect("drift");
        assert!(!small.matters && small.interval.low > 0.0, "{small:?}");
        let noisy = run(6, 100, |h| if (h * 36.0).round() % 3.0 == 0.0 { 1.3 } else { 1.0 });
        let noisy = analyse(&noisy).drift.expect("drift");
        assert!(!noisy.matters && noisy.interval.contains(0.0), "{noisy:?}");
    }

    #[test]
    fn eight_trials_and_a_minute_are_needed() {
        let check = |passes, seconds, expect| {
            assert_eq!(analyse(&run(passes, seconds, |_| 1.0)).drift.is_some(), expect);
        };
        check(3, 100, false);
        check(4, 100, true);
        check(4, 8, false);
        check(4, 9, true);
    }

    /// The slope of one cell in the closed form of a textbook: hours 0 to 7
    /// by hundredths, ln times 0 0 1 0 0 1 0 1 in percent, Σxy/Σx² = 5/42.
    #[test]
    fn slope_and_interval_follow_the_formula() {
        let lns = [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0];
        let offset = |i: usize| ((i as f64 - 3.5) / 100.0, (lns[i] - 3.0 / 8.0) / 100.0);
        let trials: Vec<(f64, f64)> = (0..8).map(offset).collect();
        let drift = slope(&trials, 1, 0.07, 0.03).expect("drift");
        // x centred −3.5 to 3.5: Σx² = 42, Σxy = −1.5 + 1.5 + 3.5 = 3.5.
        let slope = 3.5 / 42.0;
        assert!((drift.per_hour.ln_1p() - slope).abs() < 1e-9, "{}", drift.per_hour);
        // Σ(y − ȳ)² = 3 − 9/8; the rest is that less 3.5²/42; t₆ = 2.446912.
        let rest: f64 = 3.0 - 9.0 / 8.0 - 3.5 * 3.5 / 42.0;
        let half = 2.446_912 * (rest / 6.0 / 42.0).sqrt();
        assert!((drift.interval.high.ln_1p() - slope - half).abs() < 1e-6);
    }

    /// Forty passes of one cell, the arm slower by `slow` in every second stretch of ten.
    fn slow_run(slow: f64) -> Run {
        let mut normal = Normal::seeded(7);
        fixture::run_of(fixture::plan(&["base", "arm"]), 40, |pass, _, _| {
            let mut ns = || 500.0 * (0.01 * normal.draw()).exp();
            let state = if (pass - 1) / 10 % 2 == 1 { 1.0 + slow } else { 1.0 };
            [time("base", ns()), time("arm", state * ns()), time("base (A/A)", ns())]
        })
    }

    #[test]
    fn states_that_last_widen_every_interval_and_are_said() {
        let [without, with] = [0.0, 0.06].map(|slow| analyse(&slow_run(slow)));
        let said = |analysis: &crate::analysis::Analysis| {
            analysis.warnings.iter().any(|warning| matches!(warning, Warning::Neighbours { .. }))
        };
        assert!(!said(&without) && !without.neighbours.expect("passes").matters);
        let found = with.neighbours.expect("passes");
        assert!(said(&with) && found.matters && found.lag1 > 0.15, "{found:?}");
        // The states are on the intervals of the arm and of the self-check, which is alike in
        // both but for the widening.
        let half = |analysis| fixture::contrast(analysis, "base (A/A)").half_width();
        let wider = half(&with).expect("a width") / half(&without).expect("a width");
        let expect = crate::student::StudentTable::of_neighbours(1, with.neighbours.as_ref());
        let expect = { expect }.multipliers(40).expect("multipliers").pointwise / 2.0227;
        assert!((wider / expect - 1.0).abs() < 0.01 && wider > 1.2, "{wider} {expect}");
    }

    #[test]
    fn few_passes_and_values_without_spread_say_nothing() {
        let series = |n: u32, of: fn(u32) -> f64| (0..n).map(|i| (i, of(i))).collect::<Series>();
        assert_eq!(neighbours(&[]), None);
        assert_eq!(neighbours(&[series(7, f64::from)]), None);
        assert_eq!(neighbours(&[series(20, |_| 1.0)]), None);
        let up = neighbours(&[series(20, f64::from)]).expect("something");
        assert!(up.matters && up.inflation <= 5.0, "{up:?}");
        let swings = neighbours(&[series(20, |i| f64::from(i % 2))]).expect("something");
        assert!(!swings.matters && swings.lag1 < -0.5, "{swings:?}");
    }
}
