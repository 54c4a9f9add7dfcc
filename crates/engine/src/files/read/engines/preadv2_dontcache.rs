//! `preadv2_dontcache`: preadv2(2) with `RWF_DONTCACHE`, through the page cache and out
//! of it again.
//!
//! Path through the kernel: as `pread`; pages that the read brought into the page
//! cache are dropped when it ends (`filemap_end_dropbehind_read`).
//! Needs: Linux 6.14 and a file system that knows the flag (`FOP_DONTCACHE`).
//! Compared with: `pread`, which leaves the pages there; `direct`, which never has
//! them.
//! Does not show: much on a warm file: pages that were in the page cache before stay.

use std::os::fd::{AsFd, OwnedFd};

use iolens_model::kernel::KernelVersion;
use iolens_sys::errno::Errno;
use iolens_sys::file::open::Caching;
use iolens_sys::file::read::{How, preadv2};
use iolens_sys::pages::Pages;

use super::{Entry, assemble, buffer, knows};
use crate::files::part::Place;
use crate::files::read::consume::Consume;
use crate::files::read::drive::{Fetch, Reader, Setup, Tally, fill};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "preadv2_dontcache",
    summary: "preadv2(2) with RWF_DONTCACHE: what it brought into the page cache leaves it again",
    needs: "RWF_DONTCACHE of the file system",
    since: Some(KernelVersion::new(6, 14, 0)),
    path: "device → page cache → buffer: copied by the kernel (copy_folio_to_iter), then dropped",
    has_depth: false,
    is_direct: false,
    open,
};

struct DontCache {
    file: OwnedFd,
    buffer: Pages,
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Reader + '_>, String> {
    let file = setup.subject.reopen(Caching::Buffered)?;
    knows(setup.subject, &file, How::DontCache, "RWF_DONTCACHE")?;
    let buffer = buffer(&setup.part)?;
    Ok(assemble(&setup, DontCache { file, buffer }))
}

impl Fetch for DontCache {
    #[inline(always)]
    fn fetch<C: Consume>(
        &mut self,
        place: Place,
        consumer: &mut C,
        tally: &mut Tally,
    ) -> Result<(), Errno> {
        let fd = self.file.as_fd();
        let call =
            |bytes: &mut [u8], offset, _: &mut Tally| preadv2(fd, bytes, offset, How::DontCache);
        fill(&mut self.buffer, place, consumer, tally, call)
    }
}
