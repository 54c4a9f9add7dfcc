//! The answer of a run of servers, for a terminal.

use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, CellAnalysis};

use super::{DIM, Style, push_answers, push_sentence};
use crate::answers;
use crate::servers::{self, Kinds, searches};
use crate::table::Table;
use iolens_document::fold;

/// Sentences, then one table per cell.
pub(super) fn whole(run: &Run, analysis: &Analysis, style: &Style) -> String {
    let mut out = String::new();
    let sentences = answers::sentences(run, analysis);
    let after = push_answers(&mut out, &sentences, style);
    let kinds = Kinds::of(analysis);
    for cell in &analysis.cells {
        out.push('\n');
        push_table(&mut out, run, &kinds, cell, style);
    }
    for table in searches::tables(run, analysis) {
        out.push('\n');
        push_captioned(&mut out, &table, style);
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
    for reading in std::iter::once(reading).chain(searches::reading(run)) {
        out.push_str(&style.paint(DIM, &fold::hanging(&reading, style.columns(), 0)));
        out.push('\n');
    }
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
    push_caption(out, &table, style);
    for line in servers::offered(kinds, cell) {
        out.push_str(&fold::hanging(&line, style.columns(), 2));
        out.push('\n');
    }
    out.push_str(&iolens_document::terminal::table(&table, style));
}

fn push_caption(out: &mut String, table: &Table, style: &Style) {
    out.push_str(&super::heading(&table.caption, style));
    out.push('\n');
}

fn push_captioned(out: &mut String, table: &Table, style: &Style) {
    push_caption(out, table, style);
    out.push_str(&iolens_document::terminal::table(table, style));
}
