//! The hidden second copies of the baseline: the noise floor, and whether the
//! run can be trusted (gate 17).

use iolens_model::arm::Role;
use statrs::distribution::{Binomial, DiscreteCDF};

use crate::analysis::{CellAnalysis, Contrast, Interval, SelfCheck};
use crate::interval::{count, median};

/// What the self-checks of a run say.
pub(crate) fn of(cells: &[CellAnalysis], delta: f64) -> SelfCheck {
    let contrasts = cells.iter().flat_map(contrasts);
    let checks: Vec<Check> = contrasts.map(|c| (c.pointwise, c.simultaneous)).collect();
    of_checks(&checks, delta)
}

/// The pointwise and the simultaneous interval of a self-check.
pub(crate) type Check = (Option<Interval>, Option<Interval>);

/// The same of self-checks of any origin.
pub(crate) fn of_checks(checks: &[Check], delta: f64) -> SelfCheck {
    let mut widths: Vec<f64> = checks.iter().filter_map(|c| Some(c.0?.half_width())).collect();
    let checked = count(widths.len());
    let counted =
        |which: &dyn Fn(&Check) -> bool| count(checks.iter().filter(|c| which(c)).count());
    SelfCheck {
        cells: checked,
        excluding_one: counted(&|(pointwise, _)| leaves_one_out(*pointwise)),
        bound: bound(checked),
        floor_widest: widths.iter().copied().max_by(f64::total_cmp),
        floor_median: median(&mut widths),
        judged: counted(&|(_, simultaneous)| is_beyond(*simultaneous, delta)),
    }
}

fn leaves_one_out(pointwise: Option<Interval>) -> bool {
    pointwise.is_some_and(|interval| !interval.contains(1.0))
}

/// Whether any other arm with this interval would be FASTER or SLOWER.
fn is_beyond(simultaneous: Option<Interval>, delta: f64) -> bool {
    simultaneous.is_some_and(|i| i.low > 1.0 + delta || i.high < 1.0 / (1.0 + delta))
}

fn contrasts(cell: &CellAnalysis) -> impl Iterator<Item = &Contrast> {
    let checks = cell.arms.iter().filter(|arm| arm.arm.role == Role::SelfCheck);
    checks.filter_map(|arm| arm.contrast.as_ref())
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
