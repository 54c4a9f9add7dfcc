//! What a processor can count in its time.

use super::{Breach, above, outside};

/// The clocks that count as possible, as cycles over CPU time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockRange {
    /// The lowest, in GHz.
    pub low_ghz: f64,
    /// The highest, in GHz.
    pub high_ghz: f64,
}

impl ClockRange {
    /// Where nobody said what the machine is: chosen, not measured. No
    /// processor is clocked above 8 GHz outside of a contest; 0.2 GHz is half
    /// of 0.4, a low step of common ones, for time that a hypervisor took away
    /// while CPU time went on. A slower machine has to say so.
    pub const ANY: ClockRange = ClockRange { low_ghz: 0.2, high_ghz: 8.0 };

    /// From 0.2 times the lowest to 1.2 times the highest frequency that the
    /// machine names: it may have stood still in part of the time, and been
    /// boosted beyond what it says.
    #[must_use]
    pub fn of(lowest_ghz: Option<f64>, highest_ghz: Option<f64>) -> ClockRange {
        ClockRange {
            low_ghz: lowest_ghz.map_or(ClockRange::ANY.low_ghz, |ghz| 0.2 * ghz),
            high_ghz: highest_ghz.map_or(ClockRange::ANY.high_ghz, |ghz| 1.2 * ghz),
        }
    }
}

/// Cycles over CPU time, in GHz.
#[must_use]
pub fn clock_ghz(cycles: f64, cpu_ns: f64, range: ClockRange) -> Option<Breach> {
    outside(cycles / cpu_ns, range.low_ghz, range.high_ghz)
}

/// No core retires more than 12 instructions a cycle (the widest are
/// built for 10), and one that retires less than one in a hundred did not
/// count the same thing as the clock.
#[must_use]
pub fn instructions_per_cycle(instructions: f64, cycles: f64) -> Option<Breach> {
    outside(instructions / cycles, 0.01, 12.0)
}

/// Threads cannot use more CPU than there was time, in ns. CPU time is
/// read outside of the clock, so 5 % and a millisecond are allowed for what
/// lies between.
#[must_use]
pub fn cpu_time(cpu_ns: f64, wall_ns: f64, threads: f64) -> Option<Breach> {
    const MARGIN: f64 = 1.05;
    const MARGIN_NS: f64 = 1e6;
    above(cpu_ns, wall_ns * threads * MARGIN + MARGIN_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_end_where_processors_do() {
        let any = |cycles| clock_ghz(cycles, 1e9, ClockRange::ANY).map(|breach| breach.value);
        assert_eq!(any(2.5e9), None);
        assert_eq!(any(0.4e9), None);
        assert_eq!(any(18e9), Some(18.0));
        assert_eq!(any(0.131e9), Some(0.131));
        let known = ClockRange::of(Some(0.8), Some(3.5));
        assert_eq!(clock_ghz(4.1e9, 1e9, known), None);
        assert!(clock_ghz(4.3e9, 1e9, known).is_some());
        assert!(clock_ghz(0.15e9, 1e9, known).is_some());
        assert_eq!(clock_ghz(0.0, 0.0, known), None);
    }

    #[test]
    fn instructions_and_cpu_time_have_their_bounds() {
        assert_eq!(instructions_per_cycle(4e9, 1e9), None);
        assert!(instructions_per_cycle(20e9, 1e9).is_some());
        assert!(instructions_per_cycle(1e6, 1e9).is_some());
        assert_eq!(cpu_time(2.05e9, 1e9, 2.0), None);
        assert_eq!(cpu_time(2.2e9, 1e9, 2.0).map(|breach| breach.high), Some(2.101e9));
    }
}
