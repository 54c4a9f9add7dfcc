//! Engines that map the file, and what they share. Read or written in a study, the range of
//! a thread is mapped with the first block of a slice, or of a round, and unmapped with the
//! last, both within the clock, because that is where mappings cost. Between slices nothing
//! is mapped: the kernel evicts no page that is.

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};

use iolens_model::host::KernelVersion;
use iolens_model::tune::Way;
use iolens_sys::clock;
use iolens_sys::errno::Errno;
use iolens_sys::file::about::about;
use iolens_sys::file::create;
use iolens_sys::file::mapping::Mapping;
use iolens_sys::file::mapping::WritableMapping;
use iolens_sys::file::open::Caching;
use iolens_sys::pages::{Pages, page_bytes};

use super::{Entry, engine, memory};
use crate::copy::drive::{Blocks, Copier, OneCall};
use crate::copy::engine::{Copies, Setup as CopySetup};
use crate::moved::{Broken, Call, Moved};
use crate::part::{Part, Pattern, Place};
use crate::read::consume::Consume;
use crate::read::drive::{Fetch, Reader, Setup, Sink, Tally, assemble};
use crate::read::engine::Reads;
use crate::write::engine::{Setup as WriterSetup, Writer, Writes};
use crate::write::lane::{self, LaneSetup, Put, Stamp};
use iolens_harness::op::{Sender, Span};

/// `mmap`: mmap(2), and pages mapped by the faults of who touches them.
///
/// Path through the kernel: page fault → `filemap_map_pages` maps the pages around
/// that are in the page cache; `filemap_fault` reads those that are not. No copy.
/// Compared with: `read`, which copies; `mmap_populate`, which faults ahead.
/// Does not show: a file that shrinks meanwhile, which ends the process (SIGBUS).
/// With the consumer `none` one byte of each page is touched, and a block within a
/// page that is mapped already costs nothing.
pub(crate) static READ: Entry<Reads> = Entry {
    needs: "mappings of the file system",
    since: Some(KernelVersion::new(2, 0, 0)),
    ..engine(
        Way::Mapped,
        "mmap",
        "mmap(2), pages mapped by faults as they are touched",
        "page cache: mapped into the process (filemap_map_pages), no copy",
        Reads { open: open_reader::<false> },
    )
};

/// `mmap_populate`: mmap(2), and pages mapped by `MADV_POPULATE_READ` before they are touched.
///
/// Path through the kernel: madvise(2) → `faultin_page_range`; no copy, and no fault
/// where the bytes are looked at. In order 2 MiB are mapped with one call, or a block
/// if it is larger; in a random order each block.
/// Compared with: `mmap`.
/// Does not show: mapping all of a large file with one call, which waits for all of it
/// before the first byte is looked at.
pub(crate) static READ_POPULATED: Entry<Reads> = Entry {
    needs: "MADV_POPULATE_READ",
    since: Some(KernelVersion::new(5, 14, 0)),
    ..engine(
        Way::Mapped,
        "mmap_populate",
        "mmap(2), pages mapped by MADV_POPULATE_READ before they are touched",
        "page cache: mapped into the process (faultin_page_range), no copy",
        Reads { open: open_reader::<true> },
    )
};

/// How much is mapped at once where blocks are read in order.
const POPULATE_BYTES: usize = 2 << 20;

/// A thread that reads a mapping, whose pages are mapped by a call before
/// (`MADV_POPULATE_READ`), or by the faults of who reads them.
struct MappedReader<const POPULATES: bool> {
    file: OwnedFd,
    part: Part,
    mapping: Option<Mapping>,
    /// Where in the file the mapping begins: the page that the range begins in.
    base: u64,
    /// Blocks that are left up to the end of the part.
    left: u64,
    /// Up to where the mapping is populated, for who reads in order.
    populated: usize,
    in_order: bool,
}

fn open_reader<const POPULATES: bool>(setup: Setup<'_>) -> Result<Box<dyn Reader + '_>, String> {
    let file = setup.subject.reopen(Caching::Buffered)?;
    let mapped = MappedReader::<POPULATES> {
        file,
        part: setup.part,
        mapping: None,
        base: page_of(setup.part.start),
        left: setup.blocks_to_end(),
        populated: 0,
        in_order: setup.pattern == Pattern::Sequential,
    };
    // What cannot be mapped is found out before the clock runs.
    mapped.map().map_err(|errno| {
        format!(
            "cannot map {} ({} bytes, on {}): {errno}",
            setup.subject.name(),
            setup.part.bytes(),
            setup.subject.file_system()
        )
    })?;
    Ok(assemble(&setup, mapped))
}

impl<const POPULATES: bool> MappedReader<POPULATES> {
    fn map(&self) -> Result<Mapping, Errno> {
        let bytes = usize::try_from(self.part.end - self.base).map_err(|_| Errno::ENOMEM)?;
        Mapping::of_file(self.file.as_fd(), self.base, bytes)
    }

    #[cold]
    fn begin(&mut self, tally: &mut Tally) -> Result<(), Errno> {
        self.mapping = Some(self.map()?);
        tally.calls += 1;
        self.populated = 0;
        Ok(())
    }

    /// Unmaps.
    #[cold]
    fn end(&mut self, tally: &mut Tally) {
        tally.calls += u64::from(self.mapping.take().is_some());
    }

    /// Maps the pages of a block, and of those behind it that come next.
    #[inline]
    fn populate(&mut self, block: Range<usize>, tally: &mut Tally) -> Result<(), Errno> {
        let Some(mapping) = &self.mapping else { return Ok(()) };
        if !self.in_order {
            return populate(mapping, block, tally);
        }
        if block.end <= self.populated {
            return Ok(());
        }
        let start = self.populated.max(block.start);
        let end = block.end.max(start + POPULATE_BYTES).min(mapping.bytes());
        match populate(mapping, start..end, tally) {
            // Of what comes next, not all is there any more: the block may be.
            Err(Errno::ENODATA) if end > block.end => {
                self.populated = block.end;
                populate(mapping, block, tally)
            }
            other => {
                self.populated = end;
                other
            }
        }
    }
}

/// A place within a mapping, whose length is a usize.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "no more than the length of a mapping")]
const fn within(distance: u64) -> usize {
    distance as usize
}

/// Maps pages with one call, unless something cuts it short.
///
/// Errors: `ENODATA` for pages that the file has lost: what a touch would have
/// answered with SIGBUS.
#[inline]
fn populate(mapping: &Mapping, range: Range<usize>, tally: &mut Tally) -> Result<(), Errno> {
    loop {
        tally.calls += 1;
        match mapping.populate(range.clone()) {
            Err(Errno::EINTR) => tally.interrupted += 1,
            Err(Errno::EAGAIN) => tally.would_block += 1,
            Err(Errno::EFAULT) => return Err(Errno::ENODATA),
            other => return other,
        }
    }
}

impl<const POPULATES: bool> Fetch for MappedReader<POPULATES> {
    #[inline]
    fn fetch<C: Consume>(&mut self, place: Place, sink: &mut Sink<C>) -> Result<(), Errno> {
        if self.mapping.is_none() {
            self.begin(&mut sink.tally)?;
        }
        let from = within(place.offset - self.base);
        let range = from..from + place.bytes;
        if POPULATES {
            self.populate(range.clone(), &mut sink.tally)?;
        }
        if let Some(mapping) = &self.mapping {
            sink.consumer.take(place.offset, mapping.view(range));
        }
        sink.tally.blocks += 1;
        sink.tally.bytes += place.bytes as u64;
        self.left -= 1;
        if self.left == 0 {
            self.left = self.part.blocks();
            self.end(&mut sink.tally);
        }
        Ok(())
    }

    #[inline]
    fn finish<C: Consume>(&mut self, sink: &mut Sink<C>) -> Result<(), Errno> {
        self.end(&mut sink.tally);
        Ok(())
    }
}

/// Where the page begins that an offset is in: a mapping may begin there.
fn page_of(offset: u64) -> u64 {
    let page = page_bytes() as u64;
    offset / page * page
}

/// `mmap`: the file is given its size and mapped, and each block is stored there.
///
/// Path through the kernel: a page fault for the first store to a page
/// (`filemap_fault`, the file system's `page_mkwrite`, which finds it room), and
/// nothing for the others; the pages are written back as those of write(2) are.
/// By hand the mapping is taken away within the time of the last slice. In a study a new
/// file was given its size, as one hole, before the clock runs.
/// Compared with: `write`, which makes a call where this faults.
/// Does not show: an error. Where there is no room for a page the process dies of
/// SIGBUS, which is why it is a process of its own.
pub(crate) static WRITE: Entry<Writes> = Entry {
    needs: "a file system whose files can be mapped",
    ..engine(
        Way::Mapped,
        "mmap",
        "a store into the mapped file for each block (MAP_SHARED)",
        "buffer → page cache: copied by this program (memcpy), a fault for each page",
        Writes {
            ignores_dsync: Some("stores to a mapping are no calls that could wait for the device"),
            needs_size: true,
            ..Writes::with(open_writer, lane)
        },
    )
};

const MMAP: Call = Call::destination("mmap");

fn open_writer(setup: WriterSetup<'_>) -> Result<Box<dyn Writer + '_>, String> {
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
    let buffer = memory(setup.slice_bytes() as u64)?;
    let block = setup.block_bytes;
    Ok(Box::new(MappedWriter { mapping, bytes, buffer, block, at: 0, moved: Moved::default() }))
}

struct MappedWriter {
    mapping: Option<WritableMapping>,
    bytes: usize,
    buffer: Pages,
    block: usize,
    at: usize,
    moved: Moved,
}

impl Writer for MappedWriter {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    #[inline(never)]
    fn run(&mut self, bytes: usize) -> Result<Span, Broken> {
        let first_call_ns = clock::monotonic_ns();
        let Some(mapping) = &mut self.mapping else {
            return Err(Broken { call: MMAP, errno: Errno::EFBIG });
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
fn lane<'a>(setup: LaneSetup<'a>) -> Result<Box<dyn Sender + 'a>, String> {
    let block = setup.block()?;
    let base = page_of(setup.part.start);
    let source = memory(block as u64)?;
    lane::assemble(setup, MappedLane { source, block, part: setup.part, base, mapping: None })
}

/// The state of a thread that stores into a mapping.
struct MappedLane {
    source: Pages,
    /// Bytes of a block; the source is whole pages.
    block: usize,
    part: Part,
    /// Where in the file the mapping begins: the page that the part begins in.
    base: u64,
    mapping: Option<WritableMapping>,
}

impl MappedLane {
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

impl Put for MappedLane {
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

/// `mmap_write`: the source is mapped, and pwrite(2) writes each block from the
/// mapping.
///
/// Path through the kernel: pwrite64(2) → `generic_perform_write` or iomap, which
/// copies from the pages of the source into those of the destination; a page that is
/// not mapped yet faults first (`fault_in_iov_iter_readable`), with some of its
/// neighbours (`filemap_map_pages`). One copy, within the kernel.
/// Compared with: `read_write`, which copies twice and faults never.
/// Does not show: SIGBUS. The kernel touches the pages, and one that the source has
/// lost meanwhile is `EFAULT`. The mapping is taken away outside of the time.
pub(crate) static COPY: Entry<Copies> = Entry {
    needs: "a source that can be mapped",
    ..engine(
        Way::Mapped,
        "mmap_write",
        "pwrite(2) of each block from the mapped source",
        "page cache → page cache: copied once by the kernel, a fault for some pages",
        Copies::with(open_copier),
    )
};

fn open_copier(setup: CopySetup) -> Result<Box<dyn Copier>, String> {
    let CopySetup { source, destination: to, part } = setup;
    let refused = |errno: Errno| format!("cannot map the source (mmap): {errno}");
    let first = page_of(part.start);
    let bytes = usize::try_from(part.end - first).map_err(|_| refused(Errno::EFBIG))?;
    let mapping = Mapping::of_file(source.as_fd(), first, bytes).map_err(refused)?;
    let copy = move |piece: Place| {
        let from = usize::try_from(piece.offset - first).map_err(|_| Errno::EFBIG)?;
        mapping.write_to(from..from + piece.bytes, to.as_fd(), piece.offset)
    };
    let call = Call::both("pwrite from the mapped source");
    Ok(Box::new(Blocks::of(part, OneCall { call, copy }, call)))
}
