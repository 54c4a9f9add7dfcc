//! Who takes no part in a cell, and who drops out of it on the way.

use iolens_model::arm::{Arm, ArmOutcome, Role};
use iolens_model::outcome::{Environment, Status, TrialOutcome};
use iolens_model::trial::Trial;

use super::super::arms::refused_row;
use super::{CellState, FAILURES_MAX};

impl CellState {
    /// The arms that this machine does not allow in the cell, each with the reason.
    pub(crate) fn refused(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.groups.iter().map(|group| &group.refused).chain(&self.impossible);
        all.flatten().map(|(arm, why)| (arm.label.as_str(), why.as_str()))
    }

    /// Rows for the arms that could not take part in a trial of these arms, so
    /// that each has its reason. Of isolated trials the baseline's has them.
    pub(crate) fn refused_rows(&self, group: usize, trial: &Trial) -> Vec<ArmOutcome> {
        let has_baseline = trial.arms.iter().any(|arm| arm.role == Role::Baseline);
        let refused = self.groups.get(group).filter(|_| has_baseline).map(|g| &g.refused[..]);
        refused.unwrap_or_default().iter().map(refused_row).collect()
    }

    /// Groups that cannot be measured at all, as the trials that never began.
    pub(crate) fn never_began(&self) -> Vec<TrialOutcome> {
        let outcome = |refused: &Vec<(Arm, String)>| TrialOutcome {
            pass: 0,
            position: 0,
            isolated: false,
            cell: self.cell.clone(),
            started_unix_ns: iolens_engine::clock::unix_ns(),
            duration_ns: 0,
            status: Status::Skipped,
            reason: refused.first().map(|(_, why)| why.clone()),
            arms: refused.iter().map(refused_row).collect(),
            slices: Vec::new(),
            environment: Environment::unknown("the trial did not begin"),
            far_environment: None,
            tx: None,
            rx: None,
        };
        self.impossible.iter().map(outcome).collect()
    }

    /// Takes out the arm whose slice ended a trial because the machine's
    /// limits do not allow it.
    fn refuse(&mut self, group: usize, outcome: &TrialOutcome) {
        let state = &mut self.groups[group];
        let Some(reason) = &outcome.reason else { return };
        let refused = outcome.arms.iter().find(|arm| {
            arm.status == Status::Skipped
                && arm.reason.as_ref().is_some_and(|r| reason.ends_with(r))
        });
        let Some(refused) = refused else { return };
        if refused.arm.role == Role::Baseline {
            self.groups.remove(group);
            return;
        }
        state.leave_out(refused);
    }

    /// Remembers a trial that did not end as it should; an arm that failed too
    /// often is left out from now on, and with the baseline the whole group.
    pub(crate) fn note_failure(&mut self, group: usize, outcome: &TrialOutcome) {
        if outcome.status == Status::Skipped {
            return self.refuse(group, outcome);
        }
        let state = &mut self.groups[group];
        let failed = |arm: &ArmOutcome| arm.status == Status::Failed;
        // A stored outcome may also have rows of arms that took no part.
        let took_part = |arm: &&ArmOutcome| state.arms.iter().any(|own| own.arm == arm.arm);
        let arms: Vec<&ArmOutcome> = outcome.arms.iter().filter(took_part).collect();
        let culprit = match &arms[..] {
            [only] => Some(*only),
            arms if arms.iter().all(|arm| failed(arm)) => None,
            arms => arms.iter().copied().find(|arm| failed(arm)),
        };
        let place =
            culprit.and_then(|found| state.arms.iter().position(|arm| arm.arm == found.arm));
        let Some(index) = place else {
            state.failures_of_nobody += 1;
            if state.failures_of_nobody >= FAILURES_MAX {
                self.groups.remove(group);
            }
            return;
        };
        state.arms[index].failures += 1;
        if state.arms[index].failures < FAILURES_MAX {
            return;
        }
        if state.arms[index].arm.role == Role::Baseline {
            self.groups.remove(group);
        } else {
            state.arms.remove(index);
        }
    }
}
