//! `uring_fixed`: `IORING_OP_READ_FIXED` into buffers that were registered.
//!
//! Path through the kernel: as `uring`, with buffers whose pages were looked up and
//! pinned once.
//! Needs: io_uring with `IORING_SETUP_DEFER_TASKRUN`, and memory that may be locked.
//! Compared with: `uring`.
//! Does not show: much on a warm file, where the pages of the buffer do not matter to
//! a copy.

use iolens_model::kernel::KernelVersion;
use iolens_model::tune::Way;

use super::entry::Entry;
use crate::files::read::drive::{Reader, Setup};
use crate::files::read::ringed::{self, Kind};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "uring_fixed",
    summary: "IORING_OP_READ_FIXED into registered buffers, several under way",
    needs: "io_uring, and memory that may be locked",
    since: Some(KernelVersion::new(6, 1, 0)),
    path: "page cache → buffer: copied by the kernel (copy_folio_to_iter)",
    has_depth: true,
    is_direct: false,
    locks_memory: true,
    way: Way::Ring,
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Reader + '_>, String> {
    ringed::open(setup, Kind { registered: true, ..Kind::default() })
}
