//! Where one method overtakes another along the sizes, in words and as a table.

use iolens_document::table::{Entry, Table, left, prose};
use iolens_document::{change, change_interval};
use iolens_model::run::Run;
use iolens_stats::analysis::{
    Analysis, Crossing, Crossover, CrossoverPoint, CrossoverShape, Estimate, Interval,
    ZerocopyFigures,
};

use crate::arms::{self, CLASSIC, curves};
use crate::figure::style::toned;
use crate::groups::grouped;
use crate::number::{InWords, usable};
use crate::{number, words};

/// What fresh trials inside the band of a crossover have shown, the latest first.
pub(crate) fn crossing<'a>(analysis: &'a Analysis, crossover: &Crossover) -> Option<&'a Crossing> {
    analysis.crossings.iter().rev().find(|found| {
        (&found.curve, &found.first, &found.second)
            == (&crossover.curve, &crossover.first, &crossover.second)
    })
}

/// `9.3 KiB (8.8 KiB–9.9 KiB)`.
pub(crate) fn size(at: Estimate) -> String {
    let interval = at.interval.or_empty(|interval| {
        let words = |i: Interval| format!("{}–{}", number::bytes(i.low), number::bytes(i.high));
        format!(" ({})", number::interval(interval, at.n, words))
    });
    format!("{}{interval}", number::bytes(at.value))
}

/// A label, and whether its zero-copy sends were copied.
pub(crate) fn shown(analysis: &Analysis, crossover: &Crossover, label: &str) -> String {
    match arms::copied(arms::on_curve(analysis, &crossover.curve), label) {
        Some((_, high)) if high > ZerocopyFigures::COPIED_SHARE_MAX => format!("{label} (copied)"),
        _ => label.to_owned(),
    }
}

/// Who is ahead at a size by more than the threshold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ahead {
    First,
    Second,
    Nobody,
}

/// Who that is.
pub(crate) fn ahead(point: &CrossoverPoint, delta: f64) -> Ahead {
    match point.simultaneous {
        Some(i) if i.low > 1.0 + delta => Ahead::Second,
        Some(i) if i.high < 1.0 / (1.0 + delta) => Ahead::First,
        _ => Ahead::Nobody,
    }
}

/// Where the second is ahead of the first: `between 1 KiB and 256 KiB`.
pub(crate) fn place(analysis: &Analysis, crossover: &Crossover) -> String {
    let to = crossover.first_ahead_to.unwrap_or(crossover.smallest);
    let from = crossover.second_ahead_from.unwrap_or(crossover.largest);
    let is_anywhere = |who| crossover.points.iter().any(|p| ahead(p, analysis.delta) == who);
    let said = match crossover.shape {
        CrossoverShape::Crosses => format!("between {to} and {from}"),
        CrossoverShape::FirstThroughout => "nowhere: behind at every size".to_owned(),
        CrossoverShape::SecondThroughout => "ahead at every size".to_owned(),
        CrossoverShape::FirstThenUnknown => format!("behind up to {to}, undecided above"),
        CrossoverShape::UnknownThenSecond => format!("ahead from {from}, undecided below"),
        CrossoverShape::NeitherAnywhere => "undecided or tied at every size".to_owned(),
        CrossoverShape::Mixed => match [Ahead::First, Ahead::Second].map(is_anywhere) {
            [true, false] => "behind at some sizes, undecided or tied at the others",
            [false, true] => "ahead at some sizes, undecided or tied at the others",
            _ => "no single band: each is ahead here and there",
        }
        .to_owned(),
    };
    let Some(found) = crossing(analysis, crossover) else { return said };
    match (found.at_bytes, &found.reason) {
        (Some(at), _) => format!("at {}, from fresh trials (run {})", size(at), found.run),
        (None, Some(why)) => format!("{said}; no single size in run {}: {why}", found.run),
        (None, None) => said,
    }
}

/// `1 KiB −9% [−12, −6]`: what the second does against the first at a size.
pub(crate) fn at(point: &CrossoverPoint) -> String {
    let ends = usable(point.simultaneous).or_empty(|ends| format!(" {}", change_interval(ends)));
    format!("{} {}{ends}", point.size, change(point.ratio))
}

/// What each size shows, and between which nothing is interpolated.
pub(crate) fn sizes(crossover: &Crossover) -> String {
    let points: Vec<String> = crossover.points.iter().map(at).collect();
    let steps = crossover.steps.iter();
    let steps: Vec<String> = steps.map(|(below, above)| format!("{below} to {above}")).collect();
    match steps.as_slice() {
        [] => points.join(", "),
        steps => {
            format!("{}; too steep to interpolate: {}", points.join(", "), number::list(steps))
        }
    }
}

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
pub(crate) fn table(run: &Run, analysis: &Analysis, all: bool) -> Table {
    let of = curves(analysis).len();
    let several = |settings: &[String]| match settings.len() {
        n if n == of => "all".to_owned(),
        n if n > NAMED => format!("{n} of {of}"),
        _ => settings.join("; "),
    };
    let mut table = Table::of("Crossovers", []);
    let of_pair = |crossover: &Crossover| (crossover.first.clone(), crossover.second.clone());
    let pairs = chosen(analysis, all).into_iter().map(|crossover| (of_pair(crossover), crossover));
    for ((first, second), crossovers) in grouped(pairs) {
        let row = |crossover: &Crossover| {
            let names = [&first, &second].map(|label| shown(analysis, crossover, label));
            let setting = words::curve_brief(&run.header.plan, &crossover.curve);
            ((names, place(analysis, crossover)), setting)
        };
        let rows = grouped(crossovers.into_iter().map(row)).into_iter();
        for (nth, (([from, to], place), settings)) in rows.enumerate() {
            let name = |text: String, label: &str| match nth {
                0 => toned(text, arms::primitive(analysis, label)),
                _ => Entry::default(),
            };
            let mut row = vec![
                left("from", "", name(from, &first)),
                left("to", "", name(to, &second)),
                left("where the second is ahead", "", place),
            ];
            row.extend((of > 1).then(|| prose("setting", several(&settings))));
            table.fill(false, row);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture_findings;

    #[test]
    fn a_setting_is_named_where_there_are_several() {
        let names = |(run, analysis): &(Run, Analysis)| {
            let table = table(run, analysis, true);
            assert!(!table.rows.is_empty());
            table.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>()
        };
        let (run, mut analysis) = fixture_findings::findings();
        let several = names(&(run.clone(), analysis.clone()));
        assert_eq!(several, ["from", "to", "where the second is ahead", "setting"]);
        let first = analysis.cells[0].cell.curve();
        analysis.cells.retain(|cell| cell.cell.curve() == first);
        analysis.crossovers.retain(|crossover| crossover.curve == first);
        assert_eq!(names(&(run, analysis)), several[..3]);
    }
}
