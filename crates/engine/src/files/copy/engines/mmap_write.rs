//! `mmap_write`: the source is mapped, and pwrite(2) writes each block from the
//! mapping.
//!
//! Path through the kernel: pwrite64(2) → `generic_perform_write` or iomap, which
//! copies from the pages of the source into those of the destination; a page that is
//! not mapped yet faults first (`fault_in_iov_iter_readable`), with some of its
//! neighbours (`filemap_map_pages`). One copy, within the kernel.
//! Needs: a source that can be mapped.
//! Compared with: `read_write`, which copies twice and faults never.
//! Does not show: SIGBUS. The kernel touches the pages, and one that the source has
//! lost meanwhile is `EFAULT`. The mapping is taken away outside of the time.

use std::os::fd::AsFd;

use iolens_sys::errno::Errno;
use iolens_sys::file::mapping::Mapping;

use crate::files::copy::drive::{Blocks, Copier, OneCall};
use crate::files::copy::engines::{Class, Entry, Setup};
use crate::files::moved::Call;
use crate::files::part::Place;

const CALL: Call = Call::both("pwrite from the mapped source");

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "mmap_write",
    summary: "pwrite(2) of each block from the mapped source",
    needs: "a source that can be mapped",
    since: None,
    path: "page cache → page cache: copied once by the kernel, a fault for some pages",
    class: Class::Copies,
    is_direct: false,
    one_thread: None,
    instead: Some("read_write"),
    open,
};

fn open(setup: Setup) -> Result<Box<dyn Copier>, String> {
    let Setup { source, destination: to, part } = setup;
    let refused = |errno: Errno| format!("cannot map the source (mmap): {errno}");
    // From the page that the part begins in.
    let first = part.start / PAGE_BYTES * PAGE_BYTES;
    let bytes = usize::try_from(part.end - first).map_err(|_| refused(Errno::EFBIG))?;
    let mapping = Mapping::of_file(source.as_fd(), first, bytes).map_err(refused)?;
    let copy = move |piece: Place| {
        let from = usize::try_from(piece.offset - first).map_err(|_| Errno::EFBIG)?;
        mapping.write_to(from..from + piece.bytes, to.as_fd(), piece.offset)
    };
    Ok(Box::new(Blocks::of(part, OneCall { call: CALL, copy }, CALL)))
}

/// Where mappings may begin, on every processor of ours.
const PAGE_BYTES: u64 = iolens_sys::pages::PAGE_BYTES as u64;
