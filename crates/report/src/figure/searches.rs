//! The percentile of each model against the rate that it was offered in searches, with the
//! limit: a plot for each number of connections.

use iolens_model::cell::Cell;
use iolens_model::run::Run;
use iolens_model::search::{Goal, Percentile};
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, Interval};
use iolens_stats::search::{Answer, Level};

use super::chart::{self, Along, Chart, Kind, Panel, Point, Series};
use super::scale::Scale;
use super::{Figure, Group, Paper, Sweep, style};
use crate::parts::Part;
use crate::servers::searches::{self, Found};
use crate::table::{Column, Entry, Table};
use crate::words;

/// The figures of the models of an analysis, one for each goal and place.
pub(super) fn all(
    paper: Paper,
    run: &Run,
    analysis: &Analysis,
    part: Option<&Part>,
) -> Vec<Figure> {
    let mut by_place: Vec<Vec<Found>> = Vec::new();
    for found in searches::found(run, analysis) {
        let beside = |known: &&mut Vec<Found>| {
            let first = &known[0];
            first.goal == found.goal && super::servers::is_beside(&first.cell, &found.cell)
        };
        match by_place.iter_mut().find(beside) {
            Some(known) => known.push(found),
            None => by_place.push(vec![found]),
        }
    }
    by_place.iter().filter_map(|place| figure(paper, run, place, part)).collect()
}

fn figure(paper: Paper, run: &Run, place: &[Found], part: Option<&Part>) -> Option<Figure> {
    let first = place.first()?;
    let (cell, goal) = (&first.cell, first.goal);
    let percentile = first.answers.first()?.percentile;
    let mut panels: Vec<Panel> =
        place.iter().filter_map(|found| panel(run, found, percentile)).collect();
    if panels.is_empty() {
        return None;
    }
    chart::share_scales(&mut panels);
    let service = cell.server().map(|s| format!("{}, {}", s.service, s.length_in_words()));
    let chart = Chart {
        title: format!(
            "{percentile} from when a request was due, by offered rate (µs): {}; {}",
            searches::name(goal),
            service.unwrap_or_default()
        ),
        subtitle: "whiskers: the least and the most of a step; hollow: more steps broke the limit \
                   than kept it"
            .to_owned(),
        along: Along::Rate,
        x: chart::scale(Along::Rate, &panels),
        caches: Vec::new(),
        panels_by: "connections",
        apart: 0.0,
        columns: panels.len().min(2),
        panels,
        footer: words::footer(&run.header, cell),
    };
    let stem = match goal {
        Goal::Slo(slo) => format!("search-{slo}").replace(['<', '.'], "-"),
        Goal::Knee => "search-knee".to_owned(),
    };
    let sweep = Sweep { setting: cell.clone(), curves: Vec::new(), part, paper };
    let figure = sweep.figure(run, Group::Latency, &stem, chart);
    Some(Figure { table: table(run, place, percentile), ..figure })
}

fn panel(run: &Run, found: &Found, percentile: Percentile) -> Option<Panel> {
    let series: Vec<Series> = found
        .answers
        .iter()
        .map(|answer| series(run, &found.cell, answer))
        .filter(|series| !series.points.is_empty())
        .collect();
    let title = found.cell.server().map(|server| server.connections_in_words());
    // Every model has a limit of its own at the knee.
    let limit = match found.goal {
        Goal::Slo(slo) => Some((slo.limit.0 as f64 / 1e3, found.goal.to_string())),
        Goal::Knee => None,
    };
    let mut panel = Panel {
        title: title.unwrap_or_default(),
        y_name: format!("{percentile}, µs, log scale"),
        unit: "µs",
        y: Scale::values(Interval { low: 1.0, high: 10.0 }),
        series,
        bounds: limit.into_iter().collect(),
        band: None,
    };
    panel.y = Scale::values(panel.extent()?);
    panel.has_values().then_some(panel)
}

fn series(run: &Run, cell: &Cell, answer: &Answer) -> Series {
    let subject = words::subject(&run.header, cell);
    let point = |level: &Level| {
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
    };
    Series {
        label: answer.arm.label.clone(),
        look: style::of(&answer.arm.primitive),
        kind: Kind::Curve,
        points: answer.levels.iter().filter_map(point).collect(),
        missing: Vec::new(),
    }
}

/// The same numbers: each model was offered rates of its own, so that they have no rows in
/// common.
fn table(run: &Run, place: &[Found], percentile: Percentile) -> Table {
    let columns = vec![
        Column::left("cell", ""),
        Column::left("model", ""),
        Column::right("offered", "req/s"),
        Column::right("achieved", "req/s"),
        Column::left("steps", "that kept"),
        Column::right(percentile.word(), "µs"),
    ];
    let mut table = Table::new(String::new(), columns);
    for found in place {
        let subject = words::subject(&run.header, &found.cell);
        for answer in &found.answers {
            for (i, level) in answer.levels.iter().enumerate() {
                let label = Entry::toned(
                    &*answer.arm.label,
                    crate::figure::style::tone(&answer.arm.primitive),
                );
                let value = level.value_ns.map(|ns| ns.0 as f64 / 1e3);
                let row = vec![
                    subject.clone().into(),
                    label,
                    searches::rate(level.rate_per_s).into(),
                    level.achieved_per_s.map(searches::rate).unwrap_or_default().into(),
                    format!("{} of {}", level.kept, level.kept + level.broken).into(),
                    crate::number::optional(value).into(),
                ];
                if i == 0 { table.push_group(row) } else { table.push(row) }
            }
        }
    }
    table
}
