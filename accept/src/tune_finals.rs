//! Issue 25: finals of `tune` between arms that are equally fast.

use super::{Bench, Judged, simulated};

pub(crate) fn check(_: &Bench) -> Judged {
    simulated::rates("iolens-stats", "tune::finals", &[("equal arms", 6)])
}
