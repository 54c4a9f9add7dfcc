//! A build whose workers are measured, and its run. There is one, that of this program,
//! unless two are to be compared.

use iolens_engine::Interrupts;
use iolens_engine::far::Far;
use iolens_engine::trial::{self, Launch};
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::run::RunHeader;
use iolens_model::trial::Trial;
use iolens_stats::analysis::Analysis;
use iolens_stats::{Decision, Fold, PassSummary};

use super::fresh::Copies;
use crate::failure::Failure;

/// A build in a run in progress.
pub(super) struct Build {
    /// Of its run.
    pub(super) header: RunHeader,
    pub(super) launch: Launch,
    /// Where each trial has a fresh copy of the program from; null where the program itself
    /// is run.
    copies: Option<Copies>,
    /// Its trials so far.
    pub(super) fold: Fold,
    pub(super) history: Vec<PassSummary>,
}

impl Build {
    pub(super) fn new(header: RunHeader, launch: Launch) -> Build {
        Build { header, launch, copies: None, fold: Fold::default(), history: Vec::new() }
    }

    /// The same, each trial of a fresh copy of the program.
    pub(super) fn copied(self, copies: Copies) -> Build {
        Build { copies: Some(copies), ..self }
    }

    /// Runs a trial, with an end on the other machine if that is its topology.
    pub(super) fn conduct(
        &mut self,
        trial: &Trial,
        far: Option<&mut Far>,
        interrupts: &Interrupts,
    ) -> Result<TrialOutcome, Failure> {
        let copy = self.copies.as_mut().map(|copies| copies.of(&self.launch)).transpose();
        let copy = copy.map_err(Failure::unusable)?;
        let launch = copy.as_ref().map_or(&self.launch, |copy| &copy.launch);
        Ok(match far.filter(|_| trial.hosts.is_some()) {
            Some(far) => trial::run_with(trial, launch, far, Some(interrupts)),
            None => trial::run(trial, launch, Some(interrupts)),
        })
    }

    /// The same, judged by the gates.
    pub(super) fn run(
        &mut self,
        trial: &Trial,
        far: Option<&mut Far>,
        interrupts: &Interrupts,
    ) -> Result<TrialOutcome, Failure> {
        let mut outcome = self.conduct(trial, far, interrupts)?;
        if outcome.status == Status::Ok {
            for (arm, reason) in iolens_stats::invalid_arms(&self.header, &outcome) {
                outcome.arms[arm].status = Status::Invalid;
                outcome.arms[arm].reason = Some(reason);
            }
        }
        Ok(outcome)
    }

    /// What its trials say so far.
    pub(super) fn analysis(&self) -> Analysis {
        self.fold.analysis(&self.header)
    }

    /// Whether its run has enough, after a pass with this analysis.
    pub(super) fn decide(&mut self, analysis: &Analysis) -> Decision {
        self.history.push(PassSummary::of(analysis));
        iolens_stats::decide(&self.history, &self.header.plan)
    }
}
