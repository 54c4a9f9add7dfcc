//! All cells: one line each, which opens to everything that was measured.

use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, CellAnalysis};
use maud::{Markup, html};

use super::answers::prose;
use crate::results;
use crate::standing::standing;
use crate::words;

/// Cells up to which all stand open.
const OPEN: usize = 2;

/// Cells up to which each has a fold of its own with every figure; a page of
/// more, with all of that, would be larger than a browser opens at once.
const LARGE: usize = 120;

/// One fold per cell under a heading per curve, or one per curve in a large
/// run.
pub(super) fn section(run: &Run, analysis: &Analysis) -> Markup {
    let plan = &run.header.plan;
    super::block(
        "cells",
        "All cells",
        html! {
            p.aside {
                "Ratio: time per message of " code { (plan.baseline) } " over the arm’s; above 1 "
                "the arm is faster. Its interval is pointwise"
                @if !plan.quick {
                    "; verdicts use simultaneous ones over all " (analysis.contrasts)
                    " contrasts"
                }
                ". Goodput and time are those of " code { (plan.baseline) } " and the ratio; CPU, "
                "user and kernel time, by the ratio of CPU times. "
                "Copies are per byte, at the sender / end to end. A percentile q is shown from "
                "3.7 / (1 − q) round trips on."
            }
            @if analysis.cells.len() > LARGE {
                p.aside {
                    "The run has " (analysis.cells.len()) " cells; every figure of each is in "
                    code { "iolens show " (run.header.id) " CELL" } " and in "
                    code { "iolens export " (run.header.id) " --format csv" } "."
                }
            }
            @for (curve, cells) in results::curves(analysis) {
                @if analysis.cells.len() > LARGE {
                    details.cell {
                        summary { b { (words::curve(&run.header, &curve)) } }
                        (results::results(plan, &cells, usize::MAX).html())
                        @if let Some(said) = results::in_flight(&cells, &analysis.told) {
                            p.aside { (said) }
                        }
                    }
                } @else {
                    h3 { (words::curve(&run.header, &curve)) }
                    @for cell in cells { (fold(run, analysis, cell)) }
                }
            }
        },
    )
}

fn fold(run: &Run, analysis: &Analysis, cell: &CellAnalysis) -> Markup {
    html! {
        details.cell open[analysis.cells.len() <= OPEN] {
            summary {
                b { (cell.cell.size) } " " (prose(run, &standing(cell, analysis.delta).brief()))
            }
            (results::cell(cell, run.header.plan.quick).html())
            @if let Some(times) = results::latency(cell) { (times.html()) }
            @for sentence in results::decided(cell, &analysis.told) {
                p.aside { (prose(run, &sentence)) }
            }
            p.aside {
                (crate::number::count(cell.trials_used, "trial")) " used of "
                (cell.trials_started) " started."
                @for note in crate::remarks::of_cell(cell) { " Note: " (note) "." }
            }
        }
    }
}
