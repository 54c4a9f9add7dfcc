//! `mmap`: the file is given its size and mapped, and each block is stored there.
//!
//! Path through the kernel: a page fault for the first store to a page
//! (`filemap_fault`, the file system's `page_mkwrite`, which finds it room), and
//! nothing for the others; the pages are written back as those of write(2) are.
//! By hand the mapping is taken away within the time of the last slice. In a study each
//! slice maps the thread's part with its first block and unmaps it with its last,
//! within the clock; a new file was given its size, as one hole, before that runs.
//! Needs: a file system whose files can be mapped.
//! Compared with: `write`, which makes a call where this faults.
//! Does not show: an error. Where there is no room for a page the process dies of
//! SIGBUS, which is why it is a process of its own.

use std::os::fd::{AsFd, OwnedFd};

use iolens_sys::clock;
use iolens_sys::errno::Errno;
use iolens_sys::file::about::about;
use iolens_sys::file::create;
use iolens_sys::file::writable_mapping::WritableMapping;
use iolens_sys::pages::{PAGE_BYTES, Pages};

use crate::files::moved::{Broken, Call, Moved};
use crate::files::part::{Part, Place};
use crate::files::write::engines::{Entry, Setup, Writer};
use crate::files::write::lane::{self, Lane, LaneSetup, Put, Stamp, memory};
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
    has_depth: false,
    is_dsync: false,
    is_durable: false,
    needs_size: true,
    by_hand: None,
    open,
    lane,
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
            WritableMapping::of_file(setup.file, 0, bytes)
                .map_err(refused("map the file (mmap)"))?,
        ),
    };
    let buffer = memory(setup.slice_bytes())?;
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

/// One thread's writing in the slices of a trial.
fn lane<'a>(setup: LaneSetup<'a>) -> Result<Box<dyn Lane + 'a>, String> {
    let block = setup.block()?;
    let page = PAGE_BYTES as u64;
    let base = setup.part.start / page * page;
    let source = memory(block)?;
    lane::assemble(setup, Stored { source, block, part: setup.part, base, mapping: None })
}

/// The state of a thread that stores into a mapping.
struct Stored {
    source: Pages,
    /// Bytes of a block; the source is whole pages.
    block: usize,
    part: Part,
    /// Where in the file the mapping begins: the page that the part begins in.
    base: u64,
    mapping: Option<WritableMapping>,
}

const MMAP: Call = Call::destination("mmap");

impl Stored {
    #[cold]
    fn map(&mut self, file: &OwnedFd, moved: &mut Moved) -> Result<(), Broken> {
        let broken = |errno| Broken { call: MMAP, errno };
        let bytes =
            usize::try_from(self.part.end - self.base).map_err(|_| broken(Errno::ENOMEM))?;
        let mapped = WritableMapping::of_file(file.as_fd(), self.base, bytes);
        self.mapping = Some(mapped.map_err(broken)?);
        moved.calls += 1;
        Ok(())
    }
}

impl Put for Stored {
    fn prepare(&mut self, stamp: &Stamp) {
        stamp.base(&mut self.source[..self.block]);
    }

    #[inline(always)]
    fn put(
        &mut self,
        file: &OwnedFd,
        place: Place,
        stamp: &Stamp,
        moved: &mut Moved,
    ) -> Result<(), Broken> {
        if self.mapping.is_none() {
            self.map(file, moved)?;
        }
        let block = &mut self.source[..place.bytes];
        stamp.mark(place.offset, block);
        if let Some(mapping) = &mut self.mapping {
            #[expect(clippy::cast_possible_truncation, reason = "within a mapping")]
            mapping.store((place.offset - self.base) as usize, block);
        }
        moved.bytes += place.bytes as u64;
        moved.blocks += 1;
        Ok(())
    }

    #[inline]
    fn finish(&mut self, _file: &OwnedFd, moved: &mut Moved) -> Result<(), Broken> {
        moved.calls += u64::from(self.mapping.take().is_some());
        Ok(())
    }
}
