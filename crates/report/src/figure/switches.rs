//! Context switches per message by size.

use iolens_model::run::Run;

use super::metric::SWITCHES;
use super::{Family, Figure, Group, by_size};

/// The figure of one family of curves.
pub(super) fn figure(run: &Run, family: &Family<'_>) -> Option<Figure> {
    SWITCHES.is_in(&family.cells()).then(|| {
        let title = "Context switches by message size (per message, both ends)";
        let both = "; voluntary and involuntary together";
        let panels = by_size::panels(run, family, &SWITCHES);
        let chart = by_size::chart(run, family, title, both, panels);
        family.figure(run, Group::Time, "context-switches-by-size", &chart)
    })
}
