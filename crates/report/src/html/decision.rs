//! Which arm at which size.

use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;
use maud::{Markup, html};

use crate::alone;

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
