//! `uring`: `IORING_OP_READ`: several reads under way in each thread.
//!
//! Path through the kernel: io_uring_enter(2) → `io_read`; what is in the page cache
//! is copied within that call, what is not arrives later.
//! Needs: io_uring with `IORING_SETUP_DEFER_TASKRUN`.
//! Compared with: `pread`, which has one read under way; `uring_fixed`.
//! Does not show: reads that the kernel gives to threads of its own (io-wq), but in
//! the CPU time, which has theirs.

use iolens_model::kernel::KernelVersion;
use iolens_model::tune::Way;

use super::entry::Entry;
use crate::files::read::drive::{Reader, Setup};
use crate::files::read::ringed::{self, Kind};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "uring",
    summary: "IORING_OP_READ, several under way",
    needs: "io_uring",
    since: Some(KernelVersion::new(6, 1, 0)),
    path: "page cache → buffer: copied by the kernel (copy_folio_to_iter)",
    has_depth: true,
    is_direct: false,
    locks_memory: false,
    way: Way::Ring,
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Reader + '_>, String> {
    ringed::open(setup, Kind::default())
}
