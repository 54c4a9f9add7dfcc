//! `pwrite`: pwrite(2), block by block, at a place that the call names.
//!
//! Path through the kernel: pwrite64(2) → `vfs_write`: as of `write`, without the
//! lock on the position of a descriptor that threads share.
//! Needs: nothing.
//! Compared with: `write`.
//! Does not show: what threads gain from it; here there is one.

use std::os::fd::BorrowedFd;

use iolens_sys::errno::Errno;
use iolens_sys::file;

use crate::files::moved::Call;
use crate::files::write::engines::Entry;
use crate::files::write::plain;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "pwrite",
    summary: "pwrite(2) of each block",
    needs: "nothing",
    since: None,
    path: "buffer → page cache: copied by the kernel (copy_page_from_iter_atomic)",
    is_direct: false,
    ignores_dsync: None,
    has_depth: false,
    is_dsync: false,
    is_durable: false,
    needs_size: false,
    by_hand: None,
    open: plain::open::<Pwrite>,
    lane: plain::lane::<Pwrite>,
};

struct Pwrite;

impl plain::Call for Pwrite {
    const NAME: Call = Call::destination("pwrite");

    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &[u8], at: u64, _block: usize) -> Result<usize, Errno> {
        file::write::pwrite(fd, bytes, at)
    }
}
