//! The tables of a run of `file` or `write`: what each engine moved in each cell, what
//! caching is worth, and what a block costs by the cost model.

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::file::DestinationFacts;
use iolens_model::run::Run;
use iolens_model::units::Bytes;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, CostModel, Estimate, Told};

use super::{Detail, entry, interval_text, label, rate_interval, remark};
use crate::files;
use crate::number::{self, NONE};
use crate::rates::{self, Unit};
use crate::table::{Column, Entry, Table, Tone};
use crate::{alone, copying};
use crate::{words, writes};

/// A column of the table of a curve; what a narrow terminal has no room for goes
/// in the order of [`DROPPED`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Size,
    Engine,
    Rate,
    /// Of the rate, where it is compared with nothing.
    Interval,
    Time,
    Ratio,
    Verdict,
    Trials,
    Device,
    Dirty,
    Start,
    Cpu,
}

const ALL: [Part; 12] = [
    Part::Size,
    Part::Engine,
    Part::Rate,
    Part::Interval,
    Part::Time,
    Part::Ratio,
    Part::Verdict,
    Part::Trials,
    Part::Device,
    Part::Dirty,
    Part::Start,
    Part::Cpu,
];

/// First to go first; the rest always stays.
const DROPPED: [Part; 6] =
    [Part::Cpu, Part::Time, Part::Trials, Part::Start, Part::Device, Part::Dirty];

/// The table of one curve, as wide as `width` allows; one scale for all its rates.
pub(crate) fn curve(run: &Run, told: &Told, cells: &[&CellAnalysis], width: usize) -> Table {
    let quick = run.header.plan.quick;
    let is_cold = cells.iter().any(|cell| files::is_cold(&cell.cell));
    let is_write = run.header.plan.write().is_some();
    let is_copy = run.header.plan.copy().is_some();
    let is_alone = alone::is_alone(cells.iter().copied());
    let has = |part: &Part| match part {
        Part::Interval => is_alone,
        Part::Ratio => !is_alone,
        Part::Verdict => !quick && !is_alone,
        // What is copied comes from the page cache, if that is to hold it.
        Part::Device => !is_write && (!is_copy || is_cold),
        Part::Dirty => is_write,
        Part::Start => is_copy,
        _ => true,
    };
    let mut parts: Vec<Part> = ALL.into_iter().filter(has).collect();
    let unit = files::unit(cells);
    let mut table = fill(run, told, &parts, cells, unit);
    for dropped in DROPPED {
        if table.width() <= width {
            break;
        }
        parts.retain(|part| *part != dropped);
        table = fill(run, told, &parts, cells, unit);
    }
    table
}

/// The heading of a curve.
pub(crate) fn heading(run: &Run, curve: &Cell) -> String {
    let parts = super::heading_parts(&run.header.plan, curve);
    words::joined(words::as_found(&run.header, curve, parts))
}

fn column(run: &Run, part: Part, unit: Unit) -> Column {
    let plan = &run.header.plan;
    match part {
        Part::Size => Column::right(&words::size_of(plan), ""),
        Part::Engine => Column::left(words::arm_of(plan), ""),
        Part::Rate => Column::decimal("rate", unit.name),
        Part::Interval => Column::left("", "[95 %]"),
        Part::Time if plan.copy().is_some() => Column::decimal("time", "ms/copy"),
        Part::Start => Column::decimal("start-up", "ms"),
        Part::Time => Column::decimal("time", "ns/block"),
        Part::Ratio => Column::left("ratio", "[95 %]"),
        Part::Verdict => Column::left("verdict", ""),
        Part::Trials => Column::right("n", ""),
        Part::Device => Column::right("from device", "%"),
        Part::Dirty => Column::right("left dirty", "%"),
        Part::Cpu => Column::decimal("CPU", "ns/B"),
    }
}

fn fill(run: &Run, told: &Told, parts: &[Part], cells: &[&CellAnalysis], unit: Unit) -> Table {
    let mut table = Table::new("", parts.iter().map(|&part| column(run, part, unit)).collect());
    let time_ns = if run.header.plan.copy().is_some() { 1e6 } else { 1.0 };
    let is_alone = alone::is_alone(cells.iter().copied());
    for cell in cells {
        // A hidden copy of what is compared with nothing is beside nothing.
        let is_shown = |arm: &&ArmAnalysis| !(is_alone && arm.arm.role == Role::SelfCheck);
        for (i, arm) in cell.arms.iter().filter(is_shown).enumerate() {
            let note = remark(arm).map(|remark| table.note(&remark));
            let figures = arm.figures.as_ref();
            let value = |estimate: Option<Estimate>, scale: f64| -> Entry {
                number::optional(estimate.map(|estimate| estimate.value / scale)).into()
            };
            let one = |&part: &Part| match part {
                Part::Size if i == 0 => cell.cell.size.to_string().into(),
                Part::Size => Entry::default(),
                Part::Engine => {
                    Entry { note, ..Entry::toned(label(arm), Tone::Arm(arm.arm.primitive.clone())) }
                }
                // What moves no bytes has no rate.
                Part::Rate => {
                    let rate = figures.and_then(|f| f.read_bytes_per_s);
                    value(rate.filter(|rate| rate.value > 0.0), unit.size)
                }
                Part::Interval => {
                    let interval = figures.and_then(|f| f.read_bytes_per_s?.interval);
                    rate_interval(interval, unit).into()
                }
                Part::Time => value(figures.map(|f| f.ns_per_message), time_ns),
                Part::Start => match copying::start_of(&run.header, told, &arm.arm.primitive) {
                    Some(start) => number::optional(Some(start.median_ns as f64 / 1e6)).into(),
                    None => Entry::default(),
                },
                Part::Ratio => entry(Detail::Ratio, arm),
                Part::Verdict => entry(Detail::Verdict, arm),
                Part::Trials => entry(Detail::Trials, arm),
                Part::Device => share(figures.and_then(|f| f.device_share)).into(),
                Part::Dirty => dirty(told, &cell.cell, arm).into(),
                Part::Cpu => value(figures.and_then(|f| f.tx_cpu_ns_per_byte), 1.0),
            };
            let entries = parts.iter().map(one).collect();
            if i == 0 && !is_alone { table.push_group(entries) } else { table.push(entries) }
        }
    }
    table
}

/// A share in whole percent: more is not in it.
fn share(share: Option<Estimate>) -> String {
    share.map_or_else(|| NONE.to_owned(), |share| format!("{:.0}", 100.0 * share.value))
}

/// What of its bytes an arm leaves for the kernel to bring to the device, in whole
/// percent: whole pages, and so more than all of small blocks in a random order.
fn dirty(told: &Told, cell: &Cell, arm: &ArmAnalysis) -> String {
    let share = told.dirty_share(cell, &arm.arm.label);
    share.map_or_else(|| NONE.to_owned(), |share| format!("{:.0}", 100.0 * share))
}

/// What else was measured of a cell, beside [`curve`]: the figures by block.
pub(crate) fn further(run: &Run, cell: &CellAnalysis) -> Table {
    type Of = fn(&iolens_stats::analysis::Figures) -> Option<Estimate>;
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
        Column::left(words::arm_of(&run.header.plan), ""),
        Column::left("rate", &format!("{} [95 %]", unit.name)),
    ];
    let of_study = |unit: &str| unit.replace("unit", run.header.plan.study().unit());
    columns.extend(shown.iter().map(|(name, unit, _)| Column::decimal(name, &of_study(unit))));
    let mut table = Table::new("", columns);
    for arm in &cell.arms {
        let figures = arm.figures.as_ref();
        let rate = figures.and_then(|f| f.read_bytes_per_s);
        let mut row = vec![
            Entry::toned(label(arm), Tone::Arm(arm.arm.primitive.clone())),
            interval_text(rate, unit.size).into(),
        ];
        row.extend(shown.iter().map(|(.., of)| {
            Entry::from(number::optional(figures.and_then(of).map(|estimate| estimate.value)))
        }));
        table.push(row);
    }
    table
}

/// How many times as fast each engine reads warm as cold.
pub(crate) fn caching(run: &Run, analysis: &Analysis) -> Option<Table> {
    let columns = vec![
        Column::left("block size", ""),
        Column::left("engine", ""),
        Column::left("warm over cold", "ratio [95 %]"),
        Column::left("at", ""),
    ];
    let caption = "What the page cache is worth: the rate warm over the rate cold, of different \
                   cells, which are not interleaved";
    let mut table = Table::new(caption, columns);
    let mut last = None;
    for worth in files::caching(run, analysis) {
        let row = vec![
            worth.cell.size.to_string().into(),
            Entry::toned(&worth.label, Tone::Arm(worth.primitive.clone())),
            files::times(&worth.ratio).into(),
            files::without_cache(run, &worth.cell).into(),
        ];
        let place = (worth.cell.size, worth.cell.threads);
        if last.replace(place) == Some(place) { table.push(row) } else { table.push_group(row) }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// What it takes that each block is on the device before the next one.
pub(crate) fn durable(run: &Run, analysis: &Analysis) -> Option<Table> {
    let columns = vec![
        Column::left("curve", ""),
        Column::left("block size", ""),
        Column::left("engine", ""),
        Column::left("time per block", "[95 %]"),
        Column::left("over the baseline", "times [95 %]"),
    ];
    let caption = "What it takes that each block is on the device before the next one";
    let mut table = Table::new(caption, columns);
    for (curve, cells) in super::curves(analysis) {
        let mut name = words::curve(&run.header, &curve);
        for cell in cells {
            let mut rows = writes::durable(run, cell);
            if rows.is_empty() {
                continue;
            }
            let lazy = writes::lazy(run, cell);
            rows.splice(0..0, lazy);
            for (place, (arm, time)) in rows.into_iter().enumerate() {
                let size = if place == 0 { cell.cell.size.to_string() } else { String::new() };
                let over = lazy.filter(|_| place > 0).and_then(|_| writes::over_baseline(arm));
                let row = vec![
                    std::mem::take(&mut name).into(),
                    size.into(),
                    Entry::toned(label(arm), Tone::Arm(arm.arm.primitive.clone())),
                    writes::time(&time).into(),
                    over.map_or_else(|| NONE.to_owned(), |over| files::times(&over)).into(),
                ];
                if place == 0 { table.push_group(row) } else { table.push(row) }
            }
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The fit a + b·n of every curve.
pub(crate) fn cost_models(run: &Run, analysis: &Analysis) -> Option<Table> {
    let columns = vec![
        Column::left("curve", ""),
        Column::left("engine", ""),
        Column::left("a, of any block", "ns/block [95 %]"),
        Column::left("1/b, the bandwidth", "GiB/s [95 %]"),
        Column::right("knee n½", "(block size)"),
        Column::left("farthest from the fit", ""),
    ];
    let caption = "Time of a block, over all threads, as a + b·n: what any block costs, such as the \
                   crossing, and the bandwidth of the copy";
    let mut table = Table::new(caption, columns);
    let mut last = None;
    for model in &analysis.cost_models {
        let begins = last.replace(&model.curve) != Some(&model.curve);
        let curve = if begins { words::curve(&run.header, &model.curve) } else { String::new() };
        let mut row: Vec<Entry> = vec![
            curve.into(),
            Entry::toned(&model.label, Tone::Arm(files::primitive(analysis, &model.label))),
        ];
        row.extend(fitted(model));
        if begins { table.push_group(row) } else { table.push(row) }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The same for a terminal, which is narrow: a table for each curve, with its title.
pub(crate) fn fits(run: &Run, analysis: &Analysis) -> Vec<Table> {
    let mut tables: Vec<(&Cell, Table)> = Vec::new();
    for model in &analysis.cost_models {
        if tables.last().is_none_or(|(curve, _)| **curve != model.curve) {
            let curve = words::curve(&run.header, &model.curve);
            let caption = format!("{curve}: time of a block as a + b·n, n½ where half of it is a");
            tables.push((&model.curve, Table::new(caption, narrow())));
        }
        let Some((_, table)) = tables.last_mut() else { continue };
        let engine = Tone::Arm(files::primitive(analysis, &model.label));
        let [fixed, bandwidth, ..] = fitted(model);
        let knee = files::rounded_bytes(model.half_size_bytes.value);
        let holds = match model.breaks_at {
            Some(size) => format!("below {size}"),
            None if model.is_affine() => String::new(),
            None => format!("not affine: {:+.0} %", 100.0 * model.worst_residual),
        };
        let engine = Entry::toned(&model.label, engine);
        table.push(vec![engine, fixed, bandwidth, knee.to_string().into(), holds.into()]);
    }
    tables.into_iter().map(|(_, table)| table).collect()
}

fn narrow() -> Vec<Column> {
    vec![
        Column::left("engine", ""),
        Column::left("a", "ns/block [95 %]"),
        Column::left("1/b", "GiB/s [95 %]"),
        Column::right("n½", ""),
        Column::left("holds", ""),
    ]
}

fn fitted(model: &CostModel) -> [Entry; 4] {
    let residual = format!("{:+.0} % at {}", 100.0 * model.worst_residual, model.worst_at);
    let residual = match model.breaks_at {
        Some(size) => format!("{residual}; holds below {size}"),
        None => residual,
    };
    let at_most = if model.fixed_is_upper_bound { "at most " } else { "" };
    let fixed = format!("{at_most}{}", interval_text(Some(model.fixed_ns), 1.0));
    let bandwidth = interval_text(files::bandwidth(model), Bytes::GIB as f64);
    let line = [fixed, bandwidth, files::knee(model)];
    // Of points that are on no line the nearest one is shown, and as such.
    let [fixed, bandwidth, knee] = match model.is_affine() {
        true => line.map(Entry::from),
        false => line.map(|text| Entry::toned(text, Tone::Faint)),
    };
    let residual = match model.is_affine() {
        true => residual,
        false => format!("not affine: {residual}"),
    };
    [fixed, bandwidth, knee, residual.into()]
}

/// The facts of the file, for a page.
pub(crate) fn file_facts(run: &Run) -> Vec<(&'static str, String)> {
    let Some(file) = &run.header.file else { return Vec::new() };
    let whose = if file.is_ours { "made for this run, in" } else { "the user’s, only read" };
    let mut facts = vec![
        ("whose", whose.to_owned()),
        ("where", file.place.clone()),
        ("size", file.bytes.to_string()),
    ];
    if !file.size_reason.is_empty() {
        facts.push(("why as large", file.size_reason.clone()));
    }
    facts.push(("file system", file.file_system.clone()));
    if let Some(writing) = &file.writing {
        facts.push(("regions", format!("{} of {} each", writing.regions, writing.region)));
        if let Some(background) = writing.dirty_background {
            facts.push(("the kernel writes back from", format!("{background} of dirty memory on")));
        }
        facts.extend(crate::writes::flush(writing).map(|text| ("a page and its flush", text)));
    }
    if let Some(destination) = &file.destination {
        let DestinationFacts { place, file_system } = destination;
        facts.push(("copied to", format!("a folder of ours in {place}, on {file_system}")));
    }
    if let Some(first) = file.first_pass {
        let rate = file.bytes.0 as f64 / (first.0.max(1) as f64 / 1e9);
        facts.push(("first pass over it", format!("{first}, {}", rates::rate(rate))));
    }
    facts.extend(file.warnings.iter().map(|warning| ("unfit", warning.clone())));
    facts
}
