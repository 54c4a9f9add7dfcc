//! The percentile of each model against the rate that it was offered in searches, with the
//! limit: a plot for each number of connections.

use iolens_model::search::{Goal, Percentile};
use iolens_stats::search::Answer;

use super::chart::RATE;
use super::*;
use crate::servers::searches::{self, Found};

/// The figures of the models of an analysis, one for each goal and place.
pub(super) fn all(
    paper: Paper,
    run: &Run,
    analysis: &Analysis,
    part: Option<&Part>,
) -> Vec<Figure> {
    let found = searches::found(run, analysis).into_iter();
    let places = grouped(found.map(|found| ((found.goal, servers::place(&found.cell)), found)));
    let figures = places.iter().filter_map(|((goal, _), place)| {
        let setting = place[0].cell.clone();
        let sweep = Sweep { run, analysis, part, paper, setting, curves: Vec::new() };
        figure(&sweep, *goal, place)
    });
    figures.collect()
}

fn figure(sweep: &Sweep<'_>, goal: Goal, place: &[Found]) -> Option<Figure> {
    let (run, cell) = (sweep.run, &sweep.setting);
    let percentile = place.first()?.answers.first()?.percentile;
    let mut panels: Vec<Panel> = place.iter().map(|found| panel(run, found, percentile)).collect();
    panels.retain(|panel| panel.has_values() && panel.extent().is_some());
    chart::share_scales(&mut panels);
    let title = format!(
        "{percentile} from when a request was due, by offered rate (µs): {}; {}",
        searches::name(goal),
        servers::service(cell)
    );
    let how = "whiskers: the least and the most of a step; hollow: more steps broke the limit \
               than kept it";
    let chart = Chart::new(run, cell, RATE, title, how.to_owned(), panels);
    let stem = match goal {
        Goal::Slo(slo) => format!("search-{slo}").replace(['<', '.'], "-"),
        Goal::Knee => "search-knee".to_owned(),
    };
    let chart = Chart { panels_by: "connections", ..chart };
    let figure = sweep.figure(Group::Latency, &stem, chart)?;
    Some(Figure { table: table(run, place, percentile), ..figure })
}

fn panel(run: &Run, found: &Found, percentile: Percentile) -> Panel {
    let series = found.answers.iter().map(|answer| series(run, &found.cell, answer));
    let series = series.filter(|series| !series.points.is_empty()).collect();
    let title = found.cell.server().map(|server| server.connections_in_words());
    let y_name = format!("{percentile}, µs, log scale");
    let mut panel = Panel::new(title.unwrap_or_default(), y_name, "µs", series);
    // Every model has a limit of its own at the knee.
    if let Goal::Slo(slo) = found.goal {
        panel.bounds = vec![(slo.limit.0 as f64 / 1e3, found.goal.to_string())];
    }
    panel
}

fn series(run: &Run, cell: &Cell, answer: &Answer) -> Series {
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
            let arm = &answer.arm;
            let rows = answer.levels.iter().map(|level| {
                let value = level.value_ns.map(|ns| ns.0 as f64 / 1e3);
                vec![
                    subject.clone().into(),
                    Entry::toned(&*arm.label, style::tone(&arm.primitive)),
                    searches::rate(level.rate_per_s).into(),
                    level.achieved_per_s.map(searches::rate).unwrap_or_default().into(),
                    format!("{} of {}", level.kept, level.kept + level.broken).into(),
                    number::optional(value).into(),
                ]
            });
            chart::push_group(&mut table, rows);
        }
    }
    table
}
