//! Logarithmic axes: where a value stands, and which ticks are worth a label.

use iolens_model::units::{Bytes, three_digits};
use iolens_stats::analysis::Interval;

/// A logarithmic axis with its ticks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    /// Values with labels, in rising order.
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Scale {
    /// Where a value stands, 0 at the low end and 1 at the high end.
    pub(crate) fn position(&self, value: f64) -> f64 {
        (value / self.low).ln() / (self.high / self.low).ln()
    }

    /// Whether a value is on the axis.
    pub(crate) fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Message sizes with room at both ends. A label stands at powers of two
    /// that were measured, at most about eight of them.
    pub(crate) fn sizes(sizes: &[u64]) -> Scale {
        const LABELS_MAX: usize = 8;
        let first = sizes.first().copied().unwrap_or(1) as f64;
        let last = sizes.last().copied().unwrap_or(1) as f64;
        let room = ((last / first).ln() * 0.05).exp().max(1.35);
        let marked: Vec<u64> =
            sizes.iter().copied().filter(|size| size.is_power_of_two()).collect();
        let marked = if marked.is_empty() { sizes.to_vec() } else { marked };
        let step = marked.len().div_ceil(LABELS_MAX).max(1);
        let tick = |&size: &u64| (size as f64, Bytes(size).to_string());
        let ticks = marked.iter().step_by(step).map(tick).collect();
        Scale { low: first / room, high: last * room, ticks }
    }

    /// Ratios around 1, with ticks readers know.
    pub(crate) fn ratios(extent: Interval) -> Scale {
        // In the order in which they are wanted.
        const WANTED: [f64; 25] = [
            1.0, 2.0, 0.5, 10.0, 0.1, 5.0, 0.2, 1.5, 100.0, 0.01, 0.7, 1.25, 0.8, 3.0, 0.3, 1.1,
            0.9, 20.0, 0.05, 50.0, 0.02, 1.05, 0.95, 1.2, 0.6,
        ];
        let extent = Interval { low: extent.low.min(0.93), high: extent.high.max(1.08) };
        Scale::chosen(extent, &WANTED, |value| format!("{value}×"))
    }

    /// Rates, with ticks at 1, 2 and 5 times powers of ten.
    pub(crate) fn rates(extent: Interval) -> Scale {
        let decades = || (-4..=6).map(|exponent| 10f64.powi(exponent));
        let wanted: Vec<f64> =
            [1.0, 5.0, 2.0].into_iter().flat_map(|m| decades().map(move |d| m * d)).collect();
        Scale::chosen(extent, &wanted, |value| match value {
            v if v >= 1.0 => format!("{v:.0}"),
            v => three_digits(v).trim_end_matches('0').to_owned(),
        })
    }

    /// Takes wanted ticks as long as their labels do not touch.
    fn chosen(extent: Interval, wanted: &[f64], label: impl Fn(f64) -> String) -> Scale {
        // A label needs one twelfth of the axis.
        const APART: f64 = 1.0 / 12.0;
        let room = ((extent.high / extent.low).ln() * 0.06).exp().max(1.01);
        let mut scale =
            Scale { low: extent.low / room, high: extent.high * room, ticks: Vec::new() };
        let mut taken: Vec<f64> = Vec::new();
        for &value in wanted.iter().filter(|value| scale.contains(**value)) {
            let near = |other: &f64| (scale.position(*other) - scale.position(value)).abs() < APART;
            if !taken.iter().any(near) {
                taken.push(value);
            }
        }
        taken.sort_by(f64::total_cmp);
        scale.ticks = taken.into_iter().map(|value| (value, label(value))).collect();
        scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn sizes_are_labelled_in_iec() {
        let scale = Scale::sizes(&[64, 256, 1024, 4096, 16384, 65536, 262_144, 1 << 20]);
        let expect = ["64 B", "256 B", "1 KiB", "4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB"];
        assert_eq!(labels(&scale), expect);
        assert!(scale.position(64.0) > 0.0 && scale.position(1048576.0) < 1.0);
        assert_eq!(labels(&Scale::sizes(&[100])), ["100 B"]);
    }

    #[test]
    fn ratios_always_show_one() {
        let scale = Scale::ratios(Interval { low: 0.17, high: 1.49 });
        assert_eq!(labels(&scale), ["0.2×", "0.3×", "0.5×", "0.7×", "1×", "1.5×"]);
        assert!(labels(&Scale::ratios(Interval { low: 0.99, high: 1.01 })).contains(&"1×"));
    }

    #[test]
    fn rates_have_round_ticks() {
        let scale = Scale::rates(Interval { low: 0.08, high: 60.0 });
        assert_eq!(labels(&scale), ["0.1", "0.2", "0.5", "1", "2", "5", "10", "20", "50"]);
    }
}
