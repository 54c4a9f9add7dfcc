//! The models under one load as tables, the cheapest request first.

use iolens_document::{Align, Column, Grid, Row};
use iolens_model::arm::Role;
use iolens_model::load::Outcomes;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{
    ArmAnalysis, CellAnalysis, Contrast, Estimate, Interval, LatencyFigures, Saturated, Verdict,
};

use super::{COST, LATENCY, THROUGHPUT, View, cost_contrast, is_bounded, read};
use crate::number::{per_second, percent};
use crate::remarks;
use crate::screen::table::{self, Better, Marks};

/// What a rate means that bears this mark.
pub(crate) const BOUNDED: &str = "≥ lower bound: the client had no CPU left";

/// The models that have numbers and the baseline's copy, the cheapest first.
pub(crate) fn by_cost(cell: &CellAnalysis) -> Vec<&ArmAnalysis> {
    let cost = |arm: &ArmAnalysis| read(&COST, arm).map_or(f64::INFINITY, |cost| cost.value);
    let has_numbers = |arm: &&ArmAnalysis| arm.status == Status::Ok;
    let mut arms: Vec<&ArmAnalysis> = cell.arms.iter().filter(has_numbers).collect();
    arms.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    arms
}

/// Requests per second; at least so many where the client was the limit.
pub(crate) fn rate(arm: &ArmAnalysis) -> String {
    let least = if is_bounded(arm) { "≥" } else { "" };
    let rate = read(&THROUGHPUT, arm);
    rate.map_or_else(String::new, |rate| format!("{least}{}", per_second(rate.value)))
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
    mut columns: Vec<Column>,
    cell: &CellAnalysis,
    mut row: impl FnMut(&ArmAnalysis) -> Vec<Vec<String>>,
) -> Grid {
    columns.insert(0, Column::left(""));
    let named = |arm| std::iter::once(name(arm)).chain(row(arm)).collect();
    let mut rows: Vec<Vec<Vec<String>>> = by_cost(cell).into_iter().map(named).collect();
    let is_empty = |parts: &Vec<String>| parts.iter().all(String::is_empty);
    for nth in (1..columns.len()).rev() {
        if rows.iter().all(|cells| cells.get(nth).is_none_or(is_empty)) {
            columns.remove(nth);
            for cells in rows.iter_mut().filter(|cells| nth < cells.len()) {
                cells.remove(nth);
            }
        }
    }
    let rows = rows.into_iter().map(Row::Cells).collect();
    Grid { title: title.to_owned(), columns, rows }
}

/// What a request costs, and how long it takes.
pub(crate) fn cost(run: &Run, view: &View, marks: &mut Marks) -> Grid {
    let columns = vec![
        Column::decimal("CPU µs/req"),
        table::against_column(format!("against {}", run.header.plan.baseline)),
        Column::decimal("p50 ms"),
        Column::decimal("p99 ms"),
        Column::decimal("p99.9 ms"),
    ];
    grid("", columns, &view.cell, |arm| {
        let mut cells = vec![
            digits(read(&COST, arm).map(|cost| cost.value)),
            table::against(cost_contrast(arm), Better::Less, run.header.plan.quick, marks),
        ];
        let times = LATENCY.iter().map(|p| digits(read(p, arm).map(|time| time.value / 1e3)));
        cells.extend(times);
        cells
    })
}

/// Requests per second, and which end had no time left.
pub(crate) fn load(run: &Run, view: &View, marks: &mut Marks) -> Grid {
    let mut columns = vec![Column::right("req/s")];
    if !view.is_open {
        columns.push(table::against_column(format!("against {}", run.header.plan.baseline)));
    }
    columns.extend([
        Column::decimal("server busy"),
        Column::decimal("client busy"),
        Column::left("full"),
        Column::right("tasks"),
        Column::right("replies"),
        Column::left("failed"),
    ]);
    grid("", columns, &view.cell, |arm| {
        let mut cells = vec![vec![rate(arm)]];
        if !view.is_open {
            let quick = run.header.plan.quick;
            cells.push(table::against(arm.contrast.as_ref(), Better::More, quick, marks));
        }
        let Some(server) = &arm.server else { return cells };
        let share = |share: Option<Estimate>| {
            share.map(|share| three_digits(share.value * 100.0) + "%").into_iter().collect()
        };
        cells.extend([
            share(server.server_busy),
            share(server.client_busy),
            vec![full(server.saturated).to_owned()],
            vec![server.tasks_max.to_string()],
            vec![server.outcomes.ok.to_string()],
            vec![failed(&server.outcomes)],
        ]);
        cells
    })
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
    said.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// Each model by itself, with intervals.
pub(crate) fn alone(view: &View) -> Grid {
    let times =
        ["mean ms", "p50 ms", "p99 ms", "p99.9 ms", "p99 from sending, ms", "p99 client late, ms"];
    let mut columns = vec![Column::of("CPU µs/req", &SPAN), Column::of("req/s", &SPAN)];
    columns.extend(times.map(|name| Column::of(name, &SPAN)));
    columns.push(Column::right("requests timed"));
    grid("each model by itself [95%]", columns, &view.cell, |arm| {
        let server = arm.server.as_ref();
        let times = arm.latency.as_ref();
        let time = |times: Option<&LatencyFigures>, of: fn(&LatencyFigures) -> Option<Estimate>| {
            match times.map(of) {
                Some(None) => vec!["too few".to_owned()],
                found => span(found.flatten(), 1e6),
            }
        };
        vec![
            span(read(&COST, arm), 1.0),
            span(server.map(|server| server.requests_per_s), 1.0),
            time(times, |times| Some(times.mean_ns)),
            time(times, |times| times.p50_ns),
            time(times, |times| times.p99_ns),
            time(times, |times| times.p999_ns),
            time(
                // In a closed loop a request is due when it is sent.
                server.and_then(|server| server.from_sent.as_ref()).filter(|_| view.is_open),
                |times| times.p99_ns,
            ),
            time(server.and_then(|server| server.lag.as_ref()), |times| times.p99_ns),
            times.map(|times| times.samples.to_string()).into_iter().collect(),
        ]
    })
}

/// The parts of [`span`].
pub(super) const SPAN: [Align; 3] = [Align::Decimal, Align::Right, Align::Right];

/// A value and both ends of its interval.
pub(super) fn span(estimate: Option<Estimate>, unit: f64) -> Vec<String> {
    let Some(estimate) = estimate else { return Vec::new() };
    let shown = |value: f64| three_digits(value / unit);
    let mut parts = vec![shown(estimate.value)];
    parts.extend(match estimate.interval {
        Some(i) if i.is_usable() => {
            vec![format!("[{},", shown(i.low)), format!("{}]", shown(i.high))]
        }
        Some(_) => vec![String::new(), format!("[{}]", iolens_document::unusable())],
        None => Vec::new(),
    });
    parts
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
    let mut columns = vec![
        Column::left(""),
        Column::of("change, by itself", &SPAN),
        Column::of("all together", &SPAN[1..]),
        Column::right("trials"),
        Column::right("spread"),
    ];
    columns.extend(has_verdicts.then(|| Column::left("verdict")));
    let mut rows = Vec::new();
    for (by, all) in contrasts(view).into_iter().filter(|(_, all)| !all.is_empty()) {
        rows.push(Row::Heading(by.name.to_owned()));
        rows.extend(all.into_iter().map(|(arm, contrast)| {
            let mut cells = vec![name(arm)];
            cells.extend(comparison(by, contrast));
            cells.extend(has_verdicts.then(|| vec![by.verdict(contrast.verdict).to_owned()]));
            Row::Cells(cells)
        }));
    }
    let title = format!("against {} [95%, by itself and all together]", run.header.plan.baseline);
    Grid { title, columns, rows }
}

fn comparison(by: By, contrast: &Contrast) -> Vec<Vec<String>> {
    let factor = |interval: Option<Interval>| {
        let interval = interval.filter(Interval::is_usable).map(|i| (i.low, i.high));
        let rate = iolens_document::Factor { typical: contrast.ratio, interval };
        if by.better == Better::More { rate } else { rate.inverse() }
    };
    let single = factor(contrast.pointwise);
    let mut change = vec![iolens_document::change(single.typical)];
    change.extend(table::changes(single.interval));
    let spread = contrast.sd_ln.map(|sd| percent(sd.exp() - 1.0));
    vec![
        change,
        table::changes(factor(contrast.simultaneous).interval).to_vec(),
        vec![contrast.n.to_string()],
        spread.into_iter().collect(),
    ]
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
