//! An engine that reads, as an arm of a trial: what a worker drives slice by slice,
//! as it drives what sends; and what is done to the file around each slice, outside
//! its clock.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use iolens_model::cell::Cell;
use iolens_model::file::{CacheState, FileCounts, FileSetting};
use iolens_model::trial::TrialFile;
use iolens_sys::errno::Errno;
use iolens_sys::file::open::Caching;
use iolens_sys::file::read::pread;
use iolens_sys::pages::{PAGE_BYTES, PageKind, Pages};

use super::job::FilePath;
use super::part::Part;
use super::read::by_hand::delivered_bytes;
use super::read::drive::{Reader, Setup};
use super::read::engines;
use super::residency::{self, Residency};
use super::subject::Subject;
use crate::op::{Budget, Fact, Sender, Span, Tally};

/// One thread's reading with an engine.
struct Arm<'a>(Box<dyn Reader + 'a>);

impl Sender for Arm<'_> {
    fn run(&mut self, budget: &Budget) -> Result<Span, Errno> {
        self.0.run(budget)
    }

    /// Nobody asks a file's reader for anything.
    fn answer(&mut self, _requests: BorrowedFd<'_>) -> Result<Span, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn settle(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// What is in which cache is the slice's affair: see [`Ground::before`].
    fn touch(&mut self) {}

    fn tally(&self) -> Tally {
        let tally = self.0.tally();
        let file = FileCounts {
            short_reads: tally.short_reads,
            would_block: tally.would_block,
            ..FileCounts::default()
        };
        Tally {
            messages: tally.blocks,
            bytes: tally.bytes,
            calls: tally.calls,
            zerocopy: None,
            children: None,
            file: Some(file),
        }
    }

    fn facts(&self) -> Vec<Fact> {
        self.0.facts()
    }
}

/// The file of a trial, and what was done to it so far.
#[derive(Debug)]
pub(crate) struct Ground {
    file: TrialFile,
    subject: Subject,
    /// Whether it was read from end to end, where the kernel does not say what of it
    /// is in the page cache.
    was_read: AtomicBool,
}

impl Ground {
    /// Opens it.
    ///
    /// Errors: as [`Subject::open`].
    pub(crate) fn open(file: &TrialFile) -> Result<Ground, String> {
        let subject = Subject::open(&FilePath::from_bytes(file.path.clone()).path())?;
        Ok(Ground { file: file.clone(), subject, was_read: AtomicBool::new(false) })
    }

    /// Where it is, as bytes.
    pub(crate) fn path(&self) -> &[u8] {
        &self.file.path
    }

    /// The file.
    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    /// A thread's end of an arm that reads with the engine of this id.
    ///
    /// Errors: why the engine cannot read this file in blocks of this size.
    pub(crate) fn arm<'a>(
        &'a self,
        id: &str,
        cell: &Cell,
        thread: usize,
    ) -> Result<Box<dyn Sender + 'a>, String> {
        let entry = engines::find(id).ok_or_else(|| format!("this build has no engine `{id}`"))?;
        let setting = cell.file().ok_or("the trial is of another study")?;
        let FileSetting { pattern, consumer, depth, .. } = setting;
        // Whole blocks alone, so that one is as long as another.
        let whole = self.subject.bytes() / cell.size.0 * cell.size.0;
        let parts = Part::split(whole, cell.size.0, cell.threads);
        let part = parts.get(thread).copied().ok_or_else(|| {
            let (blocks, threads) = (whole / cell.size.0, cell.threads_in_words());
            format!("the file has {blocks} whole blocks of {} for {threads}", cell.size)
        })?;
        let depth = if entry.has_depth { depth } else { 1 };
        // Threads in different orders, arms in the same.
        let seed = self.file.seed.wrapping_add(thread as u64);
        let consumer = consumer.into();
        let setup = Setup { subject: &self.subject, part, pattern, seed, depth, consumer };
        Ok(Box::new(Arm(entry.start(setup)?)))
    }

    /// Brings the file to the state that a slice begins in, and looks.
    ///
    /// Errors: what the system refused.
    pub(crate) fn before(&self, cache: CacheState) -> Result<Before, String> {
        let residency = match cache {
            CacheState::Cold => residency::evict(&self.subject)?,
            CacheState::Warm => self.warm()?,
        };
        let resident_bytes = resident_bytes(&residency);
        Ok(Before { resident_bytes, delivered_bytes: delivered_bytes() })
    }

    /// Looks again after the slice.
    pub(crate) fn after(&self, before: &Before) -> FileCounts {
        let delivered = before.delivered_bytes.zip(delivered_bytes());
        FileCounts {
            resident_before_bytes: before.resident_bytes,
            resident_after_bytes: resident_bytes(&self.residency()),
            device_bytes: delivered.map(|(before, after)| after.saturating_sub(before)),
            ..FileCounts::default()
        }
    }

    fn residency(&self) -> Residency {
        Residency::of(&self.subject, 0, self.subject.bytes())
    }

    /// Reads the file if not all of it is in the page cache; once where the kernel
    /// does not say.
    fn warm(&self) -> Result<Residency, String> {
        let found = self.residency();
        let is_warm = match &found {
            Residency::Known { cached, pages } => cached >= pages,
            // Threads ask one after the other; no other memory hangs on it.
            Residency::Unknown(_) => self.was_read.load(Ordering::Relaxed),
        };
        if is_warm {
            return Ok(found);
        }
        read_through(&self.subject)?;
        self.was_read.store(true, Ordering::Relaxed);
        Ok(self.residency())
    }
}

/// What was found before a slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    resident_bytes: Option<u64>,
    delivered_bytes: Option<u64>,
}

fn resident_bytes(residency: &Residency) -> Option<u64> {
    match residency {
        Residency::Known { cached, .. } => Some(cached * PAGE_BYTES as u64),
        Residency::Unknown(_) => None,
    }
}

/// Reads a file from end to end through the page cache.
///
/// Errors: what the system said.
pub(crate) fn read_through(subject: &Subject) -> Result<(), String> {
    const PIECE_BYTES: usize = 1 << 20;
    let file = subject.reopen(Caching::Buffered)?;
    let mut piece = Pages::new(PIECE_BYTES, PageKind::Plain)
        .map_err(|e| format!("cannot have a buffer of {PIECE_BYTES} bytes: {e}"))?;
    let mut offset = 0;
    while offset < subject.bytes() {
        match pread(file.as_fd(), &mut piece, offset) {
            Ok(0) => return Err(format!("{} has become shorter", subject.name())),
            Ok(n) => offset += n as u64,
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(format!("cannot read {}: {errno}", subject.name())),
        }
    }
    Ok(())
}
