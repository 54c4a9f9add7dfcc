//! Figures of one arm: totals over totals of its trials.

use crate::analysis::{Estimate, Figures};
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
        ns_per_byte: estimate(&sums, table, |sums| Some(parts(sums.tx.time_ns, sums.tx.bytes)))?,
        goodput_bits_per_s: estimate(&sums, table, goodput),
        tx_cpu_ns_per_byte: estimate(&sums, table, |sums| {
            Some(parts(sums.tx.task_clock_ns?, sums.tx.bytes))
        }),
        rx_cpu_ns_per_byte: estimate(&sums, table, |sums| {
            let rx = sums.received()?;
            Some(parts(rx.task_clock_ns?, rx.bytes))
        }),
        tx_calls_per_message: estimate(&sums, table, |sums| {
            Some(parts(sums.tx.calls, sums.tx.messages))
        })?,
        context_switches_per_message: estimate(&sums, table, |sums| {
            Some(parts(switches(sums)?, sums.tx.messages))
        }),
        cycles_per_byte: None,
        tx_cycles_per_byte: None,
        rx_cycles_per_byte: None,
        l1d_misses_per_kib: None,
        llc_misses_per_kib: None,
        llc_references_per_kib: None,
        softirq_ns_per_byte: None,
        trial_values: sums.iter().filter_map(trial_value).collect(),
    })
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

/// Voluntary and involuntary switches of both ends; of the one end where the
/// arm has no receiver.
fn switches(sums: &Sums) -> Option<u64> {
    let of = |counts: &iolens_model::outcome::Counts| {
        Some(counts.voluntary_switches?.saturating_add(counts.involuntary_switches?))
    };
    let received = if sums.rx_slices == 0 { 0 } else { of(sums.received()?)? };
    Some(of(&sums.tx)?.saturating_add(received))
}

/// Total over total with its interval; null where a trial lacks a part. A
/// count that was zero in every trial is zero, without an interval: it has no
/// logarithm.
fn estimate(
    sums: &[&Sums],
    table: &mut StudentTable,
    part: impl Fn(&Sums) -> Option<Parts>,
) -> Option<Estimate> {
    let parts: Vec<Parts> = sums.iter().map(|sums| part(sums)).collect::<Option<_>>()?;
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
