//! What the list of engines that write is made of, and what writes for them.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use iolens_model::arm::Role;
use iolens_model::file::EngineFacts;
use iolens_model::kernel::KernelVersion;
use iolens_sys::errno::Errno;
use iolens_sys::file;
use iolens_sys::file::create::{self, How};

use crate::availability;
use crate::files::moved::{Broken, Moved};
use crate::files::write::lane::{Lane, LaneSetup};
use crate::op::{Fact, Span};

/// Bytes of a block that the engines are tried with: whatever alignment a file
/// system asks for, this is a multiple of it.
const TRIED_BYTES: usize = 64 << 10;

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
    /// Whether it goes past the page cache (`O_DIRECT`).
    pub is_direct: bool,
    /// Why `O_DSYNC` says nothing about it; null where it does.
    pub ignores_dsync: Option<&'static str>,
    /// Whether several blocks of a thread can be under way at once; by hand a slice
    /// then has as many at least.
    pub has_depth: bool,
    /// Whether it writes to a descriptor with `O_DSYNC`.
    pub is_dsync: bool,
    /// Whether each block is on the device, as far as that says, before the next one.
    pub is_durable: bool,
    /// Whether a new file has to have its size before it is written to.
    pub needs_size: bool,
    /// What does the same by hand, where the engine has no other word there; null where
    /// it has its id.
    pub by_hand: Option<&'static str>,
    /// Makes the writer of a file, in the thread that will write.
    ///
    /// Errors: what was refused.
    pub open: for<'a> fn(Setup<'a>) -> Result<Box<dyn Writer + 'a>, String>,
    /// Makes one thread's writing in the slices of a trial.
    ///
    /// Errors: why it cannot write to this file, or blocks of this size.
    pub lane: for<'a> fn(LaneSetup<'a>) -> Result<Box<dyn Lane + 'a>, String>,
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
    /// Errors: as [`Entry::open`], and the kernel that it needs where this one is
    /// older.
    pub fn start<'a>(&self, setup: Setup<'a>) -> Result<Box<dyn Writer + 'a>, String> {
        (self.open)(setup).map_err(|why| availability::with_version(why, self.since))
    }

    /// The same for one thread in the slices of a trial.
    ///
    /// Errors: as [`Self::start`].
    pub fn start_lane<'a>(&self, setup: LaneSetup<'a>) -> Result<Box<dyn Lane + 'a>, String> {
        (self.lane)(setup).map_err(|why| availability::with_version(why, self.since))
    }

    /// How its file is opened.
    pub(crate) fn how(&self) -> How {
        How { writes: true, direct: self.is_direct, dsync: self.is_dsync }
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
            is_durable: self.is_durable,
            program: None,
        }
    }

    /// The part that an arm of it plays against `baseline`.
    #[must_use]
    pub fn role(&self, baseline: &str) -> Role {
        if self.id == baseline { Role::Baseline } else { Role::Compared }
    }

    /// Tries whether it can write in a folder: a file of ours without a name.
    ///
    /// Errors: why not: what was tried and what the system said.
    pub fn try_in(&self, folder: &Path) -> Result<(), String> {
        let cannot = |errno: Errno| format!("cannot make a file in {}: {errno}", folder.display());
        let file = file::in_folder(folder).map_err(cannot)?;
        let file = create::reopen(file.as_fd(), self.how()).map_err(|errno| {
            format!("cannot open a file in {} for it: {errno}", folder.display())
        })?;
        let bytes = 2 * TRIED_BYTES as u64;
        let setup = Setup {
            file: file.as_fd(),
            block_bytes: TRIED_BYTES,
            total_bytes: bytes,
            slice_blocks: 2,
        };
        let written = self.start(setup)?.run(2 * TRIED_BYTES);
        let failed = |Broken { call, errno }| format!("{} failed: {errno}", call.name);
        written.map(drop).map_err(|why| availability::with_version(failed(why), self.since))
    }
}
