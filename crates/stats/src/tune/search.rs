//! The order of a search: a pilot, the bounds of memory, a grid, neighbours of the
//! best, and a final. Each has a share of what is left of the time, and reads as much
//! of the file as fits into that.

use std::collections::BTreeMap;

use iolens_model::tune::{
    Candidate, Configuration, Extent, LimitKind, Stage, Stop, Trial, Way, Work,
};
use iolens_model::units::Nanos;

use super::grid::fit;
use super::grid::{Axes, grid, neighbours};
use super::paired::Rounds;
use super::{DELTA, ROUNDS_MIN, SHARE_ENDS, pairs_of};
use super::{UNIT_BYTES, extents, keep_third, rungs};
use crate::interval::count;

/// A trial to be done.
#[derive(Debug, Clone, Copy)]
pub struct Visit<'a> {
    /// What is done.
    pub work: &'a Work,
    /// What for.
    pub stage: Stage,
    /// In which round, counted through all stages.
    pub round: u32,
    /// What of the file.
    pub extent: Extent,
}

impl Visit<'_> {
    /// A trial of it of which nothing is known yet.
    pub fn trial(&self) -> Trial {
        Trial {
            work: self.work.clone(),
            stage: self.stage,
            round: self.round,
            extent: self.extent,
            time_ns: None,
            cpu_ns: None,
            calls: None,
            resident_before_share: None,
            resident_after_share: None,
            device_bytes: None,
            failure: None,
        }
    }
}

/// Where trials are done.
pub trait Field {
    /// What ends everything, as an interrupt does.
    type Broken;

    /// Does a trial; its time, `None` where it failed, which is no end.
    ///
    /// Errors: what ends the search.
    fn visit(&mut self, visit: Visit<'_>) -> Result<Option<Nanos>, Self::Broken>;

    /// Puts arms into random order.
    fn shuffle(&mut self, arms: &mut [usize]);

    /// Time since everything began.
    fn elapsed(&mut self) -> Nanos;

    /// Hears what comes next.
    fn begins(&mut self, stage: Stage, arms: usize, bytes: u64);
}

/// What is searched.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Engines that work, simplest first.
    pub candidates: Vec<Candidate>,
    /// Bounds of their axes.
    pub axes: Axes,
    /// What a program does that does nothing special.
    pub baseline: Configuration,
    /// What else is in the final.
    pub rivals: Vec<Work>,
    /// What memory bounds.
    pub limit: Option<LimitKind>,
    /// Bytes of the file that trials may take.
    pub bytes: u64,
    /// Bytes below which a trial says nothing about the file.
    pub bytes_least: u64,
    /// Time for everything.
    pub budget: Nanos,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// What was in the final; empty where even the baseline failed.
    pub finalists: Vec<Work>,
    /// Why that ended.
    pub stop: Stop,
    /// Configurations of the grid that there was no time for.
    pub left_out: usize,
}

/// Rounds of a rung.
const ROUNDS: u32 = 3;

/// Rounds of a final that takes twice the budget, at least.
const ROUNDS_LATE: u32 = 3;

/// Share of the budget for the bounds of memory, and by which time, in shares of it,
/// the grid and the refinement are done.
const LIMITS_SHARE: f64 = 0.15;
const GRID_UNTIL: f64 = 0.5;
const REFINED_UNTIL: f64 = 0.62;

/// A neighbour that promises less is not followed.
const GAIN_MIN: f64 = 0.01;

/// Configurations of ours in a final, besides the baseline.
const FINALISTS: usize = 3;

/// Block that is tried first where there is no time for all.
const USUAL_BLOCK_LOG2: u32 = 18;

/// Searches.
///
/// Errors: what the field ends it with.
pub fn search<F: Field>(plan: &Plan, field: &mut F) -> Result<Found, F::Broken> {
    let mut search = Search { plan, field, round: 0, trial: Cost::default(), left_out: 0 };
    let nothing = Found { finalists: Vec::new(), stop: Stop::Budget, left_out: 0 };
    if !search.pilot()? {
        return Ok(nothing);
    }
    let limit = search.limits()?;
    let standing = search.grid()?;
    let standing = search.refine(standing)?;
    search.last(&standing, limit)
}

/// A final alone, between `best` and the plan's others.
///
/// Errors: what the field ends it with.
pub fn rematch<F: Field>(
    plan: &Plan,
    best: &Configuration,
    field: &mut F,
) -> Result<Found, F::Broken> {
    only_final(plan, std::slice::from_ref(best), field)
}

/// A final alone, between these and the plan's others.
///
/// Errors: what the field ends it with.
pub(super) fn only_final<F: Field>(
    plan: &Plan,
    best: &[Configuration],
    field: &mut F,
) -> Result<Found, F::Broken> {
    let mut search = Search { plan, field, round: 0, trial: Cost::default(), left_out: 0 };
    if !search.pilot()? {
        return Ok(Found { finalists: Vec::new(), stop: Stop::Budget, left_out: 0 });
    }
    let limit = search.limits()?;
    let standing = best.iter().map(|one| (one.clone(), 0.0)).collect();
    search.last(&standing, limit)
}

/// What a trial takes: so much always, and so much for each byte.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    always_ns: f64,
    per_byte_ns: f64,
}

impl Cost {
    fn of(&self, bytes: u64) -> f64 {
        self.always_ns + self.per_byte_ns * bytes as f64
    }
}

struct Search<'a, F> {
    plan: &'a Plan,
    field: &'a mut F,
    round: u32,
    /// Of the baseline.
    trial: Cost,
    left_out: usize,
}

/// Configurations with their advantage over the first, in logarithms; best first.
type Standing = Vec<(Configuration, f64)>;

impl<F: Field> Search<'_, F> {
    fn until(&mut self, share: f64) -> f64 {
        let end = self.plan.budget.0 as f64 * share;
        (end - self.field.elapsed().0 as f64).max(0.0)
    }

    /// As many bytes as let so many trials fit into a time.
    fn affordable(&self, time_ns: f64, trials: f64) -> u64 {
        let each = time_ns / trials - self.trial.always_ns;
        self.whole_units(whole(each / self.trial.per_byte_ns))
    }

    /// So many bytes, or somewhat fewer: not all of the file in whole units.
    fn whole_units(&self, bytes: u64) -> u64 {
        let least = self.plan.bytes_least.min(self.plan.bytes);
        match bytes.clamp(least, self.plan.bytes) {
            part if part < self.plan.bytes => (part / UNIT_BYTES * UNIT_BYTES).max(least),
            all => all,
        }
    }

    /// Finds out what a trial takes; whether there are any.
    fn pilot(&mut self) -> Result<bool, F::Broken> {
        let bytes = self.plan.bytes_least.min(self.plan.bytes);
        let work = Work::Engine(self.plan.baseline.clone());
        self.field.begins(Stage::Pilot, 1, bytes);
        let mut is_there = false;
        for _ in 0..2 {
            let before = self.field.elapsed();
            let extent = Extent { offset: 0, bytes };
            let visit = Visit { work: &work, stage: Stage::Pilot, round: self.round, extent };
            self.round += 1;
            let Some(time) = self.field.visit(visit)? else { continue };
            is_there = true;
            let whole_ns = (self.field.elapsed().0 - before.0) as f64;
            self.trial = Cost {
                always_ns: (whole_ns - time.0 as f64).max(0.0),
                per_byte_ns: time.0 as f64 / bytes.max(1) as f64,
            };
        }
        Ok(is_there)
    }

    /// The bounds of memory, with one thread and all; what one such trial takes.
    fn limits(&mut self) -> Result<Cost, F::Broken> {
        let Some(kind) = self.plan.limit else { return Ok(Cost::default()) };
        // Memory has to be filled before it can be read, which is most of the time.
        const FILLING: f64 = 4.0;
        let time_ns = self.until(1.0).min(LIMITS_SHARE * self.plan.budget.0 as f64);
        let bytes = self.affordable(time_ns, 4.0 * FILLING);
        let mut threads = vec![1, self.plan.axes.threads_max];
        threads.dedup();
        self.field.begins(Stage::Limits, threads.len(), bytes);
        let mut cost = Cost { always_ns: 0.0, per_byte_ns: FILLING * self.trial.per_byte_ns };
        for _ in 0..2 {
            for &threads in &threads {
                let work = Work::Limit { kind, threads };
                let before = self.field.elapsed();
                let extent = Extent { offset: 0, bytes };
                let visit = Visit { work: &work, stage: Stage::Limits, round: self.round, extent };
                self.field.visit(visit)?;
                let whole_ns = (self.field.elapsed().0 - before.0) as f64;
                cost.per_byte_ns = whole_ns / bytes.max(1) as f64;
            }
            self.round += 1;
        }
        Ok(cost)
    }

    /// Runs rounds of some works over one extent, until a time; a work that fails is
    /// not tried again.
    fn race(
        &mut self,
        works: &[Work],
        extent: Extent,
        stage: Stage,
        end: f64,
    ) -> Result<Rounds, F::Broken> {
        self.field.begins(stage, works.len(), extent.bytes);
        let mut race = Race::of(works.len());
        for round in 0..ROUNDS {
            // Without a second round nothing is known about chance.
            if round > 1 && self.until(end) <= 0.0 {
                break;
            }
            self.once(works, extent, stage, &mut race)?;
        }
        Ok(race.rounds)
    }

    /// One round.
    fn once(
        &mut self,
        works: &[Work],
        extent: Extent,
        stage: Stage,
        race: &mut Race,
    ) -> Result<(), F::Broken> {
        let mut order: Vec<usize> = (0..works.len()).filter(|&arm| race.is_in[arm]).collect();
        self.field.shuffle(&mut order);
        for arm in order {
            let visit = Visit { work: &works[arm], stage, round: self.round, extent };
            match self.field.visit(visit)? {
                Some(time) => race.rounds.put(arm, race.done, time.0.max(1) as f64),
                // What it did in fewer rounds than others is no standing.
                None => {
                    race.is_in[arm] = false;
                    race.rounds.forget(arm);
                }
            }
        }
        race.done += 1;
        self.round += 1;
        Ok(())
    }

    /// A first look at all configurations.
    fn grid(&mut self) -> Result<Standing, F::Broken> {
        let mut arms = grid(&self.tried(), &self.plan.axes);
        let time_ns = self.until(GRID_UNTIL);
        let least = self.trial.of(self.plan.bytes_least.min(self.plan.bytes));
        let fits = whole(time_ns / (f64::from(ROUNDS) * least));
        let fits = usize::try_from(fits).unwrap_or(usize::MAX);
        if fits < arms.len() {
            // What programs usually do comes first; the order of engines stays.
            arms.sort_by_key(|arm| {
                let from_usual = arm.block_bytes.ilog2().abs_diff(USUAL_BLOCK_LOG2);
                (from_usual, arm.threads, arm.depth)
            });
            let keep = fits.max(FINALISTS);
            self.left_out = arms.len().saturating_sub(keep);
            arms.truncate(keep);
        }
        // How much the last rung can read, so that all of them fit.
        let weight: f64 = rungs(arms.len(), 0, 1 << 40)
            .iter()
            .map(|rung| rung.arms as f64 * rung.bytes as f64 / (1u64 << 40) as f64)
            .sum();
        let trials: usize = rungs(arms.len(), 0, 1 << 40).iter().map(|rung| rung.arms).sum();
        let always_ns = f64::from(ROUNDS) * trials as f64 * self.trial.always_ns;
        let per_byte_ns = f64::from(ROUNDS) * weight * self.trial.per_byte_ns;
        let most = whole((time_ns - always_ns) / per_byte_ns);
        let least = self.plan.bytes_least.min(self.plan.bytes);
        let rungs = rungs(arms.len(), least, self.whole_units(most));
        let sizes: Vec<u64> = rungs.iter().map(|rung| rung.bytes).collect();
        let mut standing = Vec::new();
        for (step, extent) in extents(self.plan.bytes, &sizes).into_iter().enumerate() {
            let works: Vec<Work> = arms.iter().cloned().map(Work::Engine).collect();
            let rounds = self.race(&works, extent, Stage::Grid, GRID_UNTIL)?;
            standing = rounds
                .standing()
                .into_iter()
                .map(|(arm, advantage)| (arms[arm].clone(), advantage))
                .collect();
            if step + 1 < rungs.len() {
                arms = keep_third(&rounds).into_iter().map(|arm| arms[arm].clone()).collect();
            }
        }
        let first = standing.first().map_or(0.0, |(_, advantage)| *advantage);
        standing.iter_mut().for_each(|(_, advantage)| *advantage -= first);
        Ok(standing)
    }

    /// The engines that move bytes.
    fn tried(&self) -> Vec<Candidate> {
        let all = self.plan.candidates.iter();
        all.filter(|candidate| candidate.way != Way::Shared).cloned().collect()
    }

    /// Follows the neighbours of the best one for as long as they are better; at first
    /// those of the best few, because a cache that is too small makes two good blocks.
    fn refine(&mut self, mut standing: Standing) -> Result<Standing, F::Broken> {
        let mut around = FINALISTS;
        while let Some((best, score)) = standing.first().cloned() {
            let mut next: Vec<Configuration> =
                standing.iter().take(around).flat_map(|(one, _)| self.beside(one)).collect();
            around = 1;
            next.extend(self.knee(&best, &standing));
            next.retain(|one| standing.iter().all(|(known, _)| known != one));
            next.sort();
            next.dedup();
            let arms: Vec<Configuration> = [best.clone()].into_iter().chain(next).collect();
            let time_ns = self.until(REFINED_UNTIL);
            let trials = f64::from(ROUNDS) * arms.len() as f64;
            let least = self.trial.of(self.plan.bytes_least.min(self.plan.bytes));
            if arms.len() < 2 || trials * least > time_ns {
                break;
            }
            let extent = Extent { offset: 0, bytes: self.affordable(time_ns, trials) };
            let works: Vec<Work> = arms.iter().cloned().map(Work::Engine).collect();
            let rounds = self.race(&works, extent, Stage::Refinement, REFINED_UNTIL)?;
            let gains = (1..arms.len())
                .filter_map(|arm| Some((arms[arm].clone(), rounds.ratio(arm, 0)?.value.ln())));
            let gains: Standing = gains.collect();
            let most = gains.iter().map(|(_, gain)| *gain).fold(f64::NEG_INFINITY, f64::max);
            standing.extend(gains.into_iter().map(|(one, gain)| (one, score + gain)));
            standing.sort_by(|(_, a), (_, b)| b.total_cmp(a));
            if most < GAIN_MIN {
                break;
            }
        }
        Ok(standing)
    }

    /// The neighbours of a configuration.
    fn beside(&self, one: &Configuration) -> Vec<Configuration> {
        let mut candidates = self.plan.candidates.iter();
        let found = candidates.find(|candidate| candidate.engine == one.engine);
        found.map_or_else(Vec::new, |found| neighbours(one, found, &self.plan.axes))
    }

    /// Where the line through an engine's blocks says that larger ones are worth
    /// nothing any more.
    fn knee(&self, best: &Configuration, standing: &Standing) -> Option<Configuration> {
        // Times of a block, in any unit: only their proportions count.
        let alike: BTreeMap<u64, f64> = standing
            .iter()
            .filter(|(one, _)| {
                Configuration { block_bytes: best.block_bytes, ..one.clone() } == *best
            })
            .map(|(one, advantage)| (one.block_bytes, one.block_bytes as f64 * (-advantage).exp()))
            .collect();
        let points: Vec<(u64, f64)> = alike.into_iter().collect();
        let axes = &self.plan.axes;
        let line = fit(&points).filter(|_| points.len() > 2)?;
        let block_bytes = line.knee_bytes(axes.block_least, axes.block_most);
        Some(Configuration { block_bytes, ..best.clone() })
    }

    /// The final.
    fn last(&mut self, standing: &Standing, limit: Cost) -> Result<Found, F::Broken> {
        let best: Vec<&Configuration> =
            standing.iter().take(FINALISTS).map(|(one, _)| one).collect();
        let threads = best.first().map_or(1, |best| best.threads);
        let mut works: Vec<Work> = best.into_iter().cloned().map(Work::Engine).collect();
        let baseline = Work::Engine(self.plan.baseline.clone());
        if !works.contains(&baseline) {
            works.push(baseline);
        }
        let ours = works.len();
        works.extend(self.plan.rivals.iter().cloned());
        let compared = works.len();
        let bound = self.plan.limit.map(|kind| {
            works.push(Work::Limit { kind, threads });
            works.len() - 1
        });
        let time_ns = self.until(1.0);
        let rounds = f64::from(ROUNDS_MIN);
        // A bound takes as long as so many others.
        let extra = bound.map_or(0.0, |_| limit.per_byte_ns / self.trial.per_byte_ns);
        let trials = works.len() as f64 - bound.map_or(0.0, |_| 1.0) + extra;
        let bytes = self.affordable(time_ns, rounds * trials);
        let extent = Extent { offset: 0, bytes };
        self.field.begins(Stage::Final, works.len(), bytes);
        let mut race = Race::of(works.len());
        let stop = loop {
            self.once(&works, extent, Stage::Final, &mut race)?;
            let late = race.done >= ROUNDS_LATE && self.until(2.0) <= 0.0;
            if race.done < ROUNDS_MIN && !late {
                continue;
            }
            if is_precise(&race.rounds, ours, pairs_of(compared), bound) {
                break Stop::Precision;
            }
            if self.until(1.0) <= 0.0 {
                break Stop::Budget;
            }
        };
        Ok(Found { finalists: works, stop, left_out: self.left_out })
    }
}

/// A number of things as a whole one; none for what is no number, the most there is for
/// what is too large.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float ends at the bounds of the integer"
)]
pub fn whole(number: f64) -> u64 {
    number as u64
}

/// Rounds under way.
struct Race {
    rounds: Rounds,
    is_in: Vec<bool>,
    done: u32,
}

impl Race {
    fn of(arms: usize) -> Race {
        Race { rounds: Rounds::new(arms), is_in: vec![true; arms], done: 0 }
    }
}

/// Whether all that a final is for is known well enough: how the best of the first `ours`
/// arms compares with each of the others among them, and where there is a `bound`, what
/// share of it that is. Only widths are looked at: a final that ended as soon as something
/// looks different would find a difference between arms that are alike.
fn is_precise(rounds: &Rounds, ours: usize, together: u32, bound: Option<usize>) -> bool {
    let mut standing = rounds.standing().into_iter().map(|(arm, _)| arm);
    let Some(best) = standing.find(|&arm| arm < ours) else { return false };
    let is_narrow =
        |ratio: super::Ratio| ratio.interval.is_some_and(|interval| interval.half_width() <= DELTA);
    // An arm that failed has no ratio, and no round gives it one.
    let mut ratios = (0..ours)
        .filter(|&arm| arm != best)
        .filter_map(|arm| rounds.ratio_of_many(best, arm, together));
    let is_known = |share: super::Ratio| {
        share.interval.is_some_and(|share| share.high <= share.low * SHARE_ENDS)
    };
    // Any of ours may be the best one, and these rounds say which.
    let share = |bound| rounds.ratio_of_many(best, bound, count(ours));
    ratios.all(is_narrow) && bound.is_none_or(|bound| share(bound).is_some_and(is_known))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two of ours, the first twice as fast, and a bound at half of its time that is slower
    /// or faster by a fifth from round to round.
    fn after(rounds: u32) -> Rounds {
        let mut race = Rounds::new(3);
        for round in 0..rounds {
            let chance = if round % 2 == 0 { 1.2 } else { 1.0 / 1.2 };
            race.put(0, round, 1.0);
            race.put(1, round, 2.0);
            race.put(2, round, 0.5 * chance);
        }
        race
    }

    #[test]
    fn a_final_goes_on_until_the_share_of_the_bound_is_known() {
        assert!(!is_precise(&after(12), 2, 1, Some(2)));
        assert!(is_precise(&after(12), 2, 1, None));
        assert!(is_precise(&after(80), 2, 1, Some(2)));
        let share = after(80).ratio(0, 2).and_then(|ratio| ratio.interval);
        let share = share.expect("an interval");
        assert!(share.high <= share.low * SHARE_ENDS && share.low < 0.5 && share.high > 0.5);
    }

    /// Narrow enough if one had been chosen beforehand, and not as the share of the better of two.
    #[test]
    fn the_share_of_the_bound_is_that_of_any_that_might_win() {
        let is_narrow = |ratio: Option<crate::tune::Ratio>| {
            let share = ratio.and_then(|ratio| ratio.interval).expect("an interval");
            share.high <= share.low * SHARE_ENDS
        };
        assert!(is_narrow(after(64).ratio(0, 2)) && !is_narrow(after(64).ratio_of_many(0, 2, 2)));
        assert!(!is_precise(&after(64), 2, 1, Some(2)));
    }

    #[test]
    fn a_difference_however_clear_does_not_end_a_final() {
        // What was the bound is now one of ours: twice as fast, give or take a fifth.
        let twice = after(12).ratio(2, 0).and_then(|ratio| ratio.interval).expect("an interval");
        assert!(twice.low > 1.5, "clear: {twice:?}");
        assert!(!is_precise(&after(12), 3, 3, None));
        assert!(is_precise(&after(400), 3, 3, None));
    }
}
