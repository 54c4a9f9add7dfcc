//! Cache misses and references per KiB of payload by size.

use iolens_model::run::Run;

use super::metric::{L1D_MISSES, LLC_MISSES, LLC_REFERENCES, Metric};
use super::{Family, Figure, Group, by_size};

/// The figure of one family of curves; one row per thread count.
pub(super) fn figure(run: &Run, family: &Family<'_>) -> Option<Figure> {
    let cells = family.cells();
    let all = [L1D_MISSES, LLC_REFERENCES, LLC_MISSES];
    let parts: Vec<Metric> = all.into_iter().filter(|part| part.is_in(&cells)).collect();
    if parts.is_empty() {
        return None;
    }
    let title = "Cache misses and references by message size (per KiB of payload, both ends)";
    let mut chart = by_size::chart(run, family, title, "", by_size::split(run, family, &parts));
    chart.columns = parts.len();
    Some(family.figure(run, Group::Time, "cache-misses-by-size", &chart))
}
