//! Ours and a peer, in pairs of runs whose order a coin decides.

use std::collections::hash_map::RandomState;
use std::fmt::Display;
use std::hash::BuildHasher;

use crate::prelude::*;

/// Pairs of runs of a second or more; with 9 the ranks 2 and 8 cover the median with
/// 96.1 %.
pub const PAIRS: Count = Count::of(9);

/// How many pairs there are to be.
#[derive(Debug, Clone, Copy)]
pub struct Count {
    least: usize,
    most: usize,
    /// Between the ends of the interval of a ratio that is known well enough.
    width: f64,
}

impl Count {
    pub const fn of(count: usize) -> Count {
        Count { least: count, most: count, width: 0.0 }
    }

    /// 31 at least, and then until the intervals of all ratios are this narrow, but no more
    /// than that. Width ends it, never where an interval lies.
    pub const fn until(width: f64, most: usize) -> Count {
        Count { least: 31, most, width }
    }

    /// Whether these are enough, of which each has the same ratios.
    fn is_reached<const N: usize>(&self, ratios: &[[f64; N]]) -> bool {
        let is_narrow = |at: usize| {
            let median = Median::of(ratios.iter().map(|of| of[at]));
            median.high - median.low <= self.width
        };
        ratios.len() >= self.most || ratios.len() >= self.least && (0..N).all(is_narrow)
    }
}

/// What came of all pairs, of one quantity.
pub struct Paired {
    /// Ours over theirs.
    pub ratio: Median,
    pub words: String,
}

impl Paired {
    /// The lower end of the interval, at least.
    pub fn at_least(&self, check: &Check, name: impl Display, least: f64) {
        check.note(name, &self.words);
        check.within("lower end", self.ratio.low, least..);
    }

    /// The upper end, at most.
    pub fn at_most(&self, check: &Check, name: impl Display, most: f64) {
        check.note(name, &self.words);
        check.within("upper end", self.ratio.high, ..=most);
    }
}

/// As [`pairs`], of one quantity.
pub fn pair(
    count: Count,
    unit: &str,
    ours: impl Fn() -> Res<f64>,
    theirs: impl Fn() -> Res<f64>,
) -> Res<Paired> {
    let [paired] = pairs(count, [unit], &|| Ok([ours()?]), &|| Ok([theirs()?]))?;
    Ok(paired)
}

/// Runs both until that is enough; each reaches some quantities, whose units these are.
pub fn pairs<const N: usize>(
    count: Count,
    units: [&str; N],
    ours: &dyn Fn() -> Res<[f64; N]>,
    theirs: &dyn Fn() -> Res<[f64; N]>,
) -> Res<[Paired; N]> {
    let (mut a_all, mut b_all, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    while !count.is_reached(&ratios) {
        let (a, b) = if is_heads() {
            (ours()?, theirs()?)
        } else {
            let theirs = theirs()?;
            (ours()?, theirs)
        };
        ratios.push(std::array::from_fn(|at| a[at] / b[at]));
        eprintln!("   pair {}: {a:.2?} and {b:.2?} {units:?}", ratios.len());
        a_all.push(a);
        b_all.push(b);
    }
    Ok(std::array::from_fn(|at| {
        let median = |of: &[[f64; N]]| Median::of(of.iter().map(|run| run[at]));
        let ratio = median(&ratios);
        let words = format!(
            "ours/theirs {:.3} [{:.3}, {:.3}] (median of {} pairs, {:.1}%, order statistics); \
             medians {:.2} and {:.2} {}",
            ratio.value,
            ratio.low,
            ratio.high,
            ratios.len(),
            100.0 * ratio.coverage,
            median(&a_all).value,
            median(&b_all).value,
            units[at],
        );
        Paired { ratio, words }
    }))
}

/// A coin. What is hashed does not matter: the keys are random.
fn is_heads() -> bool {
    RandomState::new().hash_one(0) & 1 == 0
}

/// A median with the interval of order statistics that covers it with at least
/// 95 %, whatever the distribution.
#[derive(Debug, PartialEq)]
pub struct Median {
    pub value: f64,
    pub low: f64,
    pub high: f64,
    coverage: f64,
}

impl Median {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Median {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let value = f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]);
        // The widest ranks cover with 1 − 2·2⁻ⁿ; each step inwards gives up
        // the probability of its own count of heads, twice.
        let whole = 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
        let (mut rank, mut term, mut coverage) = (0, whole, 1.0 - 2.0 * whole);
        while rank + 1 < n / 2 {
            term *= (n - rank) as f64 / (rank + 1) as f64;
            if coverage - 2.0 * term < 0.95 {
                break;
            }
            coverage -= 2.0 * term;
            rank += 1;
        }
        Median { value, low: sorted[rank], high: sorted[n - 1 - rank], coverage }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_of_fifteen_lies_between_the_fourth_and_the_twelfth() {
        let median = Median::of((1..=15).rev().map(f64::from));
        assert_eq!((median.value, median.low, median.high), (8.0, 4.0, 12.0));
        assert!((median.coverage - 0.9648).abs() < 1e-4, "{median:?}");
    }

    #[test]
    fn few_values_have_their_ends_as_interval() {
        let median = Median::of([3.0, 1.0]);
        assert_eq!((median.value, median.low, median.high), (2.0, 1.0, 3.0));
        assert!((median.coverage - 0.5).abs() < 1e-9, "{median:?}");
    }

    #[test]
    fn pairs_go_on_until_every_ratio_is_known() {
        let (narrow, until) = ([[1.0, 2.0]; 31], Count::until(0.05, 121));
        assert!(!until.is_reached(&narrow[..30]), "too few");
        assert!(until.is_reached(&narrow));
        let restless = |n: usize| -> Vec<[f64; 2]> {
            (0..n).map(|i| [1.0, if i % 2 == 0 { 0.9 } else { 1.1 }]).collect()
        };
        assert!(!until.is_reached(&restless(120)));
        assert!(until.is_reached(&restless(121)), "there is an end");
        assert!(!PAIRS.is_reached(&narrow[..8]) && PAIRS.is_reached(&narrow[..9]));
        assert!(!PAIRS.is_reached::<1>(&[]), "not a ratio yet");
    }
}
