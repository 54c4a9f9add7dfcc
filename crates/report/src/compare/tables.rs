//! Tables of a comparison, contents only.

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_stats::analysis::{Quantity, Verdict};
use iolens_stats::compare::{ArmChange, CellChange, Change, Comparison, Input, Own};

use super::{Compared, badge, by_quantity, label, quantities};
use crate::number::{self, NONE};
use crate::results;
use crate::table::{Column, Entry, Table, Tone};
use crate::words;

/// Longer values are cut: the whole stands in the JSON.
const VALUE_MAX: usize = 36;

/// What differs besides the numbers.
pub(super) fn inputs(compared: &Compared<'_>) -> Table {
    let columns = vec![Column::left("input", ""), Column::left("A", ""), Column::left("B", "")];
    let mut table = Table::new("", columns);
    let mut last = None;
    for input in &compared.comparison.inputs {
        let Input { group, name, a, b } = input;
        let entries =
            vec![Entry::from(format!("{group}: {name}")), value(a).into(), value(b).into()];
        let is_new = last.replace(group) != Some(group);
        if is_new { table.push_group(entries) } else { table.push(entries) }
    }
    table
}

fn value(value: &Option<String>) -> String {
    let Some(value) = value else { return "not recorded".to_owned() };
    match value.char_indices().nth(VALUE_MAX) {
        Some((at, _)) => format!("{}…", &value[..at]),
        None => value.clone(),
    }
}

/// A column of a table of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Size,
    Arm,
    RatioA,
    RatioB,
    Change,
    Verdict,
    Trials,
    Own,
    OwnVerdict,
}

impl Detail {
    const ALL: [Detail; 9] = [
        Detail::Size,
        Detail::Arm,
        Detail::RatioA,
        Detail::RatioB,
        Detail::Change,
        Detail::Verdict,
        Detail::Trials,
        Detail::Own,
        Detail::OwnVerdict,
    ];

    /// What a narrow terminal has no room for, first to go first.
    const DROPPED: [&[Detail]; 2] = [&[Detail::Trials], &[Detail::RatioA, Detail::RatioB]];

    fn column(self, comparison: &Comparison) -> Column {
        match self {
            Detail::Size => Column::right("size", ""),
            Detail::Arm => Column::left("method", ""),
            Detail::RatioA => Column::decimal("A", "ratio"),
            Detail::RatioB => Column::decimal("B", "ratio"),
            Detail::Change => Column::left("B / A", "[simultaneous]"),
            Detail::Verdict => Column::left("verdict", ""),
            Detail::Trials => Column::right("n", "A, B"),
            Detail::Own => Column::left("by itself", badge(comparison)),
            Detail::OwnVerdict => Column::left("verdict", ""),
        }
    }

    fn entry(self, arm: &ArmChange) -> Entry {
        let change = arm.change.as_ref();
        let ratio = |ratio: Option<f64>| ratio.map_or_else(|| NONE.to_owned(), number::ratio);
        match self {
            Detail::Size | Detail::Arm => Entry::default(),
            Detail::RatioA | Detail::RatioB if change.is_none() => Entry::default(),
            Detail::RatioA => ratio(arm.ratio_a).into(),
            Detail::RatioB => ratio(arm.ratio_b).into(),
            Detail::Change => match (change, arm.arm.role) {
                (Some(change), _) => interval(change).into(),
                (None, Role::Baseline) => Entry::toned("baseline", Tone::Faint),
                (None, _) => Entry::toned("control", Tone::Faint),
            },
            Detail::Verdict => verdict(change),
            Detail::Trials => change
                .map_or_else(String::new, |c| format!("{}, {}", c.trials_a, c.trials_b))
                .into(),
            Detail::Own => own(arm.own.as_ref()).into(),
            Detail::OwnVerdict => verdict(arm.own.as_ref().and_then(|own| own.judged.as_ref())),
        }
    }
}

fn verdict(change: Option<&Change>) -> Entry {
    change.map_or_else(Entry::default, |c| crate::remarks::verdict(c.verdict.word(), c.verdict))
}

/// `0.83 [0.81, 0.85]`, the simultaneous interval.
fn interval(change: &Change) -> String {
    let Some(ratio) = change.ratio else { return NONE.to_owned() };
    match change.simultaneous {
        Some(interval) => format!("{} {}", number::ratio(ratio), number::bracket(interval)),
        None => number::ratio(ratio),
    }
}

/// What an arm takes by itself; with its interval where that was asked for.
fn own(own: Option<&Own>) -> String {
    match own {
        Some(Own { judged: Some(change), .. }) if change.ratio.is_some() => interval(change),
        Some(own) => number::ratio(own.ratio),
        None => NONE.to_owned(),
    }
}

/// Which arms a table shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// All of them.
    All,
    /// Those that are compared and not EQUIVALENT.
    Changed,
}

impl Rows {
    fn has(self, arm: &ArmChange) -> bool {
        self == Rows::All || arm.judged().any(|change| change.verdict != Verdict::Equivalent)
    }
}

/// One table for each curve and quantity, as wide as `width` allows.
pub(super) fn changes(compared: &Compared<'_>, width: usize) -> Vec<Table> {
    tables(compared, width, Rows::All)
}

/// The same with some of the rows, and without tables that have none.
pub(super) fn tables(compared: &Compared<'_>, width: usize, rows: Rows) -> Vec<Table> {
    let comparison = compared.comparison;
    let quantities = quantities(comparison);
    let mut tables = Vec::new();
    for (curve, cells) in curves(&comparison.cells) {
        for &quantity in &quantities {
            let mut table = fitting(compared, &cells, quantity, width, rows);
            if table.rows.is_empty() {
                continue;
            }
            table.caption = caption(compared, &curve);
            if quantities.len() > 1 {
                let unit = comparison.study.unit();
                table.caption = format!("{}: {} per {unit}", table.caption, quantity.word());
            }
            tables.push(table);
        }
    }
    tables
}

fn caption(compared: &Compared<'_>, curve: &Cell) -> String {
    match curve.study().has_sizes() {
        true => results::heading(&compared.a.plan, curve),
        false => format!("{}, {}", curve.study(), words::subject(compared.a, curve)),
    }
}

/// Cells that differ in their size alone, in their order.
fn curves(cells: &[CellChange]) -> Vec<(Cell, Vec<&CellChange>)> {
    let mut curves: Vec<(Cell, Vec<&CellChange>)> = Vec::new();
    for cell in cells {
        let curve = cell.cell.curve();
        match curves.iter_mut().find(|(known, _)| *known == curve) {
            Some((_, cells)) => cells.push(cell),
            None => curves.push((curve, vec![cell])),
        }
    }
    curves
}

fn fitting(
    compared: &Compared<'_>,
    cells: &[&CellChange],
    quantity: Quantity,
    width: usize,
    rows: Rows,
) -> Table {
    let comparison = compared.comparison;
    let is_judged = |cell: &&CellChange| {
        cell.arms.iter().any(|arm| arm.own.as_ref().is_some_and(|own| own.judged.is_some()))
    };
    let (has_words, has_sizes) = (!comparison.indicative, comparison.study.has_sizes());
    let judged = cells.iter().any(is_judged);
    let mut details: Vec<Detail> = Detail::ALL.to_vec();
    details.retain(|detail| match detail {
        Detail::Size => has_sizes,
        Detail::Verdict => has_words,
        Detail::OwnVerdict => has_words && judged,
        _ => true,
    });
    let mut table = fill(comparison, &details, (cells, quantity, rows));
    for dropped in Detail::DROPPED {
        if table.width() <= width {
            break;
        }
        details.retain(|detail| !dropped.contains(detail));
        table = fill(comparison, &details, (cells, quantity, rows));
    }
    table
}

fn fill(
    comparison: &Comparison,
    details: &[Detail],
    (cells, quantity, rows): (&[&CellChange], Quantity, Rows),
) -> Table {
    let columns = details.iter().map(|detail| detail.column(comparison)).collect();
    let mut table = Table::new("", columns);
    for cell in cells {
        let arms = by_quantity(cell, quantity).filter(|arm| rows.has(arm));
        for (i, arm) in arms.enumerate() {
            let note = remark(arm).map(|remark| table.note(&remark));
            let entry = |&detail: &Detail| match detail {
                Detail::Size if i == 0 => cell.cell.size.to_string().into(),
                Detail::Arm => {
                    let tone = crate::figure::style::tone(&arm.arm.primitive);
                    Entry { note, ..Entry::toned(label(arm), tone) }
                }
                other => other.entry(arm),
            };
            let entries = details.iter().map(entry).collect();
            if i == 0 { table.push_group(entries) } else { table.push(entries) }
        }
    }
    table
}

/// Why a row has no verdict that says anything.
fn remark(arm: &ArmChange) -> Option<String> {
    let change = arm.change.as_ref().filter(|change| !change.verdict.is_ranked())?;
    Some(format!("{}: {}", change.verdict.word(), crate::remarks::reason(&change.reason)))
}

/// What one of the runs alone has, a line for each kind.
pub(super) fn missing(compared: &Compared<'_>) -> Vec<String> {
    let all = &compared.comparison.missing;
    let mut lines = Vec::new();
    for (is_b, letter) in [(false, "A"), (true, "B")] {
        let own = || all.iter().filter(move |missing| missing.is_b == is_b);
        let subject = |missing: &iolens_stats::compare::Missing| {
            Some(words::subject(compared.owner(missing), missing.cell.as_ref()?))
        };
        let cells: Vec<String> = own().filter_map(subject).collect();
        let arms: Vec<String> = own().filter_map(|missing| missing.arm.clone()).collect();
        for (what, names) in [("settings", cells), ("methods", arms)] {
            if !names.is_empty() {
                lines.push(format!("{what} that only {letter} has: {}", names.join("; ")));
            }
        }
    }
    lines
}
