//! Units as they are written in column names, in cells and on the command
//! line.

/// What a number is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dimension {
    /// Things, by number.
    Count,
    /// Bytes.
    Bytes,
    /// Time, in ns.
    Time,
    /// Bytes a second.
    ByteRate,
    /// Things a second.
    Rate,
    /// Cycles a second.
    Frequency,
    /// A share of a whole, 1 being all of it.
    Share,
    /// CPU cycles for a byte.
    CyclesPerByte,
}

impl Dimension {
    /// The base unit, in words.
    pub(crate) fn base(self) -> &'static str {
        match self {
            Dimension::Count => "count",
            Dimension::Bytes => "B",
            Dimension::Time => "ns",
            Dimension::ByteRate => "B/s",
            Dimension::Rate => "/s",
            Dimension::Frequency => "Hz",
            Dimension::Share => "share",
            Dimension::CyclesPerByte => "cycles/B",
        }
    }
}

/// A unit as a multiple of the base unit of its dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Unit {
    pub(crate) dimension: Dimension,
    pub(crate) scale: f64,
    /// The larger of two meanings: of `KB`, 1000 or 1024 bytes.
    pub(crate) scale_high: f64,
}

impl Unit {
    /// The base unit of a dimension.
    pub(crate) fn base(dimension: Dimension) -> Unit {
        Unit { dimension, scale: 1.0, scale_high: 1.0 }
    }

    fn of(dimension: Dimension, scale: f64) -> Unit {
        Unit { dimension, scale, scale_high: scale }
    }
}

/// A unit that can be read in two ways that are a factor of 8 apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BitsOrBytes;

/// The unit of that name; `None` where it is none. `mb/s` without a capital may
/// mean megabits or megabytes.
pub(crate) fn named(text: &str) -> Result<Option<Unit>, BitsOrBytes> {
    let text = text.trim().trim_end_matches('.');
    let lower = text.to_lowercase();
    if let Some(unit) = whole_word(&lower) {
        return Ok(Some(unit));
    }
    let Some(amount) = per_second(text) else {
        return Ok(multiple(text).map(|(unit, _)| unit));
    };
    if let Some((unit, is_bits_or_bytes)) = multiple(amount) {
        // Of `mbps`, lower case and in one word, everybody means bits.
        return match (unit.dimension, is_bits_or_bytes, lower.ends_with("ps")) {
            (Dimension::Bytes, true, true) => Ok(Some(rate_of(unit, 1.0 / 8.0))),
            (Dimension::Bytes, true, false) => Err(BitsOrBytes),
            (Dimension::Bytes, false, _) => Ok(Some(rate_of(unit, 1.0))),
            (Dimension::Count, _, _) => Ok(Some(Unit { dimension: Dimension::Rate, ..unit })),
            _ => Ok(None),
        };
    }
    Ok(things(amount).map(|scale| Unit::of(Dimension::Rate, scale)))
}

fn rate_of(bytes: Unit, by: f64) -> Unit {
    // As bits, its prefix is decimal.
    let high = if by < 1.0 { bytes.scale } else { bytes.scale_high };
    Unit { dimension: Dimension::ByteRate, scale: bytes.scale * by, scale_high: high * by }
}

/// What stands before `/s`, `ps` or `per second`.
fn per_second(text: &str) -> Option<&str> {
    let endings = ["/seconds", "/second", "/sec", "/s", " per second", " per sec", " per s"];
    let ending = endings.into_iter().find_map(|ending| strip(text, ending));
    // `ops` and `pps` are words of their own; a unit of bytes is not.
    ending.or_else(|| strip(text, "ps").filter(|rest| rest.ends_with(['b', 'B', 't'])))
}

/// The text without this ending, whatever its case.
fn strip<'a>(text: &'a str, ending: &str) -> Option<&'a str> {
    let at = text.len().checked_sub(ending.len())?;
    let tail = text.get(at..)?;
    tail.eq_ignore_ascii_case(ending).then(|| text[..at].trim())
}

/// Units that are one word, in lower case.
fn whole_word(lower: &str) -> Option<Unit> {
    let (dimension, scale) = match lower {
        "ns" | "nsec" | "nsecs" | "nanosecond" | "nanoseconds" | "nanos" => (Dimension::Time, 1.0),
        "us" | "µs" | "μs" | "usec" | "usecs" | "µsec" | "microsecond" | "microseconds"
        | "micros" => (Dimension::Time, 1e3),
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" | "millis" => {
            (Dimension::Time, 1e6)
        }
        "s" | "sec" | "secs" | "second" | "seconds" => (Dimension::Time, 1e9),
        "min" | "mins" | "minute" | "minutes" => (Dimension::Time, 60e9),
        "h" | "hour" | "hours" => (Dimension::Time, 3600e9),
        "hz" => (Dimension::Frequency, 1.0),
        "khz" => (Dimension::Frequency, 1e3),
        "mhz" => (Dimension::Frequency, 1e6),
        "ghz" => (Dimension::Frequency, 1e9),
        "%" | "percent" | "pct" => (Dimension::Share, 0.01),
        "cpb" | "cycles/byte" | "cycles/b" => (Dimension::CyclesPerByte, 1.0),
        "ops" | "iops" | "rps" | "qps" | "tps" | "pps" | "/s" | "/sec" | "hits/s" => {
            (Dimension::Rate, 1.0)
        }
        "kops" | "kiops" | "krps" | "kqps" | "kpps" | "k/s" | "k/sec" => (Dimension::Rate, 1e3),
        "mops" | "miops" | "mrps" | "mqps" | "mpps" | "m/s" | "m/sec" => (Dimension::Rate, 1e6),
        _ => return None,
    };
    Some(Unit::of(dimension, scale))
}

/// Bytes, bits, or multiples of things; and whether it stands in lower case,
/// so that nobody can tell bits from bytes.
fn multiple(text: &str) -> Option<(Unit, bool)> {
    let lower = text.to_lowercase();
    let (prefix, kind) = match lower.as_str() {
        "b" if text == "b" => return Some((Unit::base(Dimension::Bytes), true)),
        "b" | "byte" | "bytes" | "octets" => ("", "bytes"),
        "bit" | "bits" => ("", "bits"),
        _ => split_amount(&lower)?,
    };
    let (decimal, binary) = match prefix {
        "" => (1.0, 1.0),
        "k" => (1e3, 1024.0),
        "m" => (1e6, 1_048_576.0),
        "g" => (1e9, 1_073_741_824.0),
        "t" => (1e12, 1_099_511_627_776.0),
        "ki" => (1024.0, 1024.0),
        "mi" => (1_048_576.0, 1_048_576.0),
        "gi" => (1_073_741_824.0, 1_073_741_824.0),
        "ti" => (1_099_511_627_776.0, 1_099_511_627_776.0),
        _ => return None,
    };
    let bytes = Unit { dimension: Dimension::Bytes, scale: decimal, scale_high: binary };
    Some(match kind {
        "bits" => (Unit::of(Dimension::Bytes, decimal / 8.0), false),
        // `Mb` is a megabit, `MB` a megabyte, and `mb` may be either; so `Mib` and `MiB`, but
        // `mib`, as in names in lower case, is bytes: who counts bits in powers of two says so.
        "b" if text.ends_with('B') || text == lower && prefix.ends_with('i') => (bytes, false),
        "b" if text.starts_with(char::is_lowercase) => (bytes, true),
        "b" => (Unit::of(Dimension::Bytes, decimal / 8.0), false),
        "" => (Unit::of(Dimension::Count, decimal), false),
        _ => (bytes, false),
    })
}

/// Prefix and kind: `gi` and `b`, `m` and `bits`, `k` and nothing.
fn split_amount(lower: &str) -> Option<(&str, &str)> {
    let endings = [("bytes", "bytes"), ("byte", "bytes"), ("bits", "bits"), ("bit", "bits")];
    for (ending, kind) in endings {
        if let Some(prefix) = lower.strip_suffix(ending) {
            let prefix = match prefix.trim_end_matches(['-', ' ']) {
                "kilo" => "k",
                "mega" => "m",
                "giga" => "g",
                "kibi" => "ki",
                "mebi" => "mi",
                "gibi" => "gi",
                other => other,
            };
            return Some((prefix, kind));
        }
    }
    match lower.strip_suffix('b') {
        Some(prefix) => Some((prefix, "b")),
        None => matches!(lower, "k" | "m" | "g" | "t").then_some((lower, "")),
    }
}

/// Things that a rate counts, by how many.
fn things(text: &str) -> Option<f64> {
    let lower = text.trim().to_lowercase();
    let is_thing = |text: &str| {
        matches!(
            text,
            "" | "op"
                | "ops"
                | "operations"
                | "msg"
                | "msgs"
                | "message"
                | "messages"
                | "req"
                | "reqs"
                | "request"
                | "requests"
                | "packets"
                | "pkts"
                | "transactions"
                | "trans"
                | "switches"
                | "calls"
                | "io"
                | "ios"
        )
    };
    if is_thing(&lower) {
        return Some(1.0);
    }
    let (prefix, thing) = lower.split_at_checked(1)?;
    let scale = match prefix {
        "k" => 1e3,
        "m" => 1e6,
        _ => return None,
    };
    is_thing(thing.trim()).then_some(scale)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, dimension: Dimension, scale: f64) {
        let unit = named(text).unwrap().unwrap_or_else(|| panic!("{text} is no unit"));
        assert_eq!(unit.dimension, dimension, "{text}");
        assert!((unit.scale / scale - 1.0).abs() < 1e-12, "{text}: {unit:?}");
    }

    #[test]
    fn rates_are_bits_or_bytes() {
        for text in ["Gbps", "Gbit/s", "Gb/s", "gbps", "Gbits/sec", "gbits per second"] {
            check(text, Dimension::ByteRate, 1e9 / 8.0);
        }
        for text in ["GB/s", "GBps", "GB/sec", "gigabytes/s"] {
            check(text, Dimension::ByteRate, 1e9);
        }
        check("MiB/s", Dimension::ByteRate, 1_048_576.0);
        check("mbps", Dimension::ByteRate, 125_000.0);
        check("B/s", Dimension::ByteRate, 1.0);
        check("bits/s", Dimension::ByteRate, 0.125);
        for (text, bits) in [("Kib/s", 10), ("Mib/s", 20), ("Gib/s", 30), ("Tibps", 40)] {
            check(text, Dimension::ByteRate, 2_f64.powi(bits) / 8.0);
        }
        for text in ["Mibit/s", "mibit/sec", "Mibits/s", "mebibits per second"] {
            check(text, Dimension::ByteRate, 1_048_576.0 / 8.0);
        }
        for text in ["MiB/s", "miB/s", "MIB/s", "MiB/sec", "MiBps", "mebibytes/s", "mib/s", "mibps"]
        {
            check(text, Dimension::ByteRate, 1_048_576.0);
        }
        for text in ["mb/s", "gb/sec", "kb/s", "b/s"] {
            assert_eq!(named(text), Err(BitsOrBytes), "{text}");
        }
    }

    #[test]
    fn amounts_times_and_the_rest() {
        check("KiB", Dimension::Bytes, 1024.0);
        check("kib", Dimension::Bytes, 1024.0);
        check("Kib", Dimension::Bytes, 128.0);
        check("MB", Dimension::Bytes, 1e6);
        assert_eq!(named("MB").unwrap().unwrap().scale_high, 1_048_576.0);
        check("kb", Dimension::Bytes, 1e3);
        check("bytes", Dimension::Bytes, 1.0);
        check("µs", Dimension::Time, 1e3);
        check("msec", Dimension::Time, 1e6);
        check("GHz", Dimension::Frequency, 1e9);
        check("%", Dimension::Share, 0.01);
        check("M", Dimension::Count, 1e6);
        for (text, scale) in [("req/s", 1.0), ("kops", 1e3), ("K/sec", 1e3), ("msgs/s", 1.0)] {
            check(text, Dimension::Rate, scale);
        }
        for none in ["", "apples", "x/s", "per", "megab"] {
            assert_eq!(named(none), Ok(None), "{none}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "\\PC{0,16}") {
            let _ = named(&text);
        }

        #[test]
        fn unit_like_texts_do_not_panic(text in "[kKmMgGtTiIbBsS/%µ per]{0,8}") {
            if let Ok(Some(unit)) = named(&text) {
                prop_assert!(unit.scale > 0.0 && unit.scale_high >= unit.scale);
            }
        }
    }
}
