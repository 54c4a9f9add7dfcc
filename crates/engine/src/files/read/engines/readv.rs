//! `readv`: readv(2) into eight buffers, each call from where the last one ended.
//!
//! Path through the kernel: as `read`, over an iovec of eight equal pieces of the
//! block (fewer where the block has fewer bytes).
//! Needs: nothing.
//! Compared with: `read`, which fills one buffer with the same bytes.
//! Does not show: what a program saves that would have to take one buffer apart.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};

use arrayvec::ArrayVec;
use iolens_model::kernel::KernelVersion;
use iolens_sys::errno::Errno;
use iolens_sys::file::open::Caching;
use iolens_sys::file::read::{readv, seek};
use iolens_sys::pages::Pages;

use super::{Entry, assemble, buffer};
use crate::files::part::Place;
use crate::files::read::consume::Consume;
use crate::files::read::drive::{Fetch, Reader, Setup, Tally, fill};

/// Buffers of a call, as many as a message of `run net` has fields.
const PIECES: usize = 8;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "readv",
    summary: "readv(2) into eight buffers, each call from where the last one ended",
    needs: "nothing",
    since: Some(KernelVersion::new(2, 0, 0)),
    path: "page cache → buffers: copied by the kernel (copy_folio_to_iter)",
    has_depth: false,
    is_direct: false,
    open,
};

struct Readv {
    file: OwnedFd,
    buffer: Pages,
    /// Where the next read begins.
    position: u64,
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Reader + '_>, String> {
    let file = setup.subject.reopen(Caching::Buffered)?;
    let buffer = buffer(&setup.part)?;
    Ok(assemble(&setup, Readv { file, buffer, position: 0 }))
}

impl Fetch for Readv {
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
        fill(&mut self.buffer, place, consumer, tally, |bytes, _, _| {
            let piece = bytes.len().div_ceil(PIECES);
            let mut iovec: ArrayVec<_, PIECES> =
                bytes.chunks_mut(piece).map(IoSliceMut::new).collect();
            readv(fd, &mut iovec)
        })
    }
}
