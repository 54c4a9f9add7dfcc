//! `readv`: readv(2) into eight buffers, each call from where the last one ended.
//!
//! Path through the kernel: as `read`, over an iovec of eight equal pieces of the
//! block (fewer where the block has fewer bytes).
//! Needs: nothing.
//! Compared with: `read`, which fills one buffer with the same bytes.
//! Does not show: what a program saves that would have to take one buffer apart.

use std::io::IoSliceMut;
use std::os::fd::BorrowedFd;

use arrayvec::ArrayVec;
use iolens_model::kernel::KernelVersion;
use iolens_model::tune::Way;
use iolens_sys::file::read::readv;

use super::entry::Entry;
use crate::files::read::called::{self, Call, Got};
use crate::files::read::drive::Tally;

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
    locks_memory: false,
    way: Way::Called,
    open: called::open::<Readv>,
};

struct Readv;

impl Call for Readv {
    const MOVES: bool = true;

    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &mut [u8], _offset: u64, _tally: &mut Tally) -> Got {
        let piece = bytes.len().div_ceil(PIECES);
        let mut iovec: ArrayVec<_, PIECES> = bytes.chunks_mut(piece).map(IoSliceMut::new).collect();
        readv(fd, &mut iovec)
    }
}
