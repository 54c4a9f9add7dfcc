//! Which arm at which size.

use iolens_model::family::Condition;
use iolens_model::run::Run;
use iolens_stats::analysis::{Analysis, CellAnalysis};
use maud::{Markup, html};

use crate::alone;
use crate::parts;
use crate::results;
use crate::standing::conditional_in;
use crate::words;

/// The decision table.
pub(super) fn section(run: &Run, analysis: &Analysis) -> Markup {
    if alone::is_alone(&analysis.cells) {
        return of_one(run, analysis);
    }
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
            @for (condition, arms) in conditions(analysis) {
                p.aside { (aside(condition, &arms)) }
            }
            (families(run, analysis))
            p.aside {
                "Brackets are pointwise 95 % intervals of the ratio to " code { (plan.baseline) }
                ", above 1 faster; what is said of a stretch was measured at its sizes. " (unsure)
                @if plan.has_rr() {
                    " In mode rr a message is a response to a request, and the cheapest arm is \
                      the one with the lowest time per round trip on average; percentiles stand \
                      beside it."
                }
            }
        },
    )
}

/// The rates of a run that compares nothing, in the place of the decision.
pub(super) fn of_one(run: &Run, analysis: &Analysis) -> Markup {
    super::block(
        "decision",
        "What it does",
        html! {
            (alone::table(run, analysis).html())
            p.aside {
                "Brackets are 95 % intervals over trials. A second way in --methods, or none \
                 named, gives ratios between ways, which the machine’s moods touch less."
            }
        },
    )
}

/// Curves up to which the ratios of all stand open.
const BESIDE: usize = 2;

/// Every ratio, family by family, where one figure cannot show all arms.
fn families(run: &Run, analysis: &Analysis) -> Markup {
    let plan = &run.header.plan;
    let curves = results::curves(analysis);
    let one = |cells: &[&CellAnalysis]| {
        html! {
            @for table in results::ratios(plan, cells, usize::MAX) { (table.html()) }
        }
    };
    html! {
        @if parts::is_grouped(analysis) {
            h3 id="families" { "By family" }
            div.tables {
                @for (i, (curve, cells)) in curves.iter().enumerate() {
                    @if curves.len() > BESIDE {
                        details open[i == 0] {
                            summary { (words::curve(&run.header, curve)) }
                            (one(cells))
                        }
                    } @else {
                        div { p.caption { (words::curve(&run.header, curve)) } (one(cells)) }
                    }
                }
            }
            p.aside { (results::ratios_read(plan)) }
        }
    }
}

/// The arms that not every message allows, by what they need.
fn conditions(analysis: &Analysis) -> Vec<(Condition, Vec<&str>)> {
    let mut found: Vec<(Condition, Vec<&str>)> = Vec::new();
    for arm in conditional_in(&analysis.cells) {
        let Some(condition) = arm.condition else { continue };
        match found.iter_mut().find(|(known, _)| *known == condition) {
            Some((_, arms)) => arms.push(arm.label),
            None => found.push((condition, vec![arm.label])),
        }
    }
    found.sort_by_key(|(condition, _)| *condition);
    found
}

/// Why arms are no choice among the others.
fn aside(condition: Condition, arms: &[&str]) -> Markup {
    let several = arms.len() > 1;
    html! {
        @for (i, arm) in arms.iter().enumerate() {
            @if i > 0 { @if i + 1 == arms.len() { " and " } @else { ", " } }
            code { (arm) }
        }
        @match condition {
            Condition::Contiguous => {
                @if several { " need" } @else { " needs" }
                " a message that lies in one piece already; where "
                "the fields lie scattered somebody has to copy them together first, as "
                code { "send_staged" } " does."
            }
            other => { " can be used only " (other.words()) "." }
        }
        @if several { " So they are" } @else { " So it is" }
        " no choice among the others, and "
        @if several { "have" } @else { "stands in" } " a column of "
        @if several { "their own, with the fastest of them." } @else { "its own." }
    }
}
