//! The sections of a page about servers.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use maud::{Markup, html};

use super::answers::prose;
use crate::answers::{Kind, Sentence, sentences};
use crate::servers;

/// Sections by id and heading.
pub(super) const CONTENTS: [(&str, &str); 5] = [
    ("answers", "Answers"),
    ("validity", "Validity"),
    ("machine", "Machine"),
    ("cells", "All cells"),
    ("reproduce", "Reproduce"),
];

/// What was found.
pub(super) fn answers(run: &Run, analysis: &Analysis) -> Markup {
    let all = sentences(run, analysis);
    let of = |kind: Kind| all.iter().filter(move |s| s.kind == kind).collect::<Vec<&Sentence>>();
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
            ul.remarks {
                @for sentence in of(Kind::NoiseFloor).iter().chain(&of(Kind::Caution)) {
                    li { (prose(run, &sentence.text)) }
                }
            }
        },
    )
}

/// Every number.
pub(super) fn cells(run: &Run, analysis: &Analysis) -> Markup {
    super::block(
        "cells",
        "All cells",
        html! {
            @for cell in &analysis.cells {
                details {
                    summary { (cell.cell) }
                    (servers::by_cost(run, cell).html())
                    @for note in &cell.notes { p.aside { (prose(run, note)) } }
                }
            }
        },
    )
}
