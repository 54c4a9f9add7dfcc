//! The sections of a page about a file.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use maud::{Markup, html};

use super::answers::prose;
use super::figures::with_twin;
use crate::alone;
use crate::answers::{Kind, Sentence, sentences};
use crate::figure::{self, Figure, Group};
use crate::results::{self, files};
use crate::standing::standing;
use crate::{copying, words};

/// Sections by id and heading.
pub(super) const CONTENTS: [(&str, &str); 7] = [
    ("answers", "Answers"),
    ("decision", "What to use"),
    ("figures", "Figures"),
    ("validity", "Validity"),
    ("machine", "Machine"),
    ("cells", "All cells"),
    super::reproduce::NAMED,
];

/// Curves at one glance, what bounds them and what caching is worth; each block size
/// behind a fold where there are many.
pub(super) fn answers(run: &Run, analysis: &Analysis) -> Markup {
    let all = sentences(run, analysis);
    let of = |kind: Kind| all.iter().filter(move |s| s.kind == kind).collect::<Vec<&Sentence>>();
    let (headlines, cells) = (of(Kind::Headline), of(Kind::Answer));
    super::block(
        "answers",
        "Answers",
        html! {
            @for sentence in of(Kind::Alarm) { p.alarm { (prose(run, &sentence.text)) } }
            @if !headlines.is_empty() {
                (super::answers::takeaways(run, &headlines))
            }
            @for sentence in of(Kind::Turns) { p.flag { (prose(run, &sentence.text)) } }
            (super::answers::list(run, "answers", &of(Kind::Crossover)))
            @if let Some(table) = files::caching(run, analysis) {
                details { summary { "What caching is worth, by engine" } (table.html()) }
            }
            @if let Some(table) = files::durable(run, analysis) { (table.html()) }
            @if let Some(table) = crate::files::drops_table(run) {
                details open { summary { "What dropping caches is worth" } (table.html()) }
            }
            @if let Some(table) = files::cost_models(run, analysis) {
                details { summary { "The cost model, by engine" } (table.html()) }
            }
            details open[cells.len() <= 4] {
                summary { @if run.header.plan.copy().is_some() { "File size by file size" } @else { "Block size by block size" } }
                (super::answers::list(run, "answers", &cells))
            }
            ul.remarks {
                @for sentence in of(Kind::NoiseFloor).iter().chain(&of(Kind::Caution)) {
                    li { (prose(run, &sentence.text)) }
                }
            }
        },
    )
}

/// Which engine from which block size on.
pub(super) fn decision(run: &Run, analysis: &Analysis) -> Markup {
    if alone::is_alone(&analysis.cells) {
        return super::decision::of_one(run, analysis);
    }
    let unsure = if run.header.plan.quick {
        "Indicative: few trials show where to look, not what to conclude."
    } else {
        "“Lowest, not separated from” names the one with the least time in this run, whose \
         ratio stands beside it, and those that may be as cheap: no simultaneous interval sets \
         them apart. “Equal within δ” names those that surely differ by less than δ."
    };
    super::block(
        "decision",
        "What to use",
        html! {
            (results::decision(run, analysis).html())
            p.aside {
                "Brackets are pointwise 95 % intervals of the ratio to "
                code { (run.header.plan.baseline) }
                ", above 1 faster; what is said of a stretch was measured at its sizes. "
                (unsure)
            }
        },
    )
}

/// The figures by what they are about.
pub(super) fn figures(run: &Run, analysis: &Analysis) -> Markup {
    let is_copy = run.header.plan.copy().is_some();
    let figures = figure::all(run, analysis);
    let of = |group: Group| -> Vec<&Figure> {
        figures.iter().filter(|figure| figure.group == group).collect()
    };
    super::block(
        "figures",
        "Figures",
        html! {
            p.aside {
                "A line named after a cache stands where one "
                @if is_copy { "file" } @else { "block" }
                " is as large as it."
            }
            @for group in Group::ALL {
                @let figures = of(group);
                @if !figures.is_empty() { h3 { (heading(group, is_copy)) } }
                @for figure in figures { (with_twin(figure)) }
            }
        },
    )
}

fn heading(group: Group, is_copy: bool) -> &'static str {
    match (group, is_copy) {
        (Group::Crossover, true) => "Which arm, from which file size on",
        (Group::Crossover, false) => "Which engine, from which block size on",
        (group, _) => group.heading(),
    }
}

/// One table per curve, and behind a fold everything else of each cell.
pub(super) fn cells(run: &Run, analysis: &Analysis) -> Markup {
    let plan = &run.header.plan;
    super::block(
        "cells",
        "All cells",
        html! {
            p.aside {
                "Ratio: time per " (plan.study().unit()) " of " code { (plan.baseline) } " over the "
                (words::arm_of(plan)) "’s; above 1 it is the faster one. Its interval is pointwise"
                @if !plan.quick {
                    "; verdicts use simultaneous ones over all " (analysis.contrasts) " contrasts"
                }
                ". Rate and time are those of " code { (plan.baseline) } " and the ratio; CPU, "
                "user and kernel time, is not compared: " (crate::files::CPU_READ) ". "
                @if plan.copy().is_some() { (copying::START_READ) } @else { (apart(run)) }
            }
            @for (curve, cells) in results::curves(analysis) {
                h3 { (words::curve(&run.header, &curve)) }
                (files::curve(run, &analysis.told, &cells, usize::MAX).html())
                @for cell in cells {
                    details.cell {
                        summary {
                            b { (cell.cell.size) } " "
                            (prose(run, &standing(cell, analysis.delta).brief()))
                        }
                        (files::further(run, cell).html())
                        p.aside {
                            (crate::number::count(cell.trials_used, "trial")) " used of "
                            (cell.trials_started) " started."
                            @for note in crate::remarks::of_cell(cell) { " Note: " (note) "." }
                        }
                    }
                }
            }
        },
    )
}

/// What the column is about that one of the studies has alone.
fn apart(run: &Run) -> &'static str {
    match run.header.plan.write() {
        Some(_) => {
            "Left dirty: bytes in the page cache that are not on the device when a slice ends, over \
             the bytes it wrote, above 100 % where the kernel counts pages that it keeps together \
             (large folios) as a whole; brought there outside of its time."
        }
        None => {
            "From device: bytes that storage delivered to the process over the bytes it read, \
             above 100 % with what was read ahead and not asked for."
        }
    }
}

/// The file's facts, in the section of the machine.
pub(super) fn facts(run: &Run) -> Markup {
    let facts = files::file_facts(run);
    html! {
        @if !facts.is_empty() {
            div.group {
                h3 { "file" }
                dl.facts { @for (name, value) in facts { dt { (name) } dd { (value) } } }
            }
        }
    }
}
