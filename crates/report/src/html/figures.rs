//! The figures by what they are about, each with its numbers as a table; the
//! extremes; and a line for each figure that has no values.

use maud::{Markup, PreEscaped, html};

use crate::figure::Figure;

/// Bytes that the figures of a run may have together: more than that nobody scrolls through.
pub(super) const FIGURES_BYTES: usize = 1_500_000;

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
