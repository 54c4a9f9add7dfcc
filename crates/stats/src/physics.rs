//! The physics and the arithmetic that gates rest on, as functions of plain
//! numbers: values with their unit in the name go in, and what is outside of
//! the possible comes out with its bounds. The gates of our own trials
//! ([`crate::invalid_arms`]) ask them, and so does whoever looks at tables of
//! other people; the words are the caller's.
//!
//! Bounds are generous: what they are to catch (counts of something else,
//! units mixed up, numbers typed by hand) is off by factors.

mod counts;
mod series;

use crate::estimate::Interval;

pub use counts::{
    ClockRange, InFlight, accepted, clock_ghz, completed, cpu_time, in_flight,
    instructions_per_cycle, mostly_waiting, ordered, part_of, received,
};
pub use series::{
    Flow, Rounded, SwitchRate, Switching, agreement, derived_latency, flat_throughput,
    steady_switching,
};

/// Where a rate stands to what should bound it: one above a bound shows that it is none.
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
pub fn standing(share: f64, interval: Option<Interval>, unit: f64) -> Standing {
    match interval {
        _ if share <= 1.0 => Standing::Below(share),
        Some(interval) if interval.low <= unit => Standing::At,
        _ => Standing::Above,
    }
}

/// A quantity that lies where it cannot, in the unit of the function that
/// found it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Breach {
    /// What was found.
    pub value: f64,
    /// The least that is possible.
    pub low: f64,
    /// The most that is possible.
    pub high: f64,
}

/// The breach, if a value lies outside of these bounds. What is not a number
/// cannot be judged.
fn outside(value: f64, low: f64, high: f64) -> Option<Breach> {
    let judged = !value.is_nan() && !low.is_nan() && !high.is_nan();
    (judged && !(low..=high).contains(&value)).then_some(Breach { value, low, high })
}

/// The breach, if a value lies above this bound.
fn above(value: f64, high: f64) -> Option<Breach> {
    outside(value, f64::NEG_INFINITY, high)
}

/// The breach, if a value lies below this bound.
fn below(value: f64, low: f64) -> Option<Breach> {
    outside(value, low, f64::INFINITY)
}

/// A CPU that copies every byte cannot move bytes faster than a
/// `memcpy` of this bandwidth, in bytes a second; 5 % more for the error of
/// its measurement.
pub fn copy_rate(bytes_per_s: f64, memcpy_bytes_per_s: f64) -> Option<Breach> {
    const MARGIN: f64 = 1.05;
    let bound = memcpy_bytes_per_s * MARGIN;
    above(bytes_per_s, bound).filter(|_| bound > 0.0)
}

/// Where a CPU copies, it takes a cycle for 64 bytes at least, the
/// widest store there is. In cycles per byte.
pub fn cycles_per_byte(cycles: f64, bytes: f64) -> Option<Breach> {
    const BYTES_PER_CYCLE_MOST: f64 = 64.0;
    below(cycles / bytes, 1.0 / BYTES_PER_CYCLE_MOST)
}

/// A system call cannot cost less than one that does nothing, in ns.
///
/// The factor is 0.7 and not 1 because the empty call was timed at another
/// moment, on a machine whose clock and caches may have been 30 % worse then;
/// calls that were miscounted are off by whole factors.
pub fn cost_of_a_call(spent_ns: f64, calls: f64, empty_call_ns: f64) -> Option<Breach> {
    const SHARE: f64 = 0.7;
    below(spent_ns / calls, empty_call_ns * SHARE)
}

/// Least time for a copy of so many bytes, in ns, at a bandwidth that may be
/// 5 % higher than was measured.
pub fn copy_ns(bytes: f64, memcpy_bytes_per_s: f64) -> f64 {
    const MARGIN: f64 = 1.05;
    bytes / (memcpy_bytes_per_s * MARGIN) * 1e9
}

/// A median latency under half of what a message takes at the rate of
/// its own connection, as the share of that. The mean of a saturated closed
/// loop takes no less than all of it; a median stays below where there is a
/// tail, and far below where something else than the message was timed.
pub fn short_latency(median_ns: f64, per_message_ns: f64) -> Option<Breach> {
    const HALF: f64 = 0.5;
    below(median_ns / per_message_ns, HALF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_no_faster_than_memcpy() {
        assert_eq!(copy_rate(10.4e9, 10e9), None);
        assert!(copy_rate(10.6e9, 10e9).is_some());
        assert_eq!(copy_rate(1e12, 0.0), None);
        assert_eq!(cycles_per_byte(0.3, 1.0), None);
        assert!(cycles_per_byte(0.0001, 1.0).is_some());
        assert!((copy_ns(1050.0, 1e9) - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn calls_and_latencies_take_their_time() {
        assert_eq!(cost_of_a_call(71.0, 1.0, 100.0), None);
        let breach = cost_of_a_call(690.0, 10.0, 100.0).unwrap();
        assert!((breach.value - 69.0).abs() < 1e-9 && (breach.low - 70.0).abs() < 1e-9);
        assert_eq!(short_latency(260.0, 512.0), None);
        assert!(short_latency(250.0, 512.0).is_some());
    }
}
