//! Two runs against each other: what a terminal, a pull request and a program read of a
//! [`Comparison`]. What differs between the runs besides their numbers always comes first.

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::run::RunHeader;
use iolens_model::secret;
use iolens_stats::analysis::{Quantity, Verdict};
use iolens_stats::compare::{ArmChange, CellChange, Comparison, Missing};
use serde_json::{Value, json};

use crate::answers::{Kind, Sentence};
use crate::text::{BOLD, Style};
use crate::{json, text, words, wrap};

mod markdown;
mod sentences;
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

    /// What the two runs are, one line.
    fn title(&self) -> String {
        let one = |letter: &str, header: &RunHeader| {
            let name = header.name.as_deref().map(|name| format!(" \"{name}\""));
            let started = iolens_model::moment::utc(header.started_unix_ns);
            let host = header.origin.as_ref().map(|origin| format!(" on {}", origin.host));
            let (name, host) = (name.unwrap_or_default(), host.unwrap_or_default());
            format!("{letter} = run {}{name}{host} of {started}", header.id)
        };
        format!("{}, {}", one("A", self.a), one("B", self.b))
    }
}

/// Arms of a cell by one quantity.
fn by_quantity(cell: &CellChange, quantity: Quantity) -> impl Iterator<Item = &ArmChange> {
    cell.arms.iter().filter(move |arm| arm.quantity == quantity)
}

/// Quantities that any cell is compared by.
fn quantities(comparison: &Comparison) -> Vec<Quantity> {
    let mut all: Vec<Quantity> = Vec::new();
    for arm in comparison.cells.iter().flat_map(|cell| &cell.arms) {
        if !all.contains(&arm.quantity) {
            all.push(arm.quantity);
        }
    }
    all
}

/// The arm's name in a table, where the baseline stands above.
fn label(arm: &ArmChange) -> &str {
    match arm.arm.role {
        Role::SelfCheck => "A/A copy",
        _ => &arm.arm.label,
    }
}

/// Plain text: inputs that differ, the answer in sentences, a table for each curve.
#[must_use]
pub fn text(compared: &Compared<'_>, style: &Style) -> String {
    let width = style.columns();
    let mut out = style.paint(BOLD, &wrap::hanging(&compared.title(), width, 2));
    out.push('\n');
    let inputs = tables::inputs(compared);
    if inputs.rows.is_empty() {
        out.push_str("No input differs that the runs have recorded.\n");
    } else {
        out.push('\n');
        out.push_str(&style.paint(BOLD, "Inputs that differ"));
        out.push('\n');
        out.push_str(&inputs.text(width));
    }
    out.push('\n');
    let sentences = sentences::all(compared);
    let after = text::push_answers(&mut out, &sentences, style);
    for table in tables::changes(compared, width) {
        out.push('\n');
        out.push_str(&text::heading(&table.caption, style));
        out.push('\n');
        out.push_str(&text::painted(&table, style));
    }
    let missing = tables::missing(compared);
    if !missing.is_empty() {
        out.push('\n');
        for line in &missing {
            out.push_str(&wrap::hanging(line, width, 2));
            out.push('\n');
        }
    }
    out.push('\n');
    for sentence in after {
        text::push_sentence(&mut out, sentence, style);
    }
    out
}

/// JSON. `inputs` is what differs, `sentences` the answer, `changes` one object for each
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
        "sentences": sentences::all(compared),
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
        "reason": of.map(|change| crate::remarks::reason(&change.reason)),
        "trials_needed": of.map(|change| change.trials_needed),
        "own": arm.own.as_ref().map(|own| json!({
            "interleaved": comparison.interleaved,
            "ns_a": own.ns_a,
            "ns_b": own.ns_b,
            "ratio": own.ratio,
            "pointwise": own.judged.as_ref().map(|change| change.pointwise),
            "simultaneous": own.judged.as_ref().map(|change| change.simultaneous),
            "verdict": own.judged.as_ref().and_then(|change| word(change.verdict)),
            "reason": own.judged.as_ref().map(|change| crate::remarks::reason(&change.reason)),
        })),
    })
}

/// A sentence of a comparison, which is no verdict where a run was a first look.
fn about(comparison: &Comparison, kind: Kind, claim: &str) -> Sentence {
    let indicative = comparison.indicative;
    let lead = if indicative { "Indicative: " } else { "" };
    Sentence { indicative, ..Sentence::plain(kind, format!("{lead}{claim}")) }
}
