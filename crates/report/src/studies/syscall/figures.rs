//! The calls as figures: how long each takes, and time against how many are made
//! in a row.

use iolens_model::call::CallKind;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Interval};

use super::calls::{Row, by_size, filled, rows, series, steady, time_of};
use super::tables::{by_cost, hover, in_a_row, of_sizes};
use crate::figure::bars::{Bar, BarPart, Bars, Lengths};
use crate::figure::chart::{Along, BLOCKS, CALLS, Chart, Kind, Panel, Point, Series};
use crate::figure::metric::{Metric, plain};
use crate::figure::scale::Scale;
use crate::figure::{Group, Marks, Plate, size_stem};
use crate::number::nanoseconds;
use crate::words;

/// Every figure of the study.
pub(crate) fn all(run: &Run, analysis: &Analysis) -> Vec<Plate> {
    let cells = filled(analysis);
    let mut plates: Vec<Plate> = cells.iter().map(|cell| bars(run, cell)).collect();
    plates.extend(by_size(analysis).iter().filter_map(|cells| time_by_size(run, cells)));
    plates.extend(time_by_calls(run, analysis));
    plates
}

fn named(run: &Run, metric: &str) -> (Group, String) {
    (Group::Main, format!("{}-{metric}", run.header.plan.study()))
}

/// A bar for each call of a cell, cheapest first.
fn bars(run: &Run, cell: &CellAnalysis) -> Plate {
    let rows = rows(run, cell);
    let subject = words::subject(&run.header, &cell.cell);
    let together = words::together(cell.cell.threads);
    let title = format!("Time per call{together} (ns, log scale): {subject}");
    let how = "length: time per call on a log scale, by totals; line: 95% interval over trials; \
               colour: kind of call; in the order of the typical slice's multiple of the baseline";
    let longest = rows.iter().map(|row| row.ns.value).fold(10.0, f64::max);
    let bar = |row: &Row<'_>| {
        let (hue, word) = row.facts.map_or(("grey", "unknown"), |facts| look(facts.kind));
        let part = BarPart { length: row.ns.value, class: format!("c-{hue} part"), word };
        Bar {
            before: row.arm.arm.label.clone(),
            behind: nanoseconds(row.ns.value),
            parts: vec![part],
            hover: hover(row),
            interval: row.ns.interval,
            ..Bar::default()
        }
    };
    let lengths = Lengths::On(Scale::values(Interval { low: 1.0, high: longest }));
    let marks = Marks::Bars(Bars { lengths, bars: rows.iter().map(bar).collect() });
    let stem = format!("ns-per-call{}-{}-threads", size_stem(&cell.cell), cell.cell.threads);
    let (said, table) = ([title, how.to_owned()], by_cost(run, cell, true));
    Plate::new(run, &cell.cell, named(run, &stem), said, marks, table)
}

/// The hue of a kind, and its name.
fn look(kind: CallKind) -> (&'static str, &'static str) {
    let hue = match kind {
        CallKind::Floors => "grey",
        CallKind::Bytes => "blue",
        CallKind::Descriptors => "orange",
        CallKind::Files => "vermilion",
        CallKind::Memory => "purple",
        CallKind::Waits => "green",
    };
    (hue, kind.word())
}

const TIME: Metric = plain("Time of a call", "ns", ArmAnalysis::time);

/// The curves of calls over cells: the baseline, those that are shown first, and others.
fn curves(run: &Run, along: Along, cells: &[&CellAnalysis], first: &[&str]) -> Vec<Series> {
    let mut curves = TIME.panel(run, along, cells, String::new()).series;
    curves.sort_by_key(|curve| match first.iter().position(|own| *own == curve.label) {
        _ if curve.label == run.header.plan.baseline => 0,
        Some(nth) => nth + 1,
        None => first.len() + 1,
    });
    curves
}

/// Calls that a figure of curves by size shows before others, and how many curves one has.
const SIZED: [&str; 6] =
    ["read_zero", "read_file", "read_pipe", "write_null", "write_pipe", "write_file"];
const SIZED_MAX: usize = 7;

/// Time of a call against how many bytes it moves.
fn time_by_size(run: &Run, cells: &[&CellAnalysis]) -> Option<Plate> {
    let mut curves = curves(run, BLOCKS, cells, &SIZED);
    curves.truncate(SIZED_MAX);
    let panel = Panel::new(String::new(), "time of a call, ns".to_owned(), "ns", curves);
    panel.extent()?;
    let cell = &cells.first()?.cell;
    let of = format!("{}{}", words::threads(cell.threads), words::together(cell.threads));
    let said = ["Time of a call against its block (ns)".to_owned(), of];
    let marks = Marks::Chart(Chart::new(run, BLOCKS, vec![panel]));
    let stem = format!("time-by-size-{}-threads", cell.threads);
    Some(Plate::new(run, cell, named(run, &stem), said, marks, of_sizes(run, cells)))
}

/// Calls that a figure of rows of calls shows.
const IN_A_ROW: [&str; 7] =
    ["getppid", "read_zero", "read_file", "stat", "open_close", "mmap_munmap", "io_uring_nop"];

/// Time of a row of calls against how many it has; `None` where several threads make one each, as
/// their time per call makes no row's.
fn time_by_calls(run: &Run, analysis: &Analysis) -> Option<Plate> {
    let cells: Vec<&CellAnalysis> = series(analysis).into_iter().map(|(_, cell)| cell).collect();
    if cells.len() < 2 || cells.iter().any(|cell| cell.cell.threads > 1) {
        return None;
    }
    let baseline = &run.header.plan.baseline;
    let mut curves = curves(run, CALLS, &cells, &IN_A_ROW);
    curves.retain(|curve| curve.label == *baseline || IN_A_ROW.contains(&&*curve.label));
    for point in curves.iter_mut().flat_map(|curve| &mut curve.points) {
        point.value *= point.x;
        let whole = |ns: Interval| Interval { low: ns.low * point.x, high: ns.high * point.x };
        point.interval = point.interval.map(whole);
    }
    let steady = steady(analysis).and_then(|cell| time_of(cell, baseline));
    curves.extend(steady.map(|ns| {
        let places = cells.iter().map(|cell| CALLS.of(cell));
        let points = places.map(|x| Point { x, value: x * ns.value, ..Point::default() });
        Series::new(baseline, baseline, Kind::Model, points.collect())
    }));
    let y_name = "time of all calls of a row, ns".to_owned();
    let panel = Panel::new(String::new(), y_name, "ns", curves);
    panel.extent()?;
    let cell = &cells.first()?.cell;
    let how = format!(
        "a slice is one row of so many calls, a reading of the clock in it; dotted: {baseline} as \
         in a full slice; a point says the time of one call"
    );
    let marks = Marks::Chart(Chart::new(run, CALLS, vec![panel]));
    let said = ["Time against number of calls (ns)".to_owned(), how];
    let table = in_a_row(run, analysis)?;
    Some(Plate::new(run, cell, named(run, "time-by-calls"), said, marks, table))
}
