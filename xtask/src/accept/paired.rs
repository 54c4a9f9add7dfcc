//! Ours and a rival, in pairs of runs whose order a coin decides.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use super::iperf::Median;

/// Pairs of runs of a second or more; with 9 the ranks 2 and 8 cover the median with
/// 96.1 %.
pub(crate) const PAIRS: usize = 9;

/// Pairs of runs of a tenth of a second, each of which says little.
pub(crate) const SHORT_PAIRS: usize = 101;

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
    /// Runs so many pairs; `unit` is what is said of each.
    pub(crate) fn of(
        count: usize,
        ours: Reached<'_>,
        theirs: Reached<'_>,
        unit: &str,
    ) -> Result<Paired, String> {
        let pairs = in_turn(count, ours, theirs, &|of| format!("{of:.0}"), unit)?;
        Ok(Paired::new(pairs))
    }

    /// The same of two things: rates and costs.
    pub(crate) fn served(
        count: usize,
        ours: Served<'_>,
        theirs: Served<'_>,
    ) -> Result<[Paired; 2], String> {
        let told = |[rate, cost]: &[f64; 2]| format!("{rate:.0} at {cost:.0} ns");
        let pairs = in_turn(count, ours, theirs, &told, "requests/s")?;
        let of = |at: usize| Paired::new(pairs.iter().map(|(a, b)| (a[at], b[at])).collect());
        Ok([of(0), of(1)])
    }

    fn new(pairs: Vec<(f64, f64)>) -> Paired {
        let ratio = Median::of(&pairs.iter().map(|(a, b)| a / b).collect::<Vec<_>>());
        Paired { pairs, ratio }
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
            "{value:.3} [{low:.3}, {high:.3}] ({:.1} %), medians {ours:.0} and {theirs:.0}",
            100.0 * coverage
        )
    }
}

/// Both of them, so many times, in an order that is random each time.
fn in_turn<T>(
    count: usize,
    ours: &dyn Fn() -> Result<T, String>,
    theirs: &dyn Fn() -> Result<T, String>,
    told: &dyn Fn(&T) -> String,
    unit: &str,
) -> Result<Vec<(T, T)>, String> {
    let mut pairs = Vec::new();
    for index in 0..count {
        let (ours, theirs) = if is_heads() {
            let ours = ours()?;
            (ours, theirs()?)
        } else {
            let theirs = theirs()?;
            (ours()?, theirs)
        };
        eprintln!("   pair {}: {} and {} {unit}", index + 1, told(&ours), told(&theirs));
        pairs.push((ours, theirs));
    }
    Ok(pairs)
}

/// A coin. What is hashed does not matter: the keys are random.
fn is_heads() -> bool {
    RandomState::new().hash_one(0) & 1 == 0
}
