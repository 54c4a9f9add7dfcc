//! Numbers as they were printed, and whether two of them are one.

use super::Breach;

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
    #[must_use]
    pub fn exact(value: f64) -> Rounded {
        Rounded { value, low: value, high: value }
    }

    /// A number whose last printed digit is worth twice `half_digit`.
    #[must_use]
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
    #[must_use]
    pub fn uncertainty(self) -> f64 {
        (self.high - self.low) / 2.0 / self.value.abs()
    }
}

/// Two ways to the same number agree, within what printing rounded
/// away and this share. The breach holds found over expected.
#[must_use]
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
