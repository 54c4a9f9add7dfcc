//! `mmap`: the file is given its size and mapped, and each block is stored there.
//!
//! Path through the kernel: a page fault for the first store to a page
//! (`filemap_fault`, the file system's `page_mkwrite`, which finds it room), and
//! nothing for the others; the pages are written back as those of write(2) are.
//! The mapping is taken away within the time of the last slice.
//! Needs: a file system whose files can be mapped.
//! Compared with: `write`, which makes a call where this faults.
//! Does not show: an error. Where there is no room for a page the process dies of
//! SIGBUS, which is why it is a process of its own.

use iolens_sys::clock;
use iolens_sys::errno::Errno;
use iolens_sys::file::about::about;
use iolens_sys::file::create;
use iolens_sys::file::writable_mapping::WritableMapping;
use iolens_sys::pages::Pages;

use crate::files::moved::{Broken, Call, Moved};
use crate::files::write::engines::{Entry, Setup, Writer};
use crate::files::write::plain;
use crate::op::Span;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "mmap",
    summary: "a store into the mapped file for each block (MAP_SHARED)",
    needs: "a file system whose files can be mapped",
    since: None,
    path: "buffer → page cache: copied by this program (memcpy), a fault for each page",
    is_direct: false,
    ignores_dsync: Some("stores to a mapping are no calls that could wait for the device"),
    has_several_under_way: false,
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Writer + '_>, String> {
    let refused = |tried| move |errno: Errno| format!("cannot {tried}: {errno}");
    // A longer one is cut when it is whole, as with every engine.
    if about(setup.file).is_ok_and(|about| about.bytes < setup.total_bytes) {
        create::truncate(setup.file, setup.total_bytes)
            .map_err(refused("give the file its size (ftruncate)"))?;
    }
    let bytes = usize::try_from(setup.total_bytes).unwrap_or(usize::MAX);
    let mapping = match bytes {
        0 => None,
        bytes => Some(
            WritableMapping::of_file(setup.file, bytes).map_err(refused("map the file (mmap)"))?,
        ),
    };
    let buffer = plain::memory(setup.slice_bytes())?;
    let block = setup.block_bytes;
    Ok(Box::new(Mmap { mapping, bytes, buffer, block, at: 0, moved: Moved::default() }))
}

struct Mmap {
    mapping: Option<WritableMapping>,
    bytes: usize,
    buffer: Pages,
    block: usize,
    at: usize,
    moved: Moved,
}

impl Writer for Mmap {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    #[inline(never)]
    fn run(&mut self, bytes: usize) -> Result<Span, Broken> {
        let first_call_ns = clock::monotonic_ns();
        let Some(mapping) = &mut self.mapping else {
            return Err(Broken { call: Call::destination("mmap"), errno: Errno::EFBIG });
        };
        for block in self.buffer[..bytes].chunks(self.block) {
            mapping.store(self.at, block);
            self.at += block.len();
            self.moved.bytes += block.len() as u64;
            self.moved.blocks += 1;
        }
        if self.at == self.bytes {
            self.mapping = None;
        }
        Ok(Span { first_call_ns, last_call_ns: clock::monotonic_ns() })
    }

    fn moved(&self) -> Moved {
        self.moved
    }
}
