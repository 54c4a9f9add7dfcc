//! Context switches per message by size.

use iolens_model::run::Run;

use super::metric::SWITCHES;
use super::{Figure, Group, Sweep, by_size};

/// The figure of one sweep.
pub(super) fn figure(run: &Run, sweep: &Sweep<'_>) -> Option<Figure> {
    SWITCHES.is_in(&sweep.cells()).then(|| {
        let title = "Context switches by message size (per message, both ends)";
        let both = "; voluntary and involuntary together";
        let panels = by_size::panels(run, sweep, &SWITCHES);
        let chart = by_size::chart(run, sweep, title, both, panels);
        sweep.figure(run, Group::Time, "context-switches-by-size", chart)
    })
}
