//! `preadv2_nowait`: preadv2(2) with `RWF_NOWAIT`: what is in memory is read at once.
//!
//! Path through the kernel: as `pread`, but a page that is not in the page cache is
//! no reason to wait: the call says `EAGAIN`, which is counted, and the block is
//! read with pread(2).
//! Needs: a file system that knows the flag; tmpfs does not.
//! Compared with: `pread`.
//! Does not show: what a program does better that leaves the waiting to another
//! thread. On a cold file most calls are errors.

use std::os::fd::{BorrowedFd, OwnedFd};

use iolens_model::kernel::KernelVersion;
use iolens_model::tune::Way;
use iolens_sys::errno::Errno;
use iolens_sys::file::read::{How, pread, preadv2};

use super::entry::Entry;
use crate::files::read::called::{self, Call, Got, knows};
use crate::files::read::drive::Tally;
use crate::files::subject::Subject;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "preadv2_nowait",
    summary: "preadv2(2) with RWF_NOWAIT, and pread(2) where it would have to wait",
    needs: "RWF_NOWAIT of the file system",
    since: Some(KernelVersion::new(4, 14, 0)),
    path: "page cache → buffer: copied by the kernel (copy_folio_to_iter)",
    has_depth: false,
    is_direct: false,
    locks_memory: false,
    way: Way::Called,
    open: called::open::<NoWait>,
};

struct NoWait;

impl Call for NoWait {
    fn check(subject: &Subject, file: &OwnedFd) -> Result<(), String> {
        knows(subject, file, How::NoWait, "RWF_NOWAIT")
    }

    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &mut [u8], offset: u64, tally: &mut Tally) -> Got {
        match preadv2(fd, bytes, offset, How::NoWait) {
            Err(Errno::EAGAIN) => {
                tally.calls += 1;
                tally.would_block += 1;
                pread(fd, bytes, offset)
            }
            other => other,
        }
    }
}
