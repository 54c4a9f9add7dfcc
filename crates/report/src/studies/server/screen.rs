//! The first screen of a run of `server`: what a request costs at a fixed rate, where all do
//! the same work, and in a closed loop.

use iolens_document::{Answer, Block, Column, Grid, Label, Row, Screen, Text};
use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::server::ServerSetting;
use iolens_model::slo::Goal;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, ArmAnalysis, EndMetric, Saturated};
use iolens_stats::search::{self, Ended};

use super::counters::{COST, LATENCY, by_cost};
use super::searches;
use super::tables::{BOUNDED, rate};
use super::views::{self, View, cost_contrast, is_bounded, kind_words};
use crate::arms::methods as models;
use crate::findings::{self, Ranking};
use crate::groups::grouped;
use crate::number::InWords;
use crate::screen::table::{self, Better, INTERVALS, Marks};
use crate::screen::{choices, more};
use crate::{number, words};

/// Loads that are shown; the others are in `iolens show`.
const LOADS_MAX: usize = 3;

pub(crate) fn fill(screen: &mut Screen, run: &Run, analysis: &Analysis) {
    let mut marks = Marks::default();
    let views = views::views(run, analysis);
    let bounded = views.iter().any(|view| models(&view.cell).any(is_bounded));
    let shown = &views[..views.len().min(LOADS_MAX)];
    let has_closed = shown.iter().any(|view| !view.is_open);
    let block = |view: &View| (view.heading(), block(run, view, has_closed, &mut marks));
    let title = format!("server CPU per request, lower is better [{INTERVALS}]");
    let grid = Grid::headed(title, shown.iter().map(block), Some(Row::Gap));
    screen.blocks.push(Block::Grid(grid));
    screen.legend = table::legend(marks, analysis.delta, &run.header.plan.baseline, &[]);
    if bounded {
        screen.legend.push(BOUNDED.into());
    }
    let closed = shown.iter().filter(|view| !view.is_open);
    if has_closed {
        let of = format!(
            "µs/req, req/s: the mean of {} times the ratio · CPUs used: each model's own mean",
            run.header.plan.baseline
        );
        screen.legend.push(of.into());
    }
    if closed.flat_map(|view| models(&view.cell)).any(is_full) {
        let share = number::percent(iolens_stats::load::BUSY_SHARE);
        screen.legend.push(format!("full: the server used at least {share} of its CPU").into());
    }
    screen.legend.extend(more(run, views.len(), LOADS_MAX, " loads"));
    screen.answers = answers(run, analysis, &views);
}

/// The models under one load, the cheapest first.
fn block(run: &Run, view: &View, has_closed: bool, marks: &mut Marks) -> Grid {
    let arms = by_cost(&view.cell).into_iter().filter(|arm| arm.arm.role != Role::SelfCheck);
    let row = |arm: &ArmAnalysis| {
        let own = if arm.arm.role == Role::Baseline { " (baseline)" } else { "" };
        let digits = |value: Option<f64>| vec![value.or_empty(three_digits)];
        let cost = COST.of(arm).map(|cost| cost.value);
        let p99 = LATENCY[1].of(arm).map(|p99| p99.value / 1e3);
        let mut row = vec![
            (Column::left(""), vec![format!("  {}{own}", arm.arm.label)]),
            (Column::decimal("µs/req"), digits(cost)),
            table::against(run, cost_contrast(arm), Better::Less, marks),
            (Column::decimal("p99 ms"), digits(p99)),
        ];
        let used =
            arm.server.as_ref().and_then(|server| server.server.value(EndMetric::CpusUtilized));
        let full = if is_full(arm) { "full" } else { "" };
        let of_closed = [
            (Column::right("req/s"), vec![rate(arm)]),
            (Column::decimal("CPUs used"), digits(used.map(|used| used.value))),
            (Column::left(""), vec![full.to_owned()]),
        ];
        let empty = |parts| if view.is_open { Vec::new() } else { parts };
        let of_closed = of_closed.map(|(column, parts)| (column, empty(parts)));
        row.extend(of_closed.into_iter().filter(|_| has_closed));
        row
    };
    Grid::filled("", arms.map(row))
}

/// Whether the server had no time left.
fn is_full(arm: &ArmAnalysis) -> bool {
    let saturated = arm.server.as_ref().and_then(|server| server.saturated);
    matches!(saturated, Some(Saturated::Server | Saturated::Both))
}

fn answers(run: &Run, analysis: &Analysis, views: &[View]) -> Vec<Answer> {
    // Where there is a fixed rate, that is what ranks.
    let has_open = views.iter().any(|view| view.is_open);
    let is_open = |cell: &Cell| cell.server().is_some_and(ServerSetting::is_open_loop);
    let mut ranked = findings::rankings(run, analysis);
    ranked.retain(|ranking| is_open(&ranking.setting) == has_open);
    let mut out = searched(run, analysis);
    for (kind, own) in grouped(ranked.into_iter().map(|one| (one.one_per_connection, one))) {
        let subject = |ranking: &Ranking| words::subject(&run.header, &ranking.setting);
        let mut own = choices(Label::Cheapest, run, &own, subject);
        if let (Some(kind), Some(first)) = (kind, own.first_mut()) {
            first.said.insert(0, Text::plain(format!("at the rates for {}", kind_words(kind))));
        }
        out.extend(own);
    }
    out.extend(unknown(analysis));
    out
}

/// Up to which rate each model keeps what was asked of its latency.
fn searched(run: &Run, analysis: &Analysis) -> Vec<Answer> {
    let several = search::cells(&run.header.plan).len() > 1;
    let one = |found: &searches::Found| {
        let place = match several {
            true => format!("{}: ", words::subject(&run.header, &found.cell)),
            false => String::new(),
        };
        let goal = match found.goal {
            Goal::Slo(_) => format!("{place}highest requests/s with {}", found.goal),
            Goal::Knee => format!("{place}requests/s from which latency climbs"),
        };
        let each = |answer: &search::Answer| {
            let rate = answer.kept_per_s.map(searches::rate);
            let said = match (answer.ended, rate) {
                (Ended::Found, Some(rate)) => rate,
                (Ended::AtLeast, Some(rate)) => format!("≥{rate}"),
                (Ended::CutShort, Some(rate)) => format!("≥{rate} so far"),
                (Ended::Below, _) => "no rate".to_owned(),
                (Ended::Unusable, _) => "unusable".to_owned(),
                (_, None) => "not known: cut short".to_owned(),
            };
            Text::plain(format!("{} {said}", answer.arm.label))
        };
        let said = std::iter::once(Text::plain(goal)).chain(found.answers.iter().map(each));
        Answer { label: Label::Limit, said: said.collect() }
    };
    searches::found(run, analysis).iter().map(one).collect()
}

/// What the client kept from being seen.
fn unknown(analysis: &Analysis) -> Option<Answer> {
    let closed = analysis.cells.iter().filter(|cell| !views::is_open(cell));
    let arms: Vec<&ArmAnalysis> =
        closed.flat_map(models).filter(|a| a.status == Status::Ok).collect();
    let bounded = arms.iter().filter(|arm| is_bounded(arm)).count();
    (bounded > 0).then(|| Answer {
        label: Label::Unknown,
        said: vec![
            Text::plain(format!(
                "the capacity of {bounded} of {}: their client had no CPU left",
                arms.len()
            )),
            Text::code("--client-cpus").and(" gives it more"),
        ],
    })
}
