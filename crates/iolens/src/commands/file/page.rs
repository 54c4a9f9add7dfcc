//! What the commands of a file print alike: lines of names and values, rates and
//! shares.

use std::fmt::Write;

use iolens_engine::files::residency::Residency;
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
        Some(rate) if rate >= Bytes::GIB as f64 => {
            format!("{} GiB/s", three_digits(rate / Bytes::GIB as f64))
        }
        Some(rate) => format!("{} MiB/s", three_digits(rate / Bytes::MIB as f64)),
        None => "none, as no time passed".to_owned(),
    }
}

/// `100 %`, or why it is not known.
pub(super) fn resident(residency: &Residency) -> String {
    match (residency, residency.share()) {
        (Residency::Unknown(why), _) => format!("unknown: {why}"),
        (_, Some(share)) => format!("{} %", three_digits(share * 100.0)),
        (_, None) => "nothing to be there".to_owned(),
    }
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
        assert_eq!((known(1, 3), known(0, 3)), ("33.3 %".to_owned(), "0 %".to_owned()));
        assert_eq!(known(0, 0), "nothing to be there");
        assert_eq!(resident(&Residency::Unknown("it hides".to_owned())), "unknown: it hides");
    }
}
