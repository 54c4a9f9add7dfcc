//! Whether the machine became slower or faster while the run lasted.

use std::collections::BTreeMap;

use crate::analysis::Drift;
use crate::estimate::Interval;
use crate::interval::count;
use crate::student::quantile;
use crate::tracks::{Point, Track};

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
    fn add(&mut self, hours: f64, ln_time: f64) {
        self.hours += hours;
        self.ln_time += ln_time;
        self.arms += 1.0;
    }

    fn mean(&self) -> (f64, f64) {
        (self.hours / self.arms, self.ln_time / self.arms)
    }
}

/// The slope of ln time per message (or of what else is compared) over the hours of the
/// run, by least squares with a level of its own for each arm in each cell; `None` with too
/// few trials or a run that is too short.
///
/// The arms of a trial share the machine's mood, so a trial is one value, and
/// the freedom left is that of the trials less one level for each cell and
/// the slope.
pub(crate) fn of(tracks: &[Track], precision: f64) -> Option<Drift> {
    let starts = || tracks.iter().flat_map(|track| &track.points).map(|p| p.started_unix_ns);
    let first_ns = starts().min()?;
    let span_h = hours(starts().max()? - first_ns);
    let trials: Vec<(f64, f64)> = offsets(tracks, first_ns).values().map(Offset::mean).collect();
    if trials.len() < TRIALS_MIN || span_h * 3600.0 <= SPAN_MIN_S {
        return None;
    }
    let mut cells: Vec<_> = tracks.iter().map(|track| &track.cell).collect();
    cells.dedup();
    // Where each trial has one arm, each arm of a cell has a level of its own.
    let values: usize = tracks.iter().map(|track| track.points.len()).sum();
    let levels = if values == trials.len() { tracks.len() } else { cells.len() };
    let freedom = trials.len().checked_sub(levels + 1)?;
    let sum = |of: fn(&(f64, f64)) -> f64| trials.iter().map(of).sum::<f64>();
    let spread = sum(|(x, _)| x * x);
    let slope = sum(|(x, y)| x * y) / spread;
    let rest: f64 = trials.iter().map(|(x, y)| (y - slope * x).powi(2)).sum();
    let half = quantile(count(freedom), 0.975)? * (rest / freedom as f64 / spread).sqrt();
    if !slope.is_finite() || !half.is_finite() {
        return None;
    }
    let interval = Interval { low: (slope - half).exp_m1(), high: (slope + half).exp_m1() };
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

/// Offsets by trial, which its pass and position name.
fn offsets(tracks: &[Track], first_ns: u64) -> BTreeMap<(u32, u32), Offset> {
    let mut trials: BTreeMap<(u32, u32), Offset> = BTreeMap::new();
    let at = |point: &Point| hours(point.started_unix_ns - first_ns);
    let ln = |point: &Point| point.compared_per_message().ln();
    for track in tracks {
        let n = track.points.len() as f64;
        let mean_h = track.points.iter().map(at).sum::<f64>() / n;
        let mean_ln = track.points.iter().map(ln).sum::<f64>() / n;
        for point in &track.points {
            let trial = trials.entry((point.pass, point.position)).or_default();
            trial.add(at(point) - mean_h, ln(point) - mean_ln);
        }
    }
    trials
}

#[cfg(test)]
mod tests {
    use iolens_model::arm::Role;
    use iolens_model::run::Run;
    use iolens_model::units::Bytes;

    use super::*;
    use crate::analyse;
    use crate::fixture::{self, ArmTime};

    /// Two cells, a trial every `seconds`, times per message multiplied by
    /// `factor` of the hours since the start; the two arms of a trial stray
    /// together.
    fn run(passes: u32, seconds: u64, factor: impl Fn(f64) -> f64) -> Run {
        let mut plan = fixture::plan(&["base", "arm"]);
        plan.sizes = vec![Bytes(1024), Bytes(4096)];
        let mut run = fixture::run(plan);
        run.header.started_unix_ns = 1_700_000_000_000_000_000;
        for pass in 1..=passes {
            for (position, cell) in (0u32..).zip(run.header.plan.cells()) {
                let nth = u64::from((pass - 1) * 2 + position);
                let after_ns = nth * seconds * 1_000_000_000;
                let scale = factor(hours(after_ns)) * cell.size.0 as f64;
                let arms = [
                    ArmTime::new("base", Role::Baseline, &[0.5 * scale; 4]),
                    ArmTime::new("arm", Role::Compared, &[0.4 * scale; 4]),
                ];
                let mut trial = fixture::trial(pass, &cell, &arms);
                trial.position = position;
                trial.started_unix_ns = run.header.started_unix_ns + after_ns;
                run.trials.push(trial);
            }
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
        let parts =
            |i: usize| crate::interval::Parts { over: (lns[i] / 100.0f64).exp(), under: 1.0 };
        let point = |i: usize| Point {
            pass: count(i),
            position: 0,
            started_unix_ns: i as u64 * 36_000_000_000,
            time: parts(i),
            compared: parts(i),
            typical_ln: None,
            bytes: 1.0,
            switches: None,
            slices: 1,
        };
        let cell = fixture::plan(&["base"]).cells().remove(0);
        let arm = fixture::passes(&[1.0]).trials[0].arms[0].arm.clone();
        let track = Track { cell, arm, points: (0..8).map(point).collect() };
        let drift = of(&[track], 0.03).expect("drift");
        // x centred −3.5 to 3.5: Σx² = 42, Σxy = −1.5 + 1.5 + 3.5 = 3.5.
        let slope = 3.5 / 42.0;
        assert!((drift.per_hour.ln_1p() - slope).abs() < 1e-9, "{}", drift.per_hour);
        // Σ(y − ȳ)² = 3 − 9/8; the rest is that less 3.5²/42; t₆ = 2.446912.
        let rest: f64 = 3.0 - 9.0 / 8.0 - 3.5 * 3.5 / 42.0;
        let half = 2.446_912 * (rest / 6.0 / 42.0).sqrt();
        assert!((drift.interval.high.ln_1p() - slope - half).abs() < 1e-6);
    }
}
