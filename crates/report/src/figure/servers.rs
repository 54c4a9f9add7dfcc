//! The figures of a run of `server`, against the number of connections with a plot for
//! each load: what a request costs, requests per second, the ratio to the baseline,
//! latency, and each counter per request; and latency against what is offered.

use iolens_model::cell::{Cell, Setting};
use iolens_model::run::Run;
use iolens_model::server::ServerSetting;
use iolens_stats::analysis::{Analysis, CellAnalysis};

use super::chart::{self, Along, Chart, Panel};
use super::metric::Metric;
use super::{Figure, Group, INTERVALS, Paper, Sweep, processors, ratio};
use crate::parts::{self, Part};
use crate::servers::{self, COST, COUNTERS, LATENCY, THROUGHPUT};
use crate::words;

/// Every figure of the study.
pub(super) fn all(paper: Paper, run: &Run, analysis: &Analysis) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (part, analysis) in servers::shown(analysis) {
        for place in places(&analysis) {
            figures.extend(of_place(paper, run, &analysis, &place, part.as_ref()));
        }
        figures.extend(super::searches::all(paper, run, &analysis, part.as_ref()));
    }
    figures.extend(textbook(paper, run, analysis));
    figures.extend(analysis.cells.iter().filter_map(|cell| processors::figure(paper, run, cell)));
    figures
}

/// The three textbook servers beside each other in a closed loop, whatever they make for each
/// connection.
fn textbook(paper: Paper, run: &Run, analysis: &Analysis) -> Vec<Figure> {
    let Some(part) = parts::textbook(analysis) else { return Vec::new() };
    let own = part.of(analysis);
    let one = |place: &Place<'_>| {
        let sweep =
            Sweep { setting: place.first.clone(), curves: Vec::new(), part: Some(&part), paper };
        Draw { run, analysis: &own, place, sweep }.cost_and_rate()
    };
    places(&own).iter().filter_map(one).collect()
}

/// The cells of one service at one place, whose connections and loads differ.
struct Place<'a> {
    first: &'a Cell,
    /// By load, connections rising.
    loads: Vec<(String, Vec<&'a CellAnalysis>)>,
}

fn places(analysis: &Analysis) -> Vec<Place<'_>> {
    let mut places: Vec<Place> = Vec::new();
    for cell in &analysis.cells {
        let Some(server) = cell.cell.server() else { continue };
        let known = places.iter().position(|place| is_beside(place.first, &cell.cell));
        let at = known.unwrap_or(places.len());
        if at == places.len() {
            places.push(Place { first: &cell.cell, loads: Vec::new() });
        }
        let loads = &mut places[at].loads;
        let title = server.load_in_words();
        match loads.iter_mut().find(|(known, _)| *known == title) {
            Some((_, cells)) => cells.push(cell),
            None => loads.push((title, vec![cell])),
        }
    }
    let by_connections = |cell: &&CellAnalysis| cell.cell.server().map(|s| s.connections);
    for (_, cells) in places.iter_mut().flat_map(|place| &mut place.loads) {
        cells.sort_by_key(by_connections);
    }
    places
}

/// Whether cells differ in connections and load alone.
pub(super) fn is_beside(a: &Cell, b: &Cell) -> bool {
    let place = |cell: &Cell| match &cell.setting {
        Setting::Server(ServerSetting { topology, service, length, .. }) => {
            Some((*topology, service.clone(), *length, cell.threads))
        }
        _ => None,
    };
    place(a) == place(b)
}

fn of_place(
    paper: Paper,
    run: &Run,
    analysis: &Analysis,
    place: &Place<'_>,
    part: Option<&Part>,
) -> Vec<Figure> {
    let sweep = Sweep { setting: place.first.clone(), curves: Vec::new(), part, paper };
    let draw = Draw { run, analysis, place, sweep };
    let mut figures = Vec::new();
    let cost = draw.by_connections(&COST, &place.loads, Group::Main, "cost-by-connections");
    figures.extend(cost);
    figures.extend(draw.ratio());
    let is_closed = |cells: &[&CellAnalysis]| !cells.iter().any(|cell| is_open(cell));
    let closed: Vec<_> =
        place.loads.iter().filter(|(_, cells)| is_closed(cells)).cloned().collect();
    let stem = "throughput-by-connections";
    figures.extend(draw.by_connections(&THROUGHPUT, &closed, Group::Main, stem));
    figures.extend(draw.latency_by_offered());
    figures.extend(draw.latency_by_connections());
    for (metric, stem, _) in &COUNTERS {
        let stem = format!("{stem}-by-connections");
        figures.extend(draw.by_connections(metric, &place.loads, Group::Time, &stem));
    }
    figures
}

fn is_open(cell: &CellAnalysis) -> bool {
    cell.cell.server().is_some_and(ServerSetting::is_open_loop)
}

/// What the figures of a place have in common.
struct Draw<'a> {
    run: &'a Run,
    analysis: &'a Analysis,
    place: &'a Place<'a>,
    sweep: Sweep<'a>,
}

/// A plot: its title and its cells.
type Titled<'a> = (String, Vec<&'a CellAnalysis>);

impl Draw<'_> {
    fn title(&self, what: &str) -> String {
        let server = self.place.first.server();
        let service = server.map(|s| format!("{}, {}", s.service, s.length_in_words()));
        format!("{what}: {}", service.unwrap_or_default())
    }

    fn chart(&self, title: &str, how: &str, along: Along, panels: Vec<Panel>) -> Chart {
        Chart {
            title: self.title(title),
            subtitle: how.to_owned(),
            along,
            x: chart::scale(along, &panels),
            caches: Vec::new(),
            panels_by: "load",
            apart: 0.0,
            columns: panels.len().min(2),
            panels,
            footer: words::footer(&self.run.header, self.place.first),
        }
    }

    /// A metric with a plot for each load; nothing where no model has it above zero.
    fn by_connections(
        &self,
        metric: &Metric,
        loads: &[Titled<'_>],
        group: Group,
        stem: &str,
    ) -> Option<Figure> {
        let one = |(title, cells): &Titled<'_>| {
            metric.panel(self.run, Along::Connections, cells, title.clone())
        };
        let mut panels: Vec<Panel> = loads.iter().map(one).collect();
        panels.retain(|panel| panel.extent().is_some());
        if panels.is_empty() {
            return None;
        }
        chart::share_scales(&mut panels);
        let title = format!("{} by connections ({})", metric.name, metric.unit);
        let chart = self.chart(&title, INTERVALS, Along::Connections, panels);
        Some(self.sweep.figure(self.run, group, stem, chart))
    }

    /// What a request costs and how many there are, in a closed loop, where there are several
    /// models.
    fn cost_and_rate(&self) -> Option<Figure> {
        let closed = self.place.loads.iter().find(|(_, cells)| !cells.iter().any(|c| is_open(c)));
        let (_, cells) = closed?;
        let of = |metric: &Metric| {
            metric.panel(self.run, Along::Connections, cells, metric.name.to_owned())
        };
        let panels = vec![of(&COST), of(&THROUGHPUT)];
        let is_shown = |panel: &Panel| {
            panel.series.iter().filter(|series| !series.points.is_empty()).count() > 2
        };
        if !panels.iter().all(is_shown) {
            return None;
        }
        let title = "A closed loop by connections (CPU, µs per request; requests per second)";
        let mut chart = self.chart(title, INTERVALS, Along::Connections, panels);
        chart.panels_by = "quantity";
        Some(self.sweep.figure(self.run, Group::Main, "closed-loop-by-connections", chart))
    }

    /// What a request costs the baseline over what it costs a model.
    fn ratio(&self) -> Option<Figure> {
        let loads = &self.place.loads;
        let costs: Vec<(String, Vec<CellAnalysis>)> = loads
            .iter()
            .map(|(title, cells)| (title.clone(), cells.iter().map(|cell| cell.by_cpu()).collect()))
            .collect();
        let cells: Vec<Titled<'_>> =
            costs.iter().map(|(title, cells)| (title.clone(), cells.iter().collect())).collect();
        let titled = cells.iter().map(|(title, cells)| (title.clone(), cells.as_slice()));
        let mut panels = ratio::panels(self.run, self.analysis.delta, Along::Connections, titled);
        panels.retain(Panel::has_compared);
        if panels.is_empty() {
            return None;
        }
        let how = format!(
            "{INTERVALS}{}",
            ratio::how_to_read(self.run, &panels, ["cheaper", "costlier"])
        );
        let baseline = &self.run.header.plan.baseline;
        let title =
            format!("CPU per request, {baseline}'s over the model's, by connections (ratio)");
        let mut chart = self.chart(&title, &how, Along::Connections, panels);
        chart.apart = 3.5;
        Some(self.sweep.figure(self.run, Group::Crossover, "ratio-by-connections", chart))
    }

    /// Percentiles from when requests were due against the offered rate, a row for each
    /// number of connections; nothing of a single rate.
    fn latency_by_offered(&self) -> Option<Figure> {
        let open: Vec<&CellAnalysis> = self.cells().filter(|cell| is_open(cell)).collect();
        let mut by_connections: Vec<Titled<'_>> = Vec::new();
        for cell in open {
            let Some(server) = cell.cell.server() else { continue };
            let title = server.connections_in_words();
            match by_connections.iter_mut().find(|(known, _)| *known == title) {
                Some((_, cells)) => cells.push(cell),
                None => by_connections.push((title, vec![cell])),
            }
        }
        if by_connections.iter().all(|(_, cells)| cells.len() < 2) {
            return None;
        }
        for (_, cells) in &mut by_connections {
            cells.sort_by(|a, b| Along::Offered.of(a).total_cmp(&Along::Offered.of(b)));
        }
        let title = "Latency from when a request was due, by offered load (µs)";
        self.percentiles(title, "latency-by-offered", Along::Offered, &by_connections)
    }

    fn latency_by_connections(&self) -> Option<Figure> {
        let title = "Latency from when a request was due, by connections (µs)";
        let stem = "latency-by-connections";
        self.percentiles(title, stem, Along::Connections, &self.place.loads)
    }

    fn percentiles(
        &self,
        title: &str,
        stem: &str,
        along: Along,
        rows: &[Titled<'_>],
    ) -> Option<Figure> {
        let mut panels = Vec::new();
        for (row, cells) in rows {
            for metric in LATENCY {
                let title = format!("{}, {row}", metric.name);
                panels.push(metric.panel(self.run, along, cells, title));
            }
        }
        panels.retain(Panel::has_values);
        if panels.is_empty() {
            return None;
        }
        chart::share_scales(&mut panels);
        let how = format!(
            "{INTERVALS}; in a closed loop a request is due when it can be sent; no point where \
             there are too few requests for the percentile"
        );
        let mut chart = self.chart(title, &how, along, panels);
        chart.columns = LATENCY.len().min(chart.panels.len());
        Some(self.sweep.figure(self.run, Group::Latency, stem, chart))
    }

    fn cells(&self) -> impl Iterator<Item = &CellAnalysis> {
        self.place.loads.iter().flat_map(|(_, cells)| cells).copied()
    }
}
