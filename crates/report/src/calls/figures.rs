//! The calls as figures: how long each takes, and time against how many are made
//! in a row.

use iolens_model::call::CallKind;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, CellAnalysis, Interval};

use super::tables::{estimate, hover, labels, of_sizes};
use super::{Row, by_cost, by_size, filled, rows, series, steady, time_of};
use crate::figure::bars::size_stem;
use crate::figure::chart::{BLOCKS, CALLS, Chart, Kind, Panel, Point, Series};
use crate::figure::scale::Scale;
use crate::figure::sheet::{Drawing, Sheet};
use crate::figure::{Figure, Medium, Paper, of_calls};
use crate::groups::distinct;
use crate::number::nanoseconds;
use crate::results::interval_text;
use crate::words;

/// Every figure of the study.
pub(crate) fn all(paper: Paper, run: &Run, analysis: &Analysis) -> Vec<Figure> {
    let cells = filled(analysis);
    let mut figures: Vec<Figure> = cells.iter().map(|cell| bars(paper, run, cell)).collect();
    figures.extend(by_size(analysis).iter().filter_map(|cells| time_by_size(paper, run, cells)));
    figures.extend(time_by_calls(paper, run, analysis));
    figures
}

const LEFT: f64 = 165.0;
const RIGHT: f64 = 96.0;
const HEIGHT: f64 = 19.0;

/// A bar for each call of a cell, cheapest first.
fn bars(paper: Paper, run: &Run, cell: &CellAnalysis) -> Figure {
    let rows = rows(run, cell);
    let subject = words::subject(&run.header, &cell.cell);
    let title = format!("Time per call (ns, log scale): {subject}");
    let draw = |medium| draw_bars(run, cell, &rows, medium, &title);
    let threads = cell.cell.threads;
    let stem = format!("ns-per-call{}-{threads}-threads", size_stem(&cell.cell));
    of_calls(paper, run, &stem, draw, by_cost(run, cell, true))
}

fn draw_bars(
    run: &Run,
    cell: &CellAnalysis,
    rows: &[Row<'_>],
    medium: Medium,
    title: &str,
) -> Drawing {
    let reading = "length: time of one call on a log scale, by totals; line: 95% interval over \
                   trials; colour: kind of call; in the order of the typical slice's multiple of the \
                   baseline";
    let mut sheet = Sheet::new(medium, medium.width(), title, reading);
    legend(&mut sheet, rows);
    let room = sheet.width - LEFT - RIGHT;
    let longest = rows.iter().map(|row| row.ns.value).fold(10.0, f64::max);
    let scale = Scale::values(Interval { low: 1.0, high: longest });
    let x = |ns: f64| LEFT + room * scale.position(ns).clamp(0.0, 1.0);
    let (top, bottom) = (sheet.y, sheet.y + HEIGHT * rows.len() as f64);
    for (value, label) in scale.spaced(room, 60.0) {
        sheet.svg.line((x(*value), top), (x(*value), bottom), "grid");
        sheet.svg.text(x(*value), bottom + 15.0, "tk am", label);
    }
    for row in rows {
        let y = sheet.y;
        sheet.svg.text(LEFT - 6.0, y + 13.0, "tl ae", &row.arm.arm.label);
        let width = (x(row.ns.value) - LEFT).max(1.0);
        let class = format!("f c-{} part", hue(row));
        sheet.svg.tile((LEFT, y + 2.0), (width, HEIGHT - 5.0), &class, &hover(row));
        let mut end = LEFT + width;
        if let Some(Interval { low, high }) = row.ns.interval {
            let middle = y + HEIGHT / 2.0;
            sheet.svg.line((x(low), middle), (x(high), middle), "s c-ink whisker");
            end = end.max(x(high));
        }
        let value = nanoseconds(row.ns.value);
        sheet.svg.text(end + 6.0, y + 13.0, "td", &value);
        sheet.y += HEIGHT;
    }
    sheet.y += 24.0;
    sheet.finish(&words::footer(&run.header, &cell.cell))
}

/// The hue of a kind.
fn hue_of(kind: CallKind) -> &'static str {
    match kind {
        CallKind::Floors => "grey",
        CallKind::Bytes => "blue",
        CallKind::Descriptors => "orange",
        CallKind::Files => "vermilion",
        CallKind::Memory => "purple",
        CallKind::Waits => "green",
    }
}

fn hue(row: &Row<'_>) -> &'static str {
    row.facts.map_or("grey", |facts| hue_of(facts.kind))
}

/// A square and a word for each kind that is drawn.
fn legend(sheet: &mut Sheet, rows: &[Row<'_>]) {
    let mut x = LEFT;
    sheet.y += 16.0;
    let drawn = |kind: &CallKind| rows.iter().any(|row| row.facts.is_some_and(|f| f.kind == *kind));
    for kind in CallKind::ALL.iter().copied().filter(drawn) {
        let class = format!("f c-{} part", hue_of(kind));
        sheet.svg.tile((x, sheet.y - 11.0), (12.0, 12.0), &class, kind.word());
        sheet.svg.text(x + 18.0, sheet.y, "tl", kind.word());
        x += 18.0 + crate::figure::svg::width(kind.word(), 12.0) + 16.0;
    }
    sheet.y += 12.0;
}

/// Calls that a figure of curves by size shows before others, and how many curves one has.
const SIZED: [&str; 6] =
    ["read_zero", "read_file", "read_pipe", "write_null", "write_pipe", "write_file"];
const SIZED_MAX: usize = 7;

/// Time of a call against how many bytes it moves.
fn time_by_size(paper: Paper, run: &Run, cells: &[&CellAnalysis]) -> Option<Figure> {
    let curve = |(id, label): (String, String)| {
        let point = |cell: &&CellAnalysis| {
            let ns = time_of(cell, &id)?;
            Some(Point {
                x: cell.cell.size.0 as f64,
                value: ns.value,
                interval: ns.interval,
                open: false,
                text: interval_text(Some(ns), 1.0),
                hover: format!("{label}, {}: {}", cell.cell.size, estimate(ns)),
            })
        };
        Series::new(&label, &id, Kind::Curve, cells.iter().filter_map(point).collect())
    };
    let curves: Vec<Series> = shown(run, cells).into_iter().map(curve).collect();
    let panel = Panel::new(String::new(), "time of a call, ns".to_owned(), "ns", curves);
    panel.extent()?;
    let cell = &cells.first()?.cell;
    let title = "Time of a call against its block (ns)".to_owned();
    let how = words::threads(cell.threads);
    let drawn = Chart::new(run, cell, BLOCKS, title, how, vec![panel]);
    let draw = |medium| crate::figure::draw::draw(&drawn, medium);
    let stem = format!("time-by-size-{}-threads", cell.threads);
    Some(of_calls(paper, run, &stem, draw, of_sizes(run, cells)))
}

/// The baseline, the calls that are shown first, and as many others as have room.
fn shown(run: &Run, cells: &[&CellAnalysis]) -> Vec<(String, String)> {
    let mut all = labels(run, cells);
    let rank = |id: &str| match SIZED.iter().position(|own| *own == id) {
        _ if id == run.header.plan.baseline => 0,
        Some(nth) => nth + 1,
        None => SIZED.len() + 1,
    };
    all.sort_by_key(|(id, _)| rank(id));
    all.truncate(SIZED_MAX);
    all
}

/// Calls that a figure of curves shows, those of them that the run has.
const CURVES: [&str; 7] =
    ["getppid", "read_zero", "read_file", "stat", "open_close", "mmap_munmap", "io_uring_nop"];

/// Time of a row of calls against how many it has.
fn time_by_calls(paper: Paper, run: &Run, analysis: &Analysis) -> Option<Figure> {
    let cells = series(analysis);
    if cells.len() < 2 {
        return None;
    }
    let baseline = run.header.plan.baseline.as_str();
    let shown = CURVES.into_iter().chain([baseline]);
    let ids = distinct(shown.filter(|id| run.header.plan.primitives.iter().any(|own| own == id)));
    let mut curves: Vec<Series> = ids.iter().filter_map(|id| curve(&cells, id)).collect();
    let steady = steady(analysis).and_then(|cell| time_of(cell, baseline));
    curves.extend(steady.map(|ns| line(&cells, ns.value, baseline)));
    let y_name = "time of all calls of a row, ns".to_owned();
    let panel = Panel::new(String::new(), y_name, "ns", curves);
    panel.extent()?;
    let title = "Time against number of calls (ns)".to_owned();
    let cell = &cells.first()?.1.cell;
    let how = format!(
        "a slice is one row of so many calls, a reading of the clock in it; dotted: {baseline} as \
         in a full slice"
    );
    let drawn = Chart::new(run, cell, CALLS, title, how, vec![panel]);
    let draw = |medium| crate::figure::draw::draw(&drawn, medium);
    let table = super::in_a_row(run, analysis)?;
    Some(of_calls(paper, run, "time-by-calls", draw, table))
}

/// Time of one call's rows.
fn curve(cells: &[(u64, &CellAnalysis)], id: &str) -> Option<Series> {
    let point = |(calls, cell): &(u64, &CellAnalysis)| {
        let ns = time_of(cell, id)?;
        let calls = *calls as f64;
        let whole = ns.map(|ns| ns * calls);
        Some(Point {
            x: calls,
            value: whole.value,
            interval: whole.interval,
            open: false,
            text: interval_text(Some(ns), 1.0),
            hover: format!("{id}, {calls} in a row: {}", estimate(whole)),
        })
    };
    let points: Vec<Point> = cells.iter().filter_map(point).collect();
    (!points.is_empty()).then(|| Series::new(id, id, Kind::Curve, points))
}

/// The same where every call costs what it does in a full slice.
fn line(cells: &[(u64, &CellAnalysis)], ns: f64, id: &str) -> Series {
    let point = |(calls, _): &(u64, &CellAnalysis)| {
        let x = *calls as f64;
        Point { x, value: x * ns, ..Point::default() }
    };
    let points = cells.iter().map(point).collect();
    Series::new(id, id, Kind::Model, points)
}
