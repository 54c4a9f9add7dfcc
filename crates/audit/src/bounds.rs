//! What a machine that nobody here has seen may be able to do, and how a user
//! says it better.

use iolens_stats::physics::ClockRange;
use serde::Serialize;

use crate::number::{self, DecimalMark};
use crate::unit::{self, Dimension};

/// Bounds of the machine that a file comes from. What is not given is a
/// default that is meant to be out of reach of any machine; it was chosen and
/// not measured, and the output says which it was.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bounds {
    /// The lowest frequency of its processors, in Hz.
    pub clock_min_hz: Option<f64>,
    /// The highest frequency of its processors, in Hz.
    pub clock_max_hz: Option<f64>,
    /// Bytes a second that all its threads can copy together.
    pub memory_bytes_per_s: Option<f64>,
    /// What its link carries, in bytes a second.
    pub link_bytes_per_s: Option<f64>,
    /// ns that a system call takes which does nothing.
    pub empty_call_ns: Option<f64>,
    /// Its CPUs.
    pub cpus: Option<u32>,
}

/// Bytes a second that one thread can copy: a core at 6 GHz that stores 32
/// bytes in every cycle reaches 192 GB/s, and only within its first cache.
const COPY_BYTES_PER_S: f64 = 200e9;
/// Less than half of what an empty call is known to take on common machines,
/// since the fastest is not known; the cost of a call allows 0.7 of it.
const EMPTY_CALL_NS: f64 = 20.0;

/// One bound as the output states it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatedBound {
    /// What is bounded.
    pub what: &'static str,
    /// The bound with its unit.
    pub bound: String,
    /// Whether the user gave it.
    pub given: bool,
    /// The option that gives it.
    pub option: &'static str,
}

impl Bounds {
    pub(crate) fn clock(&self) -> ClockRange {
        let ghz = |hz: Option<f64>| hz.map(|hz| hz / 1e9);
        ClockRange::of(ghz(self.clock_min_hz), ghz(self.clock_max_hz))
    }

    /// Bytes a second that so many threads copy together; `None` for as many as
    /// there may be.
    pub(crate) fn copy_bytes_per_s(&self, threads: f64) -> f64 {
        self.memory_bytes_per_s.unwrap_or(COPY_BYTES_PER_S * threads)
    }

    pub(crate) fn empty_call_ns(&self) -> f64 {
        self.empty_call_ns.unwrap_or(EMPTY_CALL_NS)
    }

    /// Every bound in words.
    pub fn stated(&self) -> Vec<StatedBound> {
        let clock = self.clock();
        let copy = match self.memory_bytes_per_s {
            Some(rate) => format!("{:.4} GB/s of all threads", rate / 1e9),
            None => format!("{:.0} GB/s per thread", COPY_BYTES_PER_S / 1e9),
        };
        let none = || "none".to_owned();
        let stated = |what, bound, given, option| StatedBound { what, bound, given, option };
        vec![
            stated(
                "lowest clock",
                format!("{:.2} GHz", clock.low_ghz),
                self.clock_min_hz.is_some(),
                "--clock-min",
            ),
            stated(
                "highest clock",
                format!("{:.2} GHz", clock.high_ghz),
                self.clock_max_hz.is_some(),
                "--clock-max",
            ),
            stated("copying", copy, self.memory_bytes_per_s.is_some(), "--memory-bandwidth"),
            stated(
                "an empty call",
                format!("{} ns, 70% of which is required", self.empty_call_ns()),
                self.empty_call_ns.is_some(),
                "--call-cost",
            ),
            stated(
                "link",
                self.link_bytes_per_s
                    .map_or_else(none, |rate| format!("{:.4} Gbit/s", rate * 8.0 / 1e9)),
                self.link_bytes_per_s.is_some(),
                "--link",
            ),
            stated(
                "CPUs",
                self.cpus.map_or_else(|| "two per thread at most".to_owned(), |n| n.to_string()),
                self.cpus.is_some(),
                "--cpus",
            ),
        ]
    }
}

/// A frequency with its unit, in Hz: `5GHz`.
///
/// # Errors
/// Why it is none, in words.
pub fn frequency(text: &str) -> Result<f64, String> {
    quantity(text, Dimension::Frequency, "a frequency such as 5GHz")
}

/// A rate of bytes or bits with its unit, in bytes a second: `25GB/s`,
/// `10Gbit/s`.
///
/// # Errors
/// Why it is none, in words.
pub fn byte_rate(text: &str) -> Result<f64, String> {
    quantity(text, Dimension::ByteRate, "a rate such as 25GB/s or 10Gbit/s")
}

/// A span with its unit, in ns: `100ns`.
///
/// # Errors
/// Why it is none, in words.
pub fn span_ns(text: &str) -> Result<f64, String> {
    quantity(text, Dimension::Time, "a span such as 100ns")
}

fn quantity(text: &str, dimension: Dimension, what: &str) -> Result<f64, String> {
    let refused = || format!("`{text}` is not {what}");
    let number = number::leading(text, DecimalMark::Point).ok_or_else(refused)?;
    let unit = unit::named(number.rest).ok().flatten().filter(|unit| unit.dimension == dimension);
    let value = number.value * unit.ok_or_else(refused)?.scale;
    if value > 0.0 && value.is_finite() { Ok(value) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bounds_take_their_unit() {
        assert_eq!(frequency("5GHz"), Ok(5e9));
        assert_eq!(byte_rate("10Gbit/s"), Ok(1.25e9));
        assert_eq!(byte_rate("25 GB/s"), Ok(25e9));
        assert_eq!(span_ns("0.1us"), Ok(100.0));
        for wrong in ["", "5", "5GB", "-1GHz", "0GHz", "GHz"] {
            assert!(frequency(wrong).is_err(), "{wrong}");
        }
        assert!(byte_rate("10mb/s").is_err());
    }

    #[test]
    fn a_clock_that_is_given_has_room_around_it() {
        let bounds = Bounds { clock_max_hz: Some(5e9), ..Bounds::default() };
        assert_eq!(bounds.clock(), ClockRange { low_ghz: 0.2, high_ghz: 6.0 });
        assert!(bounds.stated()[1].given && !bounds.stated()[0].given);
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "\\PC{0,16}") {
            let _ = (frequency(&text), byte_rate(&text), span_ns(&text));
        }
    }
}
