//! The study `server`: what its sentences, tables and figures have in common. A request
//! costs a server CPU time; how many there are per second comes second.

use std::borrow::Cow;
use std::collections::BTreeSet;

use iolens_model::arm::{Arm, ArmOutcome, Role};
use iolens_model::outcome::{Status, TrialOutcome};
use iolens_model::run::Run;
use iolens_model::server::{MAKES, MAKES_NOTHING, ServerSetting};
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Contrast, Estimate, Interval};
use iolens_stats::{TrialValues, analyse_values};

use crate::arm_facts;
use crate::figure::metric::Metric;
use crate::parts::{self, Part};

mod counters;
mod cpus;
mod decision;
mod metrics;
pub(crate) mod searches;
#[cfg(test)]
pub(crate) mod searches_tests;
mod sentences;
mod tables;
#[cfg(test)]
pub(crate) mod tests;
mod why;

pub(crate) use self::counters::{counters, per_request};
pub(crate) use self::cpus::{KINDS as CPU_KINDS, Watched, by_end, use_of_cpus, watched};
pub(crate) use self::decision::decision;
pub(crate) use self::metrics::{COST, COUNTERS, LATENCY, THROUGHPUT};
pub(crate) use self::sentences::sentences;
pub(crate) use self::tables::{by_cost, further, lines, offered, reading};

/// The two kinds of models, each of which is offered a rate of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Connections share threads.
    Shared,
    /// Each connection has a process or a thread.
    Alone,
}

impl Kind {
    /// `a process or a thread for each connection`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Shared => "connections share threads",
            Kind::Alone => "a process or a thread for each connection",
        }
    }
}

/// The models of a run that make something for each connection, by their ids.
fn makers(run: &Run) -> BTreeSet<&str> {
    let facts = arm_facts::of(run, None);
    let makes = facts.iter().filter(|fact| fact.name == MAKES);
    let labels: Vec<&str> = makes
        .filter(|fact| fact.values.iter().any(|value| *value != MAKES_NOTHING))
        .map(|fact| fact.arm)
        .collect();
    let plan = run.header.plan.primitives.iter().map(String::as_str);
    plan.filter(|id| labels.contains(id)).collect()
}

/// What a trial that offers a rate is about; null where it has the baseline alone and
/// does not say.
fn kind_of(trial: &TrialOutcome, makers: &BTreeSet<&str>) -> Option<Kind> {
    let makes = |arm: &ArmOutcome| makers.contains(arm.arm.primitive.as_str());
    let mut compared = trial.arms.iter().filter(|arm| arm.arm.role == Role::Compared).peekable();
    let alone = match compared.peek() {
        Some(_) => compared.any(makes),
        // One that is measured by itself is offered the rate of its own kind or the other.
        None => {
            let arm = trial.arms.first().filter(|_| trial.isolated)?;
            makes(arm) != arm.server.as_ref()?.at_others_rate
        }
    };
    Some(if alone { Kind::Alone } else { Kind::Shared })
}

/// A run of servers by the kinds of its models: in cells that offer a rate the figures of
/// the baseline are those at the rate of the kind.
pub(crate) struct Kinds<'a> {
    run: &'a Run,
    analysis: &'a Analysis,
    makers: BTreeSet<&'a str>,
    /// Of the trials of one kind alone; empty where all models are of one.
    of_kind: Vec<(Kind, Analysis)>,
}

impl<'a> Kinds<'a> {
    pub(crate) fn of(run: &'a Run, analysis: &'a Analysis) -> Kinds<'a> {
        let makers = makers(run);
        let compared: Vec<&Arm> = run
            .trials
            .iter()
            .flat_map(|trial| &trial.arms)
            .map(|arm| &arm.arm)
            .filter(|arm| arm.role == Role::Compared)
            .collect();
        let has = |alone: bool| {
            compared.iter().any(|arm| makers.contains(arm.primitive.as_str()) == alone)
        };
        let is_open = analysis.cells.iter().any(is_open);
        let kinds: &[Kind] = match is_open && has(true) && has(false) {
            true => &[Kind::Shared, Kind::Alone],
            false => &[],
        };
        let one = |&kind: &Kind| {
            let own = run.trials.iter().filter(|trial| {
                trial.cell.server().is_some_and(ServerSetting::is_open_loop)
                    && kind_of(trial, &makers).is_none_or(|found| found == kind)
            });
            let values: Vec<TrialValues> =
                own.map(|trial| TrialValues::of(&run.header, trial)).collect();
            (kind, analyse_values(&run.header, &values))
        };
        let of_kind = kinds.iter().map(one).collect();
        Kinds { run, analysis, makers, of_kind }
    }

    fn kind(&self, arm: &Arm) -> Kind {
        match self.makers.contains(arm.primitive.as_str()) {
            true => Kind::Alone,
            false => Kind::Shared,
        }
    }

    /// The models of a cell that can be ranked together, cost against cost: all, or where
    /// kinds were offered rates of their own each kind with the baseline at its rate.
    pub(crate) fn cells(&self, cell: &CellAnalysis) -> Vec<(Option<Kind>, CellAnalysis)> {
        let split = |&kind: &Kind| {
            let own = self.at_rate(cell, kind);
            let has =
                |arm: &ArmAnalysis| arm.arm.role == Role::Compared && arm.status == Status::Ok;
            own.arms.iter().any(has).then_some((Some(kind), own))
        };
        match self.of_kind.is_empty() || !is_open(cell) {
            true => vec![(None, cell.clone())],
            false => self.of_kind.iter().filter_map(|(kind, _)| split(kind)).collect(),
        }
    }

    /// The models of one kind in a cell that offers a rate, with the baseline at its rate.
    fn at_rate(&self, cell: &CellAnalysis, kind: Kind) -> CellAnalysis {
        let alone = self.of_kind.iter().find(|(known, _)| *known == kind);
        let found = alone.and_then(|(_, own)| own.cells.iter().find(|own| own.cell == cell.cell));
        let of = |arm: &ArmAnalysis| -> Option<ArmAnalysis> {
            match arm.arm.role {
                Role::Compared => (self.kind(&arm.arm) == kind).then(|| arm.clone()),
                _ => found?.arms.iter().find(|own| own.arm.label == arm.arm.label).cloned(),
            }
        };
        CellAnalysis { arms: cell.arms.iter().filter_map(of).collect(), ..cell.clone() }
    }

    /// Requests per second that a kind was offered in a cell, over all its trials: the
    /// least and the most; null in a closed loop.
    pub(crate) fn offered(&self, cell: &CellAnalysis, kind: Option<Kind>) -> Option<(f64, f64)> {
        let own = self.run.trials.iter().filter(|trial| {
            let found = kind_of(trial, &self.makers);
            trial.pass > 0
                && trial.cell == cell.cell
                && (kind.is_none() || found.is_none() || found == kind)
        });
        let arms = own.flat_map(|trial| &trial.arms);
        crate::arms::span(arms.filter_map(|arm| arm.server.as_ref()?.rate))
    }

    /// The parts of the run that have figures of their own, each with its analysis.
    fn shown(&self) -> Vec<(Option<Part>, Cow<'a, Analysis>)> {
        let makes = |arm: &Arm| self.kind(arm) == Kind::Alone;
        let parts = parts::of_models(self.analysis, makes);
        if parts.is_empty() {
            return vec![(None, Cow::Borrowed(self.analysis))];
        }
        let of = |part: Part| {
            let kind = if part.id == parts::ALONE { Kind::Alone } else { Kind::Shared };
            let mut own = part.of(self.analysis);
            if !self.of_kind.is_empty() {
                for cell in own.cells.iter_mut().filter(|cell| is_open(cell)) {
                    *cell = self.at_rate(cell, kind);
                }
            }
            (Some(part), Cow::Owned(own))
        };
        parts.into_iter().map(of).collect()
    }
}

/// The parts of a run that have figures of their own, each with its analysis.
pub(crate) fn shown<'a>(
    run: &'a Run,
    analysis: &'a Analysis,
) -> Vec<(Option<Part>, Cow<'a, Analysis>)> {
    Kinds::of(run, analysis).shown()
}

/// Whether a cell offers a rate.
pub(crate) fn is_open(cell: &CellAnalysis) -> bool {
    cell.cell.server().is_some_and(ServerSetting::is_open_loop)
}

/// The contrast of what a request costs, server CPU time against server CPU time.
pub(crate) fn cost_contrast(arm: &ArmAnalysis) -> Option<&Contrast> {
    arm.cpu_contrast.as_ref()
}

/// The models of a cell that can be read: the baseline and those that are compared.
pub(crate) fn models(cell: &CellAnalysis) -> impl Iterator<Item = &ArmAnalysis> {
    let plays = |arm: &&ArmAnalysis| matches!(arm.arm.role, Role::Baseline | Role::Compared);
    cell.arms.iter().filter(plays)
}

/// A metric of a model in the unit that is shown.
pub(crate) fn read(metric: &Metric, arm: &ArmAnalysis) -> Option<Estimate> {
    let stored = (metric.read)(arm).filter(|_| arm.status == Status::Ok)?;
    let scaled = |v: f64| v / metric.divisor;
    let interval = stored.interval;
    let interval = interval.map(|i| Interval { low: scaled(i.low), high: scaled(i.high) });
    Some(Estimate { value: scaled(stored.value), interval, n: stored.n })
}
