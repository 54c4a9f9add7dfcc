//! The models of a run of `server` as they are ranked: under one load, at one rate.

use std::borrow::Cow;

use iolens_model::arm::Role;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::server::ServerSetting;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Contrast, Kind};

use crate::arms::labelled;
use crate::number::InWords;
use crate::parts::{self, Part};
use crate::{number, words};

/// Models under one load that can be ranked together.
pub(crate) struct View {
    /// What they make for each connection; `None` where all are together.
    pub(crate) kind: Option<Kind>,
    /// With the baseline at their rate.
    pub(crate) cell: CellAnalysis,
    /// `16 connections, 50% of the slowest's rate: 32800 requests/s`.
    pub(crate) load: String,
    pub(crate) is_open: bool,
}

impl View {
    /// Its load, and its kind where the kinds have rates of their own.
    pub(crate) fn heading(&self) -> String {
        format!("{}{}", self.load, self.of_kind())
    }

    /// What follows the words for its load.
    pub(crate) fn of_kind(&self) -> String {
        let kind = self.one_per_connection().map(kind_words);
        kind.or_empty(|words| format!(", {words}"))
    }

    pub(crate) fn one_per_connection(&self) -> Option<bool> {
        self.kind.map(|kind| kind == Kind::Alone)
    }
}

/// What is said of models that make a process or a thread for each connection, and of others.
pub(crate) fn kind_words(one_per_connection: bool) -> &'static str {
    if one_per_connection { "one process or thread per connection" } else { "shared threads" }
}

/// Every load of a run, first those at a fixed rate, where all models do the same work.
pub(crate) fn views(run: &Run, analysis: &Analysis) -> Vec<View> {
    let (open, closed): (Vec<&CellAnalysis>, Vec<&CellAnalysis>) =
        analysis.cells.iter().partition(|cell| is_open(cell));
    let all = open.into_iter().chain(closed);
    all.flat_map(|cell| views_of(run, analysis, cell)).collect()
}

/// Those of one setting.
pub(crate) fn views_of(run: &Run, analysis: &Analysis, cell: &CellAnalysis) -> Vec<View> {
    let setting = words::subject(&run.header, &cell.cell);
    let view = |(kind, own): (Option<Kind>, CellAnalysis)| {
        let rate = analysis.kinds.offered(&cell.cell, kind).filter(|_| is_open(cell));
        let load = match rate {
            Some((least, most)) => {
                let rate = number::extent(three_digits(least), three_digits(most));
                format!("{setting}: {rate} requests/s")
            }
            None => format!("{setting}: each as fast as it can"),
        };
        View { kind, cell: own, load, is_open: is_open(cell) }
    };
    ranked_together(analysis, cell).into_iter().map(view).collect()
}

/// The models of a cell that can be ranked together, cost against cost: all, or where
/// kinds were offered rates of their own each kind with the baseline at its rate.
fn ranked_together(analysis: &Analysis, cell: &CellAnalysis) -> Vec<(Option<Kind>, CellAnalysis)> {
    let of_kind = &analysis.kinds.of_kind;
    if of_kind.is_empty() || !is_open(cell) {
        return vec![(None, cell.shown())];
    }
    let split = |(kind, _): &(Kind, Analysis)| {
        let own = at_rate(analysis, cell, *kind);
        let has = |arm: &ArmAnalysis| arm.arm.role == Role::Compared && arm.status == Status::Ok;
        own.arms.iter().any(has).then_some((Some(*kind), own))
    };
    of_kind.iter().filter_map(split).collect()
}

/// The models of one kind in a cell that offers a rate, with the baseline at the rate of the kind.
fn at_rate(analysis: &Analysis, cell: &CellAnalysis, kind: Kind) -> CellAnalysis {
    let alone = analysis.kinds.of_kind.iter().find(|(known, _)| *known == kind);
    let found = alone.and_then(|(_, own)| own.cells.iter().find(|own| own.cell == cell.cell));
    let of = |arm: &ArmAnalysis| -> Option<ArmAnalysis> {
        match arm.arm.role {
            Role::Compared => (analysis.kinds.kind(&arm.arm) == kind).then(|| arm.clone()),
            _ => labelled(found?, &arm.arm.label).cloned(),
        }
    };
    let arms = cell.arms.iter().filter_map(of).collect();
    CellAnalysis { arms, ..cell.clone() }.shown()
}

/// The parts of a run that have figures of their own, each with its analysis.
pub(crate) fn shown(analysis: &Analysis) -> Vec<(Option<Part>, Cow<'_, Analysis>)> {
    let parts = parts::of_models(analysis, |arm| analysis.kinds.kind(arm) == Kind::Alone);
    if parts.is_empty() {
        return vec![(None, Cow::Borrowed(analysis))];
    }
    let of = |part: Part| {
        let kind = if part.id == parts::ALONE { Kind::Alone } else { Kind::Shared };
        let mut own = part.of(analysis);
        if !analysis.kinds.of_kind.is_empty() {
            for cell in own.cells.iter_mut().filter(|cell| is_open(cell)) {
                *cell = at_rate(analysis, cell, kind);
            }
        }
        (Some(part), Cow::Owned(own))
    };
    parts.into_iter().map(of).collect()
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
