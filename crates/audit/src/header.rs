//! From the name of a column to what it holds, and in which unit.

use crate::quantity::Quantity;
use crate::unit::{self, BitsOrBytes, Dimension, Unit};

/// What a column holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Meaning {
    pub(crate) quantity: Quantity,
    /// Which of the names of the quantity it has: a read speed is no write speed.
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    /// The unit is the usual one and was not named.
    pub(crate) unit_assumed: bool,
    /// The kind of core, where counters of several stand beside each other:
    /// `cpu_core` of `cpu_core/cycles/`.
    pub(crate) pmu: Option<String>,
}

/// Why a column was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// Nobody knows the name.
    Name,
    /// It is this, but in which unit?
    NoUnit(Quantity),
    /// `mb/s` and the like.
    BitsOrBytes,
    /// This is not measured in that.
    WrongUnit(Quantity),
}

/// What a column of this name holds.
pub(crate) fn meaning(name: &str) -> Result<Meaning, Unknown> {
    let (pmu, event) = split_pmu(name);
    let (event, bracketed) = split_bracketed(event);
    let mut problem = Unknown::Name;
    for words in [words(event, Case::Ignored), words(event, Case::Splits)] {
        let found = match bracketed {
            Some(unit_text) => with_unit(&words, unit_text),
            None => without_brackets(&words),
        };
        match found {
            Ok(found) => return Ok(Meaning { pmu: pmu.map(str::to_owned), ..found }),
            Err(Unknown::Name) => {}
            Err(other) => problem = other,
        }
    }
    Err(problem)
}

/// A quantity by our own word, with the unit it is in where one is given, as
/// in `throughput:Gbit/s`.
pub(crate) fn ours(text: &str) -> Result<Meaning, Unknown> {
    let (name, unit_text) = match text.split_once(':') {
        Some((name, unit)) => (name.trim(), Some(unit.trim())),
        None => (text.trim(), None),
    };
    let quantity = Quantity::by_name(name).ok_or(Unknown::Name)?;
    let (quantity, unit, unit_assumed) = match unit_text {
        None => (quantity, Unit::base(quantity.dimension()), true),
        Some(text) => match unit::named(text) {
            Ok(Some(unit)) if unit.dimension == quantity.dimension() => (quantity, unit, false),
            Ok(_) => return Err(Unknown::WrongUnit(quantity)),
            Err(BitsOrBytes) => return Err(Unknown::BitsOrBytes),
        },
    };
    Ok(Meaning { quantity, name: quantity.name(), unit, unit_assumed, pmu: None })
}

/// `cpu_core/cycles/` is `cycles` of one kind of core.
pub(crate) fn split_pmu(name: &str) -> (Option<&str>, &str) {
    let name = name.trim();
    match name.split_once('/') {
        Some((pmu @ ("cpu_core" | "cpu_atom"), event)) => (Some(pmu), event.trim_end_matches('/')),
        _ => (None, name),
    }
}

/// The unit in brackets at the end.
fn split_bracketed(name: &str) -> (&str, Option<&str>) {
    for (open, close) in [('(', ')'), ('[', ']')] {
        if let Some(inner) = name.trim_end().strip_suffix(close)
            && let Some((before, unit)) = inner.rsplit_once(open)
        {
            return (before.trim(), Some(unit.trim()));
        }
    }
    (name, None)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Ignored,
    /// `messageSize` is two words.
    Splits,
}

/// The words of a name, in their own case; `/` is the word `per`.
fn words(name: &str, case: Case) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for c in name.chars() {
        let splits = case == Case::Splits && before.is_lowercase() && c.is_uppercase();
        if (splits || !is_part(c)) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        match c {
            '/' => words.push("per".to_owned()),
            c if is_part(c) => word.push(c),
            _ => {}
        }
        before = c;
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '%'
}

/// The name alone, where its unit stands in brackets.
fn with_unit(words: &[String], unit_text: &str) -> Result<Meaning, Unknown> {
    let called = called(words);
    match unit::named(unit_text) {
        Err(BitsOrBytes) => Err(called.map_or(Unknown::Name, |_| Unknown::BitsOrBytes)),
        Ok(Some(unit)) => in_unit(called.ok_or(Unknown::Name)?, unit),
        // What stands in brackets is a remark, not a unit.
        Ok(None) => {
            let mut all = words.to_vec();
            all.extend(self::words(unit_text, Case::Ignored));
            without_brackets(&all).or_else(|_| without_brackets(words))
        }
    }
}

fn in_unit((called, name): (Quantity, &'static str), unit: Unit) -> Result<Meaning, Unknown> {
    let quantity = called.measured_in(unit.dimension).ok_or(Unknown::WrongUnit(called))?;
    Ok(Meaning { quantity, name, unit, unit_assumed: false, pmu: None })
}

/// The name with a unit somewhere in it, or without one.
fn without_brackets(words: &[String]) -> Result<Meaning, Unknown> {
    if let Some((quantity, name)) = called(words) {
        // Not every unit in a name is one: `min latency` is not in minutes.
        if !quantity.has_usual_unit() {
            return Err(Unknown::NoUnit(quantity));
        }
        let named = words.last().is_some_and(|last| last.eq_ignore_ascii_case("bytes"));
        let unit_assumed = quantity.dimension() == Dimension::Bytes && !named;
        let unit = Unit::base(quantity.dimension());
        return Ok(Meaning { quantity, name, unit, unit_assumed, pmu: None });
    }
    let mut problem = Unknown::Name;
    // The longest unit first, and the last of those.
    for length in (1..=words.len().min(4)).rev() {
        for start in (0..=words.len() - length).rev() {
            let (before, rest) = words.split_at(start);
            let (inside, after) = rest.split_at(length);
            let Some(unit) = spelled(inside) else { continue };
            let name = [before, after].concat();
            let called = if name.is_empty() {
                // A letter alone is no name.
                let unit = unit.ok().filter(|_| words.concat().chars().count() > 1);
                let quantity = unit.and_then(|unit| Quantity::of_dimension(unit.dimension));
                quantity.map(|quantity| (quantity, quantity.name()))
            } else {
                called(&name)
            };
            match (called, unit) {
                (Some(called), Ok(unit)) => match in_unit(called, unit) {
                    Ok(found) => return Ok(found),
                    Err(wrong) => problem = wrong,
                },
                (Some(_), Err(BitsOrBytes)) => return Err(Unknown::BitsOrBytes),
                (None, _) => {}
            }
        }
    }
    Err(problem)
}

/// The unit that these words spell: `bits per s`, `GB s`, `usec`.
fn spelled(words: &[String]) -> Option<Result<Unit, BitsOrBytes>> {
    let parts: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| !word.eq_ignore_ascii_case("per")).collect();
    let (has_per, text) = (parts.len() < words.len(), parts.join("/"));
    // `per_second` counts what its name says.
    let text = match (has_per, parts.as_slice()) {
        (true, [one]) => format!("/{one}"),
        _ => text,
    };
    unit::named(&text).transpose()
}

/// What these words call, with and without words that say nothing.
fn called(words: &[String]) -> Option<(Quantity, &'static str)> {
    const EMPTY: [&str; 9] =
        ["total", "number", "num", "of", "count", "the", "measured", "value", "n"];
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let all = lower.join(" ");
    let meant: Vec<&str> =
        lower.iter().map(String::as_str).filter(|word| !EMPTY.contains(word)).collect();
    Quantity::called(&all).or_else(|| Quantity::called(&meant.join(" ")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(names: &[&str], quantity: Quantity, scale: f64) {
        for name in names {
            let found = meaning(name).unwrap_or_else(|e| panic!("{name}: {e:?}"));
            assert_eq!(found.quantity, quantity, "{name}");
            assert!((found.unit.scale / scale - 1.0).abs() < 1e-12, "{name}: {found:?}");
        }
    }

    #[test]
    fn usual_names_are_known() {
        use Quantity as Q;
        check(
            &["Message Size", "msg_size", "messageSize", "size_bytes", "Size (B)"],
            Q::MessageBytes,
            1.0,
        );
        check(&["msg_size_kb", "Message size [KB]"], Q::MessageBytes, 1e3);
        check(&["threads", "Threads", "num_threads", "Thread Count"], Q::Threads, 1.0);
        check(
            &["throughput_gbps", "Throughput (Gbps)", "bandwidth_gbit_s", "Gbps", "throughputGbps"],
            Q::Throughput,
            1.25e8,
        );
        check(&["goodput_bits_per_s"], Q::Throughput, 0.125);
        check(&["Throughput (MB/s)", "rate_MBps", "MB/s"], Q::Throughput, 1e6);
        check(
            &["latency_us", "Avg latency (µs)", "latency_avg_us", "Latency [usec]"],
            Q::LatencyMean,
            1e3,
        );
        check(
            &["p99_us", "latency_p99_us", "latency_us_p99", "p99 latency (us)"],
            Q::LatencyP99,
            1e3,
        );
        check(&["latency_p99.9_ms"], Q::LatencyP999, 1e6);
        check(&["cycles", "CPU-cycles", "Total Cycles", "cpu_core/cycles/"], Q::Cycles, 1.0);
        check(&["LLC-load-misses", "llc_misses"], Q::LlcMisses, 1.0);
        check(&["L1-dcache-load-misses", "l1d_misses"], Q::L1dMisses, 1.0);
        check(&["context_switches", "context-switches", "ctx switches"], Q::Switches, 1.0);
        check(&["context_switches_per_sec", "Context switches/s", "cs/s"], Q::SwitchRate, 1.0);
        check(
            &["elapsed_sec", "time (s)", "duration_s", "Elapsed Time (seconds)"],
            Q::Elapsed,
            1e9,
        );
        check(&["requests/s", "req/s", "rps", "Throughput (req/s)"], Q::MessageRate, 1.0);
        check(&["cpu_time_ms"], Q::CpuTime, 1e6);
        check(&["CPU %", "cpu_percent", "CPU usage (%)"], Q::CpuUse, 0.01);
        check(&["bytes_received", "rx_bytes"], Q::ReceivedBytes, 1.0);
        check(&["time_per_message_ns", "ns_per_message"], Q::TimePerMessage, 1.0);
        check(&["cycles_per_byte", "cycles/byte"], Q::CyclesPerByte, 1.0);
        check(&["block_size_kib"], Q::BlockBytes, 1024.0);
        check(&["message_bytes", "tx_bytes"][..1], Q::MessageBytes, 1.0);
    }

    #[test]
    fn what_is_not_known_says_why() {
        assert_eq!(meaning("flavour"), Err(Unknown::Name));
        assert_eq!(meaning("latency"), Err(Unknown::NoUnit(Quantity::LatencyMean)));
        assert_eq!(meaning("throughput"), Err(Unknown::NoUnit(Quantity::Throughput)));
        assert_eq!(meaning("throughput_mb_s"), Err(Unknown::BitsOrBytes));
        assert_eq!(meaning("latency (GB)"), Err(Unknown::WrongUnit(Quantity::LatencyMean)));
        assert_eq!(meaning(""), Err(Unknown::Name));
        assert_eq!(meaning("misses_per_message"), Err(Unknown::Name));
    }

    #[test]
    fn our_words_take_a_unit() {
        let found = ours("throughput:Gbit/s").unwrap();
        assert_eq!((found.quantity, found.unit.scale), (Quantity::Throughput, 1.25e8));
        assert_eq!(ours("flavour"), Err(Unknown::Name));
        assert_eq!(ours("threads:GB"), Err(Unknown::WrongUnit(Quantity::Threads)));
    }

    #[test]
    fn cores_of_two_kinds_are_told_apart() {
        assert_eq!(meaning("cpu_atom/cycles/").unwrap().pmu.as_deref(), Some("cpu_atom"));
        assert_eq!(split_pmu("requests/s"), (None, "requests/s"));
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "\\PC{0,32}") {
            let _ = (meaning(&text), ours(&text));
        }

        #[test]
        fn name_like_texts_do_not_panic(text in "[a-zA-Z0-9_/%()\\[\\]µ. -]{0,24}") {
            let _ = (meaning(&text), ours(&text));
        }
    }
}
