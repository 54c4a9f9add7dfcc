//! What is known of an engine that copies.

use std::os::fd::OwnedFd;
use std::path::Path;

use iolens_sys::file::create::How;
use iolens_sys::file::open::Caching;

use super::drive::Copier;
use crate::part::Part;
use crate::subject::Subject;
use crate::ways::{self, TRIED_BYTES, file_in};
use iolens_harness::op::Budget;

/// One engine that copies.
pub type Entry = ways::Entry<Copies>;

/// What only engines have that copy.
#[derive(Debug)]
pub struct Copies {
    /// What becomes of the bytes.
    pub class: Class,
    /// What to use where a file system refuses it; `None` for those that none does.
    pub instead: Option<&'static str>,
    /// Makes the part of one thread, in that thread. The part has a block at least,
    /// except where the class is [`Class::Shares`].
    ///
    /// Errors: what was refused.
    pub open: Open,
}

/// How a thread's part of a copy is made.
pub type Open = fn(Setup) -> Result<Box<dyn Copier>, String>;

impl Copies {
    /// Bytes that are copied, where file systems allow it.
    pub(crate) const fn with(open: Open) -> Copies {
        Copies { class: Class::Copies, instead: Some("read_write"), open }
    }
}

/// What becomes of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// They are copied, by this program or by the kernel.
    Copies,
    /// The kernel decides: it may share the blocks of the source instead.
    MayShare,
    /// None moves: the blocks of the source are shared.
    Shares,
}

/// File systems without a map of extents on which no two files can have the same blocks.
const CANNOT_SHARE: [&str; 2] = ["tmpfs", "ramfs"];

impl Class {
    /// Whether it is known what became of the bytes, from how many of the copy are in shared
    /// blocks, where the file system tells. OpenZFS shares blocks and has no map that says so:
    /// silence is no sign that bytes were copied.
    ///
    /// Errors: what cannot be told.
    pub fn check_known(self, shared_bytes: Option<u64>, file_system: &str) -> Result<(), String> {
        let is_known = shared_bytes.is_some() || CANNOT_SHARE.contains(&file_system);
        match self {
            Class::MayShare if !is_known => Err(format!(
                "cannot tell whether blocks were shared on {file_system}, which has no map of \
                 extents (FIEMAP): the bytes may not have moved"
            )),
            _ => Ok(()),
        }
    }
}

/// What one thread's part is made from.
#[derive(Debug)]
pub struct Setup {
    /// The source, open for reading, with a position of the thread's own. Bare
    /// descriptors, whose numbers are read without a call.
    pub source: OwnedFd,
    /// The destination, open for reading and writing, likewise.
    pub destination: OwnedFd,
    /// The thread's blocks.
    pub part: Part,
}

impl Entry {
    /// Opens it for a file.
    ///
    /// Errors: as [`Copies::open`], and the kernel that it needs where this one is
    /// older.
    pub fn start(&self, setup: Setup) -> Result<Box<dyn Copier>, String> {
        (self.own.open)(setup).map_err(|why| self.refused(why))
    }

    /// The parts of a file that so many threads have; fewer where blocks are few.
    pub(crate) fn parts(&self, bytes: u64, block_bytes: u64, threads: u32) -> Vec<Part> {
        match self.own.class {
            // One call, whatever the size, and also for nothing.
            Class::Shares => vec![Part { block_bytes: bytes.max(1), start: 0, end: bytes }],
            Class::Copies | Class::MayShare => Part::split(bytes, block_bytes, threads),
        }
    }

    /// How it has its source opened, and its destination.
    pub(crate) fn opened(&self) -> (Caching, How) {
        let caching = if self.is_direct { Caching::Direct } else { Caching::Buffered };
        (caching, How { direct: self.is_direct, ..How::WRITES })
    }

    /// Tries whether it can copy a file into one of ours without a name, in a folder:
    /// its first block.
    ///
    /// Errors: why not: what was tried and what the system said.
    pub fn try_on(&self, subject: &Subject, folder: &Path) -> Result<(), String> {
        let (caching, how) = self.opened();
        let destination = file_in(folder, how)?.into();
        let source = subject.reopen(caching)?;
        let end = subject.bytes().min(TRIED_BYTES);
        let part = Part { block_bytes: TRIED_BYTES, start: 0, end };
        let copied = self
            .start(Setup { source, destination, part })?
            .run(&Budget::messages(part.blocks(), 1));
        copied.map(drop).map_err(|broken| self.broken(broken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nobody_tells_what_is_shared_a_copy_that_may_share_is_none() {
        let why = Class::MayShare.check_known(None, "zfs").unwrap_err();
        assert!(why.starts_with("cannot tell whether blocks were shared on zfs"), "{why}");
        for unknown in ["fuse", "nfs", "an unknown file system"] {
            assert!(Class::MayShare.check_known(None, unknown).is_err(), "{unknown}");
        }
        for memory in ["tmpfs", "ramfs"] {
            assert_eq!(Class::MayShare.check_known(None, memory), Ok(()));
        }
        assert_eq!(Class::MayShare.check_known(Some(0), "ext4"), Ok(()));
        // These do not leave it to the kernel.
        for class in [Class::Copies, Class::Shares] {
            assert_eq!(class.check_known(None, "zfs"), Ok(()));
        }
    }
}
