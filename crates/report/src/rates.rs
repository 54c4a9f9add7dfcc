//! Rates as readers see them: one unit for all of a column, chosen by its values, and three
//! significant digits of each.

use iolens_model::units::{Bytes, three_digits};

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
#[must_use]
pub fn rate(bytes_per_s: f64) -> String {
    let unit = Unit::of(BYTES, [bytes_per_s]);
    format!("{} {}", three_digits(bytes_per_s / unit.size), unit.name)
}

/// `9.41 Gbit/s`, or `812 Mbit/s` below 1 Gbit/s.
pub(crate) fn bits(bits_per_s: f64) -> String {
    let unit = Unit::of(BITS, [bits_per_s]);
    format!("{} {}", three_digits(bits_per_s / unit.size), unit.name)
}

#[cfg(test)]
mod tests {
    use super::*;

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
