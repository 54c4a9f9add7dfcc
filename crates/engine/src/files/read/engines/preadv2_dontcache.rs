//! `preadv2_dontcache`: preadv2(2) with `RWF_DONTCACHE`, through the page cache and out
//! of it again.
//!
//! Path through the kernel: as `pread`; pages that the read brought into the page
//! cache are dropped when it ends (`filemap_end_dropbehind_read`).
//! Needs: Linux 6.14 and a file system that knows the flag (`FOP_DONTCACHE`).
//! Compared with: `pread`, which leaves the pages there; `direct`, which never has
//! them.
//! Does not show: much on a warm file: pages that were in the page cache before stay.

use std::os::fd::{BorrowedFd, OwnedFd};

use iolens_model::kernel::KernelVersion;
use iolens_model::tune::Way;
use iolens_sys::file::read::{How, preadv2};

use super::entry::Entry;
use crate::files::read::called::{self, Call, Got, knows};
use crate::files::read::drive::Tally;
use crate::files::subject::Subject;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "preadv2_dontcache",
    summary: "preadv2(2) with RWF_DONTCACHE: what it brought into the page cache leaves it again",
    needs: "RWF_DONTCACHE of the file system",
    since: Some(KernelVersion::new(6, 14, 0)),
    path: "device → page cache → buffer: copied by the kernel (copy_folio_to_iter), then dropped",
    has_depth: false,
    is_direct: false,
    locks_memory: false,
    way: Way::Called,
    open: called::open::<DontCache>,
};

struct DontCache;

impl Call for DontCache {
    fn check(subject: &Subject, file: &OwnedFd) -> Result<(), String> {
        knows(subject, file, How::DontCache, "RWF_DONTCACHE")
    }

    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &mut [u8], offset: u64, _tally: &mut Tally) -> Got {
        preadv2(fd, bytes, offset, How::DontCache)
    }
}
