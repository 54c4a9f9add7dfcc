//! `write_fsync`: write(2), and fsync(2) after every block, as a log does that promises
//! what it has written.
//!
//! Path through the kernel: as of `write`; then `vfs_fsync` → the file system writes
//! back the pages, commits what it knows about the file (on ext4 a transaction of the
//! journal, for the time of the change if for nothing else) and has the device empty
//! its cache.
//! Needs: nothing.
//! Compared with: `write`, which leaves that for later; `write_fdatasync`,
//! `write_dsync`.
//! Does not show: whether the device does what it says; see the test of a flush's
//! plausibility in the report.

use iolens_sys::file;

use crate::files::moved::Call;
use crate::files::write::engines::Entry;
use crate::files::write::plain::{self, After, Written};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "write_fsync",
    summary: "write(2) of each block, then fsync(2)",
    needs: "nothing",
    since: None,
    path: "buffer → page cache → device: copied by the kernel, written back by fsync(2)",
    is_direct: false,
    ignores_dsync: None,
    has_depth: false,
    is_dsync: false,
    is_durable: true,
    needs_size: false,
    by_hand: None,
    open: plain::open::<Written<WriteFsync>>,
    lane: plain::lane::<Written<WriteFsync>>,
};

struct WriteFsync;

impl After for WriteFsync {
    const SYNC: Option<plain::Sync> =
        Some(plain::Sync { name: Call::destination("fsync"), call: file::sync::fsync });
}
