//! Round trips by message size: median and 99th percentile side by side, in
//! modes that have requests.

use iolens_model::run::Run;

use super::metric::{Metric, P50, P99};
use super::{Figure, Group, Sweep, by_size};

/// The figure of one sweep; one row per thread count.
pub(super) fn figure(run: &Run, sweep: &Sweep<'_>) -> Option<Figure> {
    let cells = sweep.cells();
    let parts: Vec<Metric> = [P50, P99].into_iter().filter(|part| part.is_in(&cells)).collect();
    if parts.is_empty() {
        return None;
    }
    let title = "Round trip by message size (µs, median and 99th percentile)";
    let closed = "; closed loop: one request in flight per connection";
    let mut chart = by_size::chart(run, sweep, title, closed, by_size::split(run, sweep, &parts));
    chart.columns = parts.len();
    Some(sweep.figure(run, Group::Latency, "latency-by-size", chart))
}
