//! Which stored numbers an analysis rests on: exports say it of every slice, so that
//! whoever computes anew takes the same ones.

use std::collections::BTreeMap;

use iolens_model::cell::Cell;
use iolens_model::run::Run;

use crate::passes::{self, Visits};
use crate::roster;
use crate::values::{Known, TrialValues};

/// For each trial of a run, of each of its arms: why its numbers are used for nothing;
/// `None` where they are used.
#[must_use]
pub fn unused(run: &Run) -> Vec<Vec<Option<String>>> {
    let (header, known) = (&run.header, &mut Known::default());
    let values = run.trials.iter().map(|trial| TrialValues::sharing(header, trial, known));
    let values: Vec<TrialValues> = values.collect();
    let cells = roster::cells(&header.plan);
    let passes = passes::sort(header, &cells, &values);
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
        let arm = analysis.cells[0].arms.iter().find(|arm| arm.arm.label == label).expect("it");
        assert_eq!(arm.contrast.as_ref().map(|c| c.n as usize), Some(used));
    }
}
