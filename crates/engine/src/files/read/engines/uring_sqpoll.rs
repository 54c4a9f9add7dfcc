//! `uring_sqpoll`: `IORING_OP_READ`, handed over without a call (`IORING_SETUP_SQPOLL`).
//!
//! Path through the kernel: a thread of the kernel's finds the requests in memory and
//! does the reading, the copy too.
//! Needs: io_uring, and a CPU that has nothing else to do.
//! Compared with: `uring`, which makes a call.
//! Does not show: the kernel's thread in the calls. Its time is in the CPU time of the
//! slice; it runs on any CPU, whatever taskset(1) says, and looks for more requests for
//! 1 ms before it sleeps, which is waited for before the next slice.

use iolens_model::kernel::KernelVersion;
use iolens_model::tune::Way;

use super::entry::Entry;
use crate::files::read::drive::{Reader, Setup};
use crate::files::read::ringed::{self, Kind};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "uring_sqpoll",
    summary: "IORING_OP_READ, taken by a thread of the kernel's (SQPOLL) without a call",
    needs: "io_uring, and a CPU for the kernel's thread",
    since: Some(KernelVersion::new(5, 11, 0)),
    path: "page cache → buffer: copied by the kernel (copy_folio_to_iter)",
    has_depth: true,
    is_direct: false,
    locks_memory: false,
    way: Way::Ring,
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Reader + '_>, String> {
    ringed::open(setup, Kind { poll_thread: true, ..Kind::default() })
}
