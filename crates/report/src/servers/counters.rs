//! What the processor and the kernel counted for a model, for server and client, in total
//! and per request: the table that perf stat prints, and its rows side by side.

use std::collections::BTreeMap;

use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, EndFigures, Estimate, Spent};

use super::models;
use crate::number::{self, NONE, list};
use crate::table::{Column, Entry, Table, Tone};

/// How a row is made of what an end spent.
#[derive(Clone, Copy)]
enum Make {
    /// A count, and so many per request.
    Count(fn(&EndFigures) -> Option<Spent>),
    /// A time, ns; per request in µs.
    Time(fn(&EndFigures) -> Option<Spent>),
    /// One count over another, of which there is nothing per request.
    Over(fn(&EndFigures) -> Option<Estimate>),
    /// The same in percent.
    Share(fn(&EndFigures) -> Option<Estimate>),
}

/// A row: its name, what the ends call it where they could not count it, and how it is
/// made.
struct Row {
    name: &'static str,
    metric: &'static str,
    make: Make,
}

const fn row(name: &'static str, metric: &'static str, make: Make) -> Row {
    Row { name, metric, make }
}

/// In the order of perf stat.
const ROWS: [Row; 21] = [
    row("task-clock", "task_clock", Make::Time(|end| end.task_clock_ns)),
    row("CPUs utilized", "task_clock", Make::Over(|end| end.cpus_utilized)),
    row("context switches", "voluntary_switches", Make::Count(|end| end.context_switches)),
    row("of them involuntary", "involuntary_switches", Make::Count(|end| end.involuntary_switches)),
    row("migrations", "migrations", Make::Count(|end| end.migrations)),
    row("page faults, minor", "minor_faults", Make::Count(|end| end.minor_faults)),
    row("page faults, major", "major_faults", Make::Count(|end| end.major_faults)),
    row("ready without a CPU", "run_delay", Make::Time(|end| end.run_delay_ns)),
    row("cycles", "cycles_user", Make::Count(|end| end.cycles)),
    row("clock, GHz", "cycles_user", Make::Over(|end| end.clock_ghz)),
    row("stalled cycles, front end", STALLED[0], Make::Count(|end| end.stalled_cycles_frontend)),
    row("stalled cycles, back end", STALLED[1], Make::Count(|end| end.stalled_cycles_backend)),
    row("instructions", "instructions_user", Make::Count(|end| end.instructions)),
    row("instructions per cycle", "instructions_user", Make::Over(|e| e.instructions_per_cycle)),
    row("branches", "branches", Make::Count(|end| end.branches)),
    row("branch misses", "branch_misses", Make::Count(|end| end.branch_misses)),
    row("branch misses of branches", "branch_misses", Make::Share(|end| end.branch_miss_rate)),
    row("L1d loads", "l1d_loads", Make::Count(|end| end.l1d_loads)),
    row("L1d misses", "l1d_misses", Make::Count(|end| end.l1d_misses)),
    row("LLC references", "llc_references", Make::Count(|end| end.llc_references)),
    row("LLC misses", "llc_misses", Make::Count(|end| end.llc_misses)),
];

const STALLED: [&str; 2] = ["stalled_cycles_frontend", "stalled_cycles_backend"];

/// In total, and per request.
struct Found {
    total: String,
    per_request: String,
}

impl Row {
    fn of(&self, end: &EndFigures) -> Option<Found> {
        let alone = |total: String| Found { total, per_request: String::new() };
        Some(match self.make {
            Make::Count(of) => {
                let spent = of(end)?;
                Found { total: whole(spent.total), per_request: each(spent.per_request, 1.0) }
            }
            Make::Time(of) => {
                let spent = of(end)?;
                let total = format!("{} ms", three_digits(spent.total as f64 / 1e6));
                Found { total, per_request: format!("{} µs", each(spent.per_request, 1e3)) }
            }
            Make::Over(of) => alone(each(of(end)?, 1.0)),
            Make::Share(of) => alone(format!("{} %", each(of(end)?, 0.01))),
        })
    }
}

/// A count with narrow blanks between thousands, as perf stat sets them apart.
fn whole(count: u64) -> String {
    let digits = count.to_string();
    let apart = |(i, digit): (usize, char)| {
        let is_between = i > 0 && (digits.len() - i).is_multiple_of(3);
        is_between.then_some('\u{202f}').into_iter().chain([digit])
    };
    digits.chars().enumerate().flat_map(apart).collect()
}

/// Three significant digits with the interval, however few there are per request.
fn each(estimate: Estimate, scale: f64) -> String {
    let value = three_digits(estimate.value / scale);
    match estimate.interval {
        Some(i) => format!("{value} {}", number::ends(i, |end| three_digits(end / scale))),
        None => value,
    }
}

/// The counters of one model in one cell; null where none of its trials is used.
pub(crate) fn counters(analysis: &Analysis, arm: &ArmAnalysis) -> Option<Table> {
    let server = arm.server.as_ref()?;
    let columns = vec![
        Column::left(&arm.arm.label, ""),
        Column::right("server", "total"),
        Column::right("server", "per request [95 %]"),
        Column::right("client", "total"),
        Column::right("client", "per request [95 %]"),
    ];
    let mut table = Table::new("", columns);
    let reasons = crate::json::not_measured(&analysis.told);
    let mut missing: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for row in &ROWS {
        let found = [&server.server, &server.client].map(|end| row.of(end));
        if found.iter().all(Option::is_none) {
            let why = reasons.get(row.metric).map_or("not counted in this run", String::as_str);
            missing.entry(why).or_default().push(row.name.to_owned());
            continue;
        }
        let mut entries: Vec<Entry> = vec![row.name.into()];
        for found in found {
            match found {
                Some(found) => entries.extend([found.total.into(), found.per_request.into()]),
                None => entries.extend([Entry::toned(NONE, Tone::Faint), Entry::default()]),
            }
        }
        table.push(entries);
    }
    for (why, names) in missing {
        table.note(&format!("null: {}: {why}", list(&names)));
    }
    Some(table)
}

/// The models of a cell side by side: every counter of the server that any of them has,
/// per request; null where there is nothing.
pub(crate) fn per_request(cell: &CellAnalysis) -> Option<Table> {
    let all: Vec<(&ArmAnalysis, &EndFigures)> =
        models(cell).filter_map(|arm| Some((arm, &arm.server.as_ref()?.server))).collect();
    let has = |row: &&Row| all.iter().any(|(_, end)| row.of(end).is_some());
    let rows: Vec<&Row> = ROWS.iter().filter(has).collect();
    let mut columns = vec![Column::left("model", "server")];
    let unit = |row: &Row| match row.make {
        Make::Count(_) => "per request",
        Make::Time(_) => "µs per request",
        Make::Over(_) => "ratio",
        Make::Share(_) => "%",
    };
    columns.extend(rows.iter().map(|row| Column::right(row.name, unit(row))));
    let mut table = Table::new("", columns);
    for (arm, end) in &all {
        let value = |row: &&Row| {
            let value = match row.make {
                Make::Count(of) => of(end).map(|spent| spent.per_request.value),
                Make::Time(of) => of(end).map(|spent| spent.per_request.value / 1e3),
                Make::Over(of) => of(end).map(|estimate| estimate.value),
                Make::Share(of) => of(end).map(|estimate| estimate.value * 100.0),
            };
            value.map_or_else(|| NONE.to_owned(), three_digits).into()
        };
        let mut entries =
            vec![Entry::toned(&arm.arm.label, crate::figure::style::tone(&arm.arm.primitive))];
        entries.extend(rows.iter().map(value));
        table.push(entries);
    }
    (!table.rows.is_empty()).then_some(table)
}
