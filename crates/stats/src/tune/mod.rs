//! The search of `tune`: which configurations of engines are tried on how much of a
//! file, which of them come into the final, when that ends, and who has won. Pure: it
//! asks a [`Field`] for trials and for the time, and knows nothing else of the world.
//!
//! A round visits all of its arms once, in random order, and arms are only ever
//! compared within rounds: what made a round slow has made all of it slow.

#[cfg(test)]
mod finals;
mod fit;
mod grid;
mod halving;
mod paired;
mod search;
#[cfg(test)]
mod simulation;
mod verdict;

pub use fit::{Fit, fit};
pub use grid::{Axes, grid, neighbours};
pub use halving::{Rung, extents, keep_third, rungs};
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
