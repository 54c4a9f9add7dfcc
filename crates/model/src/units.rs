//! Units as types, how users write them and how they are printed; moments and CPU time.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A span on `CLOCK_MONOTONIC`, in nanoseconds; neither wall time nor cycles.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// One second.
    pub const SECOND: Nanos = Nanos(1_000_000_000);
    /// One millisecond.
    pub const MILLISECOND: Nanos = Nanos(1_000_000);

    /// The span in seconds.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The same span for the standard library.
    pub fn as_duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }

    /// As users write it, and exactly: `90s`, `1500us`.
    pub fn written(self) -> String {
        let units = [(60_000_000_000, "m"), (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
        let whole = |scale: &u64| self.0 >= *scale && self.0.is_multiple_of(*scale);
        match units.into_iter().find(|(scale, _)| whole(scale)) {
            Some((scale, unit)) => format!("{}{unit}", self.0 / scale),
            None => format!("{}ns", self.0),
        }
    }
}

/// `1.50 s`, `250 ms`, `12 µs`, `900 ns`: three significant digits at most.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let (value, unit) = match self.0 {
            60_000_000_000.. => (ns / 60e9, "min"),
            1_000_000_000.. => (ns / 1e9, "s"),
            1_000_000.. => (ns / 1e6, "ms"),
            1_000.. => (ns / 1e3, "µs"),
            _ => (ns, "ns"),
        };
        write!(f, "{} {unit}", three_digits(value))
    }
}

/// A number of bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// 1024 bytes.
    pub const KIB: u64 = 1 << 10;
    /// 1024 KiB.
    pub const MIB: u64 = 1 << 20;
    /// 1024 MiB.
    pub const GIB: u64 = 1 << 30;
}

/// IEC with a blank, as in `64 KiB`, `1.5 MiB`, `100 B`; exact when whole.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0 {
            Self::GIB.. => (Self::GIB, "GiB"),
            Self::MIB.. => (Self::MIB, "MiB"),
            Self::KIB.. => (Self::KIB, "KiB"),
            _ => (1, "B"),
        };
        if self.0.is_multiple_of(scale) {
            write!(f, "{} {unit}", self.0 / scale)
        } else {
            write!(f, "{} {unit}", three_digits(self.0 as f64 / scale as f64))
        }
    }
}

/// A value to three significant digits, without an exponent: `0.000306`, `1.50`,
/// `12.3`, `123`, `4567`.
pub fn three_digits(value: f64) -> String {
    /// Nothing that is shown is smaller than this many can tell.
    const DECIMALS_MAX: usize = 12;
    if value == 0.0 || !value.is_finite() {
        return format!("{value:.0}");
    }
    // The least that two decimals give three digits of, which is less for each one more.
    let (mut decimals, mut least) = (0, 99.95);
    while value.abs() < least && decimals < DECIMALS_MAX {
        (decimals, least) = (decimals + 1, least / 10.0);
    }
    format!("{value:.decimals$}")
}

// Moments in words.

/// UTC of a moment, `2026-09-21 13:33 UTC`. Civil date from days by Howard
/// Hinnant's algorithm (chrono-Compatible Low-Level Date Algorithms).
pub fn utc(unix_ns: u64) -> String {
    let minutes = unix_ns / 60_000_000_000;
    let (days, minute) = (minutes / 1440, minutes % 1440);
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", minute / 60, minute % 60)
}

/// The same as somebody says it now: `today 13:33`, `yesterday 13:33`, `2026-09-21 13:33`; UTC.
pub fn relative_utc(unix_ns: u64, now_unix_ns: u64) -> String {
    let utc = utc(unix_ns);
    let utc = utc.trim_end_matches(" UTC");
    let (date, time) = utc.split_once(' ').unwrap_or((utc, ""));
    let day = |ns: u64| ns / 86_400_000_000_000;
    match day(now_unix_ns).checked_sub(day(unix_ns)) {
        Some(0) => format!("today {time}"),
        Some(1) => format!("yesterday {time}"),
        _ => format!("{date} {time}"),
    }
}

// CPU time that something took.

/// CPU time of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// In user mode.
    pub user: Nanos,
    /// In the kernel.
    pub system: Nanos,
}

impl Cpu {
    /// Below this the parts say where some few ticks of the kernel's clock found the process.
    const PARTS_MIN: Nanos = Nanos(50 * Nanos::MILLISECOND.0);

    /// All of it, which the kernel counts in ns.
    pub fn sum(&self) -> Nanos {
        Nanos(self.user.0.saturating_add(self.system.0))
    }

    /// In user mode and in the kernel, where that means something: the kernel divides the sum by
    /// where the ticks of its clock found the process. A part that no tick found is not known to be
    /// nothing.
    pub fn parts(&self) -> Option<(Nanos, Nanos)> {
        let is_known = self.sum() >= Cpu::PARTS_MIN && self.user.0 > 0 && self.system.0 > 0;
        is_known.then_some((self.user, self.system))
    }

    /// `12.1 ms`, with `behind` after it, and with its parts where they mean something.
    pub fn in_words(&self, behind: &str) -> String {
        let sum = self.sum();
        match self.parts() {
            Some((user, system)) => {
                format!("{sum}{behind}, {user} of it user and {system} system")
            }
            None => format!("{sum}{behind}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_print_in_iec() {
        let check = |bytes, expect: &str| assert_eq!(Bytes(bytes).to_string(), expect);
        check(0, "0 B");
        check(1, "1 B");
        check(1023, "1023 B");
        check(1024, "1 KiB");
        check(1536, "1.50 KiB");
        check(65536, "64 KiB");
        check(16 << 20, "16 MiB");
        check(1 << 30, "1 GiB");
    }

    #[test]
    fn three_digits_are_three_however_small() {
        let check = |value, expect: &str| assert_eq!(three_digits(value), expect);
        check(1234.5, "1234");
        check(99.96, "100");
        check(9.994, "9.99");
        check(9.996, "10.0");
        check(0.099_96, "0.100");
        check(0.001_34, "0.00134");
        check(0.000_306_4, "0.000306");
        check(-0.0123, "-0.0123");
        check(0.0, "0");
    }

    #[test]
    fn spans_print_with_three_digits() {
        let check = |ns, expect: &str| assert_eq!(Nanos(ns).to_string(), expect);
        check(0, "0 ns");
        check(17, "17.0 ns");
        check(1_500, "1.50 µs");
        check(250_000_000, "250 ms");
        check(2_000_000_000, "2.00 s");
        check(90_000_000_000, "1.50 min");
    }

    #[test]
    fn moments_print_as_civil_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00 UTC");
        assert_eq!(utc(951_782_400_000_000_000), "2000-02-29 00:00 UTC");
        assert_eq!(utc(1_790_000_000_000_000_000), "2026-09-21 14:13 UTC");
    }

    #[test]
    fn days_near_now_are_said_as_such() {
        let at = 1_790_000_000_000_000_000;
        let day = 86_400_000_000_000;
        assert_eq!(relative_utc(at, at + 3_600_000_000_000), "today 14:13");
        assert_eq!(relative_utc(at, at + day), "yesterday 14:13");
        assert_eq!(relative_utc(at, at + 5 * day), "2026-09-21 14:13");
        assert_eq!(relative_utc(at + day, at), "2026-09-22 14:13");
    }
}
