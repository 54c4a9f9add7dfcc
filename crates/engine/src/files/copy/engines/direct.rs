//! `direct`: pread(2) and pwrite(2) of each block with `O_DIRECT` at both ends.
//!
//! Path through the kernel: the file system's direct I/O (`iomap_dio_rw`) → the block
//! layer, which writes to and reads from the program's pages: no copy by a
//! processor, unless the devices have none of their own to make it. The last block
//! of a file that is no multiple is written whole, and the file is cut behind it.
//! Needs: file systems with direct I/O at both ends; blocks that are a multiple of
//! what they ask for.
//! Compared with: `read_write`, which leaves both files in the page cache.
//! Does not show: whether a file system went through the page cache all the same; the
//! pages in it afterwards do. Reading and writing take turns: nothing overlaps.

use std::os::fd::{AsFd, OwnedFd};

use iolens_model::tune::Way;
use iolens_sys::errno::Errno;
use iolens_sys::file::{create, read, write};
use iolens_sys::pages::Pages;

use crate::files::copy::drive::{Blocks, Copier, Piecewise};
use crate::files::copy::engines::{Class, Entry, Setup};
use crate::files::direct::alignment;
use crate::files::moved::{Broken, Call, Moved, write_all};
use crate::files::part::Place;

const READ: Call = Call::source("pread with O_DIRECT");
const WRITE: Call = Call::destination("pwrite with O_DIRECT");

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "direct",
    summary: "pread(2) and pwrite(2) of each block past both page caches (O_DIRECT)",
    needs: "file systems with O_DIRECT, blocks of a multiple of what they ask for",
    since: None,
    path: "device → buffer → device: the devices write to and read from the buffer",
    class: Class::Copies,
    is_direct: true,
    way: Way::Direct,
    one_thread: None,
    instead: Some("read_write"),
    open,
};

fn open(setup: Setup) -> Result<Box<dyn Copier>, String> {
    let Setup { source, destination, part } = setup;
    let (of_source, of_copy) = (
        alignment(source.as_fd(), part.block_bytes)?,
        alignment(destination.as_fd(), part.block_bytes)?,
    );
    let align = of_source.max(of_copy);
    // Whole pages: as much as any file system asks for, to read the last block into.
    let buffer = super::entry::buffer(&part)?;
    Ok(Box::new(Blocks::of(part, Direct { source, destination, buffer, align }, READ)))
}

struct Direct {
    source: OwnedFd,
    destination: OwnedFd,
    buffer: Pages,
    align: usize,
}

impl Piecewise for Direct {
    #[inline]
    fn piece(&mut self, piece: Place, moved: &mut Moved) -> Result<usize, Broken> {
        let whole = piece.bytes.next_multiple_of(self.align).min(self.buffer.len());
        let from = self.source.as_fd();
        let read = match read::pread(from, &mut self.buffer[..whole], piece.offset) {
            // A source that grows may have more by now.
            Ok(n) => n.min(piece.bytes),
            Err(errno) => {
                moved.nothing(READ, errno)?;
                return Err(Broken { call: READ, errno });
            }
        };
        moved.calls += 1;
        let is_last = read == piece.bytes && !read.is_multiple_of(self.align);
        if is_last {
            return self.last(piece, moved);
        }
        if !read.is_multiple_of(self.align) {
            // Only the end of a file is no multiple: the source has become shorter.
            return Err(Broken { call: READ, errno: Errno::ENODATA });
        }
        moved.short_calls += u64::from(read < piece.bytes);
        let to = self.destination.as_fd();
        write_all(&self.buffer[..read], piece.offset, WRITE, moved, |bytes, at| {
            write::pwrite(to, bytes, at)
        })?;
        Ok(read)
    }
}

impl Direct {
    /// Writes the end of the file, filled up with zeros, and cuts them off.
    #[cold]
    fn last(&mut self, piece: Place, moved: &mut Moved) -> Result<usize, Broken> {
        let whole = piece.bytes.next_multiple_of(self.align);
        self.buffer[piece.bytes..whole].fill(0);
        let to = self.destination.as_fd();
        write_all(&self.buffer[..whole], piece.offset, WRITE, moved, |bytes, at| {
            write::pwrite(to, bytes, at)
        })?;
        moved.bytes -= (whole - piece.bytes) as u64;
        moved.calls += 1;
        create::truncate(self.destination.as_fd(), piece.offset + piece.bytes as u64)
            .map_err(|errno| Broken { call: Call::destination("ftruncate"), errno })?;
        Ok(piece.bytes)
    }
}
