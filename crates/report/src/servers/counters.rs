//! What the processor and the kernel counted for a model, for server and client, in total
//! and per request: the table that perf stat prints, and its rows side by side.

use std::collections::BTreeMap;

use iolens_model::cell::Cell;
use iolens_model::outcome::Counts;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, CellAnalysis};

use super::counted::{Counted, End};
use super::models;
use crate::number::{NONE, list, percent};
use crate::table::{Column, Entry, Table, Tone};

type Of = fn(&Counts) -> Option<u64>;

/// How a row is made of counts.
#[derive(Clone, Copy)]
enum Make {
    /// A count, and so many per request.
    Count(Of),
    /// A time, ns; per request in µs.
    Time(Of),
    /// One count over another, in percent: there is nothing per request.
    Share(Of, Of),
    /// One count over another.
    Over(Of, Of),
    /// A time over that of the slices.
    Utilized(Of),
}

/// A row: its name, the metric that it is missing with, and how it is made.
struct Row {
    name: &'static str,
    metric: &'static str,
    make: Make,
}

const fn row(name: &'static str, metric: &'static str, make: Make) -> Row {
    Row { name, metric, make }
}

fn cycles(c: &Counts) -> Option<u64> {
    Some(c.pmu.cycles_user? + c.pmu.cycles_kernel?)
}

fn instructions(c: &Counts) -> Option<u64> {
    Some(c.pmu.instructions_user? + c.pmu.instructions_kernel?)
}

fn switches(c: &Counts) -> Option<u64> {
    Some(c.voluntary_switches? + c.involuntary_switches?)
}

/// In the order of perf stat.
const ROWS: [Row; 22] = [
    row("task-clock", "task_clock", Make::Time(|c| c.task_clock_ns)),
    row("CPUs utilized", "task_clock", Make::Utilized(|c| c.task_clock_ns)),
    row("context switches", "voluntary_switches", Make::Count(switches)),
    row("of them involuntary", "involuntary_switches", Make::Count(|c| c.involuntary_switches)),
    row("migrations", "migrations", Make::Count(|c| c.migrations.or(c.kernel.perf_migrations))),
    row("page faults, minor", "minor_faults", Make::Count(|c| c.minor_faults)),
    row("page faults, major", "major_faults", Make::Count(|c| c.major_faults)),
    row("ready without a CPU", "run_delay", Make::Time(|c| c.run_delay_ns)),
    row("cycles", "cycles_user", Make::Count(cycles)),
    row("clock (cycles per ns)", "cycles_user", Make::Over(cycles, |c| c.task_clock_ns)),
    row("instructions", "instructions_user", Make::Count(instructions)),
    row("IPC (instructions per cycle)", "instructions_user", Make::Over(instructions, cycles)),
    row(
        "cycles with a stalled front end",
        "stalled_cycles_frontend",
        Make::Count(|c| c.pmu.stalled_cycles_frontend),
    ),
    row(
        "cycles with a stalled back end",
        "stalled_cycles_backend",
        Make::Count(|c| c.pmu.stalled_cycles_backend),
    ),
    row("branches", "branches", Make::Count(|c| c.pmu.branches)),
    row("branch misses", "branch_misses", Make::Count(|c| c.pmu.branch_misses)),
    row(
        "branch misses of branches",
        "branch_misses",
        Make::Share(|c| c.pmu.branch_misses, |c| c.pmu.branches),
    ),
    row("L1d loads", "l1d_loads", Make::Count(|c| c.pmu.l1d_loads)),
    row("L1d misses", "l1d_misses", Make::Count(|c| c.pmu.l1d_misses)),
    row("L1d misses of loads", "l1d_misses", Make::Share(|c| c.pmu.l1d_misses, |c| c.pmu.l1d_loads)),
    row("LLC misses", "llc_misses", Make::Count(|c| c.pmu.llc_misses)),
    row(
        "LLC misses of references",
        "llc_misses",
        Make::Share(|c| c.pmu.llc_misses, |c| c.pmu.llc_references),
    ),
];

/// Value in total, and per request.
struct Found {
    total: String,
    per_request: String,
}

impl Row {
    fn of(&self, counted: &Counted<'_>, end: End) -> Option<Found> {
        let sum = |of: Of| counted.sum(end, of);
        let over = |a: Of, b: Of| Some((sum(a)?, sum(b).filter(|&b| b > 0.0)?));
        let per = |total: f64, scale: f64| {
            let each = counted.requests(end).map(|requests| total / scale / requests);
            each.map_or_else(|| NONE.to_owned(), small)
        };
        let alone = |total: String| Found { total, per_request: String::new() };
        match self.make {
            Make::Count(of) => {
                let total = sum(of)?;
                Some(Found { total: whole(total), per_request: per(total, 1.0) })
            }
            Make::Time(of) => {
                let total = sum(of)?;
                let text = format!("{} ms", three_digits(total / 1e6));
                Some(Found { total: text, per_request: format!("{} µs", per(total, 1e3)) })
            }
            Make::Share(a, b) => over(a, b).map(|(a, b)| alone(percent(a / b))),
            Make::Over(a, b) => over(a, b).map(|(a, b)| alone(three_digits(a / b))),
            Make::Utilized(of) => Some(alone(three_digits(sum(of)? / counted.time_ns()?))),
        }
    }
}

/// A count with thin blanks between thousands, as perf stat sets them apart.
fn whole(count: f64) -> String {
    let digits = format!("{count:.0}");
    let apart = |(i, digit): (usize, char)| {
        let left = digits.len() - i;
        let blank = (i > 0 && left % 3 == 0).then_some('\u{202f}');
        blank.into_iter().chain([digit])
    };
    digits.chars().enumerate().flat_map(apart).collect()
}

/// Three significant digits, however few there are per request.
fn small(value: f64) -> String {
    if value == 0.0 || value >= 0.1 {
        return three_digits(value);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "3 to 12")]
    let decimals = (2.0 - value.log10().floor()).clamp(3.0, 12.0) as usize;
    format!("{value:.decimals$}")
}

/// The counters of one model in one cell; null where none of its trials is used.
pub(crate) fn counters(run: &Run, analysis: &Analysis, cell: &Cell, label: &str) -> Option<Table> {
    let counted = Counted::of(run, analysis, cell, label)?;
    let columns = vec![
        Column::left(label, ""),
        Column::right("server", "total"),
        Column::right("server", "per request"),
        Column::right("client", "total"),
        Column::right("client", "per request"),
    ];
    let mut table = Table::new("", columns);
    let requests = |end| counted.requests(end).map_or_else(|| NONE.to_owned(), whole);
    table.push(vec![
        "requests".into(),
        requests(End::Server).into(),
        "".into(),
        requests(End::Client).into(),
        "".into(),
    ]);
    let reasons = crate::json::not_measured(run);
    let mut missing: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for row in &ROWS {
        let found = [End::Server, End::Client].map(|end| row.of(&counted, end));
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

/// One line of [`per_request`]: a model and its values per request at one end.
fn line(counted: &Counted<'_>, rows: &[&Row], end: End) -> Vec<Entry> {
    let of = |row: &&Row| {
        let found = row.of(counted, end);
        let text = found.map(|found| match found.per_request.is_empty() {
            true => found.total,
            false => found.per_request,
        });
        text.unwrap_or_else(|| NONE.to_owned()).into()
    };
    rows.iter().map(of).collect()
}

/// The models of a cell side by side: every counter that any of them has, per request, at
/// the server; null where there is nothing.
pub(crate) fn per_request(run: &Run, analysis: &Analysis, cell: &CellAnalysis) -> Option<Table> {
    let all: Vec<(&str, &str, Counted)> = models(cell)
        .filter_map(|arm| {
            let counted = Counted::of(run, analysis, &cell.cell, &arm.arm.label)?;
            Some((arm.arm.label.as_str(), arm.arm.primitive.as_str(), counted))
        })
        .collect();
    let has = |row: &&Row| all.iter().any(|(.., counted)| row.of(counted, End::Server).is_some());
    let rows: Vec<&Row> = ROWS.iter().filter(has).collect();
    let mut columns = vec![Column::left("model", "server, per request")];
    columns.extend(rows.iter().map(|row| Column::right(row.name, "")));
    let mut table = Table::new("", columns);
    for (label, primitive, counted) in &all {
        let mut entries = vec![Entry::toned(*label, Tone::Arm((*primitive).to_owned()))];
        entries.extend(line(counted, &rows, End::Server));
        table.push(entries);
    }
    (!table.rows.is_empty()).then_some(table)
}
