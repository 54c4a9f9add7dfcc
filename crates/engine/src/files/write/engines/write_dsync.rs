//! `write_dsync`: write(2) to a descriptor with `O_DSYNC`, which returns when the block
//! is on the device.
//!
//! Path through the kernel: as of `write`, then `generic_write_sync` of the range that
//! was written: what `write_fdatasync` does, in one call.
//! Needs: nothing.
//! Compared with: `write_fdatasync`, which makes two calls.
//! Does not show: as `write_fsync`; nor direct writes with `O_DSYNC`, which a device
//! may answer with one request (FUA).

use crate::files::write::engines::Entry;
use crate::files::write::plain::{self, After, Written};

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
    open: plain::open::<Written<WriteDsync>>,
    lane: plain::lane::<Written<WriteDsync>>,
};

struct WriteDsync;

impl After for WriteDsync {}
