//! Models of servers that make something for each connection, and those whose connections
//! share threads: each kind is offered a rate of its own, so that the trials of a cell
//! fall in two parts.

use std::collections::{BTreeMap, BTreeSet};

use iolens_model::arm::{Arm, Role};
use iolens_model::cell::Cell;
use iolens_model::run::RunHeader;
use iolens_model::server::{MAKES, MAKES_NOTHING, ServerSetting};

use crate::analysis::{Analysis, Kind, Kinds};
use crate::told::Told;
use crate::values::{ArmValues, TrialValues};

impl Kinds {
    /// Of the trials of a run, and their analysis; `analyse` has that of some of them.
    pub(crate) fn of(
        header: &RunHeader,
        trials: &[TrialValues],
        told: &Told,
        analysis: &Analysis,
        analyse: impl Fn(&[TrialValues]) -> Analysis,
    ) -> Kinds {
        if header.plan.server().is_none() {
            return Kinds::default();
        }
        let makers = makers(header, told);
        let compared = || {
            let arms = trials.iter().flat_map(|trial| &trial.arms).map(|arm| &arm.outcome.arm);
            arms.filter(|arm| arm.role == Role::Compared)
        };
        let has = |alone: bool| compared().any(|arm| makers.contains(&arm.primitive) == alone);
        let is_open = |cell: &Cell| cell.server().is_some_and(ServerSetting::is_open_loop);
        let any_open = analysis.cells.iter().any(|cell| is_open(&cell.cell));
        let kinds: &[Kind] = match any_open && has(true) && has(false) {
            true => &[Kind::Shared, Kind::Alone],
            false => &[],
        };
        let one = |&kind: &Kind| {
            let own = trials.iter().filter(|trial| {
                is_open(&trial.cell) && kind_of(trial, &makers).is_none_or(|found| found == kind)
            });
            (kind, analyse(&own.cloned().collect::<Vec<_>>()))
        };
        let of_kind = kinds.iter().map(one).collect();
        Kinds { of_kind, offered: offered(trials, &makers), makers }
    }

    /// The kind of a model.
    pub fn kind(&self, arm: &Arm) -> Kind {
        match self.makers.contains(&arm.primitive) {
            true => Kind::Alone,
            false => Kind::Shared,
        }
    }

    /// Requests per second that a kind was offered in a cell, over all its trials, or that
    /// all were: the least and the most; `None` in a closed loop.
    pub fn offered(&self, cell: &Cell, kind: Option<Kind>) -> Option<(f64, f64)> {
        let about = [None, Some(Kind::Shared), Some(Kind::Alone)];
        let wanted = about.into_iter().filter(|&of| kind.is_none() || of.is_none() || of == kind);
        let spans = wanted.filter_map(|of| self.offered.get(&(cell.clone(), of)).copied());
        spans.reduce(wider)
    }
}

/// The models of a run that make something for each connection, by their ids.
fn makers(header: &RunHeader, told: &Told) -> BTreeSet<String> {
    let makes = told.arm_facts.iter().filter(|fact| fact.name == MAKES);
    let labels: BTreeSet<&str> =
        makes.filter(|fact| fact.value != MAKES_NOTHING).map(|fact| fact.arm.as_str()).collect();
    let plan = header.plan.primitives.iter();
    plan.filter(|id| labels.contains(id.as_str())).cloned().collect()
}

/// What a trial that offers a rate is about: the kind of those that were compared at it. Where
/// nobody was, the baseline says whether the rate was its own kind's; where nobody was offered
/// anything, the kind of those that were to be compared. `None` where that is the baseline alone.
fn kind_of(trial: &TrialValues, makers: &BTreeSet<String>) -> Option<Kind> {
    let makes = |arm: &ArmValues| makers.contains(&arm.outcome.arm.primitive);
    let was_offered =
        |arm: &&ArmValues| arm.outcome.server.as_ref().is_some_and(|server| server.rate.is_some());
    let compared = || trial.arms.iter().filter(|arm| arm.outcome.arm.role == Role::Compared);
    let is_for_makers = |arm: &ArmValues| {
        let server = arm.outcome.server.as_ref();
        makes(arm) != server.is_some_and(|server| server.at_others_rate)
    };
    let any = |a: bool, b: bool| a || b;
    let alone = compared().filter(was_offered).map(makes).reduce(any);
    let alone = alone.or_else(|| trial.arms.iter().find(was_offered).map(is_for_makers));
    let alone = alone.or_else(|| compared().map(makes).reduce(any))?;
    Some(if alone { Kind::Alone } else { Kind::Shared })
}

fn offered(
    trials: &[TrialValues],
    makers: &BTreeSet<String>,
) -> BTreeMap<(Cell, Option<Kind>), (f64, f64)> {
    let mut spans = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.pass > 0) {
        let rates = trial.arms.iter().filter_map(|arm| arm.outcome.server.as_ref()?.rate);
        let Some(span) = rates.map(|rate| (rate, rate)).reduce(wider) else { continue };
        spans
            .entry(((*trial.cell).clone(), kind_of(trial, makers)))
            .and_modify(|known| *known = wider(*known, span))
            .or_insert(span);
    }
    spans
}

/// The span that holds both.
fn wider(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0.min(b.0), a.1.max(b.1))
}
