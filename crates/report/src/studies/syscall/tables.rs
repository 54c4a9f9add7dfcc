//! The calls as tables.

use iolens_document::table::{Column, Filled, Table, left, prose, right};
use iolens_model::arm::Role;
use iolens_model::call::{CallFacts, CallKind};
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Estimate, Figures, Interval};

use super::calls::{Row, by_size, by_threads, rows, series, steady, time_of};
use crate::groups::distinct;
use crate::number::{self, InWords, Unit, interval_text, nanoseconds, ratio};
use crate::words;
use crate::{arms, results};

/// The calls of a cell, cheapest first. `wide` has what a terminal has no room
/// for.
pub(crate) fn by_cost(run: &Run, cell: &CellAnalysis, wide: bool) -> Table {
    let times = format!("× {} [95%]", run.header.plan.baseline);
    let all = rows(run, cell);
    let has_cycles = all.iter().any(|row| row.arm.figure(|f| f.cycles_per_message).is_some());
    let moved: Vec<f64> = all.iter().filter_map(Row::bytes_per_s).collect();
    let (moves, unit) = (!moved.is_empty(), Unit::of(number::BYTES, moved));
    let ns = if cell.cell.threads > 1 { "ns per call of all [95%]" } else { "ns per call [95%]" };
    let row = |row: &Row<'_>| {
        let value = |of: fn(&Figures) -> Option<Estimate>| value(row.arm.figure(of));
        let rate = row.bytes_per_s().or_empty(|rate| three_digits(rate / unit.size));
        let what = row.facts.map_or("", |facts| facts.summary.as_str());
        let times_of = row.times().or_dash(with_interval);
        let mut all = vec![
            left("call", "", row.arm.shown_label()),
            left("time", ns, interval_text(Some(row.ns), 1.0)),
            left("time", &times, times_of),
            right("calls", "million/s", three_digits(1e3 / row.ns.value)),
        ];
        if moves {
            all.push(right("rate", unit.name, rate));
        }
        if wide {
            all.push(right("CPU", "ns per call", value(|f| f.tx_cpu_ns_per_message)));
        }
        if has_cycles {
            let instructions = value(|f| f.instructions_per_message);
            all.push(right("cycles", "per call", value(|f| f.cycles_per_message)));
            all.push(right("instructions", "per call", instructions));
        }
        all.extend(wide.then(|| prose("what is done", what)));
        all
    };
    let subject = words::subject(&run.header, &cell.cell);
    let cpu = if wide { "; CPU: totals of its own trials" } else { "" };
    let caption = format!(
        "Calls by cost (multiple of {0} in the typical slice; times are those of {0} and the \
         multiple{1}{cpu}): {subject}",
        run.header.plan.baseline,
        words::together(cell.cell.threads)
    );
    Table::of(caption, all.iter().map(row))
}

fn value(estimate: Option<Estimate>) -> String {
    number::optional(estimate.map(|estimate| estimate.value))
}

/// So many times: a ratio, without decimals that nobody needs where it is large.
pub(super) fn fold(times: f64) -> String {
    if times < 10.0 { ratio(times) } else { three_digits(times) }
}

fn with_interval((times, interval): (f64, Option<Interval>)) -> String {
    match interval {
        Some(interval) => format!("{} {}", fold(times), number::ends(interval, fold)),
        None => fold(times),
    }
}

/// Calls of a cell without figures, and why.
pub(crate) fn missing(analysis: &Analysis) -> Option<Table> {
    let row = |(cell, arm): (&CellAnalysis, &ArmAnalysis)| {
        let why = arm.reason.as_deref().unwrap_or(arm.status.word());
        vec![
            left("call", "", arm.arm.label.as_str()),
            left("setting", "", cell.cell.to_string()),
            prose("no figure", why),
        ]
    };
    let rows = arms::in_cells(analysis).filter(|(_, arm)| arm.status != Status::Ok).map(row);
    Table::of("Calls without figures", rows).with_rows()
}

/// The time of each call in several cells, in columns beside each other, and what follows from it.
fn side_by_side(
    caption: String,
    calls: Vec<(String, String)>,
    cells: &[(Column, &CellAnalysis)],
    shown: fn(Option<Estimate>) -> String,
    more: impl Fn(&str) -> Option<Filled>,
) -> Table {
    let row = |(id, label): (String, String)| {
        let time = |(column, cell): &(Column, &CellAnalysis)| {
            (column.clone(), shown(time_of(cell, &id)).into())
        };
        let named = left("call", "", label);
        std::iter::once(named).chain(cells.iter().map(time)).chain(more(&id)).collect()
    };
    Table::of(caption, calls.into_iter().map(row))
}

fn with_ends(ns: Option<Estimate>) -> String {
    interval_text(ns, 1.0)
}

/// Time per call by how many threads make it, a table for each block; none where the run has one
/// count.
pub(crate) fn threads(run: &Run, analysis: &Analysis) -> Vec<Table> {
    by_threads(analysis).iter().filter_map(|cells| of_threads(run, cells)).collect()
}

fn of_threads(run: &Run, cells: &[&CellAnalysis]) -> Option<Table> {
    let (first, last) = (cells.first()?, cells.last()?);
    let column = |cell: &&CellAnalysis| {
        Column::left(&words::threads(cell.cell.threads), "ns per call of all [95%]")
    };
    let columns: Vec<_> = cells.iter().map(|cell| (column(cell), *cell)).collect();
    let gain = |id: &str| {
        let times = time_of(first, id).zip(time_of(last, id));
        let gain = times.or_dash(|(one, all)| ratio(one.value / all.value));
        Some(right("gain", "× calls per s", gain))
    };
    let blocks = first.cell.own_size().or_empty(|size| format!(": {size}"));
    let caption = format!("Calls by several threads at once{blocks}");
    side_by_side(caption, labels(run, &cells[..1]), &columns, with_ends, gain).with_rows()
}

/// Time per call by how many bytes it moves, a table for each thread count; none where the run
/// has one size.
pub(crate) fn sizes(run: &Run, analysis: &Analysis) -> Vec<Table> {
    by_size(analysis).iter().filter_map(|cells| of_sizes(run, cells).with_rows()).collect()
}

/// The same of one thread count.
pub(super) fn of_sizes(run: &Run, cells: &[&CellAnalysis]) -> Table {
    let column =
        |cell: &&CellAnalysis| Column::left(&cell.cell.size.to_string(), "ns per call [95%]");
    let columns: Vec<_> = cells.iter().map(|cell| (column(cell), *cell)).collect();
    let threads = cells.first().map_or(1, |cell| cell.cell.threads);
    let (of, together) = (words::threads(threads), words::together(threads));
    let caption = format!("Time per call by block size, {of}{together}");
    side_by_side(caption, labels(run, cells), &columns, with_ends, |_| None)
}

/// The calls that have a figure in some cell, those first that are cheapest in the first one:
/// ids and labels.
pub(super) fn labels(run: &Run, cells: &[&CellAnalysis]) -> Vec<(String, String)> {
    let name = |row: Row<'_>| (row.arm.arm.primitive.clone(), row.arm.shown_label());
    distinct(cells.iter().flat_map(|cell| rows(run, cell)).map(name))
}

/// Time per call by how many are made in a row; `None` where the plan asks for
/// none.
pub(crate) fn in_a_row(run: &Run, analysis: &Analysis) -> Option<Table> {
    let cells = series(analysis);
    let steady = steady(analysis)?;
    if cells.is_empty() {
        return None;
    }
    let column = |n: &u64| Column::right(&format!("{n} in a row"), "ns per call");
    let mut columns: Vec<_> = cells.iter().map(|(n, cell)| (column(n), *cell)).collect();
    columns.push((Column::right("full slice", "ns per call"), steady));
    let block = steady.cell.own_size().or_empty(|size| format!(": {size}"));
    let together = words::together(steady.cell.threads);
    let caption = format!("Time per call by calls in a row{together}{block}");
    side_by_side(caption, labels(run, &[steady]), &columns, value, |_| None).with_rows()
}

/// What was called, by kind.
pub(crate) fn kinds(run: &Run) -> Table {
    let row = |facts: &CallFacts| {
        let bytes = match facts.bytes {
            own if own == 0 || run.header.plan.sizes.is_empty() => own.to_string(),
            _ => "a block".to_owned(),
        };
        vec![
            left("call", "", facts.id.as_str()),
            prose("what is done", facts.summary.as_str()),
            right("system calls", "count", facts.calls.to_string()),
            right("bytes", "count", bytes),
        ]
    };
    let of_kind = |kind: &CallKind| {
        let own = run.header.calls.iter().filter(|facts| facts.kind == *kind);
        (kind.word().to_owned(), own.collect())
    };
    let kinds: Vec<_> = CallKind::ALL.iter().map(of_kind).collect();
    let head = Some(Column::left("kind", ""));
    let caption = "What each call is".to_owned();
    Table { caption, ..results::filled(head, &kinds, true, |_| None, |facts| row(facts)) }
}

/// A time with its interval and how many trials it is of.
pub(super) fn estimate(ns: Estimate) -> String {
    let interval = ns.interval.or_empty(|i| format!(" {}", number::ends(i, nanoseconds)));
    format!("{}{interval}, n = {}", nanoseconds(ns.value), ns.n)
}

/// What a bar says when it is pointed at.
pub(super) fn hover(row: &Row<'_>) -> String {
    let what = row.facts.map_or("", |facts| facts.summary.as_str());
    let role = if row.arm.arm.role == Role::Control { ", a control" } else { "" };
    format!("{}{role}: {}; {what}", row.arm.arm.label, estimate(row.ns))
}
