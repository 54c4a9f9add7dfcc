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
    draw(run, sweep, Along::Threads, &cells, &fixed)
}

/// All metrics of one thread count against the size.
pub(super) fn of_threads(run: &Run, sweep: &Sweep<'_>, threads: u32) -> Option<Figure> {
    let (_, cells) = sweep.curves.iter().find(|(known, _)| *known == threads)?;
    draw(run, sweep, Along::Sizes, cells, &words::threads(threads))
}

fn draw(
    run: &Run,
    sweep: &Sweep<'_>,
    along: Along,
    cells: &[&CellAnalysis],
    fixed: &str,
) -> Option<Figure> {
    let panel = |metric: &Metric| metric.panel(run, along, cells, metric.name.to_owned());
    let measured = METRICS.iter().filter(|metric| metric.is_in(cells));
    let panels: Vec<Panel> = measured.map(panel).collect();
    if panels.is_empty() {
        return None;
    }
    let by = if along == Along::Sizes { "message size" } else { "thread count" };
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
