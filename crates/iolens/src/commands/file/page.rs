//! What the commands of a file print alike: lines of names and values, rates and
//! shares.

use std::fmt::Write;

use iolens_file::moved::Moved;
use iolens_file::residency::Residency;
use iolens_model::transfer::Cpu;
use iolens_model::units::{Bytes, Nanos, three_digits};

/// Where the values stand, behind the names.
const INDENT: usize = 14;

/// A result for a person: what was done, a line for each thing, and notes.
pub(super) fn page(headline: &str, rows: &[(&str, String)], notes: &[String]) -> String {
    let mut text = format!("{headline}\n");
    for (name, value) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name:0$}{value}", INDENT - 2);
    }
    for note in notes {
        let _ = writeln!(text, "  note: {note}");
    }
    text
}

/// `1048576 (1 MiB)`.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        Bytes::KIB.. => format!("{bytes} ({})", Bytes(bytes)),
        _ => bytes.to_string(),
    }
}

/// Bytes per second; null where no time passed.
pub(super) fn bytes_per_s(bytes: u64, time: Nanos) -> Option<f64> {
    (time.0 > 0).then(|| bytes as f64 / time.as_seconds())
}

/// `812 MiB/s`, or `2.31 GiB/s` from 1 GiB/s on.
pub(super) fn rate(bytes: u64, time: Nanos) -> String {
    match bytes_per_s(bytes, time) {
        Some(rate) => iolens_report::rate(rate),
        None => "none, as no time passed".to_owned(),
    }
}

/// `100 %`, or why it is not known.
pub(super) fn resident(residency: &Residency) -> String {
    match (residency, residency.share()) {
        (Residency::Unknown(why), _) => format!("unknown: {why}"),
        (_, Some(share)) => format!("{}%", three_digits(share * 100.0)),
        (_, None) => "– (an empty file)".to_owned(),
    }
}

/// `100 % before, 100 % after`, or why that is not known, once; before there was a
/// file nothing was resident.
pub(super) fn resident_twice(before: Option<&Residency>, after: &Residency) -> String {
    match (before, after) {
        (None, after) => format!("{} after", resident(after)),
        (Some(Residency::Unknown(why)), Residency::Unknown(_)) => format!("unknown: {why}"),
        (Some(before), after) => format!("{} before, {} after", resident(before), resident(after)),
    }
}

/// `257, 3.98 KiB per call; 1 cut short or interrupted`.
pub(super) fn calls(moved: &Moved) -> String {
    let mut text = calls_of(moved.calls, moved.bytes);
    if moved.short_calls > 0 {
        let _ = write!(text, "; {} cut short or interrupted", moved.short_calls);
    }
    text
}

/// `1 thread`, `3 threads`.
pub(super) fn threads(threads: u32) -> String {
    format!("{threads} thread{}", if threads == 1 { "" } else { "s" })
}

/// `257, 3.98 KiB per call`.
pub(super) fn calls_of(calls: u64, bytes: u64) -> String {
    if calls == 0 || bytes == 0 {
        return calls.to_string();
    }
    let each = match bytes as f64 / calls as f64 {
        small if small < Bytes::KIB as f64 => format!("{} B", three_digits(small)),
        _ => Bytes(bytes / calls).to_string(),
    };
    format!("{calls}, {each} per call")
}

/// `0.312346 seconds more, 812 MiB/s with them`: a sync at the end.
pub(super) fn sync(time: Nanos, sync_time: Nanos, bytes: u64) -> String {
    let both = rate(bytes, Nanos(time.0 + sync_time.0));
    format!("{:.6} seconds more, {both} with them", sync_time.as_seconds())
}

/// `312 ms, 12.1 ms of it user and 300 ms system`.
pub(super) fn cpu(cpu: Option<(Nanos, Nanos)>) -> String {
    match cpu {
        Some((user, system)) => Cpu { user, system }.in_words(""),
        None => "unknown: getrusage(2) failed".to_owned(),
    }
}

/// CPU time, and its parts in user mode and in the kernel, for programs.
pub(super) fn cpu_ns(cpu: Option<(Nanos, Nanos)>) -> [Option<Nanos>; 3] {
    let cpu = cpu.map(|(user, system)| Cpu { user, system });
    let parts = cpu.and_then(|cpu| cpu.parts());
    [cpu.map(|cpu| cpu.sum()), parts.map(|(user, _)| user), parts.map(|(_, system)| system)]
}

/// Names and values as an object.
pub(super) fn facts(facts: &[(String, String)]) -> serde_json::Value {
    facts.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_one_of_two_units() {
        let check = |bytes, ns, expect: &str| assert_eq!(rate(bytes, Nanos(ns)), expect);
        check(1 << 20, 1_000_000_000, "1.00 MiB/s");
        check(1 << 30, 1_000_000_000, "1.00 GiB/s");
        check(1, 1_000, "0.954 MiB/s");
        check(0, 0, "none, as no time passed");
    }

    #[test]
    fn shares_are_percentages_or_reasons() {
        let known = |cached, pages| resident(&Residency::Known { cached, pages });
        assert_eq!((known(1, 3), known(0, 3)), ("33.3%".to_owned(), "0%".to_owned()));
        assert_eq!(known(0, 0), "– (an empty file)");
        assert_eq!(resident(&Residency::Unknown("it hides".to_owned())), "unknown: it hides");
    }
}
