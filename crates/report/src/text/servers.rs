//! The answer of a run of servers, for a terminal.

use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, CellAnalysis};

use super::{BOLD, DIM, Style, painted, push_answers, push_sentence};
use crate::answers;
use crate::servers::{self, Kinds};
use crate::wrap;

/// Sentences, then one table per cell.
pub(super) fn whole(run: &Run, analysis: &Analysis, style: &Style) -> String {
    let mut out = String::new();
    let sentences = answers::sentences(run, analysis);
    let after = push_answers(&mut out, &sentences, style);
    let kinds = Kinds::of(run, analysis);
    for cell in &analysis.cells {
        out.push('\n');
        push_table(&mut out, run, &kinds, cell, style);
    }
    out.push('\n');
    let verdicts = match run.header.plan.quick {
        true => String::new(),
        false => format!(
            " Intervals are pointwise; verdicts use simultaneous ones over all {} contrasts.",
            analysis.contrasts
        ),
    };
    let reading = format!("{}{verdicts}", servers::reading(run));
    out.push_str(&style.paint(DIM, &wrap::hanging(&reading, style.columns(), 0)));
    out.push('\n');
    for sentence in after {
        push_sentence(&mut out, sentence, style);
    }
    out
}

/// The table of one cell with its heading, and what was offered.
pub(super) fn push_table(
    out: &mut String,
    run: &Run,
    kinds: &Kinds<'_>,
    cell: &CellAnalysis,
    style: &Style,
) {
    let table = servers::by_cost(run, kinds, cell, style.columns());
    out.push_str(&style.paint(BOLD, &wrap::hanging(&table.caption, style.columns(), 2)));
    out.push('\n');
    for line in servers::offered(kinds, cell) {
        out.push_str(&wrap::hanging(&line, style.columns(), 2));
        out.push('\n');
    }
    out.push_str(&painted(&table.text(style.columns()), style));
}
