//! The answer of a run of calls, for a terminal.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use super::{Style, push_sentence};
use crate::answers::{self, Kind};
use crate::calls;
use crate::table::Table;

/// The sentences, and the calls of the first cell by cost.
pub(super) fn run(run: &Run, analysis: &Analysis, style: &Style) -> String {
    let first = calls::filled(analysis).into_iter().take(1);
    let tables = first.map(|cell| calls::by_cost(run, cell, false)).collect();
    around(run, analysis, style, tables)
}

/// The same with every cell.
pub(super) fn whole(run: &Run, analysis: &Analysis, style: &Style) -> String {
    let cells = analysis.cells.iter().map(|cell| calls::by_cost(run, cell, false));
    let mut tables: Vec<Table> = cells.collect();
    tables.extend(calls::threads(run, analysis));
    tables.extend(calls::in_a_row(run, analysis));
    tables.extend(calls::missing(analysis));
    around(run, analysis, style, tables)
}

fn around(run: &Run, analysis: &Analysis, style: &Style, tables: Vec<Table>) -> String {
    let mut out = String::new();
    let all = answers::sentences(run, analysis);
    let first = |kind: Kind| matches!(kind, Kind::Alarm | Kind::Headline | Kind::Answer);
    for sentence in all.iter().filter(|sentence| first(sentence.kind)) {
        push_sentence(&mut out, sentence, style);
    }
    for table in &tables {
        out.push('\n');
        out.push_str(&super::heading(&table.caption, style));
        out.push('\n');
        out.push_str(&table.text(style.columns()));
    }
    out.push('\n');
    for sentence in all.iter().filter(|sentence| !first(sentence.kind)) {
        push_sentence(&mut out, sentence, style);
    }
    out
}
