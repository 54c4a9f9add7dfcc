//! Figures of one arm: totals over totals of its trials.

pub(crate) mod servers;

use iolens_model::arm::ArmOutcome;
use iolens_model::outcome::{Counts, MultishotCounts, ZerocopyCounts};

use crate::analysis::{Estimate, Figures, ZerocopyFigures};
use crate::gates::{cycles, instructions};
use crate::interval::{Parts, Totals, by_pass, count};
use crate::student::StudentTable;
use crate::values::{ArmValues, Sums};

/// What makes up a figure in one trial; null where that was not counted.
type Part = fn(&Sums) -> Option<Parts>;

/// Figures that need every trial, in the order in which [`of`] names them.
const OF_ALL: [Part; 19] = [
    Sums::time_per_message,
    |sums| Some(parts(sums.tx.time_ns, sums.tx.bytes)),
    |sums| Some(parts(sums.tx.task_clock_ns?, sums.tx.messages)),
    |sums| of_both_ends(sums, |counts| counts.task_clock_ns),
    |sums| of_both_ends(sums, cycles),
    |sums| of_both_ends(sums, instructions),
    read_rate,
    delivered,
    goodput,
    |sums| Some(parts(sums.tx.task_clock_ns?, sums.tx.bytes)),
    |sums| sums.received().and_then(|rx| Some(parts(rx.task_clock_ns?, rx.bytes))),
    |sums| Some(parts(sums.tx.calls?, sums.tx.messages)),
    |sums| Some(parts(sums.tx.messages, sums.tx.calls?)),
    |sums| Some(parts(sums.tx.segments_out?, sums.tx.messages)),
    |sums| Some(parts(sums.switches()?, sums.tx.messages)),
    |sums| Some(parts(sums.both_ends(cycles)?, sums.tx.bytes)),
    |sums| Some(parts(cycles(&sums.tx)?, sums.tx.bytes)),
    |sums| sums.received().and_then(|rx| Some(parts(cycles(rx)?, rx.bytes))),
    |sums| of_both_ends(sums, |counts| counts.run_delay_ns),
];

/// Figures of the trials that have them, likewise: groups of counters that do not fit
/// together take turns, so each has whole trials, and n says how many.
const OF_SOME: [Part; 7] = [
    |sums| per_kib(sums, |c| misses(c.pmu.l1d_misses, c.pmu.l1d_loads)),
    |sums| per_kib(sums, |counts| counts.pmu.llc_misses),
    |sums| per_kib(sums, |counts| counts.pmu.llc_references),
    |sums| per_kib(sums, |c| misses(c.pmu.branch_misses, c.pmu.branches)),
    |sums| per_kib(sums, |c| misses(c.pmu.dtlb_misses, c.pmu.dtlb_loads)),
    |sums| per_cycle(sums, |counts| counts.pmu.stalled_cycles_frontend),
    |sums| per_cycle(sums, |counts| counts.pmu.stalled_cycles_backend),
];

/// The figures of an arm over its used trials, each with its pass; null without any. The sums of
/// each trial are unpacked once, for all figures.
pub(crate) fn of(arms: &[(u32, &ArmValues)], table: &mut StudentTable) -> Option<Figures> {
    let mut all = OF_ALL.map(|_| Some(Vec::with_capacity(arms.len())));
    let mut some = OF_SOME.map(|_| Vec::new());
    let mut softirq = Some(Vec::new());
    let mut trial_values = Vec::with_capacity(arms.len());
    for &(pass, arm) in arms {
        let sums = arm.sums();
        let with_pass = |parts: Option<Parts>| Some((pass, parts?));
        all.iter_mut().zip(OF_ALL).for_each(|(column, part)| add(column, with_pass(part(&sums))));
        some.iter_mut()
            .zip(OF_SOME)
            .for_each(|(column, part)| column.extend(with_pass(part(&sums))));
        add(&mut softirq, with_pass(softirq_time(arm, &sums)));
        let value = goodput(&sums).or_else(|| sums.time_per_message());
        trial_values.extend(value.map(|parts| parts.over / parts.under));
    }
    let mut all = all.map(|column| estimate_of(column?, table)).into_iter();
    let mut some = some.map(|column| estimate_of(column, table)).into_iter();
    let (mut all, mut some) = (|| all.next().flatten(), || some.next().flatten());
    // In this order.
    Some(Figures {
        ns_per_message: all()?,
        ns_per_byte: all(),
        tx_cpu_ns_per_message: all(),
        cpu_ns_per_message: all(),
        cycles_per_message: all(),
        instructions_per_message: all(),
        read_bytes_per_s: all(),
        device_share: all(),
        goodput_bits_per_s: all(),
        tx_cpu_ns_per_byte: all(),
        rx_cpu_ns_per_byte: all(),
        tx_calls_per_message: all(),
        tx_messages_per_call: all(),
        tx_segments_per_message: all(),
        context_switches_per_message: all(),
        cycles_per_byte: all(),
        tx_cycles_per_byte: all(),
        rx_cycles_per_byte: all(),
        run_delay_ns_per_message: all(),
        l1d_misses_per_kib: some(),
        llc_misses_per_kib: some(),
        llc_references_per_kib: some(),
        branch_misses_per_kib: some(),
        dtlb_misses_per_kib: some(),
        stalled_frontend_per_cycle: some(),
        stalled_backend_per_cycle: some(),
        softirq_ns_per_byte: softirq.and_then(|column| estimate_of(column, table)),
        trial_values,
    })
}

/// Adds what a trial counted to a column that needs every trial; null as soon as one lacks it.
fn add(column: &mut Option<Vec<InPass>>, counted: Option<InPass>) {
    match (column.as_mut(), counted) {
        (Some(column), Some(counted)) => column.push(counted),
        _ => *column = None,
    }
}

/// Bits that arrived, over the time it took.
fn goodput(sums: &Sums) -> Option<Parts> {
    Some(parts(bits(sums.received()?.bytes), seconds(sums)))
}

/// Bytes of a file read in a second, or written.
fn read_rate(sums: &Sums) -> Option<Parts> {
    // What shares blocks moves none, at no rate.
    let moved = sums.tx.file.map(|_| sums.tx.bytes).filter(|&bytes| bytes > 0);
    moved.map(|bytes| parts(bytes, seconds(sums)))
}

/// Bytes that storage delivered, over those that were read.
fn delivered(sums: &Sums) -> Option<Parts> {
    Some(parts(sums.tx.file?.device_bytes?, sums.tx.bytes))
}

/// A number that a total is made of.
trait Counted {
    fn number(self) -> f64;
}

impl Counted for u64 {
    fn number(self) -> f64 {
        self as f64
    }
}

impl Counted for f64 {
    fn number(self) -> f64 {
        self
    }
}

fn parts(over: impl Counted, under: impl Counted) -> Parts {
    Parts { over: over.number(), under: under.number() }
}

fn bits(bytes: u64) -> f64 {
    bytes as f64 * 8.0
}

fn seconds(sums: &Sums) -> f64 {
    sums.tx.time_ns as f64 / 1e9
}

/// Zero misses of zero loads were not counted.
fn misses(misses: Option<u64>, of: Option<u64>) -> Option<u64> {
    misses.filter(|_| of != Some(0))
}

/// A count of both ends over messages.
fn of_both_ends(sums: &Sums, of: fn(&Counts) -> Option<u64>) -> Option<Parts> {
    Some(parts(sums.both_ends(of)?, sums.tx.messages))
}

fn per_kib(sums: &Sums, of: fn(&Counts) -> Option<u64>) -> Option<Parts> {
    Some(parts(sums.both_ends(of)?, sums.tx.bytes as f64 / 1024.0))
}

/// Over the cycles of the same trials, which are counted in each.
fn per_cycle(sums: &Sums, of: fn(&Counts) -> Option<u64>) -> Option<Parts> {
    Some(parts(sums.both_ends(of)?, sums.both_ends(cycles)?))
}

/// Nanoseconds of a tick in /proc/stat, which counts in USER_HZ: 100 on every
/// architecture but Alpha, whatever the kernel's own HZ (proc(5)).
const TICK_NS: f64 = 1e9 / 100.0;

fn softirq_time(arm: &ArmValues, sums: &Sums) -> Option<Parts> {
    Some(parts(arm.softirq_ticks? as f64 * TICK_NS, sums.tx.bytes))
}

/// What a trial of this pass counted.
pub(crate) type InPass = (u32, Parts);

/// Total over total with its interval over passes; null without trials.
///
/// A count that was zero in every trial is zero, without an interval: it has
/// no logarithm.
pub(crate) fn estimate_of(trials: Vec<InPass>, table: &mut StudentTable) -> Option<Estimate> {
    let parts = by_pass(trials);
    if let Some(totals) = Totals::of(&parts) {
        return Some(totals.estimate(table));
    }
    let nothing = parts.iter().all(|part| part.over == 0.0 && part.under > 0.0);
    (nothing && !parts.is_empty()).then(|| Estimate {
        value: 0.0,
        interval: None,
        n: count(parts.len()),
    })
}

/// Zero-copy sends of all trials; null where one of them has none to count.
pub(crate) fn zerocopy(arms: &[&ArmValues]) -> Option<ZerocopyFigures> {
    let counts: Vec<ZerocopyCounts> =
        arms.iter().map(|arm| arm.sums().tx.zerocopy).collect::<Option<_>>()?;
    let sum = counts.into_iter().reduce(|sum, next| sum.plus(&next))?;
    Some(ZerocopyFigures {
        sends: sum.sends,
        completions: sum.completions,
        notifications_per_send: sum.notifications_per_send(),
        copied_share: sum.copied_share(),
        enobufs: sum.enobufs,
    })
}

/// Share of the received bytes of all trials that was mapped; null where one of
/// them has none to count.
pub(crate) fn mapped_share(arms: &[&ArmValues]) -> Option<f64> {
    let (mut mapped, mut bytes) = (0, 0);
    for sums in arms.iter().map(|arm| arm.sums()) {
        let Some(received) = sums.received() else { continue };
        mapped += received.mapped_bytes?;
        bytes += received.bytes;
    }
    (bytes > 0).then(|| mapped as f64 / bytes as f64)
}

/// Multishot receives of all trials; null where one of them has none to count.
pub(crate) fn multishot(arms: &[&ArmValues]) -> Option<MultishotCounts> {
    let mut sum: Option<MultishotCounts> = None;
    for sums in arms.iter().map(|arm| arm.sums()) {
        let Some(received) = sums.received() else { continue };
        let counted = received.multishot?;
        sum = Some(sum.map_or(counted, |sum| sum.plus(&counted)));
    }
    sum
}

/// Copies of each payload byte, mean over the trials; null where one of them
/// does not know. The mean matters where the kernel decides in each trial
/// anew whether it copies.
pub(crate) fn copies(arms: &[&ArmValues], of: impl Fn(&ArmOutcome) -> Option<f64>) -> Option<f64> {
    let copies: Vec<f64> = arms.iter().map(|arm| of(&arm.outcome)).collect::<Option<_>>()?;
    (!copies.is_empty()).then(|| copies.iter().sum::<f64>() / copies.len() as f64)
}

#[cfg(test)]
mod tests;
