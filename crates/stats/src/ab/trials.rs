//! What was measured in the trials of a cell, and how it is taken from stored ones.

use std::collections::BTreeMap;

use iolens_model::ab::{AbArm, AbQuantity, ab_first};
use iolens_model::arm::{ArmOutcome, Role};
use iolens_model::outcome::{SliceOutcome, Status, TrialOutcome};
use serde::Serialize;

use crate::interval::{Parts, count};
use crate::quantity::Quantity;
use crate::sums::measured;
use crate::values::is_refused;

/// What one operation took in one round; `None` for what was not measured.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AbCost {
    /// Time, ns per operation.
    pub op_time_ns: Option<f64>,
    /// CPU time, ns per operation.
    pub op_cpu_ns: Option<f64>,
    /// Operations; 0 where there was no slice.
    pub operations: f64,
}

impl AbCost {
    /// The logarithm of a quantity; `None` where it was not measured, or is no amount of time.
    pub(super) fn ln(&self, quantity: AbQuantity) -> Option<f64> {
        let ns = match quantity {
            AbQuantity::Time => self.op_time_ns,
            AbQuantity::Cpu => self.op_cpu_ns,
        };
        ns.filter(|ns| ns.is_finite() && *ns > 0.0).map(f64::ln)
    }
}

/// An arm in a trial.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AbArmRounds {
    /// The arm and its hidden copy, each by round; without rounds where there is none. One place
    /// is the same round in all arms of a trial.
    pub copies: [Vec<AbCost>; 2],
    /// Which of its links the arm ran, by number; `None` of a program that is one file.
    pub link: Option<u32>,
    /// The part of a slice that does not grow with its operations, 0 to 1.
    pub fixed_share: f64,
}

/// A trial: its rounds, by arm, the baseline first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AbTrial {
    /// The arms; one that was not in the trial has no rounds.
    pub arms: Vec<AbArmRounds>,
    /// Which arm started first.
    pub first: usize,
}

impl AbTrial {
    /// Whether anything of this quantity was measured of an arm.
    pub(super) fn has(&self, arm: usize, quantity: AbQuantity) -> bool {
        let copies = self.arms.get(arm).into_iter().flat_map(|arm| &arm.copies);
        copies.flatten().any(|cost| cost.ln(quantity).is_some())
    }
}

/// The trials of one cell that are used.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AbTrials {
    /// In the order in which they ran.
    pub trials: Vec<AbTrial>,
    /// Whether times are what programs timed themselves: all did, in every slice of every trial
    /// that is used, and none timed more than the slice took. Else they are the coordinator's.
    pub is_own_time: bool,
}

impl AbTrials {
    /// Of the stored trials of one cell. Programs are given by the primitives of their arms, the
    /// baseline first; `facts` finds what else came of an arm.
    ///
    /// A trial that was refused is left out, and so is an arm that was: which ones depends on
    /// status alone, never on a value. An arm that was refused may be spoken for by its copy.
    pub fn of<'a>(
        outcomes: impl IntoIterator<Item = &'a TrialOutcome>,
        programs: &[&str],
        facts: impl Fn(&'a ArmOutcome) -> Option<&'a AbArm>,
    ) -> AbTrials {
        let is_used = |trial: &&TrialOutcome| trial.pass > 0 && !is_refused(trial);
        let sources: Vec<Source<'_>> =
            outcomes.into_iter().filter(is_used).map(|t| Source::of(t, programs, &facts)).collect();
        let is_own_time =
            sources.iter().any(Source::has_rounds) && sources.iter().all(Source::is_own_time);
        let trials = sources.iter().map(|source| source.trial(programs.len(), is_own_time));
        AbTrials { trials: trials.collect(), is_own_time }
    }
}

/// What an arm of a stored trial is here, and its own times by the number of the slice.
struct Place {
    arm: usize,
    copy: usize,
    link: Option<u32>,
    fixed_share: f64,
    own_ns: BTreeMap<u32, u64>,
}

/// A stored trial, and the place of each of its arms; `None` for those that are not used.
struct Source<'a> {
    trial: &'a TrialOutcome,
    places: Vec<Option<Place>>,
}

impl<'a> Source<'a> {
    fn of(
        trial: &'a TrialOutcome,
        programs: &[&str],
        facts: &impl Fn(&'a ArmOutcome) -> Option<&'a AbArm>,
    ) -> Source<'a> {
        let place = |outcome: &'a ArmOutcome| {
            let copy = match outcome.arm.role {
                Role::Baseline | Role::Compared => 0,
                Role::SelfCheck => 1,
                Role::Control => return None,
            };
            let arm = programs.iter().position(|program| *program == outcome.arm.primitive)?;
            let facts = facts(outcome);
            let own = facts.map(|facts| facts.own_ns.iter().copied().collect());
            let (own_ns, link) = (own.unwrap_or_default(), facts.and_then(|facts| facts.link));
            let fixed_ppm = facts.and_then(|facts| facts.fixed_ppm).unwrap_or(0);
            let fixed_share = f64::from(fixed_ppm) / 1e6;
            let place = Place { arm, copy, link, fixed_share, own_ns };
            (outcome.status == Status::Ok).then_some(place)
        };
        Source { trial, places: trial.arms.iter().map(place).collect() }
    }

    /// The slices that count, each with the place of its arm.
    fn slices(&self) -> impl Iterator<Item = (&SliceOutcome, &Place)> {
        let place = |slice: &SliceOutcome| self.places.get(slice.arm)?.as_ref();
        measured(self.trial).filter_map(move |slice| Some((slice, place(slice)?)))
    }

    fn has_rounds(&self) -> bool {
        self.slices().next().is_some()
    }

    fn is_own_time(&self) -> bool {
        // More than the slice took is no time of it.
        let within = |slice: &SliceOutcome, own_ns: u64| {
            slice.tx.judged(AbQuantity::Time).is_some_and(|whole_ns| own_ns <= whole_ns)
        };
        self.slices().all(|(slice, place)| {
            place.own_ns.get(&slice.seq).is_some_and(|&own_ns| within(slice, own_ns))
        })
    }

    fn trial(&self, arms: usize, is_own_time: bool) -> AbTrial {
        let mut rounds: BTreeMap<u32, BTreeMap<(usize, usize), Spent>> = BTreeMap::new();
        for (slice, place) in self.slices() {
            let own_ns = place.own_ns.get(&slice.seq).filter(|_| is_own_time);
            let spent = rounds.entry(slice.round).or_default();
            spent.entry((place.arm, place.copy)).or_default().add(slice, own_ns);
        }
        let of_copy = |arm: usize, copy: usize| -> Vec<AbCost> {
            let is_used = |place: &Place| (place.arm, place.copy) == (arm, copy);
            if !self.places.iter().flatten().any(is_used) {
                return Vec::new();
            }
            let cost = |round: &BTreeMap<(usize, usize), Spent>| {
                round.get(&(arm, copy)).map(Spent::cost).unwrap_or_default()
            };
            rounds.values().map(cost).collect()
        };
        // The copy runs the same link.
        let of_arm = |arm| {
            let own = self.places.iter().flatten().find(|place| place.arm == arm);
            AbArmRounds {
                copies: [of_copy(arm, 0), of_copy(arm, 1)],
                link: own.and_then(|place| place.link),
                fixed_share: own.map_or(0.0, |place| place.fixed_share),
            }
        };
        AbTrial { arms: (0..arms).map(of_arm).collect(), first: ab_first(self.trial.pass, arms) }
    }
}

/// What the slices of an arm in a round add up to.
#[derive(Clone, Copy, Default)]
struct Spent {
    time: Option<Parts>,
    cpu: Option<Parts>,
}

impl Spent {
    fn add(&mut self, slice: &SliceOutcome, own_ns: Option<&u64>) {
        let own =
            |parts: Parts| Parts { over: own_ns.map_or(parts.over, |ns| *ns as f64), ..parts };
        plus(&mut self.time, Quantity::Time.of_slice(slice).map(own));
        plus(&mut self.cpu, Quantity::Cpu.of_slice(slice));
    }

    fn cost(&self) -> AbCost {
        AbCost {
            op_time_ns: self.time.map(Parts::ratio),
            op_cpu_ns: self.cpu.map(Parts::ratio),
            operations: self.time.or(self.cpu).map_or(0.0, |parts| parts.under),
        }
    }
}

fn plus(sum: &mut Option<Parts>, parts: Option<Parts>) {
    if let Some(parts) = parts {
        *sum.get_or_insert_default() += parts;
    }
}

// How cgroups held the programs of a run back.

/// Periods of a quota in which whoever ran waited for the next, which is in the time of its slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AbThrottled {
    /// Periods.
    pub periods: u64,
    /// How long all of them waited, ns.
    pub lasted_ns: u64,
    /// Trials in which some did.
    pub trials: u32,
    /// Trials.
    pub of: u32,
}

impl AbThrottled {
    /// What is known of the trials of passes; `None` where nobody waited.
    pub fn of(trials: &[TrialOutcome]) -> Option<AbThrottled> {
        let timed = || trials.iter().filter(|trial| trial.pass > 0);
        let held = timed().filter_map(|trial| trial.environment.throttled.value());
        let held: Vec<_> = held.filter(|held| held.periods > 0).collect();
        (!held.is_empty()).then(|| AbThrottled {
            periods: held.iter().map(|held| held.periods).fold(0, u64::saturating_add),
            lasted_ns: held.iter().map(|held| held.time.0).fold(0, u64::saturating_add),
            trials: count(held.len()),
            of: count(timed().count()),
        })
    }
}

#[cfg(test)]
mod tests {
    use iolens_model::reading::Reading;
    use iolens_model::server::Throttled;
    use iolens_model::units::Nanos;

    use super::*;
    use crate::fixture::{self, rounds};

    /// A trial of three rounds, whose arms take 500, 501, 600 and 601 ns.
    fn stored() -> TrialOutcome {
        let cell = fixture::plan(&["base", "arm"]).cells().remove(0);
        let arms = [("base", 500.0), ("base (A/A)", 501.0), ("arm", 600.0), ("arm (A/A)", 601.0)];
        let arms = arms.map(|(label, ns)| rounds(label, &[ns; 3]));
        let mut trial = fixture::trial(1, &cell, &arms);
        // Programs have no other end.
        trial.slices.iter_mut().for_each(|slice| slice.rx = None);
        trial
    }

    fn of(trials: &[TrialOutcome], own: Option<&AbArm>) -> AbTrials {
        AbTrials::of(trials, &["base", "arm"], |_| own)
    }

    fn times(trial: &AbTrial) -> Vec<Vec<Option<f64>>> {
        let copies = trial.arms.iter().flat_map(|arm| &arm.copies);
        copies.map(|rounds| rounds.iter().map(|cost| cost.op_time_ns).collect()).collect()
    }

    #[test]
    fn arms_and_copies_find_their_places() {
        let found = of(&[stored()], None);
        let [trial] = &found.trials[..] else { panic!("{found:?}") };
        let expect = [500.0, 501.0, 600.0, 601.0].map(|ns| vec![Some(ns); 3]);
        assert_eq!(times(trial), expect);
        assert_eq!(trial.arms[0].copies[0][0].op_cpu_ns, Some(450.0));
        assert!(!found.is_own_time);
    }

    #[test]
    fn what_was_refused_is_left_out() {
        let mut trials = vec![stored(); 4];
        trials[0].pass = 0;
        trials[1].status = Status::Failed;
        trials[2].status = Status::Invalid;
        trials[2].arms[2].status = Status::Invalid;
        let found = of(&trials, None);
        let sizes: Vec<Vec<usize>> =
            found.trials.iter().map(|trial| times(trial).iter().map(Vec::len).collect()).collect();
        assert_eq!(sizes, [[3, 3, 0, 3], [3, 3, 3, 3]]);
    }

    #[test]
    fn a_round_that_lacks_something_keeps_its_place() {
        let mut trial = stored();
        trial.slices[1].tx.task_clock_ns = None;
        trial.slices.retain(|slice| (slice.round, slice.arm) != (1, 2));
        let found = of(&[trial], None);
        let arms = &found.trials[0].arms;
        let has_time: Vec<bool> =
            arms[1].copies[0].iter().map(|cost| cost.op_time_ns.is_some()).collect();
        assert_eq!(has_time, [true, false, true]);
        let has_cpu: Vec<bool> =
            arms[0].copies[1].iter().map(|cost| cost.op_cpu_ns.is_some()).collect();
        assert_eq!(has_cpu, [false, true, true]);
    }

    #[test]
    fn the_time_is_their_own_where_all_tell_it() {
        let trial = stored();
        let mut facts = AbArm {
            own_ns: trial.slices.iter().map(|slice| (slice.seq, fixture::MESSAGES * 7)).collect(),
            ..AbArm::default()
        };
        let found = of(std::slice::from_ref(&trial), Some(&facts));
        assert!(found.is_own_time);
        assert_eq!(times(&found.trials[0]), vec![vec![Some(7.0); 3]; 4]);
        assert_eq!(found.trials[0].arms[0].copies[0][0].op_cpu_ns, Some(450.0));
        facts.own_ns.pop();
        let found = of(&[trial], Some(&facts));
        assert!(!found.is_own_time);
        assert_eq!(times(&found.trials[0])[0], vec![Some(500.0); 3]);
        assert!(!of(&[], Some(&facts)).is_own_time);
    }

    #[test]
    fn trials_are_counted_that_a_quota_held_back() {
        let mut trials = fixture::passes(&[1.0; 4]).trials;
        assert_eq!(AbThrottled::of(&trials), None);
        for (trial, periods) in trials.iter_mut().zip([0, 3, 1]) {
            let held = Throttled { periods, time: Nanos(10 * periods) };
            trial.environment.throttled = Reading::Exact(held);
        }
        let expect = AbThrottled { periods: 4, lasted_ns: 40, trials: 2, of: 4 };
        assert_eq!(AbThrottled::of(&trials), Some(expect));
        trials[1].pass = 0;
        assert_eq!(AbThrottled::of(&trials).map(|held| (held.trials, held.of)), Some((1, 3)));
    }
}
