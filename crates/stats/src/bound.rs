//! Where a rate stands to what should bound it. One above a bound shows that the bound is none.

use crate::estimate::Interval;

/// Where a rate stands to a bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing {
    /// It is this share of it.
    Below(f64),
    /// Its interval holds it.
    At,
    /// It is above it, which cannot be.
    Above,
}

/// Where a share of a bound stands; the interval is that of the rate, in units of which the
/// bound has `unit`.
#[must_use]
pub fn standing(share: f64, interval: Option<Interval>, unit: f64) -> Standing {
    match interval {
        _ if share <= 1.0 => Standing::Below(share),
        Some(interval) if interval.low <= unit => Standing::At,
        _ => Standing::Above,
    }
}
