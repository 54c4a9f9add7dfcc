//! The questions of a systems course, answered or not.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use maud::{Markup, html};

use super::answers::prose;
use crate::questions::{Answer, Outcome, answers};

/// Lines of evidence up to which they stand in the open.
const OPEN: usize = 3;

/// Lines of evidence that are shown at most; the cells have the rest.
const MOST: usize = 40;

/// One block per question, the evidence behind a fold where there is much.
pub(super) fn section(run: &Run, analysis: &Analysis) -> Markup {
    super::block(
        "questions",
        "Questions and answers",
        html! { @for answer in answers(run, analysis) { (block(run, &answer)) } },
    )
}

fn block(run: &Run, answer: &Answer) -> Markup {
    html! {
        div.question id=(answer.id) {
            h3 { (answer.question) }
            @match &answer.outcome {
                Outcome::Answered { sentences, evidence } => {
                    @for sentence in sentences { p { (prose(run, sentence)) } }
                    @if !evidence.is_empty() {
                        details open[evidence.len() <= OPEN] {
                            summary { "The numbers behind it" }
                            ul.evidence {
                                @for line in evidence.iter().take(MOST) {
                                    li { (prose(run, line)) }
                                }
                                @if evidence.len() > MOST {
                                    li { "and " (evidence.len() - MOST) " more, under All cells." }
                                }
                            }
                        }
                    }
                }
                Outcome::NotDecidable { why, known } => {
                    p { b { "Not decidable from this run: " } (prose(run, why)) }
                    @for sentence in known { p { (prose(run, sentence)) } }
                }
            }
        }
    }
}
