//! The figures of a run of `server`, against the number of connections with a plot for
//! each load: what a request costs, requests per second, the ratio to the baseline,
//! latency, and each counter per request; and latency against what is offered. Of searches the
//! percentile of each model against the rate that it was offered, with the limit: a plot for
//! each number of connections.

use iolens_document::table::{Table, left, right};
use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::run::Run;
use iolens_model::server::ServerSetting;
use iolens_model::slo::{Goal, Percentile};
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Interval};
use iolens_stats::search::Answer;

use super::counters::{COST, COUNTERS, LATENCY, THROUGHPUT};
use super::processors;
use super::searches::{self, Found};
use super::views::{self, cost_contrast, is_open};
use crate::arms::of_cells;
use crate::figure::chart::{
    self, Along, CONNECTIONS, Chart, Kind, MESSAGES, OFFERED, Panel, Point, RATE, Series,
};
use crate::figure::metric::{self, Metric};
use crate::figure::style::toned;
use crate::figure::sweep::{Curve, Sweep};
use crate::figure::{Group, Marks, Plate};
use crate::groups::grouped;
use crate::number::InWords;
use crate::parts::Part;
use crate::{number, parts, words};

/// Every figure of the study.
pub(crate) fn all(run: &Run, analysis: &Analysis) -> Vec<Plate> {
    let mut figures = Vec::new();
    let parts = views::shown(analysis);
    let is_divided = parts.len() > 1;
    for (part, analysis) in parts {
        let part = part.as_ref();
        figures.extend(sweeps(run, &analysis, part).iter().flat_map(of_sweep));
        figures.extend(of_searches(run, &analysis, part));
    }
    if is_divided {
        figures.extend(textbook(run, analysis));
    }
    figures.extend(analysis.cells.iter().filter_map(|cell| processors::of_processors(run, cell)));
    figures
}

/// The textbook servers beside each other in a closed loop, whatever they make for each
/// connection.
fn textbook(run: &Run, analysis: &Analysis) -> Vec<Plate> {
    let Some(part) = parts::textbook(analysis) else { return Vec::new() };
    let own = part.of(analysis);
    sweeps(run, &own, Some(&part)).iter().filter_map(cost_and_rate).collect()
}

/// The cells of one service at one place, a curve for each load, connections rising.
fn sweeps<'a>(run: &'a Run, analysis: &'a Analysis, part: Option<&'a Part>) -> Vec<Sweep<'a>> {
    let servers = analysis.cells.iter().filter(|cell| cell.cell.server().is_some());
    let places = grouped(servers.map(|cell| (place(&cell.cell), cell)));
    let sweeps = places.into_iter().map(|(_, cells)| Sweep {
        run,
        analysis,
        part,
        sizes: MESSAGES,
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
fn place(cell: &Cell) -> impl PartialEq + use<> {
    let server = cell.server().map(|of| (of.topology, of.service.clone(), of.length));
    (server, cell.threads)
}

/// What is served, for titles.
fn service(cell: &Cell) -> String {
    cell.server().or_empty(|s| format!("{}, {}", s.service, s.length_in_words()))
}

fn of_sweep(sweep: &Sweep<'_>) -> Vec<Plate> {
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

/// A figure of plots for each load of a service.
fn figure(
    sweep: &Sweep<'_>,
    (group, stem): (Group, &str),
    [title, how]: [&str; 2],
    chart: Chart,
) -> Option<Plate> {
    let title = format!("{title}: {}", service(&sweep.setting));
    sweep.figure(group, stem, [&title, how], chart)
}

/// A metric with a plot for each load; nothing where no model has it above zero.
fn by_connections(sweep: &Sweep<'_>, metric: &Metric, group: Group, stem: &str) -> Option<Plate> {
    let mut panels = sweep.panels(CONNECTIONS, &[*metric]);
    panels.retain(|panel| panel.extent().is_some());
    let title = format!("{} by connections ({})", metric.name, metric.unit);
    let chart = Chart::new(sweep.run, CONNECTIONS, panels);
    figure(sweep, (group, &format!("{stem}-by-connections")), [&title, ""], chart)
}

/// What a request costs and how many there are, in a closed loop, where there are several
/// models.
fn cost_and_rate(sweep: &Sweep<'_>) -> Option<Plate> {
    let mut curves = sweep.curves.iter();
    let closed = curves.find(|curve| !curve.cells.iter().any(|cell| is_open(cell)))?;
    let panels = [COST, THROUGHPUT]
        .map(|metric| metric.panel(sweep.run, CONNECTIONS, &closed.cells, metric.name.to_owned()));
    let title = "A closed loop by connections (CPU, µs per request; requests per second)";
    if panels.iter().any(|panel| panel.series.len() < 3) {
        return None;
    }
    let chart = Chart::new(sweep.run, CONNECTIONS, panels.into());
    let chart = Chart { panels_by: "quantity", ..chart };
    figure(sweep, (Group::Main, "closed-loop-by-connections"), [title, ""], chart)
}

/// What a request costs the baseline over what it costs a model.
fn ratios(sweep: &Sweep<'_>) -> Option<Plate> {
    let is_drawn = |arm: &ArmAnalysis| {
        arm.arm.role == Role::Compared && metric::usable(arm, cost_contrast).is_some()
    };
    let curves = sweep.curves.iter().filter(|curve| {
        let mut arms = of_cells(&curve.cells);
        arms.any(is_drawn)
    });
    let sweep = sweep.with(curves.cloned().collect());
    let baseline = &sweep.run.header.plan.baseline;
    let title = format!("CPU per request, {baseline}'s over the model's, by connections (ratio)");
    let words = ["cheaper", "costlier"];
    let (chart, how) = metric::chart_of_ratios(&sweep, CONNECTIONS, cost_contrast, words);
    figure(&sweep, (Group::Crossover, "ratio-by-connections"), [&title, &how], chart)
}

/// Against the offered rate, a row for each number of connections; nothing of a single rate.
fn latency_by_offered(sweep: &Sweep<'_>) -> Option<Plate> {
    let mut open = sweep.cells();
    open.retain(|cell| is_open(cell));
    let curves = curves(&open, ServerSetting::connections_in_words, OFFERED);
    let has_several = curves.iter().any(|curve| curve.cells.len() > 1);
    let names = ("offered load", "latency-by-offered");
    has_several.then(|| latency(&sweep.with(curves), names, OFFERED))?
}

/// Percentiles from when requests were due.
fn latency(sweep: &Sweep<'_>, (by, stem): (&str, &str), along: Along) -> Option<Plate> {
    let mut panels = sweep.panels(along, &LATENCY);
    panels.retain(Panel::has_values);
    let title = format!("Latency from when a request was due, by {by} (µs)");
    let how = "; in a closed loop a request is due when it can be sent; no point where there are \
               too few requests for the percentile";
    let chart = Chart { columns: LATENCY.len(), ..Chart::new(sweep.run, along, panels) };
    figure(sweep, (Group::Latency, stem), [&title, how], chart)
}

/// The figures of the models of an analysis in searches, one for each goal and place.
fn of_searches(run: &Run, analysis: &Analysis, part: Option<&Part>) -> Vec<Plate> {
    let found = searches::found(run, analysis).into_iter();
    let places = grouped(found.map(|found| ((found.goal, place(&found.cell)), found)));
    let plates = places.iter().filter_map(|((goal, _), found)| {
        let setting = found[0].cell.clone();
        let sizes = MESSAGES;
        let sweep = Sweep { run, analysis, part, sizes, setting, curves: Vec::new() };
        of_goal(&sweep, *goal, found)
    });
    plates.collect()
}

fn of_goal(sweep: &Sweep<'_>, goal: Goal, place: &[Found]) -> Option<Plate> {
    let run = sweep.run;
    let percentile = place.first()?.answers.first()?.percentile;
    let panels = place.iter().map(|found| panel_of_answers(run, found, percentile));
    let mut panels: Vec<Panel> = panels.collect();
    panels.retain(|panel| panel.has_values() && panel.extent().is_some());
    chart::share_scales(&mut panels);
    let title = format!(
        "{percentile} from when a request was due, by offered rate (µs): {}; {}",
        searches::name(goal),
        service(&sweep.setting)
    );
    let how = "whiskers: the least and the most of a step; hollow: more steps broke the limit \
               than kept it";
    let stem = match goal {
        Goal::Slo(slo) => format!("search-{slo}").replace(['<', '.'], "-"),
        Goal::Knee => "search-knee".to_owned(),
    };
    let table = table_of_steps(run, place, percentile);
    let marks = Marks::Chart(Chart::new(run, RATE, panels));
    (!table.rows.is_empty())
        .then(|| sweep.plate(Group::Latency, &stem, [&title, how], marks, table))
}

fn panel_of_answers(run: &Run, found: &Found, percentile: Percentile) -> Panel {
    let series = found.answers.iter().map(|answer| series_of(run, &found.cell, answer));
    let series = series.filter(|series| !series.points.is_empty()).collect();
    let title = found.cell.server().or_empty(|server| server.connections_in_words());
    let y_name = format!("{percentile}, µs, log scale");
    let mut panel = Panel::new(title, y_name, "µs", series);
    // Every model has a limit of its own at the knee.
    if let Goal::Slo(slo) = found.goal {
        panel.bounds = vec![(slo.limit.0 as f64 / 1e3, found.goal.to_string())];
    }
    panel
}

fn series_of(run: &Run, cell: &Cell, answer: &Answer) -> Series {
    let subject = words::subject(&run.header, cell);
    let points = answer.levels.iter().filter_map(|level| {
        let value = level.value_ns?.0 as f64 / 1e3;
        let span = level.span_ns.map(|ends| ends.map(|ns| ns.0 as f64 / 1e3));
        let (kept, of) = (level.kept, level.kept + level.broken);
        let text = three_digits(value);
        let ends = span.map(|ends| ends.map(three_digits).join(", "));
        Some(Point {
            x: level.rate_per_s.round(),
            value,
            interval: span.map(|[low, high]| Interval { low, high }),
            open: level.kept <= level.broken,
            hover: format!(
                "{}, {subject}, {} requests/s: {} {text} µs [{}], n = {of} steps, kept by {kept}",
                answer.arm.label,
                searches::rate(level.rate_per_s),
                answer.percentile,
                ends.unwrap_or_else(|| "one step".to_owned())
            ),
            text,
        })
    });
    Series::new(&answer.arm.label, &answer.arm.primitive, Kind::Curve, points.collect())
}

/// The same numbers: each model was offered rates of its own, so that they have no rows in
/// common.
fn table_of_steps(run: &Run, place: &[Found], percentile: Percentile) -> Table {
    let mut table = Table::default();
    for found in place {
        let subject = words::subject(&run.header, &found.cell);
        for answer in &found.answers {
            let arm = &answer.arm;
            table.fill_group(answer.levels.iter().map(|level| {
                let achieved = level.achieved_per_s.or_empty(searches::rate);
                let kept = format!("{} of {}", level.kept, level.kept + level.broken);
                let value = level.value_ns.map(|ns| ns.0 as f64 / 1e3);
                vec![
                    left("setting", "", &subject),
                    left("model", "", toned(&*arm.label, &arm.primitive)),
                    right("offered", "req/s", searches::rate(level.rate_per_s)),
                    right("achieved", "req/s", achieved),
                    left("steps", "that kept", kept),
                    right(percentile.word(), "µs", number::optional(value)),
                ]
            }));
        }
    }
    table
}
