//! Moments in words.

/// UTC of a moment, `2026-09-21 13:33 UTC`. Civil date from days by Howard
/// Hinnant's algorithm (chrono-Compatible Low-Level Date Algorithms).
#[must_use]
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
#[must_use]
pub fn relative(unix_ns: u64, now_unix_ns: u64) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(relative(at, at + 3_600_000_000_000), "today 14:13");
        assert_eq!(relative(at, at + day), "yesterday 14:13");
        assert_eq!(relative(at, at + 5 * day), "2026-09-21 14:13");
        assert_eq!(relative(at + day, at), "2026-09-22 14:13");
    }
}
