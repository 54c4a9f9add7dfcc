//! Every number of a curve: an engine in a setting is a row; and how engines and numbers stand in
//! all tables of runs of files.

use iolens_document::table::{Column, Entry, Table, Tone, decimal, left, right};
use iolens_document::{Joined, Node, change_interval, ends, unusable};
use iolens_model::arm::Role;
use iolens_model::file::CacheState;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, Estimate, Interval, Told, Verdict,
};

use crate::figure::style::toned;
use crate::number::{self, InWords, Unit, list_with, nanoseconds};
use crate::remarks;
use crate::results::{self, ArmRow, Of, Row, filled, name};
use crate::screen::table::{Better, SAME, UNDECIDED, compared};
use crate::studies::files::facts;
use crate::{arms, words};

/// An engine by its label, in its colour.
pub(super) fn engine(analysis: &Analysis, label: &str) -> Entry {
    toned(label, arms::primitive(analysis, label))
}

/// `451 [450–452]`, of what is this many times larger.
pub(super) fn scaled(estimate: &Estimate, scale: f64, unit: &str) -> String {
    let value = three_digits(estimate.value / scale);
    let interval = estimate.interval.or_empty(|interval| {
        let Interval { low, high } = interval.map(|end| end / scale);
        match interval.is_usable() {
            true => format!(" [{}]", ends((low, high))),
            false => format!(" [{}]", unusable()),
        }
    });
    format!("{value}{unit}{interval}")
}

/// `451 µs [450–452]`.
pub(super) fn time(estimate: &Estimate) -> String {
    let (scale, unit) = match estimate.value {
        ns if ns >= 1e6 => (1e6, " ms"),
        ns if ns >= 1e3 => (1e3, " µs"),
        _ => (1.0, " ns"),
    };
    scaled(estimate, scale, unit)
}

/// `5.21× [4.98–5.45]`.
pub(super) fn times(ratio: &Estimate) -> String {
    scaled(ratio, 1.0, "×")
}

/// A table whose values are farther apart in a setting than this shows no changes: −98% and
/// +250% beside each other are read wrong.
const SPREAD_MAX: f64 = 3.0;

/// What the rows of a table have in common.
#[derive(Clone, Copy)]
struct Rows<'a> {
    run: &'a Run,
    told: &'a Told,
    unit: Unit,
    is_alone: bool,
    has_changes: bool,
}

/// The table of a curve, or of a setting, as wide as `width` allows.
pub(crate) fn curve(run: &Run, told: &Told, cells: &[&CellAnalysis], width: usize) -> Table {
    let is_alone = arms::is_alone(cells.iter().copied());
    let has_changes = !is_alone && cells.iter().all(|cell| spread(cell) <= SPREAD_MAX);
    let rows = Rows { run, told, unit: facts::unit(cells), is_alone, has_changes };
    let size = Some(Column::right(&words::size_of(&run.header.plan), ""));
    let arms = results::by_size(cells, is_alone);
    let row = |row: &ArmRow<'_>| rows.row(cells, row);
    let table = filled(size, &arms, !is_alone, |(_, arm)| note(arm), row);
    let dropped: [&[&str]; 6] =
        [&["n"], &["CPU"], &["from device"], &["left dirty"], &["start-up"], &["time"]];
    table.fitting(width, &dropped)
}

/// The largest over the smallest rate of a setting.
fn spread(cell: &CellAnalysis) -> f64 {
    let rates = || facts::engines(cell).map(|(_, rate)| rate.value).filter(|rate| *rate > 0.0);
    match (rates().reduce(f64::max), rates().reduce(f64::min)) {
        (Some(most), Some(least)) => most / least,
        _ => 1.0,
    }
}

impl Rows<'_> {
    /// An arm in a cell, in the columns that these cells have something in.
    fn row(&self, cells: &[&CellAnalysis], (cell, arm): &ArmRow<'_>) -> Row {
        let plan = &self.run.header.plan;
        let (is_write, is_copy) = (plan.write().is_some(), plan.copy().is_some());
        // What is copied comes from the page cache, if that is to hold it.
        let is_read =
            !is_write && (!is_copy || cells.iter().any(|cell| facts::is_cold(&cell.cell)));
        let has_stalls = arms::of_cells(cells).any(facts::has_stalls);
        let per_unit = format!("per {}", plan.study().unit());
        let rate_unit = self.unit.name;
        let ends = if self.has_changes { "%" } else { rate_unit };
        let cpu = arm.figure(|f| f.tx_cpu_ns_per_byte).map(|e| e.value);
        let device = arm.figure(|f| f.device_share).map(|e| e.value);
        let dirty = self.told.dirty_share(&cell.cell, &arm.arm.label);
        let all = [
            (true, left("engine", "", name(arm))),
            (true, decimal("throughput", rate_unit, self.rate(rate(arm)))),
            (has_stalls, decimal("with stalls", rate_unit, self.rate(with_stalls(arm)))),
            (self.has_changes, right("change", "", change(arm))),
            (true, left("interval", ends, self.interval(arm))),
            (true, right("time", &per_unit, self.time(arm))),
            (true, decimal("CPU", "ns/B", number::optional(cpu))),
            (is_read, right("from device", "%", percent(device))),
            (is_write, right("left dirty", "%", percent(dirty))),
            (is_copy, right("start-up", "%", self.start(arm))),
            (true, right("n", "", results::trials(arm))),
        ];
        all.into_iter().filter_map(|(has, filled)| has.then_some(filled)).collect()
    }

    fn rate(&self, rate: Option<Estimate>) -> Entry {
        number::optional(rate.map(|rate| rate.value / self.unit.size)).into()
    }

    fn time(&self, arm: &ArmAnalysis) -> Entry {
        let shown = |ns: Estimate| if self.is_alone { time(&ns) } else { nanoseconds(ns.value) };
        arm.time().or_dash(shown).into()
    }

    /// The interval that decides, of the change or of the value.
    fn interval(&self, arm: &ArmAnalysis) -> Entry {
        let rate = rate(arm);
        if self.is_alone {
            let usable = rate.and_then(|rate| rate.interval).filter(Interval::is_usable);
            let shown = usable.map(|interval| interval.map(|end| end / self.unit.size));
            return shown.or_dash(|i| format!("[{}]", ends((i.low, i.high)))).into();
        }
        if let Some(word) = word(arm) {
            return if self.has_changes { Entry::default() } else { word };
        }
        let Some(contrast) = &arm.contrast else { return Entry::default() };
        let (factor, mark) = compared(contrast, Better::More, self.run.header.plan.quick);
        let Some((low, high)) = factor.interval else { return unusable().into() };
        if self.has_changes {
            return format!("{}{mark}", change_interval((low, high))).into();
        }
        let Some(rate) = rate else { return Entry::default() };
        let base = rate.value / factor.typical / self.unit.size;
        format!("[{}]{mark}", ends((base * low, base * high))).into()
    }

    /// What of a program's time its start is.
    fn start(&self, arm: &ArmAnalysis) -> String {
        let start = facts::start_of(&self.run.header, self.told, &arm.arm.primitive);
        let time = arm.time().map(|e| e.value);
        let share = start.zip(time).map(|(start, time)| start.median_ns as f64 / time);
        share.or_empty(|share| percent(Some(share)))
    }
}

/// The change against the baseline, or why there is none.
fn change(arm: &ArmAnalysis) -> Entry {
    match (word(arm), &arm.contrast) {
        (Some(word), _) => word,
        (None, Some(contrast)) => iolens_document::change(contrast.ratio).into(),
        (None, None) => Entry::default(),
    }
}

/// What moves no bytes has no rate.
fn rate(arm: &ArmAnalysis) -> Option<Estimate> {
    arm.figure(|f| f.read_bytes_per_s).filter(|rate| rate.value > 0.0)
}

/// Why a row is compared with nothing, in a word.
fn word(arm: &ArmAnalysis) -> Option<Entry> {
    let verdict = arm.contrast.as_ref().map(|contrast| contrast.verdict);
    Some(match (arm.status, arm.arm.role, verdict) {
        (Status::Ok, Role::Baseline, _) => Entry::toned("baseline", Tone::Faint),
        (Status::Ok, Role::Control, _) => Entry::toned("control", Tone::Faint),
        (Status::Ok, _, Some(Verdict::Invalid)) => "invalid".into(),
        (Status::Ok, _, Some(Verdict::Unranked)) => "not ranked".into(),
        (Status::Ok, ..) => return None,
        (Status::Skipped, ..) => "not run".into(),
        (status, ..) => status.word().into(),
    })
}

/// Why a row has no usable numbers, or what its change may be off by.
fn note(arm: &ArmAnalysis) -> Option<String> {
    if arm.status != Status::Ok {
        return Some(arm.reason.clone().unwrap_or_else(|| "no reason was stored".to_owned()));
    }
    let without = arm.contrast.as_ref().filter(|contrast| !contrast.verdict.is_ranked());
    let why = without.map(|contrast| remarks::reason(&contrast.reason));
    why.or_else(|| arm.unequal.as_ref().map(remarks::unequal))
}

/// The rate by total times, of who has rare slow slices.
fn with_stalls(arm: &ArmAnalysis) -> Option<Estimate> {
    let contrast = arm.contrast.as_ref().filter(|_| facts::has_stalls(arm))?;
    rate(arm).map(|rate| rate.map(|rate| rate / contrast.ratio * contrast.total_ratio.value))
}

fn percent(share: Option<f64>) -> String {
    share.or_dash(|share| format!("{:.0}", 100.0 * share))
}

/// How the tables are read, of what stands in them.
pub(super) fn reading(run: &Run, analysis: &Analysis) -> Vec<Node> {
    let plan = &run.header.plan;
    let baseline = &plan.baseline;
    let is_cold = analysis.cells.iter().any(|cell| facts::is_cold(&cell.cell));
    let intervals = match arms::is_alone(&analysis.cells) {
        true => "Intervals: 95%, each by itself.".to_owned(),
        false => format!(
            "Values: {baseline}'s value × the typical ratio. Intervals: 95%, all {} \
             comparisons together{}.",
            analysis.contrasts,
            marks(run, analysis)
        ),
    };
    let all = [
        (true, intervals.as_str()),
        (
            analysis.arms().any(facts::has_stalls),
            "With stalls: by total times, with rare slow slices.",
        ),
        (true, "CPU, user and kernel: the total of an engine's own trials."),
        (
            plan.write().is_some(),
            "Left dirty: of the bytes written, not on the device when a slice ends and brought \
             there outside its time; above 100% where the kernel counts large folios whole.",
        ),
        (
            plan.write().is_none() && (plan.copy().is_none() || is_cold),
            "From device: bytes that storage delivered, of those read; above 100% with what was \
             read ahead and not asked for.",
        ),
        (plan.copy().is_some(), "Start-up: of a program's time, not subtracted."),
    ];
    let said = all.into_iter().filter(|(is, _)| *is).map(|(_, said)| said);
    let mut nodes = vec![Node::aside(said.joined(" "))];
    nodes.extend(controls(run, analysis).map(Node::aside));
    nodes.extend(guest_cold(run, analysis).map(Node::aside));
    nodes
}

/// The marks that occur.
fn marks(run: &Run, analysis: &Analysis) -> String {
    let own = analysis.arms().filter(|arm| word(arm).is_none());
    let contrasts = own.filter_map(|arm| arm.contrast.as_ref());
    let marks: Vec<&str> =
        contrasts.map(|c| compared(c, Better::More, run.header.plan.quick).1).collect();
    let delta = number::percent(analysis.delta);
    let mut out = String::new();
    if marks.contains(&SAME) {
        out.push_str(&format!("; = same within {delta} (interval 90%)"));
    }
    if marks.contains(&UNDECIDED) {
        out.push_str("; ? undecided");
    }
    out
}

/// Arms that are compared with nothing, and why.
fn controls(run: &Run, analysis: &Analysis) -> Option<String> {
    let labels = facts::controls(analysis);
    (!labels.is_empty()).then(|| match run.header.plan.copy() {
        Some(_) => format!(
            "{} no bytes (both files share their blocks), so {} is a control.",
            list_with(&labels, "moves", "move"),
            if labels.len() == 1 { "it" } else { "each" }
        ),
        None => format!(
            "{} pages and one byte of each is touched where the consumer is none: a \
             control. --consumer scan reads every byte and compares it.",
            list_with(&labels, "maps", "map")
        ),
    })
}

/// What cold means in a virtual machine.
fn guest_cold(run: &Run, analysis: &Analysis) -> Option<String> {
    let is_cold = |cell: &CellAnalysis| cell.cell.cache() == Some(CacheState::Cold);
    let hypervisor = words::fact(&run.header.host, &["virtualization"])?;
    (analysis.cells.iter().any(is_cold) && words::is_guest(&run.header.host)).then(|| {
        format!(
            "{}: the page cache of this virtual machine ({hypervisor}) held nothing of the file; \
             its host may have had it in memory.",
            words::GUEST_COLD
        )
    })
}

/// What else was measured in a setting.
pub(super) fn further(run: &Run, cell: &CellAnalysis) -> Table {
    const FIGURES: [(&str, &str, Of); 9] = [
        ("system calls", "per unit", |f| f.tx_calls_per_message),
        ("switches", "per unit", |f| f.context_switches_per_message),
        ("run delay", "ns/unit", |f| f.run_delay_ns_per_message),
        ("softirq", "ns/B", |f| f.softirq_ns_per_byte),
        ("cycles", "per B", |f| f.cycles_per_byte),
        ("L1d misses", "per KiB", |f| f.l1d_misses_per_kib),
        ("LLC references", "per KiB", |f| f.llc_references_per_kib),
        ("LLC misses", "per KiB", |f| f.llc_misses_per_kib),
        ("dTLB misses", "per KiB", |f| f.dtlb_misses_per_kib),
    ];
    let unit = facts::unit(&[cell]);
    let own = format!("{} [95%]", unit.name);
    let row = |(_, arm): &ArmRow<'_>| {
        let rate = arm.figure(|f| f.read_bytes_per_s);
        let rate = rate.or_dash(|rate| scaled(&rate, unit.size, ""));
        let mut row = vec![left("engine", "", name(arm)), left("throughput by itself", &own, rate)];
        row.extend(results::figures(cell, arm, &FIGURES));
        row
    };
    let mut table = filled(None, &results::by_size(&[cell], false), false, |_| None, row);
    for column in &mut table.columns {
        column.unit = column.unit.replace("unit", run.header.plan.study().unit());
    }
    table
}
