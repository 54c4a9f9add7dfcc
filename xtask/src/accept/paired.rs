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

impl Paired {
    /// Runs so many pairs; `unit` is what is said of each.
    pub(crate) fn of(
        count: usize,
        ours: Reached<'_>,
        theirs: Reached<'_>,
        unit: &str,
    ) -> Result<Paired, String> {
        let mut pairs = Vec::new();
        for index in 0..count {
            let (ours, theirs) = if is_heads() {
                let ours = ours()?;
                (ours, theirs()?)
            } else {
                let theirs = theirs()?;
                (ours()?, theirs)
            };
            eprintln!("   pair {}: {ours:.0} and {theirs:.0} {unit}", index + 1);
            pairs.push((ours, theirs));
        }
        let ratio = Median::of(&pairs.iter().map(|(a, b)| a / b).collect::<Vec<_>>());
        Ok(Paired { pairs, ratio })
    }

    /// The medians of ours and of theirs.
    pub(crate) fn medians(&self) -> [f64; 2] {
        let median = |pick: fn(&(f64, f64)) -> f64| {
            Median::of(&self.pairs.iter().map(pick).collect::<Vec<_>>()).value
        };
        [median(|pair| pair.0), median(|pair| pair.1)]
    }
}

/// A coin. What is hashed does not matter: the keys are random.
fn is_heads() -> bool {
    RandomState::new().hash_one(0) & 1 == 0
}
