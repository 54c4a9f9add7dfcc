//! `write_fdatasync`: write(2), and fdatasync(2) after every block: what is needed to
//! read it again is on the device before the next one.
//!
//! Path through the kernel: as of `write_fsync`, but the file system commits only what
//! reading asks for: where blocks were there before and the size stays, no metadata.
//! Needs: nothing.
//! Compared with: `write_fsync`, `write_dsync`.
//! Does not show: as `write_fsync`.

use iolens_sys::file;

use crate::files::moved::Call;
use crate::files::write::engines::Entry;
use crate::files::write::plain::{self, After, Written};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "write_fdatasync",
    summary: "write(2) of each block, then fdatasync(2)",
    needs: "nothing",
    since: None,
    path: "buffer → page cache → device: copied by the kernel, written back by fdatasync(2)",
    is_direct: false,
    ignores_dsync: None,
    has_depth: false,
    is_dsync: false,
    is_durable: true,
    needs_size: false,
    by_hand: None,
    open: plain::open::<Written<WriteFdatasync>>,
    lane: plain::lane::<Written<WriteFdatasync>>,
};

struct WriteFdatasync;

impl After for WriteFdatasync {
    const SYNC: Option<plain::Sync> =
        Some(plain::Sync { name: Call::destination("fdatasync"), call: file::sync::fdatasync });
}
