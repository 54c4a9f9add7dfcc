//! Rows of the studies `file` and `write`: what is counted is blocks, there is no receiver, and
//! around each slice stands what was found of the file.

use std::borrow::Cow;

use iolens_model::axes::Study;
use iolens_model::cell::Cell;
use iolens_model::file::{FileCounts, FileSetting, WriteSetting};
use iolens_model::outcome::{SliceOutcome, TrialOutcome};
use iolens_model::run::Run;
use iolens_model::trial::SliceKind;
use iolens_stats::analysis::{ArmAnalysis, Estimate, Figures};
use serde_json::{Value, json};

use super::{
    Named, Record, accounts_of_one_end, calls, fixed, further, head_of_one_end, high, later, low,
    pmu,
};
use crate::arm_facts;
use crate::totals::totals;

/// The axes of a cell.
pub(super) fn axes(cell: &Cell, setting: FileSetting) -> Named {
    fixed([
        ("block_bytes", json!(cell.size.0)),
        ("cache", json!(setting.cache)),
        ("pattern", json!(setting.pattern)),
        ("consumer", json!(setting.consumer)),
        ("depth", json!(setting.depth)),
        ("threads", json!(cell.threads)),
    ])
}

/// What was found of the file: of one slice, or the most of several; what storage
/// delivered is a sum. Null where the kernel does not say.
pub(super) fn found(counts: Option<&FileCounts>) -> Named {
    let get = |of: fn(&FileCounts) -> Option<u64>| json!(counts.and_then(of));
    fixed([
        ("resident_before_bytes", get(|c| c.resident_before_bytes)),
        ("resident_after_bytes", get(|c| c.resident_after_bytes)),
        ("device_bytes", get(|c| c.device_bytes)),
        ("short_reads", get(|c| Some(c.short_reads))),
        ("would_block", get(|c| Some(c.would_block))),
    ])
}

/// The axes of a cell that writes.
pub(super) fn write_axes(cell: &Cell, setting: WriteSetting) -> Named {
    fixed([
        ("block_bytes", json!(cell.size.0)),
        ("destination", json!(setting.destination)),
        ("pattern", json!(setting.pattern)),
        ("depth", json!(setting.depth)),
        ("threads", json!(cell.threads)),
    ])
}

/// What was found of the region that is written: of one slice, or the most of several.
pub(super) fn found_written(counts: Option<&FileCounts>) -> Named {
    let get = |of: fn(&FileCounts) -> Option<u64>| json!(counts.and_then(of));
    fixed([
        ("resident_before_bytes", get(|c| c.resident_before_bytes)),
        ("resident_after_bytes", get(|c| c.resident_after_bytes)),
        ("dirty_before_bytes", get(|c| c.dirty_before_bytes)),
        ("dirty_after_bytes", get(|c| c.dirty_after_bytes)),
        ("size_error_bytes", get(|c| c.size_error_bytes)),
        ("short_writes", get(|c| Some(c.short_reads))),
    ])
}

/// What was found around the measured slices of an arm.
fn of_slices(trial: &TrialOutcome, arm: usize) -> Option<FileCounts> {
    let own = |slice: &&SliceOutcome| slice.arm == arm && slice.kind == SliceKind::Measured;
    let counts = trial.slices.iter().filter(own).map(|slice| slice.tx.file);
    counts.collect::<Option<Vec<_>>>()?.into_iter().reduce(|sum, next| sum.and_later(&next))
}

/// One arm of one trial.
pub(super) fn arm_row(run: &Run, trial: &TrialOutcome, axes: Named, index: usize) -> Record {
    let totals = totals(trial, index);
    let totals = totals.as_ref();
    let found_of = of_slices(trial, index);
    let (rate_name, found) = match trial.cell.write() {
        Some(_) => ("write_bytes_per_s", found_written(found_of.as_ref())),
        None => ("read_bytes_per_s", found(found_of.as_ref())),
    };
    let mut row = head_of_one_end(run, trial, index, totals, axes);
    let time_ns = totals.map(|t| t.time_ns as f64).filter(|&ns| ns > 0.0);
    let rate = totals.zip(time_ns).map(|(t, ns)| t.tx_bytes as f64 / ns * 1e9);
    row.extend(fixed([
        ("blocks", json!(totals.map(|t| t.messages))),
        ("system_calls", json!(totals.map(|t| t.tx_calls))),
        ("bytes", json!(totals.map(|t| t.tx_bytes))),
        ("ns_per_block", json!(totals.and_then(|t| t.ns_per_message()))),
        (rate_name, json!(rate)),
    ]));
    row.extend(found);
    row.extend(accounts_of_one_end(totals));
    row.extend(pmu(totals));
    let more = further(totals).into_iter().filter(|(name, _)| name != "tx_calls");
    row.extend(calls::of_one_end(more.chain(later(totals)).collect(), "blocks"));
    let whole = fixed([("facts", arm_facts::object(trial, index))]);
    Record { columns: row, whole }
}

/// Figures of one arm in one cell.
pub(super) fn figures(arm: &ArmAnalysis, study: Study) -> Named {
    let figures = arm.figures.as_ref();
    let rate = figures.and_then(|f| f.read_bytes_per_s);
    let block = figures.map(|f| f.ns_per_message);
    let interval = |estimate: Option<Estimate>| estimate.and_then(|e| e.interval);
    let value = |of: fn(&Figures) -> Option<Estimate>| -> Value {
        json!(figures.and_then(of).map(|estimate| estimate.value))
    };
    let rates = match study {
        Study::Write => ["write_bytes_per_s", "write_low_bytes_per_s", "write_high_bytes_per_s"],
        _ => ["read_bytes_per_s", "read_low_bytes_per_s", "read_high_bytes_per_s"],
    };
    let rate = [json!(rate.map(|e| e.value)), low(interval(rate)), high(interval(rate))];
    let mut row: Named = rates.map(Cow::Borrowed).into_iter().zip(rate).collect();
    row.extend(fixed([
        ("ns_per_block", json!(block.map(|e| e.value))),
        ("ns_per_block_low", low(interval(block))),
        ("ns_per_block_high", high(interval(block))),
        ("device_share", value(|f| f.device_share)),
        ("ns_per_byte", value(|f| f.ns_per_byte)),
        ("cpu_ns_per_byte", value(|f| f.tx_cpu_ns_per_byte)),
        ("system_calls_per_block", value(|f| f.tx_calls_per_message)),
        ("context_switches_per_block", value(|f| f.context_switches_per_message)),
        ("run_delay_ns_per_block", value(|f| f.run_delay_ns_per_message)),
        ("cycles_per_byte", value(|f| f.cycles_per_byte)),
        ("l1d_misses_per_kib", value(|f| f.l1d_misses_per_kib)),
        ("llc_references_per_kib", value(|f| f.llc_references_per_kib)),
        ("llc_misses_per_kib", value(|f| f.llc_misses_per_kib)),
        ("softirq_ns_per_byte", value(|f| f.softirq_ns_per_byte)),
    ]));
    row
}
