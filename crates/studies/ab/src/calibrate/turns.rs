//! What of a change is hidden while programs take turns.
//!
//! Asking for a slice is the same however much work is in it. And who does more in its turns keeps
//! more of the caches that all share, and so is faster at it. What works by itself now and then, as
//! a collector of garbage does, does a part of it between turns. A program by itself shows none of
//! it: two processes of each take turns with all others, one of which always does twice as much.

use iolens_model::ab::{AB_HIDDEN_SHARE_MAX, AB_IDLE_SHARE_MAX};
use iolens_programs::Reading;

use super::probe::{Growth, Probe};
use super::{AbError, Probes, Slices};
use crate::setup::AB_SLICE_ALL_CPUS_NS;
use crate::trial::Draws;

/// Slices that are longer are not tried: they hide little but of the largest caches.
const LONG_NS: u64 = 20_000_000;

/// Time until caches are shared as they will be, ns.
const SETTLING_NS: u64 = 50_000_000;

/// Rounds that count of each of the two ways round, as many as fit into a time.
const ROUNDS: std::ops::Range<usize> = 5..40;

/// That time, ns.
const SPENT_NS: u64 = 150_000_000;

impl Probes<'_> {
    /// Makes slices longer until they hide little of a change, or are long; the part of a change
    /// that they hide of each program, in millionths, `None` where slices are long.
    pub(super) fn lengthen(
        &self,
        slices: &mut Slices,
        draws: &mut Draws,
    ) -> Result<Vec<Option<u32>>, AbError> {
        let programs = slices.expected_ns.len();
        if slices.slowest_ns() > LONG_NS {
            return Ok(vec![None; programs]);
        }
        let twice_each: Vec<usize> = (0..programs).flat_map(|program| [program; 2]).collect();
        self.with_each(&twice_each, draws, |probes| {
            for _ in 0..slices.warm {
                a_turn(probes, [slices.operations; 2])?;
            }
            loop {
                let Shares { hidden, between } = shares(probes, slices.operations)?;
                let most = |of: &[f64]| of.iter().copied().fold(0.0, f64::max);
                let is_short =
                    most(&hidden) > AB_HIDDEN_SHARE_MAX || most(&between) > AB_IDLE_SHARE_MAX / 2.0;
                if !is_short || slices.slowest_ns() > AB_SLICE_ALL_CPUS_NS / 2 {
                    return Ok(hidden.into_iter().map(|share| Some(ppm(share))).collect());
                }
                slices.double();
            }
        })
    }
}

/// A slice of each process, whose first of a program does so many operations and its second so
/// many.
fn a_turn(probes: &mut [Probe<'_>], operations: [u64; 2]) -> Result<Vec<Reading>, AbError> {
    let each = probes.iter_mut().zip(operations.into_iter().cycle());
    each.map(|(probe, operations)| probe.slice(operations)).collect()
}

/// Parts that slices of each program leave out.
struct Shares {
    /// What twice the operations take less than twice as long, as a part of what they should take
    /// more.
    hidden: Vec<f64>,
    /// CPU time between its slices, as a part of that within them.
    between: Vec<f64>,
}

fn shares(probes: &mut [Probe<'_>], operations: u64) -> Result<Shares, AbError> {
    let twice = operations.saturating_mul(2);
    let mut spent = vec![Spent::default(); probes.len() / 2];
    let second_does_twice = ratios(probes, [operations, twice], &mut spent)?;
    let first_does_twice = ratios(probes, [twice, operations], &mut spent)?;
    // How fast a process is by where its memory lies cancels.
    let both = second_does_twice.iter().zip(&first_does_twice);
    Ok(Shares {
        hidden: both
            .map(|(second, first)| (2.0 - (second / first).sqrt()).clamp(0.0, 1.0))
            .collect(),
        between: spent.iter().map(|spent| spent.between()).collect(),
    })
}

/// CPU time of the processes of a program, ns.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    within_ns: u64,
    between_ns: u64,
}

impl Spent {
    fn add(&mut self, reading: &Reading) {
        self.within_ns += reading.cpu_ns.unwrap_or_default();
        self.between_ns += reading.idle_cpu_ns.unwrap_or_default();
    }

    /// As a part of that within slices; none where that is not known.
    fn between(self) -> f64 {
        if self.within_ns > 0 { self.between_ns as f64 / self.within_ns as f64 } else { 0.0 }
    }
}

/// How many times as long the second process of each program takes, and what they spend.
fn ratios(
    probes: &mut [Probe<'_>],
    operations: [u64; 2],
    spent: &mut [Spent],
) -> Result<Vec<f64>, AbError> {
    let mut settled_ns = 0;
    while settled_ns < SETTLING_NS {
        settled_ns += took_ns(&a_turn(probes, operations)?);
    }
    let mut growths: Vec<Growth> = (0..probes.len() / 2).map(|_| Growth::default()).collect();
    let (mut rounds, mut spent_ns) = (0, 0);
    while rounds < ROUNDS.start || rounds < ROUNDS.end && spent_ns < SPENT_NS {
        let readings = a_turn(probes, operations)?;
        let (pairs, _) = readings.as_chunks::<2>();
        for ((growth, spent), pair @ [first, second]) in
            growths.iter_mut().zip(&mut *spent).zip(pairs)
        {
            growth.add(first, second);
            pair.iter().for_each(|reading| spent.add(reading));
        }
        spent_ns += took_ns(&readings);
        rounds += 1;
    }
    Ok(growths.into_iter().map(Growth::ratio).collect())
}

fn took_ns(readings: &[Reading]) -> u64 {
    readings.iter().map(|reading| reading.took_ns).sum()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to 1")]
fn ppm(share: f64) -> u32 {
    (share * 1e6).round() as u32
}
