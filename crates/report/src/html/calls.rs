//! The sections of a page about calls.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use maud::{Markup, html};

use super::answers::prose;
use super::figures::with_twin;
use crate::answers::{Kind, Sentence, sentences};
use crate::calls;
use crate::figure;

/// Sections by id and heading.
pub(super) const CONTENTS: [(&str, &str); 6] = [
    ("answers", "Answers"),
    ("figures", "Figures"),
    ("validity", "Validity"),
    ("machine", "Machine"),
    ("cells", "All cells"),
    super::reproduce::NAMED,
];

/// What was found, then the calls by cost.
pub(super) fn answers(run: &Run, analysis: &Analysis) -> Markup {
    let all = sentences(run, analysis);
    let of = |kind: Kind| all.iter().filter(move |s| s.kind == kind).collect::<Vec<&Sentence>>();
    let first = calls::filled(analysis).first().map(|cell| calls::by_cost(run, cell, true));
    super::block(
        "answers",
        "Answers",
        html! {
            @for sentence in of(Kind::Alarm) { p.alarm { (prose(run, &sentence.text)) } }
            ul.lead {
                @for sentence in of(Kind::Headline) { li { b { (prose(run, &sentence.text)) } } }
                @for sentence in of(Kind::Answer) { li { (prose(run, &sentence.text)) } }
            }
            @for sentence in of(Kind::Turns) { p.flag { (prose(run, &sentence.text)) } }
            @if let Some(table) = first { (table.html()) }
            ul.remarks {
                @for sentence in of(Kind::NoiseFloor).iter().chain(&of(Kind::Caution)) {
                    li { (prose(run, &sentence.text)) }
                }
            }
        },
    )
}

/// Bars, and curves where the plan has rows of calls.
pub(super) fn figures(run: &Run, analysis: &Analysis) -> Markup {
    super::block(
        "figures",
        "Figures",
        html! { @for figure in figure::all(run, analysis) { (with_twin(&figure)) } },
    )
}

/// Every number, by threads and by calls in a row.
pub(super) fn cells(run: &Run, analysis: &Analysis) -> Markup {
    super::block(
        "cells",
        "All cells",
        html! {
            @if let Some(table) = calls::threads(run, analysis) { (table.html()) }
            @if let Some(table) = calls::in_a_row(run, analysis) { (table.html()) }
            @for cell in &analysis.cells {
                details {
                    summary { (cell.cell) }
                    (calls::by_cost(run, cell, false).html())
                    @for note in crate::remarks::of_cell(cell) { p.aside { (prose(run, &note)) } }
                }
            }
            @if let Some(table) = calls::missing(analysis) { (table.html()) }
            (calls::kinds(run).html())
        },
    )
}
