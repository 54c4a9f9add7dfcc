//! The figures of a run of `file` or `write`: the rate by block size, warm and cold, or
//! existing and new, side by side below what memory allows; the ratio; the time of a
//! block with the cost model; CPU time; the rate by thread count.

use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, CellAnalysis, CostModel};

use super::chart::{self, Along, Chart, Kind, Panel, Point, Series};
use super::metric::{Metric, READ_CPU, READ_GIB, READ_MIB};
use super::{Figure, Group, INTERVALS, Sweep, by_size, message_time, ratio, style};
use crate::bounds::{self, Bound};
use crate::{files, rates, words};

/// Every figure of some sweeps, which differ in their settings.
pub(super) fn all(run: &Run, analysis: &Analysis, sweeps: &[Sweep<'_>]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for group in beside(sweeps) {
        figures.extend(rate(run, analysis, &group));
        figures.extend(by_threads(run, &group));
    }
    for sweep in sweeps {
        figures.extend(ratio::figure(run, analysis, sweep));
        if sweep.by_size().len() > 1 {
            figures.extend(message_time::of_blocks(run, analysis, sweep));
            figures.extend(cpu(run, sweep));
        }
    }
    figures
}

/// The sweeps that differ in the state of the file alone.
fn beside<'s, 'a>(sweeps: &'s [Sweep<'a>]) -> Vec<Vec<&'s Sweep<'a>>> {
    let first = |sweep: &Sweep<'_>| files::first_state(&sweep.setting);
    let mut groups: Vec<Vec<&Sweep>> = Vec::new();
    for sweep in sweeps {
        match groups.iter_mut().find(|group| first(group[0]) == first(sweep)) {
            Some(group) => group.push(sweep),
            None => groups.push(vec![sweep]),
        }
    }
    groups
}

/// The state of the file, as this machine makes it.
fn state(run: &Run, sweep: &Sweep<'_>) -> String {
    let word = files::state(&sweep.setting).map(str::to_owned);
    words::joined(words::as_found(&run.header, &sweep.setting, Vec::from_iter(word)))
}

/// The metric of rates in the unit that suits the typical one.
pub(super) fn read_rate(cells: &[&CellAnalysis]) -> Metric {
    if files::unit(cells).name == READ_GIB.unit { READ_GIB } else { READ_MIB }
}

/// Rate by block size: a row per thread count, warm and cold beside each other.
fn rate(run: &Run, analysis: &Analysis, group: &[&Sweep<'_>]) -> Option<Figure> {
    let first = *group.first()?;
    let cells: Vec<&CellAnalysis> = group.iter().flat_map(|sweep| sweep.cells()).collect();
    let metric = read_rate(&cells);
    if !metric.is_in(&cells) {
        return None;
    }
    let mut panels = Vec::new();
    for (threads, _) in &first.curves {
        for sweep in group {
            let Some((_, cells)) = sweep.curves.iter().find(|(n, _)| n == threads) else {
                continue;
            };
            let title = format!("{}, {}", words::threads(*threads), state(run, sweep));
            let mut panel = metric.panel(run, Along::Blocks, cells, title);
            panel.bounds = bounds(run, analysis, sweep, *threads, &metric);
            panels.push(panel);
        }
    }
    chart::share_scales(&mut panels);
    knees(analysis, group, &metric, &mut panels);
    let title = format!("Throughput by block size ({})", metric.unit);
    let dashed = match run.header.plan.write() {
        Some(_) => "a copy in memory",
        None => "a scan and a copy in memory, or the best cold rate here",
    };
    let how = format!(
        "; dashed: {dashed}; dotted upright: where half of a block's time is its fixed cost"
    );
    let mut chart = by_size::chart(run, first, &title, &how, panels);
    chart.columns = group.len().min(2);
    Some(of_all(run, Group::Main, "rate-by-size", chart, group))
}

/// A figure of several sweeps, whose name has all their cache states.
fn of_all(run: &Run, group: Group, metric: &str, chart: Chart, sweeps: &[&Sweep<'_>]) -> Figure {
    let state = |sweep: &&Sweep<'_>| files::state(&sweep.setting);
    let states: Vec<&str> = sweeps.iter().filter_map(state).collect();
    let figure = sweeps[0].figure(run, group, metric, chart);
    let first = states.first().copied().unwrap_or_default();
    let (from, to) = (format!("{metric}-{first}"), format!("{metric}-{}", states.join("-")));
    Figure { file_stem: figure.file_stem.replacen(&from, &to, 1), ..figure }
}

/// Rooflines of memory where the file is warm; the best rate there is where it is cold.
fn bounds(
    run: &Run,
    analysis: &Analysis,
    sweep: &Sweep<'_>,
    threads: u32,
    metric: &Metric,
) -> Vec<(f64, String)> {
    let lines = match files::is_cold(&sweep.setting) {
        true => {
            let best = files::best_cold(analysis).into_iter();
            best.map(|(.., rate)| ("best cold rate here".to_owned(), rate.value)).collect()
        }
        false => lines_of_memory(run, threads),
    };
    let line = |(name, rate): (String, f64)| {
        (rate / metric.divisor, format!("{name}: {}", rates::rate(rate)))
    };
    lines.into_iter().map(line).collect()
}

/// What memory allows, by name.
fn lines_of_memory(run: &Run, threads: u32) -> Vec<(String, f64)> {
    let line = |bound: Bound| (format!("{}{}", bound.name, bound.mark()), bound.bytes_per_s);
    bounds::rooflines(run, threads).into_iter().map(line).collect()
}

/// An upright line at n½ of each curve that is affine, up to the rate there.
fn knees(analysis: &Analysis, group: &[&Sweep<'_>], metric: &Metric, panels: &mut [Panel]) {
    let mut places = panels.iter_mut();
    let Some(first) = group.first() else { return };
    for (threads, _) in &first.curves {
        for sweep in group {
            let Some((_, cells)) = sweep.curves.iter().find(|(n, _)| n == threads) else {
                continue;
            };
            let (Some(panel), Some(cell)) = (places.next(), cells.first()) else { return };
            let own = |model: &&CostModel| model.curve == cell.cell.curve() && model.is_affine();
            let drawn = analysis.cost_models.iter().filter(own);
            let lines: Vec<Series> =
                drawn.filter_map(|model| knee(analysis, model, cells, metric, panel)).collect();
            panel.series.extend(lines);
        }
    }
}

fn knee(
    analysis: &Analysis,
    model: &CostModel,
    cells: &[&CellAnalysis],
    metric: &Metric,
    panel: &Panel,
) -> Option<Series> {
    let x = model.half_size_bytes.value;
    let sizes = cells.iter().map(|cell| cell.cell.size.0 as f64);
    let (least, most) = sizes.fold((f64::MAX, 0.0_f64), |(a, b), n| (a.min(n), b.max(n)));
    let rate = files::bandwidth(model)?.value / 2.0 / metric.divisor;
    let foot = panel.extent()?.low;
    (least <= x && x <= most && foot < rate).then(|| Series {
        label: model.label.clone(),
        look: style::of(&files::primitive(analysis, &model.label)),
        kind: Kind::Model,
        points: [foot, rate].map(|value| bare(x, value)).into(),
        missing: Vec::new(),
    })
}

fn bare(x: f64, value: f64) -> Point {
    Point { x, value, interval: None, open: false, text: String::new(), hover: String::new() }
}

/// CPU time per byte by block size.
fn cpu(run: &Run, sweep: &Sweep<'_>) -> Option<Figure> {
    READ_CPU.is_in(&sweep.cells()).then(|| {
        let panels = by_size::panels(run, sweep, &READ_CPU);
        let title = "CPU time per byte by block size (ns/B)";
        let whose = match run.header.plan.write() {
            Some(_) => "; user and kernel, of the writing threads",
            None => "; user and kernel, of the reading threads",
        };
        let chart = by_size::chart(run, sweep, title, whose, panels);
        sweep.figure(run, Group::Time, "cpu-by-size", chart)
    })
}

/// Rate by thread count, one panel per block size and cache state.
pub(super) fn by_threads(run: &Run, group: &[&Sweep<'_>]) -> Option<Figure> {
    let first = *group.first()?;
    let cells: Vec<&CellAnalysis> = group.iter().flat_map(|sweep| sweep.cells()).collect();
    let metric = read_rate(&cells);
    if first.curves.len() < 2 || !metric.is_in(&cells) {
        return None;
    }
    let mut panels: Vec<Panel> = Vec::new();
    for sweep in group {
        let is_warm = !files::is_cold(&sweep.setting);
        for (size, cells) in sweep.by_size() {
            let title = format!("{size}, {}", state(run, sweep));
            let mut panel = metric.panel(run, Along::Workers, &cells, title);
            if is_warm {
                panel.bounds = all_threads(run, &metric);
            }
            panels.push(panel);
        }
    }
    panels.retain(Panel::has_values);
    chart::share_scales(&mut panels);
    let unit = metric.unit;
    let chart = Chart {
        title: format!("Throughput by thread count ({unit})"),
        subtitle: format!("{INTERVALS}; dashed: memory, with all threads at once"),
        along: Along::Workers,
        x: chart::scale(Along::Workers, &panels),
        caches: Vec::new(),
        panels_by: if run.header.plan.copy().is_some() { "file size" } else { "block size" },
        apart: 2.5,
        columns: panels.len().min(2),
        panels,
        footer: words::footer(&run.header, &first.setting),
    };
    Some(of_all(run, Group::Threads, "rate-by-threads", chart, group))
}

fn all_threads(run: &Run, metric: &Metric) -> Vec<(f64, String)> {
    let threads = run.header.calibration.threads;
    let line = |(name, rate): (String, f64)| {
        (rate / metric.divisor, format!("{name}, {}", words::threads(threads)))
    };
    lines_of_memory(run, threads).into_iter().map(line).collect()
}
