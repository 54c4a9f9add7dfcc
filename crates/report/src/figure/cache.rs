//! Cache misses and references per KiB of payload by size.

use iolens_model::run::Run;

use super::metric::{L1D_MISSES, LLC_MISSES, LLC_REFERENCES, Metric};
use super::{Figure, Group, Sweep, by_size};

/// The figure of one sweep; one row per thread count.
pub(super) fn figure(run: &Run, sweep: &Sweep<'_>) -> Option<Figure> {
    let cells = sweep.cells();
    let all = [L1D_MISSES, LLC_REFERENCES, LLC_MISSES];
    let parts: Vec<Metric> = all.into_iter().filter(|part| part.is_in(&cells)).collect();
    if parts.is_empty() {
        return None;
    }
    let title = "Cache misses and references by message size (per KiB of payload, both ends)";
    let mut chart = by_size::chart(run, sweep, title, "", by_size::split(run, sweep, &parts));
    chart.columns = parts.len();
    Some(sweep.figure(run, Group::Time, "cache-misses-by-size", chart))
}
