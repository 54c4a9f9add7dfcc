//! `direct`: pread(2) of a file opened with `O_DIRECT`.
//!
//! Path through the kernel: pread(2) → the file system's `iomap_dio_rw` or its like →
//! the device writes into the buffer's own pages. No copy, no page cache, no
//! readahead.
//! Needs: a file system with `O_DIRECT`, and blocks that are multiples of what
//! statx(2) says (`STATX_DIOALIGN`), or of 4096 bytes where it says nothing. The last
//! block of the file is asked for in whole units and ends with the file.
//! Compared with: `uring_direct`, which has several under way; `pread` on a cold file.
//! Does not show: whether the file system read through the page cache after all:
//! that is found out by what is in there afterwards.

use std::os::fd::{AsFd, OwnedFd};

use iolens_model::kernel::KernelVersion;
use iolens_model::tune::Way;
use iolens_sys::errno::Errno;
use iolens_sys::file::open::Caching;
use iolens_sys::file::read::pread;
use iolens_sys::pages::Pages;

use super::entry::Entry;
use crate::files::part::Place;
use crate::files::read::called::buffer;
use crate::files::read::consume::Consume;
use crate::files::read::direct::{offset_alignment, rounded_up};
use crate::files::read::drive::{Fetch, Reader, Setup, Sink, assemble, fill};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "direct",
    summary: "pread(2) with O_DIRECT, around the page cache",
    needs: "O_DIRECT of the file system, and blocks of whole sectors",
    since: Some(KernelVersion::new(2, 4, 10)),
    path: "device → buffer: written by the device",
    has_depth: false,
    is_direct: true,
    locks_memory: false,
    way: Way::Direct,
    open,
};

struct Direct {
    file: OwnedFd,
    buffer: Pages,
    alignment: u32,
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Reader + '_>, String> {
    let alignment = offset_alignment(&setup)?;
    let file = setup.subject.reopen(Caching::Direct)?;
    let buffer = buffer(&setup.part)?;
    Ok(assemble(&setup, Direct { file, buffer, alignment }))
}

impl Fetch for Direct {
    #[inline(always)]
    fn fetch<C: Consume>(&mut self, place: Place, sink: &mut Sink<C>) -> Result<(), Errno> {
        let (fd, alignment) = (self.file.as_fd(), self.alignment);
        let asked = rounded_up(place.bytes, alignment);
        fill(asked, &mut self.buffer, place, sink, |bytes, offset, _| {
            // Within a unit nothing can go on: the file has ended there.
            if offset.is_multiple_of(alignment.into()) { pread(fd, bytes, offset) } else { Ok(0) }
        })
    }
}
