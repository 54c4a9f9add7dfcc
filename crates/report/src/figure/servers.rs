//! The figures of a run of `server`, against the number of connections with a plot for
//! each load: what a request costs, requests per second, the ratio to the baseline,
//! latency, and each counter per request; and latency against what is offered.

use super::chart::{CONNECTIONS, OFFERED};
use super::*;
use crate::servers::{self, COST, COUNTERS, LATENCY, THROUGHPUT, cost_contrast, is_open};

/// Every figure of the study.
pub(super) fn all(paper: Paper, run: &Run, analysis: &Analysis) -> Vec<Figure> {
    let mut figures = Vec::new();
    let parts = servers::shown(analysis);
    let is_divided = parts.len() > 1;
    for (part, analysis) in parts {
        let part = part.as_ref();
        figures.extend(sweeps(paper, run, &analysis, part).iter().flat_map(of_sweep));
        figures.extend(searches::all(paper, run, &analysis, part));
    }
    if is_divided {
        figures.extend(textbook(paper, run, analysis));
    }
    figures.extend(analysis.cells.iter().filter_map(|cell| bars::of_processors(paper, run, cell)));
    figures
}

/// The textbook servers beside each other in a closed loop, whatever they make for each
/// connection.
fn textbook(paper: Paper, run: &Run, analysis: &Analysis) -> Vec<Figure> {
    let Some(part) = parts::textbook(analysis) else { return Vec::new() };
    let own = part.of(analysis);
    sweeps(paper, run, &own, Some(&part)).iter().filter_map(cost_and_rate).collect()
}

/// The cells of one service at one place, a curve for each load, connections rising.
fn sweeps<'a>(
    paper: Paper,
    run: &'a Run,
    analysis: &'a Analysis,
    part: Option<&'a Part>,
) -> Vec<Sweep<'a>> {
    let servers = analysis.cells.iter().filter(|cell| cell.cell.server().is_some());
    let places = grouped(servers.map(|cell| (place(&cell.cell), cell)));
    let sweeps = places.into_iter().map(|(_, cells)| Sweep {
        run,
        analysis,
        part,
        paper,
        setting: cells[0].cell.clone(),
        curves: curves(&cells, ServerSetting::load_in_words, CONNECTIONS),
    });
    sweeps.collect()
}

/// Cells by something in words, in their order along something else.
fn curves<'a>(
    cells: &[&'a CellAnalysis],
    by: impl Fn(&ServerSetting) -> String,
    along: Along,
) -> Vec<Curve<'a>> {
    let titled = cells.iter().filter_map(|cell| Some((by(cell.cell.server()?), *cell)));
    let curves = grouped(titled).into_iter().map(|(title, mut cells)| {
        cells.sort_by(|a, b| along.of(a).total_cmp(&along.of(b)));
        Curve { title, threads: cells[0].cell.threads, cells }
    });
    curves.collect()
}

/// What cells have in common that differ in connections and load alone.
pub(super) fn place(cell: &Cell) -> impl PartialEq + use<> {
    let server = cell.server().map(|of| (of.topology, of.service.clone(), of.length));
    (server, cell.threads)
}

/// What is served, for titles.
pub(super) fn service(cell: &Cell) -> String {
    let service = cell.server().map(|s| format!("{}, {}", s.service, s.length_in_words()));
    service.unwrap_or_default()
}

fn of_sweep(sweep: &Sweep<'_>) -> Vec<Figure> {
    let closed = sweep.curves.iter().filter(|curve| !curve.cells.iter().any(|cell| is_open(cell)));
    let closed = sweep.with(closed.cloned().collect());
    let mut figures = Vec::from_iter(by_connections(sweep, &COST, Group::Main, "cost"));
    figures.extend(ratios(sweep));
    figures.extend(by_connections(&closed, &THROUGHPUT, Group::Main, "throughput"));
    figures.extend(latency_by_offered(sweep));
    figures.extend(latency(sweep, ("connections", "latency-by-connections"), CONNECTIONS));
    for (metric, stem) in &COUNTERS {
        figures.extend(by_connections(sweep, metric, Group::Time, stem));
    }
    figures
}

fn chart(sweep: &Sweep<'_>, along: Along, title: &str, how: &str, panels: Vec<Panel>) -> Chart {
    let title = format!("{title}: {}", service(&sweep.setting));
    Chart { panels_by: "load", ..sweep.chart(along, &title, how, panels) }
}

/// A metric with a plot for each load; nothing where no model has it above zero.
fn by_connections(sweep: &Sweep<'_>, metric: &Metric, group: Group, stem: &str) -> Option<Figure> {
    let mut panels = sweep.panels(CONNECTIONS, &[*metric]);
    panels.retain(|panel| panel.extent().is_some());
    let title = format!("{} by connections ({})", metric.name, metric.unit);
    let chart = chart(sweep, CONNECTIONS, &title, "", panels);
    sweep.figure(group, &format!("{stem}-by-connections"), chart)
}

/// What a request costs and how many there are, in a closed loop, where there are several
/// models.
fn cost_and_rate(sweep: &Sweep<'_>) -> Option<Figure> {
    let mut curves = sweep.curves.iter();
    let closed = curves.find(|curve| !curve.cells.iter().any(|cell| is_open(cell)))?;
    let panels = [COST, THROUGHPUT]
        .map(|metric| metric.panel(sweep.run, CONNECTIONS, &closed.cells, metric.name.to_owned()));
    let title = "A closed loop by connections (CPU, µs per request; requests per second)";
    if panels.iter().any(|panel| panel.series.len() < 3) {
        return None;
    }
    let chart = chart(sweep, CONNECTIONS, title, "", panels.into());
    let chart = Chart { panels_by: "quantity", ..chart };
    sweep.figure(Group::Main, "closed-loop-by-connections", chart)
}

/// What a request costs the baseline over what it costs a model.
fn ratios(sweep: &Sweep<'_>) -> Option<Figure> {
    let curves = sweep.curves.iter().filter(|curve| {
        let mut arms = curve.cells.iter().flat_map(|cell| &cell.arms);
        arms.any(|arm| {
            arm.arm.role == Role::Compared && ratio::usable(arm, cost_contrast).is_some()
        })
    });
    let sweep = sweep.with(curves.cloned().collect());
    let baseline = &sweep.run.header.plan.baseline;
    let title = format!(
        "CPU per request, {baseline}'s over the model's, by connections (ratio): {}",
        service(&sweep.setting)
    );
    let words = ["cheaper", "costlier"];
    let chart = ratio::chart(&sweep, CONNECTIONS, cost_contrast, &title, words);
    let chart = Chart { panels_by: "load", ..chart };
    sweep.figure(Group::Crossover, "ratio-by-connections", chart)
}

/// Against the offered rate, a row for each number of connections; nothing of a single rate.
fn latency_by_offered(sweep: &Sweep<'_>) -> Option<Figure> {
    let mut open = sweep.cells();
    open.retain(|cell| is_open(cell));
    let curves = curves(&open, ServerSetting::connections_in_words, OFFERED);
    let has_several = curves.iter().any(|curve| curve.cells.len() > 1);
    let names = ("offered load", "latency-by-offered");
    has_several.then(|| latency(&sweep.with(curves), names, OFFERED))?
}

/// Percentiles from when requests were due.
fn latency(sweep: &Sweep<'_>, (by, stem): (&str, &str), along: Along) -> Option<Figure> {
    let mut panels = sweep.panels(along, &LATENCY);
    panels.retain(Panel::has_values);
    let title = format!("Latency from when a request was due, by {by} (µs)");
    let how = "; in a closed loop a request is due when it can be sent; no point where there are \
               too few requests for the percentile";
    let chart = Chart { columns: LATENCY.len(), ..chart(sweep, along, &title, how, panels) };
    sweep.figure(Group::Latency, stem, chart)
}
