//! `preadv2_nowait`: preadv2(2) with `RWF_NOWAIT`: what is in memory is read at once.
//!
//! Path through the kernel: as `pread`, but a page that is not in the page cache is
//! no reason to wait: the call says `EAGAIN`, which is counted, and the block is
//! read with pread(2).
//! Needs: a file system that knows the flag; tmpfs does not.
//! Compared with: `pread`.
//! Does not show: what a program does better that leaves the waiting to another
//! thread. On a cold file most calls are errors.

use std::os::fd::{AsFd, OwnedFd};

use iolens_model::kernel::KernelVersion;
use iolens_sys::errno::Errno;
use iolens_sys::file::open::Caching;
use iolens_sys::file::read::{How, pread, preadv2};
use iolens_sys::pages::Pages;

use super::{Entry, assemble, buffer, knows};
use crate::files::part::Place;
use crate::files::read::consume::Consume;
use crate::files::read::drive::{Fetch, Reader, Setup, Tally, fill};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "preadv2_nowait",
    summary: "preadv2(2) with RWF_NOWAIT, and pread(2) where it would have to wait",
    needs: "RWF_NOWAIT of the file system",
    since: Some(KernelVersion::new(4, 14, 0)),
    path: "page cache → buffer: copied by the kernel (copy_folio_to_iter)",
    has_depth: false,
    is_direct: false,
    open,
};

struct NoWait {
    file: OwnedFd,
    buffer: Pages,
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Reader + '_>, String> {
    let file = setup.subject.reopen(Caching::Buffered)?;
    knows(setup.subject, &file, How::NoWait, "RWF_NOWAIT")?;
    let buffer = buffer(&setup.part)?;
    Ok(assemble(&setup, NoWait { file, buffer }))
}

impl Fetch for NoWait {
    #[inline(always)]
    fn fetch<C: Consume>(
        &mut self,
        place: Place,
        consumer: &mut C,
        tally: &mut Tally,
    ) -> Result<(), Errno> {
        let fd = self.file.as_fd();
        fill(&mut self.buffer, place, consumer, tally, |bytes, offset, tally| {
            match preadv2(fd, bytes, offset, How::NoWait) {
                Err(Errno::EAGAIN) => {
                    tally.calls += 1;
                    tally.would_block += 1;
                    pread(fd, bytes, offset)
                }
                other => other,
            }
        })
    }
}
