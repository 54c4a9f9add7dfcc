//! Runs of which each has the program of the one before as its baseline.
//!
//! A run is a step by itself, and what the steps come to is the sum of their logarithms. Errors of
//! independent runs add in quadrature, each side by itself (MOVER): the sum is at its lowest where
//! all are low.

use super::super::compare::{
    AbChangeReason, AbJudgedChange, Rules, is_finite, is_one_machine, noise,
};
use super::super::verdict::Bounds;
use super::super::{AbContrast, AbVerdict, changes, known_change};
use super::{AbJoinedSeries, AbSeries, AbStanding, AbStep, Known, widest_delta};
use crate::estimate::Interval;

/// The sum of some logarithms, by how far its interval reaches to either side, squared.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    centre: f64,
    below: f64,
    above: f64,
}

impl Sum {
    /// With one more; `None` where that has no interval.
    fn and(self, contrast: &AbContrast, error: f64) -> Option<Sum> {
        let centre = contrast.sample.centre()?;
        let interval = contrast.sample.interval(error)?;
        Some(Sum {
            centre: self.centre + centre,
            below: self.below + (centre - interval.low).powi(2),
            above: self.above + (interval.high - centre).powi(2),
        })
    }

    fn interval(self) -> Option<Interval> {
        let low = self.centre - self.below.sqrt();
        let interval = Interval { low, high: self.centre + self.above.sqrt() };
        is_finite(interval).then_some(interval)
    }

    /// What the contrasts come to, at a level.
    fn of(contrasts: &[&AbContrast], error: f64) -> Option<Sum> {
        contrasts.iter().try_fold(Sum::default(), |sum, contrast| sum.and(contrast, error))
    }
}

/// A change that some contrasts come to.
struct Total<'a> {
    contrasts: &'a [&'a AbContrast],
    rules: &'a Rules,
    allowance: Option<f64>,
    noise: Option<super::super::AbNoise>,
}

impl Total<'_> {
    fn step(self) -> Option<AbStep> {
        let at = |error: f64| Sum::of(self.contrasts, error)?.interval();
        let error = self.rules.error();
        let (one_sided, interval) = (at(2.0 * error)?, at(error)?);
        let bounds = Bounds { delta: self.rules.delta, allowance: self.allowance };
        let (verdict, reason) = bounds.conclude([one_sided, interval], self.noise);
        let centre = Sum::of(self.contrasts, error)?.centre;
        Some(AbStep {
            since: None,
            is_one_file: false,
            judged: AbJudgedChange {
                change: known_change(centre),
                pointwise: at(0.05).map(changes),
                simultaneous: Some(changes(interval)),
                layout_allowance: self.allowance,
                verdict,
                reason: AbChangeReason::Rule(reason),
            },
        })
    }
}

/// That of one run where there is no interval at this level.
fn without_interval(contrast: &AbContrast) -> AbStep {
    let why = super::AbUnusable::NoInterval { units: contrast.units };
    AbStep {
        since: None,
        is_one_file: false,
        judged: AbJudgedChange {
            change: contrast.change,
            pointwise: contrast.pointwise,
            simultaneous: None,
            layout_allowance: contrast.layout_allowance,
            verdict: AbVerdict::Invalid,
            reason: AbChangeReason::Unusable { unusable: [None, Some(why)] },
        },
    }
}

impl Known<'_> {
    /// Whether its baseline is what a run ended with; a run between may be damaged.
    fn follows(&self, before: &Known<'_>) -> bool {
        let [of, end] = [self.program(0), before.program(before.arm)];
        of.zip(end).is_some_and(|(of, end)| of.sha256 == end.sha256)
    }
}

/// Judges a chain.
pub(super) fn judged(joined: &AbJoinedSeries, runs: &[Known<'_>], claims: u32) -> Option<AbSeries> {
    let (oldest, newest) = (runs.first()?, runs.last()?);
    let rules = Rules { delta: widest_delta(runs), claims, is_one_run: false };
    let noise_of = |run: &Known<'_>| noise(run.cell, (run.arm, run.quantity), &rules);
    let mut contrasts: Vec<&AbContrast> = Vec::new();
    let mut has_gap = false;
    let mut rows = Vec::new();
    for (nth, run) in runs.iter().enumerate() {
        let before = nth.checked_sub(1).and_then(|before| runs.get(before));
        has_gap |= before.is_some_and(|before| !run.follows(before));
        let mut row = run.row();
        let own =
            run.cell.judgement.contrast(run.arm, run.quantity).filter(|_| row.unusable.is_none());
        if let Some(own) = own {
            let allowance = own.layout_allowance;
            let one = [own];
            let total = Total { contrasts: &one, rules: &rules, allowance, noise: noise_of(run) };
            row.step = Some(total.step().unwrap_or_else(|| without_interval(own)));
            contrasts.push(own);
        }
        has_gap |= own.is_none();
        let sum = Sum::of(&contrasts, 0.05).filter(|_| !has_gap);
        row.standing = AbStanding {
            change: sum.and_then(|sum| known_change(sum.centre)),
            pointwise: sum.and_then(Sum::interval).map(changes),
            verdict: None,
            ..row.standing
        };
        rows.push(row);
    }
    // Within one machine the layout of all files but the ends cancels: the next run has it too.
    let own = || contrasts.iter().filter_map(|contrast| contrast.layout_allowance);
    let headers = runs.windows(2).map(|pair| [&pair[0], &pair[1]].map(|run| run.side.header));
    let is_one = headers.into_iter().all(is_one_machine);
    let allowance = if is_one { own().reduce(f64::max) } else { own().reduce(|a, b| a + b) };
    let is_several = contrasts.len() > 1 && !has_gap;
    let noise = runs.iter().find_map(noise_of);
    let overall = Total { contrasts: &contrasts, rules: &rules, allowance, noise };
    Some(AbSeries {
        is_chain: true,
        baseline: oldest.named(0),
        arm: newest.named(newest.arm),
        setting: joined.setting.clone(),
        quantity: joined.quantity,
        delta: rules.delta,
        older: joined.older,
        overall: is_several.then(|| overall.step()).flatten(),
        rows,
    })
}
