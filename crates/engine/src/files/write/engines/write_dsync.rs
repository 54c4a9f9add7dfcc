//! `write_dsync`: write(2) to a descriptor with `O_DSYNC`, which returns when the block
//! is on the device.
//!
//! Path through the kernel: as of `write`, then `generic_write_sync` of the range that
//! was written: what `write_fdatasync` does, in one call.
//! Needs: nothing.
//! Compared with: `write_fdatasync`, which makes two calls.
//! Does not show: as `write_fsync`; nor direct writes with `O_DSYNC`, which a device
//! may answer with one request (FUA).

use std::os::fd::BorrowedFd;

use iolens_sys::errno::Errno;
use iolens_sys::file;

use crate::files::moved::Call;
use crate::files::write::engines::Entry;
use crate::files::write::plain;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "write_dsync",
    summary: "write(2) of each block to a file with O_DSYNC",
    needs: "nothing",
    since: None,
    path: "buffer → page cache → device: copied by the kernel, written back by the same call",
    is_direct: false,
    ignores_dsync: None,
    has_depth: false,
    is_dsync: true,
    is_durable: true,
    needs_size: false,
    by_hand: Some("--engine write --sync dsync"),
    open: plain::open::<WriteDsync>,
    lane: plain::lane::<WriteDsync>,
};

struct WriteDsync;

impl plain::Call for WriteDsync {
    const NAME: Call = Call::destination("write");
    const MOVES: bool = true;

    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &[u8], _at: u64, _block: usize) -> Result<usize, Errno> {
        file::write::write(fd, bytes)
    }
}
