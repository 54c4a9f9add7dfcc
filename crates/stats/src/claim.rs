//! What is claimed of a logarithm before it is judged: an estimate with its intervals,
//! from the trials of one run or as the difference between two.

use crate::estimate::Interval;
use crate::interval::{Moments, around};
use crate::student::{Multipliers, StudentTable};

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
