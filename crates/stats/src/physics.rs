//! The physics and the arithmetic that gates rest on, as functions of plain
//! numbers: values with their unit in the name go in, and what is outside of
//! the possible comes out with its bounds. The gates of our own trials
//! ([`crate::invalid_arms`]) ask them, and so does whoever looks at tables of
//! other people; the words are the caller's.
//!
//! Bounds are generous: what they are to catch (counts of something else,
//! units mixed up, numbers typed by hand) is off by factors.

mod counts;
mod cpu;
mod rounded;
mod series;
mod transfer;

pub use counts::{
    InFlight, accepted, completed, in_flight, mostly_waiting, ordered, part_of, received,
};
pub use cpu::{ClockRange, clock_ghz, cpu_time, instructions_per_cycle};
pub use rounded::{Rounded, agreement};
pub use series::{Flow, SwitchRate, Switching, derived_latency, flat_throughput, steady_switching};
pub use transfer::{copy_ns, copy_rate, cost_of_a_call, cycles_per_byte, short_latency};

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
