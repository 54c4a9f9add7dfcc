//! `uring_direct`: `IORING_OP_READ_FIXED` of a file opened with `O_DIRECT`.
//!
//! Path through the kernel: as `direct`, several reads under way, into buffers that
//! were pinned once.
//! Needs: what `direct` and `uring_fixed` need.
//! Compared with: `direct`, which waits for each read.
//! Does not show: polled completions (`IORING_SETUP_IOPOLL`), which need queues that
//! few devices have.

use iolens_model::kernel::KernelVersion;
use iolens_model::tune::Way;

use super::entry::Entry;
use crate::files::read::drive::{Reader, Setup};
use crate::files::read::ringed::{self, Kind};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "uring_direct",
    summary: "IORING_OP_READ_FIXED with O_DIRECT, several under way",
    needs: "io_uring, O_DIRECT of the file system, and blocks of whole sectors",
    since: Some(KernelVersion::new(6, 1, 0)),
    path: "device → buffer: written by the device",
    has_depth: true,
    is_direct: true,
    locks_memory: true,
    way: Way::Direct,
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Reader + '_>, String> {
    ringed::open(setup, Kind { registered: true, direct: true, ..Kind::default() })
}
