//! When a run has enough passes, what it lacked when it ended, and what to expect of a new one.

use iolens_model::outcome::Status;
use iolens_model::plan::Plan;
use iolens_model::run::StoppedBy;

use crate::analysis::{Analysis, ArmAnalysis};
use crate::estimate::Interval;
use crate::interval::median;
use crate::remark::VerdictReason;
use crate::roster;
use crate::student::{Neighbours, StudentTable};
use crate::wording::{cell_in, percent, percent_above, trials};

/// Whether the run goes on after a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Another pass.
    GoOn,
    /// No more.
    Stop(StoppedBy),
}

/// What stopping needs to know of the analysis after one pass.
#[derive(Debug, Clone, PartialEq)]
pub struct PassSummary {
    /// Complete passes.
    passes: u32,
    /// Whether any arm of any cell has numbers.
    anything_usable: bool,
    /// One entry per contrast, in the order of the cells and arms.
    widths: Vec<Width>,
}

/// The width of one contrast.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Width {
    /// The arm is out, or its baseline is; more passes do not bring it back.
    Gone,
    /// Too few trials for an interval.
    Unknown,
    /// Half-width of the pointwise interval, as a fraction.
    Half(f64),
}

impl PassSummary {
    /// Of the analysis after a pass.
    pub fn of(analysis: &Analysis) -> PassSummary {
        let arms = || analysis.arms();
        PassSummary {
            passes: analysis.passes,
            anything_usable: arms().any(|arm| arm.figures.is_some()),
            widths: arms().filter(|arm| roster::has_contrast(&arm.arm)).map(width).collect(),
        }
    }

    /// Of a run with one contrast, of this half-width.
    #[cfg(test)]
    pub(crate) fn of_half_width(passes: u32, half: Option<f64>) -> PassSummary {
        let widths = vec![half.map_or(Width::Unknown, Width::Half)];
        PassSummary { passes, anything_usable: true, widths }
    }

    /// Whether every contrast that is still measured is within the target.
    fn is_precise(&self, target: f64) -> bool {
        self.widths.iter().all(|width| match width {
            Width::Gone => true,
            Width::Unknown => false,
            Width::Half(half) => *half <= target,
        })
    }

    /// Whether there is a contrast that passes can make narrower.
    fn has_contrasts(&self) -> bool {
        self.widths.iter().any(|width| *width != Width::Gone)
    }
}

fn width(arm: &ArmAnalysis) -> Width {
    let reason = arm.contrast.as_ref().map(|contrast| &contrast.reason);
    let has_no_baseline = matches!(reason, Some(VerdictReason::BaselineUnusable(_)));
    if arm.status != Status::Ok || has_no_baseline {
        return Width::Gone;
    }
    match arm.contrast.as_ref().and_then(|contrast| contrast.half_width()) {
        Some(half) => Width::Half(half),
        None => Width::Unknown,
    }
}

/// Decides after a pass, from the summaries of all passes so far, oldest
/// first. The budget is the caller's, who knows the clock.
///
/// Never stops because something became significant: only widths are looked
/// at, and not before the plan's minimum, since stopping on few trials
/// selects narrow intervals. With the defaults a pointwise 95 % interval that
/// ended a run covers 93.9 to 95.2 % in simulation, least where the minimum is
/// not quite enough. A run without contrasts has nothing to wait for after
/// the minimum.
pub fn decide(history: &[PassSummary], plan: &Plan) -> Decision {
    let Some(now) = history.last() else {
        return Decision::GoOn;
    };
    let before = at(history, now.passes.saturating_sub(1));
    let nothing = |summary: &PassSummary| !summary.anything_usable;
    if now.passes >= 2 && nothing(now) && before.is_some_and(nothing) {
        return Decision::Stop(StoppedBy::NothingUsable);
    }
    if now.passes < plan.passes.minimum {
        return Decision::GoOn;
    }
    if now.has_contrasts() {
        let precise = |summary: &PassSummary| summary.is_precise(plan.precision);
        if precise(now) && before.is_some_and(precise) {
            return Decision::Stop(StoppedBy::Precision);
        }
    } else {
        return Decision::Stop(StoppedBy::Passes);
    }
    if now.passes >= plan.passes.maximum {
        return Decision::Stop(StoppedBy::Passes);
    }
    let stalled = |back: u32| {
        let summary = at(history, now.passes.saturating_sub(back));
        summary.is_some_and(|summary| is_stalled(history, summary, plan))
    };
    if (0..STALLED_PASSES).all(stalled) {
        return Decision::Stop(StoppedBy::Stalled);
    }
    Decision::GoOn
}

fn at(history: &[PassSummary], passes: u32) -> Option<&PassSummary> {
    history.iter().rev().find(|summary| summary.passes == passes)
}

/// Whether doubling the passes brought nothing for those contrasts that are
/// still too wide, in the median over them.
///
/// Independent trials narrow an interval by 1/√2, to 71 %, when their number
/// doubles; a spread that is estimated from 12 to 24 trials makes that ratio
/// stray by about 0.1. Drift and moods that outlast a pass make the spread
/// grow with the number of trials, as √n for a random walk, and then the
/// ratio stays near 1. Simulated with one contrast, [`STALLED`] on
/// [`STALLED_PASSES`] passes in a row is met by 2 % of the runs whose trials
/// are independent and by 69 % of random walks; two passes in a row, as for
/// precision, were met by 5 % and 79 %.
fn is_stalled(history: &[PassSummary], now: &PassSummary, plan: &Plan) -> bool {
    let half = now.passes / 2;
    if half < plan.passes.minimum.max(FEWEST) {
        return false;
    }
    let Some(then) = at(history, half) else {
        return false;
    };
    let ratio = |(now, then): (&Width, &Width)| match (now, then) {
        (Width::Half(now), Width::Half(then)) if *now > plan.precision && *then > 0.0 => {
            Some(now / then)
        }
        _ => None,
    };
    let mut ratios: Vec<f64> = now.widths.iter().zip(&then.widths).filter_map(ratio).collect();
    median(&mut ratios).is_some_and(|ratio| ratio > STALLED)
}

/// Width after twice the passes over width before, above which it is said not
/// to shrink.
const STALLED: f64 = 0.95;

/// Passes in a row on which that must hold.
const STALLED_PASSES: u32 = 6;

/// Passes from which a spread is known well enough to be compared.
const FEWEST: u32 = 6;

/// The contrasts that are wider than the target, widest first, as in
/// `64 KiB × 4 threads, sendmsg_iov: ±4.1 % > 3 %`. Those without an interval
/// come first; arms that are out are not listed.
pub fn unmet(analysis: &Analysis, plan: &Plan) -> Vec<String> {
    let mut lines: Vec<(f64, String)> = Vec::new();
    for cell in &analysis.cells {
        for arm in cell.arms.iter().filter(|arm| roster::has_contrast(&arm.arm)) {
            let name = format!("{}, {}", cell_in(plan, &cell.cell), arm.arm.label);
            match width(arm) {
                Width::Half(half) if !Interval::is_half_usable(half) => {
                    let n = arm.contrast.as_ref().map_or(0, |contrast| contrast.n);
                    lines.push((half, format!("{name}: no usable interval from {}", trials(n))));
                }
                Width::Half(half) if half > plan.precision => {
                    let wide = percent_above(half, plan.precision);
                    let target = percent(plan.precision);
                    lines.push((half, format!("{name}: ±{wide} > {target}")));
                }
                Width::Unknown => {
                    let n = arm.contrast.as_ref().map_or(0, |contrast| contrast.n);
                    lines.push((f64::INFINITY, format!("{name}: no interval, {}", trials(n))));
                }
                Width::Half(_) | Width::Gone => {}
            }
        }
    }
    lines.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    lines.into_iter().map(|(_, line)| line).collect()
}

// What an earlier run lets expect of a new one: how wide its intervals will
// be. An expectation, said before the start; no conclusion rests on it.

/// The spread of an earlier run's contrasts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// Contrasts it rests on.
    pub contrasts: usize,
    /// Median over them of the standard deviation over trials of the ln ratio.
    pub sd_ln: f64,
    /// How much its trials resemble their neighbours, which makes intervals wider.
    neighbours: Option<Neighbours>,
}

impl Forecast {
    /// Trials under which a standard deviation says little.
    const TRIALS_MIN: u32 = 5;

    /// Of an analysis; `None` where no contrast has at least five trials.
    pub fn of(analysis: &Analysis) -> Option<Forecast> {
        let arms = analysis.arms();
        let known = arms.filter_map(|arm| arm.contrast.as_ref());
        let known = known.filter(|contrast| contrast.n >= Forecast::TRIALS_MIN);
        let mut spreads: Vec<f64> = known.filter_map(|contrast| contrast.sd_ln).collect();
        let contrasts = spreads.len();
        let (sd_ln, neighbours) = (median(&mut spreads)?, analysis.neighbours);
        Some(Forecast { contrasts, sd_ln, neighbours })
    }

    /// Half-width of a ratio's pointwise 95 % interval after `n` trials, as a
    /// fraction: exp(t(n−1, 97.5 %) · sd / √n) − 1, where trials resemble their neighbours that of
    /// as many as they are worth. `None` under two.
    pub fn half_width(&self, n: u32) -> Option<f64> {
        let mut table = StudentTable::of_neighbours(1, self.neighbours.as_ref());
        let t = table.multipliers(n)?.pointwise;
        Some((t * self.sd_ln / f64::from(n).sqrt()).exp() - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remark::Unusable;
    use crate::{analyse, fixture};

    /// Summaries of passes 1, 2, … with these half-widths of one contrast.
    fn history(halves: &[f64]) -> Vec<PassSummary> {
        let summary = |(passes, &half): (u32, &f64)| PassSummary {
            passes,
            anything_usable: true,
            widths: vec![Width::Half(half), Width::Gone],
        };
        (1..).zip(halves).map(summary).collect()
    }

    fn check(halves: &[f64], expect: Decision) {
        let plan = fixture::plan(&["base", "arm"]);
        assert_eq!(decide(&history(halves), &plan), expect, "{} passes", halves.len());
    }

    #[test]
    fn precision_must_hold_on_two_passes_from_the_minimum_on() {
        check(&[], Decision::GoOn);
        check(&[0.01; 11], Decision::GoOn);
        check(&[0.01; 12], Decision::Stop(StoppedBy::Precision));
        let mut late = [0.05; 12];
        late[11] = 0.01;
        check(&late, Decision::GoOn);
        check(&[&late[..], &[0.01]].concat(), Decision::Stop(StoppedBy::Precision));
        check(&[&late[..], &[0.05]].concat(), Decision::GoOn);
    }

    #[test]
    fn the_maximum_ends_a_run() {
        let shrinking: Vec<f64> = (1..=60u32).map(|n| 1.0 / f64::from(n).sqrt()).collect();
        check(&shrinking[..59], Decision::GoOn);
        check(&shrinking, Decision::Stop(StoppedBy::Passes));
    }

    #[test]
    fn widths_that_stay_end_a_run_and_widths_that_shrink_do_not() {
        check(&[0.10; 28], Decision::GoOn);
        check(&[0.10; 29], Decision::Stop(StoppedBy::Stalled));
        let slow: Vec<f64> = (1..=40u32).map(|n| 0.5 / f64::from(n).powf(0.3)).collect();
        check(&slow, Decision::GoOn);
    }

    #[test]
    fn contrasts_that_are_precise_cannot_stall_a_run() {
        let plan = fixture::plan(&["base", "arm"]);
        let mut history = history(&[0.02; 30]);
        for summary in &mut history {
            let half = 0.4 / f64::from(summary.passes).sqrt();
            summary.widths = vec![Width::Half(0.02), Width::Half(half)];
        }
        assert_eq!(decide(&history, &plan), Decision::GoOn);
    }

    #[test]
    fn without_numbers_the_run_ends_at_once_and_without_contrasts_at_the_minimum() {
        let plan = fixture::plan(&["base"]);
        let summary = |passes, anything_usable| PassSummary {
            passes,
            anything_usable,
            widths: vec![Width::Gone],
        };
        let nothing = [summary(1, false), summary(2, false)];
        assert_eq!(decide(&nothing, &plan), Decision::Stop(StoppedBy::NothingUsable));
        assert_eq!(decide(&nothing[..1], &plan), Decision::GoOn);
        assert_eq!(decide(&[summary(11, true)], &plan), Decision::GoOn);
        let enough = [summary(12, true)];
        assert_eq!(decide(&enough, &plan), Decision::Stop(StoppedBy::Passes));
    }

    #[test]
    fn an_arm_whose_baseline_is_out_keeps_no_run_going() {
        let mut analysis = analyse(&fixture::passes(&[1.0, 1.5, 1.0, 1.5]));
        let mut arms = analysis.cells[0].arms.iter_mut();
        let arm = arms.find(|arm| roster::has_contrast(&arm.arm)).unwrap();
        assert_ne!(width(arm), Width::Gone);
        let status = Status::Invalid;
        let why = Unusable { status, check: None, reason: "no clock".to_owned() };
        arm.contrast.as_mut().unwrap().reason = VerdictReason::BaselineUnusable(why);
        assert_eq!(width(arm), Width::Gone);
    }

    #[test]
    fn an_unknown_width_is_not_precise() {
        let plan = fixture::plan(&["base", "arm"]);
        let summary =
            |passes| PassSummary { passes, anything_usable: true, widths: vec![Width::Unknown] };
        let history: Vec<PassSummary> = (1..=13).map(summary).collect();
        assert_eq!(decide(&history, &plan), Decision::GoOn);
    }

    #[test]
    fn unmet_contrasts_are_named_widest_first() {
        let mut run = fixture::passes(&[1.0, 1.5, 1.0, 1.5]);
        let analysis = analyse(&run);
        let lines = unmet(&analysis, &run.header.plan);
        assert_eq!(lines.len(), 1, "{lines:?}");
        // sd of ln is ln(1.5)/√3, half-width exp(3.1824·sd/2) − 1 = 45.1 %.
        assert_eq!(lines[0], "1 KiB × 1 thread, arm: ±45.1% > 3%");
        run.trials.truncate(2);
        let lines = unmet(&analyse(&run), &run.header.plan);
        assert_eq!(lines[0], "1 KiB × 1 thread, arm: no usable interval from 2 trials");
        run.trials.truncate(1);
        let lines = unmet(&analyse(&run), &run.header.plan);
        assert_eq!(lines[0], "1 KiB × 1 thread, arm: no interval, 1 trial");
    }

    #[test]
    fn a_summary_holds_one_width_per_contrast() {
        let run = fixture::passes(&[1.1, 1.1, 1.1]);
        let summary = PassSummary::of(&analyse(&run));
        assert_eq!(summary.passes, 3);
        assert!(summary.anything_usable && summary.has_contrasts());
        assert!(summary.is_precise(0.03));
        assert_eq!(summary.widths.len(), 2);
    }

    #[test]
    fn the_width_of_the_same_number_of_trials_is_the_one_that_was() {
        let run = fixture::passes(&[1.0, 1.1, 1.0, 1.1, 1.05]);
        let analysis = analyse(&run);
        let contrast = fixture::contrast(&analysis, "arm");
        let half = contrast.half_width().expect("a half-width");
        let sd_ln = contrast.sd_ln.expect("a spread");
        let forecast = Forecast { contrasts: 1, sd_ln, neighbours: None };
        assert!((forecast.half_width(5).expect("a width") / half - 1.0).abs() < 1e-9);
        assert!(forecast.half_width(20) < forecast.half_width(5));
        assert_eq!(forecast.half_width(1), None);
        assert!(Forecast::of(&analysis).is_some());
    }

    #[test]
    fn trials_that_resemble_their_neighbours_let_expect_wider_intervals() {
        let found = |matters| {
            Some(Neighbours { lag1: 0.5, inflation: 3.0, passes: 20, contrasts: 300, matters })
        };
        let half = |neighbours| Forecast { contrasts: 300, sd_ln: 0.1, neighbours }.half_width(12);
        let check = |neighbours, expect: f64| {
            let half = half(neighbours).expect("a width");
            assert!((half - expect).abs() < 1e-4, "{half} is not {expect}");
        };
        // t(11) = 2.2010; t(12 / 3 − 1) · √(3 · 11 / 9) = 3.1824 · 1.9149.
        check(None, 0.0656);
        check(found(false), 0.0656);
        check(found(true), 0.1923);
    }

    #[test]
    fn few_trials_forecast_nothing() {
        assert_eq!(Forecast::of(&analyse(&fixture::passes(&[1.0, 1.1, 1.0, 1.1]))), None);
    }
}
