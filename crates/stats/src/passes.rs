//! Which passes are complete, which trial of a pass speaks for an arm, and how far a run came.

use std::collections::{BTreeMap, BTreeSet};

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::outcome::Status;
use iolens_model::plan::Plan;
use iolens_model::run::RunHeader;

use crate::analyse::analyse_values;
use crate::interval::count;
use crate::passes;
use crate::stopping::PassSummary;
use crate::values::{ArmValues, TrialValues};

/// The passes of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Passes {
    /// Every cell that was still alive was visited.
    pub(crate) complete: BTreeSet<u32>,
    /// Cut short, each with the number of cells that lack arms.
    pub(crate) incomplete: Vec<(u32, u32)>,
}

/// One arm of one cell, which a complete pass visits.
type Unit<'a> = (&'a Cell, &'a str);

/// Sorts the passes of a run into complete ones and others.
///
/// Only primary trials count (isolated ones where the plan measures each arm by
/// itself, shared ones else). An arm that is missing in a pass and comes back later was alive, so
/// the pass was cut short; one that never comes back has been dropped by the
/// runner. In the last pass nobody can know whether it would come back:
/// there it counts as dropped if its last trial failed or was skipped, or if
/// a rule ended the run, which happens between passes only.
pub(crate) fn sort(header: &RunHeader, cells: &[Cell], trials: &[TrialValues]) -> Passes {
    let units = visits(trials, &header.plan);
    let all: BTreeSet<u32> = trials.iter().map(|trial| trial.pass).filter(|&p| p > 0).collect();
    let last = all.last().copied().unwrap_or(0);
    let ended_by_rule = header.end.as_ref().is_some_and(|end| !end.stopped_by.is_cut_short());
    let mut passes = Passes::default();
    for &pass in &all {
        let open = pass == last && !ended_by_rule;
        let mut missing: BTreeSet<&Cell> = units
            .iter()
            .filter(|(_, visits)| is_missing(visits, pass, open))
            .map(|((cell, _), _)| *cell)
            .collect();
        if open {
            missing.extend(cells.iter().filter(|cell| never_begun(cell, trials, &units)));
        }
        if missing.is_empty() {
            passes.complete.insert(pass);
        } else {
            passes.incomplete.push((pass, count(missing.len())));
        }
    }
    passes
}

/// Per unit, the passes that visited it and how each ended; a trial that was
/// interrupted did not.
fn visits<'a>(trials: &'a [TrialValues], plan: &Plan) -> BTreeMap<Unit<'a>, BTreeMap<u32, Status>> {
    let mut units: BTreeMap<Unit<'_>, BTreeMap<u32, Status>> = BTreeMap::new();
    let is_primary = |trial: &TrialValues| trial.isolated == plan.measures_alone(&trial.cell);
    for trial in trials.iter().filter(|trial| trial.pass > 0 && is_primary(trial)) {
        for arm in &trial.arms {
            let status = match (trial.status, arm.outcome.status) {
                (Status::Ok | Status::Invalid, status) => status,
                (status, _) => status,
            };
            let unit = units.entry((&*trial.cell, arm.outcome.arm.label.as_str())).or_default();
            if status != Status::Interrupted {
                unit.insert(trial.pass, status);
            }
        }
    }
    units
}

fn is_missing(visits: &BTreeMap<u32, Status>, pass: u32, open: bool) -> bool {
    if visits.contains_key(&pass) {
        return false;
    }
    let back_later = visits.range(pass..).next().is_some();
    let dropped = || match visits.range(..pass).next_back() {
        Some((_, status)) => matches!(status, Status::Failed | Status::Skipped),
        None => false,
    };
    back_later || (open && !dropped())
}

/// Whether no trial of a planned cell was ever started, and the calibration
/// of its slices did not fail either.
fn never_begun(
    cell: &Cell,
    trials: &[TrialValues],
    units: &BTreeMap<Unit<'_>, BTreeMap<u32, Status>>,
) -> bool {
    let visited = units.range((cell, "")..).next().is_some_and(|((seen, _), _)| *seen == cell);
    let gave_up = trials.iter().any(|trial| {
        *trial.cell == *cell && matches!(trial.status, Status::Failed | Status::Skipped)
    });
    !visited && !gave_up
}

/// The trials of one cell that are compared with each other, in the order in
/// which they ran.
#[derive(Debug)]
pub(crate) struct Visits<'a> {
    trials: Vec<&'a TrialValues>,
    /// Per pass, which of these trials are its.
    by_pass: BTreeMap<u32, Vec<usize>>,
    /// Per trial, later ones of the same pass that repeat it.
    repeats: Vec<Vec<usize>>,
    complete: &'a BTreeSet<u32>,
}

impl<'a> Visits<'a> {
    /// Of the trials of one cell, all isolated or all shared.
    pub(crate) fn of(trials: Vec<&'a TrialValues>, complete: &'a BTreeSet<u32>) -> Visits<'a> {
        let mut by_pass: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (i, trial) in trials.iter().enumerate() {
            by_pass.entry(trial.pass).or_default().push(i);
        }
        // A pass has a few trials of a cell, a run may have very many.
        let again = |i: usize| {
            let later = by_pass[&trials[i].pass].iter().copied().filter(|&j| j > i);
            later.filter(|&j| repeats(trials[i], trials[j])).collect()
        };
        let repeats = (0..trials.len()).map(again).collect();
        Visits { trials, by_pass, repeats, complete }
    }

    /// Every trial, used or not.
    pub(crate) fn trials(&self) -> &[&'a TrialValues] {
        &self.trials
    }

    /// Whether a pass is complete.
    pub(crate) fn is_complete(&self, pass: u32) -> bool {
        self.complete.contains(&pass)
    }

    /// The last complete pass.
    pub(crate) fn last_complete(&self) -> Option<u32> {
        self.complete.last().copied()
    }

    /// The trials whose numbers of this arm are used: of complete passes,
    /// usable, and not run again with a usable outcome. Which of two trials
    /// counts depends on gates and order only, never on a value.
    pub(crate) fn used(&self, label: &str) -> Vec<(&'a TrialValues, &'a ArmValues)> {
        let trials = self.trials.iter().enumerate();
        trials
            .filter(|(_, trial)| self.complete.contains(&trial.pass))
            .filter(|(i, _)| !self.is_superseded(*i, label))
            .filter_map(|(_, trial)| Some((*trial, trial.usable(label)?)))
            .collect()
    }

    /// Whether a later trial of the same pass speaks for this arm in the place of this one.
    pub(crate) fn has_again(&self, trial: &TrialValues, label: &str) -> bool {
        self.index_of(trial).is_some_and(|i| self.is_superseded(i, label))
    }

    /// Why the numbers of this arm in a trial are used for nothing; `None` where they are.
    pub(crate) fn unused(&self, trial: &TrialValues, label: &str) -> Option<String> {
        let arm = trial.arms.iter().find(|arm| arm.outcome.arm.label == label);
        let refusal = arm.and_then(|arm| arm.refusal.as_deref()).or(trial.refusal.as_deref());
        if let Some(refusal) = refusal {
            return Some(refusal.reason.clone());
        }
        if trial.pass == 0 {
            return Some("it looked for the work of a slice".to_owned());
        }
        if !self.complete.contains(&trial.pass) {
            return Some("its pass is not complete".to_owned());
        }
        self.has_again(trial, label).then(|| "the trial was run again in the same pass".to_owned())
    }

    fn index_of(&self, trial: &TrialValues) -> Option<usize> {
        let mut of_pass = self.by_pass.get(&trial.pass).into_iter().flatten().copied();
        of_pass.find(|&i| std::ptr::eq(self.trials[i], trial))
    }

    fn is_superseded(&self, i: usize, label: &str) -> bool {
        self.repeats[i].iter().any(|&j| self.trials[j].usable(label).is_some())
    }

    /// Whether a later trial of the pass stands for every arm of this one.
    pub(crate) fn is_replaced(&self, trial: &TrialValues) -> bool {
        let Some(i) = self.index_of(trial) else {
            return false;
        };
        let usable = |arm: &&ArmValues| trial.usable(&arm.outcome.arm.label).is_some();
        let mut arms = trial.arms.iter().filter(usable).peekable();
        !self.repeats[i].is_empty()
            && (arms.peek().is_none()
                || arms.all(|arm| self.is_superseded(i, &arm.outcome.arm.label)))
    }
}

/// Whether `later` does the work of `first` again. A cell with many arms has
/// several trials in a pass, each with its own compared arms and a baseline:
/// those are no repetitions of one another.
fn repeats(first: &TrialValues, later: &TrialValues) -> bool {
    if first.pass != later.pass || first.isolated != later.isolated || rate(first) != rate(later) {
        return false;
    }
    let own = |trial: &TrialValues| {
        let shared = |role: Role| matches!(role, Role::Baseline | Role::SelfCheck);
        let labels = |all: bool| -> BTreeSet<String> {
            let arms = trial.arms.iter().map(|arm| &arm.outcome.arm);
            arms.filter(|arm| all || !shared(arm.role)).map(|arm| arm.label.clone()).collect()
        };
        let own = labels(false);
        if own.is_empty() { labels(true) } else { own }
    };
    !own(first).is_disjoint(&own(later))
}

/// The rate that was offered to servers: a baseline that is measured by itself at two of
/// them is not measured again.
fn rate(trial: &TrialValues) -> Option<f64> {
    trial.arms.iter().find_map(|arm| arm.outcome.server.as_ref()?.rate)
}

// How far a stored run came, for going on with it.

/// What a run had reached when it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Reached {
    /// The last complete pass; 0 if there is none.
    pub pass: u32,
    /// The summary after each pass up to that one, oldest first, as the run
    /// had them.
    pub history: Vec<PassSummary>,
}

/// What a run had reached, from its header as stored, with its end, and the
/// values of its trials in the order in which they ran.
#[must_use]
pub fn reached(header: &RunHeader, trials: &[TrialValues]) -> Reached {
    let complete = passes::sort(header, &header.plan.cells(), trials).complete;
    let pass = complete.last().copied().unwrap_or(0);
    // While it ran, it had no end.
    let running = RunHeader { end: None, ..header.clone() };
    let after = |pass: u32| {
        let so_far = trials.iter().filter(|trial| trial.pass <= pass).cloned();
        PassSummary::of(&analyse_values(&running, &so_far.collect::<Vec<_>>()))
    };
    Reached { pass, history: (1..=pass).map(after).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{analyse, fixture};

    fn of(run: &iolens_model::run::Run) -> Reached {
        let values: Vec<TrialValues> =
            run.trials.iter().map(|trial| TrialValues::of(&run.header, trial)).collect();
        reached(&run.header, &values)
    }

    #[test]
    fn the_history_is_the_one_the_run_had() {
        let mut run = fixture::passes(&[1.0, 1.1, 1.0, 1.2]);
        let all = of(&run);
        assert_eq!((all.pass, all.history.len()), (4, 4));
        assert_eq!(all.history[3], PassSummary::of(&analyse(&run)));
        run.trials.truncate(2);
        assert_eq!(of(&run).history, all.history[..2]);
    }

    #[test]
    fn a_pass_that_was_cut_short_is_to_be_done_again_and_then_counts_once() {
        let mut run = fixture::passes(&[1.0, 1.1, 1.0]);
        let again = run.trials[2].clone();
        run.trials[2].status = iolens_model::outcome::Status::Interrupted;
        assert_eq!(of(&run).pass, 2);
        run.trials.push(again);
        let redone = of(&run);
        assert_eq!(redone.pass, 3);
        assert_eq!(redone.history, of(&fixture::passes(&[1.0, 1.1, 1.0])).history);
    }

    #[test]
    fn nothing_reached_is_nothing() {
        let mut run = fixture::passes(&[1.0]);
        run.trials.clear();
        assert_eq!(of(&run), Reached { pass: 0, history: Vec::new() });
    }
}
