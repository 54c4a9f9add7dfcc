//! Whether a run has shown anything.

use iolens_model::arm::Role;
use iolens_model::outcome::Status;

use crate::analysis::{Analysis, ArmAnalysis};
use crate::estimate::Verdict;

impl Analysis {
    /// The verdicts that answer what the user asked: all but the self-check's.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        let compared = self.arms().filter(|arm| arm.arm.role == Role::Compared);
        compared.filter_map(ArmAnalysis::verdict)
    }

    /// Whether at least one contrast is not INVALID, or one row has numbers where there are
    /// no contrasts.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        match self.verdicts().next() {
            None => self.arms().any(|arm| arm.status == Status::Ok && arm.figures.is_some()),
            Some(_) => self.verdicts().any(|verdict| verdict != Verdict::Invalid),
        }
    }

    /// Every arm of every cell.
    pub fn arms(&self) -> impl Iterator<Item = &ArmAnalysis> {
        self.cells.iter().flat_map(|cell| &cell.arms)
    }
}

#[cfg(test)]
mod tests {
    use crate::{analyse, fixture};

    #[test]
    fn a_run_is_usable_as_soon_as_one_contrast_is() {
        let mut run = fixture::passes(&[1.1; 12]);
        assert!(analyse(&run).is_usable());
        let refuse = |run: &mut iolens_model::run::Run, arm: usize| {
            for trial in &mut run.trials {
                trial.arms[arm].status = iolens_model::outcome::Status::Failed;
                trial.arms[arm].reason = Some("it broke".to_owned());
            }
        };
        refuse(&mut run, 1);
        assert!(!analyse(&run).is_usable(), "the only arm that is compared has failed");
        run.trials.clear();
        assert!(!analyse(&run).is_usable(), "there is nothing");
    }

    #[test]
    fn without_contrasts_a_row_with_numbers_is_enough() {
        let run = fixture::one_arm_trial(|_| {});
        let mut analysis = analyse(&run);
        assert!(analysis.is_usable());
        analysis.cells[0].arms[0].figures = None;
        assert!(!analysis.is_usable());
    }
}
