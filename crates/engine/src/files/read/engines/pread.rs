//! `pread`: pread(2), at an offset.
//!
//! Path through the kernel: as `read`, without the position and its lock.
//! Needs: nothing.
//! Compared with: `read`; and with what reads at offsets in other ways.
//! Does not show: threads that share a descriptor; each has one of its own, whose
//! readahead nobody else disturbs.

use std::os::fd::{AsFd, OwnedFd};

use iolens_sys::errno::Errno;
use iolens_sys::file::open::Caching;
use iolens_sys::file::read::pread;
use iolens_sys::pages::Pages;

use super::{Entry, assemble, buffer};
use crate::files::part::Place;
use crate::files::read::consume::Consume;
use crate::files::read::drive::{Fetch, Reader, Setup, Tally, fill};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "pread",
    summary: "pread(2) at an offset",
    needs: "nothing",
    since: None,
    path: "page cache → buffer: copied by the kernel (copy_folio_to_iter)",
    has_depth: false,
    is_direct: false,
    open,
};

struct Pread {
    file: OwnedFd,
    buffer: Pages,
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Reader + '_>, String> {
    let file = setup.subject.reopen(Caching::Buffered)?;
    let buffer = buffer(&setup.part)?;
    Ok(assemble(&setup, Pread { file, buffer }))
}

impl Fetch for Pread {
    #[inline(always)]
    fn fetch<C: Consume>(
        &mut self,
        place: Place,
        consumer: &mut C,
        tally: &mut Tally,
    ) -> Result<(), Errno> {
        let fd = self.file.as_fd();
        let call = |bytes: &mut [u8], offset, _: &mut Tally| pread(fd, bytes, offset);
        fill(&mut self.buffer, place, consumer, tally, call)
    }
}
