//! Numbers as readers see them: three significant digits, the interval always
//! beside the value, and what is not known as a dash.

use iolens_model::units::{Bytes, three_digits};
use iolens_stats::analysis::{Contrast, Estimate, Interval};

/// What stands where a value is not known.
pub(crate) const NONE: &str = "–";

/// Decimals of a ratio and of its interval: two, three below a half, so that
/// three digits stay.
fn decimals(ratio: f64) -> usize {
    match ratio {
        r if r < 0.04995 => 4,
        r if r < 0.4995 => 3,
        _ => 2,
    }
}

/// A ratio: `1.34`, `0.97`, `0.172`.
pub(crate) fn ratio(value: f64) -> String {
    format!("{value:.*}", decimals(value))
}

/// What stands for an interval whose ends say nothing.
pub(crate) const UNUSABLE: &str = "no usable interval";

/// An interval in words, `usual` ones unless its ends say nothing: then `no usable interval
/// from 2 trials`. Whatever prints the interval of a sentence comes through here.
pub(crate) fn interval(
    interval: Interval,
    n: u32,
    usual: impl FnOnce(Interval) -> String,
) -> String {
    match interval.is_usable() {
        true => usual(interval),
        false => format!("{UNUSABLE} from {}", count(n, "trial")),
    }
}

/// Both ends, unless they say nothing.
pub(crate) fn usable(interval: Option<Interval>) -> Option<(f64, f64)> {
    interval.filter(Interval::is_usable).map(|i| (i.low, i.high))
}

/// Both ends as `digits` writes them, with this between them.
fn joined(interval: Interval, between: &str, digits: impl Fn(f64) -> String) -> String {
    match interval.is_usable() {
        true => format!("{}{between}{}", digits(interval.low), digits(interval.high)),
        false => UNUSABLE.to_owned(),
    }
}

/// `[1.29, 1.39]`, both ends as `digits` writes them, for tables.
pub(crate) fn ends(interval: Interval, digits: impl Fn(f64) -> String) -> String {
    format!("[{}]", joined(interval, ", ", digits))
}

/// `16.9 to 17.5`, the same for sentences.
pub(crate) fn from_to(interval: Interval, digits: impl Fn(f64) -> String) -> String {
    joined(interval, " to ", digits)
}

/// `1.29–1.39`, of a ratio.
pub(crate) fn range(interval: Interval) -> String {
    let digits = decimals(interval.low);
    joined(interval, "–", |end| format!("{end:.digits$}"))
}

/// `[1.29, 1.39]`, for tables.
pub(crate) fn bracket(interval: Interval) -> String {
    let digits = decimals(interval.low);
    ends(interval, |end| format!("{end:.digits$}"))
}

/// The half-width of an interval of a ratio: `±1.8 %`.
pub(crate) fn either_way(half: f64) -> String {
    match Interval::is_half_usable(half) {
        true => format!("±{}", percent(half)),
        false => UNUSABLE.to_owned(),
    }
}

/// `1.34 [1.29, 1.39]`; the ratio alone where there is no interval.
pub(crate) fn contrast(contrast: &Contrast) -> String {
    match contrast.pointwise {
        Some(interval) if !interval.is_usable() => {
            format!("{} {}", ratio(contrast.ratio), bracket(interval))
        }
        Some(interval) => {
            let digits = decimals(interval.low);
            format!("{:.digits$} {}", contrast.ratio, bracket(interval))
        }
        None => ratio(contrast.ratio),
    }
}

/// A fraction in per cent: `3 %`, `1.8 %`, `0.42 %`.
pub(crate) fn percent(fraction: f64) -> String {
    let value = fraction * 100.0;
    let text = match value.abs() {
        v if (v - v.round()).abs() < 0.005 || v >= 99.5 => format!("{value:.0}"),
        v if v >= 0.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    format!("{text}%")
}

/// A time in the unit that suits it: `47.1 ns`, `3.11 µs`, `4.1 ms`.
pub(crate) fn nanoseconds(ns: f64) -> String {
    match ns {
        ns if ns >= 1e6 => format!("{} ms", three_digits(ns / 1e6)),
        ns if ns >= 1e3 => format!("{} µs", three_digits(ns / 1e3)),
        ns => format!("{} ns", three_digits(ns)),
    }
}

/// Requests and calls per second: `171k`, `1.21M`.
pub(crate) fn per_second(rate: f64) -> String {
    match rate {
        r if r >= 999_500.0 => format!("{}M", three_digits(r / 1e6)),
        r if r >= 9_995.0 => format!("{}k", three_digits(r / 1e3)),
        r => three_digits(r),
    }
}

/// An estimated number of bytes as a size: `9.31 KiB`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes, positive")]
pub(crate) fn bytes(estimated: f64) -> Bytes {
    Bytes(estimated.max(0.0).round() as u64)
}

/// A value in words, or what stands where there is none: a dash, or nothing.
pub(crate) trait InWords<T> {
    fn or_dash(self, words: impl FnOnce(T) -> String) -> String;
    fn or_empty(self, words: impl FnOnce(T) -> String) -> String;
}

impl<T> InWords<T> for Option<T> {
    fn or_dash(self, words: impl FnOnce(T) -> String) -> String {
        self.map_or_else(|| NONE.to_owned(), words)
    }

    fn or_empty(self, words: impl FnOnce(T) -> String) -> String {
        self.map(words).unwrap_or_default()
    }
}

/// Least and most, or what both are: `1 to 2`.
pub(crate) fn extent<T: PartialEq + std::fmt::Display>(least: T, most: T) -> String {
    if least == most { most.to_string() } else { format!("{least} to {most}") }
}

/// A value to three digits, or a dash.
pub(crate) fn optional(value: Option<f64>) -> String {
    value.or_dash(three_digits)
}

/// A value with its interval, scaled: `39.5 [39.1, 39.9]`.
pub(crate) fn interval_text(estimate: Option<Estimate>, scale: f64) -> String {
    let digits = |value| three_digits(value / scale);
    estimate.or_dash(|Estimate { value, interval, .. }| match interval {
        Some(interval) => format!("{} {}", digits(value), ends(interval, digits)),
        None => digits(value),
    })
}

/// Copies per payload byte: whole where they are whole.
pub(crate) fn copies(value: Option<f64>) -> String {
    match value {
        Some(value) if value.fract() == 0.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.2}"),
        None => NONE.to_owned(),
    }
}

/// `1 trial`, `3 trials`, `2 passes`.
pub(crate) fn count(n: impl TryInto<u64>, noun: &str) -> String {
    let n: u64 = n.try_into().unwrap_or(u64::MAX);
    let plural = match (n, noun.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{n} {noun}{plural}")
}

/// `2 threads or processes`.
pub(crate) fn tasks(n: u64) -> String {
    match n {
        1 => "1 thread or process".to_owned(),
        n => format!("{n} threads or processes"),
    }
}

/// Names as prose: `a`, `a and b`, `a, b and c`.
pub(crate) fn list(items: impl IntoIterator<Item: AsRef<str>>) -> String {
    let items = Vec::from_iter(items);
    match Vec::from_iter(items.iter().map(AsRef::as_ref)).as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The same with a verb: `a sends`, `a and b send`.
pub(crate) fn list_with(who: &[impl AsRef<str>], verb: &str, plural: &str) -> String {
    format!("{} {}", list(who), if who.len() == 1 { verb } else { plural })
}

// Rates as readers see them: one unit for all of a column, chosen by its values, and three
// significant digits of each.

/// The unit of the rates in one column or figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Unit {
    /// Its name.
    pub(crate) name: &'static str,
    /// Bytes, or bits, per second in it.
    pub(crate) size: f64,
}

/// Units of rates, larger first.
pub(crate) type Units = [Unit; 2];

/// Of files and calls.
pub(crate) const BYTES: Units = [
    Unit { name: "GiB/s", size: Bytes::GIB as f64 },
    Unit { name: "MiB/s", size: Bytes::MIB as f64 },
];

/// Of networks.
pub(crate) const BITS: Units =
    [Unit { name: "Gbit/s", size: 1e9 }, Unit { name: "Mbit/s", size: 1e6 }];

impl Unit {
    /// The larger one where the typical rate reaches it: the median, since one column has
    /// rates of blocks of a byte and of a mebibyte.
    pub(crate) fn of(units: Units, rates: impl IntoIterator<Item = f64>) -> Unit {
        let [large, small] = units;
        let mut rates: Vec<f64> = rates.into_iter().filter(|rate| *rate > 0.0).collect();
        rates.sort_by(f64::total_cmp);
        match rates.get(rates.len() / 2) {
            Some(typical) if *typical < large.size => small,
            _ => large,
        }
    }
}

/// `2.31 GiB/s`, or `812 MiB/s` below 1 GiB/s.
pub fn rate(bytes_per_s: f64) -> String {
    in_unit(BYTES, bytes_per_s)
}

/// `9.41 Gbit/s`, or `812 Mbit/s` below 1 Gbit/s.
pub(crate) fn bits(bits_per_s: f64) -> String {
    in_unit(BITS, bits_per_s)
}

fn in_unit(units: Units, rate: f64) -> String {
    let unit = Unit::of(units, [rate]);
    format!("{} {}", three_digits(rate / unit.size), unit.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_and_percentages_keep_their_digits() {
        let check = |text: String, expect: &str| assert_eq!(text, expect);
        check(ratio(1.336), "1.34");
        check(ratio(0.1724), "0.172");
        check(percent(0.03), "3%");
        check(percent(0.0184), "1.8%");
        check(percent(0.0042), "0.42%");
        check(range(Interval { low: 1.294, high: 1.391 }), "1.29–1.39");
        check(either_way(0.0184), "±1.8%");
        check(list(["a", "b", "c"]), "a, b and c");
    }

    #[test]
    fn an_interval_wider_than_a_factor_of_ten_has_no_ends() {
        let wide = Interval { low: 1e-20, high: 2_363_516_810_150_224_592_896.0 };
        let narrow = Interval { low: 0.5, high: 4.9 };
        let sentence = |i| interval(i, 2, |i| format!("95% interval {}", range(i)));
        assert_eq!(sentence(wide), "no usable interval from 2 trials");
        assert_eq!(sentence(narrow), "95% interval 0.50–4.90");
        assert_eq!(range(wide), "no usable interval");
        assert_eq!(bracket(wide), "[no usable interval]");
        assert_eq!(ends(wide, three_digits), "[no usable interval]");
        assert_eq!(ends(narrow, three_digits), "[0.500, 4.90]");
        assert_eq!(either_way(831.69), "no usable interval");
        assert_eq!(either_way(2.0), "±200%");
        // Where an end is at 0 there is no ratio to speak of.
        assert_eq!(range(Interval { low: 0.0, high: 63.0 }), "0.0000–63.0000");
        assert_eq!(range(Interval { low: 0.0, high: f64::INFINITY }), "no usable interval");
    }

    #[test]
    fn the_typical_rate_chooses_the_unit() {
        let unit = |mib: &[f64]| Unit::of(BYTES, mib.iter().map(|rate| rate * BYTES[1].size)).name;
        assert_eq!(unit(&[1.0, 5.0, 700.0, 9000.0, 20_000.0]), "MiB/s");
        assert_eq!(unit(&[1.0, 2000.0, 9000.0]), "GiB/s");
        assert_eq!(unit(&[0.0, 1.0]), "MiB/s", "what moves nothing has no rate");
        assert_eq!(unit(&[]), "GiB/s");
        assert_eq!(Unit::of(BITS, [2e9]).name, "Gbit/s");
    }

    #[test]
    fn a_rate_has_three_digits_however_small() {
        assert_eq!(rate(BYTES[0].size * 2.306), "2.31 GiB/s");
        assert_eq!(rate(BYTES[1].size * 0.000_306_4), "0.000306 MiB/s");
    }
}
