//! The recorder of times of one thread.

use hdrhistogram::Histogram as Recorder;
use iolens_model::latency::Histogram;

/// Longest time that is told apart from longer ones: any stall limit is
/// shorter, or the trial has failed.
const LONGEST_NS: u64 = 60_000_000_000;

/// Times of one thread. All of its memory is there before the first one.
pub struct Times(Recorder<u64>);

impl Default for Times {
    /// Room for times from 1 ns to a minute with three significant digits.
    fn default() -> Times {
        // The bounds are constants that the recorder accepts.
        Times(Recorder::new_with_bounds(1, LONGEST_NS, 3).unwrap_or_else(|_| unreachable!()))
    }
}

impl Times {
    /// Records one; a longer one than a minute counts as that.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// What was recorded, bucket by bucket.
    pub fn histogram(&self) -> Histogram {
        let buckets = self.0.iter_recorded();
        Histogram {
            buckets: buckets
                .map(|b| (b.value_iterated_to(), b.count_since_last_iteration()))
                .collect(),
        }
    }
}
