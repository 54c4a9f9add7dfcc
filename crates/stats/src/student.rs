//! Quantiles of Student's t distribution, looked up once per number of
//! trials.

use std::collections::BTreeMap;

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// How much the values of contrasts resemble those of the passes before them (METHOD, Drift).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Neighbours {
    /// Autocorrelation from one pass to the next, pooled over the contrasts, 0 by chance.
    pub lag1: f64,
    /// Variance of a mean over the passes, over that of a mean of independent values.
    pub inflation: f64,
    /// Passes.
    pub passes: u32,
    /// Contrasts that are pooled.
    pub contrasts: u32,
    /// Whether that is more than chance gives and widens intervals: all of the run are then
    /// wider by it.
    pub matters: bool,
}

/// Beyond this the quantiles of t differ by less than a millionth, and statrs 0.19 does not find
/// those from 10⁸ degrees of freedom on: it never returns.
const FREEDOM_MAX: f64 = 1e6;

/// The quantile `p` of t with `freedom` degrees of freedom, which need not be whole;
/// `None` where there are none, or where `p` is not inside (0.5, 1).
pub(crate) fn quantile(freedom: impl Into<f64>, p: f64) -> Option<f64> {
    let freedom: f64 = freedom.into();
    if freedom.is_nan() || freedom <= 0.0 || !(p > 0.5 && p < 1.0) {
        return None;
    }
    let t = StudentsT::new(0.0, 1.0, freedom.min(FREEDOM_MAX)).ok()?.inverse_cdf(p);
    t.is_finite().then_some(t)
}

/// Variance of a mean over the trials of a run, over that of a mean of independent ones; 1 where
/// nothing makes intervals wider.
pub(crate) fn inflation(found: Option<&Neighbours>) -> f64 {
    found.filter(|found| found.matters).map_or(1.0, |found| found.inflation)
}

/// Degrees of freedom of `n` trials, which are as good as n / inflation independent ones.
pub(crate) fn freedom(n: f64, inflation: f64) -> f64 {
    n / inflation - 1.0
}

/// The multipliers of the standard error for one number of trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Multipliers {
    /// Pointwise 95 %: t at 0.975.
    pub(crate) pointwise: f64,
    /// Pointwise 90 %: t at 0.95.
    pub(crate) pointwise90: f64,
    /// Simultaneous 95 % over J contrasts (Bonferroni): t at 1 − 0.025/J.
    pub(crate) simultaneous: f64,
}

impl Multipliers {
    /// With so many degrees of freedom, over so many contrasts (J, at least 1); `None`
    /// without freedom.
    pub(crate) fn at(freedom: f64, contrasts: u32) -> Option<Multipliers> {
        Some(Multipliers {
            pointwise: quantile(freedom, 0.975)?,
            pointwise90: quantile(freedom, 0.95)?,
            simultaneous: quantile(freedom, 1.0 - 0.025 / f64::from(contrasts.max(1)))?,
        })
    }

    fn times(self, widening: f64) -> Multipliers {
        Multipliers {
            pointwise: self.pointwise * widening,
            pointwise90: self.pointwise90 * widening,
            simultaneous: self.simultaneous * widening,
        }
    }
}

/// The multipliers of a run, kept because almost all of its contrasts have
/// the same number of trials and an inverse of t takes microseconds.
#[derive(Debug)]
pub(crate) struct StudentTable {
    contrasts: u32,
    /// Variance of a mean over trials, over that of a mean of independent ones; at least 1.
    inflation: f64,
    known: BTreeMap<u32, Option<Multipliers>>,
}

impl StudentTable {
    /// A table for a run with this many contrasts (J, at least 1).
    pub(crate) fn new(contrasts: u32) -> StudentTable {
        StudentTable { contrasts: contrasts.max(1), inflation: 1.0, known: BTreeMap::new() }
    }

    /// The same for trials that resemble those of the passes before them.
    pub(crate) fn of_neighbours(contrasts: u32, found: Option<&Neighbours>) -> StudentTable {
        StudentTable { inflation: inflation(found), ..StudentTable::new(contrasts) }
    }

    /// The multipliers for `n` trials; `None` under two.
    ///
    /// Trials that resemble each other are as good as n / inflation independent ones, and
    /// their own spread is smaller than that of all that might have been: by
    /// (n - inflation) / (n - 1), which is in the standard error that these are for.
    pub(crate) fn multipliers(&mut self, n: u32) -> Option<Multipliers> {
        let (contrasts, inflation) = (self.contrasts, self.inflation);
        let at = || {
            let n = f64::from(n.checked_sub(1)?) + 1.0;
            if inflation <= 1.0 {
                return Multipliers::at(freedom(n, 1.0), contrasts);
            }
            let widening = (inflation * (n - 1.0) / (n - inflation)).sqrt();
            Some(Multipliers::at(freedom(n, inflation), contrasts)?.times(widening))
        };
        *self.known.entry(n).or_insert_with(at)
    }
}

#[cfg(test)]
mod tests {
    use statrs::distribution::ContinuousCDF;

    use super::*;

    /// NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.2,
    /// "Critical values of the Student's t distribution" (three decimals).
    #[test]
    fn quantiles_agree_with_the_published_table() {
        let check = |freedom, p, expect: f64| {
            let t = quantile(freedom, p).expect("a quantile");
            assert!((t - expect).abs() <= 0.0005, "t({freedom}, {p}) = {t}, table {expect}");
        };
        check(1, 0.90, 3.078);
        check(1, 0.975, 12.706);
        check(1, 0.999, 318.309);
        check(2, 0.95, 2.920);
        check(2, 0.975, 4.303);
        check(4, 0.975, 2.776);
        check(4, 0.995, 4.604);
        check(9, 0.95, 1.833);
        check(9, 0.975, 2.262);
        check(11, 0.95, 1.796);
        check(11, 0.975, 2.201);
        check(11, 0.995, 3.106);
        check(11, 0.999, 4.025);
        check(29, 0.975, 2.045);
        check(59, 0.975, 2.001);
        check(100, 0.999, 3.174);
    }

    /// With two degrees of freedom the quantile has a closed form:
    /// t = a · sqrt(2 / (1 − a²)) with a = 2p − 1; with one it is tan(π(p − ½)).
    #[test]
    fn quantiles_agree_with_closed_forms_in_the_far_tail() {
        for contrasts in [1.0, 48.0, 300.0, 3000.0] {
            let p = 1.0 - 0.025 / contrasts;
            let a: f64 = 2.0 * p - 1.0;
            let two = a * (2.0 / (1.0 - a * a)).sqrt();
            let one = (std::f64::consts::PI * (p - 0.5)).tan();
            let near = |t: Option<f64>, expect: f64| {
                assert!((t.expect("a quantile") / expect - 1.0).abs() < 1e-9, "{t:?} {expect}");
            };
            near(quantile(2, p), two);
            near(quantile(1, p), one);
        }
    }

    #[test]
    fn a_quantile_leads_back_to_its_probability() {
        for freedom in 1..=120 {
            let t = StudentsT::new(0.0, 1.0, f64::from(freedom)).expect("a distribution");
            for p in [0.95, 0.975, 1.0 - 0.025 / 48.0, 1.0 - 0.025 / 500.0] {
                let back = t.cdf(quantile(freedom, p).expect("a quantile"));
                assert!(((1.0 - back) / (1.0 - p) - 1.0).abs() < 1e-6, "{freedom} {p} {back}");
            }
        }
    }

    /// The normal quantile at 0.999 is 3.0902 (NIST, table 1.3.6.7.1).
    #[test]
    fn with_any_freedom_there_is_a_quantile() {
        for freedom in [1e6, f64::from(u32::MAX), f64::INFINITY] {
            let t = quantile(freedom, 0.999).expect("a quantile");
            assert!((t - 3.0902).abs() < 1e-4, "{freedom} {t}");
        }
    }

    #[test]
    fn without_freedom_there_is_no_quantile() {
        assert_eq!(quantile(0, 0.975), None);
        assert_eq!(quantile(3, 1.0), None);
        assert_eq!(quantile(3, f64::NAN), None);
        assert_eq!(StudentTable::new(4).multipliers(0), None);
        assert_eq!(StudentTable::new(4).multipliers(1), None);
    }

    #[test]
    fn more_contrasts_widen_only_the_simultaneous_multiplier() {
        let one = StudentTable::new(1).multipliers(12).expect("multipliers");
        let many = StudentTable::new(48).multipliers(12).expect("multipliers");
        assert_eq!(one.pointwise, one.simultaneous);
        assert_eq!(one.pointwise, many.pointwise);
        assert!(many.simultaneous > 4.0 && many.pointwise90 < many.pointwise);
    }
}
