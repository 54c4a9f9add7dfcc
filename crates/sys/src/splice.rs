//! Moving references to pages instead of bytes: pipes, vmsplice(2), splice(2)
//! and sendfile(2), all of fs/splice.c of the kernel.
//!
//! What was spliced stays where it is and is read later: by the device that
//! sends it, or, over `lo` and veth, by the receiving program, because the
//! receive queue holds the sender's pages. Nothing tells when. Since Linux 6.5
//! the socket takes the pages with `MSG_SPLICE_PAGES`
//! (`splice_to_socket` → `skb_splice_from_iter`), before that with its
//! `sendpage`; neither marks the socket buffer as zero-copy, so that
//! `skb_orphan_frags`, which turns `MSG_ZEROCOPY` into a copy on its way to a
//! receiver on the same machine, leaves these pages alone.
//!
//! # Safety
//! Pointers and lengths come from live slices. The kernel keeps references to
//! the pages and only ever reads them: what changes there, or is freed and used
//! again, changes what a peer receives and no memory of ours.
//!
//! The kernel reads and writes the offsets, which live on the stack of the call;
//! no other pointer goes to it.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::io::IoSlice;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

use crate::errno::Errno;
use crate::pages::page_bytes;
use crate::socket::count;

/// A pipe that is used to hold references to pages.
#[derive(Debug)]
pub struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
}

impl Pipe {
    /// A pipe of the kernel's own size (16 places; pipe(7)).
    ///
    /// Errors: `EMFILE`, `ENFILE` at the limit of descriptors.
    pub fn open() -> Result<Pipe, Errno> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Pipe { out, into })
    }

    /// Places times the size of a page (`F_GETPIPE_SZ`).
    ///
    /// Errors: none in practice; passed on if there is one.
    pub fn size_bytes(&self) -> Result<usize, Errno> {
        Ok(fcntl_getpipe_size(&self.into)?)
    }

    /// Asks for another size (`F_SETPIPE_SZ`), which the kernel rounds up.
    ///
    /// Errors: `EPERM` above `fs.pipe-max-size`, or above what the user may
    /// have in all pipes together (`fs.pipe-user-pages-soft`), without
    /// `CAP_SYS_RESOURCE`; `EBUSY` below what it holds.
    pub fn resize(&self, bytes: usize) -> Result<(), Errno> {
        fcntl_setpipe_size(&self.into, bytes)?;
        Ok(())
    }

    /// Puts references to the pages of `iovec` into the pipe, as far as there
    /// are places; waits where there is none. The bytes are read when somebody
    /// reads them from where they go to, not now.
    ///
    /// Errors: see vmsplice(2); `EINVAL` above 1024 buffers (`UIO_MAXIOV`).
    #[inline]
    pub fn vmsplice(&self, iovec: &[IoSlice<'_>]) -> Result<usize, Errno> {
        // SAFETY: IoSlice is guaranteed to have the layout of iovec; its slices
        // live for this call. Their pages stay alive as long as the kernel needs
        // them, whatever becomes of the mapping, and are only read.
        let n =
            unsafe { libc::vmsplice(self.into.as_raw_fd(), iovec.as_ptr().cast(), iovec.len(), 0) };
        count(n)
    }

    /// Moves references to at most `bytes` from a TCP socket's receive queue
    /// into the pipe, as far as there are places; waits for the first of them.
    /// Bytes in the linear part of a socket buffer are copied to a page of
    /// their own (`linear_to_page`, net/core/skbuff.c). 0 is the end of the
    /// stream.
    ///
    /// Errors: see splice(2); `EAGAIN` when the socket's receive time-out
    /// passed.
    #[inline]
    pub fn splice_from(&self, socket: BorrowedFd<'_>, bytes: usize) -> Result<usize, Errno> {
        let none = std::ptr::null_mut();
        // SAFETY: no offsets are passed, as neither end has any.
        let n = unsafe {
            libc::splice(socket.as_raw_fd(), none, self.into.as_raw_fd(), none, bytes, 0)
        };
        count(n)
    }

    /// Moves at most `bytes` from the pipe to a device, such as /dev/null,
    /// which drops the references. 0 is an empty pipe.
    ///
    /// Errors: see splice(2).
    #[inline]
    pub fn splice_into(&self, device: BorrowedFd<'_>, bytes: usize) -> Result<usize, Errno> {
        let none = std::ptr::null_mut();
        // SAFETY: no offsets are passed: a pipe has none, and the device keeps
        // its own.
        let n =
            unsafe { libc::splice(self.out.as_raw_fd(), none, device.as_raw_fd(), none, bytes, 0) };
        count(n)
    }

    /// Moves at most `bytes` from the pipe to a socket; `more` says that the
    /// message does not end with them (`SPLICE_F_MORE`). 0 is an empty pipe.
    ///
    /// Errors: see splice(2); `EAGAIN` when the socket's send time-out passed.
    #[inline]
    pub fn splice_to(
        &self,
        socket: BorrowedFd<'_>,
        bytes: usize,
        more: bool,
    ) -> Result<usize, Errno> {
        let flags = if more { libc::SPLICE_F_MORE } else { 0 };
        let none = std::ptr::null_mut();
        // SAFETY: no offsets are passed, as neither end has any.
        let n = unsafe {
            libc::splice(self.out.as_raw_fd(), none, socket.as_raw_fd(), none, bytes, flags)
        };
        count(n)
    }
}

/// Sends `bytes` of a file from `offset` on without reading them: references to
/// its pages in the page cache go to the socket. 0 is the end of the file.
///
/// Errors: see sendfile(2); `EAGAIN` when the socket's send time-out passed.
#[inline]
pub fn sendfile(
    socket: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    offset: u64,
    bytes: usize,
) -> Result<usize, Errno> {
    let mut offset = libc::off64_t::try_from(offset).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the kernel reads and writes the offset, which lives on this stack.
    let n =
        unsafe { libc::sendfile64(socket.as_raw_fd(), file.as_raw_fd(), &raw mut offset, bytes) };
    count(n)
}

/// Places that the pages of a buffer take in a pipe.
pub fn places(buffer: &[u8]) -> usize {
    places_of(buffer, page_bytes())
}

fn places_of(buffer: &[u8], page_bytes: usize) -> usize {
    let within = buffer.as_ptr().addr() % page_bytes;
    if buffer.is_empty() { 0 } else { (within + buffer.len()).div_ceil(page_bytes) }
}

// Pipes between two files: references to the pages of one go into the pipe,
// and what they hold is copied to the other (`iter_file_splice_write`,
// fs/splice.c).

impl Pipe {
    /// Moves references to at most `bytes` of a file from `offset` on into the
    /// pipe, as far as there are places. 0 is the end of the file.
    ///
    /// Errors: see splice(2); `EINVAL` where the file system cannot.
    #[inline]
    pub fn take_from(
        &self,
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
    ) -> Result<usize, Errno> {
        let mut offset = libc::off64_t::try_from(offset).map_err(|_| Errno::EINVAL)?;
        let none = std::ptr::null_mut();
        // SAFETY: the offset lives on this stack; a pipe has none.
        count(unsafe {
            libc::splice(file.as_raw_fd(), &raw mut offset, self.into.as_raw_fd(), none, bytes, 0)
        })
    }

    /// Writes at most `bytes` of what the pipe refers to into a file at `offset`.
    /// 0 is an empty pipe.
    ///
    /// Errors: see splice(2) and write(2); `EINVAL` where the file system cannot,
    /// or for a file that is open for appending.
    #[inline]
    pub fn give_to(&self, file: BorrowedFd<'_>, offset: u64, bytes: usize) -> Result<usize, Errno> {
        let mut offset = libc::off64_t::try_from(offset).map_err(|_| Errno::EINVAL)?;
        let none = std::ptr::null_mut();
        // SAFETY: as above.
        count(unsafe {
            libc::splice(self.out.as_raw_fd(), none, file.as_raw_fd(), &raw mut offset, bytes, 0)
        })
    }
}

#[cfg(test)]
mod tests;
