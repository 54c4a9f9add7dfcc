//! Which arms a run has, which of them meet in a trial, and their usable trials. The list of arms
//! is the same for every cell, so that an arm which never ran in one of them still has its row and
//! its place among the contrasts.

use std::collections::{BTreeMap, BTreeSet};

use iolens_model::arm::{Arm, Role};
use iolens_model::cell::Cell;
use iolens_model::plan::Plan;

use crate::interval::Parts;
use crate::passes::Used;
use crate::quantity::Quantity;
use crate::values::{ArmValues, Brief, TrialValues};

/// The arms of a run: the baseline, then the compared ones in the plan's
/// order, then self-checks, then controls.
///
/// A plan names primitives only; which of them are controls, and whether
/// there are self-checks, is learnt from the trials.
pub(crate) fn arms(plan: &Plan, trials: &[TrialValues]) -> Vec<Arm> {
    let seen = || trials.iter().flat_map(|trial| &trial.arms).map(|arm| &arm.outcome.arm);
    let mut arms: Vec<Arm> = Vec::new();
    for primitive in &plan.primitives {
        let known = seen().find(|arm| arm.label == *primitive);
        let role = if *primitive == plan.baseline { Role::Baseline } else { Role::Compared };
        let planned = || Arm { label: primitive.clone(), primitive: primitive.clone(), role };
        push_new(&mut arms, &known.cloned().unwrap_or_else(planned));
    }
    for arm in seen() {
        push_new(&mut arms, arm);
    }
    arms.sort_by_key(|arm| match arm.role {
        Role::Baseline => 0,
        Role::Compared => 1,
        Role::SelfCheck => 2,
        Role::Control => 3,
    });
    arms
}

fn push_new(arms: &mut Vec<Arm>, arm: &Arm) {
    if arms.iter().all(|known| known.label != arm.label) {
        arms.push(arm.clone());
    }
}

/// Whether an arm is compared with the baseline, and so counts in J.
pub(crate) fn has_contrast(arm: &Arm) -> bool {
    matches!(arm.role, Role::Compared | Role::SelfCheck)
}

/// The cells of a plan, each once.
pub(crate) fn cells(plan: &Plan) -> Vec<Cell> {
    let mut seen = BTreeSet::new();
    plan.cells().into_iter().filter(|cell| seen.insert(cell.clone())).collect()
}

// Which arms of a cell are measured in the same trials. A cell with more arms than a trial
// holds has several trials in a pass, each with the baseline and a copy of it beside some of
// the arms: these are a group. The baseline and its copy are in all of them.

/// The groups of a cell, in the order of their first arms in the roster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Groups {
    /// The group of each arm that is in one alone.
    of_label: BTreeMap<String, usize>,
    /// Labels of each, in the order of the roster.
    members: Vec<Vec<String>>,
}

impl Groups {
    /// Arms that were ever in one trial are in one group. Trials of single arms say nothing of
    /// that: there all are one group, which meets one baseline in each pass.
    pub(crate) fn of(arms: &[Arm], trials: &[&TrialValues]) -> Groups {
        let mut groups = Groups::default();
        for trial in trials.iter().filter(|trial| trial.pass > 0 && !trial.isolated) {
            groups.join(&own(trial));
        }
        groups.in_order(arms)
    }

    /// How many there are; one where all arms share their trials.
    pub(crate) fn count(&self) -> usize {
        self.members.len().max(1)
    }

    /// The labels of a group, without the baseline and its copy.
    pub(crate) fn labels(&self, group: usize) -> &[String] {
        self.members.get(group).map_or(&[], Vec::as_slice)
    }

    /// The group of an arm; `None` for the baseline and its copy, which are in all.
    pub(crate) fn of_label(&self, label: &str) -> Option<usize> {
        self.of_label.get(label).copied()
    }

    /// Whether a trial is one of a group.
    pub(crate) fn is_of(&self, trial: &TrialValues, group: usize) -> bool {
        let mut own = own(trial).into_iter().map(|label| self.of_label(label));
        self.count() == 1 || own.any(|found| found == Some(group))
    }

    /// Makes one group of these arms and of all groups that they were in.
    fn join(&mut self, labels: &[&str]) {
        let known = labels.iter().filter_map(|label| self.of_label(label)).min();
        let group = known.unwrap_or(self.of_label.len());
        let before: Vec<usize> = labels.iter().filter_map(|label| self.of_label(label)).collect();
        for found in self.of_label.values_mut().filter(|found| before.contains(found)) {
            *found = group;
        }
        self.of_label.extend(labels.iter().map(|label| ((*label).to_owned(), group)));
    }

    /// The same with numbers from 0, by the first arm of each.
    fn in_order(self, arms: &[Arm]) -> Groups {
        let mut numbers: Vec<usize> = Vec::new();
        let mut groups = Groups::default();
        for arm in arms {
            let Some(found) = self.of_label(&arm.label) else { continue };
            let group = numbers.iter().position(|known| *known == found).unwrap_or_else(|| {
                numbers.push(found);
                groups.members.push(Vec::new());
                numbers.len() - 1
            });
            groups.of_label.insert(arm.label.clone(), group);
            groups.members[group].push(arm.label.clone());
        }
        groups
    }
}

/// Labels of the arms of a trial that are in one group alone.
fn own(trial: &TrialValues) -> Vec<&str> {
    let is_own = |arm: &Arm| !matches!(arm.role, Role::Baseline | Role::SelfCheck);
    let arms = trial.arms.iter().map(|arm| &arm.outcome.arm);
    arms.filter(|arm| is_own(arm)).map(|arm| arm.label.as_str()).collect()
}

// The usable trials of each arm in each cell as plain numbers: what fits,
// pairings and regressions across cells start from.

/// One arm in one cell.
pub(crate) struct Track<'a> {
    /// The setting.
    pub(crate) cell: Cell,
    /// Which arm.
    pub(crate) arm: Arm,
    used: Used<'a>,
}

impl<'a> Track<'a> {
    /// Of an arm's used trials, in the order in which they ran; `None` where none says anything.
    pub(crate) fn of(cell: &Cell, arm: &Arm, mut used: Used<'a>) -> Option<Track<'a>> {
        used.retain(|(trial, arm)| Point::of(trial, arm).is_some());
        (!used.is_empty()).then(|| Track { cell: cell.clone(), arm: arm.clone(), used })
    }

    /// What its trials say, at least one. Points are made each time: there may be very many.
    pub(crate) fn points(&self) -> impl Iterator<Item = Point> {
        self.used.iter().filter_map(|(trial, arm)| Point::of(trial, arm))
    }

    /// How many trials it has.
    pub(crate) fn len(&self) -> usize {
        self.used.len()
    }

    /// When its trials began, nanoseconds since 1970.
    pub(crate) fn started_unix_ns(&self) -> impl Iterator<Item = u64> {
        self.used.iter().map(|(trial, _)| trial.started_unix_ns)
    }
}

/// What one trial says of an arm: totals over its measured slices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    /// Pass.
    pub(crate) pass: u32,
    /// Position in the pass.
    pub(crate) position: u32,
    /// Start of the trial, nanoseconds since 1970.
    pub(crate) started_unix_ns: u64,
    /// Nanoseconds over messages, both above zero.
    pub(crate) time: Parts,
    /// What is compared in the cell, over messages, both above zero.
    pub(crate) compared: Parts,
    /// ln(the baseline's quantity per message / the arm's), typical of the trial's rounds; `None`
    /// without a baseline in the trial.
    pub(crate) typical_ln: Option<f64>,
    /// Payload bytes sent.
    pub(crate) bytes: f64,
    /// Context switches of both ends.
    pub(crate) switches: Option<u32>,
    /// Measured slices.
    pub(crate) slices: u32,
}

impl Point {
    /// What an arm's values in a trial say; `None` without what is compared.
    pub(crate) fn of(trial: &TrialValues, arm: &ArmValues) -> Option<Point> {
        let Brief { bytes, switches, slices, .. } = arm.brief;
        let time = arm.parts(Quantity::Time).or_else(|| Quantity::Time.of_trial(&arm.sums()))?;
        Some(Point {
            pass: trial.pass,
            position: trial.position,
            started_unix_ns: trial.started_unix_ns,
            time,
            compared: arm.parts(Quantity::of(&trial.cell))?,
            typical_ln: arm.typical(Quantity::of(&trial.cell)),
            bytes: bytes as f64,
            switches,
            slices,
        })
    }

    /// What is compared, per message.
    pub(crate) fn compared_per_message(&self) -> f64 {
        self.compared.ratio()
    }
}

/// Items that share a key, in the order of first appearance.
pub(crate) fn grouped<T, K: PartialEq>(items: &[T], key: impl Fn(&T) -> K) -> Vec<(K, Vec<&T>)> {
    let mut groups: Vec<(K, Vec<&T>)> = Vec::new();
    for item in items {
        let key = key(item);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, time};
    use crate::roster;

    /// Groups of trials with these compared arms each.
    fn groups(trials: &[&[&'static str]]) -> Groups {
        let plan = fixture::plan(&["base", "a", "b", "c", "d"]);
        let run = fixture::run(plan);
        let cell = run.header.plan.cells().remove(0);
        let values = trials.iter().map(|labels| {
            let labels = [&["base"], *labels, &["base (A/A)"]].concat();
            let arms: Vec<_> = labels.iter().map(|label| time(label, 500.0)).collect();
            TrialValues::of(&run.header, &fixture::trial(1, &cell, &arms))
        });
        let values: Vec<TrialValues> = values.collect();
        let roster = roster::arms(&run.header.plan, &values);
        Groups::of(&roster, &values.iter().collect::<Vec<_>>())
    }

    #[test]
    fn arms_of_one_trial_are_a_group_in_whatever_order_trials_ran() {
        let found = groups(&[&["c", "d"], &["a", "b"], &["a"]]);
        assert_eq!(found.count(), 2);
        assert_eq!(
            (found.labels(0), found.labels(1)),
            (&["a".to_owned(), "b".to_owned()][..], &["c".to_owned(), "d".to_owned()][..])
        );
        assert_eq!((found.of_label("d"), found.of_label("base")), (Some(1), None));
    }

    #[test]
    fn an_arm_that_moved_joins_what_it_was_with() {
        assert_eq!(groups(&[&["a", "b"], &["c", "d"], &["b", "c"]]).count(), 1);
        assert_eq!(groups(&[]).count(), 1);
        assert_eq!(groups(&[&[]]).count(), 1, "the baseline and its copy alone");
    }
}
