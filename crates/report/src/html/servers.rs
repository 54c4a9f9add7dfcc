//! The sections of a page about servers.

use iolens_model::arm::Role;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis};
use maud::{Markup, html};

use super::answers::prose;
use super::figures::{FIGURES_BYTES, drawn_once, with_twin};
use crate::answers::{Kind, Sentence, sentences};
use crate::figure::{self, Figure, Group};
use crate::servers::{self, COUNTERS, Kinds, LATENCY, models, read, searches};
use crate::{number, words};

/// Sections by id and heading.
pub(super) const CONTENTS: [(&str, &str); 7] = [
    ("answers", "Answers"),
    ("decision", "What to use"),
    ("figures", "Figures"),
    ("counters", "Counters"),
    ("trust", "Can I trust it?"),
    ("machine", "Machine and command"),
    ("cells", "All cells"),
];

/// Cells up to which what is said of each stands in the open.
const OPEN: usize = 4;

/// What was found.
pub(super) fn answers(run: &Run, analysis: &Analysis) -> Markup {
    let all = sentences(run, analysis);
    let of = |kind: Kind| all.iter().filter(move |s| s.kind == kind).collect::<Vec<&Sentence>>();
    let is_short = analysis.cells.len() <= OPEN;
    super::block(
        "answers",
        "Answers",
        html! {
            @for sentence in of(Kind::Alarm) { p.alarm { (prose(run, &sentence.text)) } }
            p.caption { "What a request costs" }
            (super::answers::list(run, "lead", &of(Kind::Headline)))
            @if !of(Kind::Answer).is_empty() {
                details open[is_short] {
                    summary { "Requests per second in a closed loop, and who had no time left" }
                    (super::answers::list(run, "answers", &of(Kind::Answer)))
                }
            }
            @if !of(Kind::Search).is_empty() {
                p.caption { "Highest rates" }
                (super::answers::list(run, "lead", &of(Kind::Search)))
            }
            @if !of(Kind::Crossover).is_empty() {
                details open[is_short] {
                    summary { "What the counters say about each against the others" }
                    p.aside {
                        "From the model that has least to the one that has most. A rank "
                        "correlation of 1: the more of it, the more a request costs, without "
                        "exception. It shows what goes together, not what causes what."
                    }
                    (super::answers::list(run, "answers", &of(Kind::Crossover)))
                }
            }
            ul.remarks {
                @for sentence in of(Kind::NoiseFloor).iter().chain(&of(Kind::Caution)) {
                    li { (prose(run, &sentence.text)) }
                }
            }
        },
    )
}

/// Which model for how many connections and which service.
pub(super) fn decision(run: &Run, analysis: &Analysis) -> Markup {
    let plan = &run.header.plan;
    let services = plan.server().map(|axes| words::values(&axes.services)).unwrap_or_default();
    super::block(
        "decision",
        "What to use",
        html! {
            (servers::decision(run, analysis).html())
            p.aside {
                "Service: " (services) ". Server CPU is user and kernel time of all threads and "
                "children of the server over the requests that it answered; ratio: that of "
                code { (plan.baseline) } " over the model’s, above 1 the model is cheaper. What "
                "is said of a stretch was measured at its connection counts, and the values go "
                "from the least to the most over it. p50 and p99: from when a request was due to "
                "its reply. "
                @if plan.quick { "Indicative: few trials show where to look, not what to conclude." }
            }
            (highest_rates(run, analysis))
        },
    )
}

/// What was found of each goal, and every rate that was tried.
fn highest_rates(run: &Run, analysis: &Analysis) -> Markup {
    html! {
        @for table in searches::tables(run, analysis) { (table.html()) }
        @if let Some(reading) = searches::reading(run) { p.aside { (reading) } }
        @for found in searches::found(run, analysis) {
            details {
                summary {
                    (words::subject(&run.header, &found.cell)) ": every rate that was tried, "
                    (searches::name(found.goal))
                }
                @for table in found.answers.iter().filter_map(searches::tried) { (table.html()) }
            }
        }
    }
}

/// Curves by what they are about, and what has none; in so many bytes, if each is drawn once.
pub(super) fn figures(run: &Run, analysis: &Analysis, room: usize) -> Markup {
    let figures = drawn_once(figure::all(run, analysis), room.min(FIGURES_BYTES));
    let of = |group: Group| -> Vec<&Figure> {
        figures.iter().filter(|figure| figure.group == group).collect()
    };
    let lead = |group: Group| matches!(group, Group::Crossover | Group::Main);
    super::block(
        "figures",
        "Figures",
        html! {
            p.aside {
                "Models that make a process or a thread for each connection stand in figures of "
                "their own: they are offered rates of their own."
            }
            @for group in Group::ALL {
                @let figures = of(group);
                @if !figures.is_empty() {
                    h3 { (heading(group)) }
                    @if lead(group) {
                        @for figure in figures { (with_twin(figure)) }
                    } @else {
                        details open[figures.len() <= OPEN] {
                            summary { (count_of(figures.len())) }
                            @for figure in figures { (with_twin(figure)) }
                        }
                    }
                }
            }
            @for (what, why) in not_drawn(analysis) {
                p.aside { b { (what) } ": not drawn; " (why) }
            }
        },
    )
}

fn count_of(figures: usize) -> String {
    number::count(u32::try_from(figures).unwrap_or(u32::MAX), "figure")
}

fn heading(group: Group) -> &'static str {
    match group {
        Group::Crossover => "Cost of a request against the baseline",
        Group::Main => "Cost of a request, and requests per second",
        Group::Time => "What was counted for each request",
        group => group.heading(),
    }
}

/// What has no figure, with the reason.
fn not_drawn(analysis: &Analysis) -> Vec<(String, String)> {
    let reasons = crate::json::not_measured(&analysis.told);
    let arms = || analysis.cells.iter().flat_map(models);
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |what: &str, why: &str| match lines.iter_mut().find(|(known, _)| known == why) {
        Some((_, names)) => names.push(what.to_owned()),
        None => lines.push((why.to_owned(), vec![what.to_owned()])),
    };
    for (metric, _, named) in &COUNTERS {
        let mut values = arms().filter_map(|arm| read(metric, arm)).peekable();
        if values.peek().is_none() {
            let why = reasons.get(named).map_or("not counted in this run", String::as_str);
            add(metric.name, why);
        } else if values.all(|estimate| estimate.value == 0.0) {
            add(metric.name, "there were none in any cell");
        }
    }
    for metric in &LATENCY {
        if arms().all(|arm| read(metric, arm).is_none()) {
            add(&format!("latency {}", metric.name), "no cell has enough requests for it");
        }
    }
    lines.into_iter().map(|(why, names)| (number::list(&names), why)).collect()
}

/// A cell by cell table of every counter, for server and client.
pub(super) fn counters(run: &Run, analysis: &Analysis) -> Markup {
    super::block(
        "counters",
        "Counters",
        html! {
            p.aside {
                "Of the server: all its threads and children, over the requests that it answered. "
                "Of the client: its whole process, over its right replies. Totals are those of "
                "all used trials, both ends over the slices alone."
            }
            @for cell in &analysis.cells {
                details.cell open[analysis.cells.len() == 1] {
                    summary { b { (words::subject(&run.header, &cell.cell)) } }
                    @if let Some(table) = servers::per_request(cell) { (table.html()) }
                    @for arm in models(cell) {
                        @if let Some(table) = servers::counters(analysis, arm) {
                            details {
                                summary { code { (arm.arm.label) } ", server and client, in total and per request" }
                                (table.html())
                            }
                        }
                    }
                }
            }
        },
    )
}

/// Every number.
pub(super) fn cells(run: &Run, analysis: &Analysis) -> Markup {
    let kinds = Kinds::of(analysis);
    super::block(
        "cells",
        "All cells",
        html! {
            p.aside { (servers::reading(run)) }
            @for cell in &analysis.cells { (one_cell(run, &kinds, cell)) }
        },
    )
}

fn one_cell(run: &Run, kinds: &Kinds<'_>, cell: &CellAnalysis) -> Markup {
    let numbered = |arm: &&ArmAnalysis| arm.arm.role != Role::SelfCheck && arm.status == Status::Ok;
    html! {
        details.cell {
            summary { b { (words::subject(&run.header, &cell.cell)) } }
            @for line in servers::offered(kinds, cell) { p.aside { (line) "." } }
            @let table = servers::by_cost(run, kinds, cell, usize::MAX);
            (crate::table::Table { caption: String::new(), ..table }.html())
            @if let Some(table) = servers::further(cell) { (table.html()) }
            dl.answers {
                @for arm in cell.arms.iter().filter(numbered) {
                    dt { code { (arm.arm.label) } }
                    dd { (servers::lines(arm).join("; ")) }
                }
            }
            p.aside {
                (number::count(cell.trials_used, "trial")) " used of "
                (cell.trials_started) " started."
                @for note in crate::remarks::of_cell(cell) { " Note: " (note) "." }
            }
        }
    }
}
