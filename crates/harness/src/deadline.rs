//! How long somebody may still wait.

use std::time::Duration;

use iolens_sys::clock;

/// The end of a time limit.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    at_ns: u64,
}

impl Deadline {
    /// As far from now as this.
    #[must_use]
    pub fn after(limit: Duration) -> Deadline {
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Deadline { at_ns: clock::monotonic_ns().saturating_add(limit_ns) }
    }

    /// What is left of it.
    #[must_use]
    pub fn left(self) -> Duration {
        Duration::from_nanos(self.at_ns.saturating_sub(clock::monotonic_ns()))
    }
}
