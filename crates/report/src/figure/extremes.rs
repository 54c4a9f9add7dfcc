//! The best figures of a run and where they are; from where on more bytes or
//! more threads no longer help.

use iolens_document::table::{Column, Entry, Table};
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
#[must_use]
pub fn table(run: &Run, analysis: &Analysis) -> Option<Table> {
    if analysis.extremes.is_empty() && analysis.plateaus.is_empty() {
        return None;
    }
    let columns = vec![
        Column::left("what", ""),
        Column::left("value", "[95%]"),
        Column::left("arm", ""),
        Column::prose("where"),
        Column::right("n", ""),
    ];
    let mut table = Table::new("Extremes of this run", columns);
    for Extreme { what, value, label, cell } in &analysis.extremes {
        let (what, unit, divisor) = words_of(*what);
        table.push(vec![
            what.into(),
            format!("{} {unit}", interval_text(Some(*value), divisor)).into(),
            arm(analysis, label),
            words::subject(&run.header, cell).into(),
            value.n.to_string().into(),
        ]);
    }
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
        vec![
            more.into(),
            format!("{value} Gbit/s, best beyond {best} Gbit/s").into(),
            arm(analysis, &plateau.label),
            words::subject(&run.header, &plateau.from).into(),
            plateau.goodput_bits_per_s.n.to_string().into(),
        ]
    });
    chart::push_group(&mut table, rows);
    if are_many {
        let counts = || by_threads.iter().map(|plateau| plateau.from.threads);
        let from = match (counts().min().unwrap_or(1), counts().max().unwrap_or(1)) {
            (least, most) if least == most => words::threads(most),
            (least, most) => format!("{least} to {most} threads"),
        };
        table.push(vec![
            "more threads do not help from".into(),
            format!("{from}, in {} settings of arm and size", by_threads.len()).into(),
            NONE.into(),
            "each under the question on threads".into(),
            NONE.into(),
        ]);
    }
    Some(table)
}

/// The best throughput of each method and where it had it, best first; `None` where all have one
/// place. Figures that are not ranked are no records.
#[must_use]
pub fn by_method(run: &Run, analysis: &Analysis) -> Option<Table> {
    type Record<'a> = (&'a CellAnalysis, &'a ArmAnalysis, Estimate);
    let (rate, units): (fn(&Figures) -> Option<Estimate>, _) = match run.header.plan.net() {
        Some(_) => (|figures| figures.goodput_bits_per_s, number::BITS),
        None => (|figures| figures.read_bytes_per_s, number::BYTES),
    };
    let arms = analysis.cells.iter().flat_map(|cell| cell.arms.iter().map(move |arm| (cell, arm)));
    let ranked = arms.filter(|(_, arm)| chart::is_compared(&arm.arm) && arm.is_ranked());
    let records =
        ranked.filter_map(|(cell, arm)| Some((&arm.arm.label, (cell, arm, arm.figure(rate)?))));
    let falling = |a: &Record<'_>, b: &Record<'_>| b.2.value.total_cmp(&a.2.value);
    let of_each = grouped(records).into_iter();
    let mut best: Vec<Record> =
        of_each.filter_map(|(_, of)| of.into_iter().min_by(falling)).collect();
    best.sort_by(falling);
    let unit = Unit::of(units, best.iter().map(|(.., rate)| rate.value));
    let columns = vec![
        Column::left("method", ""),
        Column::left("throughput", &format!("{} [95%]", unit.name)),
        Column::prose("where"),
        Column::right("n", ""),
    ];
    let mut table = Table::new("Best throughput of each method", columns);
    for (cell, arm, rate) in best {
        table.push(vec![
            toned(arm.shown_label(), &arm.arm.primitive),
            interval_text(Some(rate), unit.size).into(),
            words::subject(&run.header, &cell.cell).into(),
            rate.n.to_string().into(),
        ]);
    }
    (analysis.cells.len() > 1).then(|| table.with_rows()).flatten()
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
