//! From intervals to a verdict: what is claimed, and one rule after another, the first that holds.

use iolens_model::arm::Role;

use crate::estimate::{Interval, Verdict};
use crate::interval::{Moments, around};
use crate::remark::{Noise, VerdictReason};
use crate::student::{Multipliers, StudentTable};

/// What a verdict depends on besides the contrast itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The part of the arm; a self-check is never called a winner.
    pub(crate) role: Role,
    /// Smallest difference that matters, as a fraction.
    pub(crate) delta: f64,
    /// The self-check of the cell, judged or not; `None` where it has none.
    pub(crate) floor: Option<&'a Claim>,
    /// Why the numbers cannot be used, where a gate says so.
    pub(crate) invalid: Option<&'a VerdictReason>,
    /// Why they show somebody else's limit, or slices of unequal length.
    pub(crate) unranked: Option<&'a VerdictReason>,
}

/// A verdict with the rule and the numbers behind it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Conclusion {
    /// The word.
    pub(crate) verdict: Verdict,
    pub(crate) reason: VerdictReason,
    /// Trials that would about decide it, all together.
    pub(crate) trials_needed: Option<u32>,
}

/// Judges a contrast.
pub(crate) fn conclude(
    claim: &Claim,
    context: &Context<'_>,
    table: &mut StudentTable,
) -> Conclusion {
    if let Some(why) = context.invalid {
        return plain(Verdict::Invalid, why.clone());
    }
    if let Some(why) = context.unranked.filter(|_| context.role != Role::SelfCheck) {
        return plain(Verdict::Unranked, why.clone());
    }
    let intervals = (claim.pointwise90, claim.simultaneous);
    let (Some(pointwise90), Some(interval)) = intervals else {
        let reason = VerdictReason::NoSpread { trials: claim.moments.n };
        return plain(Verdict::Inconclusive, reason);
    };
    let delta = context.delta;
    let band = Interval { low: 1.0 / (1.0 + delta), high: 1.0 + delta };
    let inside = band.low < pointwise90.low && pointwise90.high < band.high;
    let noise = too_noisy(context).filter(|_| inside);
    if inside && noise.is_none() {
        let self_check_half_width = context.floor.and_then(Claim::half_width);
        let reason = VerdictReason::Within { pointwise90, delta, self_check_half_width };
        return plain(Verdict::Equivalent, reason);
    }
    if let Some(verdict) = beyond(&interval, &band) {
        return judged(verdict, interval, &band, context);
    }
    if !interval.contains(1.0) {
        return plain(Verdict::Small, VerdictReason::MayBeSmall { interval, delta, noise });
    }
    inconclusive(claim, context, table, noise)
}

fn plain(verdict: Verdict, reason: VerdictReason) -> Conclusion {
    Conclusion { verdict, reason, trials_needed: None }
}

/// FASTER or SLOWER, where the whole interval lies beyond the band.
fn beyond(simultaneous: &Interval, band: &Interval) -> Option<Verdict> {
    if simultaneous.low > band.high {
        Some(Verdict::Faster)
    } else if simultaneous.high < band.low {
        Some(Verdict::Slower)
    } else {
        None
    }
}

/// A copy of the baseline that differs from the baseline shows a fault of the
/// measurement, not a winner.
fn judged(
    verdict: Verdict,
    interval: Interval,
    band: &Interval,
    context: &Context<'_>,
) -> Conclusion {
    let is_above = verdict == Verdict::Faster;
    let bound = if is_above { band.high } else { band.low };
    match context.role {
        Role::SelfCheck => {
            plain(Verdict::Invalid, VerdictReason::CopyDiffers { interval, bound, is_above })
        }
        _ => plain(verdict, VerdictReason::Beyond { interval, bound, is_above }),
    }
}

/// The cell's self-check, where it is wider than δ.
fn too_noisy(context: &Context<'_>) -> Option<Noise> {
    let floor = context.floor?.half_width()?;
    let half_width = Some(floor).filter(|&half| Interval::is_half_usable(half));
    (floor > context.delta).then_some(Noise { half_width })
}

fn inconclusive(
    claim: &Claim,
    context: &Context<'_>,
    table: &mut StudentTable,
    noise: Option<Noise>,
) -> Conclusion {
    let delta = context.delta;
    let trials_needed = match (&noise, context.floor) {
        (Some(_), Some(floor)) => trials_for_width(floor, delta, table, Level::Pointwise),
        _ => trials_to_decide(claim, delta, table),
    };
    let reason = VerdictReason::Open {
        interval: claim.simultaneous,
        delta,
        trials: claim.moments.n,
        trials_needed,
        in_each_run: claim.source == Source::TwoRuns,
        noise,
    };
    Conclusion { verdict: Verdict::Inconclusive, reason, trials_needed }
}

/// Which multiplier an interval uses.
#[derive(Clone, Copy)]
enum Level {
    Pointwise,
    Pointwise90,
    Simultaneous,
}

/// About how many trials would decide: n = (t·s/ln(1+δ))², the number at which
/// the simultaneous half-width is δ. A contrast that is that narrow already
/// and straddles an edge of the band needs as many as exclude 1, or fit the
/// 90 % interval inside, whichever comes first if its ratio stays.
fn trials_to_decide(claim: &Claim, delta: f64, table: &mut StudentTable) -> Option<u32> {
    let by_width = trials_for_width(claim, delta, table, Level::Simultaneous)?;
    if by_width > claim.moments.n {
        return Some(by_width);
    }
    let distance = claim.moments.mean.abs();
    let sd = claim.moments.sd?;
    let exclude = trials_for_half(sd, distance, table, Level::Simultaneous);
    let inside = trials_for_half(sd, delta.ln_1p() - distance, table, Level::Pointwise90);
    let soonest = exclude.into_iter().chain(inside).min()?;
    Some(soonest.max(claim.moments.n.saturating_add(1)))
}

fn trials_for_width(
    claim: &Claim,
    delta: f64,
    table: &mut StudentTable,
    level: Level,
) -> Option<u32> {
    trials_for_half(claim.moments.sd?, delta.ln_1p(), table, level)
}

/// The smallest n with t₍n−1₎·sd/√n ≤ half, which falls with n; `None` where no
/// number of trials that anybody would run is enough.
fn trials_for_half(sd: f64, half: f64, table: &mut StudentTable, level: Level) -> Option<u32> {
    /// Beyond this the answer is "this cannot be decided by repetition".
    const MANY: u32 = 1_000_000;
    if half.is_nan() || half <= 0.0 || !sd.is_finite() {
        return None;
    }
    let mut enough = |n: u32| {
        let t = table.multipliers(n).map(|t| match level {
            Level::Pointwise => t.pointwise,
            Level::Pointwise90 => t.pointwise90,
            Level::Simultaneous => t.simultaneous,
        });
        t.is_some_and(|t| t * sd / f64::from(n).sqrt() <= half)
    };
    if !enough(MANY) {
        return None;
    }
    let (mut short, mut long) = (1, MANY);
    while long - short > 1 {
        let middle = short + (long - short) / 2;
        if enough(middle) {
            long = middle;
        } else {
            short = middle;
        }
    }
    Some(long)
}

// What is claimed of a logarithm before it is judged: an estimate with its intervals,
// from the trials of one run or as the difference between two.

/// Which trials more of would make a claim sharper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Those of the run.
    OneRun,
    /// Those of each of two runs.
    TwoRuns,
}

/// An estimate of a logarithm with the intervals of its ratio.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claim {
    /// Mean and spread. Between two runs: the difference, the fewer trials of the two,
    /// and the spread that as many would have.
    pub(crate) moments: Moments,
    /// 95 % for this claim alone.
    pub(crate) pointwise: Option<Interval>,
    /// 90 % for this claim alone.
    pub(crate) pointwise90: Option<Interval>,
    /// 95 % for all claims of the table together.
    pub(crate) simultaneous: Option<Interval>,
    /// Where the trials are.
    pub(crate) source: Source,
}

impl Claim {
    /// Of the trials of one run.
    pub(crate) fn of(moments: Moments, table: &mut StudentTable) -> Claim {
        Claim {
            pointwise: moments.interval(table, |t| t.pointwise),
            pointwise90: moments.interval(table, |t| t.pointwise90),
            simultaneous: moments.interval(table, |t| t.simultaneous),
            moments,
            source: Source::OneRun,
        }
    }

    /// `b` less `a`, which share no trial, over so many contrasts.
    ///
    /// The runs need not have the same spread or the same number of trials: intervals use
    /// t with the freedom of Welch (The generalization of "Student's" problem, Biometrika
    /// 34, 1947).
    pub(crate) fn between(a: &Known, b: &Known, contrasts: u32) -> Claim {
        let mean = b.mean - a.mean;
        let error = a.error.zip(b.error).map(|(a, b)| a.hypot(b));
        let multipliers = freedom(a, b).and_then(|freedom| Multipliers::at(freedom, contrasts));
        let interval = |choose: fn(&Multipliers) -> f64| {
            Some(around(mean, choose(multipliers.as_ref()?) * error?))
        };
        let n = a.n.min(b.n);
        Claim {
            moments: Moments { n, mean, sd: error.map(|error| error * f64::from(n).sqrt()) },
            pointwise: interval(|t| t.pointwise),
            pointwise90: interval(|t| t.pointwise90),
            simultaneous: interval(|t| t.simultaneous),
            source: Source::TwoRuns,
        }
    }

    /// Half-width of the pointwise interval as a fraction of the ratio:
    /// exp(half-width of ln) − 1. `None` without an interval.
    pub(crate) fn half_width(&self) -> Option<f64> {
        self.pointwise.map(|interval| interval.half_width())
    }
}

/// A mean of logarithms of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Known {
    /// Trials; at least 1.
    pub(crate) n: u32,
    /// The mean.
    pub(crate) mean: f64,
    /// Its standard error; `None` under two trials.
    pub(crate) error: Option<f64>,
    /// Degrees of freedom of that: fewer than n - 1 of trials that resemble their neighbours.
    pub(crate) freedom: f64,
}

/// Degrees of freedom of a difference; `None` where one side has none. Two sides without
/// any spread have all that their trials give.
fn freedom(a: &Known, b: &Known) -> Option<f64> {
    let own = |known: &Known| Some((known.error?.powi(2), known.freedom));
    let ((var_a, free_a), (var_b, free_b)) = (own(a)?, own(b)?);
    let var = var_a + var_b;
    match var > 0.0 {
        true => Some(var * var / (var_a * var_a / free_a + var_b * var_b / free_b)),
        false => Some(free_a + free_b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Moments;
    use crate::remark::Limited;

    /// n trials with exactly this mean and standard deviation of ln.
    fn measured(n: usize, mean: f64, sd: f64, table: &mut StudentTable) -> Claim {
        let even = n - n % 2;
        let step = sd * ((n as f64 - 1.0) / even.max(1) as f64).sqrt();
        let ln = |i: usize| {
            let sign = if i >= even { 0.0 } else { 1.0 - 2.0 * (i % 2) as f64 };
            mean + sign * step
        };
        Claim::of(Moments::of(&(0..n).map(ln).collect::<Vec<_>>()).expect("moments"), table)
    }

    fn context(floor: Option<&Claim>) -> Context<'_> {
        Context { role: Role::Compared, delta: 0.03, floor, invalid: None, unranked: None }
    }

    fn check(mean: f64, sd: f64, floor_sd: f64, expect: Verdict) -> Conclusion {
        let table = &mut StudentTable::new(10);
        let floor = measured(12, 0.0, floor_sd, table);
        let conclusion = conclude(&measured(12, mean, sd, table), &context(Some(&floor)), table);
        assert_eq!(conclusion.verdict, expect, "{conclusion:?}");
        conclusion
    }

    #[test]
    fn each_rule_gives_its_verdict() {
        check(0.001, 0.01, 0.01, Verdict::Equivalent);
        check(0.20, 0.02, 0.01, Verdict::Faster);
        check(-0.20, 0.02, 0.01, Verdict::Slower);
        check(0.04, 0.02, 0.01, Verdict::Small);
        check(-0.04, 0.02, 0.01, Verdict::Small);
        check(0.02, 0.05, 0.01, Verdict::Inconclusive);
    }

    #[test]
    fn equivalence_comes_before_small() {
        check(0.015, 0.002, 0.01, Verdict::Equivalent);
    }

    #[test]
    fn a_noisy_self_check_makes_equivalence_impossible() {
        // t₁₁ = 2.201: half-width 2.201·0.06/√12 = 3.8 % > 3 %.
        let small = check(0.015, 0.002, 0.06, Verdict::Small);
        assert!(matches!(small.reason, VerdictReason::MayBeSmall { noise: Some(_), .. }));
        let undecided = check(0.0, 0.01, 0.06, Verdict::Inconclusive);
        let VerdictReason::Open { noise: Some(noise), .. } = undecided.reason else {
            panic!("{:?}", undecided.reason)
        };
        assert!(noise.half_width.is_some_and(|half| half > 0.03), "{noise:?}");
        // n with t·0.06/√n ≤ ln 1.03: (2.1·0.06/0.02956)² ≈ 18.
        assert_eq!(undecided.trials_needed, Some(19));
        // A difference that is clear all the same needs no quiet self-check.
        check(0.20, 0.02, 0.06, Verdict::Faster);
    }

    #[test]
    fn without_a_self_check_equivalence_says_so() {
        let table = &mut StudentTable::new(1);
        let conclusion = conclude(&measured(12, 0.0, 0.01, table), &context(None), table);
        assert_eq!(conclusion.verdict, Verdict::Equivalent);
        let is_without =
            matches!(conclusion.reason, VerdictReason::Within { self_check_half_width: None, .. });
        assert!(is_without, "{:?}", conclusion.reason);
    }

    #[test]
    fn the_self_check_is_never_a_winner() {
        let table = &mut StudentTable::new(1);
        for mean in [0.2, -0.2] {
            let context = Context { role: Role::SelfCheck, ..context(None) };
            let conclusion = conclude(&measured(12, mean, 0.01, table), &context, table);
            assert_eq!(conclusion.verdict, Verdict::Invalid);
            assert!(matches!(conclusion.reason, VerdictReason::CopyDiffers { .. }));
        }
    }

    #[test]
    fn a_gate_comes_before_every_other_rule() {
        let table = &mut StudentTable::new(1);
        let why = VerdictReason::NeverTogether;
        let context = Context { invalid: Some(&why), ..context(None) };
        let conclusion = conclude(&measured(12, 0.2, 0.01, table), &context, table);
        assert_eq!(conclusion.verdict, Verdict::Invalid);
        assert_eq!(conclusion.reason, why);
    }

    /// A copy of the baseline is as limited as the baseline, so it stays the noise floor.
    #[test]
    fn what_somebody_else_limits_is_not_ranked() {
        let table = &mut StudentTable::new(1);
        let limited = Limited::ClientBusy { busy_share: 0.97, trials: 12, of: 12 };
        let why = VerdictReason::Limited { limited, of_baseline: false };
        let context = Context { unranked: Some(&why), ..context(None) };
        let conclusion = conclude(&measured(12, 0.2, 0.01, table), &context, table);
        assert_eq!(conclusion.verdict, Verdict::Unranked);
        assert_eq!(conclusion.reason, why);
        let check = Context { role: Role::SelfCheck, ..context };
        let conclusion = conclude(&measured(12, 0.0, 0.01, table), &check, table);
        assert_eq!(conclusion.verdict, Verdict::Equivalent);
        let gate = VerdictReason::NoRatio;
        let invalid = Context { invalid: Some(&gate), ..context };
        assert_eq!(conclude(&measured(1, 0.0, 0.0, table), &invalid, table).reason, gate);
    }

    #[test]
    fn one_trial_decides_nothing() {
        let table = &mut StudentTable::new(1);
        let conclusion = conclude(&measured(1, 2.0, 0.0, table), &context(None), table);
        assert_eq!(conclusion.verdict, Verdict::Inconclusive);
        assert_eq!(conclusion.reason, VerdictReason::NoSpread { trials: 1 });
        assert_eq!(conclusion.trials_needed, None);
    }

    /// Verdicts use the simultaneous interval: pointwise this one is FASTER.
    #[test]
    fn many_contrasts_make_a_verdict_harder() {
        let verdict = |contrasts| {
            let table = &mut StudentTable::new(contrasts);
            conclude(&measured(12, 0.07, 0.04, table), &context(None), table).verdict
        };
        assert_eq!(verdict(1), Verdict::Faster);
        assert_eq!(verdict(300), Verdict::Small);
    }

    /// (t·s/ln(1+δ))² with t near its limit 1.96: (1.96·0.2/0.029559)² = 176.
    #[test]
    fn trials_needed_follow_the_formula() {
        let table = &mut StudentTable::new(1);
        let conclusion = conclude(&measured(12, 0.0, 0.2, table), &context(None), table);
        let n = conclusion.trials_needed.expect("a number of trials");
        assert!((176..=180).contains(&n), "{n}");
    }

    #[test]
    fn a_narrow_contrast_on_the_edge_still_asks_for_more() {
        // Half-width 2.201·0.04/√12 = 2.5 % < δ, and 1 is inside.
        let table = &mut StudentTable::new(1);
        let conclusion = conclude(&measured(12, 0.02, 0.04, table), &context(None), table);
        assert_eq!(conclusion.verdict, Verdict::Inconclusive);
        assert!(conclusion.trials_needed.is_some_and(|n| n > 12 && n < 40), "{conclusion:?}");
    }

    fn known(values: &[f64]) -> Known {
        let moments = Moments::of(values).expect("moments");
        let freedom = f64::from(moments.n) - 1.0;
        Known { n: moments.n, mean: moments.mean, error: moments.half_width(1.0), freedom }
    }

    /// Two samples of Welch's kind, by hand: a = 1, 2, 3, 4, 5 (mean 3, variance 2.5), b =
    /// 2, 6, 10 (mean 6, variance 16). Errors² 0.5 and 16/3; ν = (35/6)² / (0.25/4 +
    /// (16/3)²/2) = 34.0278 / 14.2847 = 2.3821.
    #[test]
    fn the_difference_follows_the_formula() {
        let (a, b) = (known(&[1.0, 2.0, 3.0, 4.0, 5.0]), known(&[2.0, 6.0, 10.0]));
        let free = freedom(&a, &b).expect("freedom");
        assert!((free - 2.3821).abs() < 5e-5, "{free}");
        let claim = Claim::between(&a, &b, 1);
        assert_eq!((claim.moments.n, claim.moments.mean), (3, 3.0));
        let error = (35.0f64 / 6.0).sqrt();
        let t = crate::student::quantile(free, 0.975).expect("a quantile");
        let interval = claim.pointwise.expect("an interval");
        assert!((interval.high.ln() - (3.0 + t * error)).abs() < 1e-9);
        assert!((interval.low.ln() - (3.0 - t * error)).abs() < 1e-9);
        assert_eq!(claim.pointwise, claim.simultaneous);
    }

    #[test]
    fn runs_without_spread_differ_by_a_point() {
        let (a, b) = (known(&[0.5, 0.5]), known(&[0.75, 0.75, 0.75]));
        let interval = Claim::between(&a, &b, 48).simultaneous.expect("an interval");
        assert_eq!(interval.low, interval.high);
    }

    #[test]
    fn one_trial_on_either_side_leaves_no_interval() {
        let claim = Claim::between(&known(&[1.0]), &known(&[1.0, 2.0, 3.0]), 1);
        assert_eq!((claim.pointwise, claim.moments.sd), (None, None));
        assert_eq!(claim.moments.mean, 1.0);
    }

    /// More claims at once widen what stands for all of them and nothing else.
    #[test]
    fn the_family_widens_the_simultaneous_interval() {
        let (a, b) = (known(&[1.0, 1.1, 1.2]), known(&[1.0, 1.2, 1.3]));
        let (one, many) = (Claim::between(&a, &b, 1), Claim::between(&a, &b, 48));
        assert_eq!(one.pointwise, many.pointwise);
        assert!(many.simultaneous.expect("one").high > one.simultaneous.expect("one").high);
    }
}
