//! The tables of a run, contents only; drawn by [`crate::table`]. Here: what
//! each arm cost in each cell. Its parts: what to choose, how often each byte is
//! copied, everything about one cell, why to believe it.

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::outcome::Status;
use iolens_model::plan::Plan;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, Contrast, Estimate, Interval, Verdict,
};

use iolens_stats::remark::{Remark, RemarkKind};

use crate::alone;
use crate::number::{self, NONE, copies};
use crate::rates::{self, Unit};
use crate::remarks;
use crate::screen::table::{Better, compared};
use crate::table::{Column, Entry, Table, Tone};

mod crossovers;
mod detail;
mod families;
mod ledger;
mod receivers;
mod validity;

pub(crate) use crossovers::crossovers;
pub(crate) use detail::{cell, decided, in_flight, latency, percentile, sends};
pub(crate) use families::{Each, cheapest, heading, ratios, reading as ratios_read};
pub(crate) use ledger::ledger;
pub(crate) use receivers::{READING as RECEIVERS_READ, receivers};
pub(crate) use validity::{by_pmu, isolated, rejected, self_checks};

/// A column of the table of results. What a narrow terminal has no room for
/// goes in the order of [`Detail::DROPPED`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Message size.
    Size,
    /// Arm.
    Arm,
    /// Received payload bits per second.
    Goodput,
    /// Its interval, where it is compared with nothing.
    Interval,
    /// Time per message.
    Time,
    /// Change of speed against the baseline, with a mark where that leaves it open.
    Change,
    /// The interval that decides it.
    Ends,
    /// Trials.
    Trials,
    /// Copies at the sender and end to end.
    Copies,
    /// CPU time of both ends per byte.
    Cpu,
}

impl Detail {
    const ALL: [Detail; 10] = [
        Detail::Size,
        Detail::Arm,
        Detail::Goodput,
        Detail::Interval,
        Detail::Time,
        Detail::Change,
        Detail::Ends,
        Detail::Cpu,
        Detail::Copies,
        Detail::Trials,
    ];

    /// First to go first; the rest always stays.
    const DROPPED: [Detail; 4] = [Detail::Trials, Detail::Copies, Detail::Cpu, Detail::Time];

    fn column(self, goodput: Unit) -> Column {
        match self {
            Detail::Size => Column::right("size", ""),
            Detail::Arm => Column::left("method", ""),
            Detail::Goodput => Column::decimal("throughput", goodput.name),
            Detail::Interval => Column::left("", "[95%]"),
            Detail::Time => Column::decimal("per message", "ns"),
            Detail::Change => Column::right("speed", ""),
            Detail::Ends => Column::left("95% interval", ""),
            Detail::Trials => Column::right("n", ""),
            Detail::Copies => Column::left("copies", ""),
            Detail::Cpu => Column::decimal("CPU, both", "ns/B"),
        }
    }
}

/// The curves of a run, in the order of its cells, each with its cells.
pub(crate) fn curves(analysis: &Analysis) -> Vec<(Cell, Vec<&CellAnalysis>)> {
    let mut curves: Vec<(Cell, Vec<&CellAnalysis>)> = Vec::new();
    for cell in &analysis.cells {
        let curve = cell.cell.curve();
        match curves.iter_mut().find(|(known, _)| *known == curve) {
            Some((_, cells)) => cells.push(cell),
            None => curves.push((curve, vec![cell])),
        }
    }
    curves
}

/// The table of one curve, as wide as `width` allows.
pub(crate) fn results(plan: &Plan, cells: &[&CellAnalysis], width: usize) -> Table {
    let is_alone = alone::is_alone(cells.iter().copied());
    let has = |detail: &Detail| match detail {
        Detail::Interval => is_alone,
        Detail::Change | Detail::Ends => !is_alone,
        _ => true,
    };
    let mut details: Vec<Detail> = Detail::ALL.into_iter().filter(has).collect();
    let mut table = fill(&details, cells, plan.quick);
    for dropped in Detail::DROPPED {
        if table.width() <= width {
            break;
        }
        details.retain(|detail| *detail != dropped);
        table = fill(&details, cells, plan.quick);
    }
    table
}

fn fill(details: &[Detail], cells: &[&CellAnalysis], quick: bool) -> Table {
    let unit = goodput_unit(cells);
    let is_alone = alone::is_alone(cells.iter().copied());
    let mut table = Table::new("", details.iter().map(|detail| detail.column(unit)).collect());
    for cell in cells {
        // A hidden copy of what is compared with nothing is beside nothing.
        let is_shown = |arm: &&ArmAnalysis| !(is_alone && arm.arm.role == Role::SelfCheck);
        for (i, arm) in cell.arms.iter().filter(is_shown).enumerate() {
            let note = beside(cell, arm).map(|said| table.note(&said));
            let entry = |&detail: &Detail| match detail {
                Detail::Size if i == 0 => cell.cell.size.to_string().into(),
                Detail::Arm => Entry {
                    note,
                    ..Entry::toned(label(arm), crate::figure::style::tone(&arm.arm.primitive))
                },
                Detail::Goodput => goodput(arm, unit),
                Detail::Interval => goodput_interval(arm, unit),
                other => self::entry(other, arm, quick),
            };
            let entries = details.iter().map(entry).collect();
            if i == 0 && !is_alone { table.push_group(entries) } else { table.push(entries) }
        }
    }
    table
}

/// The arm's name in its own cell's rows, where the baseline stands above.
fn label(arm: &ArmAnalysis) -> String {
    match arm.arm.role {
        Role::SelfCheck => "self-check".to_owned(),
        _ => arm.shown_label(),
    }
}

/// How much of an arm's bytes was mapped, and why no more.
fn mapped(cell: &CellAnalysis, arm: &ArmAnalysis) -> Option<String> {
    let share = number::percent(arm.mapped_share?);
    let own = said_of(cell, arm, |kind| matches!(kind, RemarkKind::Mapped { .. }));
    own.or_else(|| Some(format!("{} mapped {share} of the bytes", cell.cell.receiver()?)))
}

/// That somebody listened, who makes the kernel copy what is sent.
fn tapped(cell: &CellAnalysis, arm: &ArmAnalysis) -> Option<String> {
    said_of(cell, arm, |kind| matches!(kind, RemarkKind::Copied { tapped: true, .. }))
}

/// A remark on an arm.
fn said_of(
    cell: &CellAnalysis,
    arm: &ArmAnalysis,
    is_it: fn(&RemarkKind) -> bool,
) -> Option<String> {
    let own = |remark: &&Remark| remark.arm.as_ref() == Some(&arm.arm.label) && is_it(&remark.kind);
    cell.remarks.iter().find(own).map(|remark| remarks::kind(&remark.kind))
}

/// Everything that is said of a row of a transfer.
fn beside(cell: &CellAnalysis, arm: &ArmAnalysis) -> Option<String> {
    let all = [remark(arm), mapped(cell, arm), tapped(cell, arm)];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Why a row has no usable numbers or no verdict, or what its ratio may be off by.
pub(crate) fn remark(arm: &ArmAnalysis) -> Option<String> {
    remark_on(arm, arm.contrast.as_ref())
}

/// The same in a table of what this contrast compares.
pub(crate) fn remark_on(arm: &ArmAnalysis, contrast: Option<&Contrast>) -> Option<String> {
    match arm.status {
        Status::Ok => {
            let without = contrast.filter(|contrast| !contrast.verdict.is_ranked());
            let why =
                without.map(|c| format!("{}: {}", c.verdict.word(), remarks::reason(&c.reason)));
            why.or_else(|| arm.unequal.as_ref().map(remarks::unequal))
        }
        status => {
            let why = arm.reason.as_deref().unwrap_or("no reason was stored");
            Some(format!("{}: {why}", status.word()))
        }
    }
}

/// The unit for the goodputs of cells.
fn goodput_unit(cells: &[&CellAnalysis]) -> Unit {
    let figures = cells.iter().flat_map(|cell| &cell.arms).filter_map(|arm| arm.figures.as_ref());
    Unit::of(rates::BITS, figures.filter_map(|f| f.goodput_bits_per_s).map(|rate| rate.value))
}

/// Goodput in the unit of its column.
fn goodput(arm: &ArmAnalysis, unit: Unit) -> Entry {
    let rate = arm.figures.as_ref().and_then(|f| f.goodput_bits_per_s);
    number::optional(rate.map(|rate| rate.value / unit.size)).into()
}

/// Its interval, where it is compared with nothing.
fn goodput_interval(arm: &ArmAnalysis, unit: Unit) -> Entry {
    let interval = arm.figures.as_ref().and_then(|f| f.goodput_bits_per_s?.interval);
    rate_interval(interval, unit).into()
}

/// `[14.0, 14.5]`, in the unit of the column.
fn rate_interval(interval: Option<Interval>, unit: Unit) -> String {
    let ends = |interval| number::ends(interval, |end| three_digits(end / unit.size));
    interval.map_or_else(|| NONE.to_owned(), ends)
}

/// An arm's cell of a column, of those that need to know nothing but the arm.
fn entry(detail: Detail, arm: &ArmAnalysis, quick: bool) -> Entry {
    let figures = arm.figures.as_ref();
    match detail {
        Detail::Size | Detail::Arm | Detail::Goodput | Detail::Interval => Entry::default(),
        Detail::Time => number::optional(figures.map(|f| f.ns_per_message.value)).into(),
        Detail::Change => change(arm, quick),
        Detail::Ends => ends(arm, quick),
        Detail::Trials => {
            let n = figures.map(|f| f.ns_per_message.n);
            n.map_or_else(|| NONE.to_owned(), |n| n.to_string()).into()
        }
        Detail::Copies => {
            format!("{}/{}", copies(arm.copies_sender), copies(arm.copies_end_to_end)).into()
        }
        Detail::Cpu => number::optional(cpu(arm)).into(),
    }
}

/// `+16%`, with `=` where it is a tie and `?` where it is open.
fn change(arm: &ArmAnalysis, quick: bool) -> Entry {
    if arm.status != Status::Ok {
        return remarks::status(arm.status);
    }
    let Some(contrast) = &arm.contrast else {
        let is_control = arm.arm.role == Role::Control;
        return Entry::toned(if is_control { "control" } else { "" }, Tone::Faint);
    };
    match contrast.verdict {
        Verdict::Invalid | Verdict::Unranked => {
            remarks::verdict(&contrast.verdict.word().to_lowercase(), contrast.verdict)
        }
        _ => {
            let (factor, mark) = compared(contrast, Better::More, quick);
            format!("{} {mark}", iolens_document::change(factor.typical)).trim_end().into()
        }
    }
}

/// `−11 to −6%`.
fn ends(arm: &ArmAnalysis, quick: bool) -> Entry {
    let ranked = arm.contrast.as_ref().filter(|c| c.verdict != Verdict::Invalid);
    let Some(contrast) = ranked.filter(|_| arm.status == Status::Ok) else {
        return Entry::default();
    };
    let (factor, _) = compared(contrast, Better::More, quick);
    match factor.interval {
        None => number::UNUSABLE.into(),
        Some((low, high)) => {
            let low = iolens_document::change(low);
            format!("{} to {}", low.trim_end_matches('%'), iolens_document::change(high)).into()
        }
    }
}

/// CPU time per byte of both ends; of the sender alone where there is no
/// other end.
fn cpu(arm: &ArmAnalysis) -> Option<f64> {
    let figures = arm.figures.as_ref()?;
    let tx = figures.tx_cpu_ns_per_byte?.value;
    match figures.goodput_bits_per_s {
        Some(_) => Some(tx + figures.rx_cpu_ns_per_byte?.value),
        None => Some(tx),
    }
}

/// Whether the pointwise intervals of two contrasts meet; null without both.
pub(crate) fn overlap(a: &Contrast, b: &Contrast) -> Option<bool> {
    let (a, b) = a.pointwise.zip(b.pointwise)?;
    Some(a.low <= b.high && b.low <= a.high)
}

/// A value with its interval, scaled: `39.5 [39.1, 39.9]`.
pub(crate) fn interval_text(estimate: Option<Estimate>, scale: f64) -> String {
    match estimate {
        Some(Estimate { value, interval: Some(interval), .. }) => format!(
            "{} {}",
            three_digits(value / scale),
            number::ends(interval, |end| three_digits(end / scale))
        ),
        Some(estimate) => three_digits(estimate.value / scale),
        None => NONE.to_owned(),
    }
}
