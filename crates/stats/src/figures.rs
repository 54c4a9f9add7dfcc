//! Figures of one arm: totals over totals of its trials.

pub(crate) mod servers;

use iolens_model::arm::ArmOutcome;
use iolens_model::outcome::{Counts, MultishotCounts, ZerocopyCounts};
use serde::Serialize;

use crate::estimate::Estimate;
use crate::gates::{cycles, instructions};
use crate::interval::{OverPasses, Parts};
use crate::quantity::Quantity;
use crate::student::StudentTable;
use crate::sums::Sums;
use crate::values::ArmValues;

/// What makes up a figure in one trial; `None` where that was not counted.
type Part = fn(&ArmValues, &Sums) -> Option<Parts>;

/// Which trials a figure needs.
enum Of {
    /// Every one.
    Every,
    /// Those that have it: groups of counters that do not fit together take turns, so each
    /// has whole trials, and n says how many.
    Having,
}

/// Makes the catalogue: the figures of an arm, and what each is made of. An entry is
/// ```text
/// name: trials, |arm, sums| parts;
/// ```
macro_rules! figures {
    ($($(#[$doc:meta])+ $name:ident: $of:ident,
        |$arm:pat_param, $sums:pat_param| $part:expr;)+) => {
        /// Single-arm figures: totals over totals, with t intervals over trials.
        /// `None` where a part of the figure was not measured.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        pub struct Figures {
            /// Nanoseconds per message: 1 / message rate, not a latency.
            pub ns_per_message: Estimate,
            $($(#[$doc])+ pub $name: Option<Estimate>,)+
            /// The value of each used trial, for the strip behind the number:
            /// goodput in bit/s, or ns per message where there is no receiver.
            pub trial_values: Vec<f64>,
        }

        const PARTS: &[(Of, Part)] = &[$((Of::$of, |$arm, $sums| $part)),+];

        fn named(found: Found, table: &mut StudentTable) -> Option<Figures> {
            let mut estimate = |sum: Sum| sum?.estimate(table);
            let ns_per_message = estimate(found.time)?;
            let mut sums = found.sums.into_iter();
            $(let $name = sums.next().and_then(&mut estimate);)+
            Some(Figures { ns_per_message, $($name,)+ trial_values: found.trial_values })
        }
    };
}

figures! {
    /// Received payload bits per second; `None` for arms without a receiver.
    goodput_bits_per_s: Every, |_, s| goodput(s);
    /// Bytes of the file read per second; `None` in other studies than `file`, here and
    /// below.
    read_bytes_per_s: Every, |_, s| read_rate(s);
    /// Bytes that storage delivered over bytes read: 0 from the page cache, 1 from the
    /// device, more with what was read ahead.
    device_share: Every, |_, s| delivered(s);
    /// Nanoseconds per payload byte; `None` for calls that move none.
    ns_per_byte: Every, |_, s| Some(parts(s.tx.time_ns, s.tx.bytes));
    /// CPU time of the sending threads per message, or per call, ns.
    tx_cpu_ns_per_message: Every, |_, s| Some(parts(s.tx.task_clock_ns?, s.tx.messages));
    /// CPU time of the threads of both ends per message, ns; of the one end where there is
    /// no other.
    cpu_ns_per_message: Every, |_, s| of_both_ends(s, |counts| counts.task_clock_ns);
    /// CPU cycles of both ends per message, or per call, user and kernel.
    cycles_per_message: Every, |_, s| of_both_ends(s, cycles);
    /// Instructions of both ends per message, or per call, user and kernel.
    instructions_per_message: Every, |_, s| of_both_ends(s, instructions);
    /// CPU time of the sending threads per payload byte, ns.
    tx_cpu_ns_per_byte: Every, |_, s| Some(parts(s.tx.task_clock_ns?, s.tx.bytes));
    /// CPU time of the receiving threads per payload byte, ns.
    rx_cpu_ns_per_byte: Every, |_, s| {
        s.received().and_then(|rx| Some(parts(rx.task_clock_ns?, rx.bytes)))
    };
    /// System calls of the sender per message; `None` where nobody counts them.
    tx_calls_per_message: Every, |_, s| Some(parts(s.tx.calls?, s.tx.messages));
    /// Messages of the sender per system call; `None` where it makes none.
    tx_messages_per_call: Every, |_, s| Some(parts(s.tx.messages, s.tx.calls?));
    /// Segments that the sender's kernel sent per message, those that only
    /// acknowledge among them.
    tx_segments_per_message: Every, |_, s| Some(parts(s.tx.segments_out?, s.tx.messages));
    /// Context switches of both ends per message.
    context_switches_per_message: Every, |_, s| Some(parts(s.switches()?, s.tx.messages));
    /// Times that a thread of either end waited, per message.
    voluntary_switches_per_message: Every, |_, s| of_both_ends(s, |c| c.voluntary_switches);
    /// Times that the scheduler took the CPU from a thread of either end, per message.
    involuntary_switches_per_message: Every, |_, s| of_both_ends(s, |c| c.involuntary_switches);
    /// CPU cycles of both ends per payload byte, user and kernel.
    cycles_per_byte: Every, |_, s| Some(parts(s.both_ends(cycles)?, s.tx.bytes));
    /// CPU cycles of the sending end per payload byte, user and kernel.
    tx_cycles_per_byte: Every, |_, s| Some(parts(cycles(&s.tx)?, s.tx.bytes));
    /// CPU cycles of the receiving end per payload byte, user and kernel.
    rx_cycles_per_byte: Every, |_, s| {
        s.received().and_then(|rx| Some(parts(cycles(rx)?, rx.bytes)))
    };
    /// First-level data cache misses of both ends per KiB of payload.
    l1d_misses_per_kib: Having, |_, s| per_kib(s, |c| misses(c.pmu.l1d_misses, c.pmu.l1d_loads));
    /// Last-level cache misses of both ends per KiB of payload.
    llc_misses_per_kib: Having, |_, s| per_kib(s, |counts| counts.pmu.llc_misses);
    /// Last-level cache references of both ends per KiB of payload.
    llc_references_per_kib: Having, |_, s| per_kib(s, |counts| counts.pmu.llc_references);
    /// Mispredicted branches of both ends per KiB of payload.
    branch_misses_per_kib: Having, |_, s| {
        per_kib(s, |c| misses(c.pmu.branch_misses, c.pmu.branches))
    };
    /// First-level data TLB misses of both ends per KiB of payload.
    dtlb_misses_per_kib: Having, |_, s| per_kib(s, |c| misses(c.pmu.dtlb_misses, c.pmu.dtlb_loads));
    /// Cycles in which the front end issued nothing, over all cycles.
    stalled_frontend_per_cycle: Having, |_, s| per_cycle(s, |c| c.pmu.stalled_cycles_frontend);
    /// Cycles in which the back end took nothing, over all cycles.
    stalled_backend_per_cycle: Having, |_, s| per_cycle(s, |c| c.pmu.stalled_cycles_backend);
    /// Time for which threads of both ends were ready to run and waited for a
    /// CPU, per message, ns.
    run_delay_ns_per_message: Every, |_, s| of_both_ends(s, |counts| counts.run_delay_ns);
    /// Time in softirq on the CPUs of both ends per payload byte, ns, whoever
    /// caused it, from timer ticks: its error is one tick in the sum.
    softirq_ns_per_byte: Every, |arm, s| softirq_time(arm, s);
}

/// Zero-copy sends of an arm in a cell, summed over its used trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ZerocopyFigures {
    /// As [`ZerocopyCounts::sends`](iolens_model::outcome::ZerocopyCounts::sends).
    pub sends: u64,
    /// Ids whose completion came.
    pub completions: u64,
    /// Notifications that the kernel delivered over sends; `None` where they were not counted.
    pub notifications_per_send: Option<f64>,
    /// Share of the completions that the kernel reported as copied, 0 to 1.
    pub copied_share: Option<f64>,
    /// Calls refused with `ENOBUFS` and made again.
    pub enobufs: u64,
}

impl ZerocopyFigures {
    /// Above this reported share a row is "copied", not "zero-copy".
    pub const COPIED_SHARE_MAX: f64 = 0.05;

    /// Whether the row is labelled "copied".
    pub fn is_copied(&self) -> bool {
        self.copied_share.is_some_and(|share| share > ZerocopyFigures::COPIED_SHARE_MAX)
    }
}

/// What the trials counted; `None` where one that is needed lacks it.
type Sum = Option<OverPasses>;

/// The sums of all figures over the trials.
struct Found {
    time: Sum,
    sums: Vec<Sum>,
    trial_values: Vec<f64>,
}

/// The figures of an arm over its used trials, each with its pass, in the order of passes; `None`
/// without any. The sums of each trial are unpacked once, for all figures.
pub(crate) fn of(arms: &[(u32, &ArmValues)], table: &mut StudentTable) -> Option<Figures> {
    let mut found = Found {
        time: Some(OverPasses::default()),
        sums: vec![Some(OverPasses::default()); PARTS.len()],
        trial_values: Vec::with_capacity(arms.len()),
    };
    for (pass, arm) in arms {
        let sums = arm.sums();
        let time = Quantity::Time.of_trial(&sums);
        add(&mut found.time, *pass, time);
        for ((of, part), sum) in PARTS.iter().zip(&mut found.sums) {
            match (of, part(arm, &sums)) {
                (Of::Having, None) => {}
                (_, counted) => add(sum, *pass, counted),
            }
        }
        let value = goodput(&sums).or(time);
        found.trial_values.extend(value.map(Parts::ratio));
    }
    named(found, table)
}

/// Adds what a trial counted to a sum that needs every trial; `None` as soon as one lacks it.
fn add(sum: &mut Sum, pass: u32, counted: Option<Parts>) {
    match (sum.as_mut(), counted) {
        (Some(sum), Some(counted)) => sum.add((pass, counted)),
        _ => *sum = None,
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
    Some(parts(f64::from(arm.softirq?) * TICK_NS, sums.tx.bytes))
}

/// Zero-copy sends of all trials; `None` where one of them has none to count.
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

/// Share of the received bytes of all trials that was mapped; `None` where one of
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

/// Multishot receives of all trials; `None` where one of them has none to count.
pub(crate) fn multishot(arms: &[&ArmValues]) -> Option<MultishotCounts> {
    let mut sum: Option<MultishotCounts> = None;
    for sums in arms.iter().map(|arm| arm.sums()) {
        let Some(received) = sums.received() else { continue };
        let counted = received.multishot?;
        sum = Some(sum.map_or(counted, |sum| sum.plus(&counted)));
    }
    sum
}

/// Copies of each payload byte, mean over the trials; `None` where one of them
/// does not know. The mean matters where the kernel decides in each trial
/// anew whether it copies.
pub(crate) fn copies(arms: &[&ArmValues], of: impl Fn(&ArmOutcome) -> Option<f64>) -> Option<f64> {
    let copies: Vec<f64> = arms.iter().map(|arm| of(&arm.outcome)).collect::<Option<_>>()?;
    (!copies.is_empty()).then(|| copies.iter().sum::<f64>() / copies.len() as f64)
}

#[cfg(test)]
mod tests;
