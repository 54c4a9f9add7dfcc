//! How cgroups held the programs of a run back.

use iolens_model::outcome::TrialOutcome;
use serde::Serialize;

use crate::interval::count;

/// Periods of a quota in which whoever ran waited for the next, which is in the time of its slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AbThrottled {
    /// Periods.
    pub periods: u64,
    /// How long all of them waited, ns.
    pub lasted_ns: u64,
    /// Trials in which some did.
    pub trials: u32,
    /// Trials.
    pub of: u32,
}

impl AbThrottled {
    /// What is known of the trials of passes; `None` where nobody waited.
    #[must_use]
    pub fn of(trials: &[TrialOutcome]) -> Option<AbThrottled> {
        let timed = || trials.iter().filter(|trial| trial.pass > 0);
        let held = timed().filter_map(|trial| trial.environment.throttled.value());
        let held: Vec<_> = held.filter(|held| held.periods > 0).collect();
        (!held.is_empty()).then(|| AbThrottled {
            periods: held.iter().map(|held| held.periods).fold(0, u64::saturating_add),
            lasted_ns: held.iter().map(|held| held.time.0).fold(0, u64::saturating_add),
            trials: count(held.len()),
            of: count(timed().count()),
        })
    }
}

#[cfg(test)]
mod tests {
    use iolens_model::reading::Reading;
    use iolens_model::server::Throttled;
    use iolens_model::units::Nanos;

    use super::*;
    use crate::fixture;

    #[test]
    fn trials_are_counted_that_a_quota_held_back() {
        let mut trials = fixture::passes(&[1.0; 4]).trials;
        assert_eq!(AbThrottled::of(&trials), None);
        for (trial, periods) in trials.iter_mut().zip([0, 3, 1]) {
            let held = Throttled { periods, time: Nanos(10 * periods) };
            trial.environment.throttled = Reading::Exact(held);
        }
        let expect = AbThrottled { periods: 4, lasted_ns: 40, trials: 2, of: 4 };
        assert_eq!(AbThrottled::of(&trials), Some(expect));
        trials[1].pass = 0;
        assert_eq!(AbThrottled::of(&trials).map(|held| (held.trials, held.of)), Some((1, 3)));
    }
}
