//! Goodput, round trips and context switches against the thread count, one
//! panel per size.

use iolens_model::run::Run;
use iolens_stats::analysis::CellAnalysis;

use super::chart::{self, Along, Chart, Panel};
use super::metric::{GOODPUT, Metric, P50, P99, SWITCHES};
use super::{Figure, Group, INTERVALS, Sweep};
use crate::words;

const DRAWN: [(Metric, &str, &str); 4] = [
    (GOODPUT, "goodput-by-threads", "Goodput by thread count (Gbit/s of received payload)"),
    (P50, "latency-p50-by-threads", "Median round trip by thread count (µs)"),
    (P99, "latency-p99-by-threads", "99th percentile of the round trip by thread count (µs)"),
    (
        SWITCHES,
        "context-switches-by-threads",
        "Context switches by thread count (per message, both ends)",
    ),
];

/// The figures of one sweep; none with a single thread count.
pub(super) fn figures(run: &Run, sweep: &Sweep<'_>) -> Vec<Figure> {
    if sweep.curves.len() < 2 {
        return Vec::new();
    }
    let drawn = DRAWN.iter().filter(|(metric, _, _)| metric.is_in(&sweep.cells()));
    drawn.map(|(metric, stem, title)| figure(run, sweep, metric, stem, title)).collect()
}

fn figure(run: &Run, sweep: &Sweep<'_>, metric: &Metric, stem: &str, title: &str) -> Figure {
    let panel = |(size, cells): &(_, Vec<&CellAnalysis>)| {
        metric.panel(run, Along::Threads, cells, format!("{size}"))
    };
    let mut panels: Vec<Panel> = sweep.by_size().iter().map(panel).collect();
    panels.retain(Panel::has_values);
    let chart = Chart {
        title: title.to_owned(),
        subtitle: format!("{INTERVALS}; each panel has a scale of its own"),
        along: Along::Threads,
        x: chart::scale(Along::Threads, &panels),
        caches: Vec::new(),
        panels_by: "size",
        apart: 2.5,
        columns: panels.len().min(4),
        panels,
        footer: words::footer(&run.header, &sweep.setting),
    };
    sweep.figure(run, Group::Threads, stem, chart)
}
