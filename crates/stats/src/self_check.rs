//! The hidden second copies of the baseline: the noise floor, and whether the
//! run can be trusted.

use statrs::distribution::{Binomial, DiscreteCDF};

use crate::analysis::{CellAnalysis, Contrast, SelfCheck};
use crate::estimate::Interval;
use crate::interval::{count, median};

/// Trials under which a self-check says nothing about the run.
const TRIALS_MIN: u32 = 5;

/// What the self-checks of a run say.
pub(crate) fn of(cells: &[CellAnalysis], delta: f64) -> SelfCheck {
    let contrasts = cells.iter().flat_map(|cell| &cell.checks).filter_map(|c| c.contrast.as_ref());
    let check =
        |c: &Contrast| Check { n: c.n, pointwise: c.pointwise, simultaneous: c.simultaneous };
    of_checks(&contrasts.map(check).collect::<Vec<Check>>(), delta)
}

/// A self-check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    /// Trials.
    pub(crate) n: u32,
    pub(crate) pointwise: Option<Interval>,
    pub(crate) simultaneous: Option<Interval>,
}

/// The same of self-checks of any origin.
pub(crate) fn of_checks(checks: &[Check], delta: f64) -> SelfCheck {
    let mut widths: Vec<f64> =
        checks.iter().filter_map(|c| Some(c.pointwise?.half_width())).collect();
    let counts = |c: &&Check| c.pointwise.is_some() && c.n >= TRIALS_MIN;
    let counted: Vec<&Check> = checks.iter().filter(counts).collect();
    let with = |which: &dyn Fn(&Check) -> bool| count(counted.iter().filter(|c| which(c)).count());
    SelfCheck {
        checks: count(widths.len()),
        counted: count(counted.len()),
        excluding_one: with(&|check| leaves_one_out(check.pointwise)),
        bound: bound(count(counted.len())),
        floor_widest: widths.iter().copied().max_by(f64::total_cmp),
        floor_median: median(&mut widths),
        judged: with(&|check| is_beyond(check.simultaneous, delta)),
    }
}

fn leaves_one_out(pointwise: Option<Interval>) -> bool {
    pointwise.is_some_and(|interval| !interval.contains(1.0))
}

/// Whether any other arm with this interval would be FASTER or SLOWER.
fn is_beyond(simultaneous: Option<Interval>, delta: f64) -> bool {
    simultaneous.is_some_and(|i| i.low > 1.0 + delta || i.high < 1.0 / (1.0 + delta))
}

/// Whether the pointwise interval excludes 1; about 5 % do by chance.
pub(crate) fn excludes_one(contrast: &Contrast) -> bool {
    leaves_one_out(contrast.pointwise)
}

/// The number of intervals that exclude 1 by chance at most, at 99 %: the
/// smallest k with P(X ≤ k) ≥ 0.99 for X from the binomial distribution of
/// this many checks at 5 %.
pub(crate) fn bound(checks: u32) -> u32 {
    let Ok(excluding) = Binomial::new(0.05, u64::from(checks)) else {
        return checks;
    };
    (0..checks).find(|&k| excluding.cdf(u64::from(k)) >= 0.99).unwrap_or(checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P(X ≤ k) summed term by term, without the library.
    fn cumulative(n: u32, k: u32) -> f64 {
        let mut term = 0.95f64.powf(f64::from(n));
        let mut sum = term;
        for i in 0..k {
            term *= f64::from(n - i) / f64::from(i + 1) * 0.05 / 0.95;
            sum += term;
        }
        sum
    }

    /// Their intervals are so wide that one which excludes 1 says more of chance than of the run.
    #[test]
    fn copies_of_fewer_than_five_trials_say_nothing_of_the_run() {
        let away = Some(Interval { low: 1.2, high: 1.3 });
        let of = |n: u32| of_checks(&[Check { n, pointwise: away, simultaneous: away }; 12], 0.03);
        let few = of(4);
        assert_eq!((few.checks, few.counted, few.excluding_one, few.judged), (12, 0, 0, 0));
        assert!(!few.untrustworthy() && few.floor_median.is_some());
        let enough = of(5);
        assert_eq!((enough.counted, enough.excluding_one, enough.judged), (12, 12, 12));
        assert!(enough.untrustworthy());
    }

    #[test]
    fn the_bound_is_the_99_percent_point_of_the_binomial() {
        for n in [1, 2, 5, 12, 20, 48, 100, 400] {
            let k = bound(n);
            assert!(k == n || cumulative(n, k) >= 0.99, "{n} {k}");
            assert!(k == 0 || cumulative(n, k - 1) < 0.99, "{n} {k}");
        }
        // Tables of the binomial distribution, n = 20, p = 0.05:
        // P(X ≤ 3) = 0.9841, P(X ≤ 4) = 0.9974.
        assert_eq!(bound(20), 4);
        assert_eq!(bound(0), 0);
    }
}
