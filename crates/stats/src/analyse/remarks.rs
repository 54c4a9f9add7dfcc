//! What is said beside the numbers: rejected trials, remarks on a cell,
//! warnings of the run.

use std::collections::BTreeMap;

use iolens_model::axes::Counting;
use iolens_model::cell::Cell;
use iolens_model::data_path::{End, Hop, Movement, Mover};
use iolens_model::host::Fact;
use iolens_model::outcome::Status;
use iolens_model::run::RunHeader;

use super::draft::{CellVisits, Draft};
use super::unranked;
use crate::analysis::{ArmAnalysis, GroupCheck, Neighbours, Rejected, SelfCheck};
use crate::gates::{Flag, Limit};
use crate::interval::count;
use crate::passes::{Passes, Visits};
use crate::remark::{Circumstance, Event, Excess, Remark, RemarkKind, Share, Unmapped, Warning};
use crate::self_check;
use crate::student::StudentTable;
use crate::values::{Refusal, TrialValues};

/// What of a cell's trials is kept and not used, each with the pass and the
/// position for sorting.
pub(super) fn rejected(visits: &CellVisits<'_>) -> Vec<((u32, u32), Rejected)> {
    let all = std::iter::once(&visits.primary).chain(&visits.isolated);
    let mut entries: Vec<((u32, u32), Rejected)> = Vec::new();
    for visits in all {
        for trial in visits.trials().iter().filter(|trial| trial.pass > 0) {
            for entry in rejected_of(visits, trial) {
                let is_again = |(_, known): &(_, Rejected)| is_skipped_again(known, &entry);
                if entry.status != Status::Skipped || !entries.iter().any(is_again) {
                    entries.push(((trial.pass, trial.position), entry));
                }
            }
        }
    }
    entries
}

/// An arm that is skipped in every pass for one reason is listed once.
fn is_skipped_again(known: &Rejected, entry: &Rejected) -> bool {
    (known.status, &known.arm, &known.reason) == (entry.status, &entry.arm, &entry.reason)
}

fn rejected_of(visits: &Visits<'_>, trial: &TrialValues) -> Vec<Rejected> {
    let replaced = visits.is_replaced(trial);
    let entry = |arm: Option<&str>, refusal: &Refusal| Rejected {
        pass: trial.pass,
        cell: trial.cell.to_string(),
        arm: arm.map(str::to_owned),
        status: refusal.status,
        check: refusal.check,
        reason: if replaced {
            format!("{}; the trial was run again in the same pass", refusal.reason)
        } else {
            refusal.reason.clone()
        },
    };
    if let Some(refusal) = &trial.refusal {
        return vec![entry(None, refusal)];
    }
    let refused = trial
        .arms
        .iter()
        .filter_map(|arm| Some(entry(Some(&arm.outcome.arm.label), arm.refusal.as_ref()?)));
    let mut entries: Vec<Rejected> = refused.collect();
    if entries.is_empty() && replaced {
        let reason = "no gate refuses it".to_owned();
        entries.push(entry(None, &Refusal { status: Status::Invalid, reason, check: None }));
    }
    entries
}

/// The remarks on a cell.
pub(super) fn of_cell(
    header: &RunHeader,
    cell: &Cell,
    drafts: &[Draft<'_>],
    arms: &[ArmAnalysis],
    checks: &[GroupCheck],
) -> Vec<Remark> {
    let mut remarks: Vec<Remark> =
        checks.iter().filter_map(|check| self_check_off(check, checks.len())).collect();
    for (draft, arm) in drafts.iter().zip(arms) {
        let mut kinds: Vec<RemarkKind> = not_used(draft).into_iter().collect();
        kinds.extend(flags(draft));
        kinds.extend(arm.unequal.map(RemarkKind::UnequalSlices));
        kinds.extend(copied(draft, arm));
        kinds.extend(mapped(header, cell, arm));
        kinds.extend(sharing_matters(arm));
        remarks.extend(kinds.into_iter().map(|kind| Remark::of(&draft.arm.label, kind)));
    }
    remarks
}

fn not_used(draft: &Draft<'_>) -> Option<RemarkKind> {
    let (passes, latest) = (draft.standing.passes_refused, draft.standing.latest.as_ref()?);
    (passes > 0 && draft.standing.refusal.is_none()).then(|| RemarkKind::NotUsed {
        passes,
        check: latest.check,
        reason: latest.reason.clone(),
    })
}

fn self_check_off(check: &GroupCheck, groups: usize) -> Option<Remark> {
    let contrast = check.contrast.as_ref().filter(|contrast| self_check::excludes_one(contrast))?;
    let beside = if groups == 1 { Vec::new() } else { check.arms.clone() };
    let kind = RemarkKind::SelfCheckOff { interval: contrast.pointwise?, beside };
    Some(Remark { arm: None, kind })
}

/// A zero-copy row that is none.
fn copied(draft: &Draft<'_>, arm: &ArmAnalysis) -> Option<RemarkKind> {
    let zerocopy = arm.zerocopy.filter(|zerocopy| zerocopy.is_copied())?;
    let is_tap =
        |flag: &Flag| matches!(flag, Flag::Once(found) if **found == Circumstance::PacketTap);
    let tapped = draft.used.iter().flat_map(|(_, arm)| &*arm.flags).any(is_tap);
    Some(RemarkKind::Copied { share: zerocopy.copied_share?, tapped })
}

/// How much a receiver that maps pages has mapped of this arm's; said of little, and of what
/// was changed for the run.
fn mapped(header: &RunHeader, cell: &Cell, arm: &ArmAnalysis) -> Option<RemarkKind> {
    /// What is above needs no explanation.
    const MOST: f64 = 0.9;
    let (share, receiver) = (arm.mapped_share?, cell.receiver()?.to_owned());
    let changed = header.host.changed.clone();
    let why = if share >= MOST { None } else { Some(unmapped(header, cell, arm)?) };
    let is_told = why.is_some() || !changed.is_empty();
    is_told.then_some(RemarkKind::Mapped { receiver, share, changed, why })
}

fn unmapped(header: &RunHeader, cell: &Cell, arm: &ArmAnalysis) -> Option<Unmapped> {
    const PAGE_BYTES: u64 = 4096;
    let facts = header.primitives.iter().find(|facts| facts.id == arm.arm.primitive)?;
    let makes = |movement| {
        let is_it = |hop: &Hop| {
            (hop.end, hop.mover, hop.movement) == (End::Sender, Mover::Kernel, movement)
        };
        facts.data_path.hops.iter().any(is_it)
    };
    let is_named = |fact: &&Fact| fact.name == "net.core.high_order_alloc_disable";
    let blocks = header.host.facts.iter().find(is_named).and_then(|fact| fact.value.value());
    Some(if cell.is_rr() && cell.size.0 < PAGE_BYTES {
        Unmapped::SmallMessages
    } else if makes(Movement::LateCopy) {
        Unmapped::ShortSegments
    } else if makes(Movement::Copy) && blocks.is_none_or(|value| value != "1") {
        Unmapped::BlocksOfPages { high_order_alloc_disable: blocks.cloned() }
    } else if makes(Movement::Copy) {
        Unmapped::PartlyFilled
    } else {
        Unmapped::ForeignPages
    })
}

/// Whether the ratio depends on what else runs in the process.
fn sharing_matters(arm: &ArmAnalysis) -> Option<RemarkKind> {
    let (a, b) = (arm.contrast.as_ref()?, arm.isolated.as_ref()?);
    let (shared, isolated) = (a.pointwise?, b.pointwise?);
    (shared.high < isolated.low || isolated.high < shared.low).then_some(
        RemarkKind::SharingMatters {
            shared_ratio: a.ratio,
            shared,
            isolated_ratio: b.ratio,
            isolated,
        },
    )
}

/// The flags of one kind over the used trials of an arm.
#[derive(Default)]
struct Summary {
    trials: u32,
    events: u64,
    lasted_ns: Option<u64>,
    extreme: Option<f64>,
}

impl Summary {
    fn add(&mut self, value: f64, is_worse: fn(&f64, &f64) -> bool) {
        self.trials += 1;
        let known = self.extreme.filter(|known| !is_worse(&value, known));
        self.extreme = Some(known.unwrap_or(value));
    }
}

fn flags(draft: &Draft<'_>) -> Vec<RemarkKind> {
    let mut events: BTreeMap<Event, Summary> = BTreeMap::new();
    let mut shares: BTreeMap<Share, Summary> = BTreeMap::new();
    let mut excesses: BTreeMap<Excess, Summary> = BTreeMap::new();
    let mut limited: BTreeMap<Limit, Vec<f64>> = BTreeMap::new();
    for flag in draft.used.iter().flat_map(|(_, arm)| &*arm.flags) {
        match flag {
            Flag::Events { what, count } => {
                let summary = events.entry(*what).or_default();
                summary.trials += 1;
                summary.events = summary.events.saturating_add(*count);
            }
            Flag::Lasting { what, count, lasted_ns } => {
                let summary = events.entry(*what).or_default();
                summary.trials += 1;
                summary.events = summary.events.saturating_add(*count);
                let before_ns = summary.lasted_ns.unwrap_or(0);
                summary.lasted_ns = Some(before_ns.saturating_add(*lasted_ns));
            }
            Flag::Share { what, share } => {
                let is_worse = if what.is_loss() { f64::gt } else { f64::lt };
                shares.entry(*what).or_default().add(*share, is_worse);
            }
            Flag::Excess { what, ratio } => {
                excesses.entry(*what).or_default().add(*ratio, f64::gt);
            }
            Flag::Limit { limit, value } => limited.entry(*limit).or_default().push(*value),
            Flag::Once(_) => {}
        }
    }
    let of = count(draft.used.len());
    let events = events.into_iter().map(|(what, summary)| {
        let Summary { trials, events: count, lasted_ns, .. } = summary;
        RemarkKind::Events { what, count, lasted_ns, trials, of }
    });
    let shares = shares.into_iter().map(|(what, found)| {
        let share = found.extreme.unwrap_or(f64::NAN);
        RemarkKind::Share { what, share, trials: found.trials, of }
    });
    let excesses = excesses.into_iter().map(|(what, found)| {
        let ratio = found.extreme.unwrap_or(f64::NAN);
        RemarkKind::Excess { what, ratio, trials: found.trials, of }
    });
    let limited = limited.into_iter().map(|(limit, values)| {
        RemarkKind::Limited(unranked::limited(limit, &values, draft.used.len()))
    });
    events.chain(shares).chain(excesses).chain(limited).collect()
}

/// The warnings of a run.
pub(super) fn warnings(
    header: &RunHeader,
    cells: &[Cell],
    trials: &[TrialValues],
    passes: &Passes,
    check: &SelfCheck,
) -> Vec<Warning> {
    let cut_short = passes.incomplete.iter().map(|&(pass, cells_missing)| {
        Warning::IncompletePass { pass, cells_missing, cells: count(cells.len()) }
    });
    let mut warnings: Vec<Warning> = cut_short.collect();
    let (complete, minimum) = (count(passes.complete.len()), header.plan.passes.minimum);
    if complete < minimum {
        warnings.push(Warning::FewPasses { complete, minimum });
    }
    let strangers = trials.iter().filter(|trial| trial.pass > 0 && !cells.contains(&*trial.cell));
    match count(strangers.count()) {
        0 => {}
        trials => warnings.push(Warning::OutsideThePlan { trials }),
    }
    let changed = header.host.changed.iter();
    warnings.extend(changed.map(|change| Warning::Changed { change: change.clone() }));
    if header.plan.probes.counting == Counting::Alternate {
        warnings.push(Warning::CountersClosed);
    }
    let SelfCheck { counted, bound, judged, excluding_one: excluding, .. } = *check;
    if check.untrustworthy() {
        warnings.push(Warning::SelfChecksExclude { excluding, counted, bound });
    }
    if judged > 0 {
        warnings.push(Warning::SelfChecksDiffer { judged, counted });
    }
    warnings.extend(once(trials).into_iter().cloned().map(Warning::Circumstance));
    warnings
}

/// That trials resemble those of the passes before them, where it matters.
pub(super) fn neighbours(found: &Neighbours) -> Option<Warning> {
    let half = |mut table: StudentTable| Some(table.multipliers(found.passes)?.pointwise);
    let widened = half(StudentTable::of_neighbours(1, Some(found)))? / half(StudentTable::new(1))?;
    let (contrasts, passes, correlation) = (found.contrasts, found.passes, found.lag1);
    let warning = Warning::Neighbours { contrasts, passes, correlation, widened };
    found.matters.then_some(warning)
}

/// What is the same in every trial, said once, in the order of appearance.
fn once(trials: &[TrialValues]) -> Vec<&Circumstance> {
    let mut said: Vec<&Circumstance> = Vec::new();
    for flag in trials.iter().flat_map(|trial| &trial.arms).flat_map(|arm| &*arm.flags) {
        if let Flag::Once(found) = flag
            && !said.contains(&&**found)
        {
            said.push(found);
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use iolens_model::axes::Mode;
    use iolens_model::data_path::{CallsPerMessage, DataPath, PrimitiveFacts};
    use iolens_model::host::SysctlChange;
    use iolens_model::reading::Reading;
    use iolens_model::run::Run;

    use super::*;
    use crate::analyse;
    use crate::fixture::one_arm_trial;

    /// An arm whose sending kernel does this, a hundredth of it mapped.
    fn run(movement: Movement) -> Run {
        let mut run = one_arm_trial(|slice| {
            let rx = slice.rx.as_mut().unwrap();
            rx.mapped_bytes = Some(rx.bytes / 100);
        });
        let word = || "".into();
        let (end, mover) = (End::Sender, Mover::Kernel);
        let hop = Hop { from: word(), to: word(), end, mover, function: word(), movement };
        let data_path = DataPath { hops: vec![hop].into(), calls: CallsPerMessage::Fixed(1) };
        run.header.primitives = vec![PrimitiveFacts {
            id: "base".to_owned(),
            summary: String::new(),
            family: iolens_model::family::Family::Plain,
            condition: None,
            transport: iolens_model::transport::Transport::Tcp,
            data_path,
        }];
        run
    }

    fn check(run: &Run, expect: &Unmapped) {
        let cell = analyse(run).cells.remove(0);
        let share = cell.arms[0].mapped_share.unwrap();
        assert!((0.009..=0.01).contains(&share), "{share}");
        let says = |kind: &RemarkKind| match kind {
            RemarkKind::Mapped { why: Some(why), .. } => why == expect,
            _ => false,
        };
        let is_it = |remark: &Remark| remark.arm.as_deref() == Some("base") && says(&remark.kind);
        assert!(cell.remarks.iter().any(is_it), "{:?}", cell.remarks);
    }

    #[test]
    fn what_did_not_map_says_why() {
        let mut copied = run(Movement::Copy);
        check(&copied, &Unmapped::BlocksOfPages { high_order_alloc_disable: None });
        let name = "net.core.high_order_alloc_disable".to_owned();
        let value = Reading::Exact("1".to_owned());
        copied.header.host.facts.push(Fact { group: String::new(), name, value });
        check(&copied, &Unmapped::PartlyFilled);
        check(&run(Movement::LateCopy), &Unmapped::ShortSegments);
        check(&run(Movement::Reference), &Unmapped::ForeignPages);
        let mut small = run(Movement::Copy);
        small.header.plan.net_mut().unwrap().modes = vec![Mode::Rr];
        small.trials.iter_mut().for_each(|trial| trial.cell.net_mut().unwrap().mode = Mode::Rr);
        check(&small, &Unmapped::SmallMessages);
    }

    #[test]
    fn what_was_changed_for_the_run_is_said_beside_rows_and_once_for_all() {
        let mut run = one_arm_trial(|slice| {
            let rx = slice.rx.as_mut().unwrap();
            rx.mapped_bytes = Some(rx.bytes);
        });
        run.header.primitives = self::run(Movement::Copy).header.primitives;
        assert_eq!(analyse(&run).cells[0].remarks, [], "all of it maps by itself");
        let (name, before, value) = ("net.core.x".into(), "0".into(), "1".into());
        let change = SysctlChange { name, before, value };
        run.header.host.changed = vec![change.clone()];
        let analysis = analyse(&run);
        let (receiver, changed) = ("recv".to_owned(), vec![change.clone()]);
        let kind = RemarkKind::Mapped { receiver, share: 1.0, changed, why: None };
        assert_eq!(analysis.cells[0].remarks, [Remark::of("base", kind)]);
        assert!(analysis.warnings.contains(&Warning::Changed { change }));
    }
}
