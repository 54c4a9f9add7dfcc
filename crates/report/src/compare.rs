//! Two runs against each other: what a terminal, a pull request and a program read of a
//! [`Comparison`]. What differs between the runs besides their numbers always comes first.

use iolens_document::{Node, Section, terminal};
use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::run::RunHeader;
use iolens_model::secret;
use iolens_stats::analysis::{Quantity, Verdict};
use iolens_stats::compare::{ArmChange, CellChange, Comparison, Missing};
use serde_json::{Value, json};

use crate::groups::distinct;
use crate::text::Style;
use crate::{json, words};

mod markdown;
mod screen;
mod tables;
#[cfg(test)]
mod tests;

pub use self::markdown::markdown;

/// What stands beside every number of an arm by itself.
fn badge(comparison: &Comparison) -> &'static str {
    if comparison.interleaved { "interleaved" } else { "not interleaved" }
}

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
    fn subject(&self, cell: &Cell) -> String {
        words::subject(self.a, cell)
    }

    /// The run that has what the other has not.
    fn owner(&self, missing: &Missing) -> &'a RunHeader {
        if missing.is_b { self.b } else { self.a }
    }
}

/// Arms of a cell by one quantity.
fn by_quantity(cell: &CellChange, quantity: Quantity) -> impl Iterator<Item = &ArmChange> {
    cell.arms.iter().filter(move |arm| arm.quantity == quantity)
}

/// Quantities that any cell is compared by.
fn quantities(comparison: &Comparison) -> Vec<Quantity> {
    distinct(comparison.cells.iter().flat_map(|cell| &cell.arms).map(|arm| arm.quantity))
}

/// The arm's name in a table, where the baseline stands above.
fn label(arm: &ArmChange) -> &str {
    match arm.arm.role {
        Role::SelfCheck => "self-check",
        _ => &arm.arm.label,
    }
}

/// One screen: what changed, what did not, how sure; and, where asked for, every number.
#[must_use]
pub fn text(compared: &Compared<'_>, is_verbose: bool, style: &Style) -> String {
    let mut out = terminal::draw(&screen::screen(compared), style);
    if is_verbose {
        out.push('\n');
        out.push_str(&terminal::sections(&sections(compared, style.columns()), style));
    }
    out
}

/// Every input that differs, and every number.
fn sections(compared: &Compared<'_>, width: usize) -> Vec<Section> {
    let mut all = Vec::new();
    let inputs = tables::inputs(compared);
    if !inputs.rows.is_empty() {
        all.push(Section::new("inputs", "Inputs that differ", vec![Node::Table(inputs)]));
    }
    let mut numbers = vec![Node::aside(reading(compared))];
    numbers.extend(tables::tables(compared, width, tables::Rows::All).into_iter().map(Node::Table));
    all.push(Section::new("numbers", "All numbers", numbers));
    all
}

/// How the tables are read.
fn reading(compared: &Compared<'_>) -> String {
    let comparison = compared.comparison;
    let itself = match comparison.interleaved {
        true => "whose trials took turns",
        false => "that took no turns: what the machine did between them is in it",
    };
    format!(
        "B / A: a method's ratio to {} in B over that in A, each from its run's own trials; above \
         1 it is faster (or cheaper) in B. 95% intervals for all {} changes together, the copies' \
         among them. By itself: the method alone, in runs {itself}.",
        comparison.baseline, comparison.contrasts
    )
}

/// JSON. `inputs` is what differs, `changes` one object for each
/// arm, cell and quantity: `ratio` is B over A of the ratio to the baseline, above 1 faster
/// (or cheaper) in B; `verdict` is null for the baseline, for controls and where a run was
/// `--quick` (`indicative`). `own` is what the arm takes by itself, in ns per message, and
/// `interleaved` says whether the trials of both runs were measured in turn. `slower` counts
/// what makes the exit code 1.
#[must_use]
pub fn json(compared: &Compared<'_>) -> String {
    let comparison = compared.comparison;
    let run = |header: &RunHeader| {
        json!({
            "id": header.id,
            "name": header.name,
            "started_unix_ns": header.started_unix_ns,
            "build": header.build,
            "host": header.host_label(),
            "command": secret::redacted(&header.command),
        })
    };
    let changes: Vec<Value> = comparison
        .cells
        .iter()
        .flat_map(|cell| cell.arms.iter().map(move |arm| change(comparison, cell, arm)))
        .collect();
    let moved = comparison.cells.iter().filter(|cell| !cell.baseline_moved.is_empty());
    let moved: Vec<Value> =
        moved.map(|cell| json!({"cell": cell.cell, "moved": cell.baseline_moved})).collect();
    json::print(&json!({
        "schema": json::SCHEMA,
        "a": run(compared.a),
        "b": run(compared.b),
        "inputs": comparison.inputs,
        "study": comparison.study,
        "baseline": comparison.baseline,
        "delta": comparison.delta,
        "indicative": comparison.indicative,
        "contrasts": comparison.contrasts,
        "slower": comparison.slower(),
        "usable": comparison.is_usable(),
        "changes": changes,
        "baseline_moved": moved,
        "missing": comparison.missing,
        "self_check": comparison.self_check,
        "warnings": comparison.warnings,
    }))
}

fn change(comparison: &Comparison, cell: &CellChange, arm: &ArmChange) -> Value {
    let word = |verdict: Verdict| (!comparison.indicative).then_some(verdict);
    let of = arm.change.as_ref();
    json!({
        "cell": cell.cell,
        "arm": arm.arm.label,
        "primitive": arm.arm.primitive,
        "role": arm.arm.role,
        "quantity": arm.quantity,
        "ratio_a": arm.ratio_a,
        "ratio_b": arm.ratio_b,
        "ratio": of.map(|change| change.ratio),
        "trials_a": of.map(|change| change.trials_a),
        "trials_b": of.map(|change| change.trials_b),
        "pointwise": of.map(|change| change.pointwise),
        "simultaneous": of.map(|change| change.simultaneous),
        "verdict": of.and_then(|change| word(change.verdict)),
        "reason": of.map(|change| &change.reason),
        "trials_needed": of.map(|change| change.trials_needed),
        "own": arm.own.as_ref().map(|own| json!({
            "interleaved": comparison.interleaved,
            "ns_a": own.ns_a,
            "ns_b": own.ns_b,
            "ratio": own.ratio,
            "pointwise": own.judged.as_ref().map(|change| change.pointwise),
            "simultaneous": own.judged.as_ref().map(|change| change.simultaneous),
            "verdict": own.judged.as_ref().and_then(|change| word(change.verdict)),
            "reason": own.judged.as_ref().map(|change| &change.reason),
        })),
    })
}
