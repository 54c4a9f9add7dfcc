//! Issue 25: trials that resemble those of the passes before them.

use super::{Bench, Judged, simulated};

pub(crate) fn check(_: &Bench) -> Judged {
    let kinds = [("AR(1)", 2), ("independent", 3), ("states of", 2)];
    simulated::rates("iolens-stats", "simulation::neighbours", &kinds)
}
