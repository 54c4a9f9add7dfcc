//! The study `syscall`.

use std::path::Path;

use iolens_file::subject::Subject;
use iolens_model::axes::Study;
use iolens_model::call::CallKind;
use iolens_model::plan::{Axes, SyscallAxes};
use iolens_model::units::Bytes;
use iolens_syscall::{CALLS, Entry, OfFile};

use super::wished::{self, AsWished, axes_and_wishes, check_turns};
use super::{ArmChoice, DISCARDED_ROUNDS, Draft, Programs, SLICE, StudySpec};
use crate::axes::Wishes;
use crate::failure::{Failure, usage};
use crate::values::server::OF_CALLERS;

pub(super) static SYSCALL: StudySpec = StudySpec {
    study: Study::Syscall,
    summary: "What each system call costs",
    about: "Compare system calls: what each one costs",
    examples: "\
Examples:
  iolens run syscall --quick
  iolens run syscall --calls getppid,read_file,write_file --threads 1,2
  iolens run syscall --sizes 1,512,4KiB,64KiB
  iolens run syscall --file big.bin",
    footer: None,
    quick: "syscall-quick",
    arms: || ArmChoice {
        what: "call",
        baseline: "getppid",
        ids: CALLS.iter().map(|entry| entry.id).collect(),
        find: |id| iolens_syscall::find(id).map(|entry| entry.id),
        group: |word| CallKind::from_word(word).map(of_kind),
        control: |id| {
            let entry = iolens_syscall::find(id).filter(|entry| entry.control);
            entry.map(|_| "is a control, which does not enter the kernel")
        },
        is_alone: true,
        does: "does",
        advice: kinds(),
    },
    textbook: &[],
    programs: Some(Programs {
        told: |asked| if asked.sizes.is_some() { OF_CALLERS } else { &[] },
        are_listed: false,
    }),
    slices: (SLICE, DISCARDED_ROUNDS),
    fit: |_, _| Ok(()),
    // Calls that are asked for none have theirs.
    sizes: |asked| asked.sizes.as_ref().map_or(Ok(Vec::new()), |_| wished::blocks(asked)),
    axes,
    wishes: |plan| plan.syscall().map(AsWished::stated).unwrap_or_default(),
    lay_out: |_, _, _| (),
};

fn of_kind(kind: CallKind) -> Vec<&'static str> {
    CALLS.iter().filter(|entry| entry.kind == kind).map(|entry| entry.id).collect()
}

fn kinds() -> String {
    let words: Vec<&str> = CallKind::ALL.iter().map(|kind| kind.word()).collect();
    format!(
        "`iolens list calls` shows all of them; --calls takes kinds too: {}, all",
        words.join(", ")
    )
}

axes_and_wishes! {
    SyscallAxes {
        in_a_row: must bursts;
        file: same file;
        external: same external;
    }
}

/// The axes of these wishes; of the arms, those that they fit.
fn axes(draft: Draft<'_>) -> Result<Axes, Failure> {
    let Draft { asked, schedule, baseline, arms, notes, .. } = draft;
    let axes = SyscallAxes::asked_for(asked, ())?;
    if !schedule.is_sliced() && axes.in_a_row.iter().any(Option::is_some) {
        return Err(Failure::usage(
            "--bursts does not apply to --sequential-time and --sequential-messages, which have no \
             slices\n  leave one of them out, or use --bursts full",
        ));
    }
    check_turns(asked, schedule)?;
    check_file(asked)?;
    *arms = fitting(std::mem::take(arms), baseline, asked, notes)?;
    Ok(Axes::Syscall(axes))
}

/// Refuses a file that cannot be read, or is shorter than what a call is to read of it.
fn check_file(asked: &Wishes) -> Result<(), Failure> {
    let Some(file) = &asked.file else { return Ok(()) };
    let bytes = Subject::open(Path::new(file)).map_err(Failure::usage)?.bytes();
    let block = asked.sizes.iter().flatten().max().copied();
    match block {
        _ if bytes == 0 => Err(usage!("{file} is empty: there is nothing to read")),
        Some(block) if bytes < block.0 => Err(usage!(
            "{file} has {}, less than one block of {block}\n  name a longer file, or smaller \
             --sizes",
            Bytes(bytes)
        )),
        _ => Ok(()),
    }
}

/// Of these calls those that sizes and a file are about, and the baseline. Calls that were named
/// and are not among them get a note.
///
/// Errors: none is left, or the baseline would write to the file.
fn fitting(
    ids: Vec<String>,
    baseline: &str,
    asked: &Wishes,
    notes: &mut Vec<String>,
) -> Result<Vec<String>, Failure> {
    let (sizes, file) = (asked.sizes.is_some(), asked.file.is_some());
    let entry = |id: &String| iolens_syscall::find(id);
    let moves = |entry: &Entry| !sizes || entry.bytes > 0;
    let uses = |entry: &Entry| !file || entry.of_file != OfFile::Nothing;
    let fits = |id: &&String| entry(id).is_none_or(|entry| moves(entry) && uses(entry));
    let is_measured = |id: &&String| entry(id).is_none_or(|entry| entry.allow_on(file).is_ok());
    if let Some(Err(why)) = iolens_syscall::find(baseline).map(|entry| entry.allow_on(file)) {
        return Err(usage!(
            "`{baseline}` cannot be the baseline: {why}\n  name another one with --baseline, such \
             as getppid"
        ));
    }
    let what = match (sizes, file) {
        (true, true) => "--sizes with --file measures calls that move bytes of a file",
        (true, false) => "--sizes measures calls that move bytes",
        (false, _) => "--file measures calls that read a file or ask about one",
    };
    if !ids.iter().any(|id| fits(&id) && is_measured(&id)) {
        return Err(usage!(
            "{what}; you named {}\n  `iolens list calls` shows what each call does",
            asked.methods.iter().flatten().cloned().collect::<Vec<_>>().join(", ")
        ));
    }
    let named = |id: &&String| asked.methods.iter().flatten().any(|word| word == *id);
    let (kept, left): (Vec<&String>, Vec<&String>) =
        ids.iter().partition(|id| id.as_str() == baseline || fits(id));
    let left: Vec<&str> = left.into_iter().filter(named).map(String::as_str).collect();
    if !left.is_empty() {
        notes.push(format!("{what}; left out: {}", left.join(", ")));
    }
    Ok(kept.into_iter().cloned().collect())
}
