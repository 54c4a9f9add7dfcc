//! Ours and a rival, in pairs of runs whose order a coin decides.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use super::iperf::Median;

/// Pairs of runs of a second or more; with 9 the ranks 2 and 8 cover the median with
/// 96.1 %.
pub(crate) const PAIRS: usize = 9;

/// Pairs of runs of a tenth of a second, each of which says little.
pub(crate) const SHORT_PAIRS: usize = 101;

/// How many pairs there are to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count {
    least: usize,
    most: usize,
    /// Between the ends of the interval of a ratio that is known well enough.
    width: f64,
}

impl Count {
    /// 31 at least, and then until the intervals of all ratios are this narrow, but no more
    /// than 121. Width ends it, never where an interval lies.
    pub(crate) fn until(width: f64) -> Count {
        Count { least: 31, most: 121, width }
    }

    /// The same with another bound on how many.
    pub(crate) fn at_most(self, most: usize) -> Count {
        Count { most, ..self }
    }

    /// Whether these are enough, of which each has the same ratios.
    fn is_reached<const N: usize>(&self, ratios: &[[f64; N]]) -> bool {
        let is_narrow = |at: usize| {
            let median = Median::of(&ratios.iter().map(|of| of[at]).collect::<Vec<_>>());
            median.high - median.low <= self.width
        };
        ratios.len() >= self.most || ratios.len() >= self.least && (0..N).all(is_narrow)
    }
}

impl From<usize> for Count {
    fn from(count: usize) -> Count {
        Count { least: count, most: count, width: 0.0 }
    }
}

/// One run: what it reached.
pub(crate) type Reached<'a> = &'a dyn Fn() -> Result<f64, String>;

/// What came of all pairs.
pub(crate) struct Paired {
    pairs: Vec<(f64, f64)>,
    /// Ours over theirs.
    pub(crate) ratio: Median,
}

/// One run of which two things are known: requests per second, and ns of CPU time for
/// each of them.
pub(crate) type Served<'a> = &'a dyn Fn() -> Result<[f64; 2], String>;

impl Paired {
    /// Runs pairs; `unit` is what is said of each.
    pub(crate) fn of(
        count: impl Into<Count>,
        ours: Reached<'_>,
        theirs: Reached<'_>,
        unit: &str,
    ) -> Result<Paired, String> {
        let (ours, theirs) = (|| Ok([ours()?]), || Ok([theirs()?]));
        let told = |[of]: &[f64; 1]| format!("{of:.0} {unit}");
        let pairs = in_turn(count.into(), &ours, &theirs, &told)?;
        Ok(Paired::new(pairs.iter().map(|[[a], [b]]| (*a, *b)).collect()))
    }

    /// The same of two things: rates and costs.
    pub(crate) fn served(
        count: impl Into<Count>,
        ours: Served<'_>,
        theirs: Served<'_>,
    ) -> Result<[Paired; 2], String> {
        let told = |[rate, cost]: &[f64; 2]| format!("{rate:.0} requests/s at {cost:.0} ns");
        let pairs = in_turn(count.into(), ours, theirs, &told)?;
        let of = |at: usize| Paired::new(pairs.iter().map(|[a, b]| (a[at], b[at])).collect());
        Ok([of(0), of(1)])
    }

    fn new(pairs: Vec<(f64, f64)>) -> Paired {
        let ratio = Median::of(&pairs.iter().map(|(a, b)| a / b).collect::<Vec<_>>());
        Paired { pairs, ratio }
    }

    /// How many pairs.
    pub(crate) fn count(&self) -> usize {
        self.pairs.len()
    }

    /// The medians of ours and of theirs.
    pub(crate) fn medians(&self) -> [f64; 2] {
        let median = |pick: fn(&(f64, f64)) -> f64| {
            Median::of(&self.pairs.iter().map(pick).collect::<Vec<_>>()).value
        };
        [median(|pair| pair.0), median(|pair| pair.1)]
    }

    /// `1.02 [0.99, 1.05] (96.1 %), medians 90000 and 88000`.
    pub(crate) fn words(&self) -> String {
        let Median { value, low, high, coverage } = &self.ratio;
        let [ours, theirs] = self.medians();
        format!(
            "{value:.3} [{low:.3}, {high:.3}] ({:.1} %, {} pairs), medians {ours:.0} and \
             {theirs:.0}",
            100.0 * coverage,
            self.count()
        )
    }
}

/// Both of them, until that is enough, in an order that is random each time.
fn in_turn<const N: usize>(
    count: Count,
    ours: &dyn Fn() -> Result<[f64; N], String>,
    theirs: &dyn Fn() -> Result<[f64; N], String>,
    told: &dyn Fn(&[f64; N]) -> String,
) -> Result<Vec<[[f64; N]; 2]>, String> {
    let (mut pairs, mut ratios) = (Vec::new(), Vec::<[f64; N]>::new());
    while !count.is_reached(&ratios) {
        let (ours, theirs) = if is_heads() {
            let ours = ours()?;
            (ours, theirs()?)
        } else {
            let theirs = theirs()?;
            (ours()?, theirs)
        };
        eprintln!("   pair {}: {} and {}", pairs.len() + 1, told(&ours), told(&theirs));
        ratios.push(std::array::from_fn(|at| ours[at] / theirs[at]));
        pairs.push([ours, theirs]);
    }
    Ok(pairs)
}

/// A coin. What is hashed does not matter: the keys are random.
fn is_heads() -> bool {
    RandomState::new().hash_one(0) & 1 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_go_on_until_every_ratio_is_known() {
        let narrow = [[1.0, 2.0]; 31];
        assert!(!Count::until(0.05).is_reached(&narrow[..30]), "too few");
        assert!(Count::until(0.05).is_reached(&narrow));
        let restless = |n: usize| -> Vec<[f64; 2]> {
            (0..n).map(|i| [1.0, if i % 2 == 0 { 0.9 } else { 1.1 }]).collect()
        };
        assert!(!Count::until(0.05).is_reached(&restless(120)));
        assert!(Count::until(0.05).is_reached(&restless(121)), "there is an end");
        assert!(
            !Count::from(9).is_reached(&narrow[..8]) && Count::from(9).is_reached(&narrow[..9])
        );
        assert!(!Count::from(9).is_reached::<1>(&[]), "not a ratio yet");
    }
}
