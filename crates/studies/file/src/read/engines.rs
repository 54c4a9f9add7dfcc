//! The engines that read.

use iolens_model::arm::Role;
use iolens_model::file;
use iolens_model::tune::Way;

use super::bare;
use super::consume::Consumer;
use super::drive::{Reader, Setup};
use crate::part::{Part, Pattern};
use crate::subject::Subject;
use crate::ways::{self, TRIED_BYTES, called, direct, mapped, read_ring};
use iolens_harness::op::Budget;

/// One engine that reads.
pub type Entry = ways::Entry<Reads>;

/// What only engines have that read.
#[derive(Debug)]
pub struct Reads {
    /// Makes one thread's reading.
    ///
    /// Errors: why it cannot read this file, or blocks of this size.
    pub open: Open,
}

/// How a thread's reading is made.
pub type Open = for<'a> fn(Setup<'a>) -> Result<Box<dyn Reader + 'a>, String>;

/// Every engine, sorted by id.
pub const ENGINES: &[&Entry] = &[
    &direct::READ,
    &mapped::READ,
    &mapped::READ_POPULATED,
    &called::PREAD,
    &called::PREADV2_DONTCACHE,
    &called::PREADV2_NOWAIT,
    &called::READ,
    &called::READV,
    &read_ring::READ,
    &read_ring::READ_DIRECT,
    &read_ring::READ_FIXED,
    &read_ring::READ_SQPOLL,
];

/// The engine of an id; the bare loop that checks the harness has one too, and stands
/// in no list.
#[must_use]
pub fn find(id: &str) -> Option<&'static Entry> {
    ways::find(ENGINES, id).or_else(|| bare::find(id))
}

impl Entry {
    /// Opens it for a file.
    ///
    /// Errors: as [`Reads::open`], and the kernel that it needs where this one is
    /// older.
    pub fn start<'a>(&self, setup: Setup<'a>) -> Result<Box<dyn Reader + 'a>, String> {
        (self.own.open)(setup).map_err(|why| self.refused(why))
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
        let failed = |errno| self.refused(format!("cannot read {}: {errno}", subject.name()));
        reader.run(&Budget::messages(1, 1)).map(drop).map_err(failed)
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
