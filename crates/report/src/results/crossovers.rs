//! Where one method overtakes another: a row for each pair and place, with the settings of
//! which it is said, so that what holds for all of them stands once.

use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, Crossover};

use crate::arms::CLASSIC;
use crate::table::{Column, Entry, Table};
use crate::{crossing, words};

/// Settings up to which each is named.
const NAMED: usize = 2;

/// The pairs of the classic three, where the run has any; else all.
fn chosen(analysis: &Analysis, all: bool) -> Vec<&Crossover> {
    let is_classic = |crossover: &&Crossover| {
        [&crossover.first, &crossover.second].iter().all(|label| CLASSIC.contains(&label.as_str()))
    };
    let classic: Vec<&Crossover> = analysis.crossovers.iter().filter(is_classic).collect();
    match all || classic.is_empty() {
        true => analysis.crossovers.iter().collect(),
        false => classic,
    }
}

/// A pair and where its second is ahead.
struct Row<'a> {
    crossover: &'a Crossover,
    names: [String; 2],
    place: String,
    settings: Vec<String>,
}

/// The table of the pairs of the classic three, or of all.
pub(crate) fn crossovers(run: &Run, analysis: &Analysis, all: bool) -> Table {
    let columns = vec![
        Column::left("from", ""),
        Column::left("to", ""),
        Column::left("where the second is ahead", ""),
        Column::prose("setting"),
    ];
    let of = super::curves(analysis).len();
    let several = |settings: &[String]| match settings.len() {
        _ if of == 1 => String::new(),
        n if n == of => "all".to_owned(),
        n if n > NAMED => format!("{n} of {of}"),
        _ => settings.join("; "),
    };
    let mut table = Table::new("Crossovers", columns);
    let mut rows: Vec<Row> = Vec::new();
    for crossover in chosen(analysis, all) {
        let names = [&crossover.first, &crossover.second]
            .map(|label| crossing::shown(analysis, crossover, label));
        let place = crossing::place(analysis, crossover);
        let setting = words::curve_brief(&run.header.plan, &crossover.curve);
        let same = |row: &&mut Row| (&row.names, &row.place) == (&names, &place);
        match rows.iter_mut().find(same) {
            Some(row) => row.settings.push(setting),
            None => rows.push(Row { crossover, names, place, settings: vec![setting] }),
        }
    }
    let pair = |row: &Row| [row.crossover.first.clone(), row.crossover.second.clone()];
    // Those of a pair together, in the order in which the pairs are met.
    let met: Vec<[String; 2]> = rows.iter().map(pair).collect();
    rows.sort_by_key(|row| met.iter().position(|known| *known == pair(row)));
    let mut before: Option<[String; 2]> = None;
    for row in &rows {
        let own = pair(row);
        let is_new = before.replace(own.clone()) != Some(own);
        let name = |text: &str, label: &str| match is_new {
            true => Entry::toned(text, crate::figure::style::tone(primitive(analysis, label))),
            false => Entry::default(),
        };
        table.push(vec![
            name(&row.names[0], &row.crossover.first),
            name(&row.names[1], &row.crossover.second),
            row.place.as_str().into(),
            several(&row.settings).into(),
        ]);
    }
    table
}

/// The primitive of a label.
fn primitive<'a>(analysis: &'a Analysis, label: &'a str) -> &'a str {
    let mut arms = analysis.arms();
    arms.find(|arm| arm.arm.label == label).map_or(label, |arm| &arm.arm.primitive)
}
