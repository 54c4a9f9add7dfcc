//! What is known of an engine that writes, and what writes for it.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use iolens_model::arm::Role;
use iolens_sys::file::create::How;

use super::lane::LaneSetup;
use crate::moved::{Broken, Moved};
use crate::ways::{self, TRIED_BYTES, file_in};
use iolens_harness::op::{Fact, Sender, Span};

/// One engine that writes.
pub type Entry = ways::Entry<Writes>;

/// What only engines have that write.
#[derive(Debug)]
pub struct Writes {
    /// Why `O_DSYNC` says nothing about it; `None` where it does.
    pub ignores_dsync: Option<&'static str>,
    /// Whether it writes to a descriptor with `O_DSYNC`.
    pub is_dsync: bool,
    /// Whether a new file has to have its size before it is written to.
    pub needs_size: bool,
    /// What does the same by hand, where the engine has no other word there; `None` where
    /// it has its id.
    pub by_hand: Option<&'static str>,
    /// Makes the writer of a file, in the thread that will write.
    ///
    /// Errors: what was refused.
    pub open: Open,
    /// Makes one thread's writing in the slices of a trial.
    ///
    /// Errors: why it cannot write to this file, or blocks of this size.
    pub lane: OpenLane,
}

/// How a writer is made.
pub type Open = for<'a> fn(Setup<'a>) -> Result<Box<dyn Writer + 'a>, String>;

/// How a thread's writing is made.
pub type OpenLane = for<'a> fn(LaneSetup<'a>) -> Result<Box<dyn Sender + 'a>, String>;

impl Writes {
    /// A file as it comes, opened as any other.
    pub(crate) const fn with(open: Open, lane: OpenLane) -> Writes {
        Writes {
            ignores_dsync: None,
            is_dsync: false,
            needs_size: false,
            by_hand: None,
            open,
            lane,
        }
    }
}

/// What a writer is made from.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// The file, open for reading and writing, its position at 0, with `O_DIRECT` and
    /// `O_DSYNC` as they are to be.
    pub file: BorrowedFd<'a>,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// Bytes that will be written, in whole blocks.
    pub total_bytes: u64,
    /// Blocks that [`Writer::buffer`] holds.
    pub slice_blocks: usize,
}

impl Setup<'_> {
    /// Bytes of the memory that is written from.
    pub(crate) fn slice_bytes(&self) -> usize {
        self.block_bytes.saturating_mul(self.slice_blocks)
    }
}

/// What writes one file: erased, one virtual call per slice.
pub trait Writer {
    /// Where the next blocks are to be put.
    fn buffer(&mut self) -> &mut [u8];

    /// Writes the first `bytes` of the buffer behind what was written before, block
    /// by block.
    ///
    /// Errors: the first call that failed for good; what it wrote is counted.
    fn run(&mut self, bytes: usize) -> Result<Span, Broken>;

    /// What was done so far.
    fn moved(&self) -> Moved;

    /// What a reader of its numbers should know.
    fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }
}

impl Entry {
    /// Opens it for a file.
    ///
    /// Errors: as [`Writes::open`], and the kernel that it needs where this one is
    /// older.
    pub fn start<'a>(&self, setup: Setup<'a>) -> Result<Box<dyn Writer + 'a>, String> {
        (self.own.open)(setup).map_err(|why| self.refused(why))
    }

    /// The same for one thread in the slices of a trial.
    ///
    /// Errors: as [`Self::start`].
    pub fn start_lane<'a>(&self, setup: LaneSetup<'a>) -> Result<Box<dyn Sender + 'a>, String> {
        (self.own.lane)(setup).map_err(|why| self.refused(why))
    }

    /// How its file is opened.
    pub(crate) fn how(&self) -> How {
        How { writes: true, direct: self.is_direct, dsync: self.own.is_dsync }
    }

    /// The part that an arm of it plays against `baseline`.
    pub fn role(&self, baseline: &str) -> Role {
        Role::against(self.id == baseline, false)
    }

    /// Tries whether it can write in a folder: a file of ours without a name.
    ///
    /// Errors: why not: what was tried and what the system said.
    pub fn try_in(&self, folder: &Path) -> Result<(), String> {
        let file = file_in(folder, self.how())?;
        let block_bytes = usize::try_from(TRIED_BYTES).unwrap_or(usize::MAX);
        let total_bytes = 2 * TRIED_BYTES;
        let setup = Setup { file: file.as_fd(), block_bytes, total_bytes, slice_blocks: 2 };
        let written = self.start(setup)?.run(2 * block_bytes);
        written.map(drop).map_err(|broken| self.broken(broken))
    }
}
