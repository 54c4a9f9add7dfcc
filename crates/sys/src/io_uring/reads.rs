//! A ring that reads a file: as many requests under way as it has slots, each with
//! a buffer of its own; see io_uring_prep_read(3), io_uring_prep_read_fixed(3).
//!
//! # Safety
//! The kernel writes to a slot's buffer from when its request is handed over until
//! its completion was taken; a slot that is under way shows its bytes to nobody,
//! and takes no other request. The buffers are the memory of the [`Ring`].

#![expect(unsafe_code, reason = "see the safety note above")]

#[cfg(test)]
mod tests;

use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::opcode;
use io_uring::types::Fd;

use super::OpenError;
use super::ring::Ring;
use super::setup::{SetupFlags, setup};
use crate::errno::Errno;
use crate::pages::{PAGE_BYTES, PageKind, Pages};

/// What a ring is to be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadWishes {
    /// Requests under way at once; at least 1.
    pub depth: u32,
    /// Bytes of a buffer, which begins on a page and has whole ones.
    pub buffer_bytes: usize,
    /// Whether buffers are registered (`IORING_REGISTER_BUFFERS`), so that their
    /// pages are looked up and pinned once.
    pub registered: bool,
    /// Whether a thread of the kernel's takes the requests (`IORING_SETUP_SQPOLL`).
    pub poll_thread: bool,
}

/// A ring; only the thread that opened it can use it, unless a thread of the
/// kernel's takes its requests.
pub struct ReadRing {
    ring: Ring<Pages>,
    file: OwnedFd,
    stride: usize,
    /// Which slots are under way.
    under_way: Vec<bool>,
    wishes: ReadWishes,
}

impl std::fmt::Debug for ReadRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ReadRing { file, wishes, ring, .. } = self;
        f.debug_struct("ReadRing")
            .field("file", file)
            .field("wishes", wishes)
            .field("under_way", &ring.under_way())
            .finish_non_exhaustive()
    }
}

impl ReadRing {
    /// Makes one.
    ///
    /// Errors: the first thing that the kernel lacks or refuses.
    pub fn open(file: OwnedFd, wishes: ReadWishes) -> Result<ReadRing, OpenError> {
        let depth = wishes.depth as usize;
        let stride = wishes.buffer_bytes.next_multiple_of(PAGE_BYTES).max(PAGE_BYTES);
        let buffers = stride.checked_mul(depth).ok_or(Errno::ENOMEM);
        let buffers = buffers.and_then(|bytes| Pages::new(bytes, PageKind::Plain));
        let buffers = buffers.map_err(OpenError::Memory)?;
        let flags = match wishes.poll_thread {
            false => SetupFlags::ONE_THREAD,
            true => SetupFlags::SQPOLL,
        };
        let uring = setup(wishes.depth, wishes.depth, flags)?;
        let mut ring = ReadRing {
            ring: Ring::new(uring, flags, buffers),
            file,
            stride,
            under_way: vec![false; depth],
            wishes,
        };
        if wishes.registered {
            ring.register()?;
        }
        Ok(ring)
    }

    fn register(&mut self) -> Result<(), OpenError> {
        let stride = self.stride;
        let slot = |slot| self.ring.memory.at(slot * stride).cast();
        let buffers: Vec<libc::iovec> = (0..self.depth())
            .map(|number| libc::iovec { iov_base: slot(number), iov_len: stride })
            .collect();
        // SAFETY: the buffers are the ring's memory.
        let registered = unsafe { self.ring.register(&buffers) };
        registered.map_err(|errno| OpenError::Register {
            buffers: buffers.len(),
            buffer_bytes: stride,
            errno,
        })
    }

    /// Requests that can be under way at once.
    pub fn depth(&self) -> usize {
        self.under_way.len()
    }

    /// Requests that are, counted from their push to their taking.
    #[inline]
    pub fn under_way(&self) -> usize {
        self.ring.under_way()
    }

    /// Puts a request into the ring: `bytes` from `offset` of the file on, into a
    /// slot's buffer behind its first `from` bytes. The kernel's thread may begin
    /// at once; without one, [`Self::enter`] hands it over.
    ///
    /// Errors: `EBUSY` for a slot that is under way, `EINVAL` beyond its buffer.
    #[inline]
    pub fn push(
        &mut self,
        slot: usize,
        from: usize,
        bytes: usize,
        offset: u64,
    ) -> Result<(), Errno> {
        let fits = from.checked_add(bytes).is_some_and(|end| end <= self.stride);
        let (true, Some(false)) = (fits, self.under_way.get(slot)) else {
            return Err(if fits { Errno::EBUSY } else { Errno::EINVAL });
        };
        // At its end nothing can be asked for, and its last byte is as good a place.
        let buffer = self.ring.memory.at(slot * self.stride + from.min(self.stride - 1));
        let length = u32::try_from(bytes).map_err(|_| Errno::EINVAL)?;
        let fd = Fd(self.file.as_raw_fd());
        let entry = match self.wishes.registered {
            true => {
                let index = u16::try_from(slot).map_err(|_| Errno::EINVAL)?;
                opcode::ReadFixed::new(fd, buffer, length, index).offset(offset).build()
            }
            false => opcode::Read::new(fd, buffer, length).offset(offset).build(),
        };
        // SAFETY: the buffer lies within memory of the ring's that nobody else
        // reads or writes while the slot is under way; see the note of the module.
        unsafe { self.ring.push(&entry.user_data(slot as u64)) }?;
        self.under_way[slot] = true;
        Ok(())
    }

    /// Hands over what was pushed and waits until a completion is there. Returns
    /// the system calls that it took: one, or none where a thread of the kernel's
    /// has taken the requests and is done with one.
    ///
    /// Errors: see io_uring_enter(2); `EINTR` when a handled signal arrived.
    #[inline]
    pub fn enter(&mut self) -> Result<u32, Errno> {
        if self.ring.is_polled() {
            return self.ring.submit_to_thread();
        }
        self.ring.submit(1)?;
        Ok(1)
    }

    /// Waits until the kernel's thread that takes requests sleeps; with nothing under way
    /// that is soon. Returns whether there is such a thread.
    ///
    /// Errors: `ETIMEDOUT` when it does not after a second.
    pub fn idle(&mut self) -> Result<bool, Errno> {
        self.ring.idle()
    }

    /// A slot whose request has ended, and what came of it; never waits.
    #[inline]
    pub fn completed(&mut self) -> Option<(usize, Result<usize, Errno>)> {
        let entry = self.ring.completion()?;
        let slot = usize::try_from(entry.user_data()).unwrap_or(usize::MAX);
        let result = usize::try_from(entry.result()).map_err(|_| Errno::from_raw(-entry.result()));
        // Every completion has the number of a slot that is under way.
        self.under_way[slot] = false;
        Some((slot, result))
    }

    /// The first `bytes` bytes of a slot's buffer. Panics for one that is under way.
    #[inline]
    pub fn bytes(&self, slot: usize, bytes: usize) -> &[u8] {
        assert!(!self.under_way[slot] && bytes <= self.stride, "the kernel may write there");
        // SAFETY: within the slot's buffer, which the kernel has no request for; it
        // gets none while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.ring.memory.at(slot * self.stride), bytes) }
    }
}
