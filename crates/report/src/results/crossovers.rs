//! Where one arm overtakes another: a row for each pair and finding, with the
//! curves of which it is said, so that what holds for all of them stands once.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use crate::answers::crossing::{self, Brief};
use crate::table::{Column, Entry, Table};

/// Curves up to which each is named.
const NAMED: usize = 2;

/// The table of the pairs that the main questions are about, or of all.
///
/// More than a few curves are counted.
pub(crate) fn crossovers(run: &Run, analysis: &Analysis, all: bool) -> Table {
    let briefs = crossing::briefs(run, analysis, all);
    let columns = vec![
        Column::left("from", ""),
        Column::left("to", ""),
        Column::left("where the second is ahead", ""),
        Column::left("curves", ""),
    ];
    let of = super::curves(analysis).len();
    let several = |curves: &[String]| match curves.len() {
        n if n == of && n > 1 => "all".to_owned(),
        n if n > NAMED => format!("{n} of {of}"),
        _ => curves.join("; "),
    };
    let mut table = Table::new("Where one way overtakes another (by more than δ)", columns);
    let mut rows: Vec<(&Brief, Vec<String>)> = Vec::new();
    for brief in &briefs {
        let same = |row: &&mut (&Brief, Vec<String>)| {
            (&row.0.first, &row.0.second, &row.0.said) == (&brief.first, &brief.second, &brief.said)
        };
        match rows.iter_mut().find(same) {
            Some((_, curves)) => curves.push(brief.curve.clone()),
            None => rows.push((brief, vec![brief.curve.clone()])),
        }
    }
    // Those of a pair together, in the order in which the pairs are met.
    let pair =
        |brief: &Brief| briefs.iter().position(|b| b.pair == brief.pair).unwrap_or(usize::MAX);
    rows.sort_by_key(|(brief, _)| pair(brief));
    let mut before: Option<&[String; 2]> = None;
    for (brief, curves) in &rows {
        let is_new = before.replace(&brief.pair) != Some(&brief.pair);
        let arm = |text: &str, primitive: &str| match is_new {
            true => Entry::toned(text, crate::figure::style::tone(&primitive)),
            false => Entry::default(),
        };
        let row = vec![
            arm(&brief.first, &brief.pair[0]),
            arm(&brief.second, &brief.pair[1]),
            brief.said.as_str().into(),
            several(curves).into(),
        ];
        if is_new { table.push_group(row) } else { table.push(row) }
    }
    table
}
