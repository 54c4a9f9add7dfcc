//! The figures, each with its numbers as a table.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use maud::{Markup, PreEscaped, html};

use crate::figure;

/// All figures, the ratio first.
pub(super) fn section(run: &Run, analysis: &Analysis) -> Markup {
    super::block(
        "figures",
        "Figures",
        html! {
            @for figure in figure::all(run, analysis) {
                figure id=(figure.file_stem) {
                    div.scroll { (PreEscaped(&figure.inline)) }
                    details {
                        summary { "The numbers of this figure" }
                        (figure.table.html())
                    }
                }
            }
        },
    )
}
