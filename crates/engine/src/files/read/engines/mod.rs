//! The engines that read: one file each, named after its id, and one line in
//! [`ENGINES`]. The file's own documentation says which path the bytes take, what
//! it needs and what it does not show.

mod direct;
mod mmap;
mod mmap_populate;
mod pread;
mod preadv2_dontcache;
mod preadv2_nowait;
mod read;
mod readv;
mod uring;
mod uring_direct;
mod uring_fixed;
mod uring_sqpoll;

use iolens_model::arm::Role;
use iolens_model::file::{self, EngineFacts};
use iolens_model::kernel::KernelVersion;
use iolens_model::tune::Way;

use super::bare;
use super::consume::Consumer;
use super::drive::{Reader, Setup};
use crate::availability;
use crate::files::part::{Part, Pattern};
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

/// Every engine, sorted by id.
pub const ENGINES: &[&Entry] = &[
    &direct::ENTRY,
    &mmap::ENTRY,
    &mmap_populate::ENTRY,
    &pread::ENTRY,
    &preadv2_dontcache::ENTRY,
    &preadv2_nowait::ENTRY,
    &read::ENTRY,
    &readv::ENTRY,
    &uring::ENTRY,
    &uring_direct::ENTRY,
    &uring_fixed::ENTRY,
    &uring_sqpoll::ENTRY,
];

/// The engine of an id; the bare loop that checks the harness has one too, and stands
/// in no list.
#[must_use]
pub fn find(id: &str) -> Option<&'static Entry> {
    ENGINES.iter().copied().find(|entry| entry.id == id).or_else(|| bare::find(id))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_that_nobody_looks_at_is_a_control() {
        let part = |id, consumer| find(id).expect("an engine").role("read", consumer);
        for id in ["mmap", "mmap_populate"] {
            assert_eq!(part(id, file::Consumer::None), Role::Control, "{id}");
            assert_eq!(part(id, file::Consumer::Scan), Role::Compared, "{id}");
        }
        assert_eq!(part("read", file::Consumer::None), Role::Baseline);
        assert_eq!(part("direct", file::Consumer::None), Role::Compared);
    }
}
