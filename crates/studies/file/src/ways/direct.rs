//! Engines that go around the page cache with `O_DIRECT`, a call for each block, and what
//! offsets and lengths are multiples of there. `uring_direct` is with the other rings.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use iolens_model::host::KernelVersion;
use iolens_model::tune::Way;
use iolens_model::units::Bytes;
use iolens_sys::errno::Errno;
use iolens_sys::file;
use iolens_sys::file::about::{Alignment, about};
use iolens_sys::file::at::pread;
use iolens_sys::file::at::pwrite;
use iolens_sys::file::create;
use iolens_sys::file::open::Caching;
use iolens_sys::pages::{PAGE_BYTES, Pages};

use super::called::{self, WriteCall};
use super::{Entry, engine, memory};
use crate::copy::drive::{Blocks, Copier, Piecewise};
use crate::copy::engine::{Copies, Setup as CopySetup};
use crate::moved::{Broken, Call, Moved, write_all};
use crate::part::Place;
use crate::read::consume::Consume;
use crate::read::drive::{Fetch, Reader, Setup, Sink, assemble, fill};
use crate::read::engine::Reads;
use crate::write::engine::Writes;

/// `direct`: pread(2) of a file opened with `O_DIRECT`.
///
/// Path through the kernel: pread(2) → the file system's `iomap_dio_rw` or its like →
/// the device writes into the buffer's own pages. No copy, no page cache, no
/// readahead.
/// Needs: a file system with `O_DIRECT`, and blocks that are multiples of what
/// statx(2) says (`STATX_DIOALIGN`), or of 4096 bytes where it says nothing. The last
/// block of the file is asked for in whole units and ends with the file.
/// Compared with: `uring_direct`, which has several under way; `pread` on a cold file.
/// Does not show: whether the file system read through the page cache after all:
/// that is found out by what is in there afterwards.
pub(crate) static READ: Entry<Reads> = Entry {
    needs: "O_DIRECT of the file system, and blocks of whole sectors",
    since: Some(KernelVersion::new(2, 4, 10)),
    is_direct: true,
    ..engine(
        Way::Direct,
        "direct",
        "pread(2) with O_DIRECT, around the page cache",
        "device → buffer: written by the device",
        Reads { open: open_reader },
    )
};

struct DirectReader {
    file: OwnedFd,
    buffer: Pages,
    alignment: u32,
}

fn open_reader(setup: Setup<'_>) -> Result<Box<dyn Reader + '_>, String> {
    let alignment = offset_alignment(&setup)?;
    let file = setup.subject.reopen(Caching::Direct)?;
    let buffer = memory(setup.part.block_bytes)?;
    Ok(assemble(&setup, DirectReader { file, buffer, alignment }))
}

impl Fetch for DirectReader {
    #[inline(always)]
    fn fetch<C: Consume>(&mut self, place: Place, sink: &mut Sink<C>) -> Result<(), Errno> {
        let (fd, alignment) = (self.file.as_fd(), self.alignment);
        let asked = rounded_up(place.bytes, alignment);
        fill(asked, &mut self.buffer, place, sink, |bytes, offset, _| {
            // Within a unit nothing can go on: the file has ended there.
            if offset.is_multiple_of(alignment.into()) { pread(fd, bytes, offset) } else { Ok(0) }
        })
    }
}

/// What is taken where statx(2) does not say: no disk has larger blocks, and a file
/// system with larger ones says so.
const OFFSET_BYTES: u32 = 4096;

/// What offsets and lengths of direct reads of a file are multiples of, in bytes.
///
/// Errors: the blocks are none, or the buffers cannot be as the file system wants
/// them.
pub(super) fn offset_alignment(setup: &Setup<'_>) -> Result<u32, String> {
    let (subject, block_bytes) = (setup.subject, setup.part.block_bytes);
    let (memory, offset) = match subject.about().direct {
        Some(Alignment { memory, offset, .. }) => (memory, offset),
        None => (1, OFFSET_BYTES),
    };
    if memory as usize > PAGE_BYTES {
        return Err(format!(
            "direct reads from {} want buffers aligned to {}, and these are to pages of {}",
            subject.file_system(),
            Bytes(memory.into()),
            Bytes(PAGE_BYTES as u64)
        ));
    }
    if !block_bytes.is_multiple_of(offset.into()) {
        return Err(format!(
            "direct reads from {} are of multiples of {}, and these blocks are not",
            subject.file_system(),
            Bytes(offset.into())
        ));
    }
    Ok(offset)
}

/// Bytes to ask for so that `bytes` are read: the last block of a file ends within
/// the unit that the device reads, and the read at the file's end.
#[inline]
pub(super) fn rounded_up(bytes: usize, alignment: u32) -> usize {
    bytes.next_multiple_of(alignment as usize)
}

/// `direct`: pwrite(2) with `O_DIRECT`, block by block: from the program's memory to
/// the device.
///
/// Path through the kernel: pwrite64(2) → the file system's direct I/O (`iomap_dio_rw`)
/// → the block layer, which reads the program's pages. The call returns when the
/// device has answered; its own cache may still have the bytes.
/// Compared with: `write`, which returns when the page cache has the bytes.
/// Does not show: whether the file system went through the page cache all the same;
/// the pages in it afterwards do.
pub(crate) static WRITE: Entry<Writes> = Entry {
    needs: "a file system with O_DIRECT, blocks of a multiple of what it asks for",
    is_direct: true,
    ..engine(
        Way::Direct,
        "direct",
        "pwrite(2) of each block past the page cache (O_DIRECT)",
        "buffer → device: the device reads the buffer, no processor copies",
        Writes::with(
            |setup| {
                alignment(setup.file, setup.block_bytes as u64)?;
                called::open_writer::<DirectWrite>(setup)
            },
            |setup| {
                alignment(setup.file, setup.part.block_bytes)?;
                called::lane::<DirectWrite>(setup)
            },
        ),
    )
};

const READ_CALL: Call = Call::source("pread with O_DIRECT");
const WRITE_CALL: Call = Call::destination("pwrite with O_DIRECT");

struct DirectWrite;

impl WriteCall for DirectWrite {
    const NAME: Call = WRITE_CALL;

    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &[u8], at: u64, _block: usize) -> Result<usize, Errno> {
        pwrite(fd, bytes, at)
    }
}

/// What offsets and lengths of direct writes to a file are multiples of, in bytes; it
/// does for direct reads too. Where statx(2) does not say it is a page: no disk has
/// larger blocks, and a file system with larger ones says so.
///
/// Errors: blocks of `block_bytes` are none.
fn alignment(file: BorrowedFd<'_>, block_bytes: u64) -> Result<usize, String> {
    let about =
        about(file).map_err(|errno| format!("cannot ask what O_DIRECT takes (statx): {errno}"))?;
    let align = about.direct.map_or(PAGE_BYTES, |align| align.write_offset as usize);
    if block_bytes.is_multiple_of(align as u64) {
        return Ok(align);
    }
    let on = file::file_system(file).unwrap_or_else(|_| "this file system".to_owned());
    Err(format!(
        "direct writes to {on} are multiples of {}, which a block of {} is not",
        Bytes(align as u64),
        Bytes(block_bytes)
    ))
}

/// `direct`: pread(2) and pwrite(2) of each block with `O_DIRECT` at both ends.
///
/// Path through the kernel: the file system's direct I/O (`iomap_dio_rw`) → the block
/// layer, which writes to and reads from the program's pages: no copy by a
/// processor, unless the devices have none of their own to make it. The last block
/// of a file that is no multiple is written whole, and the file is cut behind it.
/// Compared with: `read_write`, which leaves both files in the page cache.
/// Does not show: whether a file system went through the page cache all the same; the
/// pages in it afterwards do. Reading and writing take turns: nothing overlaps.
pub(crate) static COPY: Entry<Copies> = Entry {
    needs: "file systems with O_DIRECT, blocks of a multiple of what they ask for",
    is_direct: true,
    ..engine(
        Way::Direct,
        "direct",
        "pread(2) and pwrite(2) of each block past both page caches (O_DIRECT)",
        "device → buffer → device: the devices write to and read from the buffer",
        Copies::with(open_copier),
    )
};

fn open_copier(setup: CopySetup) -> Result<Box<dyn Copier>, String> {
    let CopySetup { source, destination, part } = setup;
    let (of_source, of_copy) = (
        alignment(source.as_fd(), part.block_bytes)?,
        alignment(destination.as_fd(), part.block_bytes)?,
    );
    let align = of_source.max(of_copy);
    // Whole pages: as much as any file system asks for, to read the last block into.
    let buffer = memory(part.block_bytes.min(part.bytes()))?;
    Ok(Box::new(Blocks::of(part, DirectCopier { source, destination, buffer, align }, READ_CALL)))
}

struct DirectCopier {
    source: OwnedFd,
    destination: OwnedFd,
    buffer: Pages,
    align: usize,
}

impl Piecewise for DirectCopier {
    #[inline]
    fn piece(&mut self, piece: Place, moved: &mut Moved) -> Result<usize, Broken> {
        let whole = piece.bytes.next_multiple_of(self.align).min(self.buffer.len());
        let from = self.source.as_fd();
        let read = pread(from, &mut self.buffer[..whole], piece.offset)
            .map_err(|errno| moved.failed(READ_CALL, errno))?;
        // A source that grows may have more by now.
        let read = read.min(piece.bytes);
        moved.calls += 1;
        let is_last = read == piece.bytes && !read.is_multiple_of(self.align);
        if is_last {
            return self.last(piece, moved);
        }
        if !read.is_multiple_of(self.align) {
            // Only the end of a file is no multiple: the source has become shorter.
            return Err(Broken { call: READ_CALL, errno: Errno::ENODATA });
        }
        moved.short_calls += u64::from(read < piece.bytes);
        let to = self.destination.as_fd();
        write_all(&self.buffer[..read], piece.offset, WRITE_CALL, moved, |bytes, at| {
            pwrite(to, bytes, at)
        })?;
        Ok(read)
    }
}

impl DirectCopier {
    /// Writes the end of the file, filled up with zeros, and cuts them off.
    #[cold]
    fn last(&mut self, piece: Place, moved: &mut Moved) -> Result<usize, Broken> {
        let whole = piece.bytes.next_multiple_of(self.align);
        self.buffer[piece.bytes..whole].fill(0);
        let to = self.destination.as_fd();
        write_all(&self.buffer[..whole], piece.offset, WRITE_CALL, moved, |bytes, at| {
            pwrite(to, bytes, at)
        })?;
        moved.bytes -= (whole - piece.bytes) as u64;
        moved.calls += 1;
        create::truncate(self.destination.as_fd(), piece.offset + piece.bytes as u64)
            .map_err(|errno| Broken { call: Call::destination("ftruncate"), errno })?;
        Ok(piece.bytes)
    }
}
