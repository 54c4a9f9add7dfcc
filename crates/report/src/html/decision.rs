//! Which arm at which size.

use iolens_model::axes::Mode;
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use maud::{Markup, html};

use crate::arms;
use crate::results;
use crate::standing::{Candidate, conditional_in};

/// The decision table.
pub(super) fn section(run: &Run, analysis: &Analysis) -> Markup {
    let plan = &run.header.plan;
    let unsure = if plan.quick {
        "Indicative: few trials show where to look, not what to conclude."
    } else {
        "“Lowest, not separated from” names the arm with the least time in this run, whose ratio \
         stands beside it, and those that may be as cheap: no simultaneous interval sets them \
         apart. “Equal within δ” names arms that surely differ by less than δ."
    };
    super::block(
        "decision",
        "What to use",
        html! {
            (results::decision(run, analysis).html())
            @for arm in conditional_in(&analysis.cells) {
                p.aside { (aside(&arm)) }
            }
            p.aside {
                "Brackets are pointwise 95 % intervals of the ratio to " code { (plan.baseline) }
                ", above 1 faster; what is said of a stretch was measured at its sizes. " (unsure)
                @if plan.modes.contains(&Mode::Rr) {
                    " In mode rr a message is a response to a request, and the cheapest arm is \
                      the one with the lowest time per round trip on average; percentiles stand \
                      beside it."
                }
            }
        },
    )
}

/// Why an arm is no choice among the others.
fn aside(arm: &Candidate<'_>) -> Markup {
    html! {
        code { (arm.label) }
        @match arms::condition(arm.primitive) {
            Some(arms::CONTIGUOUS) | None => {
                " needs a message that lies in one piece already; where "
                "the fields lie scattered somebody has to copy them together first, as "
                code { "send_staged" } " does."
            }
            Some(condition) => { " can be used " (condition) "." }
        }
        " So it is no choice among the others, and stands in a column of its own."
    }
}
