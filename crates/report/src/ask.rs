//! The answer to a question about one message: a sentence and a table for people, an object
//! for programs. What it rests on is a run like any other.

use iolens_model::family::Condition;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Contrast};
use serde_json::{Value, json};

pub use crate::screen::asked::Source;
use crate::screen::asked::asked;
use crate::standing::{Candidate, Standing, standing};
use crate::{findings, json, records};
use iolens_document::Style;

/// A question with the run that answers it.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its analysis.
    pub analysis: &'a Analysis,
    /// The cell of it that was asked about.
    pub cell: &'a CellAnalysis,
    /// Where the run comes from.
    pub source: &'a Source,
}

impl Answer<'_> {
    /// The cell and its curve, for a message that is in one piece already if it has one field:
    /// what needs it so is no special case then.
    fn view(&self) -> (Analysis, CellAnalysis) {
        let cells = self.analysis.cells.iter().map(in_one_piece).collect();
        let analysis = Analysis { cells, ..self.analysis.clone() };
        (analysis.shown(), in_one_piece(self.cell).shown())
    }
}

fn in_one_piece(cell: &CellAnalysis) -> CellAnalysis {
    let fields = cell.cell.net().map_or(0, |net| net.fields);
    // Empty fields are left out.
    if u64::from(fields).min(cell.cell.size.0) != 1 {
        return cell.clone();
    }
    let needed = |condition: &Condition| *condition != Condition::Contiguous;
    let arm =
        |arm: &ArmAnalysis| ArmAnalysis { condition: arm.condition.filter(needed), ..arm.clone() };
    CellAnalysis { arms: cell.arms.iter().map(arm).collect(), ..cell.clone() }
}

/// The answer for a person.
pub fn text(answer: &Answer<'_>, style: &Style) -> String {
    let (analysis, cell) = answer.view();
    let screen = asked(answer.run, &analysis, &cell, answer.source);
    iolens_document::terminal::draw(&screen, style)
}

/// The answer for a program: who is cheapest by time and by CPU time, at the size that was
/// asked and at those next to it, with every figure of the arms as in the export of cells.
pub fn json(answer: &Answer<'_>) -> String {
    let (analysis, cell) = answer.view();
    let run = answer.run;
    let quick = run.header.plan.quick;
    let own = cell.cell.curve();
    let beside = analysis.cells.iter().filter(|other| other.cell.curve() == own);
    let beside: Vec<Value> = beside
        .filter(|other| other.cell != cell.cell)
        .map(|other| standings(other, analysis.delta, quick))
        .collect();
    let alone = Analysis { cells: vec![cell.clone()], ..analysis.clone() };
    let by_cpu: Vec<Value> = cell.arms.iter().map(|arm| by_cpu(run, arm)).collect();
    json::print(&json!({
        "schema": json::SCHEMA,
        "asked": cell.cell,
        "connections": cell.cell.threads,
        "run": run.header.id,
        "host": run.header.host_label(),
        "started_unix_ns": run.header.started_unix_ns,
        "stored": *answer.source != Source::Measured,
        "indicative": run.header.plan.quick,
        "baseline": run.header.plan.baseline,
        "delta": analysis.delta,
        "answer": standings(&cell, analysis.delta, quick),
        "beside": beside,
        "arms": records::cells::cells(run, &alone).map(records::Record::object).collect::<Vec<_>>(),
        "by_cpu": by_cpu,
        "self_check": analysis.self_check,
        "findings": findings::all(run, &alone),
    }))
}

/// Who is cheapest in a cell, by time and by CPU time.
fn standings(cell: &CellAnalysis, delta: f64, quick: bool) -> Value {
    json!({
        "message_bytes": cell.cell.size,
        "by_time": standing_of(&standing(cell, delta, quick)),
        "by_cpu": standing_of(&standing(&cell.by_cpu(), delta, quick)),
    })
}

fn standing_of(standing: &Standing<'_>) -> Value {
    let labels = |others: &[Candidate<'_>]| -> Vec<String> {
        others.iter().map(|candidate| candidate.label.to_owned()).collect()
    };
    let (word, others) = match standing {
        Standing::Cheapest { .. } => ("cheapest", Vec::new()),
        Standing::Tie { others, .. } => ("tie", labels(others)),
        Standing::Unseparated { others, .. } => ("not_separated", labels(others)),
        Standing::NoInterval(_) => ("no_interval", Vec::new()),
        Standing::Alone(_) => ("alone", Vec::new()),
        Standing::Nothing(why) => return json!({ "standing": "no_answer", "reason": why }),
    };
    json!({
        "standing": word,
        "best": standing.best().map(|best| best.label.to_owned()),
        "ratio": standing.best().and_then(|best| best.contrast).map(|contrast| contrast.ratio),
        "not_separated_from": others,
    })
}

/// CPU time of both ends of an arm per message, and its ratio.
fn by_cpu(run: &Run, arm: &ArmAnalysis) -> Value {
    let contrast = arm.cpu_contrast.as_ref();
    let bound = |of: fn(&Contrast) -> Option<f64>| contrast.and_then(of);
    let figures = arm.figures.as_ref();
    // As in an export, a quick run has no verdicts.
    let verdict = contrast.filter(|_| !run.header.plan.quick).map(|contrast| contrast.verdict);
    json!({
        "arm": arm.arm.label,
        "cpu_ns_per_message": figures.and_then(|figures| figures.cpu_ns_per_message),
        "cpu_ratio": contrast.map(|contrast| contrast.ratio),
        "cpu_ratio_low": bound(|contrast| Some(contrast.pointwise?.low)),
        "cpu_ratio_high": bound(|contrast| Some(contrast.pointwise?.high)),
        "cpu_verdict": verdict,
    })
}

#[cfg(test)]
mod tests;
