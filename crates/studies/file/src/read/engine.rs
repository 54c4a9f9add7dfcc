//! What is known of an engine that reads.

use iolens_model::arm::Role;
use iolens_model::file;
use iolens_model::tune::Way;

use super::consume::Consumer;
use super::drive::{Reader, Setup};
use crate::part::{Part, Pattern};
use crate::subject::Subject;
use crate::ways::{self, TRIED_BYTES};
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

impl Entry {
    /// Opens it for a file.
    ///
    /// Errors: as [`Reads::open`], and the kernel that it needs where this one is
    /// older.
    pub fn start<'a>(&self, setup: Setup<'a>) -> Result<Box<dyn Reader + 'a>, String> {
        (self.own.open)(setup).map_err(|why| self.refused(why))
    }

    /// The part that an arm of it plays against `baseline` where the bytes go to
    /// `consumer`.
    pub fn role(&self, baseline: &str, consumer: file::Consumer) -> Role {
        Role::against(self.id == baseline, self.only_touches(consumer != file::Consumer::None))
    }

    /// Whether it touches one byte in each page of a mapping where nobody looks at the bytes: no
    /// reading of a file, it shows what mapping costs.
    pub(crate) fn only_touches(&self, looks: bool) -> bool {
        self.way == Way::Mapped && !looks
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
