//! Counts that must fit together, and what a processor can count in its time.

use super::{Breach, Rounded, above, below, outside};

/// What was received is at most what was sent, and what is missing is
/// at most what can be in flight. In bytes.
pub fn received(sent: u64, received: u64, in_flight_most: u64) -> Option<Breach> {
    let fits = received <= sent && sent - received <= in_flight_most;
    (!fits).then(|| Breach {
        value: received as f64,
        low: sent.saturating_sub(in_flight_most) as f64,
        high: sent as f64,
    })
}

/// A part is no more than the whole, within this share.
pub fn part_of(part: f64, whole: f64, share: f64) -> Option<Breach> {
    above(part, whole * (1.0 + share))
}

/// Requests in flight, and what their number says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InFlight {
    /// Mean number of requests in flight: mean latency × rate.
    pub requests: f64,
    /// That over the connections.
    pub share: f64,
    /// Set where it is more than the connections can have, or less than half.
    pub breach: Option<Breach>,
    /// Whether more than 5 % of the connections' time had no request.
    pub is_idle: bool,
}

/// Little's law: with one request in flight on each connection, mean
/// latency × rate is the number of connections.
///
/// It cannot be more: a connection has no two requests in flight. It is less
/// by the time in which a connection has none; more than half of it is no
/// round trip any more.
pub fn in_flight(mean_ns: f64, requests_per_s: f64, connections: f64) -> InFlight {
    const MARGIN: f64 = 0.05;
    const LEAST: f64 = 0.5;
    let requests = mean_ns * requests_per_s / 1e9;
    let share = requests / connections;
    let breach = outside(share, LEAST, 1.0 + MARGIN);
    InFlight { requests, share, breach, is_idle: share < 1.0 - MARGIN }
}

/// Values that rise, such as minimum, median and p99: the first two
/// neighbours that do not, by position.
pub fn ordered(values: &[Rounded]) -> Option<(usize, usize)> {
    let falls = values.windows(2).position(|pair| pair[0].low > pair[1].high)?;
    Some((falls, falls + 1))
}

/// A counter that ran while the work took a hundredth of the time or
/// less counted mostly something else, as CPU time over elapsed time.
pub fn mostly_waiting(cpu_ns: f64, wall_ns: f64) -> Option<Breach> {
    below(cpu_ns / wall_ns, 0.01)
}

/// Every zero-copy send completed, once, and no more of them were
/// copied than completed, where that is known. True where that holds.
pub fn completed(sends: u64, completions: u64, copied: Option<u64>) -> bool {
    completions == sends && copied.is_none_or(|copied| copied <= completions)
}

/// A load generator that reached less than 98 % of what it offered
/// measured itself, as the share reached.
pub fn accepted(achieved_per_s: f64, offered_per_s: f64) -> Option<Breach> {
    below(achieved_per_s / offered_per_s, 0.98)
}

// What a processor can count in its time.

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
    pub fn of(lowest_ghz: Option<f64>, highest_ghz: Option<f64>) -> ClockRange {
        ClockRange {
            low_ghz: lowest_ghz.map_or(ClockRange::ANY.low_ghz, |ghz| 0.2 * ghz),
            high_ghz: highest_ghz.map_or(ClockRange::ANY.high_ghz, |ghz| 1.2 * ghz),
        }
    }
}

/// Cycles over CPU time, in GHz.
pub fn clock_ghz(cycles: f64, cpu_ns: f64, range: ClockRange) -> Option<Breach> {
    outside(cycles / cpu_ns, range.low_ghz, range.high_ghz)
}

/// No core retires more than 12 instructions a cycle (the widest are
/// built for 10), and one that retires less than one in a hundred did not
/// count the same thing as the clock.
pub fn instructions_per_cycle(instructions: f64, cycles: f64) -> Option<Breach> {
    outside(instructions / cycles, 0.01, 12.0)
}

/// Threads cannot use more CPU than there was time, in ns. CPU time is
/// read outside of the clock, so 5 % and a millisecond are allowed for what
/// lies between.
pub fn cpu_time(cpu_ns: f64, wall_ns: f64, threads: f64) -> Option<Breach> {
    const MARGIN: f64 = 1.05;
    const MARGIN_NS: f64 = 1e6;
    above(cpu_ns, wall_ns * threads * MARGIN + MARGIN_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn received_is_at_most_sent() {
        assert_eq!(received(100, 100, 0), None);
        assert_eq!(received(100, 90, 10), None);
        assert!(received(100, 89, 10).is_some());
        assert!(received(100, 101, u64::MAX).is_some());
    }

    #[test]
    fn requests_in_flight_are_connections() {
        let check = |mean_ns, expect_breach, expect_idle| {
            let found = in_flight(mean_ns, 1e6, 4.0);
            assert_eq!((found.breach.is_some(), found.is_idle), (expect_breach, expect_idle));
        };
        check(4000.0, false, false);
        check(4300.0, true, false);
        check(3700.0, false, true);
        check(1900.0, true, true);
    }

    #[test]
    fn parts_and_order_are_kept() {
        assert_eq!(part_of(1.04, 1.0, 0.05), None);
        assert!(part_of(1.06, 1.0, 0.05).is_some());
        assert_eq!(ordered(&[1.0, 2.0, 2.0].map(Rounded::exact)), None);
        assert_eq!(ordered(&[1.0, 3.0, 2.0].map(Rounded::exact)), Some((1, 2)));
        let printed = [(1.0, 0.5), (0.8, 0.05)].map(|(value, half)| Rounded::printed(value, half));
        assert_eq!(ordered(&printed), None);
    }

    #[test]
    fn completions_offers_and_windows() {
        assert!(completed(10, 10, Some(10)) && completed(10, 10, None));
        assert!(!completed(10, 9, Some(0)) && !completed(10, 9, None));
        assert!(!completed(10, 10, Some(11)));
        assert_eq!(accepted(99.0, 100.0), None);
        assert!(accepted(97.0, 100.0).is_some());
        assert!(mostly_waiting(20e6, 6e9).is_some());
        assert_eq!(mostly_waiting(1e9, 6e9), None);
    }

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
