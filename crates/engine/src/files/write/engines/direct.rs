//! `direct`: pwrite(2) with `O_DIRECT`, block by block: from the program's memory to
//! the device.
//!
//! Path through the kernel: pwrite64(2) → the file system's direct I/O (`iomap_dio_rw`)
//! → the block layer, which reads the program's pages. The call returns when the
//! device has answered; its own cache may still have the bytes.
//! Needs: a file system with direct I/O; blocks that are a multiple of what it asks
//! for, memory that is aligned.
//! Compared with: `write`, which returns when the page cache has the bytes.
//! Does not show: whether the file system went through the page cache all the same;
//! the pages in it afterwards do.

use std::os::fd::BorrowedFd;

use iolens_sys::errno::Errno;
use iolens_sys::file;

use crate::files::direct::alignment;
use crate::files::moved::Call;
use crate::files::write::engines::Entry;
use crate::files::write::plain;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "direct",
    summary: "pwrite(2) of each block past the page cache (O_DIRECT)",
    needs: "a file system with O_DIRECT, blocks of a multiple of what it asks for",
    since: None,
    path: "buffer → device: the device reads the buffer, no processor copies",
    is_direct: true,
    ignores_dsync: None,
    has_depth: false,
    is_dsync: false,
    is_durable: false,
    needs_size: false,
    by_hand: None,
    open: |setup| {
        alignment(setup.file, setup.block_bytes as u64)?;
        plain::open::<Direct>(setup)
    },
    lane: |setup| {
        alignment(setup.file, setup.part.block_bytes)?;
        plain::lane::<Direct>(setup)
    },
};

struct Direct;

impl plain::Call for Direct {
    const NAME: Call = Call::destination("pwrite with O_DIRECT");

    #[inline(always)]
    fn call(fd: BorrowedFd<'_>, bytes: &[u8], at: u64, _block: usize) -> Result<usize, Errno> {
        file::write::pwrite(fd, bytes, at)
    }
}
