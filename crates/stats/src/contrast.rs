//! An arm against the baseline over trials: the typical ratio with its intervals, what is claimed
//! of it, and the ratio of totals beside it.

use crate::analysis::Contrast;
use crate::estimate::{Estimate, Interval};
use crate::interval::{Moments, Parts, Totals, around};
use crate::student::{Multipliers, StudentTable};
use crate::verdict::{self, Context};

/// What one trial says of an arm against the baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair {
    /// Median over rounds of ln(the baseline's quantity per message / the arm's).
    pub(crate) typical_ln: f64,
    /// Quantity over messages of the baseline, whole trial.
    pub(crate) baseline: Parts,
    /// Quantity over messages of the arm, whole trial.
    pub(crate) arm: Parts,
}

/// A contrast before it is judged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measured {
    /// Of the trials' typical ln ratios.
    pub(crate) typical: Claim,
    /// Ratio of the totals per message.
    pub(crate) total_ratio: Estimate,
}

impl Measured {
    /// The contrast of some trials; `None` without any.
    pub(crate) fn of(pairs: &[Pair], table: &mut StudentTable) -> Option<Measured> {
        let typical: Vec<f64> = pairs.iter().map(|pair| pair.typical_ln).collect();
        let totals =
            |side: fn(&Pair) -> Parts| Totals::of(&pairs.iter().map(side).collect::<Vec<Parts>>());
        let total = totals(|pair| pair.baseline)?.quotient(&totals(|pair| pair.arm)?);
        let typical = Claim::of(Moments::of(&typical)?, table);
        Some(Measured { typical, total_ratio: total.estimate(table) })
    }

    /// Whether neither of the two ratios lies in the other's interval.
    ///
    /// Both come from the same trials, so asking for intervals that do not
    /// touch would hardly ever find a tail. Differences under a millionth are
    /// rounding, which matters where trials agree exactly.
    pub(crate) fn tail(&self) -> bool {
        let (Some(typical), Some(total)) = (self.typical.pointwise, self.total_ratio.interval)
        else {
            return false;
        };
        let ratio = self.typical.moments.mean.exp();
        let apart = (self.total_ratio.value / ratio - 1.0).abs() > 1e-6;
        apart && !typical.contains(self.total_ratio.value) && !total.contains(ratio)
    }

    /// The contrast with its verdict.
    pub(crate) fn judged(self, context: &Context<'_>, table: &mut StudentTable) -> Contrast {
        let conclusion = verdict::conclude(&self.typical, context, table);
        let Claim { moments, pointwise, pointwise90, simultaneous, .. } = self.typical;
        Contrast {
            ratio: moments.mean.exp(),
            n: moments.n,
            sd_ln: moments.sd,
            tail: self.tail(),
            pointwise,
            pointwise90,
            simultaneous,
            total_ratio: self.total_ratio,
            verdict: conclusion.verdict,
            reason: conclusion.reason,
            trials_needed: conclusion.trials_needed,
        }
    }
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
}

/// Degrees of freedom of a difference; `None` where one side has none. Two sides without
/// any spread have all that their trials give.
fn freedom(a: &Known, b: &Known) -> Option<f64> {
    let own = |known: &Known| Some((known.error?.powi(2), f64::from(known.n.checked_sub(1)?)));
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
    use crate::estimate::Interval;

    /// Trials with this typical ln ratio whose totals say the same.
    fn pairs(typical: &[f64]) -> Vec<Pair> {
        let pair = |&ln: &f64| Pair {
            typical_ln: ln,
            baseline: Parts { over: 1000.0 * ln.exp(), under: 1.0 },
            arm: Parts { over: 1000.0, under: 1.0 },
        };
        typical.iter().map(pair).collect()
    }

    /// ln ratios 0.1, 0.2, 0.3: mean 0.2, sd 0.1, t₂ from the NIST table.
    #[test]
    fn intervals_follow_the_formula() {
        let measured =
            Measured::of(&pairs(&[0.1, 0.2, 0.3]), &mut StudentTable::new(1)).expect("measured");
        let check = |interval: Option<Interval>, t: f64| {
            let interval = interval.expect("an interval");
            let half = t * 0.1 / 3f64.sqrt();
            assert!((interval.low.ln() - (0.2 - half)).abs() < 5e-5);
            assert!((interval.high.ln() - (0.2 + half)).abs() < 5e-5);
        };
        check(measured.typical.pointwise, 4.303);
        check(measured.typical.pointwise90, 2.920);
        check(measured.typical.simultaneous, 4.303);
        assert!(!measured.tail());
        let half = measured.typical.half_width().expect("a half-width");
        assert!((half - ((4.3027 * 0.1 / 3f64.sqrt()).exp() - 1.0)).abs() < 1e-4);
    }

    #[test]
    fn one_trial_has_a_ratio_and_no_interval() {
        let measured = Measured::of(&pairs(&[0.1]), &mut StudentTable::new(1)).expect("measured");
        assert_eq!(measured.typical.pointwise, None);
        assert_eq!(measured.total_ratio.interval, None);
        assert!(!measured.tail());
        assert_eq!(Measured::of(&[], &mut StudentTable::new(1)), None);
    }

    #[test]
    fn a_tail_in_one_arm_is_seen_beside_the_typical_ratio() {
        let mut trials = pairs(&[0.010, 0.011, 0.009, 0.010, 0.012, 0.010]);
        let table = &mut StudentTable::new(1);
        assert!(!Measured::of(&trials, table).expect("measured").tail());
        for (i, trial) in trials.iter_mut().enumerate() {
            trial.arm.over *= 1.2 + 0.001 * i as f64;
        }
        assert!(Measured::of(&trials, table).expect("measured").tail());
    }

    fn known(values: &[f64]) -> Known {
        let moments = Moments::of(values).expect("moments");
        Known { n: moments.n, mean: moments.mean, error: moments.half_width(1.0) }
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
