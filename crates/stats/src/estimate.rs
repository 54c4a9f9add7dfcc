//! A number with its interval, and what can be concluded of a ratio.

use serde::Serialize;

/// A value with its 95 % t interval over trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Totals over totals of the used trials.
    pub value: f64,
    /// The interval; `None` under two trials.
    pub interval: Option<Interval>,
    /// Trials.
    pub n: u32,
}

impl Estimate {
    /// The same by a function that rises: in another unit.
    pub fn map(self, of: impl Fn(f64) -> f64) -> Estimate {
        Estimate {
            value: of(self.value),
            interval: self.interval.map(|interval| interval.map(&of)),
            n: self.n,
        }
    }

    /// A value that is made of this and another, which have nothing in common: the half-widths of
    /// both, of the logarithm and added in quadrature.
    #[must_use]
    pub fn with(self, other: Estimate, value: f64) -> Estimate {
        let half = |interval: Interval| (interval.high / interval.low).ln() / 2.0;
        let both =
            self.interval.zip(other.interval).map(|(own, other)| half(own).hypot(half(other)));
        let interval = both
            .filter(|half| half.is_finite())
            .map(|half| Interval { low: value / half.exp(), high: value * half.exp() });
        Estimate { value, interval, n: self.n.min(other.n) }
    }
}

/// A closed interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// centre ± half.
    pub(crate) fn about(centre: f64, half: f64) -> Interval {
        Interval { low: centre - half, high: centre + half }
    }

    /// Of a ratio, with this half-width of its logarithm.
    pub(crate) fn about_ratio(ratio: f64, half: f64) -> Interval {
        Interval { low: ratio * (-half).exp(), high: ratio * half.exp() }
    }

    /// That half-width.
    pub(crate) fn half_of_ratio(&self) -> f64 {
        (self.high / self.low).ln() / 2.0
    }

    /// Whether a value lies inside.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Upper end over lower end beyond which the interval of a positive number says nothing.
    const ENDS_MAX: f64 = 10.0;

    /// Whether it says anything. That of two trials may span a factor of 10²⁰, and its ends
    /// printed, or drawn, would look like figures. An end at or below 0 is no ratio's.
    pub fn is_usable(&self) -> bool {
        let is_ratio = self.low > 0.0 || self.high.is_infinite();
        !is_ratio || self.high <= self.low * Interval::ENDS_MAX
    }

    /// Whether a half-width, as [`Self::half_width`] gives it, is that of a usable interval.
    pub fn is_half_usable(half: f64) -> bool {
        half <= Interval::ENDS_MAX.sqrt() - 1.0
    }

    /// Both ends by a function that rises.
    pub fn map(self, of: impl Fn(f64) -> f64) -> Interval {
        Interval { low: of(self.low), high: of(self.high) }
    }

    /// Of the inverse of a positive ratio.
    #[must_use]
    pub fn inverse(self) -> Interval {
        Interval { low: 1.0 / self.high, high: 1.0 / self.low }
    }

    /// Half-width of the interval of a ratio as a fraction of it: exp(half-width of ln)
    /// − 1.
    pub fn half_width(&self) -> f64 {
        (self.high / self.low).sqrt() - 1.0
    }
}

iolens_model::words! {
    /// What can be concluded of a contrast.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    pub enum Verdict {
        /// The data cannot be used.
        Invalid = "INVALID",
        /// The data shows who measured and not what was measured, as a floor (see [`Limits`]), or
        /// what slices hold besides their messages, where they are not equal in time.
        Unranked = "UNRANKED",
        /// The difference is smaller than δ, either way.
        Equivalent = "EQUIVALENT",
        /// Faster than the baseline by more than δ.
        Faster = "FASTER",
        /// Slower than the baseline by more than δ.
        Slower = "SLOWER",
        /// A real difference that may be smaller than δ.
        Small = "SMALL",
        /// None of these.
        Inconclusive = "INCONCLUSIVE",
    }
}

impl Verdict {
    /// Whether the contrast says something of the arm: it is neither invalid nor what somebody
    /// or something else did.
    pub fn is_ranked(self) -> bool {
        !matches!(self, Verdict::Invalid | Verdict::Unranked)
    }
}
