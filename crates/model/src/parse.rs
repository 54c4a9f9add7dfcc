//! How users write values: sizes, spans, fractions and lists of them. Every
//! failure names what was written and what would be accepted.

use thiserror::Error;

use crate::units::{Bytes, Nanos};

/// Makes a type that is stored as users write it.
macro_rules! stored_as_text {
    ($type:ty) => {
        impl TryFrom<String> for $type {
            type Error = String;

            fn try_from(text: String) -> Result<$type, String> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.to_string()
            }
        }
    };
}
pub(crate) use stored_as_text;

/// Why a written value was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseError {
    /// Not a size.
    #[error(
        "`{0}` is not a size: write a whole number of bytes with an optional B, KiB, MiB or GiB, like 4096 or 64KiB"
    )]
    Size(String),
    /// More bytes than 64 bits count.
    #[error("`{0}` is too large a size: the largest is 2^64 - 1 bytes")]
    SizeTooLarge(String),
    /// A size of zero where there must be bytes.
    #[error("a size of zero moves nothing: the smallest message is 1 byte")]
    SizeZero,
    /// A size range that is empty or malformed.
    #[error(
        "`{0}` is not a range of sizes: write the smaller size first, like 64..1MiB (factors of 4)"
    )]
    SizeRange(String),
    /// Not a span of time.
    #[error("`{0}` is not a time: write a number with ns, us, ms, s, m or h, like 250ms or 5m")]
    Span(String),
    /// A span of no time, or of too much.
    #[error("`{0}` is out of range: write a time of at least 1ns and at most 168h")]
    SpanRange(String),
    /// Not an age.
    #[error("`{0}` is not an age: write a number of days, hours or minutes, like 30d or 12h")]
    Age(String),
    /// Not a fraction.
    #[error("`{0}` is out of range: write a percentage above 0% and below 100%, like 3%")]
    Fraction(String),
    /// A plain number that is meant as a percentage.
    #[error("`{0}` would be all of it or more: did you mean {0}%? Write 3% or 0.03")]
    Percent(String),
    /// Not a count of at least one.
    #[error("`{0}` is out of range: write a whole number of at least 1")]
    Count(String),
    /// Not a list of processors.
    #[error("`{0}` is not a list of CPUs: write numbers and ranges, like 0,2-3")]
    Cpus(String),
    /// A name that a run cannot have, and why.
    #[error("`{}` cannot name a run: {why}", name.escape_debug())]
    RunName {
        /// What was written.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// An empty list.
    #[error("an empty list selects nothing: name at least one value")]
    EmptyList,
}

/// What a user is told.
impl From<ParseError> for String {
    fn from(error: ParseError) -> String {
        error.to_string()
    }
}

/// A size of at least one byte: `1`, `4096`, `64KiB`, `64K`, `1MiB`. The
/// letters K, M, G alone mean KiB, MiB, GiB; `kB` and `MB` are refused,
/// because half of the world means 1000 by them.
///
/// # Errors
/// [`ParseError::Size`], [`ParseError::SizeZero`] for zero, [`ParseError::SizeTooLarge`].
pub fn size(text: &str) -> Result<Bytes, ParseError> {
    let refused = || ParseError::Size(text.to_owned());
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let scale = match unit.trim() {
        "" | "B" => 1,
        "K" | "Ki" | "KiB" => Bytes::KIB,
        "M" | "Mi" | "MiB" => Bytes::MIB,
        "G" | "Gi" | "GiB" => Bytes::GIB,
        _ => return Err(refused()),
    };
    if number.is_empty() {
        return Err(refused());
    }
    let too_large = || ParseError::SizeTooLarge(text.to_owned());
    let number: u64 = number.parse().map_err(|_| too_large())?;
    match number.checked_mul(scale).ok_or_else(too_large)? {
        0 => Err(ParseError::SizeZero),
        bytes => Ok(Bytes(bytes)),
    }
}

/// Sizes as a list (`256,4KiB`) or a range by factors of four (`64..1MiB`);
/// sorted and without repeats.
///
/// # Errors
/// As [`size`], [`ParseError::SizeRange`] for a range that does not rise,
/// [`ParseError::EmptyList`] for nothing.
pub fn sizes(text: &str) -> Result<Vec<Bytes>, ParseError> {
    let mut all = Vec::new();
    for item in items(text)? {
        match item.split_once("..") {
            None => all.push(size(item)?),
            Some((from, to)) => {
                let (from, to) = (size(from)?.0, size(to.trim_start_matches('='))?.0);
                if from >= to {
                    return Err(ParseError::SizeRange(item.to_owned()));
                }
                let steps = std::iter::successors(Some(from), |n| n.checked_mul(4));
                all.extend(steps.take_while(|&n| n < to).map(Bytes));
                all.push(Bytes(to));
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// A span of time with its unit: `250ms`, `1.5s`, `5m`, `2h`.
///
/// # Errors
/// [`ParseError::Span`] without a unit, [`ParseError::SpanRange`] for zero, or for more than a
/// week.
pub fn span(text: &str) -> Result<Nanos, ParseError> {
    let refused = || ParseError::Span(text.to_owned());
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let scale_ns = match unit.trim() {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(refused()),
    };
    let number: f64 = number.parse().map_err(|_| refused())?;
    let ns = (number * scale_ns).round();
    if !(1.0..=7.0 * 24.0 * 3600e9).contains(&ns) {
        return Err(ParseError::SpanRange(text.to_owned()));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked range")]
    Ok(Nanos(ns as u64))
}

/// How long ago something was: `30d`, or a span of time, `12h`.
///
/// # Errors
/// [`ParseError::Age`] without a unit, for less than a minute, or for more than
/// a hundred years.
pub fn age(text: &str) -> Result<Nanos, ParseError> {
    const DAY_NS: u64 = 24 * 3600 * Nanos::SECOND.0;
    const SHORTEST: Nanos = Nanos(60 * Nanos::SECOND.0);
    const DAYS_MAX: u64 = 36_500;
    let days = text.trim().strip_suffix('d').map(|days| days.trim_end().parse::<u64>());
    let age = match days {
        Some(days) => days.ok().filter(|&days| days <= DAYS_MAX).map(|days| Nanos(days * DAY_NS)),
        None => span(text).ok(),
    };
    age.filter(|&age| age >= SHORTEST).ok_or_else(|| ParseError::Age(text.to_owned()))
}

/// A fraction as a percentage (`3%`) or a plain number (`0.03`), above 0 and
/// below 1.
///
/// # Errors
/// [`ParseError::Fraction`], or [`ParseError::Percent`] of a number that says no `%` and would be
/// fine with it.
pub fn fraction(text: &str) -> Result<f64, ParseError> {
    let refused = || ParseError::Fraction(text.to_owned());
    let trimmed = text.trim();
    let value = match trimmed.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map_err(|_| refused())? / 100.0,
        None => trimmed.parse::<f64>().map_err(|_| refused())?,
    };
    let is_percentage = !trimmed.ends_with('%') && (1.0..100.0).contains(&value);
    match value > 0.0 && value < 1.0 {
        true => Ok(value),
        false if is_percentage => Err(ParseError::Percent(trimmed.to_owned())),
        false => Err(refused()),
    }
}

/// A whole number of at least one.
///
/// # Errors
/// [`ParseError::Count`].
pub fn count(text: &str) -> Result<u64, ParseError> {
    match text.trim().parse::<u64>() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(ParseError::Count(text.to_owned())),
    }
}

/// A list of counts (`1,2,4`), sorted and without repeats, each at most
/// `u32::MAX`.
///
/// # Errors
/// As [`count`], [`ParseError::EmptyList`] for nothing.
pub fn counts(text: &str) -> Result<Vec<u32>, ParseError> {
    let mut all = Vec::new();
    for item in items(text)? {
        let wide = count(item)?;
        all.push(u32::try_from(wide).map_err(|_| ParseError::Count(item.to_owned()))?);
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// Processors in the kernel's list format: `0,2-3`; the order is kept,
/// repeats are dropped.
///
/// # Errors
/// [`ParseError::Cpus`], also for numbers above 8191, the largest `NR_CPUS`
/// the kernel can be built with.
pub fn cpus(text: &str) -> Result<Vec<u32>, ParseError> {
    const CPU_MAX: u32 = 8191;
    let refused = || ParseError::Cpus(text.to_owned());
    let number = |t: &str| match t.trim().parse::<u32>() {
        Ok(n) if n <= CPU_MAX => Ok(n),
        _ => Err(refused()),
    };
    let mut all: Vec<u32> = Vec::new();
    let mut is_there = [false; CPU_MAX as usize + 1];
    for item in items(text)? {
        let (from, to) = match item.split_once('-') {
            None => (number(item)?, number(item)?),
            Some((from, to)) => (number(from)?, number(to)?),
        };
        if from > to {
            return Err(refused());
        }
        for cpu in from..=to {
            if !std::mem::replace(&mut is_there[cpu as usize], true) {
                all.push(cpu);
            }
        }
    }
    Ok(all)
}

/// The items of a comma-separated list, trimmed.
///
/// # Errors
/// [`ParseError::EmptyList`] for nothing, or for nothing between two commas.
pub fn items(text: &str) -> Result<Vec<&str>, ParseError> {
    let list: Vec<&str> = text.split(',').map(str::trim).collect();
    if list.iter().any(|item| item.is_empty()) {
        return Err(ParseError::EmptyList);
    }
    Ok(list)
}

/// Hexadecimal digits of a run's id.
const RUN_ID_DIGITS: usize = 8;

/// Characters of a run's name at most: what a line of a list has room for.
const RUN_NAME_MAX: usize = 60;

/// The user's name for a run: 1 to 60 printable characters, blanks around them
/// taken off. Wherever a run is asked for it stands beside ids, so that it must
/// not be `last`, nor lowercase hexadecimal digits that an id may begin with.
///
/// # Errors
/// [`ParseError::RunName`].
pub fn run_name(text: &str) -> Result<String, ParseError> {
    let name = text.trim();
    let refused = |why| Err(ParseError::RunName { name: name.to_owned(), why });
    // What Rust escapes besides these is not printable: control characters, marks that
    // change the order of what follows, a combining mark with nothing to stand on.
    let plain = || name.chars().filter(|c| !matches!(c, '"' | '\'' | '\\'));
    let is_hexadecimal = name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    match name.chars().count() {
        0 => refused("write 1 to 60 characters"),
        n if n > RUN_NAME_MAX => refused("it is longer than 60 characters"),
        _ if !plain().collect::<String>().escape_debug().eq(plain()) => {
            refused("it has characters that cannot be seen")
        }
        _ if name == "last" => refused("that is the run that began last"),
        n if is_hexadecimal && n <= RUN_ID_DIGITS => {
            refused("an id may begin so; put another letter into it, as in run-1")
        }
        _ => Ok(name.to_owned()),
    }
}

/// The known word nearest to a mistyped one, for "did you mean": at most two
/// edits away, or one that begins with what was written.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|k| (if k.starts_with(word) { 1 } else { edits(word, k) }, k))
        .filter(|&(distance, k)| distance <= 2.min(k.len().saturating_sub(1)))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, k)| k)
}

/// Levenshtein distance, one row at a time.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// As users write it.
impl std::str::FromStr for Nanos {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Nanos, Self::Err> {
        span(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_iec_only() {
        assert_eq!(size("64KiB"), Ok(Bytes(65536)));
        assert_eq!(size("64K"), Ok(Bytes(65536)));
        assert_eq!(size(" 1 MiB "), Ok(Bytes(1 << 20)));
        assert_eq!(size("0"), Err(ParseError::SizeZero));
        for wrong in ["", "KiB", "-1", "64KB", "64kB", "1.5MiB", "∞"] {
            assert!(matches!(size(wrong), Err(ParseError::Size(_))), "{wrong}");
        }
        for much in ["99999999999999999999", "17179869184GiB"] {
            assert_eq!(size(much), Err(ParseError::SizeTooLarge(much.to_owned())));
        }
    }

    #[test]
    fn a_range_of_sizes_ends_at_its_end() {
        let range = sizes("64..1MiB").unwrap();
        assert_eq!(range.first(), Some(&Bytes(64)));
        assert_eq!(range.last(), Some(&Bytes(1 << 20)));
        assert_eq!(range.len(), 8);
        assert!(matches!(sizes("4KiB..256"), Err(ParseError::SizeRange(_))));
        assert_eq!(sizes("1,,2"), Err(ParseError::EmptyList));
    }

    #[test]
    fn spans_need_their_unit() {
        assert_eq!(span("250ms"), Ok(Nanos(250_000_000)));
        assert_eq!(span("1.5s"), Ok(Nanos(1_500_000_000)));
        for wrong in ["", "10", "s", "-1s", "1e3s", "1..2s"] {
            assert!(matches!(span(wrong), Err(ParseError::Span(_))), "{wrong}");
        }
        for beyond in ["0s", "0.1ns", "9999h"] {
            assert_eq!(span(beyond), Err(ParseError::SpanRange(beyond.to_owned())));
        }
    }

    #[test]
    fn an_age_may_be_days() {
        assert_eq!(age("30d"), Ok(Nanos(30 * 86_400 * Nanos::SECOND.0)));
        assert_eq!(age(" 12h "), span("12h"));
        for wrong in ["", "d", "30", "0d", "-1d", "1.5d", "36501d", "99999999999999999999d", "1s"] {
            assert_eq!(age(wrong), Err(ParseError::Age(wrong.to_owned())));
        }
    }

    #[test]
    fn fractions_exclude_the_ends() {
        assert_eq!(fraction("3%"), Ok(0.03));
        assert_eq!(fraction("0.05"), Ok(0.05));
        for wrong in ["0", "0%", "100%", "1", "-1%", "nan", "inf", "x"] {
            assert!(fraction(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cpu_lists_follow_the_kernel() {
        assert_eq!(cpus("0,2-3"), Ok(vec![0, 2, 3]));
        assert_eq!(cpus("3,0,3"), Ok(vec![3, 0]));
        for wrong in ["3-1", "x", "0-9999", "1-"] {
            assert!(cpus(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_of_a_run_can_be_seen_and_is_no_id() {
        for name in ["before", "kernel 6.18, it's \"x\"", "größe", "A", "cafe-1", "0123456789"] {
            assert_eq!(run_name(&format!(" {name} ")), Ok(name.to_owned()));
        }
        assert!(run_name(&"é".repeat(60)).is_ok());
        let long = "x".repeat(61);
        for (wrong, why) in [
            ("", "1 to 60"),
            (" ", "1 to 60"),
            (long.as_str(), "longer"),
            ("a\nb", "cannot be seen"),
            ("\u{1b}[31m", "cannot be seen"),
            ("\u{202e}txt", "cannot be seen"),
            ("\u{301}x", "cannot be seen"),
            ("last", "began last"),
            ("4f1c09ab", "an id may begin so"),
            ("b", "an id may begin so"),
        ] {
            let refused = run_name(wrong).unwrap_err().to_string();
            assert!(refused.contains(why) && !refused.contains(char::is_control), "{refused}");
        }
    }

    #[test]
    fn the_nearest_word_is_found() {
        let known = ["send", "send_staged", "sendmsg_iov"];
        assert_eq!(nearest("sendmsg_iovec", known), Some("sendmsg_iov"));
        assert_eq!(nearest("snd", known), Some("send"));
        assert_eq!(nearest("splice", known), None);
    }

    proptest! {
        #[test]
        fn parsers_never_panic(text in "\\PC{0,24}") {
            let _ = (size(&text), sizes(&text), span(&text), fraction(&text), cpus(&text));
            let _ = (run_name(&text), age(&text), count(&text), counts(&text), nearest(&text, ["send", "écrire"]));
        }

        #[test]
        fn a_whole_printed_size_parses_back(n in 1u64..1024, shift in 0u32..4) {
            let bytes = Bytes(n << (10 * shift));
            prop_assert_eq!(size(&bytes.to_string()), Ok(bytes));
        }
    }
}
