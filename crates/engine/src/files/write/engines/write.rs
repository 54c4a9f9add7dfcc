//! `write`: write(2), block by block, where the descriptor stands.
//!
//! Path through the kernel: write(2) → `vfs_write` → the file system's `write_iter`
//! → `generic_perform_write` or iomap: each block is copied into the page cache and
//! goes to the device later, when somebody syncs or the kernel writes back.
//! Needs: nothing.
//! Compared with: `pwrite`, which names the place; `writev`, whose block is in
//! pieces.
//! Does not show: what it costs to bring the bytes to the device, which is in the
//! time of the sync, or of nobody's.

use crate::files::write::engines::Entry;
use crate::files::write::plain::{self, After, Written};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "write",
    summary: "write(2) of each block",
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
    open: plain::open::<Written<Write>>,
    lane: plain::lane::<Written<Write>>,
};

struct Write;

impl After for Write {}
