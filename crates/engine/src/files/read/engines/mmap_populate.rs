//! `mmap_populate`: mmap(2), and pages mapped by `MADV_POPULATE_READ` before they are touched.
//!
//! Path through the kernel: madvise(2) → `faultin_page_range`; no copy, and no fault
//! where the bytes are looked at. In order 2 MiB are mapped with one call, or a block
//! if it is larger; in a random order each block.
//! Needs: Linux 5.14 and a file system with mappings.
//! Compared with: `mmap`.
//! Does not show: mapping all of a large file with one call, which waits for all of it
//! before the first byte is looked at.

use iolens_model::kernel::KernelVersion;
use iolens_model::tune::Way;

use super::entry::Entry;
use crate::files::read::mapped::{self, Before};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "mmap_populate",
    summary: "mmap(2), pages mapped by MADV_POPULATE_READ before they are touched",
    needs: "MADV_POPULATE_READ",
    since: Some(KernelVersion::new(5, 14, 0)),
    path: "page cache: mapped into the process (faultin_page_range), no copy",
    has_depth: false,
    is_direct: false,
    locks_memory: false,
    way: Way::Mapped,
    open: mapped::open::<Before>,
};
