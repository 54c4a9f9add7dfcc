//! What the processor and the kernel counted for a model, for server and client, in total
//! and per request, and how that goes with what a request costs.

use iolens_model::arm::Role;
use iolens_model::outcome::Status;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{
    ArmAnalysis, CellAnalysis, CpuOf, CpuShares, EndFigures, EndMetric, Estimate,
};

use super::processors::by_end;
use super::views::View;
use crate::figure::metric::{Metric, plain};

/// A row: its metric and name, and the unit behind it with its size.
pub(crate) struct Row {
    metric: EndMetric,
    pub(crate) name: &'static str,
    unit: &'static str,
    pub(super) size: f64,
}

const fn row(metric: EndMetric, name: &'static str) -> Row {
    Row { metric, name, unit: "", size: 1.0 }
}

/// Of nanoseconds.
const fn time(metric: EndMetric, name: &'static str) -> Row {
    Row { unit: ", µs", size: 1e3, ..row(metric, name) }
}

use EndMetric::*;

/// In the order of perf stat.
pub(super) const ROWS: [Row; 25] = [
    time(TaskClock, "task-clock"),
    row(CpusUtilized, "CPUs utilized"),
    row(SystemCalls, "system calls"),
    row(ContextSwitches, "context switches"),
    row(VoluntarySwitches, "voluntary switches"),
    row(InvoluntarySwitches, "involuntary switches"),
    row(Migrations, "migrations"),
    row(MinorFaults, "minor page faults"),
    row(MajorFaults, "major page faults"),
    time(RunDelay, "ready without a CPU"),
    row(Cycles, "cycles"),
    row(CyclesUser, "cycles, user"),
    row(CyclesKernel, "cycles, kernel"),
    row(ClockGhz, "clock, GHz"),
    row(StalledFrontend, "stalled cycles, front end"),
    row(StalledBackend, "stalled cycles, back end"),
    row(Instructions, "instructions"),
    row(InstructionsPerCycle, "instructions per cycle"),
    row(Branches, "branches"),
    row(BranchMisses, "branch misses"),
    Row { unit: ", %", size: 0.01, ..row(BranchMissRate, "branch misses of branches") },
    row(L1dLoads, "L1d loads"),
    row(L1dMisses, "L1d misses"),
    row(LlcReferences, "LLC references"),
    row(LlcMisses, "LLC misses"),
];

impl Row {
    /// In total; nothing of what has no total.
    pub(super) fn total(&self, end: &EndFigures) -> Option<String> {
        let total = end.get(self.metric)?.total?;
        Some(match self.unit {
            "" => whole(total),
            _ => format!("{} ms", three_digits(total as f64 / 1e6)),
        })
    }

    pub(super) fn estimate(&self, end: &EndFigures) -> Option<Estimate> {
        end.value(self.metric)
    }

    /// Per request; times in µs, shares in percent.
    pub(super) fn value(&self, end: &EndFigures) -> Option<f64> {
        Some(self.estimate(end)?.value / self.size)
    }

    pub(super) fn title(&self) -> String {
        format!("{}{}", self.name, self.unit)
    }

    pub(super) fn is_cost(&self) -> bool {
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

/// The models that have numbers and the baseline's copy, the cheapest first.
pub(crate) fn by_cost(cell: &CellAnalysis) -> Vec<&ArmAnalysis> {
    let cost = |arm: &ArmAnalysis| COST.of(arm).map_or(f64::INFINITY, |cost| cost.value);
    let has_numbers = |arm: &&ArmAnalysis| arm.status == Status::Ok;
    let mut arms: Vec<&ArmAnalysis> = cell.arms.iter().filter(has_numbers).collect();
    arms.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    arms
}

/// The models that were counted, the cheapest first.
pub(super) fn counted(cell: &CellAnalysis) -> Vec<(&ArmAnalysis, &EndFigures)> {
    let arms = by_cost(cell).into_iter();
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

/// The shares of the server's own CPUs, where it shares none with its client.
pub(super) fn own_cpus(arm: &ArmAnalysis) -> Option<CpuShares> {
    let ends = by_end(&arm.server.as_ref()?.cpus_in_slices);
    ends.into_iter().find(|(end, _)| *end == CpuOf::Server).map(|(_, shares)| shares)
}

/// Whether the CPUs of any server were its alone.
pub(crate) fn has_own_cpus(view: &View) -> bool {
    counted(&view.cell).iter().any(|(arm, _)| own_cpus(arm).is_some())
}

/// Models that a rank correlation needs at least: of four, one order in 24 is perfect by
/// chance.
pub(super) const ENOUGH: usize = 5;

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
pub(super) fn points(row: &Row, all: &[(&ArmAnalysis, &EndFigures)]) -> Vec<(f64, f64)> {
    all.iter().filter_map(|(arm, end)| Some((row.value(end)?, COST.of(arm)?.value))).collect()
}

/// Spearman's rank correlation, equal values with their mean rank; `None` where one of the two is
/// the same everywhere.
pub(super) fn correlation(points: &[(f64, f64)]) -> Option<f64> {
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

// What is shown of a server: what a request costs, how many there are, how long they
// take, and what the kernel and the processor counted for each.

/// What the server spent.
macro_rules! of {
    ($metric:ident) => {
        |arm| arm.server.as_ref()?.server.value(EndMetric::$metric)
    };
}

const fn micros(metric: Metric) -> Metric {
    Metric { divisor: 1e3, ..metric }
}

/// CPU time of the server's threads and children, user and kernel, of a request.
pub(crate) const COST: Metric = micros(plain("Server CPU time", "µs per request", of!(TaskClock)));
/// Right replies.
pub(crate) const THROUGHPUT: Metric =
    plain("Requests answered", "per second", |arm| Some(arm.server.as_ref()?.requests_per_s));

/// Percentiles from when requests were due.
pub(crate) const LATENCY: [Metric; 3] = [
    micros(plain("p50", "µs", |arm| arm.latency.as_ref()?.p50_ns)),
    micros(plain("p99", "µs", |arm| arm.latency.as_ref()?.p99_ns)),
    micros(plain("p99.9", "µs", |arm| arm.latency.as_ref()?.p999_ns)),
];

const EACH: &str = "per request";

/// What is counted of the server, with the middle of the name of its figure.
pub(crate) const COUNTERS: [(Metric, &str); 15] = [
    (plain("CPUs utilized", "of the server", of!(CpusUtilized)), "cpus-utilized"),
    (plain("Context switches", EACH, of!(ContextSwitches)), "switches"),
    (plain("Migrations", EACH, of!(Migrations)), "migrations"),
    (plain("Minor page faults", EACH, of!(MinorFaults)), "minor-faults"),
    (plain("Major page faults", EACH, of!(MajorFaults)), "major-faults"),
    (micros(plain("Time ready without a CPU", "µs per request", of!(RunDelay))), "run-delay"),
    (plain("Cycles", EACH, of!(Cycles)), "cycles"),
    (plain("Instructions", EACH, of!(Instructions)), "instructions"),
    (plain("IPC", "instructions per cycle", of!(InstructionsPerCycle)), "ipc"),
    (plain("Branches", EACH, of!(Branches)), "branches"),
    (plain("Branch misses", EACH, of!(BranchMisses)), "branch-misses"),
    (plain("Cycles with a stalled front end", EACH, of!(StalledFrontend)), "stalled-frontend"),
    (plain("Cycles with a stalled back end", EACH, of!(StalledBackend)), "stalled-backend"),
    (plain("L1d misses", EACH, of!(L1dMisses)), "l1d-misses"),
    (plain("LLC misses", EACH, of!(LlcMisses)), "llc-misses"),
];

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
