//! What the list of engines that copy is made of.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use iolens_model::kernel::KernelVersion;
use iolens_model::tune::Way;
use iolens_model::units::Bytes;
use iolens_sys::errno::Errno;
use iolens_sys::file;
use iolens_sys::file::create::{self, How};
use iolens_sys::file::open::Caching;
use iolens_sys::pages::{PageKind, Pages};

use crate::availability;
use crate::files::copy::drive::Copier;
use crate::files::moved::Broken;
use crate::files::part::Part;
use crate::files::subject::Subject;
use crate::op::Budget;

/// Bytes of a block that the engines are tried with: whatever alignment a file
/// system asks for, this is a multiple of it.
const TRIED_BYTES: u64 = 64 << 10;

/// One engine.
#[derive(Debug)]
pub struct Entry {
    /// Its id: the kernel's own word where there is one.
    pub id: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What becomes of the bytes.
    pub class: Class,
    /// What it needs, in words.
    pub needs: &'static str,
    /// The first kernel that has what it needs; null where every one does.
    pub since: Option<KernelVersion>,
    /// The way of the bytes.
    pub path: &'static str,
    /// Whether it goes past the page cache at both ends (`O_DIRECT`).
    pub is_direct: bool,
    /// Its class: engines of one differ in details.
    pub way: Way,
    /// Why it is one thread's work; null where threads can share it.
    pub one_thread: Option<&'static str>,
    /// What to use where a file system refuses it; null for those that none does.
    pub instead: Option<&'static str>,
    /// Makes the part of one thread, in that thread. The part has a block at least,
    /// except where the class is [`Class::Shares`].
    ///
    /// Errors: what was refused.
    pub open: fn(Setup) -> Result<Box<dyn Copier>, String>,
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
    /// Errors: as [`Entry::open`], and the kernel that it needs where this one is
    /// older.
    pub fn start(&self, setup: Setup) -> Result<Box<dyn Copier>, String> {
        (self.open)(setup).map_err(|why| availability::with_version(why, self.since))
    }

    /// Tries whether it can copy a file into one of ours without a name, in a folder:
    /// its first block.
    ///
    /// Errors: why not: what was tried and what the system said.
    pub fn try_on(&self, subject: &Subject, folder: &Path) -> Result<(), String> {
        let cannot = |errno: Errno| format!("cannot make a file in {}: {errno}", folder.display());
        let copy = file::in_folder(folder).map_err(cannot)?;
        let how = How { direct: self.is_direct, ..How::WRITES };
        let destination = create::reopen(copy.as_fd(), how).map_err(|errno| {
            format!("cannot open a file in {} for it: {errno}", folder.display())
        })?;
        let caching = if self.is_direct { Caching::Direct } else { Caching::Buffered };
        let source = subject.reopen(caching)?;
        let end = subject.bytes().min(TRIED_BYTES);
        let part = Part { block_bytes: TRIED_BYTES, start: 0, end };
        let setup = Setup { source, destination: destination.into(), part };
        let copied = self.start(setup)?.run(&Budget::messages(part.blocks(), 1));
        let failed = |Broken { call, errno }| format!("{} failed: {errno}", call.name);
        copied.map(drop).map_err(|why| availability::with_version(failed(why), self.since))
    }
}

/// Memory for one block of a part, or for the whole part if that is less.
///
/// Errors: there is not so much.
pub(super) fn buffer(part: &Part) -> Result<Pages, String> {
    let bytes = part.block_bytes.min(part.bytes());
    let wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
    Pages::new(wanted, PageKind::Plain)
        .map_err(|errno| format!("cannot have {} of memory for a block: {errno}", Bytes(bytes)))
}
