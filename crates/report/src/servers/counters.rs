//! What the processor and the kernel counted for a model, for server and client, in total
//! and per request: the table that perf stat prints, and its rows side by side with how they go
//! with what a request costs.

use iolens_document::{Column, Grid, Row as Line};
use iolens_model::arm::Role;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{ArmAnalysis, CellAnalysis, EndFigures, Estimate, Spent};

use super::{COST, View, read, tables};
use crate::number::optional;

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

/// A row: its name, and how it is made.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    make: Make,
}

const fn row(name: &'static str, make: Make) -> Row {
    Row { name, make }
}

/// In the order of perf stat.
const ROWS: [Row; 21] = [
    row("task-clock", Make::Time(|end| end.task_clock_ns)),
    row("CPUs utilized", Make::Over(|end| end.cpus_utilized)),
    row("context switches", Make::Count(|end| end.context_switches)),
    row("involuntary switches", Make::Count(|end| end.involuntary_switches)),
    row("migrations", Make::Count(|end| end.migrations)),
    row("minor page faults", Make::Count(|end| end.minor_faults)),
    row("major page faults", Make::Count(|end| end.major_faults)),
    row("ready without a CPU", Make::Time(|end| end.run_delay_ns)),
    row("cycles", Make::Count(|end| end.cycles)),
    row("clock, GHz", Make::Over(|end| end.clock_ghz)),
    row("stalled cycles, front end", Make::Count(|end| end.stalled_cycles_frontend)),
    row("stalled cycles, back end", Make::Count(|end| end.stalled_cycles_backend)),
    row("instructions", Make::Count(|end| end.instructions)),
    row("instructions per cycle", Make::Over(|end| end.instructions_per_cycle)),
    row("branches", Make::Count(|end| end.branches)),
    row("branch misses", Make::Count(|end| end.branch_misses)),
    row("branch misses of branches", Make::Share(|end| end.branch_miss_rate)),
    row("L1d loads", Make::Count(|end| end.l1d_loads)),
    row("L1d misses", Make::Count(|end| end.l1d_misses)),
    row("LLC references", Make::Count(|end| end.llc_references)),
    row("LLC misses", Make::Count(|end| end.llc_misses)),
];

impl Row {
    /// In total, and per request with the interval.
    fn of(&self, end: &EndFigures) -> Option<[Vec<String>; 2]> {
        Some(match self.make {
            Make::Count(of) => {
                let spent = of(end)?;
                [vec![whole(spent.total)], tables::span(Some(spent.per_request), 1.0)]
            }
            Make::Time(of) => {
                let spent = of(end)?;
                let total = format!("{} ms", three_digits(spent.total as f64 / 1e6));
                [vec![total], tables::span(Some(spent.per_request), 1e3)]
            }
            Make::Over(of) => [Vec::new(), tables::span(Some(of(end)?), 1.0)],
            Make::Share(of) => [Vec::new(), tables::span(Some(of(end)?), 0.01)],
        })
    }

    /// Per request; times in µs, shares in percent.
    fn value(&self, end: &EndFigures) -> Option<f64> {
        Some(match self.make {
            Make::Count(of) => of(end)?.per_request.value,
            Make::Time(of) => of(end)?.per_request.value / 1e3,
            Make::Over(of) => of(end)?.value,
            Make::Share(of) => of(end)?.value * 100.0,
        })
    }

    fn title(&self) -> String {
        match self.make {
            Make::Time(_) => format!("{}, µs", self.name),
            Make::Share(_) => format!("{}, %", self.name),
            Make::Count(_) | Make::Over(_) => self.name.to_owned(),
        }
    }

    fn is_cost(&self) -> bool {
        self.name == ROWS[0].name
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

/// Server and client of one model, in total and per request; `None` where no trial is used.
pub(crate) fn ends(arm: &ArmAnalysis) -> Option<Grid> {
    let server = arm.server.as_ref()?;
    let mut columns = vec![Column::left("")];
    for end in ["server", "client"] {
        columns.push(Column::right("total").below(end));
        columns.push(Column::of("per request [95%]", &tables::SPAN).below(""));
    }
    let row = |row: &Row| {
        let found = [&server.server, &server.client].map(|end| row.of(end));
        let is_counted = found.iter().any(Option::is_some);
        let mut cells = vec![vec![row.title()]];
        cells.extend(found.into_iter().flat_map(|end| end.unwrap_or_default()));
        is_counted.then_some(Line::Cells(cells))
    };
    let rows = ROWS.iter().filter_map(row).collect();
    Some(Grid { title: String::new(), columns, rows })
}

/// The models that were counted, the cheapest first.
fn counted(cell: &CellAnalysis) -> Vec<(&ArmAnalysis, &EndFigures)> {
    let arms = tables::by_cost(cell).into_iter();
    let arms = arms.filter(|arm| arm.arm.role != Role::SelfCheck);
    arms.filter_map(|arm| Some((arm, &arm.server.as_ref()?.server))).collect()
}

/// What was counted and is none with any model at any load.
pub(crate) fn never(views: &[View]) -> Vec<&'static str> {
    let is_never = |row: &&Row| {
        let all = views.iter().flat_map(|view| counted(&view.cell));
        let mut values = all.filter_map(|(_, end)| row.value(end)).peekable();
        values.peek().is_some() && values.all(|value| value == 0.0)
    };
    ROWS.iter().filter(is_never).map(|row| row.name).collect()
}

/// What was counted at the server for a request, the models side by side, without what there is
/// `never`.
pub(crate) fn side_by_side(view: &View, never: &[&str]) -> Option<Grid> {
    let all = counted(&view.cell);
    let has_correlation = all.len() >= ENOUGH;
    let mut columns = vec![Column::left("")];
    columns.extend(has_correlation.then(|| Column::right("with CPU")));
    columns.extend(all.iter().map(|(arm, _)| Column::decimal(&arm.arm.label)));
    let row = |row: &Row| {
        let values: Vec<Option<f64>> = all.iter().map(|(_, end)| row.value(end)).collect();
        if values.iter().all(Option::is_none) {
            return None;
        }
        let mut cells = vec![vec![row.title()]];
        if has_correlation {
            let found = correlation(&points(row, &all)).filter(|_| !row.is_cost());
            cells.push(found.map(signed).into_iter().collect());
        }
        cells.extend(values.into_iter().map(|value| vec![optional(value)]));
        Some(Line::Cells(cells))
    };
    let shown = ROWS.iter().filter(|row| !never.contains(&row.name));
    let rows: Vec<Line> = shown.filter_map(row).collect();
    (!rows.is_empty()).then(|| Grid { title: String::new(), columns, rows })
}

/// `0.93`, `−0.40`.
fn signed(correlation: f64) -> String {
    format!("{correlation:.2}").replace('-', "−")
}

/// Models that a rank correlation needs at least: of four, one order in 24 is perfect by
/// chance.
const ENOUGH: usize = 5;

/// How what is counted for a request goes with what it costs: each counter with its rank
/// correlation and of how many models that is.
pub(crate) fn going_with_cost(view: &View) -> Vec<(&'static str, f64, usize)> {
    let all = counted(&view.cell);
    let one = |row: &Row| {
        let points = points(row, &all);
        let found = correlation(&points).filter(|_| points.len() >= ENOUGH)?;
        Some((row.name, found, points.len()))
    };
    ROWS.iter().filter(|row| !row.is_cost()).filter_map(one).collect()
}

/// A count and the cost of each model that has both.
fn points(row: &Row, all: &[(&ArmAnalysis, &EndFigures)]) -> Vec<(f64, f64)> {
    all.iter().filter_map(|(arm, end)| Some((row.value(end)?, read(&COST, arm)?.value))).collect()
}

/// Spearman's rank correlation, equal values with their mean rank; `None` where one of the two is
/// the same everywhere.
fn correlation(points: &[(f64, f64)]) -> Option<f64> {
    let counts = ranks(points.iter().map(|point| point.0));
    let costs = ranks(points.iter().map(|point| point.1));
    let mean = (points.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let spread = (product(&counts, &counts) * product(&costs, &costs)).sqrt();
    (spread > 0.0).then(|| product(&counts, &costs) / spread)
}

fn ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let same = values.iter().filter(|other| *other == value).count() as f64;
        below + (same + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::correlation;

    /// Ranks 1, 2.5, 2.5, 4 against 1, 3, 2, 4 give 4.5 / √(4.5 · 5).
    #[test]
    fn ranks_are_compared_and_equal_counts_share_theirs() {
        assert_eq!(correlation(&[(1.0, 10.0), (2.0, 90.0), (9.0, 91.0)]), Some(1.0));
        assert_eq!(correlation(&[(3.0, 1.0), (2.0, 2.0), (1.0, 3.0)]), Some(-1.0));
        let tied = correlation(&[(1.0, 1.0), (2.0, 3.0), (2.0, 2.0), (5.0, 4.0)]);
        let tied = tied.expect("a spread");
        assert!((tied - 4.5 / 22.5_f64.sqrt()).abs() < 1e-12, "{tied}");
        assert_eq!(correlation(&[(2.0, 1.0), (2.0, 2.0), (2.0, 3.0)]), None);
    }
}
