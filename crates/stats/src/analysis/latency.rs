//! The times of an arm's requests.

use iolens_model::latency::Histogram;
use serde::Serialize;

use super::Estimate;

/// Round-trip times of an arm in a cell. A percentile is null where there are
/// fewer than 3.7 / (1 − q) times; its interval is null where one trial has
/// fewer than that.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyFigures {
    /// Times recorded.
    pub samples: u64,
    /// Mean, ns.
    pub mean_ns: Estimate,
    /// Median, ns.
    pub p50_ns: Option<Estimate>,
    /// 99th percentile, ns.
    pub p99_ns: Option<Estimate>,
    /// 99.9th percentile, ns.
    pub p999_ns: Option<Estimate>,
    /// All times, pooled by adding counts.
    pub histogram: Histogram,
}

impl LatencyFigures {
    /// Whether so many times are enough to show the quantile `q` (0 to 1):
    /// 3.7 / (1 − q), which is 370 for p99. One set in forty of that size has
    /// no time beyond its true quantile.
    #[must_use]
    pub fn enough(samples: u64, q: f64) -> bool {
        // 1 − 0.99 is not quite 0.01, and 370 times are meant to do.
        const ROUNDING: f64 = 1e-9;
        samples as f64 * (1.0 - q) >= 3.7 * (1.0 - ROUNDING)
    }
}
