//! The study `server`: what its tables and figures have in common. A request costs a server CPU
//! time; how many there are per second comes second.

use std::borrow::Cow;

use iolens_model::arm::{Arm, Role};
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::server::ServerSetting;
use iolens_model::units::three_digits;
pub(crate) use iolens_stats::analysis::Kind;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Contrast, Estimate};

use crate::figure::metric::Metric;
use crate::parts::{self, Part};
use crate::words;

pub(crate) mod counters;
mod cpus;
#[cfg(test)]
mod group_tests;
mod metrics;
pub(crate) mod searches;
#[cfg(test)]
pub(crate) mod searches_tests;
pub(crate) mod tables;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use self::cpus::{KINDS as CPU_KINDS, Watched, by_end, use_of_cpus, watched};
pub(crate) use self::metrics::{COST, COUNTERS, LATENCY, THROUGHPUT};

/// Models under one load that can be ranked together.
pub(crate) struct View {
    /// What they make for each connection; `None` where all are together.
    pub(crate) kind: Option<Kind>,
    /// With the baseline at their rate.
    pub(crate) cell: CellAnalysis,
    /// `16 connections, offered 50% of the slowest: 32800 requests/s`.
    pub(crate) load: String,
    pub(crate) is_open: bool,
}

/// Every load of a run, first those at a fixed rate, where all models do the same work.
pub(crate) fn views(run: &Run, analysis: &Analysis) -> Vec<View> {
    let kinds = Kinds::of(analysis);
    let (open, closed): (Vec<&CellAnalysis>, Vec<&CellAnalysis>) =
        analysis.cells.iter().partition(|cell| is_open(cell));
    open.into_iter().chain(closed).flat_map(|cell| kinds.views(run, cell)).collect()
}

/// Those of one setting.
pub(crate) fn views_of(run: &Run, analysis: &Analysis, cell: &CellAnalysis) -> Vec<View> {
    Kinds::of(analysis).views(run, cell)
}

/// A run of servers by the kinds of its models: in cells that offer a rate the figures of
/// the baseline are those at the rate of the kind.
struct Kinds<'a> {
    analysis: &'a Analysis,
    /// Of the trials of one kind alone; empty where all models are of one.
    of_kind: &'a [(Kind, Analysis)],
}

impl<'a> Kinds<'a> {
    fn of(analysis: &'a Analysis) -> Kinds<'a> {
        Kinds { analysis, of_kind: &analysis.kinds.of_kind }
    }

    fn kind(&self, arm: &Arm) -> Kind {
        self.analysis.kinds.kind(arm)
    }

    fn views(&self, run: &Run, cell: &CellAnalysis) -> Vec<View> {
        let setting = words::subject(&run.header, &cell.cell);
        let view = |(kind, own): (Option<Kind>, CellAnalysis)| {
            let rate = self.offered(cell, kind).map(|(least, most)| {
                let (least, most) = (three_digits(least), three_digits(most));
                if least == most { most } else { format!("{least} to {most}") }
            });
            let load = match rate {
                Some(rate) if is_open(cell) => format!("{setting}: {rate} requests/s"),
                _ => format!("{setting}: each as fast as it can"),
            };
            View { kind, cell: own, load, is_open: is_open(cell) }
        };
        self.cells(cell).into_iter().map(view).collect()
    }

    /// The models of a cell that can be ranked together, cost against cost: all, or where
    /// kinds were offered rates of their own each kind with the baseline at its rate.
    fn cells(&self, cell: &CellAnalysis) -> Vec<(Option<Kind>, CellAnalysis)> {
        let split = |&kind: &Kind| {
            let own = self.at_rate(cell, kind);
            let has =
                |arm: &ArmAnalysis| arm.arm.role == Role::Compared && arm.status == Status::Ok;
            own.arms.iter().any(has).then_some((Some(kind), own))
        };
        match self.of_kind.is_empty() || !is_open(cell) {
            true => vec![(None, cell.shown())],
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
        let arms = cell.arms.iter().filter_map(of).collect();
        CellAnalysis { arms, ..cell.clone() }.shown()
    }

    /// Requests per second that a kind was offered in a cell, over all its trials: the
    /// least and the most; `None` in a closed loop.
    fn offered(&self, cell: &CellAnalysis, kind: Option<Kind>) -> Option<(f64, f64)> {
        self.analysis.kinds.offered(&cell.cell, kind)
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
pub(crate) fn shown(analysis: &Analysis) -> Vec<(Option<Part>, Cow<'_, Analysis>)> {
    Kinds::of(analysis).shown()
}

/// Whether the client was the limit of a rate.
pub(crate) fn is_bounded(arm: &ArmAnalysis) -> bool {
    arm.server.as_ref().is_some_and(|server| server.limits.client_busy.is_some())
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
    metric.of(arm)
}
