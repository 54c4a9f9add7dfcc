//! The mean of trials without the outermost.
//!
//! Of most programs a trial in ten or twenty is far from the others: a process that lies badly in
//! memory, a neighbour. In the mean of all, and in its spread, few of them outweigh the rest.

use crate::interval::count;
use crate::student::quantile;

/// One of so many values is left out at each end: of 12 one, of 24 three.
const LEFT_OUT_OF: usize = 8;

/// The mean of the values that are left, and how well it is known (Tukey and McLaughlin, Less
/// vulnerable confidence and significance procedures for location, Sankhya A 25, 1963; Yuen, The
/// two-sample trimmed t for unequal population variances, Biometrika 61, 1974).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TrimmedMean {
    /// Values; at least 1.
    pub(super) n: u32,
    pub(super) mean: f64,
    /// The standard error of the mean; `None` under two values.
    error: Option<f64>,
}

impl TrimmedMean {
    /// Of some values; `None` without any, or where one of them is not a number.
    pub(super) fn of(values: &[f64]) -> Option<TrimmedMean> {
        if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len();
        let (first, last) = (n / LEFT_OUT_OF, n - 1 - n / LEFT_OUT_OF);
        let kept = kept(n) as f64;
        let mean = sorted[first..=last].iter().sum::<f64>() / kept;
        // Winsorized: those that are left out count as the outermost that are not.
        let of_all = sorted.iter().map(|value| value.clamp(sorted[first], sorted[last]));
        let centre = of_all.clone().sum::<f64>() / n as f64;
        let squares: f64 = of_all.map(|value| (value - centre).powi(2)).sum();
        let error = (kept > 1.0).then(|| (squares / (kept * (kept - 1.0))).sqrt());
        Some(TrimmedMean { n: count(n), mean, error })
    }

    /// Degrees of freedom of the spread of so many values; `None` under two.
    pub(super) fn freedom(n: u32) -> Option<f64> {
        let freedom =
            kept(usize::try_from(n).ok()?).checked_sub(1).filter(|&freedom| freedom > 0)?;
        Some(freedom as f64)
    }

    /// So many standard errors of the mean of `n` such values.
    pub(super) fn errors(&self, times: f64, n: u32) -> Option<f64> {
        Some(times * self.error? * (f64::from(self.n) / f64::from(n)).sqrt())
    }

    /// Half the interval that misses with this chance, both sides together.
    pub(super) fn half_width(&self, error: f64) -> Option<f64> {
        self.errors(quantile(TrimmedMean::freedom(self.n)?, 1.0 - error / 2.0)?, self.n)
    }
}

/// How many of so many values are left.
fn kept(n: usize) -> usize {
    n - 2 * (n / LEFT_OUT_OF)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 1 to 11 and 100, 2 to 11 are left, with mean 6.5; winsorized they are 2, 2 to 11, 11,
    /// with the squares 2·4.5² + 82.5 = 123.
    #[test]
    fn the_outermost_weigh_as_the_next() {
        let values: Vec<f64> = (1..12).map(f64::from).chain([100.0]).collect();
        let found = TrimmedMean::of(&values).unwrap();
        assert_eq!((found.n, found.mean), (12, 6.5));
        let expect = (123.0f64 / 90.0).sqrt();
        assert!((found.error.unwrap() - expect).abs() < 1e-12, "{found:?}");
        // t₉ at 0.975 is 2.262 (NIST/SEMATECH e-Handbook, table 1.3.6.7.2).
        assert!((found.half_width(0.05).unwrap() / expect - 2.262).abs() < 1e-3);
        assert_eq!(found.errors(2.0, 48), Some(expect));
    }

    #[test]
    fn of_few_values_all_count() {
        let found = TrimmedMean::of(&[1.0, 2.0, 6.0]).unwrap();
        assert_eq!((found.mean, found.error), (3.0, Some((14.0f64 / 6.0).sqrt())));
        assert_eq!(TrimmedMean::of(&[1.0]).unwrap().half_width(0.05), None);
        assert_eq!(TrimmedMean::of(&[]), None);
        assert_eq!(TrimmedMean::of(&[1.0, f64::NAN]), None);
    }
}
