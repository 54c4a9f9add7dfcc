//! What programs are in turns with each other, which none of them shows by itself.
//!
//! Asking for a slice takes the same however much work is in it, and who does more in its turns
//! keeps more of the caches that all share, and so is faster at it: slices that differ in work hide
//! a part of the difference. So they are made alike in time. How much is hidden of what they still
//! differ by is found out: two processes of each program take turns with all others, one of which
//! always does twice as much. What works by itself now and then, as a collector of garbage does,
//! does a part of it between turns: then slices become longer.

use iolens_model::ab::{AB_IDLE_SHARE_MAX, whole_ln_ratio};
use iolens_programs::Reading;

use super::probe::{Growth, Probe};
use super::slices::OpCost;
use super::slices::WarmUp;
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
    /// Makes slices longer until little work is between them, or they are long, and as long as each
    /// other in turns. What twice the operations of each program take less than twice as long, in
    /// millionths, `None` where slices are long.
    pub(super) fn lengthen(
        &self,
        slices: &mut Slices,
        draws: &mut Draws,
    ) -> Result<Vec<Option<u32>>, AbError> {
        let programs = slices.own.len();
        if slices.slowest_ns() > LONG_NS {
            return Ok(vec![None; programs]);
        }
        let twice_each: Vec<usize> = (0..programs).flat_map(|program| [program; 2]).collect();
        self.with_each(&twice_each, draws, |probes| {
            slices.warm = warm_up(probes, slices, self.setup.warm_up_ns)?;
            loop {
                let found = found(probes, slices)?;
                slices.now_take(&beside_each_other(&found, slices));
                let most = found.iter().map(|one| one.between).fold(0.0, f64::max);
                let is_short = most > AB_IDLE_SHARE_MAX / 2.0;
                if !is_short || slices.slowest_ns() > AB_SLICE_ALL_CPUS_NS / 2 {
                    return Ok(found.into_iter().map(|one| Some(ppm(one.fixed))).collect());
                }
                slices.double();
            }
        })
    }
}

/// Runs slices of all for so long, or until those of no program become cheaper; how many that took.
fn warm_up(
    probes: &mut [Probe<'_>],
    slices: &Slices,
    stated_ns: Option<u64>,
) -> Result<u32, AbError> {
    let mut programs: Vec<_> = slices.own.iter().map(|_| WarmUp::of(stated_ns)).collect();
    while !programs.iter().all(WarmUp::is_over) {
        let readings = a_turn(probes, slices, [1, 1])?;
        let (pairs, _) = readings.as_chunks::<2>();
        programs.iter_mut().zip(pairs).for_each(|(own, pair)| own.add(pair));
    }
    Ok(programs.iter().map(|own| own.slices).max().unwrap_or(0))
}

/// A slice of each process, whose first of a program does so many times the operations of its
/// slices, and its second so many.
fn a_turn(
    probes: &mut [Probe<'_>],
    slices: &Slices,
    times: [u64; 2],
) -> Result<Vec<Reading>, AbError> {
    let each = slices.own.iter().flat_map(|own| times.map(|n| own.operations.saturating_mul(n)));
    probes.iter_mut().zip(each).map(|(probe, operations)| probe.slice(operations)).collect()
}

/// A program in turns with others.
struct InTurns {
    /// What twice the operations take less than twice as long, as a part of what they should take
    /// more.
    fixed: f64,
    /// CPU time between its slices, as a part of that within them.
    between: f64,
    cost: Option<OpCost>,
}

fn found(probes: &mut [Probe<'_>], slices: &Slices) -> Result<Vec<InTurns>, AbError> {
    let mut spent: Vec<Spent> = slices.own.iter().map(|_| Spent::default()).collect();
    let second_does_twice = ratios(probes, slices, [1, 2], &mut spent)?;
    let first_does_twice = ratios(probes, slices, [2, 1], &mut spent)?;
    let both = second_does_twice.into_iter().zip(first_does_twice);
    let each = both.zip(spent).zip(&slices.own);
    let each = each.map(|(((second, first), spent), own)| InTurns {
        // How fast a process is by where its memory lies cancels.
        fixed: (2.0 - (second / first).sqrt()).clamp(0.0, 1.0),
        between: spent.between(),
        cost: OpCost::of(spent.once.into_iter().map(|(time, cpu)| (time, cpu, own.operations))),
    });
    Ok(each.collect())
}

/// What an operation of each program takes, ns, where slices would be as long as the first one's.
fn beside_each_other(found: &[InTurns], slices: &Slices) -> Vec<Option<f64>> {
    let op_ns = OpCost::alike(&found.iter().map(|one| one.cost).collect::<Vec<_>>());
    let whole = |nth: usize| {
        let (baseline_ns, own_ns) = (op_ns[0]?, op_ns[nth]?);
        let operations = |nth: usize| slices.own[nth].operations as f64;
        let fixed = f64::midpoint(found[0].fixed, found[nth].fixed);
        let (ln, alike) = ((own_ns / baseline_ns).ln(), (operations(0) / operations(nth)).ln());
        Some(baseline_ns * whole_ln_ratio(ln, alike, fixed).exp())
    };
    (0..found.len()).map(whole).collect()
}

/// What the processes of a program spend, ns.
#[derive(Debug, Default)]
struct Spent {
    /// CPU time.
    within_ns: u64,
    between_ns: u64,
    /// Time and CPU time of each slice that is not twice as long.
    once: Vec<(u64, Option<u64>)>,
}

impl Spent {
    fn add(&mut self, reading: &Reading) {
        self.within_ns += reading.cpu_ns.unwrap_or_default();
        self.between_ns += reading.idle_cpu_ns.unwrap_or_default();
    }

    /// As a part of that within slices; none where that is not known.
    fn between(&self) -> f64 {
        if self.within_ns > 0 { self.between_ns as f64 / self.within_ns as f64 } else { 0.0 }
    }
}

/// How many times as long the second process of each program takes, and what they spend.
fn ratios(
    probes: &mut [Probe<'_>],
    slices: &Slices,
    times: [u64; 2],
    spent: &mut [Spent],
) -> Result<Vec<f64>, AbError> {
    let mut settled_ns = 0;
    while settled_ns < SETTLING_NS {
        settled_ns += took_ns(&a_turn(probes, slices, times)?);
    }
    let mut growths: Vec<Growth> = (0..probes.len() / 2).map(|_| Growth::default()).collect();
    let (mut rounds, mut spent_ns) = (0, 0);
    while rounds < ROUNDS.start || rounds < ROUNDS.end && spent_ns < SPENT_NS {
        let readings = a_turn(probes, slices, times)?;
        let (pairs, _) = readings.as_chunks::<2>();
        for ((growth, spent), pair @ [first, second]) in
            growths.iter_mut().zip(&mut *spent).zip(pairs)
        {
            growth.add(first, second);
            pair.iter().for_each(|reading| spent.add(reading));
            let once = if times[0] < times[1] { first } else { second };
            spent.once.push((once.alone_ns(), once.cpu_ns));
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
