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

use std::os::fd::BorrowedFd;

use iolens_model::tune::Way;
use iolens_sys::file::read::read;

use super::entry::Entry;
use crate::files::read::called::{self, Call, Got};
use crate::files::read::drive::Tally;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "read",
    summary: "read(2), each call from where the last one ended",
    needs: "nothing",
    since: None,
    path: "page cache → buffer: copied by the kernel (copy_folio_to_iter)",
    has_depth: false,
    is_direct: false,
    locks_memory: false,
    way: Way::Called,
    open: called::open::<Read>,
};

struct Read;

impl Call for Read {
    const MOVES: bool = true;

    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &mut [u8], _offset: u64, _tally: &mut Tally) -> Got {
        read(fd, bytes)
    }
}
