//! An arm of a trial: sums over its measured slices.

use iolens_model::axes::Study;
use iolens_model::file::FileCounts;
use iolens_model::outcome::{KernelCounts, PmuCounts, SliceOutcome, TrialOutcome};
use iolens_model::run::Run;
use iolens_model::trial::SliceKind;
use serde_json::json;

use super::{
    PROMISED, Record, axes, counted, in_units, rate_of, slices, status, times, tuning, whose,
};
use crate::arm_facts;
use crate::named::{Named, fields, named, prefixed};
use crate::totals::{Counted, totals};

/// Of `net`. The columns that scripts may rely on come first, in the order in which they
/// were promised; the rest stands behind them.
pub(super) fn of_two_ends(run: &Run, trial: &TrialOutcome, index: usize) -> Record {
    let outcome = &trial.arms[index];
    let cell = &trial.cell;
    let net = cell.net();
    let sums = totals(trial, index);
    let sums = sums.as_ref();
    let mut latency = times("latency", outcome.latency.as_ref());
    let percentiles = latency.split_off(1);
    let share = |part, whole| sums.and_then(|sums| sums.share(part, whole));
    let columns = [
        whose(run, trial, outcome),
        fields!(net; receiver fields working_set),
        named! { slices: sums.map(|sums| sums.slices) },
        fields!(net; topology mode),
        named! { message_bytes: cell.size.0, threads: cell.threads },
        status(trial, outcome),
        counted(sums, ["time_ns", "rx_bytes", "tx_bytes", "messages"]),
        named! {
            goodput_bits_per_s: sums.and_then(Counted::goodput_bits_per_s),
            ns_per_message: sums.and_then(Counted::ns_per_message),
        },
        percentiles,
        counted(sums, ["tx_cpu_ns", "rx_cpu_ns", "context_switches", "migrations"]),
        counted(sums, ["minor_faults", "retransmits"]),
        counted(sums, PmuCounts::NAMES.into_iter().take(PROMISED)),
        named! { cycles_per_byte: sums.and_then(Counted::cycles_per_byte) },
        fields!(Some(outcome); copies_sender copies_end_to_end),
        counted(sums, ["zerocopy_sends", "zerocopy_completions"]),
        named! {
            zerocopy_copied_share: share("zerocopy_copied", "zerocopy_completions"),
            role: outcome.arm.role,
        },
        fields!(net; iovec),
        named! { isolated: trial.isolated },
        counted(sums, ["tx_calls", "rx_calls"]),
        counted(sums, FURTHER),
        latency,
        counted(sums, ["zerocopy_enobufs"]),
        counted(sums, later()),
        counted(sums, ["segments_out", "rx_mapped_bytes"]),
        named! {
            zerocopy_notifications_per_send: share("zerocopy_notifications", "zerocopy_sends"),
        },
        tuning(cell),
        counted(sums, ["rx_rearms", "rx_ring_enobufs"]),
    ];
    let whole =
        named! { latency_histogram: outcome.latency, facts: arm_facts::object(trial, index) };
    Record::new(run, columns.concat(), whole)
}

/// Sums that nobody was promised.
const FURTHER: [&str; 5] =
    ["cycles", "voluntary_switches", "involuntary_switches", "major_faults", "softirq_ticks"];

/// What came later. Counts of CPUs are left to the slices, since both ends may count the same CPU.
fn later() -> impl Iterator<Item = &'static str> {
    let kernel = KernelCounts::NAMES.into_iter().filter(|name| !name.starts_with("cpu_"));
    let pmu = PmuCounts::NAMES.into_iter().skip(PROMISED);
    std::iter::once("run_delay_ns").chain(pmu).chain(kernel)
}

/// What a row begins with in studies other than `net`.
pub(super) fn head(run: &Run, trial: &TrialOutcome, index: usize, sums: Option<&Counted>) -> Named {
    let outcome = &trial.arms[index];
    [
        whose(run, trial, outcome),
        named! {
            role: outcome.arm.role,
            isolated: trial.isolated,
            slices: sums.map(|sums| sums.slices),
        },
        axes(&trial.cell),
        status(trial, outcome),
        named! { unit: trial.cell.study().unit() },
        counted(sums, ["time_ns"]),
    ]
    .concat()
}

/// Of studies that have one end.
pub(super) fn of_one_end(run: &Run, trial: &TrialOutcome, index: usize) -> Record {
    let study = trial.cell.study();
    let sums = totals(trial, index);
    let sums = sums.as_ref();
    let own = |columns| in_units(columns, study);
    let ns_per_message = sums.and_then(Counted::ns_per_message);
    let rate: Named = match study {
        Study::Syscall => named! { calls_per_s: ns_per_message.map(|ns| 1e9 / ns) },
        study => {
            let bytes_per_ns = sums.and_then(|sums| sums.share("tx_bytes", "time_ns"));
            let name = format!("{}_bytes_per_s", rate_of(study));
            vec![(name.into(), json!(bytes_per_ns.map(|rate| rate * 1e9)))]
        }
    };
    // Per byte there is nothing to say of most calls.
    let per_byte = match study {
        Study::Syscall => Vec::new(),
        _ => named! { cycles_per_byte: sums.and_then(Counted::cycles_per_byte) },
    };
    let columns = [
        head(run, trial, index, sums),
        own(counted(sums, ["tx_messages", "tx_calls", "tx_bytes"])),
        own(named! { ns_per_message: ns_per_message }),
        rate,
        slices::found(&trial.cell, found(trial, index).as_ref()),
        own(counted(sums, ["tx_cpu_ns", "context_switches", "migrations", "minor_faults"])),
        counted(sums, PmuCounts::NAMES.into_iter().take(PROMISED)),
        per_byte,
        own(counted(sums, FURTHER)),
        own(counted(sums, later())),
        if study == Study::Copy { starts(trial, index) } else { Vec::new() },
    ];
    let whole = match study {
        Study::Syscall => Vec::new(),
        _ => named! { facts: arm_facts::object(trial, index) },
    };
    Record::new(run, columns.concat(), whole)
}

/// What was found of the file around the measured slices of an arm.
fn found(trial: &TrialOutcome, arm: usize) -> Option<FileCounts> {
    let own = |slice: &&SliceOutcome| slice.arm == arm && slice.kind == SliceKind::Measured;
    let counts = trial.slices.iter().filter(own).map(|slice| slice.tx.file);
    counts.reduce(|sum, next| Some(sum?.and_later(&next?))).flatten()
}

/// What starting a program took.
fn starts(trial: &TrialOutcome, arm: usize) -> Named {
    let own = trial.tx.iter().flat_map(|end| &end.starts).find(|start| start.arm == arm);
    let mut columns = prefixed("start_", fields!(own; median_ns min_ns max_ns));
    columns.extend(named! { starts: own.map(|start| start.runs) });
    columns
}
