//! The figures by what they are about, each with its numbers as a table; the
//! extremes; and a line for each figure that has no values.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use iolens_stats::attribution;
use maud::{Markup, PreEscaped, html};

use crate::explain;
use crate::figure::{self, Figure, Group};
use crate::number;

/// The figures that have room in so many bytes.
pub(super) fn section(run: &Run, analysis: &Analysis, room: usize) -> Markup {
    let families = figure::families(analysis);
    let (figures, left_out) =
        within(room.min(FIGURES_BYTES), figure::all(run, analysis), !families.is_empty());
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
            @if families.is_empty() {
                @for group in Group::ALL {
                    @let figures = of(group);
                    @if !figures.is_empty() { h3 { (group.heading()) } }
                    @if group == Group::Time { (explained(run, analysis)) }
                    @for figure in figures { (with_twin(figure)) }
                }
            } @else {
                @for (id, name) in &families {
                    (family(id, name, figures.iter().filter(|f| f.family == Some(id)).collect()))
                }
                h3 { (Group::Time.heading()) }
                (explained(run, analysis))
                @for figure in figures.iter().filter(|f| f.family.is_none()) { (with_twin(figure)) }
            }
            @if let Some(table) = figure::extremes::table(run, analysis) {
                h3 { "Extremes" }
                (table.html())
            }
            @if left_out > 0 {
                p.aside {
                    "With all figures the page would be too large: "
                    b { (left_out) " more" } " are written by "
                    code { "iolens report " (run.header.id) " --figures DIR" }
                    "; their numbers stand with the cells."
                }
            }
            @for line in missing {
                p.aside { b { (number::list(&line.what)) } ": not drawn; " (line.why) }
            }
        },
    )
}

/// Bytes that the figures of a run may have together: more than that nobody scrolls through.
pub(super) const FIGURES_BYTES: usize = 1_500_000;

/// The figures that fit, those first that say most, and how many do not. The
/// ratios of all families are always among them, where there are families.
fn within(bytes: usize, figures: Vec<Figure>, has_families: bool) -> (Vec<Figure>, usize) {
    const ORDER: [&str; 6] =
        ["ratio", "crossovers", "cheapest", "goodput-by-size", "ns-per-message", "latency-by-size"];
    let rank = |figure: &Figure| {
        let place =
            ORDER.iter().position(|metric| figure.file_stem.contains(&format!("-{metric}-")));
        place.unwrap_or(ORDER.len() + usize::from(figure.group >= Group::Threads))
    };
    let mut order: Vec<usize> = (0..figures.len()).collect();
    order.sort_by_key(|&i| rank(&figures[i]));
    let (mut used, mut kept) = (0, vec![false; figures.len()]);
    for i in order {
        let own = figures[i].inline.len() + figures[i].table.html().into_string().len();
        if used + own <= bytes || (has_families && rank(&figures[i]) == 0) {
            (used, kept[i]) = (used + own, true);
        }
    }
    let left_out = kept.iter().filter(|kept| !**kept).count();
    let kept = figures.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(figure, _)| figure);
    (drawn_once(kept.collect(), bytes), left_out)
}

/// The same figures; where they have no room in so many bytes, without a second drawing of any
/// for narrow screens, on which they scroll then.
pub(super) fn drawn_once(figures: Vec<Figure>, bytes: usize) -> Vec<Figure> {
    let own = |figure: &Figure| {
        let narrow = figure.narrow.as_ref().map_or(0, String::len);
        figure.inline.len() + narrow + figure.table.html().into_string().len()
    };
    if figures.iter().map(own).sum::<usize>() <= bytes {
        return figures;
    }
    figures.into_iter().map(|figure| Figure { narrow: None, ..figure }).collect()
}

/// The figures of one family: which arm from which size on and the main curves
/// in the open, the others folded.
fn family(id: &str, name: &str, figures: Vec<&Figure>) -> Markup {
    let first = |figure: &&Figure| figure.leads;
    let (first, more): (Vec<&Figure>, Vec<&Figure>) = figures.into_iter().partition(first);
    html! {
        h3 id={ "family-" (id) } data-family=(id) { (name) }
        @for figure in first { (with_twin(figure)) }
        @if !more.is_empty() {
            details {
                summary {
                    "More of " (name) ": goodput, time per message, where the time goes ("
                    (number::count(u32::try_from(more.len()).unwrap_or(u32::MAX), "figure")) ")"
                }
                @for figure in more { (with_twin(figure)) }
            }
        }
    }
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
pub(super) fn with_twin(figure: &Figure) -> Markup {
    html! {
        figure id=(figure.file_stem) data-lines=(figure.lines) {
            div.scroll.wide[figure.narrow.is_some()] { (PreEscaped(&figure.inline)) }
            @if let Some(narrow) = &figure.narrow { div.narrow { (PreEscaped(narrow)) } }
            details {
                summary { "The numbers of this figure" }
                (figure.table.html())
            }
        }
    }
}
