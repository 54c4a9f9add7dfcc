//! Which passes are complete, which trial of a pass speaks for an arm, and which stored numbers an
//! analysis rests on.

use std::collections::{BTreeMap, BTreeSet};

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::outcome::Status;
use iolens_model::plan::Plan;
use iolens_model::run::{Run, RunHeader};

use crate::interval::count;
use crate::roster;
use crate::values::{ArmValues, Known, TrialValues};

/// The passes of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Passes {
    /// Every cell that was still alive was visited.
    pub(crate) complete: BTreeSet<u32>,
    /// Cut short, each with the number of cells that lack arms.
    pub(crate) incomplete: Vec<(u32, u32)>,
}

/// The arms of a cell, each of which a complete pass visits.
type Arms<'a> = BTreeMap<&'a str, Vec<(u32, Status)>>;

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
    let mut all: Vec<u32> = trials.iter().map(|trial| trial.pass).filter(|&p| p > 0).collect();
    all.sort_unstable();
    all.dedup();
    let last = all.last().copied().unwrap_or(0);
    let ended_by_rule = header.end.as_ref().is_some_and(|end| !end.stopped_by.is_cut_short());
    let mut passes = Passes::default();
    for &pass in &all {
        let open = pass == last && !ended_by_rule;
        let lacks = |arms: &Arms<'_>| arms.values().any(|visits| is_missing(visits, pass, open));
        let mut missing: BTreeSet<&Cell> =
            units.iter().filter(|(_, arms)| lacks(arms)).map(|(cell, _)| *cell).collect();
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

/// Per cell and arm, the passes that visited it, rising, and how each ended; a trial that was
/// interrupted did not.
fn visits<'a>(trials: &'a [TrialValues], plan: &Plan) -> BTreeMap<&'a Cell, Arms<'a>> {
    let mut units: BTreeMap<&Cell, Arms<'_>> = BTreeMap::new();
    let is_primary = |trial: &TrialValues| trial.isolated == plan.measures_alone(&trial.cell);
    for trial in trials.iter().filter(|trial| trial.pass > 0 && is_primary(trial)) {
        let arms = units.entry(&*trial.cell).or_default();
        for arm in &trial.arms {
            let status = match (trial.status, arm.outcome.status) {
                (Status::Ok | Status::Invalid, status) => status,
                (status, _) => status,
            };
            let visits = arms.entry(arm.outcome.arm.label.as_str()).or_default();
            if status != Status::Interrupted {
                visits.push((trial.pass, status));
            }
        }
    }
    let all = units.values_mut().flat_map(BTreeMap::values_mut);
    all.for_each(|visits| visits.sort_by_key(|(pass, _)| *pass));
    units
}

fn is_missing(visits: &[(u32, Status)], pass: u32, open: bool) -> bool {
    let (before, later) = visits.split_at(visits.partition_point(|(own, _)| *own < pass));
    let is_dropped = || matches!(before.last(), Some((_, Status::Failed | Status::Skipped)));
    match later.first() {
        Some((own, _)) => *own != pass,
        None => open && !is_dropped(),
    }
}

/// Whether no trial of a planned cell was ever started, and the calibration
/// of its slices did not fail either.
fn never_begun(cell: &Cell, trials: &[TrialValues], units: &BTreeMap<&Cell, Arms<'_>>) -> bool {
    let gave_up = trials.iter().any(|trial| {
        *trial.cell == *cell && matches!(trial.status, Status::Failed | Status::Skipped)
    });
    units.get(cell).is_none_or(Arms::is_empty) && !gave_up
}

/// Trials whose numbers of an arm are used, with these.
pub(crate) type Used<'a> = Vec<(&'a TrialValues, &'a ArmValues)>;

/// The trials of one cell that are compared with each other, in the order in
/// which they ran.
#[derive(Debug)]
pub(crate) struct Visits<'a> {
    trials: Vec<&'a TrialValues>,
    /// Which of these trials are of each pass: those of one stand together, in their order.
    by_pass: Vec<usize>,
    /// Later ones of the same pass that repeat a trial, where there are any.
    repeats: BTreeMap<usize, Vec<usize>>,
    complete: &'a BTreeSet<u32>,
}

impl<'a> Visits<'a> {
    /// Of the trials of one cell, all isolated or all shared.
    pub(crate) fn of(trials: Vec<&'a TrialValues>, complete: &'a BTreeSet<u32>) -> Visits<'a> {
        let mut by_pass: Vec<usize> = (0..trials.len()).collect();
        by_pass.sort_by_key(|&i| trials[i].pass);
        let of_one_pass = by_pass.chunk_by(|&a, &b| trials[a].pass == trials[b].pass);
        let from_each = of_one_pass.flat_map(|pass| (0..pass.len()).map(|at| &pass[at..]));
        let repeats = from_each.filter_map(|from| again(&trials, from)).collect();
        Visits { trials, by_pass, repeats, complete }
    }

    /// The trials of a pass.
    fn of_pass(&self, pass: u32) -> &[usize] {
        let from = self.by_pass.partition_point(|&i| self.trials[i].pass < pass);
        let later = &self.by_pass[from..];
        &later[..later.partition_point(|&i| self.trials[i].pass == pass)]
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
    pub(crate) fn used(&self, label: &str) -> Used<'a> {
        let trials = self.trials.iter().enumerate();
        let used = trials
            .filter(|(_, trial)| self.complete.contains(&trial.pass))
            .filter(|(i, _)| !self.is_superseded(*i, label))
            .filter_map(|(_, trial)| Some((*trial, trial.usable(label)?)));
        // Mostly all of them: to double the room as they come would take as much again.
        let mut all = Vec::with_capacity(self.trials.len());
        all.extend(used);
        all.shrink_to_fit();
        all
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

    /// The place of a trial, for whether it was run again: `None` where none was.
    fn index_of(&self, trial: &TrialValues) -> Option<usize> {
        if self.repeats.is_empty() {
            return None;
        }
        let mut of_pass = self.of_pass(trial.pass).iter().copied();
        of_pass.find(|&i| std::ptr::eq(self.trials[i], trial))
    }

    fn is_superseded(&self, i: usize, label: &str) -> bool {
        let mut again = self.repeats.get(&i).into_iter().flatten();
        again.any(|&j| self.trials[j].usable(label).is_some())
    }

    /// Whether a later trial of the pass stands for every arm of this one.
    pub(crate) fn is_replaced(&self, trial: &TrialValues) -> bool {
        let Some(i) = self.index_of(trial) else {
            return false;
        };
        let usable = |arm: &&ArmValues| trial.usable(&arm.outcome.arm.label).is_some();
        let mut arms = trial.arms.iter().filter(usable).peekable();
        self.repeats.contains_key(&i)
            && (arms.peek().is_none()
                || arms.all(|arm| self.is_superseded(i, &arm.outcome.arm.label)))
    }
}

/// The first of these trials of one pass and those that repeat it; `None` without any.
fn again(trials: &[&TrialValues], of_pass: &[usize]) -> Option<(usize, Vec<usize>)> {
    let (&first, later) = of_pass.split_first()?;
    let is_again = |&&i: &&usize| repeats(trials[first], trials[i]);
    let again: Vec<usize> = later.iter().filter(is_again).copied().collect();
    (!again.is_empty()).then_some((first, again))
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

// Which stored numbers an analysis rests on: exports say it of every slice, so that
// whoever computes anew takes the same ones.

/// For each trial of a run, of each of its arms: why its numbers are used for nothing;
/// `None` where they are used.
pub fn unused(run: &Run) -> Vec<Vec<Option<String>>> {
    let (header, known) = (&run.header, &mut Known::default());
    let values = run.trials.iter().map(|trial| TrialValues::sharing(header, trial, known));
    let values: Vec<TrialValues> = values.collect();
    let cells = roster::cells(&header.plan);
    let passes = sort(header, &cells, &values);
    let mut trials: BTreeMap<&Cell, Vec<&TrialValues>> = BTreeMap::new();
    for trial in &values {
        trials.entry(&*trial.cell).or_default().push(trial);
    }
    let own = cells.iter().map(|cell| (cell, trials.remove(cell).unwrap_or_default()));
    let visits: BTreeMap<&Cell, Visits<'_>> =
        own.map(|(cell, trials)| (cell, Visits::of(trials, &passes.complete))).collect();
    let why = |trial: &TrialValues, label: &str| match visits.get(&*trial.cell) {
        Some(visits) => visits.unused(trial, label),
        None => Some("the plan does not have its cell".to_owned()),
    };
    let of_trial = |trial: &TrialValues| {
        trial.arms.iter().map(|arm| why(trial, &arm.outcome.arm.label)).collect()
    };
    values.iter().map(of_trial).collect()
}

#[cfg(test)]
mod tests {
    use iolens_model::outcome::Status;

    use super::unused;
    use crate::{analyse, fixture};

    #[test]
    fn what_is_not_used_has_its_reason_and_the_rest_is_n() {
        let mut run = fixture::passes(&[1.1; 12]);
        run.trials[3].arms[1].status = Status::Failed;
        run.trials[3].arms[1].reason = Some("it broke".to_owned());
        let last = run.trials.len() - 1;
        run.trials[last].status = Status::Interrupted;
        run.trials[last].reason = Some("by hand".to_owned());
        run.trials[7].pass = run.trials[6].pass;
        let unused = unused(&run);
        assert_eq!(unused[3][1].as_deref(), Some("it broke"));
        assert_eq!(unused[3][0], None);
        assert_eq!(unused[last][0].as_deref(), Some("by hand"));
        assert_eq!(unused[6][1].as_deref(), Some("the trial was run again in the same pass"));
        assert_eq!(unused[7][1], None);
        let label = run.trials[0].arms[1].arm.label.clone();
        let used = unused.iter().filter(|arms| arms[1].is_none()).count();
        let analysis = analyse(&run);
        assert_eq!(fixture::contrast(&analysis, &label).n as usize, used);
    }
}
