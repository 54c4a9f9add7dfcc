//! What the list of engines that read is made of.

use iolens_model::arm::Role;
use iolens_model::file::{self, EngineFacts};
use iolens_model::kernel::KernelVersion;
use iolens_model::tune::Way;

use crate::availability;
use crate::files::part::{Part, Pattern};
use crate::files::read::consume::Consumer;
use crate::files::read::drive::{Reader, Setup};
use crate::files::subject::Subject;
use crate::op::Budget;

/// One engine.
#[derive(Debug)]
pub struct Entry {
    /// Its id: the kernel's own word where there is one.
    pub id: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What it needs, in words.
    pub needs: &'static str,
    /// The first kernel that has what it needs; null where every one does.
    pub since: Option<KernelVersion>,
    /// The way of the bytes.
    pub path: &'static str,
    /// Whether several reads of a thread can be under way at once.
    pub has_depth: bool,
    /// Whether it reads around the page cache.
    pub is_direct: bool,
    /// Whether it registers its buffers, which locks them: see `RLIMIT_MEMLOCK`.
    pub locks_memory: bool,
    /// Its class: engines of one differ in details.
    pub way: Way,
    /// Makes one thread's reading.
    ///
    /// Errors: why it cannot read this file, or blocks of this size.
    pub open: for<'a> fn(Setup<'a>) -> Result<Box<dyn Reader + 'a>, String>,
}

/// Bytes of a block that the engines are tried with: whatever alignment a file
/// system asks for, this is a multiple of it.
const TRIED_BYTES: u64 = 64 << 10;

impl Entry {
    /// Opens it for a file.
    ///
    /// Errors: as [`Entry::open`], and the kernel that it needs where this one is
    /// older.
    pub fn start<'a>(&self, setup: Setup<'a>) -> Result<Box<dyn Reader + 'a>, String> {
        (self.open)(setup).map_err(|why| availability::with_version(why, self.since))
    }

    /// What a run keeps of it.
    #[must_use]
    pub fn facts(&self) -> EngineFacts {
        EngineFacts {
            id: self.id.to_owned(),
            summary: self.summary.to_owned(),
            path: self.path.to_owned(),
            is_direct: self.is_direct,
            has_depth: self.has_depth,
            is_durable: false,
            program: None,
        }
    }

    /// The part that an arm of it plays against `baseline` where the bytes go to
    /// `consumer`. A mapping of which one byte in each page is touched is no reading
    /// of a file: it shows what mapping costs.
    #[must_use]
    pub fn role(&self, baseline: &str, consumer: file::Consumer) -> Role {
        let looks = consumer != file::Consumer::None;
        Role::against(self.id == baseline, self.way == Way::Mapped && !looks)
    }

    /// Tries whether it can read a file: its first block.
    ///
    /// Errors: why not: what was tried and what the system said.
    pub fn try_on(&self, subject: &Subject) -> Result<(), String> {
        let end = subject.bytes().min(TRIED_BYTES);
        if end == 0 {
            return Ok(());
        }
        let part = Part { block_bytes: TRIED_BYTES, start: 0, end };
        let (pattern, consumer) = (Pattern::Sequential, Consumer::None);
        let setup = Setup { subject, part, pattern, first: 0, seed: 0, depth: 1, consumer };
        let mut reader = self.start(setup)?;
        let read = reader.run(&Budget::messages(1, 1));
        let failed = |errno| format!("cannot read {}: {errno}", subject.name());
        read.map(drop).map_err(|errno| availability::with_version(failed(errno), self.since))
    }
}
