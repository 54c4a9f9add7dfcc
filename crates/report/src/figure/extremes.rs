//! The best figures of a run and where they are; from where on more bytes or
//! more threads no longer help.

use iolens_document::table::{Entry, Filled, Table, left, prose, right};
use iolens_model::run::Run;
use iolens_stats::analysis::{
    Analysis, ArmAnalysis, CellAnalysis, Estimate, Extreme, ExtremeKind, Figures, PlateauAxis,
};

use super::chart;
use super::style::toned;
use crate::arms::{self, curves};
use crate::groups::grouped;
use crate::number::{self, NONE, Unit, interval_text};
use crate::words;

/// Plateaus along the threads that have a row each.
const THREAD_ROWS: usize = 4;

/// The table; `None` where the analysis has neither.
pub fn table(run: &Run, analysis: &Analysis) -> Option<Table> {
    if analysis.extremes.is_empty() && analysis.plateaus.is_empty() {
        return None;
    }
    let extremes = analysis.extremes.iter().map(|Extreme { what, value, label, cell }| {
        let (what, unit, divisor) = words_of(*what);
        let said = format!("{} {unit}", interval_text(Some(*value), divisor));
        let place = words::subject(&run.header, cell);
        row(what, said, arm(analysis, label), place, value.n.to_string())
    });
    let mut table = Table::of("Extremes of this run", extremes);
    let mut by_threads = Vec::from_iter(&analysis.plateaus);
    by_threads.retain(|plateau| plateau.axis == PlateauAxis::Threads);
    // Thread plateaus are as many as arms and sizes: more than a few are
    // counted here and listed with the question on threads.
    let are_many = by_threads.len() > THREAD_ROWS;
    let mut shown = Vec::from_iter(&analysis.plateaus);
    shown.retain(|plateau| !are_many || plateau.axis == PlateauAxis::Size);
    let rows = shown.into_iter().map(|plateau| {
        let more = match plateau.axis {
            PlateauAxis::Size => "more bytes do not help from",
            PlateauAxis::Threads => "more threads do not help from",
        };
        let best = interval_text(Some(plateau.best_beyond_bits_per_s), 1e9);
        let value = interval_text(Some(plateau.goodput_bits_per_s), 1e9);
        let said = format!("{value} Gbit/s, best beyond {best} Gbit/s");
        let place = words::subject(&run.header, &plateau.from);
        let n = plateau.goodput_bits_per_s.n.to_string();
        row(more, said, arm(analysis, &plateau.label), place, n)
    });
    table.fill_group(rows);
    if are_many {
        let counts = || by_threads.iter().map(|plateau| plateau.from.threads);
        let from = match (counts().min().unwrap_or(1), counts().max().unwrap_or(1)) {
            (least, most) if least == most => words::threads(most),
            (least, most) => format!("{least} to {most} threads"),
        };
        let said = format!("{from}, in {} settings of arm and size", by_threads.len());
        let place = "each under the question on threads".to_owned();
        let more = "more threads do not help from";
        table.fill(false, row(more, said, NONE.into(), place, NONE.to_owned()));
    }
    Some(table)
}

fn row(what: &str, value: String, arm: Entry, place: String, n: String) -> Vec<Filled> {
    vec![
        left("what", "", what),
        left("value", "[95%]", value),
        left("arm", "", arm),
        prose("where", place),
        right("n", "", n),
    ]
}

/// The best throughput of each method and where it had it, best first; `None` where all have one
/// place. Figures that are not ranked are no records.
pub fn by_method(run: &Run, analysis: &Analysis) -> Option<Table> {
    type Record<'a> = (&'a CellAnalysis, &'a ArmAnalysis, Estimate);
    let (rate, units): (fn(&Figures) -> Option<Estimate>, _) = match run.header.plan.net() {
        Some(_) => (|figures| figures.goodput_bits_per_s, number::BITS),
        None => (|figures| figures.read_bytes_per_s, number::BYTES),
    };
    let ranked =
        arms::in_cells(analysis).filter(|(_, arm)| arms::is_method(&arm.arm) && arm.is_ranked());
    let records =
        ranked.filter_map(|(cell, arm)| Some((&arm.arm.label, (cell, arm, arm.figure(rate)?))));
    let falling = |a: &Record<'_>, b: &Record<'_>| b.2.value.total_cmp(&a.2.value);
    let of_each = grouped(records).into_iter();
    let mut best: Vec<Record> =
        of_each.filter_map(|(_, of)| of.into_iter().min_by(falling)).collect();
    best.sort_by(falling);
    let unit = Unit::of(units, best.iter().map(|(.., rate)| rate.value));
    let row = |(cell, arm, rate): Record<'_>| {
        vec![
            left("method", "", toned(arm.shown_label(), &arm.arm.primitive)),
            left(
                "throughput",
                &format!("{} [95%]", unit.name),
                interval_text(Some(rate), unit.size),
            ),
            prose("where", words::subject(&run.header, &cell.cell)),
            right("n", "", rate.n.to_string()),
        ]
    };
    let table = Table::of("Best throughput of each method", best.into_iter().map(row));
    table.with_rows().filter(|_| analysis.cells.len() > 1)
}

/// What it is, the unit it is shown in, and the stored unit over that one.
fn words_of(kind: ExtremeKind) -> (&'static str, &'static str, f64) {
    match kind {
        ExtremeKind::HighestGoodput => ("highest throughput", "Gbit/s", 1e9),
        ExtremeKind::LowestNsPerMessage => ("lowest time per message", "ns", 1.0),
        ExtremeKind::LowestLatencyP50 => ("lowest median round trip", "µs", 1e3),
        ExtremeKind::LowestLatencyP99 => ("lowest 99th percentile of the round trip", "µs", 1e3),
        ExtremeKind::LeastCpuNsPerByte => ("least CPU time, both ends", "ns/B", 1.0),
        ExtremeKind::FewestL1dMissesPerKib => ("fewest L1d misses", "per KiB", 1.0),
        ExtremeKind::FewestLlcMissesPerKib => ("fewest LLC misses", "per KiB", 1.0),
        ExtremeKind::FewestContextSwitchesPerMessage => {
            ("fewest context switches", "per message", 1.0)
        }
    }
}

/// The arm with its colour; copied anywhere in the run is said.
fn arm(analysis: &Analysis, label: &str) -> Entry {
    let all: Vec<_> = curves(analysis).into_iter().flat_map(|(_, cells)| cells).collect();
    toned(chart::shown(&all, label), arms::primitive(analysis, label))
}
