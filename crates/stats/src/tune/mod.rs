//! The search of `tune`: which configurations of engines are tried on how much of a
//! file, which of them come into the final, when that ends, and who has won. Pure: it
//! asks a [`Field`] for trials and for the time, and knows nothing else of the world.
//!
//! A round visits all of its arms once, in random order, and arms are only ever
//! compared within rounds: what made a round slow has made all of it slow.

#[cfg(test)]
mod final_tests;
mod grid;
mod paired;
mod search;
#[cfg(test)]
mod simulation;
mod verdict;

use iolens_model::tune::Extent;

pub use grid::{Axes, Fit, fit, grid, neighbours};
pub use paired::{Ratio, Rounds};
pub use search::{Field, Found, Plan, Visit, rematch, search, whole};
pub use verdict::{Against, Share, Verdict, verdict};

/// Difference that matters between two configurations.
pub const DELTA: f64 = 0.03;

/// Share of a limit from which on nothing is left to win.
pub const BOUND_SHARE: f64 = 0.95;

/// Upper end of the interval of a share over its lower end, from which on it is known: ±5 %.
pub const SHARE_ENDS: f64 = 1.1;

/// Rounds of a final, at least.
pub const ROUNDS_MIN: u32 = 12;

/// Comparisons that are judged together in a final of so many arms: which two of them it
/// is that are compared, the winner and each of the others, is chosen from the same rounds.
fn pairs_of(arms: usize) -> u32 {
    crate::interval::count(arms * arms.saturating_sub(1) / 2)
}

/// Configurations that are compared without it.
const ARMS_MAX: usize = 40;

/// How much more each rung reads than the one before.
const GROWTH: u64 = 4;

/// Every extent begins at a multiple of this: a huge page, and any alignment that
/// direct reads ask for.
const UNIT_BYTES: u64 = 2 << 20;

/// One rung of successive halving (Jamieson and Talwalkar 2016), by thirds: many configurations on
/// little of the file, a third of them on four times as much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rung {
    /// Configurations that it begins with.
    pub arms: usize,
    /// Bytes of a trial.
    pub bytes: u64,
}

/// The rungs for so many arms, of which the last reads `most` bytes and none less than
/// `least`; one where there are few.
pub fn rungs(arms: usize, least: u64, most: u64) -> Vec<Rung> {
    let mut counts = vec![arms];
    while let Some(&last) = counts.last().filter(|&&last| last > ARMS_MAX) {
        counts.push(last.div_ceil(3));
    }
    // One more, so that the last one is among few.
    if let Some(&last) = counts.last().filter(|_| counts.len() > 1) {
        counts.push(last.div_ceil(3));
    }
    let steps = counts.len() - 1;
    let bytes = |step: usize| {
        let share = GROWTH.saturating_pow(u32::try_from(steps - step).unwrap_or(u32::MAX));
        let whole = (most / share).next_multiple_of(UNIT_BYTES);
        whole.max(least).min(most)
    };
    counts.iter().enumerate().map(|(step, &arms)| Rung { arms, bytes: bytes(step) }).collect()
}

/// Where in a file the rungs read: one behind the other, from the beginning again
/// where the file ends.
pub fn extents(file_bytes: u64, sizes: &[u64]) -> Vec<Extent> {
    let mut next = 0;
    let place = |&size: &u64| {
        let bytes = size.min(file_bytes);
        let offset = if bytes > file_bytes - next { 0 } else { next };
        next = (offset + bytes).next_multiple_of(UNIT_BYTES).min(file_bytes);
        Extent { offset, bytes }
    };
    sizes.iter().map(place).collect()
}

/// The third of the arms (rounded up) whose rates are certainly the highest: by the
/// lower end of the interval of each one's advantage over its round. Best first.
pub fn keep_third(rounds: &Rounds) -> Vec<usize> {
    let mut scored: Vec<(usize, f64)> = rounds.lower_bounds();
    scored.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let keep = rounds.arms().div_ceil(3);
    scored.into_iter().take(keep).map(|(arm, _)| arm).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_arms_are_one_rung_and_many_are_cut_by_thirds() {
        assert_eq!(rungs(40, 1, 64 << 20), [Rung { arms: 40, bytes: 64 << 20 }]);
        let many = rungs(100, 1 << 20, 1 << 30);
        let (arms, mib): (Vec<usize>, Vec<u64>) =
            many.iter().map(|rung| (rung.arms, rung.bytes >> 20)).unzip();
        assert_eq!((arms, mib), (vec![100, 34, 12], vec![64, 256, 1024]));
        assert!(rungs(100, 1, 4096).iter().all(|rung| rung.bytes == 4096), "a tiny file");
    }

    #[test]
    fn the_best_third_is_kept_and_a_wild_one_is_not() {
        let mut rounds = Rounds::new(6);
        for round in 0..4 {
            // The last arm is the fastest half of the time, and the slowest otherwise.
            let wild = if round % 2 == 0 { 1.0 } else { 20.0 };
            for (arm, ns) in [10.0, 4.0, 6.0, 8.0, 4.2, wild].into_iter().enumerate() {
                rounds.put(arm, round, ns * (1.0 + f64::from(round)));
            }
        }
        assert_eq!(keep_third(&rounds), [1, 4]);
    }

    proptest! {
        #[test]
        fn extents_lie_within_the_file_and_apart(
            units in 1u64..2000,
            tail in 0u64..4096,
            sizes in prop::collection::vec(1u64..400, 1..6),
        ) {
            let file = units * UNIT_BYTES + tail;
            let sizes: Vec<u64> = sizes.iter().map(|units| units * UNIT_BYTES).collect();
            let placed = extents(file, &sizes);
            for (extent, size) in placed.iter().zip(&sizes) {
                prop_assert_eq!(extent.bytes, (*size).min(file));
                prop_assert!(extent.offset + extent.bytes <= file);
                prop_assert_eq!(extent.offset % UNIT_BYTES, 0);
            }
            if sizes.iter().sum::<u64>() <= file {
                let ends = |one: &Extent| one.offset + one.bytes;
                let apart = placed.windows(2).all(|two| ends(&two[0]) <= two[1].offset);
                prop_assert!(apart, "each byte in one rung: {placed:?}");
            }
        }
    }
}
