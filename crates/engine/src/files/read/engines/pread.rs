//! `pread`: pread(2), at an offset.
//!
//! Path through the kernel: as `read`, without the position and its lock.
//! Needs: nothing.
//! Compared with: `read`; and with what reads at offsets in other ways.
//! Does not show: threads that share a descriptor; each has one of its own, whose
//! readahead nobody else disturbs.

use std::os::fd::BorrowedFd;

use iolens_model::tune::Way;
use iolens_sys::file::read::pread;

use super::entry::Entry;
use crate::files::read::called::{self, Call, Got};
use crate::files::read::drive::Tally;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "pread",
    summary: "pread(2) at an offset",
    needs: "nothing",
    since: None,
    path: "page cache → buffer: copied by the kernel (copy_folio_to_iter)",
    has_depth: false,
    is_direct: false,
    locks_memory: false,
    way: Way::Called,
    open: called::open::<Pread>,
};

struct Pread;

impl Call for Pread {
    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &mut [u8], offset: u64, _tally: &mut Tally) -> Got {
        pread(fd, bytes, offset)
    }
}
