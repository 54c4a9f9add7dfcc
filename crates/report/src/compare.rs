//! Two runs against each other: what a terminal, a pull request and a program read of a
//! [`Comparison`]. What differs between the runs besides their numbers always comes first.

use iolens_document::plain::{escaped, folded};
use iolens_document::{Answer, Joined, Label, Node, Screen, Section, Text, terminal};
use iolens_model::command_line;
use iolens_model::run::RunHeader;
use iolens_stats::compare::{ArmChange, CellChange, Change, Comparison};
use serde_json::{Value, json};

use crate::groups::{fields, named, object};
use crate::json;
use crate::number::InWords;
use iolens_document::Style;

pub(crate) mod screen;
pub(crate) mod tables;
#[cfg(test)]
mod tests;

pub use self::tables::Compared;

/// One screen: what changed, what did not, how sure; and, where asked for, every number.
pub fn text(compared: &Compared<'_>, is_verbose: bool, style: &Style) -> String {
    let mut out = terminal::draw(&screen::screen(compared), style);
    if is_verbose {
        out.push('\n');
        out.push_str(&terminal::sections(&sections(compared, style.columns()), style));
    }
    out
}

/// A comment for a pull request, in the Markdown of GitHub: what changed first, the rest folded.
pub fn markdown(compared: &Compared<'_>) -> String {
    let screen = screen::screen(compared);
    let mut out = markdown_head(&screen);
    out.push_str(&markdown_answers(&screen));
    for table in tables::tables(compared, usize::MAX, tables::Rows::Changed) {
        let caption = escaped(&table.caption);
        out.push_str(&format!("\n{caption}, not shown to be the same:\n\n{}", table.markdown()));
    }
    let mut all = String::new();
    for table in tables::tables(compared, usize::MAX, tables::Rows::All) {
        all.push_str(&format!("{}\n\n{}\n", escaped(&table.caption), table.markdown()));
    }
    out.push_str(&folded("Every method in every setting", &all));
    let inputs = tables::inputs(&compared.comparison.inputs);
    let inputs = inputs.or_empty(|inputs| inputs.markdown());
    out.push_str(&folded("Inputs that differ", &inputs));
    out.push_str(&folded("How to read it", &escaped(&reading(compared))));
    out
}

/// Parts of a line of a screen, in Markdown.
fn markdown_line(parts: &[Text]) -> String {
    let parts = parts.iter().map(|part| escaped(&part.words()));
    parts.joined(" · ")
}

/// What stands above a screen, in Markdown.
pub(crate) fn markdown_head(screen: &Screen) -> String {
    let [header, effort] = [&screen.header, &screen.effort].map(|parts| markdown_line(parts));
    let alarm = screen.alarm.as_ref();
    let alarm = alarm.or_empty(|alarm| format!("**{}**\n\n", escaped(&alarm.words())));
    format!("**{header}**\n\n{effort}\n\n{alarm}")
}

/// The answers of a screen but for what to type next, in Markdown.
pub(crate) fn markdown_answers(screen: &Screen) -> String {
    let told = screen.answers.iter().filter(|answer| answer.label != Label::Next);
    let line = |answer: &Answer| {
        format!("- **{}**: {}\n", answer.label.word(), markdown_line(&answer.said))
    };
    told.map(line).collect()
}

/// Every input that differs, and every number.
fn sections(compared: &Compared<'_>, width: usize) -> Vec<Section> {
    let inputs =
        tables::inputs(&compared.comparison.inputs).map(|inputs| vec![Node::Table(inputs)]);
    let inputs = inputs.map(|nodes| Section::new("inputs", "Inputs that differ", nodes));
    let mut numbers = vec![Node::aside(reading(compared))];
    numbers.extend(tables::tables(compared, width, tables::Rows::All).into_iter().map(Node::Table));
    inputs.into_iter().chain([Section::new("numbers", "All numbers", numbers)]).collect()
}

/// How the tables are read.
fn reading(compared: &Compared<'_>) -> String {
    let comparison = compared.comparison;
    let itself = match comparison.interleaved {
        true => "whose trials took turns",
        false => "that did not take turns, so it includes how the machine changed in between",
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
/// (or cheaper) in B; `verdict` is `None` for the baseline, for controls and where a run was
/// `--quick` (`indicative`). `own` is what the arm takes by itself, in ns per message, and
/// `interleaved` says whether the trials of both runs were measured in turn. `slower` counts
/// what makes the exit code 1.
pub fn json(compared: &Compared<'_>) -> String {
    let comparison = compared.comparison;
    let run = |header: &RunHeader| {
        let more = named! {
            host: header.host_label(),
            command: command_line::redacted(&header.command),
        };
        object([fields!(Some(header); id name started_unix_ns build), more].concat())
    };
    let changes: Vec<Value> = comparison
        .cells
        .iter()
        .flat_map(|cell| cell.arms.iter().map(move |arm| change(comparison, cell, arm)))
        .collect();
    let moved = comparison.cells.iter().filter(|cell| !cell.baseline_moved.is_empty());
    let moved: Vec<Value> =
        moved.map(|cell| json!({"cell": cell.cell, "moved": cell.baseline_moved})).collect();
    let own = fields!(Some(comparison);
        inputs study baseline delta indicative contrasts missing self_check warnings
    );
    let more = named! {
        schema: json::SCHEMA,
        a: run(compared.a),
        b: run(compared.b),
        slower: comparison.slower(),
        usable: comparison.is_usable(),
        changes: changes,
        baseline_moved: moved,
    };
    json::print(&object([own, more].concat()))
}

fn change(comparison: &Comparison, cell: &CellChange, arm: &ArmChange) -> Value {
    // A change as it was judged; without a word where runs were too short for one.
    let judged = |change: Option<&Change>| {
        let verdict = change.map(|change| change.verdict).filter(|_| !comparison.indicative);
        let judgement = fields!(change; pointwise simultaneous reason);
        [judgement, named! { verdict: verdict }].concat()
    };
    let of = arm.change.as_ref();
    let own = arm.own.as_ref().map(|own| {
        let values = fields!(Some(own); ns_a ns_b ratio);
        let interleaved = named! { interleaved: comparison.interleaved };
        object([values, interleaved, judged(own.judged.as_ref())].concat())
    });
    object(
        [
            named! { cell: cell.cell, arm: arm.arm.label },
            fields!(Some(&arm.arm); primitive role),
            fields!(Some(arm); quantity ratio_a ratio_b),
            fields!(of; ratio trials_a trials_b trials_needed),
            judged(of),
            named! { own: own },
        ]
        .concat(),
    )
}
