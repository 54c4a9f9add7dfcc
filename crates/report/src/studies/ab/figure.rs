//! The changes of a run as a figure: each against the baseline, with its interval, beside the
//! threshold and what copies of one program show.

use iolens_document::table::{Filled, Table, left, right};
use iolens_model::ab::AbQuantity;
use iolens_model::run::Run;
use iolens_stats::ab::{AbAnalysis, AbCell, AbContrast, AbCopies, AbVerdict};
use iolens_stats::analysis::Interval;

use super::words::{Said, bracket, contrasts, place, quantity, signed, with_interval};
use crate::figure::chart::{Chart, Kind, NOWHERE, Panel, Point, Series, extent, hull};
use crate::figure::scale::Scale;
use crate::figure::{Group, Marks, Plate};
use crate::number::{InWords, percent};

/// Settings that a figure has room for; all are in the table on the first screen.
const CELLS_MAX: usize = 12;

/// The figure of a run; `None` where nothing could be compared.
pub(crate) fn figure(run: &Run) -> Option<Plate> {
    let analysis = iolens_stats::ab::analyse(run)?;
    let said = Said::of(run);
    let cells = || analysis.cells.iter().take(CELLS_MAX);
    let panels = cells().flat_map(|cell| {
        let both = [AbQuantity::Time, AbQuantity::Cpu].into_iter();
        both.filter_map(|quantity| panel(&said, cell, quantity))
    });
    let mut panels: Vec<Panel> = panels.collect();
    let range = extent(&panels)?;
    let band = [1.0 - said.delta, 1.0 + said.delta];
    let range = hull(band.into_iter().chain([range.low, range.high]))?;
    for panel in &mut panels {
        panel.y = Scale::changes(range);
    }
    let cell = run.header.plan.cells().into_iter().next()?;
    let how = format!(
        "line: 95% interval; shaded: less than {} either way; hollow: two copies of one program, \
         between which there is no difference; right is more, so slower",
        percent(said.delta)
    );
    let title = format!("Change against {} per operation (%)", said.name(0));
    let marks = Marks::Chart(Chart::new(run, NOWHERE, panels));
    let named = (Group::Main, "ab-changes".to_owned());
    Some(Plate::new(run, &cell, named, [title.clone(), how], marks, twin(&said, &analysis, title)))
}

/// The changes of a setting in a quantity, and then its copies.
fn panel(said: &Said<'_>, cell: &AbCell, of: AbQuantity) -> Option<Panel> {
    let mut rows: Vec<Series> = contrasts(cell, of).filter_map(|one| changed(said, one)).collect();
    if rows.is_empty() {
        return None;
    }
    let copies = cell.judgement.copies.iter().filter(|one| one.quantity == of);
    rows.extend(copies.filter_map(|one| copied(said, one)));
    let setting = place(cell);
    let title = match setting.is_empty() {
        true => quantity(of).to_owned(),
        false => format!("{setting}: {}", quantity(of)),
    };
    let name = format!("{} per operation against {}", quantity(of), said.name(0));
    let band = Interval { low: 1.0 - said.delta, high: 1.0 + said.delta };
    let mut panel = Panel::new(title, name, "%", rows);
    panel.band = Some((band, format!("less than {}", percent(said.delta))));
    Some(panel)
}

fn changed(said: &Said<'_>, one: &AbContrast) -> Option<Series> {
    let name = said.name(one.arm);
    let verdict = one.verdict.word();
    let open = matches!(one.verdict, AbVerdict::Invalid | AbVerdict::Inconclusive);
    let point = point(one.change?, one.pointwise, (name, verdict), open);
    Some(Series::new(name, name, Kind::Curve, vec![point]))
}

fn copied(said: &Said<'_>, one: &AbCopies) -> Option<Series> {
    let name = said.name(one.arm);
    let label = format!("{name}, copies");
    let point = point(one.change?, one.pointwise, (&label, "two copies of one program"), true);
    Some(Series::new(&label, name, Kind::Curve, vec![point]))
}

/// A change on a scale of ratios.
fn point(change: f64, interval: Option<Interval>, said: (&str, &str), open: bool) -> Point {
    let text = with_interval(Some(change), interval);
    let ratio = |change: f64| 1.0 + change;
    Point {
        x: 1.0,
        value: ratio(change),
        interval: interval.map(|interval| interval.map(ratio)),
        open,
        hover: format!("{} {text}: {}", said.0, said.1),
        text,
    }
}

/// The same numbers as a table.
fn twin(said: &Said<'_>, analysis: &AbAnalysis, title: String) -> Table {
    let cell = |cell: &AbCell| {
        let of = |change: Option<f64>, interval: Option<Interval>| {
            let change = change.or_empty(signed);
            [right("change", "", change), right("95%", "", interval.or_empty(bracket))]
        };
        let row = |name: String, what: AbQuantity, numbers: [Filled; 2], verdict: &str| {
            let mut row = vec![
                left("setting", "", place(cell)),
                left("program", "", name),
                left("of", "", quantity(what)),
            ];
            row.extend(numbers);
            row.push(left("verdict", "", verdict));
            row
        };
        let contrasts = cell.judgement.contrasts.iter().map(|one| {
            let numbers = of(one.change, one.pointwise);
            row(said.name(one.arm).to_owned(), one.quantity, numbers, one.verdict.word())
        });
        let copies = cell.judgement.copies.iter().map(|one| {
            let name = format!("{}, copies", said.name(one.arm));
            row(name, one.quantity, of(one.change, one.pointwise), "")
        });
        contrasts.chain(copies).collect::<Vec<_>>()
    };
    Table::of(title, analysis.cells.iter().take(CELLS_MAX).flat_map(cell))
}
