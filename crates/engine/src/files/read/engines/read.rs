//! `read`: read(2), from where the one before has ended.
//!
//! Path through the kernel: read(2) → `filemap_read` → `copy_folio_to_iter`; one
//! copy out of the page cache, which readahead fills before.
//! Needs: nothing.
//! Compared with: everything else; it is what a program does that does nothing
//! special.
//! Does not show: a position shared by threads. Each thread has a descriptor, a
//! position and a readahead of its own. A random order moves the position before
//! each read, with a call that is counted.

use std::os::fd::{AsFd, OwnedFd};

use iolens_sys::errno::Errno;
use iolens_sys::file::open::Caching;
use iolens_sys::file::read::{read, seek};
use iolens_sys::pages::Pages;

use super::{Entry, assemble, buffer};
use crate::files::part::Place;
use crate::files::read::consume::Consume;
use crate::files::read::drive::{Fetch, Reader, Setup, Tally, fill};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "read",
    summary: "read(2), each call from where the last one ended",
    needs: "nothing",
    since: None,
    path: "page cache → buffer: copied by the kernel (copy_folio_to_iter)",
    has_depth: false,
    is_direct: false,
    open,
};

struct Read {
    file: OwnedFd,
    buffer: Pages,
    /// Where the next read begins.
    position: u64,
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Reader + '_>, String> {
    let file = setup.subject.reopen(Caching::Buffered)?;
    let buffer = buffer(&setup.part)?;
    Ok(assemble(&setup, Read { file, buffer, position: 0 }))
}

impl Fetch for Read {
    #[inline(always)]
    fn fetch<C: Consume>(
        &mut self,
        place: Place,
        consumer: &mut C,
        tally: &mut Tally,
    ) -> Result<(), Errno> {
        if self.position != place.offset {
            seek(self.file.as_fd(), place.offset)?;
            tally.calls += 1;
        }
        self.position = place.offset + place.bytes as u64;
        let fd = self.file.as_fd();
        fill(&mut self.buffer, place, consumer, tally, |bytes, _, _| read(fd, bytes))
    }
}
