//! What is said beside the numbers: rejected trials, notes of a cell,
//! warnings of the run.

use std::collections::BTreeMap;

use iolens_model::axes::Counting;
use iolens_model::cell::Cell;
use iolens_model::data_path::{End, Hop, Movement, Mover};
use iolens_model::host::Fact;
use iolens_model::outcome::Status;
use iolens_model::run::RunHeader;

use super::cell::{CellVisits, Draft};
use super::limits;
use crate::analysis::{ArmAnalysis, Contrast, GroupCheck, Neighbours, Rejected, SelfCheck};
use crate::gates::{Flag, Limit, TAPPED};
use crate::interval::count;
use crate::passes::{Passes, Visits};
use crate::self_check;
use crate::student::StudentTable;
use crate::values::{Refusal, TrialValues};
use crate::wording::{percent, range, trials as trials_word};

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
        entries.push(entry(None, &Refusal { status: Status::Invalid, reason }));
    }
    entries
}

/// The notes of a cell.
pub(super) fn notes(
    header: &RunHeader,
    cell: &Cell,
    drafts: &[Draft<'_>],
    arms: &[ArmAnalysis],
    checks: &[GroupCheck],
) -> Vec<String> {
    let mut notes: Vec<String> =
        checks.iter().filter_map(|check| self_check_note(check, checks.len())).collect();
    for (draft, arm) in drafts.iter().zip(arms) {
        let label = &draft.arm.label;
        let passes = draft.standing.passes_refused;
        if let (1.., Some(latest), None) = (passes, &draft.standing.latest, &draft.standing.refusal)
        {
            let plural = if passes == 1 { "pass" } else { "passes" };
            notes.push(format!("{label}: not used in {passes} {plural}: {}", latest.reason));
        }
        notes.extend(flags(draft).into_iter().map(|note| format!("{label}: {note}")));
        notes.extend(arm.unequal.as_ref().map(|unequal| format!("{label}: {unequal}")));
        notes.extend(copied_note(draft, arm));
        notes.extend(mapped_note(header, cell, arm));
        notes.extend(isolation_note(arm));
    }
    notes
}

/// Gate 17.
fn self_check_note(check: &GroupCheck, groups: usize) -> Option<String> {
    let contrast = check.contrast.as_ref().filter(|contrast| self_check::excludes_one(contrast))?;
    let beside = match groups {
        1 => String::new(),
        _ => format!(" beside {}", check.arms.join(", ")),
    };
    Some(format!(
        "gate 17 (self-check): the interval of the baseline's second copy{beside}, {}, excludes 1; \
         one in twenty does by chance",
        range(contrast.pointwise.as_ref()?)
    ))
}

/// Gate 12: a zero-copy row that is none.
fn copied_note(draft: &Draft<'_>, arm: &ArmAnalysis) -> Option<String> {
    let zerocopy = arm.zerocopy.filter(|zerocopy| zerocopy.is_copied())?;
    let flags = draft.used.iter().flat_map(|(_, arm)| &arm.flags);
    let is_tapped =
        flags.into_iter().any(|flag| matches!(flag, Flag::Once(text) if **text == *TAPPED));
    let tapped = if is_tapped { "; a packet tap was there, which forces it" } else { "" };
    Some(format!(
        "{}: gate 12: the kernel reports {} of the zero-copy sends as copied, so the row is \
         labelled \"copied\"{tapped}",
        arm.arm.label,
        percent(zerocopy.copied_share?)
    ))
}

/// Why a receiver that maps pages mapped few of this arm's.
fn mapped_note(header: &RunHeader, cell: &Cell, arm: &ArmAnalysis) -> Option<String> {
    /// What is above needs no explanation.
    const MOST: f64 = 0.9;
    const PAGE_BYTES: u64 = 4096;
    let (share, receiver) = (arm.mapped_share?, cell.receiver()?);
    let setting = setting(header);
    if share >= MOST {
        let label = &arm.arm.label;
        let mapped = format!("{label}: {receiver} mapped {} of the bytes", percent(share));
        return setting.map(|setting| mapped + &setting);
    }
    let facts = header.primitives.iter().find(|facts| facts.id == arm.arm.primitive)?;
    let makes = |movement| {
        let is_it = |hop: &Hop| {
            (hop.end, hop.mover, hop.movement) == (End::Sender, Mover::Kernel, movement)
        };
        facts.data_path.hops.iter().any(is_it)
    };
    let is_named = |fact: &&Fact| fact.name.ends_with("high_order_alloc_disable");
    let blocks = header.host.facts.iter().find(is_named).and_then(|fact| fact.value.value());
    let why = if cell.is_rr() && cell.size.0 < PAGE_BYTES {
        "a message is less than a page".to_owned()
    } else if makes(Movement::LateCopy) {
        "the kernel's late copy fills whole pages but the last of each segment, and segments are \
         short where messages or fields are"
            .to_owned()
    } else if makes(Movement::Copy) && blocks.is_none_or(|value| value != "1") {
        format!(
            "the sending kernel copies into blocks of several pages (net.core.\
             high_order_alloc_disable is {}), and only pages that stand alone are mapped",
            blocks.map_or("not known", String::as_str)
        )
    } else if makes(Movement::Copy) {
        "only pages are mapped that the bytes fill from the first to the last, and segments do \
         not end where pages do"
            .to_owned()
    } else {
        "pages that belong to a file or to the sending process are never mapped".to_owned()
    };
    Some(format!(
        "{}: {receiver} mapped {} of the bytes{} and copied the rest: {why} (can_map_frag, \
         net/ipv4/tcp.c)",
        arm.arm.label,
        percent(share),
        setting.unwrap_or_default()
    ))
}

/// What was changed for the run, as words beside what it changes.
fn setting(header: &RunHeader) -> Option<String> {
    let changes: Vec<String> = header.host.changed.iter().map(ToString::to_string).collect();
    (!changes.is_empty()).then(|| format!(" with {}", changes.join(" and ")))
}

/// Whether the ratio depends on what else runs in the process.
fn isolation_note(arm: &ArmAnalysis) -> Option<String> {
    let (shared, isolated) = (arm.contrast.as_ref()?, arm.isolated.as_ref()?);
    let (a, b) = (shared.pointwise.as_ref()?, isolated.pointwise.as_ref()?);
    let say =
        |contrast: &Contrast, interval| format!("{:.3} ({})", contrast.ratio, range(interval));
    (a.high < b.low || b.high < a.low).then(|| {
        format!(
            "{}: sharing a process changes the ratio: {} shared, {} isolated",
            arm.arm.label,
            say(shared, a),
            say(isolated, b)
        )
    })
}

/// A flag over the used trials of an arm.
#[derive(Default)]
struct Summary {
    trials: u32,
    events: u64,
    extreme: Option<f64>,
}

fn flags(draft: &Draft<'_>) -> Vec<String> {
    let mut events: BTreeMap<&str, Summary> = BTreeMap::new();
    let mut shares: BTreeMap<&str, Summary> = BTreeMap::new();
    let mut excesses: BTreeMap<&str, Summary> = BTreeMap::new();
    let mut limited: BTreeMap<Limit, Vec<f64>> = BTreeMap::new();
    for flag in draft.used.iter().flat_map(|(_, arm)| &arm.flags) {
        match flag {
            Flag::Events { what, count } => {
                let summary = events.entry(what).or_default();
                summary.trials += 1;
                summary.events = summary.events.saturating_add(*count);
            }
            Flag::Share { what, share } => {
                let summary = shares.entry(what).or_default();
                summary.trials += 1;
                summary.extreme = Some(summary.extreme.map_or(*share, |e| e.min(*share)));
            }
            Flag::Excess { what, ratio } => {
                let summary = excesses.entry(what).or_default();
                summary.trials += 1;
                summary.extreme = Some(summary.extreme.map_or(*ratio, |e| e.max(*ratio)));
            }
            Flag::Limit { limit, value } => limited.entry(*limit).or_default().push(*value),
            Flag::Once(_) => {}
        }
    }
    let of = trials_word(count(draft.used.len()));
    let extreme = |summary: &Summary| summary.extreme.unwrap_or(f64::NAN);
    let events =
        events.iter().map(|(what, s)| format!("{what}: {}, in {} of {of}", s.events, s.trials));
    let shares = shares.iter().map(|(what, s)| {
        format!("only {} {what}, in the worst of {of} ({} flagged)", percent(extreme(s)), s.trials)
    });
    let excesses = excesses.iter().map(|(what, s)| {
        format!("{:.2} times {what}, at most ({} of {of} flagged)", extreme(s), s.trials)
    });
    let limited =
        limited.iter().map(|(limit, values)| limits::in_words(*limit, values, draft.used.len()));
    events.chain(shares).chain(excesses).chain(limited).collect()
}

/// The warnings of a run.
pub(super) fn warnings(
    header: &RunHeader,
    cells: &[Cell],
    trials: &[TrialValues],
    passes: &Passes,
    check: &SelfCheck,
) -> Vec<String> {
    let mut warnings = Vec::new();
    for (pass, why) in &passes.incomplete {
        warnings.push(format!("pass {pass} was cut short and is not used: {why}"));
    }
    let complete = count(passes.complete.len());
    let minimum = header.plan.passes.minimum;
    if complete < minimum {
        let plural = if complete == 1 { "pass" } else { "passes" };
        warnings.push(format!(
            "{complete} complete {plural} of at least {minimum} planned: intervals over few trials \
             cover less often than they say"
        ));
    }
    let strangers = trials.iter().filter(|trial| trial.pass > 0 && !cells.contains(&*trial.cell));
    match count(strangers.count()) {
        0 => {}
        n => warnings.push(format!("{} of cells outside the plan are not used", trials_word(n))),
    }
    warnings.extend(header.host.changed.iter().map(|change| {
        format!(
            "measured with {change}, which iolens set for the run ({} before, and put back): \
             no row is as it would be under this machine's own setting",
            change.before
        )
    }));
    if header.plan.probes.counting == Counting::Alternate {
        let what = "the A/A arm ran with its counters closed (`counters = alternate`): its ratio \
                    is what open counters cost, and no self-check";
        warnings.push(what.to_owned());
    }
    if check.untrustworthy() {
        warnings.push(format!(
            "{} of {} self-checks exclude 1, chance allows {}: the run cannot be trusted",
            check.excluding_one, check.counted, check.bound
        ));
    }
    if check.judged > 0 {
        warnings.push(format!(
            "{} of {} self-checks differ from the baseline by more than δ: the run cannot be trusted",
            check.judged, check.counted
        ));
    }
    warnings.extend(once(trials));
    warnings
}

/// That trials resemble those of the passes before them, where it matters.
pub(super) fn neighbours(found: &Neighbours) -> Option<String> {
    let half = |mut table: StudentTable| Some(table.multipliers(found.passes)?.pointwise);
    let wider = half(StudentTable::of_neighbours(1, Some(found)))? / half(StudentTable::new(1))?;
    found.matters.then(|| {
        format!(
            "trials resemble those of the pass before: the ratios of {} contrasts over {} passes \
             have an autocorrelation of {:.2}, where 0 is chance. All intervals of the run are \
             {wider:.1} times as wide for it",
            found.contrasts, found.passes, found.lag1
        )
    })
}

/// What is the same in every trial, said once, in the order of appearance.
fn once(trials: &[TrialValues]) -> Vec<String> {
    let mut said: Vec<&str> = Vec::new();
    for flag in trials.iter().flat_map(|trial| &trial.arms).flat_map(|arm| &arm.flags) {
        if let Flag::Once(text) = flag
            && !said.contains(&&**text)
        {
            said.push(text);
        }
    }
    said.into_iter().map(str::to_owned).collect()
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

    fn check(run: &Run, expect: &str) {
        let cell = analyse(run).cells.remove(0);
        let share = cell.arms[0].mapped_share.unwrap();
        assert!((0.009..=0.01).contains(&share), "{share}");
        let is_it = |note: &&String| note.starts_with("base: recv mapped") && note.contains(expect);
        assert!(cell.notes.iter().any(|note| is_it(&note)), "{:?}", cell.notes);
    }

    #[test]
    fn what_did_not_map_says_why() {
        let mut copied = run(Movement::Copy);
        check(&copied, "(net.core.high_order_alloc_disable is not known)");
        let name = "net.core.high_order_alloc_disable".to_owned();
        let value = Reading::Exact("1".to_owned());
        copied.header.host.facts.push(Fact { group: String::new(), name, value });
        check(&copied, "segments do not end where pages do");
        let (name, before, value) = ("net.core.x".into(), "0".into(), "1".into());
        copied.header.host.changed = vec![SysctlChange { name, before, value }];
        check(&copied, "of the bytes with net.core.x=1 and copied the rest: only pages");
        check(&run(Movement::LateCopy), "fills whole pages but the last of each segment");
        check(&run(Movement::Reference), "belong to a file or to the sending process");
        let mut small = run(Movement::Copy);
        small.header.plan.net_mut().unwrap().modes = vec![Mode::Rr];
        small.trials.iter_mut().for_each(|trial| trial.cell.net_mut().unwrap().mode = Mode::Rr);
        check(&small, "a message is less than a page");
    }

    #[test]
    fn what_was_changed_for_the_run_is_said_beside_rows_and_once_for_all() {
        let mut run = one_arm_trial(|slice| {
            let rx = slice.rx.as_mut().unwrap();
            rx.mapped_bytes = Some(rx.bytes);
        });
        run.header.primitives = self::run(Movement::Copy).header.primitives;
        assert_eq!(analyse(&run).cells[0].notes, [""; 0], "all of it maps by itself");
        let (name, before, value) = ("net.core.x".into(), "0".into(), "1".into());
        run.header.host.changed = vec![SysctlChange { name, before, value }];
        let analysis = analyse(&run);
        let note = "base: recv mapped 100 % of the bytes with net.core.x=1";
        assert_eq!(analysis.cells[0].notes, [note]);
        let is_it = |warning: &&String| warning.starts_with("measured with net.core.x=1, which");
        assert_eq!(analysis.warnings.iter().filter(is_it).count(), 1, "{:?}", analysis.warnings);
    }
}
