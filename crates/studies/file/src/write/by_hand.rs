//! One file written by hand.

use std::os::fd::{AsFd, BorrowedFd};

use iolens_model::units::{Bytes, Nanos};
use iolens_sys::clock;
use iolens_sys::errno::Errno;
use iolens_sys::file;
use iolens_sys::file::create::{self, How};
use iolens_sys::usage::cpu_ns_of_process;
use serde::{Deserialize, Serialize};

use super::engine::{Entry, Setup};
use crate::checksum::Checksum;
use crate::destination::{self, Destination, Existing, Target};
use crate::failure::Ends;
use crate::file_path::FilePath;
use crate::leftover::Leftovers;
use crate::moved::{Broken, Moved};
use crate::part::timed;
use crate::read::by_hand::fallen_back;
use crate::residency::Residency;
use crate::subject::Subject;
use crate::test_file::fill;
use crate::ways::ring::{DEPTH, memory_bytes_max};

/// Bytes that are made and written in turn: they stay in the second cache from one
/// to the other.
const SLICE_BYTES: u64 = 256 << 10;

iolens_model::words! {
    /// When what was written is to be on the device.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Syncing {
        /// When the kernel writes it back.
        None = "none",
        /// After one fsync(2) at the end.
        Fsync = "fsync",
        /// After one fdatasync(2) at the end.
        Fdatasync = "fdatasync",
        /// After each write (`O_DSYNC`).
        Dsync = "dsync",
    }
}

/// What is to be written, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// The file.
    pub path: FilePath,
    /// The engine's id.
    pub engine: String,
    /// Bytes of a block; at least 1.
    pub block_bytes: u64,
    /// Blocks; at least 1.
    pub count: u64,
    /// When it is to be on the device.
    pub syncing: Syncing,
    /// Whether an existing file is written over.
    pub overwrite: bool,
    /// What the content follows from.
    pub seed: u64,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// The file system of the file.
    pub file_system: String,
    /// Whether an existing file was written over.
    pub was_there: bool,
    /// What was done.
    pub moved: Moved,
    /// The time of the calls that write; the content is made between them.
    pub time: Nanos,
    /// The time of the sync at the end; `None` where there was none.
    pub sync_time: Option<Nanos>,
    /// The hash of what was written; `None` where not all was.
    pub checksum: Option<u64>,
    /// What of an existing file was in the page cache before; `None` for a new one.
    pub resident_before: Option<Residency>,
    /// What of the file is in the page cache afterwards.
    pub resident_after: Residency,
    /// CPU time of the process in the time of the calls and of the sync; `None` where it cannot be
    /// read. It has no parts: the kernel divides that of a whole process, with all else it did.
    pub cpu: Option<Nanos>,
    /// What the engine says about itself: names and values.
    pub facts: Vec<(String, String)>,
    /// What a reader of these numbers should know, a sentence each.
    pub notes: Vec<String>,
    /// Why not all was written; `None` where all was.
    pub failure: Option<String>,
}

/// Writes a file.
///
/// Errors: why nothing was written: what was tried and what the system said.
pub fn write(wish: &Wish) -> Result<Done, String> {
    let entry = crate::engines::that_writes(&wish.engine)
        .ok_or_else(|| format!("this build has no engine `{}` that writes", wish.engine))?;
    if let Some(words) = entry.own.by_hand {
        return Err(format!("one file is written with {} by the words {words}", entry.id));
    }
    if let (Syncing::Dsync, Some(why)) = (wish.syncing, entry.own.ignores_dsync) {
        return Err(format!(
            "cannot write with {} and O_DSYNC: {why}\n  use --sync fdatasync",
            entry.id
        ));
    }
    let bytes = total_bytes(wish)?;
    let path = wish.path.path();
    let existing = if wish.overwrite { Existing::Overwrite } else { Existing::Refuse };
    let destination = Destination::check(&path, existing, None)?;
    destination.check_room(bytes)?;
    let file_system = destination.file_system()?;
    let existing_bytes = destination.existing().map(|about| about.bytes);
    let target = destination.open(&Leftovers::here())?;
    let subject = subject_of(&target)?;
    let resident_before = existing_bytes.map(|bytes| Residency::of(&subject, 0, bytes));
    let outcome = write_to(entry, &target, wish, bytes)?;
    let resident_after = Residency::of(&subject, 0, outcome.moved.bytes);
    let mut done = Done {
        file_system,
        was_there: existing_bytes.is_some(),
        moved: outcome.moved,
        time: Nanos(outcome.time_ns),
        sync_time: None,
        checksum: None,
        resident_before,
        resident_after,
        cpu: outcome.cpu_ns.map(Nanos),
        facts: outcome.facts,
        notes: Vec::new(),
        failure: None,
    };
    if entry.is_direct {
        let none = Residency::Known { cached: 0, pages: 0 };
        let before = done.resident_before.as_ref().unwrap_or(&none);
        done.notes.extend(fallen_back(before, &done.resident_after));
    }
    let ends = Ends {
        source: None,
        destination: &path,
        file_system: &done.file_system,
        instead: Some("write").filter(|_| entry.is_direct),
    };
    let ended = match outcome.broken {
        Some(broken) => Err((ends.explain(broken, done.moved.bytes), ends.advice(broken))),
        None => bring_home(&target, wish.syncing, bytes).map_err(|why| (why, String::new())),
    };
    match ended {
        Ok(synced) => {
            if let Some(synced) = synced {
                done.sync_time = Some(synced.time);
                done.cpu = plus(outcome.cpu_ns, synced.cpu_ns).map(Nanos);
            }
            done.checksum = Some(outcome.checksum.value(bytes));
            done.failure = complete(target, &path, wish.syncing).err();
        }
        Err((why, advice)) => {
            done.failure = Some(format!("{why}; {}{advice}", target.remains()));
        }
    }
    Ok(done)
}

/// Bytes of the whole file.
fn total_bytes(wish: &Wish) -> Result<u64, String> {
    let largest = i64::MAX.unsigned_abs();
    let bytes = wish.block_bytes.checked_mul(wish.count).filter(|&bytes| bytes <= largest);
    bytes.ok_or_else(|| {
        format!(
            "{} blocks of {} are more than any file can have",
            wish.count,
            Bytes(wish.block_bytes)
        )
    })
}

/// The file being written, to be asked about.
pub(crate) fn subject_of(target: &Target) -> Result<Subject, String> {
    let name = target.path().display().to_string();
    let file = target
        .file()
        .try_clone()
        .map_err(|e| format!("cannot duplicate the descriptor of {name}: {}", Errno::from(e)))?;
    Subject::of(file, name)
}

/// What came of writing.
struct Outcome {
    moved: Moved,
    time_ns: u64,
    /// CPU time of the process meanwhile.
    cpu_ns: Option<u64>,
    checksum: Checksum,
    facts: Vec<(String, String)>,
    broken: Option<Broken>,
}

/// What came of work, and the CPU time of the process meanwhile, with threads that the kernel makes
/// for rings; `None` where it cannot be read.
fn with_cpu<T>(work: impl FnOnce() -> T) -> (T, Option<u64>) {
    let before_ns = cpu_ns_of_process();
    let done = work();
    let after_ns = cpu_ns_of_process();
    (done, before_ns.zip(after_ns).map(|(before, after)| after.saturating_sub(before)))
}

/// Both together, where both are known.
fn plus(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one? + other?)
}

/// Makes the content and has it written, in turn.
fn write_to(entry: &Entry, target: &Target, wish: &Wish, bytes: u64) -> Result<Outcome, String> {
    let how = How { writes: true, direct: entry.is_direct, dsync: wish.syncing == Syncing::Dsync };
    let path = target.path().display();
    let file = create::reopen(target.file().as_fd(), how)
        .map_err(|errno| format!("cannot open {path} for {}: {errno}", entry.id))?;
    let together = match entry.has_depth {
        true => (memory_bytes_max() as u64 / wish.block_bytes).clamp(1, DEPTH as u64),
        false => 1,
    };
    let slice_blocks = (SLICE_BYTES / wish.block_bytes).max(together).min(wish.count);
    let too_large = || format!("blocks of {} are too large for memory", Bytes(wish.block_bytes));
    let setup = Setup {
        file: file.as_fd(),
        block_bytes: usize::try_from(wish.block_bytes).map_err(|_| too_large())?,
        total_bytes: bytes,
        slice_blocks: usize::try_from(slice_blocks).map_err(|_| too_large())?,
    };
    let mut writer = entry.start(setup)?;
    let (mut checksum, mut time_ns, mut cpu_ns) = (Checksum::new(), 0, Some(0));
    let (mut at, mut broken) = (0, None);
    while at < bytes && broken.is_none() {
        let slice = setup.slice_bytes() as u64;
        let slice = usize::try_from(slice.min(bytes - at)).unwrap_or(usize::MAX);
        let content = &mut writer.buffer()[..slice];
        fill(wish.seed, at, content);
        checksum.take(at, &*content);
        let ((span, why), spent_ns) = with_cpu(|| timed(|| writer.run(slice)));
        cpu_ns = plus(cpu_ns, spent_ns);
        time_ns += span.last_call_ns - span.first_call_ns;
        broken = why;
        at += slice as u64;
    }
    let facts = writer.facts().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(Outcome { moved: writer.moved(), time_ns, cpu_ns, checksum, facts, broken })
}

/// A sync at the end.
pub(crate) struct Synced {
    pub(crate) time: Nanos,
    /// CPU time of the process meanwhile.
    cpu_ns: Option<u64>,
}

/// Cuts the file to its size, looks whether it has it, and syncs it as it is to be;
/// what the sync took.
pub(crate) fn bring_home(
    target: &Target,
    syncing: Syncing,
    bytes: u64,
) -> Result<Option<Synced>, String> {
    let path = target.path().display();
    let was_cut = target.cut(bytes)?;
    let size = target
        .file()
        .metadata()
        .map_err(|e| format!("cannot read the size of {path}: {}", Errno::from(e)))?;
    if size.len() != bytes {
        return Err(format!(
            "{path} has {} bytes and not {bytes}: somebody else writes to it",
            size.len()
        ));
    }
    let Some((call, name)) = last_sync(syncing, was_cut) else { return Ok(None) };
    let (time, cpu_ns) = with_cpu(|| {
        let before_ns = clock::monotonic_ns();
        call(target.file().as_fd()).map(|()| Nanos(clock::monotonic_ns() - before_ns))
    });
    let time = time.map_err(|errno| {
        format!("{name} failed on {path}: {errno}: not all of it is on the device")
    })?;
    Ok(Some(Synced { time, cpu_ns }))
}

type Sync = fn(BorrowedFd<'_>) -> Result<(), Errno>;

/// The call that brings to the device what is not there yet, and its name. With `O_DSYNC` that
/// is the new end of a file which was longer: no write brings that.
fn last_sync(syncing: Syncing, was_cut: bool) -> Option<(Sync, &'static str)> {
    match (syncing, was_cut) {
        (Syncing::None, _) | (Syncing::Dsync, false) => None,
        (Syncing::Fsync, _) => Some((file::fsync, "fsync")),
        (Syncing::Fdatasync, _) | (Syncing::Dsync, true) => Some((file::fdatasync, "fdatasync")),
    }
}

/// Names the file, and brings the name to the device where the content was.
pub(crate) fn complete(
    target: Target,
    path: &std::path::Path,
    syncing: Syncing,
) -> Result<(), String> {
    target.complete()?;
    match syncing {
        Syncing::None => Ok(()),
        _ => destination::sync_folder_of(path),
    }
}
