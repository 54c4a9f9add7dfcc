//! Tables of a comparison, contents only.

use iolens_document::table::{Column, Entry, Table, Tone, decimal, left, right};
use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::run::RunHeader;
use iolens_stats::analysis::{Quantity, Verdict};
use iolens_stats::compare::{ArmChange, CellChange, Change, Comparison, Input, Missing, Own};

use crate::figure::style::toned;
use crate::groups::{distinct, grouped};
use crate::number::{self, InWords, NONE};
use crate::results::{Row, families, filled};
use crate::words;

/// Two runs with what came of comparing them.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// The first run.
    pub a: &'a RunHeader,
    /// The second, which is held against the first.
    pub b: &'a RunHeader,
    /// The comparison.
    pub comparison: &'a Comparison,
}

impl<'a> Compared<'a> {
    /// What tells a cell of both runs from the others.
    pub(super) fn subject(&self, cell: &Cell) -> String {
        words::subject(self.a, cell)
    }

    /// The run that has what the other has not.
    pub(super) fn owner(&self, missing: &Missing) -> &'a RunHeader {
        if missing.is_b { self.b } else { self.a }
    }
}

/// Arms of a cell by one quantity.
pub(super) fn by_quantity(
    cell: &CellChange,
    quantity: Quantity,
) -> impl Iterator<Item = &ArmChange> {
    cell.arms.iter().filter(move |arm| arm.quantity == quantity)
}

/// Quantities that any cell is compared by.
pub(super) fn quantities(comparison: &Comparison) -> Vec<Quantity> {
    distinct(comparison.cells.iter().flat_map(|cell| &cell.arms).map(|arm| arm.quantity))
}

/// Longer values are cut: the whole stands in the JSON.
const VALUE_MAX: usize = 36;

/// What differs besides the numbers.
pub(crate) fn inputs(inputs: &[Input]) -> Option<Table> {
    let row = |input: &&Input| {
        let name = format!("{}: {}", input.group, input.name);
        vec![
            left("input", "", name),
            left("A", "", value(&input.a)),
            left("B", "", value(&input.b)),
        ]
    };
    let groups = inputs.chunk_by(|a, b| a.group == b.group);
    let groups: Vec<_> = groups.map(|all| (String::new(), all.iter().collect())).collect();
    filled(None, &groups, true, |_| None, row).with_rows()
}

fn value(value: &Option<String>) -> String {
    value.as_deref().map_or_else(|| "not recorded".to_owned(), |value| cut(value, VALUE_MAX))
}

/// A value as far as there is room.
pub(super) fn cut(value: &str, most: usize) -> String {
    match value.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &value[..at]),
        None => value.to_owned(),
    }
}

/// A change in all columns; verdicts are only for runs that were long enough.
fn row(comparison: &Comparison, arm: &ArmChange, judged: bool) -> Row {
    let change = arm.change.as_ref();
    let ratio = |ratio: Option<f64>| change.or_empty(|_| ratio.or_dash(number::ratio));
    let shown = match (change, arm.arm.role) {
        (Some(change), _) => interval(change).into(),
        (None, Role::Baseline) => Entry::toned("baseline", Tone::Faint),
        (None, _) => Entry::toned("control", Tone::Faint),
    };
    let n = change.or_empty(|c| format!("{}, {}", c.trials_a, c.trials_b));
    let label = match arm.arm.role {
        Role::SelfCheck => "self-check",
        _ => &arm.arm.label,
    };
    let turns = if comparison.interleaved { "interleaved" } else { "not interleaved" };
    let of_own = arm.own.as_ref().and_then(|own| own.judged.as_ref());
    let mut row = vec![
        left("method", "", toned(label, &arm.arm.primitive)),
        decimal("A", "ratio", ratio(arm.ratio_a)),
        decimal("B", "ratio", ratio(arm.ratio_b)),
        left("B / A", "[simultaneous]", shown),
        left("verdict", "", verdict(change)),
        right("n", "A, B", n),
        left("by itself", turns, own(arm.own.as_ref())),
    ];
    if judged {
        row.push(left("verdict", "", verdict(of_own)));
    }
    if comparison.indicative {
        row.retain(|(column, _)| column.name != "verdict");
    }
    row
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

/// One table for each curve and quantity with rows, as wide as `width` allows.
pub(super) fn tables(compared: &Compared<'_>, width: usize, rows: Rows) -> Vec<Table> {
    let comparison = compared.comparison;
    let quantities = quantities(comparison);
    let mut tables = Vec::new();
    let cells = comparison.cells.iter().map(|cell| (cell.cell.curve(), cell));
    for (curve, cells) in grouped(cells) {
        for &quantity in &quantities {
            let table = fitting(compared, &cells, quantity, width, rows).with_rows();
            let Some(mut table) = table else { continue };
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
        true => families::heading(&compared.a.plan, curve),
        false => format!("{}, {}", curve.study(), words::subject(compared.a, curve)),
    }
}

fn fitting(
    compared: &Compared<'_>,
    cells: &[&CellChange],
    quantity: Quantity,
    width: usize,
    rows: Rows,
) -> Table {
    let comparison = compared.comparison;
    let judged = cells.iter().flat_map(|cell| &cell.arms).filter_map(|arm| arm.own.as_ref());
    let judged = judged.into_iter().any(|own| own.judged.is_some());
    let arms = |cell: &&'_ CellChange| -> Vec<ArmChange> {
        by_quantity(cell, quantity).filter(|arm| rows.has(arm)).cloned().collect()
    };
    let groups: Vec<_> =
        cells.iter().map(|cell| (cell.cell.size.to_string(), arms(cell))).collect();
    let has_sizes = cells.iter().any(|cell| cell.cell.own_size().is_some());
    let size = has_sizes.then(|| Column::right("size", ""));
    let table = filled(size, &groups, true, remark, |arm| row(comparison, arm, judged));
    table.fitting(width, &[&["n"], &["A", "B"]])
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
