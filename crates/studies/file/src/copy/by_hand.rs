//! One file copied by hand.

use std::os::fd::AsFd;

use iolens_model::units::Nanos;
use iolens_sys::file::at::pread;
use iolens_sys::file::create;
use serde::{Deserialize, Serialize};

use super::engine::{Class, Entry, Setup};
use crate::checksum::Checksum;
use crate::destination::{Destination, Existing, Target};
use crate::examine::{Findings, examine};
use crate::failure::{Ends, counted};
use crate::file_path::FilePath;
use crate::leftover::Leftovers;
use crate::moved::{Broken, Moved};
use crate::part::Part;
use crate::part::{Together, duration, timed, together};
use crate::read::by_hand::fallen_back;
use crate::residency::Residency;
use crate::subject::Subject;
use crate::write::by_hand::{Syncing, bring_home, complete, subject_of};
use iolens_harness::op::{Budget, Span};

/// What is to be copied, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// The source, which is only read.
    pub source: FilePath,
    /// The destination.
    pub destination: FilePath,
    /// The engine's id.
    pub engine: String,
    /// Bytes of a block; at least 1.
    pub block_bytes: u64,
    /// Threads, each with a range of its own; at least 1.
    pub threads: u32,
    /// Whether an existing file is written over.
    pub overwrite: bool,
    /// Whether both files are read afterwards and compared.
    pub verify: bool,
    /// Whether the destination is on its device in the end (fsync(2)).
    pub fsync: bool,
    /// Most bytes, from the beginning; `None` for all. Less than all is no copy, and is
    /// for trials.
    pub bytes_max: Option<u64>,
    /// Whether the copy gets its name; otherwise it is gone in the end.
    pub keep: bool,
}

impl Wish {
    /// Bytes of a source that are copied.
    fn bytes_of(&self, source: &Subject) -> u64 {
        source.bytes().min(self.bytes_max.unwrap_or(u64::MAX))
    }
}

/// What was copied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// The file systems of the source and of the destination.
    pub file_systems: [String; 2],
    /// Size of the source at the beginning.
    pub source_bytes: u64,
    /// Whether an existing file was written over.
    pub was_there: bool,
    /// Threads that copied: no more than there are blocks.
    pub threads: u32,
    /// What all threads did.
    pub moved: Moved,
    /// Bytes of the destination whose blocks are those of other files too; `None` where
    /// the file system does not tell.
    pub shared_bytes: Option<u64>,
    /// Whether no bytes moved, because the copy has the blocks of the source.
    pub is_reflinked: bool,
    /// From the first call of the first thread to the last one of the last.
    pub time: Nanos,
    /// The time of the fsync at the end; `None` where there was none.
    pub sync_time: Option<Nanos>,
    /// The hash of both, as they are now; `None` where it was not asked for.
    pub checksum: Option<u64>,
    /// What of the source was in the page cache before and after.
    pub source_resident: [Residency; 2],
    /// What of an existing destination was there before; `None` for a new one.
    pub destination_resident_before: Option<Residency>,
    /// What of the destination is there afterwards.
    pub destination_resident_after: Residency,
    /// CPU time of the process while it copied, user and kernel; `None` where it cannot be read.
    pub cpu: Option<(Nanos, Nanos)>,
    /// What the engine says about itself: names and values.
    pub facts: Vec<(String, String)>,
    /// What a reader of these numbers should know, a sentence each.
    pub notes: Vec<String>,
    /// Why not all was copied; `None` where all was.
    pub failure: Option<String>,
}

/// Copies a file.
///
/// Errors: why nothing was copied: what was tried and what the system said.
pub fn copy(wish: &Wish) -> Result<Done, String> {
    let entry = crate::engines::that_copies(&wish.engine)
        .ok_or_else(|| format!("this build has no engine `{}` that copies", wish.engine))?;
    if let (2.., Some(why)) = (wish.threads, entry.one_thread) {
        return Err(format!(
            "cannot share {} among {} threads: {why}\n  leave --threads out",
            entry.id, wish.threads
        ));
    }
    let source = Subject::open(&wish.source.path())?;
    let path = wish.destination.path();
    let existing = if wish.overwrite { Existing::Overwrite } else { Existing::Refuse };
    let destination = Destination::check(&path, existing, Some(&source))?;
    let bytes = wish.bytes_of(&source);
    if entry.own.class == Class::Copies {
        destination.check_room(bytes)?;
    }
    let file_system = destination.file_system()?;
    let existing_bytes = destination.existing().map(|about| about.bytes);
    let target = destination.open(&Leftovers::here())?;
    let written = subject_of(&target)?;
    let before = existing_bytes.map(|bytes| Residency::of(&written, 0, bytes));
    let source_before = Residency::of(&source, 0, bytes);
    let ends = Ends {
        source: Some(&source),
        destination: &path,
        file_system: &file_system,
        instead: entry.own.instead,
    };
    let outcome = copy_parts(entry, &source, &target, wish)?;
    let copy = Copy { entry, source: &source, written: &written };
    let mut done = Done {
        file_systems: [source.file_system().to_owned(), file_system.clone()],
        source_bytes: source.bytes(),
        was_there: existing_bytes.is_some(),
        threads: outcome.threads,
        moved: outcome.moved,
        shared_bytes: None,
        is_reflinked: entry.own.class == Class::Shares,
        time: outcome.time,
        sync_time: None,
        checksum: None,
        source_resident: [source_before, Residency::of(&source, 0, bytes)],
        destination_resident_before: before,
        destination_resident_after: Residency::of(&written, 0, bytes),
        cpu: outcome.cpu,
        facts: outcome.facts,
        notes: Vec::new(),
        failure: None,
    };
    let ended = match outcome.broken {
        Some(broken) => Err((ends.explain(broken, done.moved.bytes), ends.advice(broken))),
        None => copy.conclude(wish, &target, &mut done).map_err(|why| (why, String::new())),
    };
    done.failure = match ended {
        Ok(()) if !wish.keep => None,
        Ok(()) => complete(target, &path, syncing(wish)).err(),
        Err((why, advice)) => Some(format!("{why}; {}{advice}", target.remains())),
    };
    Ok(done)
}

fn syncing(wish: &Wish) -> Syncing {
    if wish.fsync { Syncing::Fsync } else { Syncing::None }
}

/// What came of all threads.
struct Outcome {
    threads: u32,
    moved: Moved,
    time: Nanos,
    cpu: Option<(Nanos, Nanos)>,
    facts: Vec<(String, String)>,
    broken: Option<Broken>,
}

/// What came of one.
struct Share {
    span: Span,
    broken: Option<Broken>,
    moved: Moved,
    facts: Vec<(String, String)>,
}

/// Copies every part on a thread of its own.
fn copy_parts(
    entry: &Entry,
    source: &Subject,
    target: &Target,
    wish: &Wish,
) -> Result<Outcome, String> {
    let bytes = wish.bytes_of(source);
    let parts = entry.parts(bytes, wish.block_bytes, wish.threads);
    // Descriptors of each thread's own: they have positions.
    let open = |part: Part| {
        let (caching, how) = entry.opened();
        let destination = create::reopen(target.file().as_fd(), how).map_err(|errno| {
            format!("cannot open {} for {}: {errno}", target.path().display(), entry.id)
        })?;
        let source = source.reopen(caching)?;
        entry.start(Setup { source, destination: destination.into(), part })
    };
    let copied = together(&parts, open, |copier, part: Part| {
        let budget = Budget::messages(part.blocks().max(1), 1);
        let (span, broken) = timed(|| copier.run(&budget));
        let facts = copier.facts().into_iter();
        let facts = facts.map(|(name, value)| (name.to_owned(), value)).collect();
        Share { span, broken, moved: copier.moved(), facts }
    })?;
    Ok(add_up(copied))
}

fn add_up(copied: Together<Share>) -> Outcome {
    let Together { each: shares, cpu } = copied;
    let mut moved = Moved::default();
    shares.iter().for_each(|share| moved.add(&share.moved));
    Outcome {
        threads: u32::try_from(shares.len().max(1)).unwrap_or(u32::MAX),
        moved,
        time: duration(shares.iter().map(|share| share.span)),
        cpu,
        broken: shares.iter().find_map(|share| share.broken),
        facts: shares.into_iter().next().map_or_else(Vec::new, |share| share.facts),
    }
}

/// A copy that was made, to be looked at.
struct Copy<'a> {
    entry: &'a Entry,
    source: &'a Subject,
    written: &'a Subject,
}

impl Copy<'_> {
    /// Finds out what became of it, syncs it and compares it, as far as that was asked
    /// for.
    ///
    /// Errors: why it is no copy.
    fn conclude(&self, wish: &Wish, target: &Target, done: &mut Done) -> Result<(), String> {
        let bytes = wish.bytes_of(self.source);
        done.notes.extend(self.grown()?);
        done.sync_time = bring_home(target, syncing(wish), bytes)?.map(|synced| synced.time);
        self.look(done);
        if wish.verify {
            done.checksum = Some(self.compare(wish.bytes_max)?);
        }
        Ok(())
    }

    /// What was there more of the source than its size, at the beginning or now.
    fn grown(&self) -> Result<Option<String>, String> {
        let (name, bytes) = (self.source.name(), self.source.bytes());
        let more = pread(self.source.fd(), &mut [0], bytes);
        if more != Ok(1) {
            return Ok(None);
        }
        match self.source.about_now().map_err(|errno| format!("cannot query {name}: {errno}"))? {
            now if now.bytes > bytes => Ok(Some(format!(
                "{name} has grown by {} meanwhile, which were not copied",
                counted(now.bytes - bytes)
            ))),
            _ => Err(format!(
                "{name} has more than the {bytes} bytes that its size says: it is a file of the \
                 kernel's ({}), made when it is read, which `cat` copies",
                self.source.file_system()
            )),
        }
    }

    /// Holes, shared blocks, and pages that should not be there.
    fn look(&self, done: &mut Done) {
        let (Ok(source), Ok(copy)) = (self.findings(self.source), self.findings(self.written))
        else {
            return;
        };
        done.shared_bytes = copy.shared_bytes;
        let bytes = copy.file_bytes;
        let shared = copy.shared_bytes.unwrap_or(0);
        // The file is what was asked for, however it came: this is said, as sharing is.
        let known = self.entry.own.class.check_known(copy.shared_bytes, &done.file_systems[1]);
        done.notes.extend(known.err());
        if self.entry.own.class == Class::MayShare && shared > 0 {
            let data = bytes.saturating_sub(copy.hole_bytes.unwrap_or(0));
            done.is_reflinked = shared >= data;
            done.notes.push(match done.is_reflinked {
                true => {
                    "reflinked: 0 bytes moved, the copy has the blocks of the source".to_owned()
                }
                false => format!(
                    "partly reflinked: {} of the copy are blocks that other files have too, and \
                     did not move; the rate is not one of bytes",
                    counted(shared)
                ),
            });
        }
        done.notes.extend(holes(&source, &copy));
        if self.entry.is_direct {
            let [before, after] = &done.source_resident;
            // Cutting the padding off brings in the page that the file ends within.
            let page = iolens_sys::pages::page_bytes() as u64;
            let tail = u64::from(!bytes.is_multiple_of(page));
            let none = Residency::Known { cached: tail, pages: tail };
            let before_copy = done.destination_resident_before.as_ref().unwrap_or(&none);
            let after_copy = &done.destination_resident_after;
            let ends = [(before, after, "source"), (before_copy, after_copy, "destination")];
            for (before, after, end) in ends {
                let grew = fallen_back(before, after);
                done.notes.extend(grew.map(|note| format!("{end}: {note}")));
            }
        }
    }

    fn findings(&self, file: &Subject) -> Result<Findings, String> {
        // Its size now: the destination had none when it was opened.
        let again = file.reopen_unnoticed()?;
        examine(&Subject::of(again.into(), file.name().to_owned())?)
    }

    /// Reads both files, or as much as was copied, and compares them; the hash.
    fn compare(&self, bytes_max: Option<u64>) -> Result<u64, String> {
        let source = checksum(self.source, bytes_max.unwrap_or(u64::MAX))?;
        let copy = checksum(self.written, u64::MAX)?;
        if source == copy {
            return Ok(copy);
        }
        Err(format!(
            "{} is no copy of {}: the checksums are {copy:016x} and {source:016x}; the source was \
             written to meanwhile, or something on the way is broken",
            self.written.name(),
            self.source.name()
        ))
    }
}

/// What became of the source's holes.
fn holes(source: &Findings, copy: &Findings) -> Option<String> {
    let had = source.hole_bytes.filter(|&bytes| bytes > 0)?;
    let has = copy.hole_bytes?;
    let had_text = counted(had);
    Some(match has {
        0 => format!("the source has {had_text} of holes: they were copied as zeros"),
        kept if kept >= had => format!("the source has {had_text} of holes: they were kept"),
        kept => format!(
            "the source has {had_text} of holes: {} of them were kept, the rest copied as zeros",
            counted(kept)
        ),
    })
}

/// The hash of a file, or of its first `bytes_max` bytes, read through the page cache.
pub(crate) fn checksum(file: &Subject, bytes_max: u64) -> Result<u64, String> {
    let mut checksum = Checksum::new();
    let take = |at, piece: &[u8]| checksum.take(at, piece);
    let bytes = file.read_pieces(&file.reopen_unnoticed()?, 0..bytes_max, take)?;
    Ok(checksum.value(bytes))
}
