//! The figures of a run of `file`, `write` or `copy`, besides those that every study with
//! sizes has. Of files the rate stands beside that in the other state of the file, below
//! what memory allows.

use iolens_model::cell::Cell;
use iolens_model::file::CacheState;
use iolens_model::run::Run;
use iolens_model::units::Bytes;
use iolens_stats::analysis::{Analysis, CellAnalysis, CostModel};

use crate::bounds::{self, Bound};
use crate::figure::chart::{self, BLOCKS, Chart, FILES, Kind, Panel, Point, Series, THREADS};
use crate::figure::metric::{self, BySize, Metric, plain};
use crate::figure::sweep::{Curve, Sweep};
use crate::figure::{Group, Plate};
use crate::groups::{first_of_each, grouped};
use crate::studies::files::facts;
use crate::{arms, number, words};

/// Bytes of a file.
const READ_GIB: Metric = Metric {
    divisor: Bytes::GIB as f64,
    judged: true,
    ..plain("Throughput", "GiB/s", |arm| arm.figures.as_ref()?.read_bytes_per_s)
};
/// The same where the typical one is below one GiB/s.
const READ_MIB: Metric = Metric { divisor: Bytes::MIB as f64, unit: "MiB/s", ..READ_GIB };
/// Time over blocks.
const BLOCK_TIME: Metric = Metric {
    judged: true,
    ..plain("Time per block", "ns", |arm| Some(arm.figures.as_ref()?.ns_per_message))
};
/// Time over whole files.
const COPY_TIME: Metric = Metric { name: "Time of a copy", unit: "ms", divisor: 1e6, ..BLOCK_TIME };
/// CPU time of the threads that read, write or copy.
const READ_CPU: Metric =
    plain("CPU time per byte", "ns/B", |arm| arm.figures.as_ref()?.tx_cpu_ns_per_byte);

const BLOCK_TIMES: BySize = BySize::one(Group::Main, "ns-per-block", &[BLOCK_TIME], "");
const DURATIONS: BySize =
    BySize::one(Group::Main, "duration", &[COPY_TIME], "; programs include their start");
const READING: &str = "; user and kernel, of the reading threads";
const WRITING: &str = "; user and kernel, of the writing threads";
const COPYING: &str =
    "; user and kernel, of the copying threads or, as wait4(2) reports, of programs";

/// Every figure of the study.
pub(crate) fn all(run: &Run, analysis: &Analysis) -> Vec<Plate> {
    // Whole files are copied.
    let sizes = if run.header.plan.copy().is_some() { FILES } else { BLOCKS };
    metric::by_size(run, analysis, sizes, of_sweep, beside)
}

/// Every figure of a sweep by itself.
fn of_sweep(sweep: &Sweep<'_>) -> Vec<Plate> {
    let plan = &sweep.run.header.plan;
    let cpu = |how| BySize::one(Group::Time, "cpu", &[READ_CPU], how).figure(sweep);
    let plates = match (plan.copy(), plan.write()) {
        (Some(_), _) => [copy_rate(sweep), DURATIONS.figure(sweep), cpu(COPYING)],
        (None, Some(_)) => [BLOCK_TIMES.with_fits(sweep), cpu(WRITING), None],
        (None, None) => [BLOCK_TIMES.with_fits(sweep), cpu(READING), None],
    };
    plates.into_iter().flatten().collect()
}

/// Every figure of the sweeps that differ in the state of the file alone.
fn beside(sweeps: &[Sweep<'_>]) -> Vec<Plate> {
    let sweeps = sweeps.iter().filter(|sweep| words::is_of_files(&sweep.run.header.plan));
    let groups = grouped(sweeps.map(|sweep| (facts::first_state(&sweep.setting), sweep)));
    let figures = groups.iter().filter_map(|(_, group)| {
        let curves = group.iter().flat_map(|sweep| &sweep.curves);
        let mut curves: Vec<Curve> = curves.cloned().collect();
        curves.sort_by_key(|curve| curve.threads);
        let sweep = group[0].with(curves);
        let metric = read_rate(&sweep)?;
        Some([rate(&sweep, &metric), by_threads(&sweep, &metric)])
    });
    figures.flatten().flatten().collect()
}

/// The state of the file, as this machine makes it.
fn state(run: &Run, cell: &Cell) -> String {
    let word = words::file_state(cell).map(str::to_owned);
    words::joined(words::as_found(&run.header, cell, Vec::from_iter(word)))
}

/// The metric of rates in the unit that suits the typical one, where there are some.
fn read_rate(sweep: &Sweep<'_>) -> Option<Metric> {
    let cells = sweep.cells();
    let metric = if facts::unit(&cells).name == READ_GIB.unit { READ_GIB } else { READ_MIB };
    metric.is_in(&cells).then_some(metric)
}

/// A bound at a rate.
fn line(metric: &Metric, name: &str, rate: f64) -> (f64, String) {
    (rate / metric.divisor, format!("{name}: {}", number::rate(rate)))
}

fn marked(bound: &Bound) -> String {
    format!("{}{}", bound.name, bound.mark())
}

/// Rate by block size: a row per thread count, warm and cold beside each other, below what
/// memory allows; cold below the best rate there is.
fn rate(sweep: &Sweep<'_>, metric: &Metric) -> Option<Plate> {
    let plan = &sweep.run.header.plan;
    if plan.copy().is_some() {
        return None;
    }
    let best = facts::best_cold(sweep.analysis);
    let best = best.map(|(.., rate)| line(metric, "best cold rate here", rate.value));
    let panels = sweep.curves.iter().map(|Curve { cells, threads, .. }| {
        let cell = &cells[0].cell;
        let title = format!("{}, {}", words::threads(*threads), state(sweep.run, cell));
        let lines = bounds::rooflines(sweep.run, *threads).into_iter();
        let bounds = match facts::is_cold(cell) {
            true => best.iter().cloned().collect(),
            false => lines.map(|of| line(metric, &marked(&of), of.bytes_per_s)).collect(),
        };
        Panel { bounds, ..metric.panel(sweep.run, sweep.sizes, cells, title) }
    });
    let mut panels: Vec<Panel> = panels.collect();
    chart::share_scales(&mut panels);
    for (panel, Curve { cells, .. }) in panels.iter_mut().zip(&sweep.curves) {
        let affine = sweep.models(cells).filter(|model| model.is_affine());
        let knees = affine.filter_map(|model| knee(sweep, model, cells, metric, panel));
        let knees: Vec<Series> = knees.collect();
        panel.series.extend(knees);
    }
    let dashed = match plan.write() {
        Some(_) => "a copy in memory",
        None => "a scan and a copy in memory, or the best cold rate here",
    };
    let how = format!(
        "; dashed: {dashed}; dotted upright: where half of a block's time is its fixed cost"
    );
    let title = format!("Throughput by block size ({})", metric.unit);
    let columns = states(sweep).len().min(2);
    let chart = Chart { columns, ..Chart::new(sweep.run, sweep.sizes, panels) };
    of_all(sweep, (Group::Main, "rate-by-size"), [&title, &how], chart)
}

fn states(sweep: &Sweep<'_>) -> Vec<&'static str> {
    let states = sweep.curves.iter().filter_map(|curve| words::file_state(&curve.cells[0].cell));
    first_of_each(states.map(|state| (state, state)))
}

/// A figure whose name has all states of the file.
fn of_all(
    sweep: &Sweep<'_>,
    (group, metric): (Group, &str),
    said: [&str; 2],
    chart: Chart,
) -> Option<Plate> {
    let plate = sweep.figure(group, metric, said, chart)?;
    let states = states(sweep);
    let (first, all) = (format!("{metric}-{}", states[0]), states.join("-"));
    let stem = plate.stem.replacen(&first, &format!("{metric}-{all}"), 1);
    Some(Plate { stem, ..plate })
}

/// An upright line at n½ of a curve, up to the rate there.
fn knee(
    sweep: &Sweep<'_>,
    model: &CostModel,
    cells: &[&CellAnalysis],
    metric: &Metric,
    panel: &Panel,
) -> Option<Series> {
    let x = model.half_size_bytes.value;
    let sizes = chart::hull(cells.iter().map(|cell| cell.cell.size.0 as f64))?;
    let rate = facts::bandwidth(model)?.value / 2.0 / metric.divisor;
    let foot = panel.extent()?.low;
    let points = [foot, rate].map(|value| Point { x, value, ..Point::default() }).into();
    let primitive = arms::primitive(sweep.analysis, &model.label);
    (sizes.contains(x) && foot < rate)
        .then(|| Series::new(&model.label, primitive, Kind::Model, points))
}

/// Rate of copies by file size, below what memory allows.
fn copy_rate(sweep: &Sweep<'_>) -> Option<Plate> {
    let metric = read_rate(sweep)?;
    let metrics = [metric];
    let shown = BySize::one(Group::Main, "rate", &metrics, "; dashed: a copy in memory");
    let mut chart = shown.chart(sweep);
    if sweep.setting.cache() == Some(CacheState::Warm) {
        for (panel, curve) in chart.panels.iter_mut().zip(&sweep.curves) {
            let limit = |(size, _)| bounds::copy_limit(sweep.run, curve.threads, size);
            let lines = sweep.by_size().into_iter().filter_map(limit);
            let lines = lines.map(|of| line(&metric, &marked(&of), of.bytes_per_s));
            panel.bounds = lines.collect();
            panel.bounds.dedup();
        }
    }
    chart::share_scales(&mut chart.panels);
    (sweep.by_size().len() > 1).then(|| shown.of(sweep, chart))?
}

/// Rate by thread count, one panel per size and cache state.
fn by_threads(sweep: &Sweep<'_>, metric: &Metric) -> Option<Plate> {
    let (run, plan) = (sweep.run, &sweep.run.header.plan);
    let all = bounds::threads_at_most(run);
    let lines: Vec<(f64, String)> = bounds::rooflines(run, all)
        .iter()
        .map(|of| {
            (of.bytes_per_s / metric.divisor, format!("{}, {}", marked(of), words::threads(all)))
        })
        .collect();
    let cells = sweep.cells().into_iter();
    let places = grouped(cells.map(|cell| ((cell.cell.size, state(run, &cell.cell)), cell)));
    let panels = places.into_iter().map(|((size, state), cells)| {
        let bounds = if facts::is_cold(&cells[0].cell) { Vec::new() } else { lines.clone() };
        Panel { bounds, ..metric.panel(run, THREADS, &cells, format!("{size}, {state}")) }
    });
    let mut panels: Vec<Panel> = panels.collect();
    panels.retain(Panel::has_values);
    chart::share_scales(&mut panels);
    let title = format!("Throughput by thread count ({})", metric.unit);
    let how = "; dashed: memory, with all threads at once";
    let panels_by = if plan.copy().is_some() { "file size" } else { "block size" };
    let chart = Chart { panels_by, ..Chart::new(run, THREADS, panels) };
    let has_several = sweep.curves.first()?.threads < sweep.curves.last()?.threads;
    has_several.then(|| of_all(sweep, (Group::Threads, "rate-by-threads"), [&title, how], chart))?
}
