//! The models under one load as tables, the cheapest request first; what was counted for each as
//! perf stat prints it, and side by side.

use iolens_document::{Align, Column, Factor, Grid, Joined, Row as Line};
use iolens_model::arm::Role;
use iolens_model::load::Outcomes;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{
    ArmAnalysis, CellAnalysis, Contrast, EndFigures, Estimate, LatencyFigures, Saturated,
    ServerFigures, Verdict,
};

use super::counters::{
    COST, ENOUGH, LATENCY, ROWS, Row, THROUGHPUT, by_cost, correlation, counted, own_cpus, points,
};
use super::processors::CPU_KINDS;
use super::views::{View, cost_contrast, is_bounded};
use crate::figure::metric::Metric;
use crate::number::{InWords, optional, per_second, percent, usable};
use crate::remarks;
use crate::screen::table::{self, Better, Marks};

/// What a rate means that bears this mark.
pub(crate) const BOUNDED: &str = "≥ lower bound: the client had no CPU left";

/// Requests per second; at least so many where the client was the limit.
pub(crate) fn rate(arm: &ArmAnalysis) -> String {
    let least = if is_bounded(arm) { "≥" } else { "" };
    let rate = THROUGHPUT.of(arm);
    rate.or_empty(|rate| format!("{least}{}", per_second(rate.value)))
}

fn name(arm: &ArmAnalysis) -> Vec<String> {
    vec![match arm.arm.role {
        Role::SelfCheck => "self-check".to_owned(),
        Role::Baseline => format!("{} (baseline)", arm.arm.label),
        _ => arm.arm.label.clone(),
    }]
}

fn digits(value: Option<f64>) -> Vec<String> {
    value.map(three_digits).into_iter().collect()
}

/// A table with a row for each model, without the columns that none has anything in.
fn grid(
    title: &str,
    cell: &CellAnalysis,
    mut row: impl FnMut(&ArmAnalysis) -> Vec<(Column, Vec<String>)>,
) -> Grid {
    let named = |arm| std::iter::once((Column::left(""), name(arm))).chain(row(arm)).collect();
    Grid::filled(title, by_cost(cell).into_iter().map(named)).without_empty()
}

/// What a request costs, and how long it takes.
pub(crate) fn cost(run: &Run, view: &View, marks: &mut Marks) -> Grid {
    let percentiles = ["p50 ms", "p99 ms", "p99.9 ms"].into_iter().zip(LATENCY);
    grid("", &view.cell, |arm| {
        let cost = COST.of(arm).map(|cost| cost.value);
        let against = table::against(run, cost_contrast(arm), Better::Less, marks);
        let time = |(name, metric): (&str, Metric)| {
            (Column::decimal(name), digits(metric.of(arm).map(|time| time.value / 1e3)))
        };
        let first = [(Column::decimal("CPU µs/req"), digits(cost)), against];
        first.into_iter().chain(percentiles.clone().map(time)).collect()
    })
}

/// Requests per second, and which end had no time left.
pub(crate) fn load(run: &Run, view: &View, marks: &mut Marks) -> Grid {
    grid("", &view.cell, |arm| {
        let mut row = vec![(Column::right("req/s"), vec![rate(arm)])];
        if !view.is_open {
            row.push(table::against(run, arm.contrast.as_ref(), Better::More, marks));
        }
        let server = arm.server.as_ref();
        let of = |words: fn(&ServerFigures) -> String| server.map(words).into_iter().collect();
        row.extend([
            (Column::decimal("server busy"), of(|server| busy(server.server_busy))),
            (Column::decimal("client busy"), of(|server| busy(server.client_busy))),
            (Column::left("full"), of(|server| full(server.saturated).to_owned())),
            (Column::right("tasks"), of(|server| server.tasks_max.to_string())),
            (Column::right("replies"), of(|server| server.outcomes.ok.to_string())),
            (Column::left("failed"), of(|server| failed(&server.outcomes))),
        ]);
        row
    })
}

fn busy(share: Option<Estimate>) -> String {
    share.or_empty(|share| three_digits(share.value * 100.0) + "%")
}

fn full(saturated: Option<Saturated>) -> &'static str {
    match saturated {
        None => "?",
        Some(Saturated::Neither) => "",
        Some(end) => end.word(),
    }
}

/// `3 reset`; nothing where every request was answered.
fn failed(outcomes: &Outcomes) -> String {
    let all = [
        (outcomes.timeout, "timed out"),
        (outcomes.refused, "refused"),
        (outcomes.reset, "reset"),
        (outcomes.invalid, "with a wrong reply"),
        (outcomes.abandoned, "abandoned"),
    ];
    let said = all.iter().filter(|(count, _)| *count > 0);
    said.map(|(count, word)| format!("{count} {word}")).joined(", ")
}

/// Each model by itself, with intervals.
pub(crate) fn alone(view: &View) -> Grid {
    grid("each model by itself [95%]", &view.cell, |arm| {
        let server = arm.server.as_ref();
        let times = arm.latency.as_ref();
        // In a closed loop a request is due when it is sent.
        let sent = server.and_then(|server| server.from_sent.as_ref()).filter(|_| view.is_open);
        let lag = server.and_then(|server| server.lag.as_ref());
        let rate = server.map(|server| server.requests_per_s);
        let samples = times.map(|times| times.samples.to_string());
        let time = |name, times: Option<&LatencyFigures>, of: fn(&LatencyFigures) -> _| {
            let parts = match times.map(of) {
                Some(None) => vec!["too few".to_owned()],
                found => span(found.flatten(), 1e6),
            };
            (Column::of(name, &SPAN), parts)
        };
        vec![
            (Column::of("CPU µs/req", &SPAN), span(COST.of(arm), 1.0)),
            (Column::of("req/s", &SPAN), span(rate, 1.0)),
            time("mean ms", times, |times| Some(times.mean_ns)),
            time("p50 ms", times, |times| times.p50_ns),
            time("p99 ms", times, |times| times.p99_ns),
            time("p99.9 ms", times, |times| times.p999_ns),
            time("p99 from sending, ms", sent, |times| times.p99_ns),
            time("p99 client late, ms", lag, |times| times.p99_ns),
            (Column::right("requests timed"), samples.into_iter().collect()),
        ]
    })
}

/// The parts of [`span`].
const SPAN: [Align; 3] = [Align::Decimal, Align::Right, Align::Right];

/// A value and both ends of its interval.
fn span(estimate: Option<Estimate>, unit: f64) -> Vec<String> {
    let Some(estimate) = estimate else { return Vec::new() };
    let shown = |value: f64| three_digits(value / unit);
    let ends = match estimate.interval {
        Some(interval) => match usable(Some(interval)) {
            Some((low, high)) => vec![format!("[{},", shown(low)), format!("{}]", shown(high))],
            None => vec![String::new(), format!("[{}]", iolens_document::unusable())],
        },
        None => Vec::new(),
    };
    std::iter::once(shown(estimate.value)).chain(ends).collect()
}

/// What a model is compared by: its name, which is better, and words for better and worse.
#[derive(Clone, Copy)]
struct By {
    name: &'static str,
    better: Better,
    words: [&'static str; 2],
}

const BY_COST: By =
    By { name: "CPU per request", better: Better::Less, words: ["cheaper", "costlier"] };
const BY_RATE: By = By { name: "requests/s", better: Better::More, words: ["more", "fewer"] };

impl By {
    fn verdict(&self, verdict: Verdict) -> &'static str {
        match verdict {
            Verdict::Faster => self.words[0],
            Verdict::Slower => self.words[1],
            Verdict::Small => "small",
            Verdict::Equivalent => "same",
            Verdict::Inconclusive => "undecided",
            Verdict::Invalid => "invalid",
            Verdict::Unranked => "not ranked",
        }
    }
}

/// Comparisons by one quantity.
type Comparisons<'a> = (By, Vec<(&'a ArmAnalysis, &'a Contrast)>);

/// What is compared of the models of a load: the rate in a closed loop only.
fn contrasts(view: &View) -> Vec<Comparisons<'_>> {
    let all = |of: fn(&ArmAnalysis) -> Option<&Contrast>| {
        let arms = by_cost(&view.cell).into_iter();
        arms.filter_map(|arm| Some((arm, of(arm)?))).collect::<Vec<_>>()
    };
    let mut found = vec![(BY_COST, all(cost_contrast))];
    if !view.is_open {
        found.push((BY_RATE, all(|arm| arm.contrast.as_ref())));
    }
    found
}

/// Every comparison with the baseline: both intervals, how trials differ, and the verdict.
pub(crate) fn comparisons(run: &Run, view: &View) -> Grid {
    const SPAN: [Align; 3] = [Align::Right; 3];
    let has_verdicts = !run.header.plan.quick;
    let row = |by: By, arm: &ArmAnalysis, contrast: &Contrast| {
        let factor = |interval| {
            let rate = Factor { typical: contrast.ratio, interval: usable(interval) };
            if by.better == Better::More { rate } else { rate.inverse() }
        };
        let spread = contrast.sd_ln.map(|sd| percent(sd.exp() - 1.0));
        let verdict = (Column::left("verdict"), vec![by.verdict(contrast.verdict).to_owned()]);
        let row = [
            (Column::left(""), name(arm)),
            (Column::of("change, by itself", &SPAN), factor(contrast.pointwise).parts().into()),
            (
                Column::of("all together", &SPAN[1..]),
                factor(contrast.simultaneous).end_parts().into(),
            ),
            (Column::right("trials"), vec![contrast.n.to_string()]),
            (Column::right("spread"), spread.into_iter().collect()),
        ];
        row.into_iter().chain(has_verdicts.then_some(verdict)).collect()
    };
    let title = format!("against {} [95%, by itself and all together]", run.header.plan.baseline);
    let compared = contrasts(view).into_iter().filter(|(_, all)| !all.is_empty());
    let parts = compared.map(|(by, all)| {
        let rows = all.into_iter().map(|(arm, contrast)| row(by, arm, contrast));
        (by.name.to_owned(), Grid::filled("", rows))
    });
    Grid::headed(title, parts, None)
}

/// Comparisons that must not be used: of which model, by what, and why.
pub(crate) fn invalid(view: &View) -> Vec<(String, String)> {
    let one = |(by, all): Comparisons<'_>| {
        let invalid = all.into_iter().filter(|(_, c)| c.verdict == Verdict::Invalid);
        let said = |(arm, contrast): (&ArmAnalysis, &Contrast)| {
            let what = format!("{}, {}: invalid", name(arm)[0], by.name);
            (what, remarks::reason(&contrast.reason))
        };
        invalid.map(said).collect::<Vec<_>>()
    };
    contrasts(view).into_iter().flat_map(one).collect()
}

/// Server and client of one model, in total and per request; `None` where no trial is used.
pub(crate) fn ends(arm: &ArmAnalysis) -> Option<Grid> {
    let server = arm.server.as_ref()?;
    let ends = [("server", &server.server), ("client", &server.client)];
    let is_counted = |row: &&Row| ends.iter().any(|(_, end)| row.estimate(end).is_some());
    let row = |row: &Row| {
        let of_end = |(name, end): (&str, &EndFigures)| {
            let total = row.total(end).into_iter().collect();
            let each = span(row.estimate(end), row.size);
            [
                (Column::right("total").below(name), total),
                (Column::of("per request [95%]", &SPAN).below(""), each),
            ]
        };
        let named = (Column::left(""), vec![row.title()]);
        std::iter::once(named).chain(ends.into_iter().flat_map(of_end)).collect()
    };
    Some(Grid::filled("", ROWS.iter().filter(is_counted).map(row)))
}

/// What else is known of each model: what its CPUs did, how many requests there were and how long
/// they took.
fn besides(all: &[(&ArmAnalysis, &EndFigures)]) -> Vec<Line> {
    let row = |title: String, of: &dyn Fn(&ArmAnalysis) -> Option<String>| {
        let values: Vec<Option<String>> = all.iter().map(|(arm, _)| of(arm)).collect();
        let is_known = values.iter().any(Option::is_some);
        let blank = (all.len() >= ENOUGH).then(Vec::new);
        let cells = std::iter::once(vec![title]).chain(blank);
        let values = values.into_iter().map(|value| vec![value.or_dash(|value| value)]);
        is_known.then(|| Line::Cells(cells.chain(values).collect()))
    };
    let kinds = CPU_KINDS.iter().filter_map(|(name, _, share)| {
        let is_there =
            |(arm, _): &(&ArmAnalysis, _)| own_cpus(arm).is_some_and(|c| share(&c) > 0.0);
        let of = |arm: &ArmAnalysis| Some(three_digits(share(&own_cpus(arm)?) * 100.0));
        all.iter().any(is_there).then(|| row(format!("its CPUs: {name}, %"), &of))?
    });
    let p99 = |arm: &ArmAnalysis| Some(three_digits(LATENCY[1].of(arm)?.value / 1e3));
    let rate = |arm: &ArmAnalysis| Some(rate(arm)).filter(|rate| !rate.is_empty());
    kinds.chain(row("req/s".to_owned(), &rate)).chain(row("p99, ms".to_owned(), &p99)).collect()
}

/// What was counted at the server for a request, the models side by side, without what there is
/// `never`.
pub(crate) fn side_by_side(view: &View, never: &[&str]) -> Option<Grid> {
    let all = counted(&view.cell);
    let has_correlation = all.len() >= ENOUGH;
    let mut columns = vec![Column::left("")];
    columns.extend(has_correlation.then(|| Column::right("with CPU")));
    columns.extend(all.iter().map(|(arm, _)| Column::decimal(&arm.arm.label)));
    let row = |row: &Row| {
        let values: Vec<Option<f64>> = all.iter().map(|(_, end)| row.value(end)).collect();
        if values.iter().all(Option::is_none) {
            return None;
        }
        let mut cells = vec![vec![row.title()]];
        if has_correlation {
            let found = correlation(&points(row, &all)).filter(|_| !row.is_cost());
            cells.push(found.map(signed).into_iter().collect());
        }
        cells.extend(values.into_iter().map(|value| vec![optional(value)]));
        Some(Line::Cells(cells))
    };
    let shown = ROWS.iter().filter(|row| !never.contains(&row.name));
    let mut rows: Vec<Line> = shown.filter_map(row).collect();
    rows.extend(besides(&all));
    (!rows.is_empty()).then(|| Grid { title: String::new(), columns, rows })
}

/// `0.93`, `−0.40`.
fn signed(correlation: f64) -> String {
    format!("{correlation:.2}").replace('-', "−")
}
