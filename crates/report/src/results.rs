//! The tables of a run, contents only; drawn by [`iolens_document::table`]. Here: what
//! each arm cost in each cell. Its parts: what to choose, how often each byte is
//! copied, everything about one cell, why to believe it.

use iolens_document::table::{Column, Entry, Filled, Table, Tone, decimal, left, right};
use iolens_model::arm::Role;
use iolens_model::outcome::Status;
use iolens_model::plan::Plan;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{ArmAnalysis, CellAnalysis, Contrast, Estimate, Figures, Verdict};
use iolens_stats::remark::{Remark, RemarkKind};

use crate::arms;
use crate::figure::style::toned;
use crate::number::{self, InWords, Unit, copies};
use crate::remarks;
use crate::screen::table::{Better, compared};

pub(crate) mod detail;
pub(crate) mod families;
pub(crate) mod ledger;
pub(crate) mod validity;

/// What stands in a row, each with its column.
pub(crate) type Row = Vec<Filled>;

/// A table of rows in groups, each of which names itself in its first row where there is a
/// column for that. Footnotes stand at the first of the other columns.
pub(crate) fn filled<R>(
    head: Option<Column>,
    groups: &[(String, Vec<R>)],
    is_apart: bool,
    note: impl Fn(&R) -> Option<String>,
    row: impl Fn(&R) -> Row,
) -> Table {
    let mut table = Table::default();
    for (name, rows) in groups {
        for (nth, one) in rows.iter().enumerate() {
            let mut row = row(one);
            row[0].1.note = note(one).map(|said| table.note(&said));
            let name = if nth == 0 { name.as_str() } else { "" };
            let head = head.iter().map(|head| (head.clone(), Entry::from(name)));
            table.fill(nth == 0 && is_apart, head.chain(row).collect());
        }
    }
    table
}

/// An arm in a cell: a row of tables.
pub(crate) type ArmRow<'a> = (&'a CellAnalysis, &'a ArmAnalysis);

/// The arms of cells by size. A hidden copy of what is compared with nothing is beside nothing.
pub(crate) fn by_size<'a>(
    cells: &[&'a CellAnalysis],
    is_alone: bool,
) -> Vec<(String, Vec<ArmRow<'a>>)> {
    let is_shown = |arm: &&ArmAnalysis| !(is_alone && arm.arm.role == Role::SelfCheck);
    let rows =
        |cell: &'a CellAnalysis| cell.arms.iter().filter(is_shown).map(move |arm| (cell, arm));
    cells.iter().map(|cell| (cell.cell.size.to_string(), rows(cell).collect())).collect()
}

/// What there is to say of an arm.
fn main(arm: &ArmAnalysis, unit: Unit, quick: bool) -> Row {
    let copied = [arm.copies_sender, arm.copies_end_to_end].map(copies).join("/");
    vec![
        left("method", "", name(arm)),
        decimal("throughput", unit.name, goodput(arm, unit)),
        left("", "[95%]", goodput_interval(arm, unit)),
        decimal("per message", "ns", number::optional(arm.time().map(|e| e.value))),
        right("speed", "", change(arm, quick)),
        left("95% interval", "", ends(arm, quick)),
        decimal("CPU, both", "ns/B", number::optional(cpu(arm))),
        left("copies", "", copied),
        right("n", "", trials(arm)),
    ]
}

/// A figure by its name, its unit and where it is read.
pub(crate) type Of = fn(&Figures) -> Option<Estimate>;

/// The figures that any arm of a cell has, of one of them.
pub(crate) fn figures(cell: &CellAnalysis, arm: &ArmAnalysis, all: &[(&str, &str, Of)]) -> Row {
    let read = |arm: &ArmAnalysis, of: Of| arm.figure(of).map(|e| e.value);
    let has = |of| cell.arms.iter().any(|arm| read(arm, of).is_some());
    let of_any = all.iter().filter(|(.., of)| has(*of));
    of_any.map(|(name, unit, of)| decimal(name, unit, number::optional(read(arm, *of)))).collect()
}

/// How many trials its numbers are of.
pub(crate) fn trials(arm: &ArmAnalysis) -> Entry {
    arm.time().or_dash(|time| time.n.to_string()).into()
}

/// The table of one curve, as wide as `width` allows.
pub(crate) fn results(plan: &Plan, cells: &[&CellAnalysis], width: usize) -> Table {
    let is_alone = arms::is_alone(cells.iter().copied());
    // What is compared with nothing has an interval of its own instead of a change.
    let has = |column: &Column| match column.name.as_str() {
        "" => is_alone,
        "speed" | "95% interval" => !is_alone,
        _ => true,
    };
    let unit = goodput_unit(cells);
    let size = Some(Column::right("size", ""));
    let rows = by_size(cells, is_alone);
    let note = |(cell, arm): &ArmRow<'_>| beside(cell, arm);
    let table = filled(size, &rows, !is_alone, note, |(_, arm)| {
        let mut row = main(arm, unit, plan.quick);
        row.retain(|(column, _)| has(column));
        row
    });
    table.fitting(width, &[&["n"], &["copies"], &["CPU, both"], &["per message"]])
}

/// The arm's name in its own cell's rows, where the baseline stands above, in its colour.
pub(crate) fn name(arm: &ArmAnalysis) -> Entry {
    toned(arms::name(arm), &arm.arm.primitive)
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
    let arms = arms::of_cells(cells);
    let rates = arms.filter_map(|arm| arm.figure(|f| f.goodput_bits_per_s));
    Unit::of(number::BITS, rates.map(|rate| rate.value))
}

/// Goodput in the unit of its column.
fn goodput(arm: &ArmAnalysis, unit: Unit) -> Entry {
    let rate = arm.figure(|f| f.goodput_bits_per_s);
    number::optional(rate.map(|rate| rate.value / unit.size)).into()
}

/// Its interval, where it is compared with nothing: `[14.0, 14.5]`.
fn goodput_interval(arm: &ArmAnalysis, unit: Unit) -> Entry {
    let interval = arm.figure(|f| f.goodput_bits_per_s).and_then(|rate| rate.interval);
    let digits = |end| three_digits(end / unit.size);
    interval.or_dash(|interval| number::ends(interval, digits)).into()
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
    let tx = arm.figure(|f| f.tx_cpu_ns_per_byte)?.value;
    match arm.figure(|f| f.goodput_bits_per_s) {
        Some(_) => Some(tx + arm.figure(|f| f.rx_cpu_ns_per_byte)?.value),
        None => Some(tx),
    }
}
