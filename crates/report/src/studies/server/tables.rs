//! The models under one load as tables, the cheapest request first.

use iolens_document::{Align, Column, Factor, Grid};
use iolens_model::arm::Role;
use iolens_model::load::Outcomes;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{
    ArmAnalysis, CellAnalysis, Contrast, Estimate, LatencyFigures, Saturated, ServerFigures,
    Verdict,
};

use super::{COST, LATENCY, THROUGHPUT, View, cost_contrast, is_bounded, read};
use crate::number::{per_second, percent, usable};
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
        let cost = read(&COST, arm).map(|cost| cost.value);
        let against = table::against(run, cost_contrast(arm), Better::Less, marks);
        let time = |(name, of)| {
            (Column::decimal(name), digits(read(&of, arm).map(|time| time.value / 1e3)))
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
    share.map_or_else(String::new, |share| three_digits(share.value * 100.0) + "%")
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
            (Column::of("CPU µs/req", &SPAN), span(read(&COST, arm), 1.0)),
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
pub(super) const SPAN: [Align; 3] = [Align::Decimal, Align::Right, Align::Right];

/// A value and both ends of its interval.
pub(super) fn span(estimate: Option<Estimate>, unit: f64) -> Vec<String> {
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
