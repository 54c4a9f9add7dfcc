//! Intervals on the logarithm: means, spreads, and totals over totals.

use std::ops::AddAssign;

use crate::estimate::{Estimate, Interval};
use crate::student::{Multipliers, StudentTable};

/// A count of things that cannot exceed what fits in memory.
pub(crate) fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Mean and spread of the values of some trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Moments {
    /// Trials; at least 1.
    pub(crate) n: u32,
    /// Arithmetic mean.
    pub(crate) mean: f64,
    /// Standard deviation with n − 1; `None` under two trials.
    pub(crate) sd: Option<f64>,
}

impl Moments {
    /// The moments of some values; `None` without any, or where one of them is
    /// not a number.
    pub(crate) fn of(values: &[f64]) -> Option<Moments> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        if values.is_empty() || !mean.is_finite() {
            return None;
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let sd = (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt());
        Some(Moments { n: count(values.len()), mean, sd })
    }

    /// Half-width of an interval of the mean with this multiplier.
    pub(crate) fn half_width(&self, multiplier: f64) -> Option<f64> {
        Some(multiplier * self.sd? / f64::from(self.n).sqrt())
    }

    /// exp(mean ± half-width), with the multiplier that `choose` names.
    pub(crate) fn interval(
        &self,
        table: &mut StudentTable,
        choose: impl Fn(&Multipliers) -> f64,
    ) -> Option<Interval> {
        let half = self.half_width(choose(&table.multipliers(self.n)?))?;
        Some(around(self.mean, half))
    }
}

/// exp(centre ± half).
pub(crate) fn around(centre: f64, half: f64) -> Interval {
    Interval::about(centre, half).map(f64::exp)
}

/// The middle value, or the mean of the two middle ones; `None` without any.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    let odd = values.len() % 2 == 1;
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if odd {
        return Some(upper);
    }
    let lower = below.iter().copied().max_by(f64::total_cmp)?;
    Some((lower + upper) / 2.0)
}

/// What a trial adds to a figure: so much of this over so much of that.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Parts {
    /// Numerator, as counted.
    pub(crate) over: f64,
    /// Denominator, as counted.
    pub(crate) under: f64,
}

impl Parts {
    /// One over the other.
    pub(crate) fn ratio(self) -> f64 {
        self.over / self.under
    }
}

impl AddAssign for Parts {
    fn add_assign(&mut self, more: Parts) {
        self.over += more.over;
        self.under += more.under;
    }
}

/// A ratio of totals and how much each trial pulls at its logarithm.
///
/// The influence of trial i on ln(Σx/Σy) is n·(xᵢ/Σx − yᵢ/Σy): the ratio
/// estimator's first-order term (Cochran, Sampling Techniques, 3rd ed. 1977,
/// section 6.3). The influences have mean zero and about the spread of the
/// trials' own logarithms, but belong to the total that is printed, so that it
/// always lies inside its interval, and they exist where a trial counted zero.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Totals {
    value: f64,
    influences: Vec<f64>,
}

impl Totals {
    /// `None` without trials, and where either total is not above zero: such a
    /// ratio has no logarithm.
    pub(crate) fn of(parts: &[Parts]) -> Option<Totals> {
        let over: f64 = parts.iter().map(|part| part.over).sum();
        let under: f64 = parts.iter().map(|part| part.under).sum();
        let value = over / under;
        if !value.ln().is_finite() {
            return None;
        }
        let n = parts.len() as f64;
        let influence = |part: &Parts| n * (part.over / over - part.under / under);
        Some(Totals { value, influences: parts.iter().map(influence).collect() })
    }

    /// The quotient of two such ratios from the same trials, paired.
    pub(crate) fn quotient(&self, other: &Totals) -> Totals {
        let pairs = self.influences.iter().zip(&other.influences);
        Totals { value: self.value / other.value, influences: pairs.map(|(a, b)| a - b).collect() }
    }

    /// The ratio with its t interval over trials.
    pub(crate) fn estimate(&self, table: &mut StudentTable) -> Estimate {
        let n = count(self.influences.len());
        let half = Moments::of(&self.influences)
            .and_then(|moments| moments.half_width(table.multipliers(n)?.pointwise));
        within(self.value, half, n)
    }
}

/// A ratio with an interval of this half-width about its logarithm.
fn within(value: f64, half: Option<f64>, n: u32) -> Estimate {
    Estimate { value, interval: half.map(|half| Interval::about_ratio(value, half)), n }
}

/// Half-width of Σ wᵢ·ln(totalᵢ), of totals over the same trials in the same
/// order, with the multiplier that `choose` names.
pub(crate) fn weighted_half_width(
    totals: &[(f64, Totals)],
    table: &mut StudentTable,
    choose: impl Fn(&Multipliers) -> f64,
) -> Option<f64> {
    let n = totals.first()?.1.influences.len();
    let sum = |i: usize| {
        totals.iter().map(|(weight, total)| Some(weight * total.influences.get(i)?)).sum()
    };
    let values: Vec<f64> = (0..n).map(sum).collect::<Option<_>>()?;
    let moments = Moments::of(&values)?;
    moments.half_width(choose(&table.multipliers(moments.n)?))
}

/// What a trial of this pass counted.
pub(crate) type InPass = (u32, Parts);

/// Total over total with its interval over passes; `None` without trials.
pub(crate) fn estimate_of(mut trials: Vec<InPass>, table: &mut StudentTable) -> Option<Estimate> {
    // As they ran they mostly are.
    trials.sort_by_key(|(pass, _)| *pass);
    let mut sum = OverPasses::default();
    trials.into_iter().for_each(|trial| sum.add(trial));
    sum.estimate(table)
}

/// The same of trials as they come, in the order of their passes: a run may have very many.
/// Trials of one pass saw the machine in one mood and are no independent values, so they are
/// added together; an arm that is in several groups has several.
///
/// The influences of [`Totals`] need the totals. With dᵢ = xᵢ − r·yᵢ for the ratio r of the
/// first pass, that of pass i is n/Σx · (dᵢ − yᵢ·Σd/Σy), whose squares are known from sums.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OverPasses {
    /// The pass that is added up.
    open: Option<InPass>,
    n: u32,
    over: f64,
    under: f64,
    is_nothing: bool,
    /// Of the first pass; 0 where it has none.
    first_ratio: f64,
    /// Sums of what a pass deviates from that ratio, and of products.
    deviation: f64,
    deviation_squared: f64,
    deviation_under: f64,
    under_squared: f64,
}

impl OverPasses {
    /// Adds a trial, of the pass of the one before or of a later one.
    pub(crate) fn add(&mut self, (pass, own): InPass) {
        match &mut self.open {
            Some((open, sum)) if *open == pass => *sum += own,
            _ => {
                self.close();
                self.open = Some((pass, own));
            }
        }
    }

    fn close(&mut self) {
        let Some((_, Parts { over, under })) = self.open.take() else { return };
        let is_nothing = over == 0.0 && under > 0.0;
        if self.n == 0 {
            self.first_ratio = Some(over / under).filter(|ratio| ratio.is_finite()).unwrap_or(0.0);
            self.is_nothing = is_nothing;
        }
        self.is_nothing &= is_nothing;
        self.n = self.n.saturating_add(1);
        self.over += over;
        self.under += under;
        let deviation = over - self.first_ratio * under;
        self.deviation += deviation;
        self.deviation_squared += deviation * deviation;
        self.deviation_under += deviation * under;
        self.under_squared += under * under;
    }

    /// Total over total with its interval over passes; `None` without trials.
    ///
    /// A count that was zero in every trial is zero, without an interval: it has
    /// no logarithm.
    pub(crate) fn estimate(mut self, table: &mut StudentTable) -> Option<Estimate> {
        self.close();
        let n = self.n;
        let value = self.over / self.under;
        if !value.ln().is_finite() {
            return self.is_nothing.then_some(Estimate { value: 0.0, interval: None, n });
        }
        let half = self
            .spread()
            .zip(table.multipliers(n))
            .map(|(spread, multipliers)| multipliers.pointwise * spread / f64::from(n).sqrt());
        Some(within(value, half, n))
    }

    /// Standard deviation of the influences; `None` under two passes.
    fn spread(&self) -> Option<f64> {
        let n = f64::from(self.n);
        let off = self.deviation / self.under;
        let squares = self.deviation_squared - 2.0 * off * self.deviation_under
            + off * off * self.under_squared;
        let of_influences = squares.max(0.0) * (n / self.over).powi(2);
        (self.n > 1).then(|| (of_influences / (n - 1.0)).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn near(value: f64, expect: f64) {
        assert!((value - expect).abs() <= 1e-9 * expect.abs().max(1.0), "{value} {expect}");
    }

    /// Sample of Student, "The probable error of a mean", Biometrika 6 (1908):
    /// extra sleep by soporific 2 less 1, mean 1.58, sd 1.2300 (t = 4.0621).
    #[test]
    fn moments_agree_with_students_own_example() {
        let extra = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let moments = Moments::of(&extra).expect("moments");
        near(moments.mean, 1.58);
        let sd = moments.sd.expect("a spread");
        assert!((sd - 1.2300).abs() < 5e-5, "{sd}");
        assert!((moments.mean / (sd / 10f64.sqrt()) - 4.0621).abs() < 5e-5);
        // R 4: t.test(extra, paired = TRUE) prints 0.7001142 to 2.4598858.
        let interval =
            moments.interval(&mut StudentTable::new(1), |t| t.pointwise).expect("an interval");
        near((interval.low.ln() * 1e7).round(), 7_001_142.0);
        near((interval.high.ln() * 1e7).round(), 24_598_858.0);
    }

    #[test]
    fn one_value_has_no_spread_and_none_has_no_moments() {
        assert_eq!(Moments::of(&[]), None);
        assert_eq!(Moments::of(&[1.0, f64::NAN]), None);
        let one = Moments::of(&[2.5]).expect("moments");
        assert_eq!((one.n, one.mean, one.sd), (1, 2.5, None));
        assert_eq!(one.interval(&mut StudentTable::new(1), |t| t.pointwise), None);
    }

    #[test]
    fn the_median_is_the_middle() {
        let check = |values: &[f64], expect| assert_eq!(median(&mut values.to_vec()), expect);
        check(&[], None);
        check(&[3.0], Some(3.0));
        check(&[9.0, 1.0], Some(5.0));
        check(&[9.0, 1.0, 2.0], Some(2.0));
        check(&[4.0, 1.0, 3.0, 2.0], Some(2.5));
    }

    /// By hand: x = 1, 2, 3 over y = 1, 1, 1 gives 2; influences −1/2, 0, 1/2,
    /// sd 1/2, half-width 4.302653 / 2 / √3.
    #[test]
    fn totals_over_totals_carry_an_interval_around_themselves() {
        let parts = [1.0, 2.0, 3.0].map(|over| Parts { over, under: 1.0 });
        let estimate = Totals::of(&parts).expect("totals").estimate(&mut StudentTable::new(1));
        near(estimate.value, 2.0);
        let interval = estimate.interval.expect("an interval");
        assert!((interval.high.ln() - 2f64.ln() - 4.302_652_73 / 2.0 / 3f64.sqrt()).abs() < 1e-7);
        assert!(interval.contains(2.0));
    }

    #[test]
    fn a_total_without_a_logarithm_is_no_ratio() {
        assert_eq!(Totals::of(&[]), None);
        assert_eq!(Totals::of(&[Parts { over: 0.0, under: 3.0 }]), None);
        assert_eq!(Totals::of(&[Parts { over: 3.0, under: 0.0 }]), None);
    }

    #[test]
    fn trials_of_a_pass_are_added_together_whatever_their_order() {
        let part = |over, under| Parts { over, under };
        let trials = [(2, part(2.0, 1.0)), (1, part(0.4, 0.5)), (3, part(3.0, 1.0))];
        let of_two = (1, part(0.6, 0.5));
        let trials = trials.into_iter().chain([of_two]).collect();
        let estimate = estimate_of(trials, &mut StudentTable::new(1)).expect("an estimate");
        let parts = [1.0, 2.0, 3.0].map(|over| part(over, 1.0));
        let whole = Totals::of(&parts).expect("totals").estimate(&mut StudentTable::new(1));
        assert_eq!((estimate.value, estimate.n), (whole.value, 3));
        near(estimate.interval.expect("ends").low, whole.interval.expect("ends").low);
    }

    #[test]
    fn what_was_always_zero_is_zero_without_an_interval() {
        let of = |parts: &[(f64, f64)]| {
            let trials = (0..).zip(parts);
            let trials = trials.map(|(pass, &(over, under))| (pass, Parts { over, under }));
            estimate_of(trials.collect(), &mut StudentTable::new(1))
        };
        let nothing = of(&[(0.0, 3.0), (0.0, 2.0)]).expect("zero");
        assert_eq!((nothing.value, nothing.interval, nothing.n), (0.0, None, 2));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(0.0, 3.0), (0.0, 0.0)]), None, "nothing over nothing is no zero");
    }

    proptest! {
        /// Also where the first pass is far from the others.
        #[test]
        fn sums_over_passes_give_the_interval_of_their_influences(
            first in 1e-3..1e3f64,
            others in proptest::collection::vec((0.9..1.1f64, 1.0..1e6f64), 0..40),
        ) {
            let others = others.into_iter().map(|(ratio, under)| (ratio * under, under));
            let parts: Vec<Parts> = std::iter::once((first * 1e3, 1e3))
                .chain(others)
                .map(|(over, under)| Parts { over, under })
                .collect();
            let table = &mut StudentTable::new(1);
            let expect = Totals::of(&parts).expect("totals").estimate(table);
            let trials = (0..).zip(parts).collect();
            let estimate = estimate_of(trials, table).expect("an estimate");
            prop_assert_eq!((estimate.value, estimate.n), (expect.value, expect.n));
            let ends = |of: Estimate| of.interval.map(|ends| (ends.low.ln(), ends.high.ln()));
            if let Some(((low, high), (own_low, own_high))) = ends(expect).zip(ends(estimate)) {
                let width = high - low;
                prop_assert!((low - own_low).abs() <= 1e-6 * width + 1e-9);
                prop_assert!((high - own_high).abs() <= 1e-6 * width + 1e-9);
            }
            prop_assert_eq!(expect.interval.is_some(), estimate.interval.is_some());
        }
    }

    #[test]
    fn what_both_arms_share_cancels_in_the_quotient() {
        let arm = |scale: f64| {
            let parts: Vec<Parts> =
                [1.0, 2.0, 5.0].iter().map(|x| Parts { over: x * scale, under: 1.0 }).collect();
            Totals::of(&parts).expect("totals")
        };
        let quotient = arm(3.0).quotient(&arm(2.0)).estimate(&mut StudentTable::new(1));
        near(quotient.value, 1.5);
        let interval = quotient.interval.expect("an interval");
        near(interval.low, 1.5);
        near(interval.high, 1.5);
    }
}
