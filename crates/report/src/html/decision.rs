//! Which arm at which size.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use maud::{Markup, html};

use crate::results;

/// The decision table.
pub(super) fn section(run: &Run, analysis: &Analysis) -> Markup {
    let unsure = if run.header.plan.quick {
        "Indicative: few trials show where to look, not what to conclude."
    } else {
        "“or” names arms that may be as cheap: their simultaneous intervals overlap."
    };
    super::block(
        "decision",
        "What to use",
        html! {
            (results::decision(run, analysis).html())
            p.aside { "Brackets are pointwise 95 % intervals of the ratio to "
                code { (run.header.plan.baseline) } ". " (unsure) }
        },
    )
}
