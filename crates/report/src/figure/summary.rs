//! All metrics of one size against the thread count, or of one thread count
//! against the size: one page. LLC references have a figure of their own.

use iolens_model::run::Run;
use iolens_model::units::Bytes;
use iolens_stats::analysis::CellAnalysis;

use super::chart::{self, Along, Chart, Panel};
use super::metric::{self, Metric};
use super::{Figure, Group, INTERVALS, Sweep};
use crate::words;

const METRICS: [Metric; 12] = [
    metric::GOODPUT,
    metric::TIME,
    metric::RATIO,
    metric::TX_CPU,
    metric::RX_CPU,
    metric::SOFTIRQ,
    metric::CYCLES,
    metric::L1D_MISSES,
    metric::LLC_MISSES,
    metric::SWITCHES,
    metric::P50,
    metric::P99,
];

/// Those of a run of `file`.
const OF_FILE: [Metric; 7] = [
    metric::READ_MIB,
    metric::BLOCK_TIME,
    metric::RATIO,
    metric::READ_CPU,
    metric::CYCLES,
    metric::LLC_MISSES,
    metric::SWITCHES_OF_BLOCKS,
];

/// The summary that a report shows: of its middle size where there are several
/// thread counts, else of its thread count.
pub(super) fn default(run: &Run, sweep: &Sweep<'_>) -> Option<Figure> {
    let sizes = sweep.by_size();
    if sweep.curves.len() > 1 {
        let (size, _) = sizes.get(sizes.len() / 2)?;
        return of_size(run, sweep, *size);
    }
    of_threads(run, sweep, sweep.curves.first()?.0)
}

/// All metrics of one size against the thread count.
pub(super) fn of_size(run: &Run, sweep: &Sweep<'_>, size: Bytes) -> Option<Figure> {
    let (_, cells) = sweep.by_size().into_iter().find(|(known, _)| *known == size)?;
    let fixed = size.to_string();
    draw(run, sweep, Along::threads(&run.header.plan), &cells, &fixed)
}

/// All metrics of one thread count against the size.
pub(super) fn of_threads(run: &Run, sweep: &Sweep<'_>, threads: u32) -> Option<Figure> {
    let (_, cells) = sweep.curves.iter().find(|(known, _)| *known == threads)?;
    draw(run, sweep, Along::sizes(&run.header.plan), cells, &words::threads(threads))
}

fn draw(
    run: &Run,
    sweep: &Sweep<'_>,
    along: Along,
    cells: &[&CellAnalysis],
    fixed: &str,
) -> Option<Figure> {
    let panel = |metric: &Metric| metric.panel(run, along, cells, metric.name.to_owned());
    let is_file = words::is_of_files(&run.header.plan);
    let all = if is_file { &OF_FILE[..] } else { &METRICS[..] };
    let measured = all.iter().filter(|metric| metric.is_in(cells));
    let panels: Vec<Panel> = measured.map(panel).collect();
    if panels.is_empty() {
        return None;
    }
    let by = match along {
        Along::Sizes => "message size",
        Along::Blocks => "block size",
        Along::Files => "file size",
        Along::Threads | Along::Workers => "thread count",
        Along::Calls | Along::Connections | Along::Offered | Along::Rate => "calls in a row",
    };
    let chart = Chart {
        title: format!("Summary at {fixed} by {by} (units above each panel)"),
        subtitle: format!("{INTERVALS}; each panel has a scale of its own"),
        along,
        x: chart::scale(along, &panels),
        caches: along.marks(&run.header.host),
        panels_by: "metric",
        apart: if along == Along::Threads { 2.5 } else { 0.0 },
        columns: panels.len().min(3),
        panels,
        footer: words::footer(&run.header, &sweep.setting),
    };
    let stem = format!("summary-{}", fixed.to_lowercase().replace(' ', ""));
    Some(sweep.figure(run, Group::Summary, &stem, chart))
}
