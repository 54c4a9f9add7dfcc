//! `reflink`: one ioctl (`FICLONE`) makes the destination share all blocks of the
//! source, until one of them is written to.
//!
//! Path through the kernel: `vfs_clone_file_range` → the file system's
//! `remap_file_range`: work on metadata alone, whatever the size; what is dirty of the
//! source is written back first.
//! Needs: btrfs, xfs made with `reflink=1` (the default), bcachefs, ocfs2, or overlayfs
//! above one of them; both files on it.
//! Compared with: nothing in bytes per second, since none moves: it is a class of its
//! own.
//! Does not show: the copy that the first write to a shared block will make.

use std::os::fd::AsFd;

use iolens_model::kernel::KernelVersion;
use iolens_sys::clock;
use iolens_sys::file::copy::{Between, clone_file};

use crate::files::copy::drive::Copier;
use crate::files::copy::engines::{Class, Entry, Setup};
use crate::files::moved::{Broken, Call, Moved};
use crate::op::{Budget, Span};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "reflink",
    summary: "one FICLONE for the whole file: no bytes move, blocks are shared",
    needs: "both files on one btrfs, bcachefs or xfs with reflink=1",
    since: Some(KernelVersion::new(4, 5, 0)),
    path: "no bytes move: the blocks of the source are shared",
    class: Class::Shares,
    is_direct: false,
    one_thread: Some("one call clones the whole file"),
    instead: Some("copy_file_range, which shares blocks where it can and copies elsewhere"),
    open,
};

fn open(setup: Setup) -> Result<Box<dyn Copier>, String> {
    Ok(Box::new(Reflink { setup, moved: Moved::default() }))
}

struct Reflink {
    setup: Setup,
    moved: Moved,
}

impl Copier for Reflink {
    fn run(&mut self, budget: &Budget) -> Result<Span, Broken> {
        let Setup { source, destination, .. } = &self.setup;
        let between = Between { from: source.as_fd(), to: destination.as_fd() };
        let first_call_ns = clock::monotonic_ns();
        budget.begin(first_call_ns);
        // What the blocks of the budget are is not asked: it is all of them.
        while budget.take().is_some() {}
        loop {
            match clone_file(between) {
                Ok(()) => break,
                Err(errno) => self.moved.nothing(Call::both("FICLONE"), errno)?,
            }
        }
        self.moved.calls += 1;
        self.moved.blocks += self.setup.part.blocks();
        Ok(Span { first_call_ns, last_call_ns: clock::monotonic_ns() })
    }

    fn moved(&self) -> Moved {
        self.moved
    }
}
