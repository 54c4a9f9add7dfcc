//! From intervals to a verdict: one rule after another, the first that holds.

use iolens_model::arm::Role;

use crate::analysis::{Interval, Verdict};
use crate::claim::Claim;
use crate::student::StudentTable;
use crate::wording::{percent, percent_above, range, trials};

/// What a verdict depends on besides the contrast itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The part of the arm; a self-check is never called a winner.
    pub(crate) role: Role,
    /// Smallest difference that matters, as a fraction.
    pub(crate) delta: f64,
    /// The self-check of the cell, judged or not; null where it has none.
    pub(crate) floor: Option<&'a Claim>,
    /// Why the numbers cannot be used, where a gate says so.
    pub(crate) invalid: Option<&'a str>,
    /// Why they show somebody else's limit, or slices of unequal length.
    pub(crate) unranked: Option<&'a str>,
}

/// A verdict with the rule and the numbers behind it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Conclusion {
    /// The word.
    pub(crate) verdict: Verdict,
    /// One clause.
    pub(crate) reason: String,
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
        return plain(Verdict::Invalid, why.to_owned());
    }
    if let Some(why) = context.unranked.filter(|_| context.role != Role::SelfCheck) {
        return plain(Verdict::Unranked, why.to_owned());
    }
    let intervals = (claim.pointwise90, claim.simultaneous);
    let (Some(pointwise90), Some(simultaneous)) = intervals else {
        let reason = match claim.moments.n {
            1 => "one trial has no interval".to_owned(),
            n => format!("{} without a spread that is a number", trials(n)),
        };
        return plain(Verdict::Inconclusive, reason);
    };
    let noisy = too_noisy(context);
    let band = Interval { low: 1.0 / (1.0 + context.delta), high: 1.0 + context.delta };
    let inside = band.low < pointwise90.low && pointwise90.high < band.high;
    if inside && noisy.is_none() {
        return plain(Verdict::Equivalent, equivalent_reason(&pointwise90, context));
    }
    if let Some(verdict) = beyond(&simultaneous, &band) {
        return beyond_reason(verdict, &simultaneous, context);
    }
    if !simultaneous.contains(1.0) {
        let ends = match simultaneous.is_usable() {
            true => range(&simultaneous),
            false if simultaneous.low > 1.0 => format!("from {:.3} up", simultaneous.low),
            false => format!("up to {:.3}", simultaneous.high),
        };
        let delta = percent(context.delta);
        let reason =
            format!("simultaneous 95 % interval {ends} excludes 1 and reaches inside ±{delta}");
        return plain(Verdict::Small, with_noise(reason, noisy.filter(|_| inside)));
    }
    inconclusive(claim, context, table, if inside { noisy } else { None })
}

fn plain(verdict: Verdict, reason: String) -> Conclusion {
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
fn beyond_reason(verdict: Verdict, interval: &Interval, context: &Context<'_>) -> Conclusion {
    let side = if verdict == Verdict::Faster { "above" } else { "below" };
    let bound =
        if verdict == Verdict::Faster { 1.0 + context.delta } else { 1.0 / (1.0 + context.delta) };
    let ends = match interval.is_usable() {
        true => range(interval),
        // How far it goes away from the band is not known.
        false if verdict == Verdict::Faster => format!("from {:.3} up", interval.low),
        false => format!("up to {:.3}", interval.high),
    };
    let rule = format!("simultaneous 95 % interval {ends} is {side} {bound:.3}");
    if context.role == Role::SelfCheck {
        let reason = format!("a second copy of the baseline differs from it: {rule}");
        return plain(Verdict::Invalid, reason);
    }
    plain(verdict, rule)
}

/// The clause "too noisy for δ", where the cell's self-check is wider than δ.
fn too_noisy(context: &Context<'_>) -> Option<String> {
    let floor = context.floor?.half_width()?;
    (floor > context.delta).then(|| {
        let delta = percent(context.delta);
        let half = match Interval::is_half_usable(floor) {
            true => format!("half-width is {}", percent_above(floor, context.delta)),
            false => "interval is not usable".to_owned(),
        };
        format!("too noisy for δ = {delta}: the self-check's {half}")
    })
}

fn equivalent_reason(pointwise90: &Interval, context: &Context<'_>) -> String {
    let floor = match context.floor.and_then(Claim::half_width) {
        Some(floor) => format!("self-check half-width {}", percent(floor)),
        None => "no self-check in this cell".to_owned(),
    };
    let delta = percent(context.delta);
    format!("pointwise 90 % interval {} is inside ±{delta}; {floor}", range(pointwise90))
}

fn with_noise(reason: String, noise: Option<String>) -> String {
    match noise {
        Some(noise) => format!("{reason}; {noise}"),
        None => reason,
    }
}

fn inconclusive(
    claim: &Claim,
    context: &Context<'_>,
    table: &mut StudentTable,
    noise: Option<String>,
) -> Conclusion {
    let needed = match (&noise, context.floor) {
        (Some(_), Some(floor)) => trials_for_width(floor, context.delta, table, Level::Pointwise),
        _ => trials_to_decide(claim, context.delta, table),
    };
    let delta = percent(context.delta);
    let mut reason = match claim.simultaneous {
        Some(interval) if !interval.is_usable() => {
            format!("no usable interval from {}", trials(claim.moments.n))
        }
        interval => {
            let ends = interval.as_ref().map(range).unwrap_or_default();
            format!("simultaneous 95 % interval {ends} neither excludes 1 nor settles ±{delta}")
        }
    };
    if let Some(n) = needed {
        reason = format!("{reason}; about {}{} would", trials(n), claim.source.words());
    }
    Conclusion {
        verdict: Verdict::Inconclusive,
        reason: with_noise(reason, noise),
        trials_needed: needed,
    }
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

/// The smallest n with t₍n−1₎·sd/√n ≤ half, which falls with n; null where no
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Moments;

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
        assert!(small.reason.contains("too noisy for δ = 3 %"), "{}", small.reason);
        let undecided = check(0.0, 0.01, 0.06, Verdict::Inconclusive);
        assert!(undecided.reason.contains("too noisy for δ = 3 %: the self-check's half-width"));
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
        assert!(conclusion.reason.contains("no self-check"));
    }

    #[test]
    fn the_self_check_is_never_a_winner() {
        let table = &mut StudentTable::new(1);
        for mean in [0.2, -0.2] {
            let context = Context { role: Role::SelfCheck, ..context(None) };
            let conclusion = conclude(&measured(12, mean, 0.01, table), &context, table);
            assert_eq!(conclusion.verdict, Verdict::Invalid);
            assert!(conclusion.reason.starts_with("a second copy of the baseline differs"));
        }
    }

    #[test]
    fn a_gate_comes_before_every_other_rule() {
        let table = &mut StudentTable::new(1);
        let context = Context { invalid: Some("gate 5: 3 of 4 passes"), ..context(None) };
        let conclusion = conclude(&measured(12, 0.2, 0.01, table), &context, table);
        assert_eq!(conclusion.verdict, Verdict::Invalid);
        assert_eq!(conclusion.reason, "gate 5: 3 of 4 passes");
    }

    /// A copy of the baseline is as limited as the baseline, so it stays the noise floor.
    #[test]
    fn what_somebody_else_limits_is_not_ranked() {
        let table = &mut StudentTable::new(1);
        let context = Context { unranked: Some("client-limited: 97 %"), ..context(None) };
        let conclusion = conclude(&measured(12, 0.2, 0.01, table), &context, table);
        assert_eq!(conclusion.verdict, Verdict::Unranked);
        assert_eq!(conclusion.reason, "client-limited: 97 %");
        let check = Context { role: Role::SelfCheck, ..context };
        let conclusion = conclude(&measured(12, 0.0, 0.01, table), &check, table);
        assert_eq!(conclusion.verdict, Verdict::Equivalent);
        let invalid = Context { invalid: Some("gate 6"), ..context };
        assert_eq!(conclude(&measured(1, 0.0, 0.0, table), &invalid, table).reason, "gate 6");
    }

    #[test]
    fn one_trial_decides_nothing() {
        let table = &mut StudentTable::new(1);
        let conclusion = conclude(&measured(1, 2.0, 0.0, table), &context(None), table);
        assert_eq!(conclusion.verdict, Verdict::Inconclusive);
        assert_eq!(conclusion.reason, "one trial has no interval");
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
    fn an_interval_wider_than_a_factor_of_ten_has_no_ends() {
        let table = &mut StudentTable::new(1);
        let said = |mean, sd, table: &mut StudentTable| {
            conclude(&measured(2, mean, sd, table), &context(None), table).reason
        };
        assert!(said(0.5, 2.0, table).starts_with("no usable interval from 2 trials"));
        assert!(said(0.5, 0.01, table).starts_with("simultaneous 95 % interval 1."));
        let faster = said(30.0, 0.5, table);
        assert!(faster.contains("interval from ") && faster.contains(" up is above "), "{faster}");
        let slower = said(-30.0, 0.5, table);
        assert!(slower.contains("interval up to 0.000 is below "), "{slower}");
    }

    #[test]
    fn a_narrow_contrast_on_the_edge_still_asks_for_more() {
        // Half-width 2.201·0.04/√12 = 2.5 % < δ, and 1 is inside.
        let table = &mut StudentTable::new(1);
        let conclusion = conclude(&measured(12, 0.02, 0.04, table), &context(None), table);
        assert_eq!(conclusion.verdict, Verdict::Inconclusive);
        assert!(conclusion.trials_needed.is_some_and(|n| n > 12 && n < 40), "{conclusion:?}");
    }
}
