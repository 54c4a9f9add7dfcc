//! What both ends counted for one model in one cell: sums over the measured slices of the
//! trials that are used.

use iolens_model::cell::Cell;
use iolens_model::outcome::{Counts, SliceOutcome, Status, TrialOutcome};
use iolens_model::run::Run;
use iolens_model::trial::SliceKind;
use iolens_stats::analysis::Analysis;

/// An end of the connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// All threads and children of the server.
    Server,
    /// The client of all models.
    Client,
}

/// The slices of one model.
pub(crate) struct Counted<'a> {
    slices: Vec<&'a SliceOutcome>,
}

impl<'a> Counted<'a> {
    /// Null where no trial of the arm is used.
    pub(crate) fn of(
        run: &'a Run,
        analysis: &Analysis,
        cell: &Cell,
        label: &str,
    ) -> Option<Counted<'a>> {
        let slices: Vec<&SliceOutcome> = run
            .trials
            .iter()
            .filter(|trial| trial.cell == *cell)
            .filter_map(|trial| Some((trial, arm_of(trial, analysis, label)?)))
            .flat_map(|(trial, arm)| trial.slices.iter().filter(move |slice| slice.arm == arm))
            .filter(|slice| slice.kind == SliceKind::Measured)
            .collect();
        (!slices.is_empty()).then_some(Counted { slices })
    }

    /// A sum over one end; null as soon as one slice lacks it.
    pub(crate) fn sum(&self, end: End, of: impl Fn(&Counts) -> Option<u64>) -> Option<f64> {
        let one = |slice: &&SliceOutcome| match end {
            End::Server => of(&slice.tx),
            End::Client => of(slice.rx.as_ref()?),
        };
        // Far more than any count of a run.
        let sum: Option<u64> = self.slices.iter().map(one).sum();
        sum.map(|sum| sum as f64)
    }

    /// Requests answered, as the end counted them.
    pub(crate) fn requests(&self, end: End) -> Option<f64> {
        self.sum(end, |counts| Some(counts.messages)).filter(|&requests| requests > 0.0)
    }

    /// Time of the slices.
    pub(crate) fn time_ns(&self) -> Option<f64> {
        self.sum(End::Server, |counts| Some(counts.time_ns)).filter(|&ns| ns > 0.0)
    }
}

/// The index of an arm in a trial whose numbers of it are used.
fn arm_of(trial: &TrialOutcome, analysis: &Analysis, label: &str) -> Option<usize> {
    let index = trial.arms.iter().position(|arm| arm.arm.label == label)?;
    let is_used = trial.pass > 0 && trial.arms[index].status == Status::Ok;
    let is_rejected = analysis.rejected.iter().any(|rejected| {
        rejected.pass == trial.pass
            && rejected.arm.as_deref().is_none_or(|arm| arm == label)
            && rejected.cell == trial.cell.to_string()
    });
    (is_used && !is_rejected).then_some(index)
}
