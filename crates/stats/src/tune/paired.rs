//! Times of arms by round, and ratios of them, paired.

use serde::Serialize;

use crate::estimate::Interval;
use crate::interval::Moments;
use crate::student::StudentTable;

/// A ratio of rates over rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// Geometric mean over the rounds that have both.
    pub value: f64,
    /// Its 95 % t interval, for all ratios that are judged together; `None` under two rounds.
    pub interval: Option<Interval>,
    /// Its 90 % interval, which equivalence is judged by.
    pub interval90: Option<Interval>,
    /// Rounds.
    pub n: u32,
}

impl Ratio {
    /// Of logarithms, one for each round, judged together with so many others (at least
    /// itself).
    fn of(logarithms: &[f64], together: u32) -> Option<Ratio> {
        let moments = Moments::of(logarithms)?;
        let mut table = StudentTable::new(together);
        Some(Ratio {
            value: moments.mean.exp(),
            interval: moments.interval(&mut table, |t| t.simultaneous),
            interval90: moments.interval(&mut table, |t| t.pointwise90),
            n: moments.n,
        })
    }

    /// Whether it is above 1 by more than what matters, beyond doubt.
    pub fn is_above(&self, delta: f64) -> bool {
        self.interval.is_some_and(|interval| interval.low > 1.0 + delta)
    }

    /// Whether it is below 1 by more than what matters, beyond doubt.
    pub fn is_below(&self, delta: f64) -> bool {
        self.interval.is_some_and(|interval| interval.high < 1.0 / (1.0 + delta))
    }

    /// Whether both are the same but for a difference that does not matter.
    pub fn is_equivalent(&self, delta: f64) -> bool {
        self.interval90.is_some_and(|i| i.low > 1.0 / (1.0 + delta) && i.high < 1.0 + delta)
    }
}

/// The times of some arms: nanoseconds for each byte, in logarithms, by round.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rounds {
    times: Vec<Vec<Option<f64>>>,
}

impl Rounds {
    /// Of so many arms, none of which has a time.
    pub fn new(arms: usize) -> Rounds {
        Rounds { times: vec![Vec::new(); arms] }
    }

    /// How many arms.
    pub fn arms(&self) -> usize {
        self.times.len()
    }

    /// Puts the time of an arm, in any unit that all share, into a round.
    pub fn put(&mut self, arm: usize, round: u32, time: f64) {
        let (round, times) = (round as usize, &mut self.times[arm]);
        if times.len() <= round {
            times.resize(round + 1, None);
        }
        times[round] = Some(time.ln()).filter(|ln| ln.is_finite());
    }

    /// Takes an arm out, with all that it had.
    pub(super) fn forget(&mut self, arm: usize) {
        self.times[arm].clear();
    }

    /// Values of an arm that has one.
    fn of(&self, arm: usize) -> impl Iterator<Item = (usize, f64)> {
        let times = self.times[arm].iter().enumerate();
        times.filter_map(|(round, time)| Some((round, (*time)?)))
    }

    /// Geometric mean of an arm's times; `None` where it has none.
    pub fn time(&self, arm: usize) -> Option<f64> {
        let values: Vec<f64> = self.of(arm).map(|(_, ln)| ln).collect();
        Some(Moments::of(&values)?.mean.exp())
    }

    /// The rate of an arm, `scale` over its time, with its interval over rounds; what
    /// slows a round down is in there, so arms are not to be compared by it.
    pub fn rate(&self, arm: usize, scale: f64) -> Option<Ratio> {
        let values: Vec<f64> = self.of(arm).map(|(_, ln)| scale.ln() - ln).collect();
        Ratio::of(&values, 1)
    }

    /// Rate of `arm` over that of `other`, in the rounds that have both.
    pub fn ratio(&self, arm: usize, other: usize) -> Option<Ratio> {
        self.ratio_of_many(arm, other, 1)
    }

    /// As [`Self::ratio`], one of so many that are judged together.
    pub fn ratio_of_many(&self, arm: usize, other: usize, together: u32) -> Option<Ratio> {
        let at = |round: usize| self.times[other].get(round).copied().flatten();
        let differences: Vec<f64> =
            self.of(arm).filter_map(|(round, ln)| Some(at(round)? - ln)).collect();
        Ratio::of(&differences, together)
    }

    /// Arms by their mean advantage over the rounds that they were in, best first, with
    /// the advantage of each: the logarithm of a ratio to the round's mean.
    pub fn standing(&self) -> Vec<(usize, f64)> {
        let means = self.means();
        let mut all: Vec<(usize, f64)> = (0..self.arms())
            .filter_map(|arm| Some((arm, Moments::of(&self.advantages(arm, &means))?.mean)))
            .collect();
        all.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        all
    }

    /// The mean of each round, in logarithms, over the arms that it has.
    fn means(&self) -> Vec<f64> {
        let rounds = self.times.iter().map(Vec::len).max().unwrap_or(0);
        let mean = |round: usize| {
            let known = || self.times.iter().filter_map(|times| *times.get(round)?);
            known().sum::<f64>() / known().count() as f64
        };
        (0..rounds).map(mean).collect()
    }

    /// By how much an arm was faster than its rounds, in logarithms.
    fn advantages(&self, arm: usize, means: &[f64]) -> Vec<f64> {
        self.of(arm).map(|(round, ln)| means[round] - ln).collect()
    }

    /// Lower ends of the one-sided 95 % intervals of these advantages. Few rounds know
    /// little of their own spread: half of the variance is that of all arms together.
    pub(super) fn lower_bounds(&self) -> Vec<(usize, f64)> {
        let means = self.means();
        let moments: Vec<(usize, Moments)> = (0..self.arms())
            .filter_map(|arm| Some((arm, Moments::of(&self.advantages(arm, &means))?)))
            .collect();
        let variances: Vec<f64> =
            moments.iter().filter_map(|(_, of)| Some(of.sd?.powi(2))).collect();
        let pooled = variances.iter().sum::<f64>() / variances.len().max(1) as f64;
        let mut table = StudentTable::new(1);
        let mut bound = |(arm, of): (usize, Moments)| {
            let Some(t) = table.multipliers(of.n) else { return (arm, of.mean) };
            let own = of.sd.map_or(pooled, |sd| sd.powi(2));
            let sd = f64::midpoint(own, pooled).sqrt();
            (arm, of.mean - t.pointwise90 * sd / f64::from(of.n).sqrt())
        };
        moments.into_iter().map(&mut bound).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_round_has_in_common_cancels() {
        let mut rounds = Rounds::new(3);
        for (round, slow) in [(0, 1.0), (1, 3.0), (2, 0.5), (3, 10.0)] {
            rounds.put(0, round, 2.0 * slow);
            rounds.put(1, round, 4.0 * slow);
        }
        let ratio = rounds.ratio(0, 1).expect("a ratio");
        assert!((ratio.value - 2.0).abs() < 1e-12 && ratio.n == 4);
        assert!(ratio.is_above(0.03) && !ratio.is_equivalent(0.03));
        assert!(rounds.ratio(1, 0).is_some_and(|ratio| ratio.is_below(0.03)));
        let same = rounds.ratio(0, 0).expect("a ratio");
        assert!(same.is_equivalent(0.03) && !same.is_above(0.03));
        assert_eq!(rounds.ratio(0, 2), None, "an arm that was never there");
        assert_eq!(rounds.time(2), None);
        assert_eq!(rounds.standing().iter().map(|(arm, _)| *arm).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn a_round_without_one_of_them_does_not_count() {
        let mut rounds = Rounds::new(2);
        rounds.put(0, 0, 1.0);
        rounds.put(1, 1, 1.0);
        assert_eq!(rounds.ratio(0, 1), None);
        rounds.put(1, 0, 3.0);
        let one = rounds.ratio(0, 1).expect("a ratio");
        assert!((one.value - 3.0).abs() < 1e-12 && one.interval.is_none() && !one.is_above(0.03));
    }
}
