//! A run, trial by trial: what an analysis needs of each, what all of them told, and how far it
//! came. Slices are most of a run, so a reader of a stored one gives each trial here and lets it
//! go.

use std::sync::Arc;

use iolens_model::outcome::TrialOutcome;
use iolens_model::run::{Run, RunHeader};

use crate::analyse::{analyse_claims, analyse_values, whole};
use crate::analysis::Analysis;
use crate::passes;
use crate::quantity::Quantity;
use crate::stopping::PassSummary;
use crate::told::Told;
use crate::values::{Known, TrialValues};

/// Analyses a run.
///
/// Never fails: what cannot be used is listed with the reason, and an empty
/// run has cells without numbers.
pub fn analyse(run: &Run) -> Analysis {
    Fold::of(&run.header, &run.trials).analysis(&run.header)
}

/// Analyses a run of which somebody asks who is ahead by time and by CPU time: both answers
/// hold together.
pub fn analyse_for_both(run: &Run) -> Analysis {
    let fold = Fold::of(&run.header, &run.trials);
    let analysis = analyse_claims(&run.header, fold.values(), |cell| Quantity::all(cell).len());
    Analysis { told: fold.told(), ..analysis }
}

/// The trials of a run so far.
#[derive(Debug, Clone, Default)]
pub struct Fold {
    values: Vec<TrialValues>,
    told: Arc<Told>,
    known: Known,
}

impl Fold {
    /// All of these trials of the run with this header, in the order in which they ran.
    pub fn of<'a>(header: &RunHeader, trials: impl IntoIterator<Item = &'a TrialOutcome>) -> Fold {
        let mut fold = Fold::default();
        trials.into_iter().for_each(|trial| fold.add(header, trial));
        fold
    }

    /// Adds the next trial.
    pub fn add(&mut self, header: &RunHeader, trial: &TrialOutcome) {
        self.values.push(TrialValues::sharing(header, trial, &mut self.known));
        // Copied only where an analysis still has it.
        Arc::make_mut(&mut self.told).add(trial);
    }

    /// Adds the trials of another fold, which ran after those of this one.
    pub fn append(&mut self, later: Fold) {
        self.values.extend(later.values);
        Arc::make_mut(&mut self.told).append(&later.told);
    }

    /// The values of each trial, in the order in which they ran.
    pub fn values(&self) -> &[TrialValues] {
        &self.values
    }

    /// What all of them told.
    pub(crate) fn told(&self) -> Arc<Told> {
        Arc::clone(&self.told)
    }

    /// The analysis of the trials so far; the header has the end of the run where it has
    /// ended.
    pub fn analysis(&self, header: &RunHeader) -> Analysis {
        whole(header, &self.values, &self.told)
    }
}

// How far a stored run came, for going on with it.

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
    use iolens_model::outcome::ArmFact;
    use iolens_model::reading::NotMeasured;

    use super::*;
    use crate::{analyse, fixture};

    #[test]
    fn what_trials_have_in_common_is_kept_once() {
        let mut run = fixture::passes(&[1.1, 0.9, 1.0]);
        let last = run.trials.len() - 1;
        run.trials[last].arms[0].reason = Some("it was told to".to_owned());
        let fold = Fold::of(&run.header, &run.trials);
        let [first, second, .., last] = fold.values() else { panic!("three passes") };
        assert!(Arc::ptr_eq(&first.cell, &second.cell) && Arc::ptr_eq(&first.cell, &last.cell));
        let same = |other: &TrialValues, arm: usize| {
            Arc::ptr_eq(&first.arms[arm].outcome, &other.arms[arm].outcome)
        };
        assert_eq!([same(second, 0), same(second, 1), same(last, 1)], [true; 3]);
        assert!(!same(last, 0), "it has a reason of its own");
        let alone = |trial| TrialValues::of(&run.header, trial);
        assert_eq!(fold.values(), run.trials.iter().map(alone).collect::<Vec<_>>());
    }

    #[test]
    fn what_trials_told_is_the_same_whenever_it_is_asked_for() {
        let mut run = fixture::passes(&[1.1, 0.9, 1.0]);
        let why = |why: &str| vec![NotMeasured { metric: "cycles".into(), why: why.into() }];
        for (trial, reason) in run.trials.iter_mut().zip(["none", "none", "busy"]) {
            trial.rx = None;
            let end = trial.tx.as_mut().expect("a sender");
            end.not_measured = why(reason);
            (end.bracket_ns, end.ring_bytes) = (7, Some(4096));
            let fact = |value: &str| ArmFact { arm: 1, name: "pipe".into(), value: value.into() };
            end.arm_facts = vec![fact(reason)];
        }
        let mut fold = Fold::default();
        let mut early = None;
        for trial in &run.trials {
            fold.add(&run.header, trial);
            early.get_or_insert_with(|| fold.analysis(&run.header));
        }
        let told = &fold.analysis(&run.header).told;
        assert_eq!(**told, Told::of(&run.trials));
        let reasons: Vec<&String> = told.not_measured["cycles"].iter().collect();
        assert_eq!(reasons, ["busy", "none"]);
        let values: Vec<&str> = told.arm_facts.iter().map(|fact| &*fact.value).collect();
        assert_eq!(values, ["none", "busy"]);
        assert_eq!((told.spent.reading_ns, told.rings.len(), told.settings.len()), (21, 1, 1));
        for at in 0..=run.trials.len() {
            let (first, rest) = run.trials.split_at(at);
            let mut halves = Fold::of(&run.header, first);
            halves.append(Fold::of(&run.header, rest));
            assert_eq!(halves.analysis(&run.header), fold.analysis(&run.header));
        }
        let early = early.expect("an analysis of the first").told;
        assert_eq!((early.spent.reading_ns, early.arm_facts.len()), (7, 1));
    }

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
