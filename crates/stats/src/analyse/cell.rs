//! One cell: its arms' figures, contrasts and status.

use std::collections::{BTreeMap, BTreeSet};

use iolens_model::arm::{Arm, Role};
use iolens_model::cell::Cell;
use iolens_model::outcome::Status;
use iolens_model::reading::Histogram;
use iolens_model::run::RunHeader;

use super::draft::{CellVisits, Check, Draft, Partner, Ratios, Standing};
use super::{pairs, remarks, unranked};
use crate::analysis::{ArmAnalysis, CellAnalysis, Contrast, GroupCheck};
use crate::contrast::{Measured, Pair};
use crate::drift::Series;
use crate::figures;
use crate::interval::{Parts, count};
use crate::latency;
use crate::passes::{Used, Visits};
use crate::quantity::Quantity;
use crate::remark::UnequalSlices;
use crate::remark::{Unusable, VerdictReason};
use crate::roster;
use crate::roster::Groups;
use crate::roster::Track;
use crate::student::StudentTable;
use crate::values::{ArmValues, Refusal, TrialValues};
use crate::verdict::Context;

/// The typical ln ratios of every contrast of the cell, by pass.
pub(super) fn series(
    header: &RunHeader,
    cell: &Cell,
    arms: &[Arm],
    visits: &CellVisits<'_>,
) -> Vec<Series> {
    let alone = header.plan.measures_alone(cell);
    let compared = arms.iter().filter(|arm| roster::has_contrast(arm));
    let compared: Vec<(&Arm, Used<'_>)> =
        compared.map(|arm| (arm, visits.primary.used(&arm.label))).collect();
    let mut all = Vec::new();
    for &quantity in Quantity::all(cell) {
        for (arm, used) in &compared {
            let pairs = pairs_of(cell, arm, &visits.primary, used, quantity, alone);
            let values = pairs.into_iter().map(|(partner, pair)| (partner, pair.typical_ln));
            all.push(by_pass(values));
        }
    }
    all
}

/// Of a pass with several values, their mean.
fn by_pass(values: impl Iterator<Item = (Partner, f64)>) -> Series {
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for (partner, value) in values {
        let sum = sums.entry(partner.pass()).or_default();
        *sum = (sum.0 + value, sum.1 + 1.0);
    }
    sums.into_iter().map(|(pass, (sum, n))| (pass, sum / n)).collect()
}

/// The analysis of one cell, and the trials behind its usable arms.
pub(super) fn analyse<'a>(
    header: &RunHeader,
    cell: &Cell,
    arms: &'a [Arm],
    visits: &CellVisits<'a>,
    table: &mut StudentTable,
) -> (CellAnalysis, Vec<Track<'a>>) {
    let decides = Quantity::of(cell);
    let alone = header.plan.measures_alone(cell);
    let drafts: Vec<Draft<'_>> =
        arms.iter().map(|arm| draft(cell, arm, visits, alone, table)).collect();
    let started = visits.primary.trials().iter();
    let started = started.filter(|trial| trial.pass > 0 && trial.status != Status::Skipped).count();
    let used: BTreeSet<*const TrialValues> =
        drafts.iter().flat_map(|draft| &draft.used).map(|(trial, _)| &raw const **trial).collect();
    let judge = Judge::of(header, cell, &drafts, &visits.groups);
    let analysed: Vec<ArmAnalysis> =
        drafts.iter().map(|draft| arm_analysis(&judge, draft, table)).collect();
    let checks = judge.checks(table);
    let analysis = CellAnalysis {
        cell: cell.clone(),
        trials_used: count(used.len()),
        trials_started: count(started),
        remarks: remarks::of_cell(header, cell, &drafts, &analysed, &checks),
        checks,
        compared: decides,
        pairs: pairs::of(&drafts, |draft| &draft.primary, table),
        cpu_pairs: pairs::of(&drafts, |draft| &draft.cpu, table),
        arms: analysed,
    };
    let usable = drafts.into_iter().filter(|draft| draft.standing.refusal.is_none());
    let tracks = usable.filter_map(|draft| Track::of(cell, draft.arm, draft.used));
    (analysis, tracks.collect())
}

fn draft<'a>(
    cell: &Cell,
    arm: &'a Arm,
    visits: &CellVisits<'a>,
    isolate: bool,
    table: &mut StudentTable,
) -> Draft<'a> {
    let mut ratios = |visits: &Visits<'a>, used: &Used<'a>, quantity: Quantity, isolated: bool| {
        Ratios::of(pairs_of(cell, arm, visits, used, quantity, isolated), table)
    };
    let decides = Quantity::of(cell);
    let used = visits.primary.used(&arm.label);
    let mut primary = |used: &Used<'a>, quantity| ratios(&visits.primary, used, quantity, isolate);
    let checks = match arm.role {
        Role::SelfCheck => Check::of_groups(cell, &used, &visits.groups, &mut primary),
        _ => Vec::new(),
    };
    let cpu = Quantity::cpu_of(cell);
    let (of_primary, of_cpu) = match checks.as_slice() {
        [] => {
            (primary(&used, decides), cpu.map_or_else(Ratios::default, |cpu| primary(&used, cpu)))
        }
        // What stands for the copy in the cell.
        checks => (
            Ratios::alone(Check::widest(checks, |check| check.primary.as_ref())),
            Ratios::alone(Check::widest(checks, |check| check.cpu.as_ref())),
        ),
    };
    let of_isolated = visits.isolated.as_ref().map(|visits| (visits, visits.used(&arm.label)));
    let stands = |visits: &Visits<'a>, used: &Used<'a>, isolated: bool| match isolated {
        true => standing_alone(visits, arm, used),
        false => standing(visits, &arm.label, used),
    };
    Draft {
        arm,
        standing: stands(&visits.primary, &used, isolate),
        primary: of_primary,
        cpu: of_cpu,
        checks,
        isolated: of_isolated
            .as_ref()
            .and_then(|(visits, used)| ratios(visits, used, decides, true).measured),
        isolated_standing: of_isolated.as_ref().map(|(visits, used)| stands(visits, used, true)),
        isolated_used: of_isolated.map(|(_, used)| used).unwrap_or_default(),
        used,
    }
}

/// What each trial says of an arm against the baseline; nothing of an arm that is not
/// compared, or of a quantity that is not.
fn pairs_of(
    cell: &Cell,
    arm: &Arm,
    visits: &Visits<'_>,
    used: &[(&TrialValues, &ArmValues)],
    quantity: Quantity,
    isolated: bool,
) -> Vec<(Partner, Pair)> {
    if !roster::has_contrast(arm) || !Quantity::all(cell).contains(&quantity) {
        return Vec::new();
    }
    match isolated {
        true => pairs_by_pass(visits, used, quantity),
        false => pairs_by_trial(visits, used, quantity),
    }
}

/// Each trial holds the arm and its baseline. Where the trial was run again and a gate refused
/// the arm then, the baseline's numbers are those of the second time, and the arm has no partner.
fn pairs_by_trial(
    visits: &Visits<'_>,
    used: &[(&TrialValues, &ArmValues)],
    quantity: Quantity,
) -> Vec<(Partner, Pair)> {
    let pair = |(trial, arm): &(&TrialValues, &ArmValues)| {
        let baseline = trial.baseline()?;
        if visits.has_again(trial, &baseline.outcome.arm.label) {
            return None;
        }
        let partner = Partner::Trial { pass: trial.pass, position: trial.position };
        let pair = Pair {
            typical_ln: arm.typical(quantity)?,
            baseline: baseline.parts(quantity)?,
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
    let met = |trial: &TrialValues, arm: &ArmValues| (trial.pass, rate(arm));
    let baselines: BTreeMap<_, Parts> = baseline_label(visits)
        .map(|label| visits.used(label))
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(trial, arm)| Some((met(trial, arm), arm.parts(quantity)?)))
        .collect();
    let pair = |(trial, arm): &(&TrialValues, &ArmValues)| {
        let baseline = *baselines.get(&met(trial, arm))?;
        let arm = arm.parts(quantity)?;
        let typical_ln = (baseline.ratio() / arm.ratio()).ln();
        Some((Partner::Pass(trial.pass), Pair { typical_ln, baseline, arm }))
    };
    used.iter().filter_map(pair).collect()
}

fn baseline_label<'a>(visits: &Visits<'a>) -> Option<&'a str> {
    let mut baselines = visits.trials().iter().filter_map(|trial| trial.baseline());
    baselines.next().map(|arm| arm.outcome.arm.label.as_str())
}

/// The rate that a server was offered.
fn rate(arm: &ArmValues) -> Option<u64> {
    arm.outcome.server.as_ref()?.rate.map(f64::to_bits)
}

/// The rates that an arm was offered.
fn rates(used: &[(&TrialValues, &ArmValues)]) -> BTreeSet<Option<u64>> {
    used.iter().map(|(_, arm)| rate(arm)).collect()
}

/// Whether a baseline stands beside an arm with these rates: of one at several rates only the
/// trials at the arm's own do.
fn is_beside(rates: &BTreeSet<Option<u64>>, baseline: &ArmValues) -> bool {
    rate(baseline).is_none_or(|rate| rates.contains(&Some(rate)))
}

/// How an arm stands that shares no trial with the baseline. What refuses the baseline refuses a
/// shared trial; here it would leave the arm as it is and pick the passes that it is compared in.
fn standing_alone(visits: &Visits<'_>, arm: &Arm, used: &[(&TrialValues, &ArmValues)]) -> Standing {
    let standing = standing(visits, &arm.label, used);
    let Some(label) = baseline_label(visits).filter(|_| roster::has_contrast(arm)) else {
        return standing;
    };
    let own = rates(used);
    let is_beside = |trial: &TrialValues| trial.baseline().is_none_or(|arm| is_beside(&own, arm));
    let mut beside = visits.used(label);
    beside.retain(|(trial, _)| is_beside(trial));
    let of_baseline = standing_among(visits, label, &beside, is_beside).refusal;
    Standing { of_baseline, ..standing }
}

fn standing(visits: &Visits<'_>, label: &str, used: &[(&TrialValues, &ArmValues)]) -> Standing {
    standing_among(visits, label, used, |_| true)
}

/// The same by some of the trials.
fn standing_among(
    visits: &Visits<'_>,
    label: &str,
    used: &[(&TrialValues, &ArmValues)],
    is_among: impl Fn(&TrialValues) -> bool,
) -> Standing {
    let trials: Vec<&TrialValues> =
        visits.trials().iter().copied().filter(|trial| is_among(trial)).collect();
    let refusals: Vec<(u32, &Refusal)> =
        trials.iter().filter_map(|trial| Some((trial.pass, refusal_in(trial, label)?))).collect();
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
        Some(last.unwrap_or_else(|| never(&trials, label)))
    } else {
        dropped((visits, &trials), label, &passes_used)
            .or_else(|| mostly_refused(&refused, &passes_used))
    };
    let passes_refused = count(refused.len());
    Standing { refusal, passes_refused, latest: latest.cloned(), of_baseline: None }
}

fn refusal_in<'a>(trial: &'a TrialValues, label: &str) -> Option<&'a Refusal> {
    let arm = trial.arms.iter().find(|arm| arm.outcome.arm.label == label)?;
    arm.refusal.as_deref().or(trial.refusal.as_deref())
}

/// An arm in whose slices two workers died goes on no more, and what it had
/// measured until then is no comparison of a whole run.
fn dropped(
    (visits, trials): (&Visits<'_>, &[&TrialValues]),
    label: &str,
    passes_used: &BTreeSet<u32>,
) -> Option<Refusal> {
    let failures: Vec<&Refusal> = trials
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
    Some(Refusal { status: Status::Failed, reason, check: last.check })
}

/// Numbers of the few passes that no gate refused would be a selection.
fn mostly_refused(
    refused: &BTreeMap<u32, &Refusal>,
    passes_used: &BTreeSet<u32>,
) -> Option<Refusal> {
    let latest = refused.values().next_back().filter(|_| refused.len() > passes_used.len())?;
    let passes = refused.len() + passes_used.len();
    let reason = format!("{} of {passes} passes cannot be used: {}", refused.len(), latest.reason);
    Some(Refusal { status: Status::Invalid, reason, check: latest.check })
}

fn never(trials: &[&TrialValues], label: &str) -> Refusal {
    let ran = trials.iter().any(|trial| trial.pass > 0 && trial.usable(label).is_some());
    let reason =
        if ran { "measured in no complete pass" } else { "no trial of this arm was started" };
    Refusal { status: Status::Skipped, reason: reason.to_owned(), check: None }
}

fn arm_analysis(judge: &Judge<'_>, draft: &Draft<'_>, table: &mut StudentTable) -> ArmAnalysis {
    let (decides, cpu) = (Quantity::of(judge.cell), Quantity::cpu_of(judge.cell));
    let refusal = draft.standing.refusal.as_ref();
    let unequal = judge.unequal(draft, |draft| &draft.used);
    let primary = Ground {
        measured: draft.primary.measured.as_ref(),
        floor: judge.floor(draft, decides),
        standing: Some(&draft.standing),
        unequal,
    };
    let of_cpu = Ground {
        measured: draft.cpu.measured.as_ref(),
        floor: judge.floor(draft, Quantity::Cpu),
        ..primary
    };
    let isolated = Ground {
        measured: draft.isolated.as_ref(),
        floor: judge.copy.and_then(|copy| copy.isolated.as_ref()),
        standing: draft.isolated_standing.as_ref(),
        unequal: judge.unequal(draft, |draft| &draft.isolated_used),
    };
    let arms = of_own_rate(&draft.used);
    let latency: Option<Vec<(u32, &Histogram)>> =
        arms.iter().map(|(pass, arm)| Some((*pass, arm.outcome.latency.as_ref()?))).collect();
    let of_arms: Vec<&ArmValues> = arms.iter().map(|(_, arm)| *arm).collect();
    let facts = judge.header.primitives.iter().find(|facts| facts.id == draft.arm.primitive);
    ArmAnalysis {
        family: facts.map(|facts| facts.family),
        condition: facts.and_then(|facts| facts.condition),
        arm: draft.arm.clone(),
        status: refusal.map_or(Status::Ok, |refusal| refusal.status),
        reason: refusal.map(|refusal| refusal.reason.clone()),
        check: refusal.and_then(|refusal| refusal.check),
        contrast: judge.contrast(draft, Some(decides), primary, table),
        cpu_contrast: judge.contrast(draft, cpu, of_cpu, table),
        isolated: judge.contrast(draft, Some(decides), isolated, table),
        unequal: unequal
            .filter(|_| refusal.is_none() && roster::has_contrast(draft.arm))
            .and_then(|slices| unranked::remark(slices, judge.header.plan.delta)),
        figures: figures::of(&arms, table),
        copies_sender: figures::copies(&of_arms, |outcome| outcome.copies_sender),
        copies_end_to_end: figures::copies(&of_arms, |outcome| outcome.copies_end_to_end),
        zerocopy: figures::zerocopy(&of_arms),
        mapped_share: figures::mapped_share(&of_arms),
        multishot: figures::multishot(&of_arms),
        latency: latency.and_then(|trials| latency::of(&trials, table)),
        server: figures::servers::of(&arms, unranked::limits(&of_arms), table),
    }
}

/// The trials that an arm's own figures are of, by pass: of servers that were offered two rates,
/// those at the rate of its own kind. A mean of both would be a figure of neither.
fn of_own_rate<'a>(used: &Used<'a>) -> Vec<(u32, &'a ArmValues)> {
    let is_own = |(_, arm): &(u32, &ArmValues)| {
        arm.outcome.server.as_ref().is_none_or(|server| !server.at_others_rate)
    };
    let mut all: Vec<(u32, &ArmValues)> =
        used.iter().map(|(trial, arm)| (trial.pass, *arm)).collect();
    if all.iter().any(is_own) {
        all.retain(is_own);
    }
    all.sort_by_key(|(pass, _)| *pass);
    all
}

/// What a contrast rests on.
#[derive(Clone, Copy)]
struct Ground<'a> {
    measured: Option<&'a Measured>,
    /// What the copy of the baseline shows in the same trials.
    floor: Option<&'a Measured>,
    /// How the arm stands in the same trials.
    standing: Option<&'a Standing>,
    /// Of the same trials.
    unequal: Option<UnequalSlices>,
}

/// Why a comparison with the baseline cannot be used; `None` where nothing keeps it from that.
fn unusable(standing: &Standing) -> Option<VerdictReason> {
    let told = |refusal: &Refusal| Unusable {
        status: refusal.status,
        check: refusal.check,
        reason: refusal.reason.clone(),
    };
    let own = standing.refusal.as_ref().map(|refusal| VerdictReason::Unusable(told(refusal)));
    own.or_else(|| Some(VerdictReason::BaselineUnusable(told(standing.of_baseline.as_ref()?))))
}

/// What all arms of a cell are judged beside.
struct Judge<'a> {
    header: &'a RunHeader,
    cell: &'a Cell,
    groups: &'a Groups,
    baseline: Option<&'a Draft<'a>>,
    /// The copy of the baseline.
    copy: Option<&'a Draft<'a>>,
}

impl<'a> Judge<'a> {
    fn of(
        header: &'a RunHeader,
        cell: &'a Cell,
        drafts: &'a [Draft<'a>],
        groups: &'a Groups,
    ) -> Judge<'a> {
        let with = |role: Role| drafts.iter().find(|draft| draft.arm.role == role);
        let (baseline, copy) = (with(Role::Baseline), with(Role::SelfCheck));
        Judge { header, cell, groups, baseline, copy }
    }

    /// The copy that shared the trials of an arm; the widest one for an arm of no group.
    fn floor(&self, draft: &Draft<'_>, quantity: Quantity) -> Option<&'a Measured> {
        let of = match quantity == Quantity::of(self.cell) {
            true => |check: &'a Check| check.primary.as_ref(),
            false => |check: &'a Check| check.cpu.as_ref(),
        };
        let checks = &self.copy?.checks;
        let own = self.groups.of_label(&draft.arm.label).and_then(|group| checks.get(group));
        own.map_or_else(|| Check::widest(checks, of), of)
    }

    /// How unlike the baseline's the slices of an arm are, in some of the trials of both.
    fn unequal(
        &self,
        draft: &Draft<'a>,
        trials: impl for<'d> Fn(&'d Draft<'a>) -> &'d Used<'a>,
    ) -> Option<UnequalSlices> {
        unranked::unequal_slices(trials(draft), trials(self.baseline?))
    }

    /// What bounded the load on a server, or on the baseline at its rates.
    fn limited(&self, draft: &Draft<'_>, quantity: Quantity) -> Option<VerdictReason> {
        self.cell.server()?;
        let own: Vec<&ArmValues> = draft.used.iter().map(|(_, arm)| *arm).collect();
        let rates = rates(&draft.used);
        let mut beside: Vec<&ArmValues> = self.baseline?.used.iter().map(|(_, arm)| *arm).collect();
        beside.retain(|arm| is_beside(&rates, arm));
        unranked::by_limits(quantity, &unranked::limits(&own), &unranked::limits(&beside))
    }

    /// A contrast with its verdict.
    fn contrast(
        &self,
        draft: &Draft<'_>,
        quantity: Option<Quantity>,
        ground: Ground<'_>,
        table: &mut StudentTable,
    ) -> Option<Contrast> {
        let delta = self.header.plan.delta;
        let unranked =
            self.limited(draft, quantity?).or_else(|| unranked::by_slices(ground.unequal?, delta));
        let invalid = ground.standing.and_then(unusable);
        let context = Context {
            role: draft.arm.role,
            delta,
            floor: ground.floor.map(|measured| &measured.typical),
            invalid: invalid.as_ref(),
            unranked: unranked.as_ref(),
        };
        Some(ground.measured?.clone().judged(&context, table))
    }

    /// The copy of the baseline in each group.
    fn checks(&self, table: &mut StudentTable) -> Vec<GroupCheck> {
        let Some(copy) = self.copy else { return Vec::new() };
        // Slices of a copy may be of any length: it is never called a winner.
        let mut judged = |of: Option<&Measured>, quantity: Option<Quantity>| {
            let standing = Some(&copy.standing);
            let ground = Ground { measured: of, floor: of, standing, unequal: None };
            self.contrast(copy, quantity, ground, table)
        };
        let mut one = |(group, check): (usize, &Check)| GroupCheck {
            arms: self.groups.labels(group).to_vec(),
            contrast: judged(check.primary.as_ref(), Some(Quantity::of(self.cell))),
            cpu_contrast: judged(check.cpu.as_ref(), Quantity::cpu_of(self.cell)),
        };
        copy.checks.iter().enumerate().map(&mut one).collect()
    }
}
