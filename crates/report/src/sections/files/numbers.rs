//! Every number of a curve: an engine in a setting is a row.

use iolens_document::table::{Column, Entry, Table, Tone};
use iolens_document::{Node, change, change_interval, ends, unusable};
use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::file::CacheState;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, Estimate, Figures, Interval, Told, Verdict,
};

use super::{aside, scaled, time};
use crate::number::{self, NONE, list, nanoseconds};
use crate::rates::Unit;
use crate::remarks;
use crate::screen::table::{Better, SAME, UNDECIDED, compared};
use crate::{alone, copying, figure, files, words};

/// A column; what a narrow terminal has no room for goes in the order of [`DROPPED`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Size,
    Engine,
    Throughput,
    /// The same by totals, where rare slow slices change it.
    Stalls,
    Change,
    Interval,
    Time,
    Cpu,
    Device,
    Dirty,
    Start,
    Trials,
}

const ALL: [Part; 12] = [
    Part::Size,
    Part::Engine,
    Part::Throughput,
    Part::Stalls,
    Part::Change,
    Part::Interval,
    Part::Time,
    Part::Cpu,
    Part::Device,
    Part::Dirty,
    Part::Start,
    Part::Trials,
];

/// First to go first; the rest always stays.
const DROPPED: [Part; 6] =
    [Part::Trials, Part::Cpu, Part::Device, Part::Dirty, Part::Start, Part::Time];

/// A table whose values are farther apart in a setting than this shows no changes: −98% and
/// +250% beside each other are read wrong.
const SPREAD_MAX: f64 = 3.0;

/// What the rows of a table have in common.
struct Rows<'a> {
    run: &'a Run,
    told: &'a Told,
    unit: Unit,
    is_alone: bool,
    has_changes: bool,
}

/// The table of a curve, or of a setting, as wide as `width` allows.
pub(crate) fn curve(run: &Run, told: &Told, cells: &[&CellAnalysis], width: usize) -> Table {
    let is_cold = cells.iter().any(|cell| files::is_cold(&cell.cell));
    let (is_write, is_copy) = (run.header.plan.write().is_some(), run.header.plan.copy().is_some());
    let is_alone = alone::is_alone(cells.iter().copied());
    let has_changes = !is_alone && cells.iter().all(|cell| spread(cell) <= SPREAD_MAX);
    let rows = Rows { run, told, unit: files::unit(cells), is_alone, has_changes };
    let has = |part: &Part| match part {
        Part::Stalls => cells.iter().flat_map(|cell| &cell.arms).any(has_stalls),
        Part::Change => has_changes,
        // What is copied comes from the page cache, if that is to hold it.
        Part::Device => !is_write && (!is_copy || is_cold),
        Part::Dirty => is_write,
        Part::Start => is_copy,
        _ => true,
    };
    let mut parts: Vec<Part> = ALL.into_iter().filter(has).collect();
    let mut table = rows.table(&parts, cells);
    for dropped in DROPPED {
        if table.width() <= width {
            break;
        }
        parts.retain(|part| *part != dropped);
        table = rows.table(&parts, cells);
    }
    table
}

/// The largest over the smallest rate of a setting.
fn spread(cell: &CellAnalysis) -> f64 {
    let rates = || files::engines(cell).map(|(_, rate)| rate.value).filter(|rate| *rate > 0.0);
    match (rates().reduce(f64::max), rates().reduce(f64::min)) {
        (Some(most), Some(least)) => most / least,
        _ => 1.0,
    }
}

fn has_stalls(arm: &ArmAnalysis) -> bool {
    arm.status == Status::Ok && arm.contrast.as_ref().is_some_and(|contrast| contrast.tail)
}

impl Rows<'_> {
    fn column(&self, part: Part) -> Column {
        let plan = &self.run.header.plan;
        match part {
            Part::Size => Column::right(&words::size_of(plan), ""),
            Part::Engine => Column::left("engine", ""),
            Part::Throughput => Column::decimal("throughput", self.unit.name),
            Part::Stalls => Column::decimal("with stalls", self.unit.name),
            Part::Change => Column::right("change", ""),
            Part::Interval if self.has_changes => Column::left("interval", "%"),
            Part::Interval => Column::left("interval", self.unit.name),
            Part::Time => Column::right("time", &format!("per {}", plan.study().unit())),
            Part::Cpu => Column::decimal("CPU", "ns/B"),
            Part::Device => Column::right("from device", "%"),
            Part::Dirty => Column::right("left dirty", "%"),
            Part::Start => Column::right("start-up", "%"),
            Part::Trials => Column::right("n", ""),
        }
    }

    fn table(&self, parts: &[Part], cells: &[&CellAnalysis]) -> Table {
        let mut table = Table::new("", parts.iter().map(|&part| self.column(part)).collect());
        for cell in cells {
            // A hidden copy of what is compared with nothing is beside nothing.
            let is_shown = |arm: &&ArmAnalysis| !(self.is_alone && arm.arm.role == Role::SelfCheck);
            for (nth, arm) in cell.arms.iter().filter(is_shown).enumerate() {
                let note = note(arm).map(|said| table.note(&said));
                let entry = |&part: &Part| match part {
                    Part::Size if nth == 0 => cell.cell.size.to_string().into(),
                    Part::Size => Entry::default(),
                    Part::Engine => Entry { note, ..name(arm) },
                    other => self.entry(other, &cell.cell, arm),
                };
                let entries = parts.iter().map(entry).collect();
                match nth == 0 && !self.is_alone {
                    true => table.push_group(entries),
                    false => table.push(entries),
                }
            }
        }
        table
    }

    fn entry(&self, part: Part, cell: &Cell, arm: &ArmAnalysis) -> Entry {
        let figures = arm.figures.as_ref();
        let value = |estimate: Option<Estimate>, scale: f64| -> Entry {
            number::optional(estimate.map(|estimate| estimate.value / scale)).into()
        };
        // What moves no bytes has no rate.
        let rate = figures.and_then(|f| f.read_bytes_per_s).filter(|rate| rate.value > 0.0);
        match part {
            Part::Size | Part::Engine => Entry::default(),
            Part::Throughput => value(rate, self.unit.size),
            Part::Stalls => value(with_stalls(arm, rate), self.unit.size),
            Part::Change => self.change(arm),
            Part::Interval => self.interval(arm, rate),
            Part::Time => match figures.map(|f| f.ns_per_message) {
                Some(ns) if self.is_alone => time(&ns).into(),
                Some(ns) => nanoseconds(ns.value).into(),
                None => NONE.into(),
            },
            Part::Cpu => value(figures.and_then(|f| f.tx_cpu_ns_per_byte), 1.0),
            Part::Device => percent(figures.and_then(|f| f.device_share).map(|e| e.value)).into(),
            Part::Dirty => percent(self.told.dirty_share(cell, &arm.arm.label)).into(),
            Part::Start => self.start(arm).into(),
            Part::Trials => {
                let n = figures.map(|f| f.ns_per_message.n);
                n.map_or_else(|| NONE.to_owned(), |n| n.to_string()).into()
            }
        }
    }

    /// The change against the baseline, or why there is none.
    fn change(&self, arm: &ArmAnalysis) -> Entry {
        match (word(arm), &arm.contrast) {
            (Some(word), _) => word,
            (None, Some(contrast)) => change(contrast.ratio).into(),
            (None, None) => Entry::default(),
        }
    }

    /// The interval that decides, of the change or of the value.
    fn interval(&self, arm: &ArmAnalysis, rate: Option<Estimate>) -> Entry {
        if self.is_alone {
            let usable = rate.and_then(|rate| rate.interval).filter(Interval::is_usable);
            let size = self.unit.size;
            let shown = usable.map(|i| format!("[{}]", ends((i.low / size, i.high / size))));
            return shown.unwrap_or_else(|| NONE.to_owned()).into();
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
        let start = copying::start_of(&self.run.header, self.told, &arm.arm.primitive);
        let time = arm.figures.as_ref().map(|f| f.ns_per_message.value);
        let share = start.zip(time).map(|(start, time)| start.median_ns as f64 / time);
        share.map_or_else(String::new, |share| percent(Some(share)))
    }
}

/// The name of a row.
fn name(arm: &ArmAnalysis) -> Entry {
    let label = match arm.arm.role {
        Role::SelfCheck => "self-check".to_owned(),
        _ => arm.shown_label(),
    };
    Entry::toned(label, figure::style::tone(&arm.arm.primitive))
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
fn with_stalls(arm: &ArmAnalysis, rate: Option<Estimate>) -> Option<Estimate> {
    let contrast = arm.contrast.as_ref().filter(|_| has_stalls(arm))?;
    let rate = rate?;
    let value = rate.value / contrast.ratio * contrast.total_ratio.value;
    Some(Estimate { value, ..rate })
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| NONE.to_owned(), |share| format!("{:.0}", 100.0 * share))
}

/// How the tables are read, of what stands in them.
pub(super) fn reading(run: &Run, analysis: &Analysis) -> Vec<Node> {
    let plan = &run.header.plan;
    let baseline = &plan.baseline;
    let mut said: Vec<String> = Vec::new();
    if alone::is_alone(&analysis.cells) {
        said.push("Intervals: 95%, each by itself.".to_owned());
    } else {
        said.push(format!(
            "Values: {baseline}'s value × the typical ratio. Intervals: 95%, all {} \
             comparisons together{}.",
            analysis.contrasts,
            marks(run, analysis)
        ));
    }
    let stalls = analysis.arms().any(has_stalls);
    said.extend(stalls.then(|| "With stalls: by total times, with rare slow slices.".to_owned()));
    said.push("CPU, user and kernel: the total of an engine's own trials.".to_owned());
    if plan.write().is_some() {
        said.push(
            "Left dirty: of the bytes written, not on the device when a slice ends and brought \
             there outside its time; above 100% where the kernel counts large folios whole."
                .to_owned(),
        );
    } else if plan.copy().is_none() || analysis.cells.iter().any(|cell| files::is_cold(&cell.cell))
    {
        said.push(
            "From device: bytes that storage delivered, of those read; above 100% with what was \
             read ahead and not asked for."
                .to_owned(),
        );
    }
    if plan.copy().is_some() {
        said.push("Start-up: of a program's time, not subtracted.".to_owned());
    }
    let mut nodes = vec![aside(said.join(" "))];
    nodes.extend(controls(run, analysis).map(aside));
    nodes.extend(guest_cold(run, analysis).map(aside));
    nodes
}

/// The marks that occur.
fn marks(run: &Run, analysis: &Analysis) -> String {
    let own = analysis.arms().filter(|arm| word(arm).is_none());
    let contrasts = own.filter_map(|arm| arm.contrast.as_ref());
    let marks: Vec<&str> =
        contrasts.map(|c| compared(c, Better::More, run.header.plan.quick).1).collect();
    let delta = number::percent(analysis.delta).replace(' ', "");
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
    let mut labels: Vec<String> = Vec::new();
    for arm in analysis.arms().filter(|arm| arm.arm.role == Role::Control) {
        if !labels.contains(&arm.arm.label) {
            labels.push(arm.arm.label.clone());
        }
    }
    let (is_one, names) = (labels.len() == 1, list(&labels));
    (!labels.is_empty()).then(|| match run.header.plan.copy() {
        Some(_) => format!(
            "{names} {} no bytes (both files share their blocks), so {} a control.",
            if is_one { "moves" } else { "move" },
            if is_one { "it is" } else { "each is" }
        ),
        None => format!(
            "{names} {} pages and one byte of each is touched where the consumer is none: a \
             control. --consumer scan reads every byte and compares it.",
            if is_one { "maps" } else { "map" }
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
    type Of = fn(&Figures) -> Option<Estimate>;
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
    let has = |of: Of| cell.arms.iter().any(|arm| arm.figures.as_ref().and_then(of).is_some());
    let shown: Vec<_> = FIGURES.iter().filter(|(.., of)| has(*of)).collect();
    let unit = files::unit(&[cell]);
    let mut columns = vec![
        Column::left("engine", ""),
        Column::left("throughput by itself", &format!("{} [95%]", unit.name)),
    ];
    let of_study = |unit: &str| unit.replace("unit", run.header.plan.study().unit());
    columns.extend(shown.iter().map(|(name, unit, _)| Column::decimal(name, &of_study(unit))));
    let mut table = Table::new("", columns);
    for arm in &cell.arms {
        let figures = arm.figures.as_ref();
        let rate = figures.and_then(|f| f.read_bytes_per_s);
        let rate = rate.map_or_else(|| NONE.to_owned(), |rate| scaled(&rate, unit.size, ""));
        let mut row = vec![name(arm), rate.into()];
        row.extend(shown.iter().map(|(.., of)| {
            Entry::from(number::optional(figures.and_then(of).map(|estimate| estimate.value)))
        }));
        table.push(row);
    }
    table
}
