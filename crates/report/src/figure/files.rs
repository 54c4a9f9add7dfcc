//! The figures of a run of `file`, `write` or `copy`, besides those that every study with
//! sizes has. Of files the rate stands beside that in the other state of the file, below
//! what memory allows.

use iolens_model::file::CacheState;
use iolens_stats::analysis::{CellAnalysis, CostModel};

use super::by_size::BySize;
use super::chart::{self, Along, Chart, Kind, Panel, Point, Series, THREADS};
use super::metric::{BLOCK_TIME, COPY_TIME, Metric, READ_CPU, READ_GIB, READ_MIB};
use super::{Figure, Group, Sweep, grouped};
use crate::bounds::{self, Bound};
use crate::{files, rates, words};

const BLOCK_TIMES: BySize = BySize {
    group: Group::Main,
    stem: "ns-per-block",
    what: "Time per block",
    unit: "ns",
    how: "",
    metrics: &[BLOCK_TIME],
};
const DURATIONS: BySize = BySize {
    group: Group::Main,
    stem: "duration",
    what: "Time of a copy",
    unit: "ms",
    how: "; programs include their start",
    metrics: &[COPY_TIME],
};
const CPU_TIME: BySize = BySize {
    group: Group::Time,
    stem: "cpu",
    what: "CPU time per byte",
    unit: "ns/B",
    how: "; user and kernel, of the reading threads",
    metrics: &[READ_CPU],
};
const CPU_TIME_OF_WRITES: BySize =
    BySize { how: "; user and kernel, of the writing threads", ..CPU_TIME };
const CPU_TIME_OF_COPIES: BySize = BySize {
    how: "; user and kernel, of the copying threads or, as wait4(2) reports, of programs",
    ..CPU_TIME
};

/// Every figure of a sweep by itself.
pub(super) fn all(sweep: &Sweep<'_>) -> Vec<Figure> {
    let plan = &sweep.run.header.plan;
    let figures = match (plan.copy(), plan.write()) {
        (Some(_), _) => {
            [copy_rate(sweep), DURATIONS.figure(sweep), CPU_TIME_OF_COPIES.figure(sweep)]
        }
        (None, Some(_)) => [BLOCK_TIMES.with_fits(sweep), CPU_TIME_OF_WRITES.figure(sweep), None],
        (None, None) => [BLOCK_TIMES.with_fits(sweep), CPU_TIME.figure(sweep), None],
    };
    figures.into_iter().flatten().collect()
}

/// Every figure of the sweeps that differ in the state of the file alone.
pub(super) fn beside(sweeps: &[Sweep<'_>]) -> Vec<Figure> {
    let sweeps = sweeps.iter().filter(|sweep| words::is_of_files(&sweep.run.header.plan));
    let groups = grouped(sweeps.map(|sweep| (files::first_state(&sweep.setting), sweep)));
    groups.iter().flat_map(|(_, group)| [rate(group), by_threads(group)]).flatten().collect()
}

/// The state of the file, as this machine makes it.
fn state(sweep: &Sweep<'_>) -> String {
    let word = files::state(&sweep.setting).map(str::to_owned);
    words::joined(words::as_found(&sweep.run.header, &sweep.setting, Vec::from_iter(word)))
}

/// The metric of rates in the unit that suits the typical one, where there are some.
fn read_rate(group: &[&Sweep<'_>]) -> Option<Metric> {
    let cells: Vec<&CellAnalysis> = group.iter().flat_map(|sweep| sweep.cells()).collect();
    let metric = if files::unit(&cells).name == READ_GIB.unit { READ_GIB } else { READ_MIB };
    metric.is_in(&cells).then_some(metric)
}

/// Rate by block size: a row per thread count, warm and cold beside each other.
fn rate(group: &[&Sweep<'_>]) -> Option<Figure> {
    let (first, metric) = (*group.first()?, read_rate(group)?);
    let plan = &first.run.header.plan;
    if plan.copy().is_some() {
        return None;
    }
    let along = Along::sizes(plan);
    let curves = || {
        let of_threads = |threads| {
            group.iter().flat_map(move |sweep| {
                let own = sweep.curves.iter().filter(move |curve| curve.threads == threads);
                own.map(move |curve| (sweep, curve))
            })
        };
        first.curves.iter().flat_map(move |curve| of_threads(curve.threads))
    };
    let panel = |(sweep, curve): (&&Sweep<'_>, &super::Curve<'_>)| {
        let title = format!("{}, {}", words::threads(curve.threads), state(sweep));
        let mut panel = metric.panel(first.run, along, &curve.cells, title);
        panel.bounds = bounds(sweep, curve.threads, &metric);
        panel
    };
    let mut panels: Vec<Panel> = curves().map(panel).collect();
    chart::share_scales(&mut panels);
    for (panel, (sweep, curve)) in panels.iter_mut().zip(curves()) {
        let models = sweep.models(&curve.cells).filter(|model| model.is_affine());
        let knee = |model| knee(sweep, model, &curve.cells, &metric, panel);
        let knees: Vec<Series> = models.filter_map(knee).collect();
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
    let chart = first.chart(along, &title, &how, panels);
    Some(of_all(Group::Main, "rate-by-size", Chart { columns: group.len().min(2), ..chart }, group))
}

/// A figure of several sweeps, whose name has all their cache states.
fn of_all(group: Group, metric: &str, chart: Chart, sweeps: &[&Sweep<'_>]) -> Figure {
    let states: Vec<&str> =
        sweeps.iter().filter_map(|sweep| files::state(&sweep.setting)).collect();
    let figure = sweeps[0].figure(group, metric, chart);
    let first = states.first().copied().unwrap_or_default();
    let (from, to) = (format!("{metric}-{first}"), format!("{metric}-{}", states.join("-")));
    Figure { file_stem: figure.file_stem.replacen(&from, &to, 1), ..figure }
}

/// Rooflines of memory where the file is warm; the best rate there is where it is cold.
fn bounds(sweep: &Sweep<'_>, threads: u32, metric: &Metric) -> Vec<(f64, String)> {
    let line =
        |name: String, rate: f64| (rate / metric.divisor, format!("{name}: {}", rates::rate(rate)));
    if files::is_cold(&sweep.setting) {
        let best = files::best_cold(sweep.analysis).into_iter();
        return best.map(|(.., rate)| line("best cold rate here".to_owned(), rate.value)).collect();
    }
    let bounds = bounds::rooflines(sweep.run, threads).into_iter();
    bounds.map(|bound| line(marked(&bound), bound.bytes_per_s)).collect()
}

fn marked(bound: &Bound) -> String {
    format!("{}{}", bound.name, bound.mark())
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
    let rate = files::bandwidth(model)?.value / 2.0 / metric.divisor;
    let foot = panel.extent()?.low;
    let points = [foot, rate].map(|value| Point { x, value, ..Point::default() }).into();
    let primitive = files::primitive(sweep.analysis, &model.label);
    (sizes.contains(x) && foot < rate)
        .then(|| Series::new(&model.label, &primitive, Kind::Model, points))
}

/// Rate of copies by file size, below what memory allows.
fn copy_rate(sweep: &Sweep<'_>) -> Option<Figure> {
    let metric = read_rate(&[sweep])?;
    let shown = BySize {
        group: Group::Main,
        stem: "rate",
        what: "Throughput",
        unit: metric.unit,
        how: "; dashed: a copy in memory",
        metrics: &[metric],
    };
    let mut chart = shown.chart(sweep).filter(|_| sweep.by_size().len() > 1)?;
    if sweep.setting.cache() == Some(CacheState::Warm) {
        for (panel, curve) in chart.panels.iter_mut().zip(&sweep.curves) {
            let limit = |(size, _)| bounds::copy_limit(sweep.run, curve.threads, size);
            let lines = sweep.by_size().into_iter().filter_map(limit).map(|bound| {
                let (rate, name) = (bound.bytes_per_s, marked(&bound));
                (rate / metric.divisor, format!("{name}: {}", rates::rate(rate)))
            });
            panel.bounds = lines.collect();
            panel.bounds.dedup();
        }
    }
    chart::share_scales(&mut chart.panels);
    Some(shown.of(sweep, chart))
}

/// Rate by thread count, one panel per size and cache state.
fn by_threads(group: &[&Sweep<'_>]) -> Option<Figure> {
    let (first, metric) = (*group.first()?, read_rate(group)?);
    if first.curves.len() < 2 {
        return None;
    }
    let header = &first.run.header;
    let all = header.calibration.threads;
    let by = words::threads(all);
    let of_memory: Vec<_> = bounds::rooflines(first.run, all)
        .iter()
        .map(|bound| (bound.bytes_per_s / metric.divisor, format!("{}, {by}", marked(bound))))
        .collect();
    let mut panels: Vec<Panel> = Vec::new();
    for sweep in group {
        for (size, cells) in sweep.by_size() {
            let title = format!("{size}, {}", state(sweep));
            let mut panel = metric.panel(first.run, THREADS, &cells, title);
            if !files::is_cold(&sweep.setting) {
                panel.bounds = of_memory.clone();
            }
            panels.push(panel);
        }
    }
    panels.retain(Panel::has_values);
    chart::share_scales(&mut panels);
    let title = format!("Throughput by thread count ({})", metric.unit);
    let how = "; dashed: memory, with all threads at once";
    let panels_by = if header.plan.copy().is_some() { "file size" } else { "block size" };
    let chart = Chart { panels_by, ..first.chart(THREADS, &title, how, panels) };
    Some(of_all(Group::Threads, "rate-by-threads", chart, group))
}
