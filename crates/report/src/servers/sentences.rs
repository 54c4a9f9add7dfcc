//! What a run of `server` says: which model spends least on a request, which answers most
//! of them, what the counters say about each against the others, and who was left out.

use std::collections::BTreeMap;

use iolens_model::arm::Role;
use iolens_model::cell::Cell;
use iolens_model::outcome::Status;
use iolens_model::run::Run;
use iolens_model::units::three_digits;
use iolens_stats::analysis::{Analysis, ArmAnalysis, CellAnalysis, Contrast, Estimate, Saturated};
use iolens_stats::remark::Limited;

use super::why;
use super::{COST, Kind, Kinds, THROUGHPUT, is_open, models, read};
use crate::answers::{Kind as Sort, Sentence, not_ranked, shown};
use crate::figure::metric::Metric;
use crate::number::{ends, list, optional, percent, ratio};
use crate::remarks;
use crate::standing::{Candidate, Standing, standing};
use crate::words;

/// Every sentence of the study: what a request costs first, and where a rate is offered
/// before a closed loop, since there all models do the same work.
pub(crate) fn sentences(run: &Run, analysis: &Analysis) -> Vec<Sentence> {
    let kinds = Kinds::of(analysis);
    let speaker = Speaker { run, analysis, kinds: &kinds };
    let (open, closed): (Vec<&CellAnalysis>, Vec<&CellAnalysis>) =
        analysis.cells.iter().partition(|cell| is_open(cell));
    let mut out = Vec::new();
    out.extend(open.iter().chain(&closed).flat_map(|cell| speaker.cost(cell)));
    out.extend(closed.iter().map(|cell| speaker.throughput(cell)));
    out.extend(super::searches::sentences(run, analysis));
    out.extend(open.iter().chain(&closed).flat_map(|cell| why::sentences(run, &kinds, cell)));
    out.extend(why::not_counted(analysis));
    out.extend(left_out(run, analysis));
    out
}

struct Speaker<'a> {
    run: &'a Run,
    analysis: &'a Analysis,
    kinds: &'a Kinds<'a>,
}

/// What is said of a quantity: its words, and how it is read.
struct Quantity {
    /// `cheapest per request`.
    best: &'static str,
    /// `server CPU per request`, of a model that is compared with none.
    alone: &'static str,
    /// `least server CPU per request`.
    lowest: &'static str,
    metric: Metric,
    /// `µs of server CPU`.
    unit: &'static str,
    /// `as cheap as`.
    than: &'static str,
    /// Why a model is not ranked by it; null where it is.
    unranked: fn(&ArmAnalysis) -> Option<Limited>,
    /// What is said of a model that is not.
    floor: fn(&ArmAnalysis, &str) -> String,
}

const CPU: Quantity = Quantity {
    best: "cheapest per request",
    alone: "server CPU per request",
    lowest: "least server CPU per request in this run",
    metric: COST,
    unit: "µs of server CPU",
    than: "as cheap as",
    unranked: |arm| arm.server.as_ref()?.limits.rate_not_kept,
    floor: |arm, why| format!("{} ({why})", arm.arm.label),
};

const RATE: Quantity = Quantity {
    best: "most requests per second",
    alone: "requests per second",
    lowest: "most requests per second in this run",
    metric: THROUGHPUT,
    unit: "per second",
    than: "as many as",
    unranked: |arm| arm.server.as_ref()?.limits.client_busy,
    floor: |arm, why| {
        let rate = read(&THROUGHPUT, arm).map(|rate| rate.value);
        format!("{} ≥ {} per second ({why})", arm.arm.label, optional(rate))
    },
};

impl Speaker<'_> {
    /// What a request costs in a cell, at each rate that was offered.
    fn cost(&self, cell: &CellAnalysis) -> Vec<Sentence> {
        let subject = words::subject(&self.run.header, &cell.cell);
        let one = |(kind, view): (Option<Kind>, CellAnalysis)| {
            let view = view.by_cpu();
            let at = self.offered(cell, kind);
            let claim = self.claim(&CPU, &view);
            let subject = format!("{subject}{at}");
            Sentence::about(self.run, Sort::Headline, subject, &format!("{claim}."))
        };
        self.kinds.cells(cell).into_iter().map(one).collect()
    }

    /// `, 12300 requests/s`.
    fn offered(&self, cell: &CellAnalysis, kind: Option<Kind>) -> String {
        let rate = self.kinds.offered(cell, kind).map(super::tables::rate_words);
        let rate = rate.map_or_else(String::new, |rate| format!(" ({rate} requests/s)"));
        let kind = kind.map_or_else(String::new, |kind| format!(", {}", kind.name()));
        format!("{rate}{kind}")
    }

    fn throughput(&self, cell: &CellAnalysis) -> Sentence {
        let subject = words::subject(&self.run.header, &cell.cell);
        let saturated = saturated(cell);
        let claim = format!("{}{saturated}.", self.claim(&RATE, cell));
        Sentence::about(self.run, Sort::Answer, subject, &claim)
    }

    /// Who is best among the models that can be ranked, and who cannot be.
    fn claim(&self, of: &Quantity, cell: &CellAnalysis) -> String {
        let (ranked, unranked): (Vec<_>, Vec<_>) =
            cell.arms.iter().cloned().partition(|arm| (of.unranked)(arm).is_none());
        let view = CellAnalysis { arms: ranked, ..cell.clone() };
        let mut without: Vec<String> = unranked
            .iter()
            .filter(|arm| arm.arm.role != Role::SelfCheck && arm.status == Status::Ok)
            .filter_map(|arm| Some((of.floor)(arm, &remarks::limited(&(of.unranked)(arm)?))))
            .collect();
        without.extend(not_ranked(&view));
        let is_baseline = |arm: &ArmAnalysis| arm.arm.role == Role::Baseline;
        let claim = match unranked.iter().any(is_baseline) {
            true => format!("{}: not ranked", of.best),
            false => self.among(of, &view),
        };
        match without.as_slice() {
            [] => claim,
            without => format!("{claim}; not ranked: {}", without.join(", ")),
        }
    }

    fn among(&self, of: &Quantity, cell: &CellAnalysis) -> String {
        let named = |candidate: &Candidate| self.named(of, cell, candidate);
        let rivals = |others: &[Candidate]| list(&others.iter().map(named).collect::<Vec<_>>());
        let claim = match standing(cell, self.analysis.delta) {
            Standing::Cheapest { best, nearest } => match best.contrast {
                Some(contrast) => {
                    format!("{}: {}, {}", of.best, named(&best), self.effect(of, contrast))
                }
                None => format!("{}: {}; next: {}", of.best, named(&best), named(&nearest)),
            },
            Standing::Tie { best, others } => format!(
                "{}: {} and {}, equal within δ = {}",
                of.best,
                named(&best),
                rivals(&others),
                percent(self.analysis.delta)
            ),
            Standing::Unseparated { best, others } => {
                format!("{}: {}{}", of.lowest, named(&best), self.open(of, cell, &best, &others))
            }
            Standing::NoInterval { best, nearest } => format!(
                "{}: {}; next: {}; one trial has no interval, so nothing is concluded",
                of.lowest,
                named(&best),
                named(&nearest)
            ),
            Standing::Alone(only) => format!("{}, nothing compared: {}", of.alone, named(&only)),
            Standing::Nothing(why) => return format!("{}: no answer: {why}", of.best),
        };
        format!("{claim}{}", words::trials(cell))
    }

    /// Who may be as good as the best.
    fn open(
        &self,
        of: &Quantity,
        cell: &CellAnalysis,
        best: &Candidate,
        others: &[Candidate],
    ) -> String {
        let effect = best.contrast.map(|contrast| format!(", {}", self.effect(of, contrast)));
        let named: Vec<String> = others.iter().map(|one| self.named(of, cell, one)).collect();
        let rivals = match named.len() {
            0..=3 => list(&named),
            _ => list(&others.iter().map(Candidate::shown).collect::<Vec<_>>()),
        };
        format!("{}; not separated from {rivals}", effect.unwrap_or_default())
    }

    /// `poll, 12.3 µs of server CPU [12.1, 12.5]`.
    fn named(&self, of: &Quantity, cell: &CellAnalysis, candidate: &Candidate) -> String {
        let arm = cell.arms.iter().find(|arm| arm.arm.label == candidate.label);
        match arm.and_then(|arm| read(&of.metric, arm)) {
            Some(value) => format!("{}, {}", candidate.shown(), said(value, of.unit)),
            None => candidate.shown(),
        }
    }

    /// `1.31× as cheap as epoll_lt (95 % interval 1.29–1.33)`.
    fn effect(&self, of: &Quantity, contrast: &Contrast) -> String {
        let baseline = &self.run.header.plan.baseline;
        let interval = contrast.pointwise;
        let interval = interval.map_or_else(String::new, |i| format!(" ({})", shown(i, contrast)));
        let (ratio, than) = (ratio(contrast.ratio), of.than);
        format!("{ratio}× {than} {baseline}{interval}")
    }
}

/// `; no time left: the server with poll and select, neither with prefork`.
fn saturated(cell: &CellAnalysis) -> String {
    const ALL: [(Saturated, &str); 4] = [
        (Saturated::Server, "the server"),
        (Saturated::Client, "the client"),
        (Saturated::Both, "both ends"),
        (Saturated::Neither, "neither end"),
    ];
    let with = |(which, name): &(Saturated, &str)| {
        let own = |arm: &&ArmAnalysis| {
            arm.server.as_ref().is_some_and(|server| server.saturated == Some(*which))
        };
        let labels: Vec<String> = models(cell).filter(own).map(|a| a.arm.label.clone()).collect();
        (!labels.is_empty()).then(|| format!("{name} with {}", list(&labels)))
    };
    let parts: Vec<String> = ALL.iter().filter_map(with).collect();
    if parts.is_empty() { String::new() } else { format!("; saturated: {}", parts.join(", ")) }
}

/// `12.3 µs of server CPU [12.1, 12.5]`.
fn said(value: Estimate, unit: &str) -> String {
    let interval = value.interval.map(|interval| format!(" {}", ends(interval, three_digits)));
    format!("{} {unit}{}", three_digits(value.value), interval.unwrap_or_default())
}

/// Models without numbers, by the reason: in which cells.
fn left_out(run: &Run, analysis: &Analysis) -> Vec<Sentence> {
    let mut by_reason: BTreeMap<(&str, &str), BTreeMap<&str, Vec<&Cell>>> = BTreeMap::new();
    for cell in &analysis.cells {
        let without = |arm: &&ArmAnalysis| arm.status != Status::Ok;
        for arm in models(cell).filter(without) {
            let why = arm.reason.as_deref().unwrap_or("no reason was stored");
            let cells = by_reason.entry((arm.status.word(), why)).or_default();
            cells.entry(arm.arm.label.as_str()).or_default().push(&cell.cell);
        }
    }
    let of = |((status, why), models): ((&str, &str), BTreeMap<&str, Vec<&Cell>>)| {
        let model = |(label, cells): (&str, Vec<&Cell>)| {
            if cells.len() == analysis.cells.len() {
                return label.to_owned();
            }
            let cells = cells.iter().map(|cell| words::subject(&run.header, cell));
            format!("{label} ({})", cells.collect::<Vec<_>>().join("; "))
        };
        let models: Vec<String> = models.into_iter().map(model).collect();
        let text = format!("Without numbers: {}: {status}: {why}.", list(&models));
        Sentence::plain(Sort::Caution, text)
    };
    by_reason.into_iter().map(of).collect()
}
