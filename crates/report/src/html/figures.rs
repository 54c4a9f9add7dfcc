//! The figures by what they are about, each with its numbers as a table; the
//! extremes; and a line for each figure that has no values.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use iolens_stats::attribution;
use maud::{Markup, PreEscaped, html};

use crate::explain;
use crate::figure::{self, Figure, Group};
use crate::number;

/// All figures.
pub(super) fn section(run: &Run, analysis: &Analysis) -> Markup {
    let figures = figure::all(run, analysis);
    let of = |group: Group| -> Vec<&Figure> {
        figures.iter().filter(|figure| figure.group == group).collect()
    };
    let missing = figure::not_drawn(run, analysis);
    let host = &run.header.host;
    let caches = [&host.l1d, &host.l2, &host.llc].iter().any(|cache| cache.value().is_some());
    super::block(
        "figures",
        "Figures",
        html! {
            @if caches {
                p.aside {
                    "A line named after a cache stands where one message is as large as it. The "
                    "memory in use, rings and socket buffers, is larger and leaves it earlier."
                }
            }
            @for group in Group::ALL {
                @let figures = of(group);
                @if !figures.is_empty() { h3 { (group.heading()) } }
                @if group == Group::Time { (explained(run, analysis)) }
                @for figure in figures { (with_twin(figure)) }
            }
            @if let Some(table) = figure::extremes::table(run, analysis) {
                h3 { "Extremes" }
                (table.html())
            }
            @for line in missing {
                p.aside { b { (number::list(&line.what)) } ": not drawn; " (line.why) }
            }
        },
    )
}

/// What the samples say in sentences, or how to get some.
fn explained(run: &Run, analysis: &Analysis) -> Markup {
    let explained = attribution::explain(&run.profiles, &run.header.plan.baseline);
    html! {
        @for one in &explained {
            p { b { (explain::title(one)) "." } }
            ul {
                @for sentence in explain::sentences(one) { li { (sentence) } }
                @for line in explain::cautions(one, analysis) { li.aside { (line) } }
            }
        }
        @if explained.is_empty() {
            p.aside {
                b { "CPU time by kernel function" } ": not sampled; "
                code { "iolens explain " (run.header.id) } " adds it to this page"
            }
        }
    }
}

/// A figure and, folded, its table twin.
fn with_twin(figure: &Figure) -> Markup {
    html! {
        figure id=(figure.file_stem) {
            div.scroll { (PreEscaped(&figure.inline)) }
            details {
                summary { "The numbers of this figure" }
                (figure.table.html())
            }
        }
    }
}
