//! Where one method overtakes another: a row for each pair and place, with the settings of
//! which it is said, so that what holds for all of them stands once.

use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, Crossover};

use super::toned;
use crate::arms::CLASSIC;
use crate::groups::grouped;
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
    let of_pair = |crossover: &Crossover| (crossover.first.clone(), crossover.second.clone());
    let pairs = chosen(analysis, all).into_iter().map(|crossover| (of_pair(crossover), crossover));
    for ((first, second), crossovers) in grouped(pairs) {
        let row = |crossover: &Crossover| {
            let names = [&first, &second].map(|label| crossing::shown(analysis, crossover, label));
            let setting = words::curve_brief(&run.header.plan, &crossover.curve);
            ((names, crossing::place(analysis, crossover)), setting)
        };
        let rows = grouped(crossovers.into_iter().map(row)).into_iter();
        for (nth, (([from, to], place), settings)) in rows.enumerate() {
            let name = |text: String, label: &str| match nth {
                0 => toned(text, primitive(analysis, label)),
                _ => Entry::default(),
            };
            let (from, to) = (name(from, &first), name(to, &second));
            table.push(vec![from, to, place.into(), several(&settings).into()]);
        }
    }
    table
}

/// The primitive of a label.
fn primitive<'a>(analysis: &'a Analysis, label: &'a str) -> &'a str {
    let mut arms = analysis.arms();
    arms.find(|arm| arm.arm.label == label).map_or(label, |arm| &arm.arm.primitive)
}
