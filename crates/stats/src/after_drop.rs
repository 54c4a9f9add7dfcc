//! What dropping caches of the whole system is worth: the time of the first reads and
//! of opening files after each mode, over that after nothing was dropped. Modes were
//! tried in rounds of random order; a ratio is of two times of one round.

use iolens_model::file::{AfterDrop, DropMode};

use crate::estimate::Estimate;
use crate::interval::Moments;
use crate::student::StudentTable;

/// What one mode did to one thing that was timed.
#[derive(Debug, Clone, PartialEq)]
pub struct Worth {
    /// The mode; `None` for nothing.
    pub mode: Option<DropMode>,
    /// The time, ns: the geometric mean, with a 95 % interval.
    pub time_ns: Estimate,
    /// The time over that after nothing was dropped; `None` for nothing itself.
    pub ratio: Option<Estimate>,
}

/// Of each mode that was tried, nothing first.
pub fn worth(found: &[AfterDrop], time_ns: impl Fn(&AfterDrop) -> f64) -> Vec<Worth> {
    let modes = std::iter::once(None).chain(DropMode::ALL.iter().copied().map(Some));
    let of = |mode: Option<DropMode>| -> Vec<f64> {
        let own = found.iter().filter(|one| one.mode == mode);
        own.map(|one| time_ns(one).max(1.0).ln()).collect()
    };
    let nothing = of(None);
    modes
        .filter_map(|mode| {
            let times = of(mode);
            let over: Vec<f64> = times.iter().zip(&nothing).map(|(a, b)| a - b).collect();
            let ratio = mode.and_then(|_| geometric(&over));
            Some(Worth { mode, time_ns: geometric(&times)?, ratio })
        })
        .collect()
}

/// The mean of logarithms as a value, with its interval.
fn geometric(logarithms: &[f64]) -> Option<Estimate> {
    let moments = Moments::of(logarithms)?;
    let interval = moments.interval(&mut StudentTable::new(1), |found| found.pointwise);
    Some(Estimate { value: moments.mean.exp(), interval, n: moments.n })
}

#[cfg(test)]
mod tests {
    use iolens_model::units::Nanos;

    use super::*;

    fn one(mode: Option<DropMode>, page: u64) -> AfterDrop {
        AfterDrop {
            mode,
            page: Nanos(page),
            mib: Nanos(1),
            names: Nanos(1),
            resident_bytes: None,
            cached_permille: None,
            unused_dentries_permille: None,
        }
    }

    #[test]
    fn times_of_a_round_are_compared_with_each_other() {
        // The machine is ten times as slow in every second round: the ratio is not.
        let found: Vec<AfterDrop> = (0..6)
            .flat_map(|round| {
                let slow = if round % 2 == 0 { 1 } else { 10 };
                [one(Some(DropMode::Pages), 4000 * slow), one(None, 100 * slow)]
            })
            .collect();
        let worth = worth(&found, |one| one.page.0 as f64);
        let [nothing, pages] = &worth[..] else { panic!("{worth:?}") };
        assert_eq!((nothing.mode, nothing.ratio), (None, None));
        let ratio = pages.ratio.expect("a ratio");
        assert!((ratio.value - 40.0).abs() < 1e-9 && ratio.n == 6, "{ratio:?}");
        let interval = ratio.interval.expect("an interval");
        assert!(interval.high - interval.low < 1e-6, "{interval:?}");
        let spread = pages.time_ns.interval.expect("an interval");
        assert!(spread.low < 4000.0 && spread.high > 40_000.0, "{spread:?}");
        assert!((pages.time_ns.value - 12_649.11).abs() < 0.01, "{pages:?}");
        assert!(super::worth(&[], |one| one.page.0 as f64).is_empty());
    }
}
