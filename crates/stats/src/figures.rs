//! Figures of one arm: totals over totals of its trials.

pub(crate) mod servers;

use iolens_model::arm::ArmOutcome;
use iolens_model::outcome::{Counts, MultishotCounts, ZerocopyCounts};

use crate::analysis::{Estimate, Figures, ZerocopyFigures};
use crate::gates::{cycles, instructions};
use crate::interval::{Parts, Totals, count};
use crate::student::StudentTable;
use crate::values::{ArmValues, Sums};

/// The figures of an arm over its used trials; null without any.
pub(crate) fn of(arms: &[&ArmValues], table: &mut StudentTable) -> Option<Figures> {
    let sums: Vec<&Sums> = arms.iter().map(|arm| &arm.sums).collect();
    let goodput = |sums: &Sums| Some(parts(bits(sums.received()?.bytes), seconds(sums)));
    let per_message = |sums: &Sums| sums.time_per_message();
    let trial_value =
        |sums: &&Sums| goodput(sums).or_else(|| per_message(sums)).map(|p| p.over / p.under);
    Some(Figures {
        ns_per_message: estimate(&sums, table, per_message)?,
        ns_per_byte: estimate(&sums, table, |sums| Some(parts(sums.tx.time_ns, sums.tx.bytes))),
        tx_cpu_ns_per_message: estimate(&sums, table, |sums| {
            Some(parts(sums.tx.task_clock_ns?, sums.tx.messages))
        }),
        cpu_ns_per_message: of_both_ends(&sums, table, |counts| counts.task_clock_ns),
        cycles_per_message: of_both_ends(&sums, table, cycles),
        instructions_per_message: of_both_ends(&sums, table, instructions),
        read_bytes_per_s: estimate(&sums, table, read_rate),
        device_share: estimate(&sums, table, delivered),
        goodput_bits_per_s: estimate(&sums, table, goodput),
        tx_cpu_ns_per_byte: estimate(&sums, table, |sums| {
            Some(parts(sums.tx.task_clock_ns?, sums.tx.bytes))
        }),
        rx_cpu_ns_per_byte: estimate(&sums, table, |sums| {
            let rx = sums.received()?;
            Some(parts(rx.task_clock_ns?, rx.bytes))
        }),
        tx_calls_per_message: estimate(&sums, table, |sums| {
            Some(parts(sums.tx.calls?, sums.tx.messages))
        }),
        tx_messages_per_call: estimate(&sums, table, |sums| {
            Some(parts(sums.tx.messages, sums.tx.calls?))
        }),
        tx_segments_per_message: estimate(&sums, table, |sums| {
            Some(parts(sums.tx.segments_out?, sums.tx.messages))
        }),
        context_switches_per_message: estimate(&sums, table, |sums| {
            Some(parts(sums.switches()?, sums.tx.messages))
        }),
        cycles_per_byte: estimate(&sums, table, |sums| {
            Some(parts(sums.both_ends(cycles)?, sums.tx.bytes))
        }),
        tx_cycles_per_byte: estimate(&sums, table, |sums| {
            Some(parts(cycles(&sums.tx)?, sums.tx.bytes))
        }),
        rx_cycles_per_byte: estimate(&sums, table, |sums| {
            let rx = sums.received()?;
            Some(parts(cycles(rx)?, rx.bytes))
        }),
        l1d_misses_per_kib: per_kib(&sums, table, |c| misses(c.pmu.l1d_misses, c.pmu.l1d_loads)),
        llc_misses_per_kib: per_kib(&sums, table, |counts| counts.pmu.llc_misses),
        llc_references_per_kib: per_kib(&sums, table, |counts| counts.pmu.llc_references),
        branch_misses_per_kib: per_kib(&sums, table, |c| {
            misses(c.pmu.branch_misses, c.pmu.branches)
        }),
        dtlb_misses_per_kib: per_kib(&sums, table, |c| misses(c.pmu.dtlb_misses, c.pmu.dtlb_loads)),
        stalled_frontend_per_cycle: per_cycle(&sums, table, |counts| {
            counts.pmu.stalled_cycles_frontend
        }),
        stalled_backend_per_cycle: per_cycle(&sums, table, |counts| {
            counts.pmu.stalled_cycles_backend
        }),
        run_delay_ns_per_message: of_both_ends(&sums, table, |counts| counts.run_delay_ns),
        softirq_ns_per_byte: softirq(arms, table),
        trial_values: sums.iter().filter_map(trial_value).collect(),
    })
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
fn of_both_ends(
    sums: &[&Sums],
    table: &mut StudentTable,
    of: impl Fn(&Counts) -> Option<u64>,
) -> Option<Estimate> {
    estimate(sums, table, |sums| Some(parts(sums.both_ends(&of)?, sums.tx.messages)))
}

fn per_kib(
    sums: &[&Sums],
    table: &mut StudentTable,
    of: impl Fn(&Counts) -> Option<u64>,
) -> Option<Estimate> {
    let kib = |sums: &Sums| sums.tx.bytes as f64 / 1024.0;
    estimate_of_some(sums, table, |sums| Some(parts(sums.both_ends(&of)?, kib(sums))))
}

/// Over the cycles of the same trials, which are counted in each.
fn per_cycle(
    sums: &[&Sums],
    table: &mut StudentTable,
    of: impl Fn(&Counts) -> Option<u64>,
) -> Option<Estimate> {
    estimate_of_some(sums, table, |sums| Some(parts(sums.both_ends(&of)?, sums.both_ends(cycles)?)))
}

/// Of the trials that have it: groups of counters that do not fit together
/// take turns, so each has whole trials, and n says how many.
fn estimate_of_some(
    sums: &[&Sums],
    table: &mut StudentTable,
    part: impl Fn(&Sums) -> Option<Parts>,
) -> Option<Estimate> {
    let measured: Vec<Parts> = sums.iter().filter_map(|sums| part(sums)).collect();
    (!measured.is_empty()).then(|| estimate_of(measured, table)).flatten()
}

/// Nanoseconds of a tick in /proc/stat, which counts in USER_HZ: 100 on every
/// architecture but Alpha, whatever the kernel's own HZ (proc(5)).
const TICK_NS: f64 = 1e9 / 100.0;

fn softirq(arms: &[&ArmValues], table: &mut StudentTable) -> Option<Estimate> {
    let part =
        |arm: &&ArmValues| Some(parts(arm.softirq_ticks? as f64 * TICK_NS, arm.sums.tx.bytes));
    estimate_of(arms.iter().map(part).collect::<Option<_>>()?, table)
}

/// Total over total with its interval; null where a trial lacks a part.
fn estimate(
    sums: &[&Sums],
    table: &mut StudentTable,
    part: impl Fn(&Sums) -> Option<Parts>,
) -> Option<Estimate> {
    estimate_of(sums.iter().map(|sums| part(sums)).collect::<Option<_>>()?, table)
}

/// A count that was zero in every trial is zero, without an interval: it has
/// no logarithm.
pub(crate) fn estimate_of(parts: Vec<Parts>, table: &mut StudentTable) -> Option<Estimate> {
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
        arms.iter().map(|arm| arm.sums.tx.zerocopy).collect::<Option<_>>()?;
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
    let received = || arms.iter().filter_map(|arm| arm.sums.received());
    let mapped: u64 = received().map(|counts| counts.mapped_bytes).sum::<Option<u64>>()?;
    let bytes: u64 = received().map(|counts| counts.bytes).sum();
    (bytes > 0).then(|| mapped as f64 / bytes as f64)
}

/// Multishot receives of all trials; null where one of them has none to count.
pub(crate) fn multishot(arms: &[&ArmValues]) -> Option<MultishotCounts> {
    let received = arms.iter().filter_map(|arm| arm.sums.received());
    let counts: Vec<MultishotCounts> =
        received.map(|counts| counts.multishot).collect::<Option<_>>()?;
    counts.into_iter().reduce(|sum, next| sum.plus(&next))
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
