//! What memory allows, as it was measured before the run, and what a rate is of it. A rate
//! above a bound shows that the bound is none: somebody else had the memory while it was taken.

use crate::number::InWords;
use iolens_model::run::Run;
use iolens_model::units::Bytes;
use iolens_stats::analysis::Estimate;
use iolens_stats::physics::{Standing, standing};

/// A copy moves each byte in, the line that it is written to in, and that one out.
const COPY_SLACK: f64 = 3.0;

/// Pieces of a bound that differ by more than this were not all undisturbed.
const SPREAD_MAX: f64 = 0.10;

/// A rate that nothing should exceed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    /// `memory copy out of cache`.
    pub(crate) name: String,
    /// Whether of a copy, not a scan.
    is_copy: bool,
    pub(crate) bytes_per_s: f64,
    /// How many times this rate who does less may have: a copy in memory brings what it writes
    /// there into the caches and out again too, which who reads into a buffer that stays in
    /// cache does not.
    slack: f64,
    /// By which share the middle one of the pieces is slower than the best, which counts.
    pub(crate) spread: f64,
}

impl Bound {
    /// Where a rate stands to it.
    pub(crate) fn standing(&self, found: &Estimate) -> Standing {
        standing(found.value / self.bytes_per_s, found.interval, self.bytes_per_s)
    }

    /// Whether a rate above it can be: of who reads, beside a copy that writes as much besides.
    pub(crate) fn allows(&self, bytes_per_s: f64) -> bool {
        bytes_per_s <= self.slack * self.bytes_per_s
    }

    /// By which share the middle piece is slower than the best, where that is much.
    pub(crate) fn wide(&self) -> Option<f64> {
        (self.spread > SPREAD_MAX).then_some(self.spread)
    }

    /// What is said beside its rate where its pieces differ.
    pub(crate) fn mark(&self) -> String {
        self.wide().or_empty(disturbed)
    }
}

/// That pieces of a bound differ.
pub(crate) fn disturbed(spread: f64) -> String {
    format!(", best of pieces that differ: the middle one is {:.0}% slower", 100.0 * spread)
}

/// What is said of a bound that was exceeded.
pub(crate) const NO_BOUND: &str = "was taken while the machine was busy and is no bound";

/// What memory allows who reads: measured with one thread and with as many as the calibration
/// had; for a number between there is none. In or out of the last-level cache, as the file
/// fits it or does not.
pub(crate) fn rooflines(run: &Run, threads: u32) -> Vec<Bound> {
    let file = run.header.file.as_ref().map(|file| file.bytes.0);
    of_memory(run, threads, file.is_some_and(|file| fits_cache(run, file)))
}

/// What memory allows who copies a file of a size, which has a second one as large to
/// write: in or out of the last-level cache, as both fit it or do not.
pub(crate) fn copy_limit(run: &Run, threads: u32, file: Bytes) -> Option<Bound> {
    let fits = fits_cache(run, file.0.saturating_mul(2));
    of_memory(run, threads, fits).into_iter().find(|bound| bound.is_copy)
}

/// Threads that the calibration had at once, at most; 0 where there was none.
pub(crate) fn threads_at_most(run: &Run) -> u32 {
    run.header.calibration.as_ref().map_or(0, |calibration| calibration.threads)
}

/// Whether the last-level cache has room for so many bytes.
fn fits_cache(run: &Run, bytes: u64) -> bool {
    run.header.host.llc.value().is_some_and(|llc| bytes <= llc.0)
}

/// Reading and copying, whether what is read or copied fits the last-level cache or not.
pub(crate) fn of_memory(run: &Run, threads: u32, fits: bool) -> Vec<Bound> {
    let Some(c) = &run.header.calibration else { return Vec::new() };
    if threads > 1 && threads < c.threads {
        return Vec::new();
    }
    let pick = |hot: f64, cold: f64| if fits { hot } else { cold };
    let (scan, copy, spread) = match threads {
        1 => (
            pick(c.costs.scan_hot_bytes_per_s, c.costs.scan_cold_bytes_per_s),
            pick(c.memcpy_hot_bytes_per_s, c.memcpy_cold_bytes_per_s),
            c.spread.one,
        ),
        _ => (
            pick(c.costs.scan_hot_all_bytes_per_s, c.costs.scan_cold_all_bytes_per_s),
            pick(c.memcpy_hot_all_bytes_per_s, c.memcpy_cold_all_bytes_per_s),
            c.spread.all,
        ),
    };
    let place = if fits { "in cache" } else { "beyond cache" };
    let copies = run.header.plan.copy().is_some();
    let named = |is_copy: bool, bytes_per_s: f64, spread: f64| Bound {
        name: format!("memory {} {place}", if is_copy { "copy" } else { "scan" }),
        is_copy,
        bytes_per_s,
        slack: if is_copy && !copies { COPY_SLACK } else { 1.0 },
        spread,
    };
    // Who writes looks at nothing.
    let looks = run.header.plan.write().is_none();
    let scan = looks.then(|| named(false, scan, pick(spread.scan_hot, spread.scan_cold)));
    let copy = named(true, copy, pick(spread.copy_hot, spread.copy_cold));
    let both = scan.into_iter().chain([copy]);
    both.filter(|bound| bound.bytes_per_s > 0.0).collect()
}

#[cfg(test)]
mod tests {
    use iolens_stats::analysis::Interval;

    use super::*;

    fn bound(slack: f64, spread: f64) -> Bound {
        let name = "memory copy".to_owned();
        Bound { name, is_copy: false, bytes_per_s: 1e10, slack, spread }
    }

    #[test]
    fn a_share_above_a_bound_is_never_a_plain_share() {
        let standing = |rate: f64, half: f64| {
            let interval = Some(Interval { low: rate - half, high: rate + half });
            bound(1.0, 0.02).standing(&Estimate { value: rate, interval, n: 3 })
        };
        assert_eq!(standing(5e9, 1e8), Standing::Below(0.5));
        assert_eq!(standing(1.01e10, 2e8), Standing::At);
        assert_eq!(standing(4.36e10, 2e8), Standing::Above);
    }

    #[test]
    fn who_reads_may_be_faster_than_a_copy_by_what_that_writes() {
        assert!(bound(COPY_SLACK, 0.02).allows(1.6e10));
        assert!(!bound(COPY_SLACK, 0.02).allows(4.36e10));
    }

    #[test]
    fn a_bound_whose_pieces_differ_is_marked() {
        assert!(bound(1.0, 0.34).mark().contains("the middle one is 34% slower"));
        assert_eq!(bound(1.0, 0.09).mark(), "");
    }
}
