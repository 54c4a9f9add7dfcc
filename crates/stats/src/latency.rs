//! Round-trip times of an arm: pooled over its trials, with intervals from
//! how far the trials differ.

use std::borrow::Cow;
use std::collections::BTreeMap;

use iolens_model::reading::Histogram;
use serde::Serialize;

use crate::estimate::{Estimate, Interval};
use crate::interval::{Moments, Parts, count, estimate_of};
use crate::student::StudentTable;

/// Round-trip times of an arm in a cell. A percentile is `None` where there are
/// fewer than 3.7 / (1 − q) times; its interval is `None` where one trial has
/// fewer than that.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyFigures {
    /// Times recorded.
    pub samples: u64,
    /// Mean, ns.
    pub mean_ns: Estimate,
    /// Median, ns.
    pub p50_ns: Option<Estimate>,
    /// 99th percentile, ns.
    pub p99_ns: Option<Estimate>,
    /// 99.9th percentile, ns.
    pub p999_ns: Option<Estimate>,
    /// All times, pooled by adding counts.
    pub histogram: Histogram,
}

impl LatencyFigures {
    /// Whether so many times are enough to show the quantile `q` (0 to 1):
    /// 3.7 / (1 − q), which is 370 for p99. One set in forty of that size has
    /// no time beyond its true quantile.
    pub fn enough(samples: u64, q: f64) -> bool {
        // 1 − 0.99 is not quite 0.01, and 370 times are meant to do.
        const ROUNDING: f64 = 1e-9;
        samples as f64 * (1.0 - q) >= 3.7 * (1.0 - ROUNDING)
    }
}

/// The figures of an arm from one histogram per used trial, with its pass; `None` without a
/// time in each.
pub(crate) fn of(trials: &[(u32, &Histogram)], table: &mut StudentTable) -> Option<LatencyFigures> {
    let means = |(pass, histogram): &(u32, &Histogram)| {
        let times = histogram.total() as f64;
        Some((*pass, Parts { over: histogram.mean_ns()? * times, under: times }))
    };
    let mean_ns = estimate_of(trials.iter().map(means).collect::<Option<_>>()?, table)?;
    let passes = by_pass(trials);
    let passes: Vec<&Histogram> = passes.iter().map(Cow::as_ref).collect();
    let histogram = pooled(&passes);
    let mut at = |q| percentile(q, &passes, &histogram, table);
    Some(LatencyFigures {
        samples: histogram.total(),
        mean_ns,
        p50_ns: at(0.50),
        p99_ns: at(0.99),
        p999_ns: at(0.999),
        histogram,
    })
}

/// The times of each pass, which may have several trials.
fn by_pass<'a>(trials: &[(u32, &'a Histogram)]) -> Vec<Cow<'a, Histogram>> {
    let mut passes: BTreeMap<u32, Vec<&'a Histogram>> = BTreeMap::new();
    trials.iter().for_each(|(pass, own)| passes.entry(*pass).or_default().push(own));
    let all = |trials: Vec<&'a Histogram>| match trials[..] {
        [one] => Cow::Borrowed(one),
        _ => Cow::Owned(pooled(&trials)),
    };
    passes.into_values().map(all).collect()
}

/// All times, by adding counts. Sorting finds the histograms' own order and
/// merges them.
fn pooled(trials: &[&Histogram]) -> Histogram {
    let mut all: Vec<(u64, u64)> =
        trials.iter().flat_map(|histogram| &histogram.buckets).copied().collect();
    all.sort_by_key(|&(ns, _)| ns);
    all.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = kept.1.saturating_add(next.1);
        }
        same
    });
    Histogram { buckets: all }
}

/// The quantile of all times, where there are enough of them; its interval
/// where each trial alone has enough.
fn percentile(
    q: f64,
    trials: &[&Histogram],
    pooled: &Histogram,
    table: &mut StudentTable,
) -> Option<Estimate> {
    let enough = |histogram: &Histogram| LatencyFigures::enough(histogram.total(), q);
    if !enough(pooled) {
        return None;
    }
    let value = pooled.quantile_ns(q)? as f64;
    let each = trials.iter().all(|trial| enough(trial));
    let of_trials: Option<Vec<f64>> =
        trials.iter().map(|trial| Some(trial.quantile_ns(q)? as f64)).collect();
    let interval = of_trials.filter(|_| each).and_then(|values| around(value, &values, table));
    Some(Estimate { value, interval, n: count(trials.len()) })
}

/// The t interval from the spread of the trials' own quantiles on the
/// logarithm, laid around the pooled quantile, whose number is shown. Their
/// mean would not do as a centre: a tail is where the slow trials are, so the
/// pooled quantile lies above it.
pub(crate) fn around(value: f64, of_trials: &[f64], table: &mut StudentTable) -> Option<Interval> {
    let lns: Vec<f64> = of_trials.iter().map(|value| value.ln()).collect();
    let moments = Moments::of(&lns)?;
    let half = moments.half_width(table.multipliers(moments.n)?.pointwise)?;
    Some(Interval::about_ratio(value, half))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many times, evenly from 1 to `ns`.
    fn even(times: u64, ns: u64) -> Histogram {
        Histogram { buckets: (1..=times).map(|i| (ns * i / times, 1)).collect() }
    }

    fn figures(trials: &[Histogram]) -> Option<LatencyFigures> {
        of(&(1..).zip(trials).collect::<Vec<_>>(), &mut StudentTable::new(1))
    }

    #[test]
    fn histograms_are_pooled_by_adding_counts() {
        let a = Histogram { buckets: vec![(10, 1), (30, 2)] };
        let b = Histogram { buckets: vec![(10, 4), (20, 1)] };
        let mut expect = a.clone();
        expect.add(&b);
        let latency = figures(&[a, b]).unwrap();
        assert_eq!((latency.samples, &latency.histogram), (8, &expect));
        // (10·5 + 20 + 30·2) / 8, totals over totals.
        assert_eq!(latency.mean_ns.value, 16.25);
        // The middle of the pooled times, not the mean of 30 and 10.
        assert_eq!(latency.p50_ns.unwrap().value, 10.0);
    }

    /// p99 needs 370 times for a point, and 370 in each trial for an interval.
    #[test]
    fn a_percentile_needs_its_number_of_times() {
        let check = |sizes: &[u64], shown: bool, interval: bool| {
            let trials: Vec<Histogram> = sizes.iter().map(|&n| even(n, 100_000)).collect();
            let p99 = figures(&trials).unwrap().p99_ns;
            assert_eq!(p99.is_some(), shown, "{sizes:?}");
            assert_eq!(p99.and_then(|p| p.interval).is_some(), interval, "{sizes:?}");
        };
        check(&[369], false, false);
        check(&[370], true, false);
        check(&[185, 184], false, false);
        check(&[185, 185], true, false);
        check(&[370, 370], true, true);
        check(&[370, 369], true, false);
    }

    /// Medians e^1 and e^3 thousand: sd of ln √2, t₁ = 12.706, half 12.706.
    #[test]
    fn the_interval_is_that_of_the_trials_on_the_logarithm() {
        let interval = around(5.0, &[1f64.exp(), 3f64.exp()], &mut StudentTable::new(1)).unwrap();
        assert!((interval.high.ln() - 5f64.ln() - 12.7062).abs() < 1e-3);
        assert!((5f64.ln() - interval.low.ln() - 12.7062).abs() < 1e-3);
        assert!(around(5.0, &[2.0], &mut StudentTable::new(1)).is_none());
    }

    #[test]
    fn a_trial_without_times_leaves_nothing() {
        assert!(figures(&[]).is_none());
        assert!(figures(&[even(10, 100), Histogram::default()]).is_none());
    }
}
