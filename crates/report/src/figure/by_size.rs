//! A metric by message size, one panel per thread count: what most figures
//! of a sweep are.

use iolens_model::run::Run;
use iolens_stats::analysis::CellAnalysis;

use super::chart::{self, Along, Chart, Panel};
use super::metric::Metric;
use super::{INTERVALS, Sweep};
use crate::words;

/// A chart of panels along sizes.
pub(super) fn chart(
    run: &Run,
    sweep: &Sweep<'_>,
    title: &str,
    subtitle: &str,
    panels: Vec<Panel>,
) -> Chart {
    Chart {
        title: title.to_owned(),
        subtitle: format!("{INTERVALS}{subtitle}"),
        along: Along::sizes(&run.header.plan),
        x: chart::scale(Along::Sizes, &panels),
        caches: chart::caches(&run.header.host),
        panels_by: "panel",
        apart: 0.0,
        columns: 2.min(panels.len()),
        panels,
        footer: words::footer(&run.header, &sweep.setting),
    }
}

/// One panel per thread count, with a common scale.
pub(super) fn panels(run: &Run, sweep: &Sweep<'_>, metric: &Metric) -> Vec<Panel> {
    let one = |(threads, cells): &(u32, Vec<&CellAnalysis>)| {
        metric.panel(run, Along::Sizes, cells, sweep.panel(run, *threads))
    };
    let mut panels: Vec<Panel> = sweep.curves.iter().map(one).collect();
    chart::share_scales(&mut panels);
    panels
}

/// One row per thread count, one panel in it per metric; equal units share a
/// scale.
pub(super) fn split(run: &Run, sweep: &Sweep<'_>, metrics: &[Metric]) -> Vec<Panel> {
    let mut panels = Vec::new();
    for (threads, cells) in &sweep.curves {
        for metric in metrics {
            let title = format!("{}, {}", metric.name, words::threads(*threads));
            panels.push(metric.panel(run, Along::Sizes, cells, title));
        }
    }
    chart::share_scales(&mut panels);
    panels
}
