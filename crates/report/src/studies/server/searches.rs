//! Searches: the highest rate at which each model keeps a limit of latency, or from which on its
//! latency climbs. No comparison and no verdict: what was found stands beside what was found of
//! the others, with the steps that say so.

use iolens_document::table::{Table, left, prose, right};
use iolens_model::cell::Cell;
use iolens_model::run::Run;
use iolens_model::slo::Goal;
use iolens_model::units::Nanos;
use iolens_stats::analysis::Analysis;
use iolens_stats::search::{self, Answer, CLIMB, Ended, LOW_SHARE, Level, STEP};

use crate::figure::style::toned;
use crate::groups::grouped;
use crate::number::{InWords, list, percent};
use crate::results::filled;
use crate::words;

/// What was found of one goal in one cell: the highest rate first, those without one last.
pub(crate) struct Found {
    pub(crate) cell: Cell,
    pub(crate) goal: Goal,
    pub(crate) answers: Vec<Answer>,
}

/// Everything that was searched for, by cell.
pub(crate) fn found(run: &Run, analysis: &Analysis) -> Vec<Found> {
    let answers = search::answers(&run.header.plan, &run.searches, analysis).into_iter();
    let answers = answers.map(|answer| ((answer.cell.clone(), answer.goal), answer));
    let found = |((cell, goal), answers)| Found { cell, goal, answers };
    let mut all: Vec<Found> = grouped(answers).into_iter().map(found).collect();
    let order = |ended: Ended| match ended {
        Ended::Found | Ended::AtLeast => 0,
        Ended::CutShort => 1,
        Ended::Below | Ended::Unusable => 2,
    };
    for found in &mut all {
        found.answers.sort_by(|a, b| {
            let by_rate = || b.kept_per_s.unwrap_or(0.0).total_cmp(&a.kept_per_s.unwrap_or(0.0));
            order(a.ended).cmp(&order(b.ended)).then_with(by_rate)
        });
    }
    all
}

/// A rate to three significant digits: the steps are wider than that.
pub(crate) fn rate(per_s: f64) -> String {
    if per_s < 100.0 {
        return iolens_model::units::three_digits(per_s);
    }
    let scale = 10f64.powf(per_s.log10().floor() - 2.0);
    format!("{:.0}", (per_s / scale).round() * scale)
}

fn rate_or_none(per_s: Option<f64>) -> String {
    per_s.or_dash(rate)
}

/// `3 of 5`, and `+2` for those that were set aside; empty where there was none at that
/// rate.
fn phases(answer: &Answer, per_s: Option<f64>) -> String {
    let level = answer.levels.iter().find(|level| Some(level.rate_per_s) == per_s);
    let Some(Level { kept, broken, set_aside, .. }) = level else { return String::new() };
    let all = kept + broken;
    match set_aside {
        0 => format!("{kept} of {all}"),
        aside => format!("{kept} of {all} +{aside}"),
    }
}

/// `every step up to 38000 kept it, and none from 45000 on`.
fn between(answer: &Answer) -> String {
    let below = match answer.all_kept_per_s {
        Some(all) => format!("every step up to {} kept it", rate(all)),
        None => "not every step kept it at any rate".to_owned(),
    };
    match answer.all_broken_per_s {
        Some(none) => format!("{below}, none from {} on", rate(none)),
        None => format!("{below}, some at each higher one"),
    }
}

/// Of a search that was cut short: the bounds so far.
fn so_far(answer: &Answer) -> String {
    let so_far = match (answer.kept_per_s, answer.broken_per_s) {
        (Some(kept), Some(broken)) => {
            format!("between {} and {} so far", rate(kept), rate(broken))
        }
        (Some(kept), None) => format!("{} kept so far", rate(kept)),
        (None, Some(broken)) => format!("{} broken so far", rate(broken)),
        (None, None) => "not searched".to_owned(),
    };
    match &answer.why {
        Some(why) => format!("{so_far}, cut short: {why}"),
        None => format!("{so_far}, cut short by the end of the run"),
    }
}

/// What was found of one goal in one setting.
pub(crate) fn table(run: &Run, found: &Found) -> Table {
    let of = found.answers.first().map_or("p50", |answer| answer.percentile.word());
    let row = |answer: &Answer| {
        let (kept, broken) = (answer.kept_per_s, answer.broken_per_s);
        let of_closed = rate_or_none(answer.closed_loop_per_s);
        vec![
            left("model", "", toned(&*answer.arm.label, &answer.arm.primitive)),
            right("closed loop", "req/s", of_closed),
            right("kept up to", "req/s", rate_or_none(kept)),
            left("steps", "that kept", phases(answer, kept)),
            right(of, "µs", value_at(answer, kept)),
            right("broken at", "req/s", rate_or_none(broken)),
            left("steps", "that kept", phases(answer, broken)),
            right(of, "µs", value_at(answer, broken)),
        ]
    };
    let subject = words::subject(&run.header, &found.cell);
    let caption = format!("{subject}: {}", name(found.goal));
    let answers = [(String::new(), found.answers.iter().collect())];
    Table { caption, ..filled(None, &answers, false, |answer| note(answer), |answer| row(answer)) }
}

/// `highest rate with p99 < 2 ms`.
pub(crate) fn name(goal: Goal) -> String {
    match goal {
        Goal::Slo(_) => format!("highest rate with {goal}"),
        Goal::Knee => "rate beyond which latency climbs (knee)".to_owned(),
    }
}

fn micros(ns: Option<Nanos>) -> String {
    crate::number::optional(ns.map(|ns| ns.0 as f64 / 1e3))
}

/// The percentile of the middle phase at a rate.
fn value_at(answer: &Answer, per_s: Option<f64>) -> String {
    let level = answer.levels.iter().find(|level| Some(level.rate_per_s) == per_s);
    micros(level.and_then(|level| level.value_ns))
}

/// What a row does not say.
fn note(answer: &Answer) -> Option<String> {
    let why = || answer.why.as_deref().unwrap_or("no reason is known");
    match answer.ended {
        Ended::Found if answer.is_clear() => None,
        Ended::Found => Some(between(answer)),
        Ended::AtLeast => Some(format!("at least: {}", why())),
        Ended::Below => Some("broken at the lowest rate that was tried".to_owned()),
        Ended::Unusable => Some(format!("unusable: {}", why())),
        Ended::CutShort => Some(so_far(answer)),
    }
}

/// How the tables are read; `None` where nothing was searched for.
pub(crate) fn reading(run: &Run) -> Option<String> {
    let goals = run.header.plan.server().map(|axes| axes.goals()).unwrap_or_default();
    let percent = |share| percent(share);
    let knee = match goals.contains(&Goal::Knee) {
        true => format!(
            " Knee: the median is more than {CLIMB} times that at {} of the closed loop.",
            percent(LOW_SHARE)
        ),
        false => String::new(),
    };
    (!goals.is_empty()).then(|| {
        format!(
            "A step is load on one model alone, its requests at random times. It keeps a limit if \
             every request is answered, the rate is kept and the percentile, from when requests \
             were due, stays below. A rate is kept if more than half of its steps keep it; +1: one \
             more was not counted, as the client or the machine may have broken it. Rates are {} \
             apart, and the answer is no closer; there is no verdict.{knee}",
            percent(STEP)
        )
    })
}

/// Every rate that was tried with a model; `None` without one.
pub(crate) fn tried(answer: &Answer) -> Option<Table> {
    let of = answer.percentile.word();
    let limit = answer.limit_ns.or_empty(|limit| format!(", limit {limit}"));
    let caption = format!("{}: {}{limit}", answer.arm.label, name(answer.goal));
    let row = |level: &Level| {
        let kept = format!("{} of {}", level.kept, level.kept + level.broken);
        vec![
            right("offered", "req/s", rate(level.rate_per_s)),
            right("achieved", "req/s", rate_or_none(level.achieved_per_s)),
            left("steps", "that kept", kept),
            right("not counted", "", level.set_aside.to_string()),
            left(of, "µs, middle step [least, most]", span(level)),
            prose("why not", list(&level.why)),
        ]
    };
    Table::of(caption, answer.levels.iter().map(row)).with_rows()
}

/// `840 [810, 902]`.
fn span(level: &Level) -> String {
    match level.span_ns {
        Some([least, most]) if least < most => {
            let [least, most] = [least, most].map(|ns| micros(Some(ns)));
            format!("{} [{least}, {most}]", micros(level.value_ns))
        }
        _ => micros(level.value_ns),
    }
}
