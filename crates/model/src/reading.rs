//! What became of a measurement: a reading that may not have been taken, and how a trial, or an arm
//! of it, ended. Missing beats wrong: "unknown" is never zero.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::axes::axis;

/// A value that was read, or the reason why it was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// Read, and covers the whole of what it is said to cover.
    Exact(T),
    /// Not read; the reason is one clause without a full stop.
    NotMeasured {
        /// What stood in the way.
        why: String,
    },
}

impl<T> Reading<T> {
    /// A reading that was not taken, for this reason.
    pub fn not_measured(why: impl Into<String>) -> Self {
        Reading::NotMeasured { why: why.into() }
    }

    /// The value, where there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Reading::Exact(value) => Some(value),
            Reading::NotMeasured { .. } => None,
        }
    }

    /// The reason, where there is no value.
    pub fn why(&self) -> Option<&str> {
        match self {
            Reading::Exact(_) => None,
            Reading::NotMeasured { why } => Some(why),
        }
    }

    /// Applies `f` to the value and keeps the reason.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Reading::Exact(value) => Reading::Exact(f(value)),
            Reading::NotMeasured { why } => Reading::NotMeasured { why },
        }
    }
}

/// A metric that one end could not read in a trial, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotMeasured {
    /// The metric's name in the table of [`crate::metrics`].
    pub metric: String,
    /// The reason, one clause.
    pub why: String,
}

// How a trial ended, or an arm of it.

axis! {
    /// How a trial, or an arm in it, ended.
    Status {
        /// Ran to its end.
        Ok = "ok",
        /// Ran, but a gate says that its numbers cannot be used.
        Invalid = "invalid",
        /// Began and did not end as it should.
        Failed = "failed",
        /// Did not begin.
        Skipped = "skipped",
        /// Ended by the user.
        Interrupted = "interrupted",
    }
}

// A histogram of times as plain data: what a recorder leaves behind, whole.
// Histograms are pooled by adding counts, never by averaging percentiles.

/// Counts of times by bucket. A bucket is named by the highest time that
/// falls into it, which is at most 0.1 % above any other one in it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Histogram {
    /// Time in ns and how often it came, ascending, no count of zero.
    pub buckets: Vec<(u64, u64)>,
}

impl Histogram {
    /// Number of times.
    pub fn total(&self) -> u64 {
        self.buckets.iter().map(|&(_, count)| count).sum()
    }

    /// Mean in ns; `None` without a time.
    pub fn mean_ns(&self) -> Option<f64> {
        let total = self.total();
        let sum: f64 = self.buckets.iter().map(|&(ns, count)| ns as f64 * count as f64).sum();
        (total > 0).then(|| sum / total as f64)
    }

    /// The smallest time that at least the share `q` (0 to 1) of all times
    /// does not exceed; `None` without a time. Whether there are enough times
    /// to show it is for the caller to say.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let total = self.total();
        // Of 0.99 × 300 = 297.00000000000006 the 297th is meant.
        let wanted = (q.clamp(0.0, 1.0) * total as f64 * (1.0 - f64::EPSILON)).ceil().max(1.0);
        let mut seen = 0;
        self.buckets.iter().find_map(|&(ns, count)| {
            seen += count;
            (seen as f64 >= wanted).then_some(ns)
        })
    }

    /// Adds the counts of another one.
    pub fn add(&mut self, other: &Histogram) {
        let mut sum: BTreeMap<u64, u64> = self.buckets.iter().copied().collect();
        for &(ns, count) in &other.buckets {
            *sum.entry(ns).or_default() += count;
        }
        self.buckets = sum.into_iter().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_came() {
        let times = Histogram { buckets: (1..=300).map(|ns| (ns, 1)).collect() };
        assert_eq!(times.total(), 300);
        assert_eq!(times.mean_ns(), Some(150.5));
        let of = |q| times.quantile_ns(q).unwrap();
        assert_eq!((of(0.0), of(0.5), of(0.99), of(1.0)), (1, 150, 297, 300));
        assert_eq!(Histogram::default().quantile_ns(0.5), None);
        assert_eq!(Histogram::default().mean_ns(), None);
    }

    #[test]
    fn pooling_adds_counts() {
        let mut sum = Histogram { buckets: vec![(10, 1), (30, 2)] };
        sum.add(&Histogram { buckets: vec![(10, 4), (20, 1)] });
        assert_eq!(sum.buckets, [(10, 5), (20, 1), (30, 2)]);
    }
}
