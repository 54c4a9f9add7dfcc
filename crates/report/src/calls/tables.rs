//! The calls as tables.

use iolens_model::arm::Role;
use iolens_model::call::CallKind;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, CellAnalysis, Estimate, Figures, Interval};

use super::{Row, by_size, by_threads, rows, series, steady, time_of};
use crate::groups::distinct;
use crate::number::{self, OrDash, nanoseconds, ratio};
use crate::rates::{self, Unit};
use crate::results::{self, interval_text};
use crate::table::{Column, Entry, Table};
use crate::words;

/// The calls of a cell, cheapest first. `wide` has what a terminal has no room
/// for.
pub(crate) fn by_cost(run: &Run, cell: &CellAnalysis, wide: bool) -> Table {
    let times = format!("× {} [95%]", run.header.plan.baseline);
    let all = rows(run, cell);
    let has_cycles = all.iter().any(|row| row.arm.figure(|f| f.cycles_per_message).is_some());
    let moved: Vec<f64> = all.iter().filter_map(Row::bytes_per_s).collect();
    let (moves, unit) = (!moved.is_empty(), Unit::of(rates::BYTES, moved));
    let row = |row: &Row<'_>| {
        let value = |of: fn(&Figures) -> Option<Estimate>| Entry::from(value(row.arm.figure(of)));
        let rate = row.bytes_per_s().map(|rate| three_digits(rate / unit.size));
        let what = row.facts.map_or("", |facts| facts.summary.as_str());
        let all = [
            (true, Column::left("call", ""), row.arm.shown_label().into()),
            (
                true,
                Column::left("time", "ns per call [95%]"),
                interval_text(Some(row.ns), 1.0).into(),
            ),
            (true, Column::left("time", &times), row.times().or_dash(with_interval).into()),
            (true, Column::right("calls", "million/s"), three_digits(1e3 / row.ns.value).into()),
            (moves, Column::right("rate", unit.name), rate.unwrap_or_default().into()),
            (wide, Column::right("CPU", "ns per call"), value(|f| f.tx_cpu_ns_per_message)),
            (has_cycles, Column::right("cycles", "per call"), value(|f| f.cycles_per_message)),
            (
                has_cycles,
                Column::right("instructions", "per call"),
                value(|f| f.instructions_per_message),
            ),
            (wide, Column::prose("what is done"), what.into()),
        ];
        all.into_iter().filter(|(has, ..)| *has).map(|(_, head, entry)| (head, entry)).collect()
    };
    let subject = words::subject(&run.header, &cell.cell);
    let cpu = if wide { "; CPU: totals of its own trials" } else { "" };
    let caption = format!(
        "Calls by cost (multiple of {0} in the typical slice; times are those of {0} and the \
         multiple{cpu}): {subject}",
        run.header.plan.baseline
    );
    Table { caption, ..results::filled(None, &[(String::new(), all)], false, |_| None, row) }
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
    let columns =
        vec![Column::left("call", ""), Column::left("cell", ""), Column::prose("no figure")];
    let mut table = Table::new("Calls without figures", columns);
    for cell in &analysis.cells {
        for arm in cell.arms.iter().filter(|arm| arm.status != Status::Ok) {
            let why = arm.reason.as_deref().unwrap_or(arm.status.word());
            let cell = cell.cell.to_string();
            table.push(vec![arm.arm.label.as_str().into(), cell.into(), why.into()]);
        }
    }
    table.with_rows()
}

/// Time per call by how many threads make it, a table for each block; none where the run has one
/// count.
pub(crate) fn threads(run: &Run, analysis: &Analysis) -> Vec<Table> {
    by_threads(analysis).iter().filter_map(|cells| of_threads(run, cells)).collect()
}

fn of_threads(run: &Run, cells: &[&CellAnalysis]) -> Option<Table> {
    let first = cells.first()?;
    let mut columns = vec![Column::left("call", "")];
    for cell in cells {
        let name = words::threads(cell.cell.threads);
        columns.push(Column::left(&name, "ns per call of all [95%]"));
    }
    columns.push(Column::right("gain", "× calls per s"));
    let blocks = first.cell.own_size().map_or_else(String::new, |size| format!(": {size}"));
    let mut table = Table::new(format!("Calls by several threads at once{blocks}"), columns);
    for row in rows(run, first) {
        let of = |cell: &&CellAnalysis| time_of(cell, &row.arm.arm.primitive);
        let gain = cells.last().and_then(of).or_dash(|ns| ratio(row.ns.value / ns.value));
        let times = cells.iter().map(|cell| interval_text(of(cell), 1.0));
        let entries = std::iter::once(row.arm.shown_label()).chain(times).chain([gain]);
        table.push(entries.map(Entry::from).collect());
    }
    Some(table)
}

/// Time per call by how many bytes it moves, a table for each thread count; none where the run
/// has one size.
pub(crate) fn sizes(run: &Run, analysis: &Analysis) -> Vec<Table> {
    by_size(analysis).iter().map(|cells| of_sizes(run, cells)).collect()
}

/// The same of one thread count.
pub(super) fn of_sizes(run: &Run, cells: &[&CellAnalysis]) -> Table {
    let size = |cell: &&CellAnalysis| cell.cell.size.to_string();
    let mut columns = vec![Column::left("call", "")];
    columns.extend(cells.iter().map(|cell| Column::left(&size(cell), "ns per call [95%]")));
    let threads = cells.first().map_or(1, |cell| cell.cell.threads);
    let caption = format!("Time per call by block size, {}", words::threads(threads));
    let mut table = Table::new(&caption, columns);
    for (id, label) in labels(run, cells) {
        let times = cells.iter().map(|cell| interval_text(time_of(cell, &id), 1.0));
        table.push(std::iter::once(label).chain(times).map(Entry::from).collect());
    }
    table
}

/// The calls that have a figure in some cell, those first that are cheapest in the first one:
/// ids and labels.
pub(super) fn labels(run: &Run, cells: &[&CellAnalysis]) -> Vec<(String, String)> {
    let name = |row: Row<'_>| (row.arm.arm.primitive.clone(), row.arm.shown_label());
    distinct(cells.iter().flat_map(|cell| rows(run, cell)).map(name))
}

/// Time per call by how many are made in a row; null where the plan asks for
/// none.
pub(crate) fn in_a_row(run: &Run, analysis: &Analysis) -> Option<Table> {
    let cells = series(analysis);
    let steady = steady(analysis)?;
    if cells.is_empty() {
        return None;
    }
    let mut columns = vec![Column::left("call", "")];
    columns
        .extend(cells.iter().map(|(n, _)| Column::right(&format!("{n} in a row"), "ns per call")));
    columns.push(Column::right("full slice", "ns per call"));
    let block = steady.cell.own_size().map_or_else(String::new, |size| format!(": {size}"));
    let mut table = Table::new(format!("Time per call by calls in a row{block}"), columns);
    for row in rows(run, steady) {
        let of = |cell: &CellAnalysis| value(time_of(cell, &row.arm.arm.primitive));
        let times = cells.iter().map(|(_, cell)| of(cell)).chain([three_digits(row.ns.value)]);
        let entries = std::iter::once(row.arm.shown_label()).chain(times);
        table.push(entries.map(Entry::from).collect());
    }
    Some(table)
}

/// What was called, by kind.
pub(crate) fn kinds(run: &Run) -> Table {
    let columns = vec![
        Column::left("kind", ""),
        Column::left("call", ""),
        Column::prose("what is done"),
        Column::right("system calls", "count"),
        Column::right("bytes", "count"),
    ];
    let mut table = Table::new("What each call is", columns);
    for &kind in CallKind::ALL {
        let of_kind = run.header.calls.iter().filter(|facts| facts.kind == kind);
        for (i, facts) in of_kind.enumerate() {
            let name = if i == 0 { kind.word() } else { "" };
            let bytes = match facts.bytes {
                own if own == 0 || run.header.plan.sizes.is_empty() => own.to_string(),
                _ => "a block".to_owned(),
            };
            let entries = vec![
                name.into(),
                facts.id.as_str().into(),
                facts.summary.as_str().into(),
                facts.calls.to_string().into(),
                bytes.into(),
            ];
            table.push_row(i == 0, entries);
        }
    }
    table
}

/// A time with its interval and how many trials it is of.
pub(super) fn estimate(ns: Estimate) -> String {
    let interval = ns.interval.map(|i| format!(" {}", number::ends(i, nanoseconds)));
    format!("{}{}, n = {}", nanoseconds(ns.value), interval.unwrap_or_default(), ns.n)
}

/// What a bar says when it is pointed at.
pub(super) fn hover(row: &Row<'_>) -> String {
    let what = row.facts.map_or("", |facts| facts.summary.as_str());
    let role = if row.arm.arm.role == Role::Control { ", a control" } else { "" };
    format!("{}{role}: {}; {what}", row.arm.arm.label, estimate(row.ns))
}
