//! All cells.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use maud::{Markup, html};

use crate::results;
use crate::words;

/// One table per curve, with every column.
pub(super) fn section(run: &Run, analysis: &Analysis) -> Markup {
    let plan = &run.header.plan;
    super::block(
        "cells",
        "All cells",
        html! {
            @for (curve, cells) in results::curves(analysis) {
                h3 { (words::curve(plan, &curve)) }
                (results::results(plan, &cells, usize::MAX).html())
            }
            p.aside {
                "Ratio: time per message of " code { (plan.baseline) } " over the arm’s; above 1 "
                "the arm is faster. Its interval is pointwise"
                @if !plan.quick {
                    "; verdicts use simultaneous ones over all " (analysis.contrasts)
                    " contrasts"
                }
                ". Goodput, time and CPU are totals over totals; CPU is sender plus receiver, "
                "user and kernel. Copies are per byte, at the sender / end to end."
            }
        },
    )
}
