//! The rows of exports, once: CSV writes them as lines, JSON as objects. A
//! column name carries its unit; what was not measured is null.
//!
//! Columns without `tx_` or `rx_` are sums over both ends where both are
//! known, else null: half of a cost is not a cost.

use std::borrow::Cow;

use iolens_model::cell::Cell;
use iolens_model::latency::Histogram;
use iolens_model::outcome::{
    Counts, KernelCounts, MultishotCounts, PmuCounts, SliceOutcome, TrialOutcome, ZerocopyCounts,
};
use iolens_model::run::Run;
use iolens_model::tuning::Tuning;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Interval, LatencyFigures};
use serde_json::{Value, json};

pub(crate) use self::compared::pairs;
use crate::arm_facts;
use crate::export::UnknownColumn;
use crate::totals::{Totals, totals};

mod calls;
mod compared;
mod copies;
mod figures;
mod files;
mod servers;

/// One row. All rows of an export have the same names in the same order.
pub(crate) struct Record {
    /// Names with units, and values.
    pub(crate) columns: Named,
    /// What has no place in a column: whole histograms.
    whole: Named,
}

type Named = Vec<(Cow<'static, str>, Value)>;

/// Columns with fixed names.
fn fixed<const N: usize>(columns: [(&'static str, Value); N]) -> Named {
    columns.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect()
}

impl Record {
    /// The same with the label of the machine that measured it, the last column of all rows.
    fn of_host(mut self, run: &Run) -> Record {
        self.columns.extend(fixed([("host", json!(run.header.host_label()))]));
        self
    }

    /// Errors: the first of these that it has no column of.
    pub(crate) fn check(&self, columns: &[String]) -> Result<(), UnknownColumn> {
        let has = |name: &String| self.columns.iter().any(|(own, _)| own == name);
        match columns.iter().find(|name| !has(name)) {
            None => Ok(()),
            Some(name) => Err(UnknownColumn {
                name: name.clone(),
                known: self.columns.iter().map(|(own, _)| own.to_string()).collect(),
            }),
        }
    }

    /// These columns in their order; all of it where none is named.
    pub(crate) fn only(self, columns: &[String]) -> Record {
        if columns.is_empty() {
            return self;
        }
        let find = |name: &String| self.columns.iter().find(|(own, _)| own == name).cloned();
        Record { columns: columns.iter().filter_map(find).collect(), whole: Vec::new() }
    }

    /// The row as a JSON object.
    pub(crate) fn object(self) -> Value {
        let values = self.columns.into_iter().chain(self.whole);
        Value::Object(values.map(|(name, value)| (name.into_owned(), value)).collect())
    }
}

/// One row per arm and trial.
pub(crate) fn arms(run: &Run) -> impl Iterator<Item = Record> {
    run.trials.iter().flat_map(move |trial| {
        (0..trial.arms.len()).map(move |index| arm_row(run, trial, index).of_host(run))
    })
}

/// One row per phase of a search.
pub(crate) fn phases(run: &Run) -> impl Iterator<Item = Record> {
    run.searches.iter().map(move |phase| servers::phase_row(run, phase).of_host(run))
}

/// The columns that scripts may rely on come first, in the order in which they
/// were promised; the rest stands behind them.
fn arm_row(run: &Run, trial: &TrialOutcome, index: usize) -> Record {
    if trial.cell.syscall().is_some() {
        return calls::arm_row(run, trial, index);
    }
    if let Some(setting) = trial.cell.file() {
        return files::arm_row(run, trial, files::axes(&trial.cell, setting), index);
    }
    if let Some(setting) = trial.cell.write() {
        return files::arm_row(run, trial, files::write_axes(&trial.cell, setting), index);
    }
    if let Some(setting) = trial.cell.copy() {
        return copies::arm_row(run, trial, setting, index);
    }
    if let Some(setting) = trial.cell.server() {
        return servers::arm_row(run, trial, setting, index);
    }
    let outcome = &trial.arms[index];
    let cell = &trial.cell;
    let totals = totals(trial, index);
    let totals = totals.as_ref();
    let mut row = whose(run, trial, index);
    row.extend(fixed([
        ("receiver", json!(cell.receiver())),
        ("fields", json!(cell.net().map(|net| net.fields))),
        ("working_set", json!(cell.working_set())),
        ("slices", json!(totals.map(|t| t.slices))),
        ("topology", json!(cell.topology())),
        ("mode", json!(cell.net().map(|net| net.mode))),
        ("message_bytes", json!(cell.net().map(|_| cell.size.0))),
        ("threads", json!(cell.threads)),
        ("status", json!(outcome.status.word())),
        ("reason", json!(outcome.reason.as_ref().or(trial.reason.as_ref()))),
    ]));
    row.extend(sums(totals, outcome.latency.as_ref()));
    row.extend(pmu(totals));
    row.extend(fixed([
        ("copies_sender", json!(outcome.copies_sender)),
        ("copies_end_to_end", json!(outcome.copies_end_to_end)),
    ]));
    let zerocopy = totals.and_then(|t| t.zerocopy);
    row.extend(zerocopy_columns(zerocopy));
    row.extend(fixed([
        ("role", json!(outcome.arm.role)),
        ("iovec", json!(cell.net().map(|net| net.iovec))),
        ("isolated", json!(trial.isolated)),
    ]));
    row.extend(further(totals));
    row.extend(fixed([
        ("latency_samples", json!(outcome.latency.as_ref().map(Histogram::total))),
        ("zerocopy_enobufs", json!(zerocopy.map(|z| z.enobufs))),
    ]));
    row.extend(later(totals));
    row.extend(fixed([
        ("rx_mapped_bytes", json!(totals.and_then(|t| t.rx_mapped_bytes))),
        (
            "zerocopy_notifications_per_send",
            json!(zerocopy.and_then(|z| z.notifications_per_send())),
        ),
    ]));
    row.extend(tuning(cell));
    row.extend(multishot_columns(totals.and_then(|t| t.multishot)));
    let whole = fixed([
        ("latency_histogram", json!(outcome.latency)),
        ("facts", arm_facts::object(trial, index)),
    ]);
    Record { columns: row, whole }
}

/// Whose row it is: the run, the trial and the arm.
fn whose(run: &Run, trial: &TrialOutcome, index: usize) -> Named {
    let outcome = &trial.arms[index];
    fixed([
        ("run", json!(run.header.id)),
        ("pass", json!(trial.pass)),
        ("position", json!(trial.position)),
        ("study", json!(run.header.plan.study().word())),
        ("arm", json!(outcome.arm.label)),
        ("primitive", json!(outcome.arm.primitive)),
    ])
}

/// What a row begins with in studies of one end, whose axes these are.
fn head_of_one_end(
    run: &Run,
    trial: &TrialOutcome,
    index: usize,
    totals: Option<&Totals>,
    axes: Named,
) -> Named {
    let outcome = &trial.arms[index];
    let mut row = whose(run, trial, index);
    row.extend(fixed([
        ("role", json!(outcome.arm.role)),
        ("isolated", json!(trial.isolated)),
        ("slices", json!(totals.map(|t| t.slices))),
    ]));
    row.extend(axes);
    row.extend(fixed([
        ("status", json!(outcome.status.word())),
        ("reason", json!(outcome.reason.as_ref().or(trial.reason.as_ref()))),
        ("unit", json!(run.header.plan.study().unit())),
        ("time_ns", json!(totals.map(|t| t.time_ns))),
    ]));
    row
}

/// The kernel's accounts of one end.
fn accounts_of_one_end(totals: Option<&Totals>) -> Named {
    fixed([
        ("cpu_ns", json!(totals.map(|t| t.tx_cpu_ns))),
        ("context_switches", json!(totals.map(|t| t.context_switches()))),
        ("migrations", json!(totals.map(|t| t.migrations))),
        ("minor_faults", json!(totals.map(|t| t.minor_faults))),
    ])
}

/// The axes that most plans leave alone.
fn tuning(cell: &Cell) -> Named {
    let Some(net) = cell.net() else { return Vec::new() };
    let values = json!(net.tuning);
    Tuning::FIELDS.iter().map(|field| (Cow::Borrowed(*field), values[field].clone())).collect()
}

fn axes(cell: &Cell) -> Named {
    if let Some(setting) = cell.syscall() {
        return calls::axes(cell, setting);
    }
    if let Some(setting) = cell.file() {
        return files::axes(cell, setting);
    }
    if let Some(setting) = cell.write() {
        return files::write_axes(cell, setting);
    }
    if let Some(setting) = cell.copy() {
        return copies::axes(cell, setting);
    }
    if let Some(setting) = cell.server() {
        return servers::axes(cell, setting);
    }
    fixed([
        ("receiver", json!(cell.receiver())),
        ("fields", json!(cell.net().map(|net| net.fields))),
        ("iovec", json!(cell.net().map(|net| net.iovec))),
        ("working_set", json!(cell.working_set())),
        ("topology", json!(cell.topology())),
        ("mode", json!(cell.net().map(|net| net.mode))),
        ("message_bytes", json!(cell.net().map(|_| cell.size.0))),
        ("threads", json!(cell.threads)),
    ])
}

/// Sums over the measured slices, and what follows from them.
fn sums(totals: Option<&Totals>, latency: Option<&Histogram>) -> Named {
    let get = |f: &dyn Fn(&Totals) -> Value| totals.map_or(Value::Null, f);
    let quantile = |q| json!(latency.and_then(|times| quantile_ns(times, q)));
    fixed([
        ("time_ns", get(&|t| json!(t.time_ns))),
        ("rx_bytes", get(&|t| json!(t.rx_bytes))),
        ("tx_bytes", get(&|t| json!(t.tx_bytes))),
        ("messages", get(&|t| json!(t.messages))),
        ("goodput_bits_per_s", get(&|t| json!(t.goodput_bits_per_s()))),
        ("ns_per_message", get(&|t| json!(t.ns_per_message()))),
        ("latency_mean_ns", json!(latency.and_then(Histogram::mean_ns))),
        ("latency_p50_ns", quantile(0.5)),
        ("latency_p99_ns", quantile(0.99)),
        ("latency_p999_ns", quantile(0.999)),
        ("tx_cpu_ns", get(&|t| json!(t.tx_cpu_ns))),
        ("rx_cpu_ns", get(&|t| json!(t.rx_cpu_ns))),
        ("context_switches", get(&|t| json!(t.context_switches()))),
        ("migrations", get(&|t| json!(t.migrations))),
        ("minor_faults", get(&|t| json!(t.minor_faults))),
        ("retransmits", get(&|t| json!(t.retransmits))),
    ])
}

/// A quantile of one trial's times; null where there are too few of them, as in a cell.
fn quantile_ns(times: &Histogram, q: f64) -> Option<u64> {
    times.quantile_ns(q).filter(|_| LatencyFigures::enough(times.total(), q))
}

fn pmu(totals: Option<&Totals>) -> Named {
    let counts = totals.map(|t| t.pmu).unwrap_or_default();
    let mut columns = named("", &PmuCounts::NAMES[..PROMISED], &counts.values());
    let per_byte = totals.and_then(Totals::cycles_per_byte);
    columns.extend(fixed([("cycles_per_byte", json!(per_byte))]));
    columns
}

/// Counts of the PMU whose columns stand where they were promised; the others
/// came later and stand at the end.
const PROMISED: usize = 8;

fn named(end: &'static str, names: &'static [&'static str], values: &[Option<u64>]) -> Named {
    let column = |name: &'static str| match end {
        "" => Cow::Borrowed(name),
        end => Cow::Owned(format!("{end}{name}")),
    };
    names.iter().zip(values).map(|(name, value)| (column(name), json!(value))).collect()
}

/// What came later: sums over both ends. Counts of CPUs are left to the slices,
/// since both ends may count the same CPU.
fn later(totals: Option<&Totals>) -> Named {
    let mut columns = fixed([("run_delay_ns", json!(totals.and_then(|t| t.run_delay_ns)))]);
    let pmu = totals.map(|t| t.pmu).unwrap_or_default().values();
    columns.extend(named("", &PmuCounts::NAMES[PROMISED..], &pmu[PROMISED..]));
    let kernel = totals.map(|t| t.kernel).unwrap_or_default().values();
    let of_threads = |(name, _): &(Cow<'_, str>, Value)| !name.starts_with("cpu_");
    columns.extend(named("", &KernelCounts::NAMES, &kernel).into_iter().filter(of_threads));
    columns.extend(fixed([("segments_out", json!(totals.and_then(|t| t.segments_out)))]));
    columns
}

fn multishot_columns(counts: Option<MultishotCounts>) -> Named {
    fixed([
        ("rx_rearms", json!(counts.map(|m| m.rearms))),
        ("rx_ring_enobufs", json!(counts.map(|m| m.enobufs))),
    ])
}

fn zerocopy_columns(counts: Option<ZerocopyCounts>) -> Named {
    fixed([
        ("zerocopy_sends", json!(counts.map(|z| z.sends))),
        ("zerocopy_completions", json!(counts.map(|z| z.completions))),
        ("zerocopy_copied_share", json!(counts.and_then(|z| z.copied_share()))),
    ])
}

/// Sums that nobody was promised.
fn further(totals: Option<&Totals>) -> Named {
    let get = |f: &dyn Fn(&Totals) -> Value| totals.map_or(Value::Null, f);
    fixed([
        ("tx_calls", get(&|t| json!(t.tx_calls))),
        ("rx_calls", get(&|t| json!(t.rx_calls))),
        ("voluntary_switches", get(&|t| json!(t.voluntary_switches))),
        ("involuntary_switches", get(&|t| json!(t.involuntary_switches))),
        ("major_faults", get(&|t| json!(t.major_faults))),
        ("softirq_ticks", get(&|t| json!(t.softirq_ticks))),
    ])
}

/// One row per slice.
pub(crate) fn slices(run: &Run) -> impl Iterator<Item = Record> {
    run.trials.iter().zip(iolens_stats::unused(run)).flat_map(move |(trial, unused)| {
        let row = move |slice: &SliceOutcome| {
            let mut row = slice_row(run, trial, slice);
            row.columns.extend(standing(trial, slice, &unused));
            row.of_host(run)
        };
        trial.slices.iter().map(row)
    })
}

/// What part its arm has, and why an analysis does not rest on it.
fn standing(trial: &TrialOutcome, slice: &SliceOutcome, unused: &[Option<String>]) -> Named {
    let arm = trial.arms.get(slice.arm);
    let mut row = fixed([
        ("role", json!(arm.map(|outcome| outcome.arm.role))),
        ("unused", json!(unused.get(slice.arm))),
    ]);
    if trial.cell.server().is_some() {
        let server = arm.and_then(|outcome| outcome.server.as_ref());
        row.extend(fixed([("at_others_rate", json!(server.map(|s| s.at_others_rate)))]));
    }
    row
}

fn slice_row(run: &Run, trial: &TrialOutcome, slice: &SliceOutcome) -> Record {
    let arm = trial.arms.get(slice.arm).map(|outcome| &outcome.arm);
    let mut row = fixed([
        ("run", json!(run.header.id)),
        ("pass", json!(trial.pass)),
        ("position", json!(trial.position)),
        ("seq", json!(slice.seq)),
        ("round", json!(slice.round)),
        ("kind", json!(slice.kind)),
        ("arm", json!(arm.map(|arm| &arm.label))),
        ("primitive", json!(arm.map(|arm| &arm.primitive))),
    ]);
    row.extend(axes(&trial.cell));
    row.extend(fixed([
        ("isolated", json!(trial.isolated)),
        ("time_ns", json!(slice.tx.time_ns)),
        ("all_active_ns", json!(slice.all_active_ns)),
    ]));
    if trial.cell.server().is_some() {
        row.extend(servers::offered(trial, slice));
        row.extend(servers::counts(slice));
        return Record { columns: row, whole: Vec::new() };
    }
    if trial.cell.net().is_none() {
        let counts = [ends(slice), pmu_of_ends(slice), later_of_ends(slice)].concat();
        if trial.cell.write().is_some() {
            row.extend(files::found_written(slice.tx.file.as_ref()));
        }
        if trial.cell.cache().is_some() {
            row.extend(files::found(slice.tx.file.as_ref()));
        }
        row.extend(calls::of_one_end(counts, run.header.plan.study().units()));
        return Record { columns: row, whole: Vec::new() };
    }
    row.extend(ends(slice));
    row.extend(zero_copies(slice.tx.zerocopy));
    row.extend(pmu_of_ends(slice));
    row.extend(later_of_ends(slice));
    row.extend(tuning(&trial.cell));
    Record { columns: row, whole: Vec::new() }
}

/// The counts of both ends, `tx_` and `rx_`.
fn ends(slice: &SliceOutcome) -> Named {
    let (tx, rx) = (&slice.tx, slice.rx.as_ref());
    fixed([
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
        ("rx_calls", json!(rx.and_then(|c| c.calls))),
        ("rx_time_ns", json!(rx.map(|c| c.time_ns))),
        ("rx_cpu_ns", json!(rx.and_then(|c| c.task_clock_ns))),
        ("rx_voluntary_switches", json!(rx.and_then(|c| c.voluntary_switches))),
        ("rx_involuntary_switches", json!(rx.and_then(|c| c.involuntary_switches))),
        ("rx_migrations", json!(rx.and_then(|c| c.migrations))),
        ("rx_minor_faults", json!(rx.and_then(|c| c.minor_faults))),
        ("rx_major_faults", json!(rx.and_then(|c| c.major_faults))),
        ("rx_retransmits", json!(rx.and_then(|c| c.retransmits))),
        ("rx_softirq_ticks", json!(rx.and_then(|c| c.softirq_ticks))),
    ])
}

fn zero_copies(counts: Option<ZerocopyCounts>) -> Named {
    fixed([
        ("tx_zerocopy_sends", json!(counts.map(|z| z.sends))),
        ("tx_zerocopy_completions", json!(counts.map(|z| z.completions))),
        ("tx_zerocopy_copied", json!(counts.and_then(|z| z.copied))),
        ("tx_zerocopy_enobufs", json!(counts.map(|z| z.enobufs))),
    ])
}

/// What the PMU counted at each end, as far as it was promised.
fn pmu_of_ends(slice: &SliceOutcome) -> Named {
    let values = |counts: Option<&Counts>| counts.map(|c| c.pmu).unwrap_or_default().values();
    let names = &PmuCounts::NAMES[..PROMISED];
    let mut columns = named("tx_", names, &values(Some(&slice.tx)));
    columns.extend(named("rx_", names, &values(slice.rx.as_ref())));
    columns
}

/// What came later, at each end.
fn later_of_ends(slice: &SliceOutcome) -> Named {
    let mut columns = Named::new();
    for (end, delay, counts) in
        [("tx_", "tx_run_delay_ns", Some(&slice.tx)), ("rx_", "rx_run_delay_ns", slice.rx.as_ref())]
    {
        columns.extend(fixed([(delay, json!(counts.and_then(|c| c.run_delay_ns)))]));
        let pmu = counts.map(|c| c.pmu).unwrap_or_default().values();
        columns.extend(named(end, &PmuCounts::NAMES[PROMISED..], &pmu[PROMISED..]));
        let kernel = counts.map(|c| c.kernel).unwrap_or_default().values();
        columns.extend(named(end, &KernelCounts::NAMES, &kernel));
    }
    columns.extend(fixed([
        ("tx_segments_out", json!(slice.tx.segments_out)),
        ("rx_segments_out", json!(slice.rx.as_ref().and_then(|c| c.segments_out))),
    ]));
    let mapped = slice.rx.as_ref().and_then(|counts| counts.mapped_bytes);
    let notifications = slice.tx.zerocopy.map(|z| z.notifications);
    columns.extend(fixed([
        ("rx_mapped_bytes", json!(mapped)),
        ("tx_zerocopy_notifications", json!(notifications)),
    ]));
    columns.extend(multishot_columns(slice.rx.as_ref().and_then(|counts| counts.multishot)));
    columns
}

/// One row per arm and cell.
pub(crate) fn cells<'a>(run: &'a Run, analysis: &'a Analysis) -> impl Iterator<Item = Record> {
    analysis.cells.iter().flat_map(move |cell| {
        cell.arms.iter().map(move |arm| cell_row(run, analysis, cell, arm).of_host(run))
    })
}

/// Which arm in which cell, and what was found against the baseline.
fn judgement(run: &Run, cell: &CellAnalysis, arm: &ArmAnalysis) -> Named {
    let contrast = arm.contrast.as_ref();
    // A quick run has no verdicts, in an export either.
    let judged = contrast.filter(|_| !run.header.plan.quick);
    let mut row = fixed([
        ("run", json!(run.header.id)),
        ("study", json!(run.header.plan.study().word())),
        ("arm", json!(arm.arm.label)),
        ("primitive", json!(arm.arm.primitive)),
        ("role", json!(arm.arm.role)),
    ]);
    row.extend(axes(&cell.cell));
    row.extend(fixed([
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
        ("verdict_reason", json!(judged.map(|c| crate::remarks::reason(&c.reason)))),
        ("trials_needed", json!(contrast.and_then(|c| c.trials_needed))),
        ("isolated_ratio", json!(arm.isolated.as_ref().map(|c| c.ratio))),
    ]));
    row
}

fn cell_row(run: &Run, analysis: &Analysis, cell: &CellAnalysis, arm: &ArmAnalysis) -> Record {
    let mut row = judgement(run, cell, arm);
    if cell.cell.syscall().is_some() {
        row.extend(calls::figures(run, arm));
        return Record { columns: row, whole: Vec::new() };
    }
    if cell.cell.study().has_blocks() {
        row.extend(files::figures(arm, cell.cell.study()));
        return Record { columns: row, whole: Vec::new() };
    }
    if cell.cell.copy().is_some() {
        row.extend(copies::figures(run, &analysis.told, arm));
        return Record { columns: row, whole: Vec::new() };
    }
    if cell.cell.server().is_some() {
        row.extend(servers::figures(arm));
        return Record { columns: row, whole: Vec::new() };
    }
    row.extend(figures::figures(arm));
    row.extend(fixed([
        ("copies_sender", json!(arm.copies_sender)),
        ("copies_end_to_end", json!(arm.copies_end_to_end)),
    ]));
    let zerocopy = arm.zerocopy;
    row.extend(fixed([
        ("zerocopy_sends", json!(zerocopy.map(|z| z.sends))),
        ("zerocopy_completions", json!(zerocopy.map(|z| z.completions))),
        ("zerocopy_copied_share", json!(zerocopy.and_then(|z| z.copied_share))),
        ("zerocopy_enobufs", json!(zerocopy.map(|z| z.enobufs))),
    ]));
    row.extend(figures::latency(arm));
    row.extend(figures::later(arm));
    row.extend(fixed([
        ("rx_mapped_share", json!(arm.mapped_share)),
        ("zerocopy_notifications_per_send", json!(zerocopy.and_then(|z| z.notifications_per_send))),
    ]));
    row.extend(tuning(&cell.cell));
    row.extend(multishot_columns(arm.multishot));
    row.extend(compared::cost(arm));
    let histogram = arm.latency.as_ref().map(|latency| &latency.histogram);
    Record { columns: row, whole: fixed([("latency_histogram", json!(histogram))]) }
}

fn low(interval: Option<Interval>) -> Value {
    json!(interval.map(|i| i.low))
}

fn high(interval: Option<Interval>) -> Value {
    json!(interval.map(|i| i.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_as_many_times_in_a_trial_as_in_a_cell() {
        let times = |n| Histogram { buckets: vec![(100, n)] };
        assert_eq!(quantile_ns(&times(369), 0.99), None);
        assert_eq!(quantile_ns(&times(370), 0.99), Some(100));
    }
}
