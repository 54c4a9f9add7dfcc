//! Logarithmic axes: where a value stands, and which ticks are worth a label.

use iolens_stats::analysis::Interval;

use super::svg;
use crate::number::bytes;

/// A logarithmic axis with its ticks.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    /// Values with labels, the most wanted first where not all may have room.
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Scale {
    /// Some range, for an axis without values.
    pub(crate) const DECADE: Interval = Interval { low: 1.0, high: 10.0 };

    /// Where a value stands, 0 at the low end and 1 at the high end.
    pub(crate) fn position(&self, value: f64) -> f64 {
        // Zero and what an interval has below it stand far below the axis.
        let value = value.max(f64::MIN_POSITIVE);
        (value / self.low).ln() / (self.high / self.low).ln()
    }

    /// Whether a value is on the axis.
    pub(crate) fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The ticks whose labels have room on an axis of a length, if each needs
    /// `apart`; the most wanted ones stay.
    pub(crate) fn spaced(&self, length: f64, apart: f64) -> Vec<&(f64, String)> {
        let mut kept: Vec<&(f64, String)> = Vec::new();
        for tick in &self.ticks {
            let place = self.position(tick.0);
            if kept.iter().all(|kept| (self.position(kept.0) - place).abs() * length >= apart) {
                kept.push(tick);
            }
        }
        kept
    }

    /// Every how many ticks of an axis of a length a label has room.
    pub(crate) fn step(&self, length: f64) -> usize {
        const APART: f64 = 7.0;
        let place = |(value, label): &(f64, String)| {
            (length * self.position(*value), svg::width(label, 11.5) / 2.0)
        };
        let fits = |step: &usize| {
            let shown: Vec<_> = self.ticks.iter().step_by(*step).map(place).collect();
            shown.windows(2).all(|pair| pair[1].0 - pair[0].0 >= pair[0].1 + pair[1].1 + APART)
        };
        (1..=self.ticks.len()).find(fits).unwrap_or(1)
    }

    /// Sizes with room at both ends. A label stands at those that were measured,
    /// at most about eight of them: at powers of two, where most are.
    pub(crate) fn sizes(sizes: &[f64]) -> Scale {
        const LABELS_MAX: usize = 8;
        let mut round = sizes.to_vec();
        round.retain(|size| bytes(*size).0.is_power_of_two());
        let marked = if 2 * round.len() > sizes.len() { &round } else { sizes };
        let step = marked.len().div_ceil(LABELS_MAX).max(1);
        let ticks = marked.iter().step_by(step).map(|&size| (size, bytes(size).to_string()));
        Scale::around(sizes, (0.05, 1.35), ticks.collect())
    }

    /// Counts with room at both ends, every one labelled.
    pub(crate) fn counts(counts: &[f64]) -> Scale {
        let ticks = counts.iter().map(|&count| (count, count.to_string())).collect();
        Scale::around(counts, (0.08, 1.2), ticks)
    }

    /// From the first value to the last, with this share of the way between them as room at
    /// both ends, and this factor at least.
    fn around(values: &[f64], (share, least): (f64, f64), ticks: Vec<(f64, String)>) -> Scale {
        let [first, last] = [values.first(), values.last()].map(|v| v.copied().unwrap_or(1.0));
        let room = ((last / first).ln() * share).exp().max(least);
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

    /// Ratios to a baseline, with ticks as changes in per cent.
    pub(crate) fn changes(extent: Interval) -> Scale {
        // In the order in which they are wanted.
        const WANTED: [f64; 24] = [
            0.0, 5.0, -5.0, 10.0, -10.0, 2.0, -2.0, 20.0, -20.0, 50.0, -50.0, 100.0, 200.0, 400.0,
            900.0, -90.0, 1.0, -1.0, 3.0, -3.0, 0.5, -0.5, 9900.0, -99.0,
        ];
        let ratios = WANTED.map(|percent| 1.0 + percent / 100.0);
        Scale::chosen(extent, &ratios, |ratio| {
            let percent = ((ratio - 1.0) * 1e4).round() / 100.0;
            match percent {
                percent if percent > 0.0 => format!("+{percent}%"),
                percent if percent < 0.0 => format!("−{}%", -percent),
                _ => "0%".to_owned(),
            }
        })
    }

    /// Values above zero: ticks at 1, 2 and 5 times powers of ten, and where
    /// the range has few of those, at even steps.
    pub(crate) fn values(extent: Interval) -> Scale {
        let wanted = [1.0, 5.0, 2.0].map(|m| (-9..=12).map(move |e| m * 10f64.powi(e)));
        let wanted: Vec<f64> = wanted.into_iter().flatten().collect();
        let scale = Scale::chosen(extent, &wanted, tick_label);
        if scale.ticks.len() >= 3 {
            return scale;
        }
        let step = even_step((scale.high - scale.low) / 6.0);
        let first = (scale.low / step).ceil();
        let even: Vec<f64> = (0..12).map(|i| (first + f64::from(i)) * step).collect();
        Scale::chosen(extent, &even, tick_label)
    }

    /// Takes wanted ticks as long as their labels do not touch.
    fn chosen(extent: Interval, wanted: &[f64], label: impl Fn(f64) -> String) -> Scale {
        // A label needs one twelfth of the axis.
        const APART: f64 = 1.0 / 12.0;
        let mut scale = Scale::around(&[extent.low, extent.high], (0.06, 1.01), Vec::new());
        let inside = wanted.iter().filter(|value| scale.contains(**value));
        scale.ticks = inside.map(|&value| (value, label(value))).collect();
        scale.ticks = scale.spaced(1.0, APART).into_iter().cloned().collect();
        scale
    }
}

/// The next of 1, 2 and 5 times a power of ten.
fn even_step(least: f64) -> f64 {
    let decade = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|m| m * decade);
    steps.into_iter().find(|step| *step >= least).unwrap_or(least)
}

/// A tick's value without needless zeros, thousands set apart; millions and more, for which an
/// axis has no room, with a prefix.
fn tick_label(value: f64) -> String {
    for (unit, prefix) in [(1e12, 'T'), (1e9, 'G'), (1e6, 'M')] {
        if value >= unit {
            return format!("{}\u{a0}{prefix}", tick_label(value / unit));
        }
    }
    if value < 1000.0 {
        // Two digits behind the first are enough at any step that is drawn.
        let digits = 10f64.powf((2.0 - value.log10().floor()).clamp(0.0, 12.0));
        return ((value * digits).round() / digits).to_string();
    }
    let whole = value.round();
    format!("{}\u{a0}{:03}", (whole / 1000.0).floor(), whole % 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Labels by rising value.
    fn labels(scale: &Scale) -> Vec<&str> {
        let mut ticks: Vec<&(f64, String)> = scale.ticks.iter().collect();
        ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
        ticks.into_iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn where_room_is_scarce_the_wanted_ticks_stay() {
        let scale = Scale::ratios(Interval { low: 0.17, high: 1.49 });
        let kept = scale.spaced(60.0, 25.0);
        assert_eq!(kept[0].1, "1×");
        assert!(kept.len() < scale.ticks.len());
        assert_eq!(scale.spaced(1e6, 25.0).len(), scale.ticks.len());
    }

    #[test]
    fn sizes_are_labelled_in_iec() {
        let scale =
            Scale::sizes(&[64, 256, 1024, 4096, 16384, 65536, 262_144, 1 << 20].map(f64::from));
        let expect = ["64 B", "256 B", "1 KiB", "4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB"];
        assert_eq!(labels(&scale), expect);
        assert!(scale.position(64.0) > 0.0 && scale.position(1048576.0) < 1.0);
        assert_eq!(labels(&Scale::sizes(&[100.0])), ["100 B"]);
        let decades = Scale::sizes(&[1, 10, 100, 1000].map(|mib| f64::from(mib << 20)));
        assert_eq!(labels(&decades), ["1 MiB", "10 MiB", "100 MiB", "1000 MiB"]);
    }

    #[test]
    fn labels_of_an_axis_are_left_out_evenly() {
        let scale =
            Scale::sizes(&[64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1 << 20].map(f64::from));
        assert_eq!([600.0, 300.0, 150.0].map(|length| scale.step(length)), [1, 2, 3]);
    }

    #[test]
    fn ratios_always_show_one() {
        let scale = Scale::ratios(Interval { low: 0.17, high: 1.49 });
        assert_eq!(labels(&scale), ["0.2×", "0.3×", "0.5×", "0.7×", "1×", "1.5×"]);
        assert!(labels(&Scale::ratios(Interval { low: 0.99, high: 1.01 })).contains(&"1×"));
    }

    #[test]
    fn changes_have_signs() {
        let labels_of = |low, high| {
            let scale = Scale::changes(Interval { low, high });
            labels(&scale).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let near = ["−3%", "−2%", "−1%", "0%", "+1%", "+2%", "+3%", "+5%"];
        assert_eq!(labels_of(0.97, 1.06), near);
        assert_eq!(labels_of(0.5, 4.0), ["−50%", "−20%", "0%", "+50%", "+100%", "+200%"]);
    }

    #[test]
    fn values_have_round_ticks() {
        let check = |low, high, expect: &[&str]| {
            assert_eq!(labels(&Scale::values(Interval { low, high })), expect);
        };
        check(0.08, 60.0, &["0.1", "0.2", "0.5", "1", "2", "5", "10", "20", "50"]);
        check(1.02, 1.11, &["1.02", "1.04", "1.06", "1.08", "1.1", "1.12"]);
        check(900.0, 2e6, &["1\u{a0}000", "10\u{a0}000", "100\u{a0}000", "1\u{a0}M"]);
    }

    #[test]
    fn what_is_not_above_zero_is_below_the_axis() {
        let scale = Scale::values(Interval { low: 0.5, high: 8.0 });
        for value in [0.0, -3.0] {
            let position = scale.position(value);
            assert!(position.is_finite() && position < 0.0 && !scale.contains(value));
        }
    }
}
