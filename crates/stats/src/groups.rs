//! Which arms of a cell are measured in the same trials. A cell with more arms than a trial
//! holds has several trials in a pass, each with the baseline and a copy of it beside some of
//! the arms: these are a group. The baseline and its copy are in all of them.

use std::collections::BTreeMap;

use iolens_model::arm::{Arm, Role};

use crate::values::TrialValues;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, ArmTime};
    use crate::roster;

    /// Groups of trials with these compared arms each.
    fn groups(trials: &[&[&'static str]]) -> Groups {
        let plan = fixture::plan(&["base", "a", "b", "c", "d"]);
        let run = fixture::run(plan);
        let cell = run.header.plan.cells().remove(0);
        let values = trials.iter().map(|labels| {
            let mut arms = vec![ArmTime::new("base", Role::Baseline, &[500.0])];
            arms.extend(labels.iter().map(|l| ArmTime::new(l, Role::Compared, &[500.0])));
            arms.push(ArmTime::new("base (A/A)", Role::SelfCheck, &[500.0]));
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
