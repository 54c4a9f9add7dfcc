//! What several cells have in common and should not, and numbers as they were printed.

use super::Breach;

/// Throughput that is the same, within a quarter, for messages under
/// 1 KiB and over 64 KiB: the least and the most of it. A copy of 64 times the
/// bytes for one system call makes it grow by factors, unless a link or a
/// shaper bounds every size.
///
/// Points are bytes and rate.
pub fn flat_throughput(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    /// Largest over smallest rate of a curve that is called flat.
    const FLAT: f64 = 1.25;
    let sizes = || points.iter().map(|(bytes, _)| *bytes);
    let spans = sizes().any(|n| n < 1024.0) && sizes().any(|n| n > 65536.0);
    let (least, most) = spread(points.iter().map(|(_, rate)| *rate));
    (spans && least > 0.0 && most <= least * FLAT).then_some((least, most))
}

/// Context switches of one cell beside its messages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Switching {
    /// Switches a second.
    pub per_s: f64,
    /// Messages a second.
    pub messages_per_s: f64,
}

/// Switching that is constant while the work is not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SwitchRate {
    /// The least switches a second in any cell.
    pub least: f64,
    /// The most.
    pub most: f64,
    /// Fastest over slowest message rate of the cells.
    pub rates_apart: f64,
}

/// Context switches per second that hardly change over cells whose
/// message rates differ: something wakes up by the clock and not by the work.
pub fn steady_switching(cells: &[Switching]) -> Option<SwitchRate> {
    /// Cells that a pattern takes.
    const CELLS_MIN: usize = 4;
    /// Fastest over slowest message rate from which rates are different.
    const RATES_APART: f64 = 4.0;
    /// Most over least switches per second that are called constant.
    const CONSTANT: f64 = 1.1;
    let (slowest, fastest) = spread(cells.iter().map(|cell| cell.messages_per_s));
    let (least, most) = spread(cells.iter().map(|cell| cell.per_s));
    let alike = fastest < slowest * RATES_APART || most > least * CONSTANT;
    let found = cells.len() >= CELLS_MIN && !alike && least > 0.0 && slowest > 0.0;
    found.then_some(SwitchRate { least, most, rates_apart: fastest / slowest })
}

/// A row of a table that has a latency and a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow {
    /// The latency, in ns.
    pub latency_ns: Rounded,
    /// Messages a second, of all threads.
    pub messages_per_s: Rounded,
}

/// For tables of others: latency × message rate is the same number in
/// every row, within half a percent: then the latency was computed from the
/// rate and not measured. That number, which is how many messages were taken
/// to be in flight; `None` where rows are fewer than three or were printed too
/// short to tell.
pub fn derived_latency(rows: &[Flow]) -> Option<f64> {
    const ROWS_MIN: usize = 3;
    const SHARE: f64 = 0.005;
    const ROUNDING_MOST: f64 = 0.02;
    let products: Vec<Rounded> =
        rows.iter().map(|row| row.latency_ns.times(row.messages_per_s).scaled(1e-9)).collect();
    let sharp = products.iter().filter(|product| product.uncertainty() <= ROUNDING_MOST).count();
    let median = median(products.iter().map(|product| product.value).collect())?;
    let (low, high) = (median * (1.0 - SHARE), median * (1.0 + SHARE));
    let same = products.iter().all(|product| product.low <= high && product.high >= low);
    // Rates that differ make it a pattern; one rate printed often is one row.
    let (slowest, fastest) = spread(rows.iter().map(|row| row.messages_per_s.value));
    let differs = fastest > slowest * 1.5;
    (same && differs && sharp >= ROWS_MIN && median > 0.0).then_some(median)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The least and the largest of some values above zero.
fn spread(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(least, most), value| (least.min(value), most.max(value)))
}

// Numbers as they were printed, and whether two of them are one.

/// A number and the range that printing may have rounded into it. Counts have
/// none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rounded {
    /// As printed.
    pub value: f64,
    /// The least that prints like this.
    pub low: f64,
    /// The most that prints like this.
    pub high: f64,
}

impl Rounded {
    /// A number that nobody rounded.
    pub fn exact(value: f64) -> Rounded {
        Rounded { value, low: value, high: value }
    }

    /// A number whose last printed digit is worth twice `half_digit`.
    pub fn printed(value: f64, half_digit: f64) -> Rounded {
        Rounded { value, low: value - half_digit, high: value + half_digit }
    }

    /// The product with a number that is exact; its sign is kept right.
    #[must_use]
    pub fn scaled(self, by: f64) -> Rounded {
        let (a, b) = (self.low * by, self.high * by);
        Rounded { value: self.value * by, low: a.min(b), high: a.max(b) }
    }

    /// The product of two numbers that are not negative.
    #[must_use]
    pub fn times(self, other: Rounded) -> Rounded {
        Rounded {
            value: self.value * other.value,
            low: self.low.max(0.0) * other.low.max(0.0),
            high: self.high * other.high,
        }
    }

    /// The quotient of two numbers that are not negative; without an upper
    /// end where the divisor may be zero.
    #[must_use]
    pub fn over(self, other: Rounded) -> Rounded {
        let high = if other.low > 0.0 { self.high / other.low } else { f64::INFINITY };
        let low = self.low.max(0.0) / other.high;
        Rounded { value: self.value / other.value, low, high }
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Rounded) -> Rounded {
        Rounded {
            value: self.value + other.value,
            low: self.low + other.low,
            high: self.high + other.high,
        }
    }

    /// Half of the range over the value: how much of it is rounding.
    pub fn uncertainty(self) -> f64 {
        (self.high - self.low) / 2.0 / self.value.abs()
    }
}

/// Two ways to the same number agree, within what printing rounded
/// away and this share. The breach holds found over expected.
pub fn agreement(found: Rounded, expected: Rounded, share: f64) -> Option<Breach> {
    let ratio = found.over(expected);
    let (low, high) = (1.0 / (1.0 + share), 1.0 + share);
    let apart = ratio.low > high || ratio.high < low;
    (apart && ratio.value.is_finite()).then_some(Breach { value: ratio.value, low, high })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn flat_curves_must_span() {
        let flat = [(64.0, 5.0), (131_072.0, 5.5)];
        assert_eq!(flat_throughput(&flat), Some((5.0, 5.5)));
        assert_eq!(flat_throughput(&[(64.0, 5.0), (131_072.0, 50.0)]), None);
        assert_eq!(flat_throughput(&[(1024.0, 5.0), (131_072.0, 5.5)]), None);
    }

    #[test]
    fn switches_by_the_clock_are_seen() {
        let cells = |rates: &[f64], per_s: f64| -> Vec<Switching> {
            let cell = |&messages_per_s: &f64| Switching { per_s, messages_per_s };
            rates.iter().map(cell).collect()
        };
        let found = steady_switching(&cells(&[1e3, 2e3, 4e3, 8e3], 200.0)).unwrap();
        assert!((found.rates_apart - 8.0).abs() < 1e-9);
        assert_eq!(steady_switching(&cells(&[1e3, 2e3, 8e3], 200.0)), None);
        assert_eq!(steady_switching(&cells(&[1e3, 1e3, 2e3, 2e3], 200.0)), None);
        assert_eq!(steady_switching(&cells(&[1e3, 2e3, 4e3, 8e3], 0.0)), None);
    }

    fn flows(rows: &[(f64, f64)]) -> Vec<Flow> {
        let flow = |&(latency_ns, rate): &(f64, f64)| Flow {
            latency_ns: Rounded::printed(latency_ns, latency_ns * 0.001),
            messages_per_s: Rounded::printed(rate, rate * 0.001),
        };
        rows.iter().map(flow).collect()
    }

    #[test]
    fn latencies_made_from_rates_are_seen() {
        let derived = [(1000.0, 1e6), (2000.0, 5e5), (8000.0, 1.25e5)];
        assert!((derived_latency(&flows(&derived)).unwrap() - 1.0).abs() < 1e-9);
        let measured = [(1000.0, 1e6), (2100.0, 5e5), (8000.0, 1.25e5)];
        assert_eq!(derived_latency(&flows(&measured)), None);
        assert_eq!(derived_latency(&flows(&derived[..2])), None);
    }

    #[test]
    fn a_rate_times_a_time_is_a_count() {
        // 520 a second over 21.14 ms are 11, not 305.
        let expected = Rounded::printed(520.0, 0.5).times(Rounded::printed(0.02114, 5e-6));
        let breach = agreement(Rounded::exact(305.0), expected, 0.01).unwrap();
        assert!((breach.value - 27.7).abs() < 0.1, "{breach:?}");
        assert_eq!(agreement(Rounded::exact(11.0), expected, 0.01), None);
    }

    #[test]
    fn what_rounding_explains_is_no_breach() {
        let expected = Rounded::printed(0.1, 0.05).times(Rounded::exact(100.0));
        assert_eq!(agreement(Rounded::exact(14.0), expected, 0.0), None);
        assert!(agreement(Rounded::exact(16.0), expected, 0.0).is_some());
        // Nothing is printed of it but zeros: it may be anything small.
        let nothing = Rounded::printed(0.0, 0.05);
        assert_eq!(agreement(Rounded::exact(3.0), nothing.times(expected), 0.0), None);
    }

    proptest! {
        #[test]
        fn a_number_printed_agrees_with_itself(value in 0.01..1e9f64, digits in 0u32..3) {
            let half = 0.5 * 0.1f64.powi(i32::try_from(digits).unwrap());
            let printed = (value / (2.0 * half)).round() * 2.0 * half;
            let found = Rounded::printed(printed, half * 1.001);
            prop_assert_eq!(agreement(Rounded::exact(value), found, 1e-9), None);
            if half / value < 0.01 {
                prop_assert!(agreement(Rounded::exact(value * 1.1), found, 0.01).is_some());
            }
        }
    }
}
