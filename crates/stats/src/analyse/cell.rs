//! One cell: its arms' figures, contrasts and status.

use std::collections::{BTreeMap, BTreeSet};

use iolens_model::arm::{Arm, Role};
use iolens_model::cell::Cell;
use iolens_model::latency::Histogram;
use iolens_model::outcome::Status;
use iolens_model::run::RunHeader;

use super::{limits, pairs, remarks};
use crate::analysis::{ArmAnalysis, CellAnalysis, Contrast, Limits};
use crate::contrast::{Measured, Pair};
use crate::figures;
use crate::interval::{Parts, count};
use crate::latency;
use crate::passes::Visits;
use crate::quantity::Quantity;
use crate::roster;
use crate::student::StudentTable;
use crate::tracks::{Point, Track};
use crate::values::{ArmValues, Refusal, TrialValues};
use crate::verdict::Context;

/// Multipliers for what is claimed against the baseline, and for that and all
/// pairs together.
pub(super) struct Tables {
    contrasts: StudentTable,
    pairs: StudentTable,
}

impl Tables {
    /// For a run with so many contrasts, and so many other pairs.
    pub(super) fn new(contrasts: u32, others: u32) -> Tables {
        Tables {
            contrasts: StudentTable::new(contrasts),
            pairs: StudentTable::new(contrasts.saturating_add(others)),
        }
    }
}

/// The trials of one cell.
pub(super) struct CellVisits<'a> {
    /// Those that the plan's contrasts rest on.
    pub(super) primary: Visits<'a>,
    /// Isolated trials beside shared ones; null where they are the primary.
    pub(super) isolated: Option<Visits<'a>>,
}

/// Trials whose numbers of an arm are used, with these.
pub(super) type Used<'a> = Vec<(&'a TrialValues, &'a ArmValues)>;

/// One arm of the cell before it is judged.
pub(super) struct Draft<'a> {
    pub(super) arm: &'a Arm,
    pub(super) used: Used<'a>,
    pub(super) standing: Standing,
    /// What decides in the cell, of the trials that the plan's contrasts rest on.
    pub(super) primary: Ratios,
    /// CPU time of the same trials; empty where none is compared.
    pub(super) cpu: Ratios,
    /// What decides, of isolated trials beside shared ones.
    pub(super) isolated: Option<Measured>,
    /// How the arm stands in the isolated trials beside the shared ones.
    pub(super) isolated_standing: Option<Standing>,
    /// What bounded its load, where it is a server.
    pub(super) limits: Limits,
}

/// One quantity of an arm against the baseline.
#[derive(Default)]
pub(super) struct Ratios {
    pub(super) measured: Option<Measured>,
    /// Typical ln ratios of the trials behind it, by what pairs them with those of
    /// other arms.
    pub(super) typical: Vec<(Partner, f64)>,
}

impl Ratios {
    fn of(pairs: Vec<(Partner, Pair)>, table: &mut StudentTable) -> Ratios {
        let typical = pairs.iter().map(|(partner, pair)| (*partner, pair.typical_ln)).collect();
        let pairs: Vec<Pair> = pairs.into_iter().map(|(_, pair)| pair).collect();
        Ratios { measured: Measured::of(&pairs, table), typical }
    }
}

/// What pairs the values of two arms: one trial, or in isolated plans one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Partner {
    Trial { pass: u32, position: u32 },
    Pass(u32),
}

impl Partner {
    /// Its pass.
    pub(super) fn of_pass(self) -> Partner {
        match self {
            Partner::Trial { pass, .. } | Partner::Pass(pass) => Partner::Pass(pass),
        }
    }
}

/// How an arm stands after all trials.
pub(super) struct Standing {
    /// Why the numbers, if any, cannot be used.
    pub(super) refusal: Option<Refusal>,
    /// Complete passes in which the arm ran and was refused.
    pub(super) passes_refused: u32,
    /// The latest of their reasons.
    pub(super) latest: Option<Refusal>,
}

/// The analysis of one cell, and the trials behind its usable arms.
pub(super) fn analyse(
    header: &RunHeader,
    cell: &Cell,
    arms: &[Arm],
    visits: &CellVisits<'_>,
    tables: &mut Tables,
) -> (CellAnalysis, Vec<Track>) {
    let table = &mut tables.contrasts;
    let decides = Quantity::of(cell);
    let alone = header.plan.measures_alone(cell);
    let drafts: Vec<Draft<'_>> =
        arms.iter().map(|arm| draft(cell, arm, visits, alone, table)).collect();
    let started = visits.primary.trials().iter();
    let started = started.filter(|trial| trial.pass > 0 && trial.status != Status::Skipped).count();
    let used: BTreeSet<*const TrialValues> =
        drafts.iter().flat_map(|draft| &draft.used).map(|(trial, _)| &raw const **trial).collect();
    let analysed: Vec<ArmAnalysis> =
        drafts.iter().map(|draft| arm_analysis(header, cell, draft, &drafts, table)).collect();
    let analysis = CellAnalysis {
        cell: cell.clone(),
        trials_used: count(used.len()),
        trials_started: count(started),
        notes: remarks::notes(header, cell, &drafts, &analysed),
        compared: decides,
        pairs: pairs::of(&drafts, |draft| &draft.primary, &mut tables.pairs),
        cpu_pairs: pairs::of(&drafts, |draft| &draft.cpu, &mut tables.pairs),
        arms: analysed,
    };
    (analysis, drafts.iter().filter_map(|draft| track(cell, draft)).collect())
}

/// The trials of an arm whose numbers can be used.
fn track(cell: &Cell, draft: &Draft<'_>) -> Option<Track> {
    let points: Vec<Point> =
        draft.used.iter().filter_map(|(trial, arm)| Point::of(trial, arm)).collect();
    let usable = draft.standing.refusal.is_none() && !points.is_empty();
    usable.then(|| Track { cell: cell.clone(), arm: draft.arm.clone(), points })
}

fn draft<'a>(
    cell: &Cell,
    arm: &'a Arm,
    visits: &CellVisits<'a>,
    isolate: bool,
    table: &mut StudentTable,
) -> Draft<'a> {
    let mut ratios = |visits: &Visits<'a>, used: &Used<'a>, quantity: Quantity, isolated: bool| {
        if !roster::has_contrast(arm) || !Quantity::all(cell).contains(&quantity) {
            return Ratios::default();
        }
        let pairs = match isolated {
            true => pairs_by_pass(visits, used, quantity),
            false => pairs_by_trial(used, quantity),
        };
        Ratios::of(pairs, table)
    };
    let decides = Quantity::of(cell);
    let used = visits.primary.used(&arm.label);
    let of_isolated = visits.isolated.as_ref().map(|visits| (visits, visits.used(&arm.label)));
    let draft = Draft {
        arm,
        standing: standing(&visits.primary, &arm.label, &used),
        primary: ratios(&visits.primary, &used, decides, isolate),
        cpu: Quantity::cpu_of(cell)
            .map_or_else(Ratios::default, |cpu| ratios(&visits.primary, &used, cpu, isolate)),
        isolated: of_isolated
            .as_ref()
            .and_then(|(visits, used)| ratios(visits, used, decides, true).measured),
        isolated_standing: of_isolated
            .as_ref()
            .map(|(visits, used)| standing(visits, &arm.label, used)),
        used,
        limits: Limits::default(),
    };
    Draft { limits: limits::of(&draft), ..draft }
}

/// Each trial holds the arm and its baseline.
fn pairs_by_trial(used: &[(&TrialValues, &ArmValues)], quantity: Quantity) -> Vec<(Partner, Pair)> {
    let pair = |(trial, arm): &(&TrialValues, &ArmValues)| {
        let partner = Partner::Trial { pass: trial.pass, position: trial.position };
        let pair = Pair {
            typical_ln: arm.typical(quantity)?,
            baseline: trial.baseline()?.parts(quantity)?,
            arm: arm.parts(quantity)?,
        };
        Some((partner, pair))
    };
    used.iter().filter_map(pair).collect()
}

/// Each trial holds one arm; the baseline's of the same pass is its partner, of servers
/// at the same rate.
fn pairs_by_pass(
    visits: &Visits<'_>,
    used: &[(&TrialValues, &ArmValues)],
    quantity: Quantity,
) -> Vec<(Partner, Pair)> {
    let met = |trial: &TrialValues, arm: &ArmValues| {
        let rate = arm.outcome.server.as_ref().and_then(|server| server.rate);
        (trial.pass, rate.map(f64::to_bits))
    };
    let baselines: BTreeMap<_, Parts> = visits
        .trials()
        .iter()
        .filter_map(|trial| trial.baseline())
        .map(|arm| arm.outcome.arm.label.as_str())
        .next()
        .map(|label| visits.used(label))
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(trial, arm)| Some((met(trial, arm), arm.parts(quantity)?)))
        .collect();
    let pair = |(trial, arm): &(&TrialValues, &ArmValues)| {
        let baseline = *baselines.get(&met(trial, arm))?;
        let arm = arm.parts(quantity)?;
        let typical_ln = ((baseline.over / baseline.under) / (arm.over / arm.under)).ln();
        Some((Partner::Pass(trial.pass), Pair { typical_ln, baseline, arm }))
    };
    used.iter().filter_map(pair).collect()
}

fn standing(visits: &Visits<'_>, label: &str, used: &[(&TrialValues, &ArmValues)]) -> Standing {
    let refusals: Vec<(u32, &Refusal)> = visits
        .trials()
        .iter()
        .filter_map(|trial| Some((trial.pass, refusal_in(trial, label)?)))
        .collect();
    let passes_used: BTreeSet<u32> = used.iter().map(|(trial, _)| trial.pass).collect();
    // Of a pass with several trials, the reason of the last one stays.
    let refused: BTreeMap<u32, &Refusal> = refusals
        .iter()
        .copied()
        .filter(|(pass, _)| visits.is_complete(*pass) && !passes_used.contains(pass))
        .collect();
    let latest = refused.values().next_back().copied();
    let refusal = if used.is_empty() {
        let last = refusals.last().map(|(_, refusal)| (*refusal).clone());
        Some(last.unwrap_or_else(|| never(visits, label)))
    } else {
        dropped(visits, label, &passes_used).or_else(|| mostly_refused(&refused, &passes_used))
    };
    Standing { refusal, passes_refused: count(refused.len()), latest: latest.cloned() }
}

fn refusal_in<'a>(trial: &'a TrialValues, label: &str) -> Option<&'a Refusal> {
    let arm = trial.arms.iter().find(|arm| arm.outcome.arm.label == label)?;
    arm.refusal.as_deref().or(trial.refusal.as_deref())
}

/// An arm in whose slices two workers died goes on no more, and what it had
/// measured until then is no comparison of a whole run.
fn dropped(visits: &Visits<'_>, label: &str, passes_used: &BTreeSet<u32>) -> Option<Refusal> {
    let failures: Vec<&Refusal> = visits
        .trials()
        .iter()
        .filter(|trial| trial.pass > 0)
        .filter_map(|trial| trial.arms.iter().find(|arm| arm.outcome.arm.label == label))
        .filter_map(|arm| arm.refusal.as_deref())
        .filter(|refusal| refusal.status == Status::Failed)
        .collect();
    let last = failures.last().filter(|_| failures.len() >= 2)?;
    if visits.last_complete().is_some_and(|pass| passes_used.contains(&pass)) {
        return None;
    }
    let reason = format!("dropped after {} failed trials: {}", failures.len(), last.reason);
    Some(Refusal { status: Status::Failed, reason })
}

/// Numbers of the few passes that no gate refused would be a selection.
fn mostly_refused(
    refused: &BTreeMap<u32, &Refusal>,
    passes_used: &BTreeSet<u32>,
) -> Option<Refusal> {
    let latest = refused.values().next_back().filter(|_| refused.len() > passes_used.len())?;
    let passes = refused.len() + passes_used.len();
    let reason = format!("{} of {passes} passes cannot be used: {}", refused.len(), latest.reason);
    Some(Refusal { status: Status::Invalid, reason })
}

fn never(visits: &Visits<'_>, label: &str) -> Refusal {
    let ran = visits.trials().iter().any(|trial| trial.pass > 0 && trial.usable(label).is_some());
    let reason =
        if ran { "measured in no complete pass" } else { "no trial of this arm was started" };
    Refusal { status: Status::Skipped, reason: reason.to_owned() }
}

fn arm_analysis(
    header: &RunHeader,
    cell: &Cell,
    draft: &Draft<'_>,
    drafts: &[Draft<'_>],
    table: &mut StudentTable,
) -> ArmAnalysis {
    let (decides, cpu) = (Quantity::of(cell), Quantity::cpu_of(cell));
    let refusal = draft.standing.refusal.as_ref();
    let isolated_refusal = draft.isolated_standing.as_ref().and_then(|s| s.refusal.as_ref());
    let mut judged = |quantity: Option<Quantity>, of: Part, refusal: Option<&Refusal>| {
        judged(header, quantity?, draft, drafts, of, refusal, table)
    };
    let arms = of_own_rate(&draft.used);
    let latency: Option<Vec<&Histogram>> =
        arms.iter().map(|arm| arm.outcome.latency.as_ref()).collect();
    let facts = header.primitives.iter().find(|facts| facts.id == draft.arm.primitive);
    ArmAnalysis {
        family: facts.and_then(|facts| facts.family),
        condition: facts.and_then(|facts| facts.condition),
        arm: draft.arm.clone(),
        status: refusal.map_or(Status::Ok, |refusal| refusal.status),
        reason: refusal.map(|refusal| refusal.reason.clone()),
        contrast: judged(Some(decides), |draft| draft.primary.measured.as_ref(), refusal),
        cpu_contrast: judged(cpu, |draft| draft.cpu.measured.as_ref(), refusal),
        isolated: judged(Some(decides), |draft| draft.isolated.as_ref(), isolated_refusal),
        figures: figures::of(&arms, table),
        copies_sender: figures::copies(&arms, |outcome| outcome.copies_sender),
        copies_end_to_end: figures::copies(&arms, |outcome| outcome.copies_end_to_end),
        zerocopy: figures::zerocopy(&arms),
        mapped_share: figures::mapped_share(&arms),
        multishot: figures::multishot(&arms),
        latency: latency.and_then(|trials| latency::of(&trials, table)),
        server: figures::servers::of(&arms, draft.limits.clone(), table),
    }
}

/// The trials that an arm's own figures are of: of servers that were offered two rates,
/// those at the rate of its own kind. A mean of both would be a figure of neither.
fn of_own_rate<'a>(used: &[(&TrialValues, &'a ArmValues)]) -> Vec<&'a ArmValues> {
    let is_own =
        |arm: &&ArmValues| arm.outcome.server.as_ref().is_none_or(|server| !server.at_others_rate);
    let all: Vec<&ArmValues> = used.iter().map(|(_, arm)| *arm).collect();
    let own: Vec<&ArmValues> = all.iter().copied().filter(is_own).collect();
    if own.is_empty() { all } else { own }
}

/// One of the contrasts of a draft.
type Part = for<'a> fn(&'a Draft<'_>) -> Option<&'a Measured>;

/// A contrast of an arm with its verdict, beside the self-check's of the same kind.
fn judged(
    header: &RunHeader,
    quantity: Quantity,
    draft: &Draft<'_>,
    drafts: &[Draft<'_>],
    of: Part,
    refusal: Option<&Refusal>,
    table: &mut StudentTable,
) -> Option<Contrast> {
    let with = |role: Role| drafts.iter().find(|draft| draft.arm.role == role);
    let limits = with(Role::Baseline).map(|baseline| &baseline.limits);
    let unranked = limits.and_then(|limits| limits::unranked(quantity, &draft.limits, limits));
    let context = Context {
        role: draft.arm.role,
        delta: header.plan.delta,
        floor: with(Role::SelfCheck).and_then(of).map(|measured| &measured.typical),
        invalid: refusal.map(|refusal| refusal.reason.as_str()),
        unranked: unranked.as_deref(),
    };
    Some(of(draft)?.clone().judged(&context, table))
}
