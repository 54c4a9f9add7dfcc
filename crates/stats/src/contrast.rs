//! An arm against the baseline over trials: the typical ratio with its
//! intervals, and the ratio of totals beside it.

use crate::analysis::Contrast;
use crate::estimate::Estimate;
use crate::interval::{Moments, Parts, Totals};
use crate::student::StudentTable;
use crate::verdict::Claim;
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
}
