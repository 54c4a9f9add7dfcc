//! `mmap`: mmap(2), and pages mapped by the faults of who touches them.
//!
//! Path through the kernel: page fault → `filemap_map_pages` maps the pages around
//! that are in the page cache; `filemap_fault` reads those that are not. No copy.
//! Needs: a file system with mappings.
//! Compared with: `read`, which copies; `mmap_populate`, which faults ahead.
//! Does not show: a file that shrinks meanwhile, which ends the process (SIGBUS).
//! With the consumer `none` one byte of each page is touched, and a block within a
//! page that is mapped already costs nothing.

use iolens_model::kernel::KernelVersion;
use iolens_model::tune::Way;

use super::entry::Entry;
use crate::files::read::mapped::{self, WhenTouched};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "mmap",
    summary: "mmap(2), pages mapped by faults as they are touched",
    needs: "mappings of the file system",
    since: Some(KernelVersion::new(2, 0, 0)),
    path: "page cache: mapped into the process (filemap_map_pages), no copy",
    has_depth: false,
    is_direct: false,
    locks_memory: false,
    way: Way::Mapped,
    open: mapped::open::<WhenTouched>,
};
