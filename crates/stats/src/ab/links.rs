//! Several links of one source: what a build does is the mean over its links.
//!
//! Where a linker puts code changes the speed of a file for good, however often it runs, so that
//! links are the independent values and trials only make each of them known better. A link has the
//! mean of its trials (of whole commands the median of its rounds), against whatever links of the
//! other side it met, and the interval is Welch's over the links of both sides. Noise of trials is
//! in the spread of both sides and so counts twice: where layout does not matter, intervals are up
//! to √2 wider than they need be, and never too narrow.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{AbUnit, change, known_change};
use crate::estimate::Interval;
use crate::interval::{Moments, count, median};
use crate::student::quantile;

/// The links of both sides of a contrast.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbLinks {
    /// Those of the baseline.
    pub baseline: AbLinkSide,
    /// Those of the arm.
    pub arm: AbLinkSide,
    /// The part of the variance of the change that more trials of the same links would make
    /// smaller, 0 to 1; `None` until each link has met each one of the other side.
    pub noise_share: Option<f64>,
}

/// The links of a program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbLinkSide {
    /// Those that were measured, by number.
    pub links: Vec<AbLinkMean>,
    /// Standard deviation of the links, as a fraction of time, what noise is left in it; `None` of
    /// one link.
    pub sd: Option<f64>,
}

impl AbLinkSide {
    /// How much slower the slowest link is than the fastest, as a fraction.
    pub fn apart(&self) -> Option<f64> {
        let lns = || self.links.iter().map(|link| link.change.ln_1p());
        let (low, high) = (lns().reduce(f64::min)?, lns().reduce(f64::max)?);
        known_change(high - low)
    }
}

/// A link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AbLinkMean {
    /// Its number among the links of its program, from 0.
    pub link: u32,
    /// What it takes against the mean of its side, as a change.
    pub change: f64,
}

/// What is known of ln(arm / baseline) by the links of both.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Linked {
    /// The links of the baseline and those of the arm, each with the ln(arm / baseline) of what it
    /// was measured in.
    sides: [Vec<(u32, f64)>; 2],
    /// The part of the variance of the centre that more trials of the same links make smaller.
    noise: Option<f64>,
    /// Whether each link has met each one of the other side.
    is_crossed: bool,
}

/// A value of ln(arm / baseline), and the links of the baseline and the arm that it is of.
pub(super) struct LinkedValue {
    pub(super) links: [u32; 2],
    pub(super) ln: f64,
}

impl Linked {
    /// By link the mean of values of trials, or the median of values of rounds.
    pub(super) fn of(values: &[LinkedValue], unit: AbUnit) -> Linked {
        let sides = [0, 1].map(|side| by_link(values, side, unit));
        let pairs: BTreeSet<[u32; 2]> = values.iter().map(|value| value.links).collect();
        let is_crossed = pairs.len() == sides[0].len() * sides[1].len();
        let mut linked = Linked { sides, noise: None, is_crossed };
        linked.noise = linked.noise_of(values, unit);
        linked
    }

    /// How many links each side has.
    pub(super) fn counts(&self) -> [u32; 2] {
        self.sides.each_ref().map(|side| count(side.len()))
    }

    /// The mean over links; `None` without values.
    pub(super) fn centre(&self) -> Option<f64> {
        let [baseline, arm] = self.moments();
        Some(f64::midpoint(baseline?.mean, arm?.mean))
    }

    /// The interval that misses with this chance, both sides together; `None` where a side has
    /// fewer than two links.
    pub(super) fn interval(&self, error: f64) -> Option<Interval> {
        let (centre, spread) = (self.centre()?, self.spread()?);
        let half = quantile(spread.freedom, 1.0 - error / 2.0)? * spread.variance.sqrt();
        Some(Interval::about(centre, half))
    }

    /// Variance of the centre and its degrees of freedom (Welch, The generalization of "Student's"
    /// problem when several different population variances are involved, Biometrika 34, 1947).
    pub(super) fn spread(&self) -> Option<Spread> {
        let [Some(a), Some(b)] = self.moments() else { return None };
        let of =
            |side: Moments| Some((side.sd?.powi(2) / f64::from(side.n), f64::from(side.n - 1)));
        let ((a, a_freedom), (b, b_freedom)) = (of(a)?, of(b)?);
        let freedom = (a + b).powi(2) / (a * a / a_freedom + b * b / b_freedom);
        // Where nothing varies both are 0.
        let freedom = if freedom.is_finite() { freedom } else { a_freedom + b_freedom };
        Some(Spread { variance: a + b, freedom })
    }

    /// Variance of the centre where the same links have so many times as many trials.
    pub(super) fn variance_after(&self, times: f64) -> Option<f64> {
        let variance = self.spread()?.variance;
        let noise = self.noise?.min(variance);
        Some(variance - noise + noise / times)
    }

    /// What is told of the links; `None` where a side has none.
    pub(super) fn told(&self) -> Option<AbLinks> {
        let side = |side: usize| {
            let own = Moments::of(&lns(&self.sides[side]))?;
            // What makes the arm slower makes the ratio larger, and of the baseline smaller.
            let sign = if side == 0 { -1.0 } else { 1.0 };
            let mean = |&(link, ln): &(u32, f64)| AbLinkMean {
                link,
                change: change(sign * (ln - own.mean)),
            };
            Some(AbLinkSide {
                links: self.sides[side].iter().map(mean).collect(),
                sd: own.sd.map(change),
            })
        };
        let variance = self.spread().map(|spread| spread.variance).filter(|v| *v > 0.0);
        let noise_share = self.noise.zip(variance).map(|(noise, all)| (noise / all).min(1.0));
        Some(AbLinks {
            baseline: side(0)?,
            arm: side(1)?,
            noise_share: noise_share.filter(|_| self.is_crossed),
        })
    }

    fn moments(&self) -> [Option<Moments>; 2] {
        self.sides.each_ref().map(|side| Moments::of(&lns(side)))
    }

    /// Of the residuals, when both links of a value are known. The noise of a trial is in the means
    /// of both sides. `None` with too few values.
    fn noise_of(&self, values: &[LinkedValue], unit: AbUnit) -> Option<f64> {
        let centre = self.centre()?;
        let of = |side: usize, link: u32| {
            self.sides[side].iter().find(|(own, _)| *own == link).map(|(_, ln)| *ln)
        };
        let residual = |value: &LinkedValue| {
            Some(value.ln - of(0, value.links[0])? - of(1, value.links[1])? + centre)
        };
        let residuals: Vec<f64> = values.iter().filter_map(residual).collect();
        let links = self.sides[0].len() + self.sides[1].len();
        // Fewer than two values for each link tell too little.
        let freedom =
            (residuals.len() + 1).checked_sub(links).filter(|freedom| *freedom > links)?;
        let variance = match unit {
            AbUnit::Trial => residuals.iter().map(|r| r * r).sum::<f64>() / freedom as f64,
            // That of medians: π/2 times that of means, of noise that is normal in its middle,
            // where the median distance is 0.6745 standard deviations.
            AbUnit::Round => {
                let mut distances: Vec<f64> = residuals.iter().map(|r| r.abs()).collect();
                std::f64::consts::FRAC_PI_2 * (median(&mut distances)? / 0.6745).powi(2)
            }
        };
        Some(2.0 * variance / residuals.len() as f64).filter(|noise| noise.is_finite())
    }
}

/// How well a centre is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread {
    /// Of the centre.
    pub(super) variance: f64,
    /// Of t; not a whole number.
    pub(super) freedom: f64,
}

fn by_link(values: &[LinkedValue], side: usize, unit: AbUnit) -> Vec<(u32, f64)> {
    let mut links: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for value in values {
        links.entry(value.links[side]).or_default().push(value.ln);
    }
    let typical = |(link, mut lns): (u32, Vec<f64>)| {
        let ln = match unit {
            AbUnit::Trial => Moments::of(&lns)?.mean,
            AbUnit::Round => median(&mut lns)?,
        };
        Some((link, ln))
    };
    links.into_iter().filter_map(typical).collect()
}

fn lns(side: &[(u32, f64)]) -> Vec<f64> {
    side.iter().map(|(_, ln)| *ln).collect()
}
