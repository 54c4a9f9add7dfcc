//! What only the study `syscall` has.

use std::path::Path;

use iolens_engine::calls::{self, Entry, OfFile};
use iolens_engine::files::subject::Subject;
use iolens_model::plan::{Schedule, SyscallAxes};
use iolens_model::units::Bytes;

use super::arms::check_turns;
use super::{AsWished, axes_and_wishes};
use crate::axes::Wishes;
use crate::failure::{Failure, usage};

axes_and_wishes! {
    SyscallAxes {
        in_a_row: must bursts;
        file: same file;
        external: same external;
    }
}

/// The axes of these wishes.
pub(super) fn axes(asked: &Wishes, schedule: &Schedule) -> Result<SyscallAxes, Failure> {
    let axes = SyscallAxes::asked_for(asked, ())?;
    if !schedule.is_sliced() && axes.in_a_row.iter().any(Option::is_some) {
        return Err(Failure::usage(
            "--bursts does not apply to --sequential-time and --sequential-messages, which have no \
             slices\n  leave one of them out, or use --bursts full",
        ));
    }
    check_turns(asked, schedule)?;
    check_file(asked).map(|()| axes)
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
pub(super) fn fitting(
    ids: Vec<String>,
    baseline: &str,
    asked: &Wishes,
    notes: &mut Vec<String>,
) -> Result<Vec<String>, Failure> {
    let (sizes, file) = (asked.sizes.is_some(), asked.file.is_some());
    let entry = |id: &String| calls::find(id);
    let moves = |entry: &Entry| !sizes || entry.bytes > 0;
    let uses = |entry: &Entry| !file || entry.of_file != OfFile::Nothing;
    let fits = |id: &&String| entry(id).is_none_or(|entry| moves(entry) && uses(entry));
    let is_measured = |id: &&String| entry(id).is_none_or(|entry| entry.allow_on(file).is_ok());
    if let Some(Err(why)) = calls::find(baseline).map(|entry| entry.allow_on(file)) {
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
