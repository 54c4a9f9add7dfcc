//! Changes and intervals as readers see them.

use iolens_model::units::three_digits;

/// A value over that of a reference, with its interval; all positive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor {
    /// The factor.
    pub typical: f64,
    /// Its interval; `None` where there is none, or its ends say nothing.
    pub interval: Option<(f64, f64)>,
}

impl Factor {
    /// The same the other way round: of a rate that of a cost.
    #[must_use]
    pub fn inverse(self) -> Factor {
        let interval = self.interval.map(|(low, high)| (1.0 / high, 1.0 / low));
        Factor { typical: 1.0 / self.typical, interval }
    }

    /// The change, and both ends of its interval: `+16%`, `[+13,`, `+19]`.
    pub fn parts(self) -> [String; 3] {
        let [low, high] = self.end_parts();
        [change(self.typical), low, high]
    }

    /// Both ends of the interval of changes: `[+13,`, `+19]`.
    pub fn end_parts(self) -> [String; 2] {
        match self.interval.map(change_ends) {
            Some([low, high]) => [format!("[{low},"), format!("{high}]")],
            None => [String::new(), format!("[{}]", unusable())],
        }
    }

    /// The interval of a value that is the reference's times this: `57.4–78.1`.
    pub fn ends_of(self, value: f64) -> Option<String> {
        let reference = value / self.typical;
        self.interval.map(|(low, high)| ends((reference * low, reference * high)))
    }

    /// Whether the interval leaves open which of the two is larger.
    pub fn is_open(self) -> bool {
        self.interval.is_none_or(|(low, high)| low <= 1.0 && high >= 1.0)
    }
}

/// What stands for an interval whose ends say nothing, or that there is not.
pub fn unusable() -> &'static str {
    "no interval"
}

/// A factor as a signed change: `+16%`, `−9%`, `0%`.
pub fn change(factor: f64) -> String {
    let shown = change_by(factor);
    let sign = match factor {
        _ if shown == "0%" => "",
        factor if factor < 1.0 => "−",
        _ => "+",
    };
    format!("{sign}{shown}")
}

/// How large a change is, either way: `16%`.
pub fn change_by(factor: f64) -> String {
    format!("{:.0}%", ((factor - 1.0) * 100.0).abs())
}

/// The ends of an interval of changes, without the sign of percent: `−12` and `+6`.
fn change_ends((low, high): (f64, f64)) -> [String; 2] {
    [low, high].map(|end| change(end).trim_end_matches('%').to_owned())
}

/// Both ends of an interval of changes: `[−12, +6]`.
pub fn change_interval(interval: (f64, f64)) -> String {
    let [low, high] = change_ends(interval);
    format!("[{low}, {high}]")
}

/// Both ends of an interval of a value: `57.4–78.1`.
pub fn ends((low, high): (f64, f64)) -> String {
    format!("{}–{}", three_digits(low), three_digits(high))
}

/// Figure and punctuation spaces are as wide as a digit and a point.
pub(crate) fn pad(number: &str, width: usize) -> String {
    let points = usize::from(width > 0 && !number.contains('.'));
    "\u{2008}".repeat(points) + &"\u{2007}".repeat(width - points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_signed_and_nothing_is_plain() {
        let check = |factor, expect: &str| assert_eq!(change(factor), expect);
        check(1.16, "+16%");
        check(0.91, "−9%");
        check(0.998, "0%");
        check(3.5, "+250%");
    }

    #[test]
    fn a_cost_is_open_where_its_rate_is() {
        let rate = Factor { typical: 1.05, interval: Some((0.97, 1.13)) };
        assert!(rate.is_open() && rate.inverse().is_open());
        let rate = Factor { typical: 1.05, interval: Some((1.01, 1.09)) };
        assert!(!rate.is_open() && !rate.inverse().is_open());
        assert!(Factor { typical: 2.0, interval: None }.is_open());
    }
}
