//! The rows of exports, once: CSV writes them as lines, JSON as objects. A
//! column name carries its unit; what was not measured is null.

use iolens_model::axes::Cell;
use iolens_model::outcome::{SliceOutcome, TrialOutcome};
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Estimate, Interval};
use serde_json::{Value, json};

use crate::totals::{Totals, totals};

/// One row: names with units, and values. All rows of an export have the
/// same names in the same order.
pub(crate) struct Record(pub(crate) Named);

type Named = Vec<(&'static str, Value)>;

impl Record {
    /// The row as a JSON object.
    pub(crate) fn object(self) -> Value {
        Value::Object(self.0.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

/// One row per arm and trial.
pub(crate) fn arms(run: &Run) -> impl Iterator<Item = Record> {
    run.trials
        .iter()
        .flat_map(move |trial| (0..trial.arms.len()).map(move |index| arm_row(run, trial, index)))
}

fn arm_row(run: &Run, trial: &TrialOutcome, index: usize) -> Record {
    let outcome = &trial.arms[index];
    let mut row = vec![
        ("run", json!(run.header.id)),
        ("pass", json!(trial.pass)),
        ("position", json!(trial.position)),
        ("study", json!(run.header.plan.study.word())),
        ("arm", json!(outcome.arm.label)),
        ("primitive", json!(outcome.arm.primitive)),
        ("role", json!(outcome.arm.role)),
    ];
    row.extend(axes(&trial.cell));
    row.extend([
        ("isolated", json!(trial.isolated)),
        ("status", json!(outcome.status.word())),
        ("reason", json!(outcome.reason.as_ref().or(trial.reason.as_ref()))),
    ]);
    row.extend(sums(totals(trial, index).as_ref()));
    row.extend(not_counted());
    row.extend([
        ("copies_sender", json!(outcome.copies_sender)),
        ("copies_end_to_end", json!(outcome.copies_end_to_end)),
    ]);
    Record(row)
}

fn axes(cell: &Cell) -> Named {
    vec![
        ("receiver", json!(cell.receiver)),
        ("fields", json!(cell.fields)),
        ("iovec", json!(cell.iovec.word())),
        ("working_set", json!(cell.working_set.word())),
        ("topology", json!(cell.topology.word())),
        ("mode", json!(cell.mode.word())),
        ("message_bytes", json!(cell.message_bytes.0)),
        ("threads", json!(cell.threads)),
    ]
}

/// Sums over the measured slices, and what follows from them.
fn sums(totals: Option<&Totals>) -> Named {
    let get = |f: &dyn Fn(&Totals) -> Value| totals.map_or(Value::Null, f);
    vec![
        ("slices", get(&|t| json!(t.slices))),
        ("time_ns", get(&|t| json!(t.time_ns))),
        ("rx_bytes", get(&|t| json!(t.rx_bytes))),
        ("tx_bytes", get(&|t| json!(t.tx_bytes))),
        ("messages", get(&|t| json!(t.messages))),
        ("tx_calls", get(&|t| json!(t.tx_calls))),
        ("rx_calls", get(&|t| json!(t.rx_calls))),
        ("goodput_bits_per_s", get(&|t| json!(t.goodput_bits_per_s()))),
        ("ns_per_message", get(&|t| json!(t.ns_per_message()))),
        ("tx_cpu_ns", get(&|t| json!(t.tx_cpu_ns))),
        ("rx_cpu_ns", get(&|t| json!(t.rx_cpu_ns))),
        ("context_switches", get(&|t| json!(t.context_switches()))),
        ("voluntary_switches", get(&|t| json!(t.voluntary_switches))),
        ("involuntary_switches", get(&|t| json!(t.involuntary_switches))),
        ("migrations", get(&|t| json!(t.migrations))),
        ("minor_faults", get(&|t| json!(t.minor_faults))),
        ("major_faults", get(&|t| json!(t.major_faults))),
        ("retransmits", get(&|t| json!(t.retransmits))),
        ("softirq_ticks", get(&|t| json!(t.softirq_ticks))),
    ]
}

/// Columns of the export whose counters this version does not open, or whose
/// mode or primitives it does not have: there from the start, so that scripts
/// need not change when they fill.
fn not_counted() -> Named {
    const NAMES: [&str; 16] = [
        "latency_mean_ns",
        "latency_p50_ns",
        "latency_p99_ns",
        "latency_p999_ns",
        "cycles_user",
        "cycles_kernel",
        "instructions_user",
        "instructions_kernel",
        "l1d_loads",
        "l1d_misses",
        "llc_references",
        "llc_misses",
        "cycles_per_byte",
        "zerocopy_sends",
        "zerocopy_completions",
        "zerocopy_copied_share",
    ];
    NAMES.iter().map(|&name| (name, Value::Null)).collect()
}

/// One row per slice.
pub(crate) fn slices(run: &Run) -> impl Iterator<Item = Record> {
    run.trials
        .iter()
        .flat_map(move |trial| trial.slices.iter().map(move |slice| slice_row(run, trial, slice)))
}

fn slice_row(run: &Run, trial: &TrialOutcome, slice: &SliceOutcome) -> Record {
    let arm = trial.arms.get(slice.arm).map(|outcome| &outcome.arm);
    let mut row = vec![
        ("run", json!(run.header.id)),
        ("pass", json!(trial.pass)),
        ("position", json!(trial.position)),
        ("seq", json!(slice.seq)),
        ("round", json!(slice.round)),
        ("kind", json!(slice.kind)),
        ("arm", json!(arm.map(|arm| &arm.label))),
        ("primitive", json!(arm.map(|arm| &arm.primitive))),
    ];
    row.extend(axes(&trial.cell));
    row.extend([
        ("isolated", json!(trial.isolated)),
        ("time_ns", json!(slice.tx.time_ns)),
        ("all_active_ns", json!(slice.all_active_ns)),
    ]);
    row.extend(ends(slice));
    Record(row)
}

/// The counts of both ends, `tx_` and `rx_`.
fn ends(slice: &SliceOutcome) -> Named {
    let (tx, rx) = (&slice.tx, slice.rx.as_ref());
    vec![
        ("tx_messages", json!(tx.messages)),
        ("tx_bytes", json!(tx.bytes)),
        ("tx_calls", json!(tx.calls)),
        ("tx_cpu_ns", json!(tx.task_clock_ns)),
        ("tx_voluntary_switches", json!(tx.voluntary_switches)),
        ("tx_involuntary_switches", json!(tx.involuntary_switches)),
        ("tx_migrations", json!(tx.migrations)),
        ("tx_minor_faults", json!(tx.minor_faults)),
        ("tx_major_faults", json!(tx.major_faults)),
        ("tx_retransmits", json!(tx.retransmits)),
        ("tx_softirq_ticks", json!(tx.softirq_ticks)),
        ("rx_messages", json!(rx.map(|c| c.messages))),
        ("rx_bytes", json!(rx.map(|c| c.bytes))),
        ("rx_calls", json!(rx.map(|c| c.calls))),
        ("rx_time_ns", json!(rx.map(|c| c.time_ns))),
        ("rx_cpu_ns", json!(rx.and_then(|c| c.task_clock_ns))),
        ("rx_voluntary_switches", json!(rx.and_then(|c| c.voluntary_switches))),
        ("rx_involuntary_switches", json!(rx.and_then(|c| c.involuntary_switches))),
        ("rx_migrations", json!(rx.and_then(|c| c.migrations))),
        ("rx_minor_faults", json!(rx.and_then(|c| c.minor_faults))),
        ("rx_major_faults", json!(rx.and_then(|c| c.major_faults))),
        ("rx_retransmits", json!(rx.and_then(|c| c.retransmits))),
        ("rx_softirq_ticks", json!(rx.and_then(|c| c.softirq_ticks))),
    ]
}

/// One row per arm and cell.
pub(crate) fn cells<'a>(run: &'a Run, analysis: &'a Analysis) -> impl Iterator<Item = Record> {
    analysis
        .cells
        .iter()
        .flat_map(move |cell| cell.arms.iter().map(move |arm| Record(cell_row(run, cell, arm))))
}

fn cell_row(run: &Run, cell: &CellAnalysis, arm: &ArmAnalysis) -> Named {
    let contrast = arm.contrast.as_ref();
    // A quick run has no verdicts, in an export either.
    let judged = contrast.filter(|_| !run.header.plan.quick);
    let mut row = vec![
        ("run", json!(run.header.id)),
        ("study", json!(run.header.plan.study.word())),
        ("arm", json!(arm.arm.label)),
        ("primitive", json!(arm.arm.primitive)),
        ("role", json!(arm.arm.role)),
    ];
    row.extend(axes(&cell.cell));
    row.extend([
        ("status", json!(arm.status.word())),
        ("reason", json!(arm.reason)),
        ("baseline", json!(run.header.plan.baseline)),
        ("trials_started", json!(cell.trials_started)),
        ("trials_used", json!(cell.trials_used)),
        ("n", json!(contrast.map(|c| c.n).or(arm.figures.as_ref().map(|f| f.ns_per_message.n)))),
        ("ratio", json!(contrast.map(|c| c.ratio))),
        ("ratio_low", low(contrast.and_then(|c| c.pointwise))),
        ("ratio_high", high(contrast.and_then(|c| c.pointwise))),
        ("ratio_simultaneous_low", low(contrast.and_then(|c| c.simultaneous))),
        ("ratio_simultaneous_high", high(contrast.and_then(|c| c.simultaneous))),
        ("ratio_sd_ln", json!(contrast.and_then(|c| c.sd_ln))),
        ("total_ratio", json!(contrast.map(|c| c.total_ratio.value))),
        ("tail", json!(contrast.map(|c| c.tail))),
        ("delta", json!(run.header.plan.delta)),
        ("indicative", json!(run.header.plan.quick)),
        ("verdict", json!(judged.map(|c| c.verdict.word()))),
        ("verdict_reason", json!(judged.map(|c| &c.reason))),
        ("trials_needed", json!(contrast.and_then(|c| c.trials_needed))),
        ("isolated_ratio", json!(arm.isolated.as_ref().map(|c| c.ratio))),
    ]);
    row.extend(figures(arm));
    row.extend([
        ("copies_sender", json!(arm.copies_sender)),
        ("copies_end_to_end", json!(arm.copies_end_to_end)),
    ]);
    row
}

fn figures(arm: &ArmAnalysis) -> Named {
    let figures = arm.figures.as_ref();
    let goodput = figures.and_then(|f| f.goodput_bits_per_s);
    let message = figures.map(|f| f.ns_per_message);
    let interval = |estimate: Option<Estimate>| estimate.and_then(|e| e.interval);
    let value = |estimate: Option<Estimate>| json!(estimate.map(|e| e.value));
    vec![
        ("goodput_bits_per_s", value(goodput)),
        ("goodput_low_bits_per_s", low(interval(goodput))),
        ("goodput_high_bits_per_s", high(interval(goodput))),
        ("ns_per_message", value(message)),
        ("ns_per_message_low", low(interval(message))),
        ("ns_per_message_high", high(interval(message))),
        ("ns_per_byte", value(figures.map(|f| f.ns_per_byte))),
        ("tx_cpu_ns_per_byte", value(figures.and_then(|f| f.tx_cpu_ns_per_byte))),
        ("rx_cpu_ns_per_byte", value(figures.and_then(|f| f.rx_cpu_ns_per_byte))),
        ("tx_calls_per_message", value(figures.map(|f| f.tx_calls_per_message))),
        (
            "context_switches_per_message",
            value(figures.and_then(|f| f.context_switches_per_message)),
        ),
    ]
}

fn low(interval: Option<Interval>) -> Value {
    json!(interval.map(|i| i.low))
}

fn high(interval: Option<Interval>) -> Value {
    json!(interval.map(|i| i.high))
}
