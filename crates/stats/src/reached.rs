//! How far a stored run came, for going on with it.

use iolens_model::run::RunHeader;

use crate::analyse::analyse_values;
use crate::passes;
use crate::stopping::PassSummary;
use crate::values::TrialValues;

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
