//! The best figures of a run and where they are; from where on more bytes or
//! more threads no longer help.

use iolens_stats::analysis::{Extreme, ExtremeKind, Plateau, PlateauAxis};

use super::*;
use crate::results::{curves, interval_text};

/// Plateaus along the threads that have a row each.
const THREAD_ROWS: usize = 4;

/// The table; null where the analysis has neither.
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
    for extreme in &analysis.extremes {
        table.push(extreme_row(run, analysis, extreme));
    }
    // Thread plateaus are as many as arms and sizes: more than a few are
    // counted here and listed with the question on threads.
    let by_threads = |p: &&Plateau| p.axis == PlateauAxis::Threads;
    let many = analysis.plateaus.iter().filter(by_threads).count() > THREAD_ROWS;
    let shown = analysis.plateaus.iter().filter(|p| !(many && by_threads(p)));
    for (i, plateau) in shown.enumerate() {
        let more = match plateau.axis {
            PlateauAxis::Size => "more bytes do not help from",
            PlateauAxis::Threads => "more threads do not help from",
        };
        let value = |estimate| format!("{} Gbit/s", interval_text(Some(estimate), 1e9));
        let text = format!(
            "{}, best beyond {}",
            value(plateau.goodput_bits_per_s),
            value(plateau.best_beyond_bits_per_s)
        );
        let row = vec![
            more.into(),
            text.into(),
            arm(analysis, &plateau.label),
            words::subject(&run.header, &plateau.from).into(),
            plateau.goodput_bits_per_s.n.to_string().into(),
        ];
        if i == 0 { table.push_group(row) } else { table.push(row) }
    }
    if many {
        let flat: Vec<&Plateau> = analysis.plateaus.iter().filter(by_threads).collect();
        let from = flat.iter().map(|p| p.from.threads);
        let (least, most) = (from.clone().min().unwrap_or(1), from.max().unwrap_or(1));
        let from =
            if least == most { words::threads(most) } else { format!("{least} to {most} threads") };
        table.push(vec![
            "more threads do not help from".into(),
            format!("{from}, in {} settings of arm and size", flat.len()).into(),
            NONE.into(),
            "each under the question on threads".into(),
            NONE.into(),
        ]);
    }
    Some(table)
}

fn extreme_row(run: &Run, analysis: &Analysis, extreme: &Extreme) -> Vec<Entry> {
    let (what, unit, divisor) = words_of(extreme.what);
    let value = |estimate: Estimate| format!("{} {unit}", interval_text(Some(estimate), divisor));
    vec![
        what.into(),
        value(extreme.value).into(),
        arm(analysis, &extreme.label),
        words::subject(&run.header, &extreme.cell).into(),
        extreme.value.n.to_string().into(),
    ]
}

/// What it is, the unit it is shown in, and the stored unit over that one.
fn words_of(kind: ExtremeKind) -> (&'static str, &'static str, f64) {
    match kind {
        ExtremeKind::HighestGoodput => ("highest goodput", "Gbit/s", 1e9),
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
    let primitive = crate::files::primitive(analysis, label);
    Entry::toned(chart::shown(&all, label), style::tone(&primitive))
}
