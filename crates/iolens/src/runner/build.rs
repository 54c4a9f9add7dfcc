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

/// A build in a run in progress.
pub(super) struct Build {
    /// Of its run.
    pub(super) header: RunHeader,
    pub(super) launch: Launch,
    /// Its trials so far.
    pub(super) fold: Fold,
    pub(super) history: Vec<PassSummary>,
}

impl Build {
    pub(super) fn new(header: RunHeader, launch: Launch) -> Build {
        Build { header, launch, fold: Fold::default(), history: Vec::new() }
    }

    /// Runs a trial, with an end on the other machine if that is its topology.
    pub(super) fn conduct(
        &self,
        trial: &Trial,
        far: Option<&mut Far>,
        interrupts: &Interrupts,
    ) -> TrialOutcome {
        match far.filter(|_| trial.hosts.is_some()) {
            Some(far) => trial::run_with(trial, &self.launch, far, Some(interrupts)),
            None => trial::run(trial, &self.launch, Some(interrupts)),
        }
    }

    /// The same, judged by the gates.
    pub(super) fn run(
        &self,
        trial: &Trial,
        far: Option<&mut Far>,
        interrupts: &Interrupts,
    ) -> TrialOutcome {
        let mut outcome = self.conduct(trial, far, interrupts);
        if outcome.status == Status::Ok {
            for (arm, reason) in iolens_stats::invalid_arms(&self.header, &outcome) {
                outcome.arms[arm].status = Status::Invalid;
                outcome.arms[arm].reason = Some(reason);
            }
        }
        outcome
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
