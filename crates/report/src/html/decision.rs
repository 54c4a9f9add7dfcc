//! Which arm at which size.

use iolens_model::axes::Mode;
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use maud::{Markup, html};

use crate::results;

/// The decision table.
pub(super) fn section(run: &Run, analysis: &Analysis) -> Markup {
    let plan = &run.header.plan;
    let unsure = if plan.quick {
        "Indicative: few trials show where to look, not what to conclude."
    } else {
        "“Not separated” names arms of which each may be the cheapest: their simultaneous \
         intervals overlap. “Equal within δ” names arms that surely differ by less than δ."
    };
    super::block(
        "decision",
        "What to use",
        html! {
            (results::decision(run, analysis).html())
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
