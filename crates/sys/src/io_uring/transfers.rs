//! A ring that reads and writes files with memory that is registered once
//! (`IORING_OP_READ_FIXED`, `IORING_OP_WRITE_FIXED`), several requests at a time;
//! see io_uring_prep_write_fixed(3).
//!
//! # Safety
//! The kernel reads or writes the ring's memory from when a request is queued until
//! its completion has come; no reference to the memory exists for that time, and what
//! is stored there meanwhile is copied through a pointer, within its length. It is the
//! memory of the [`Ring`].

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::opcode;
use io_uring::types::Fd;

use super::OpenError;
use super::ring::Ring;
use super::setup::{SetupFlags, setup};
use crate::errno::Errno;
use crate::pages::{PageKind, Pages};

/// Which way the bytes of a request go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the file into the ring's memory.
    Read,
    /// From the ring's memory into the file.
    Write,
}

/// One request, see [`TransferRing::queue`].
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Which way.
    pub way: Way,
    /// The file.
    pub file: BorrowedFd<'a>,
    /// Where in the file.
    pub offset: u64,
    /// Where in the memory.
    pub from: usize,
    /// How many bytes.
    pub bytes: usize,
}

/// A request that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its slot, which is free again.
    pub slot: usize,
    /// Bytes that moved, or why none did.
    pub result: Result<usize, Errno>,
}

/// A ring with memory that is registered as one buffer, and slots, each with at most
/// one request. Only the thread that opened it can use it.
pub struct TransferRing {
    ring: Ring<Pages>,
    /// Where the memory is: no reference to it exists while the kernel may write.
    start: *mut u8,
    bytes: usize,
    busy: Box<[bool]>,
}

// SAFETY: the pointer leads to memory that the ring owns; nothing is tied to a thread
// but the kernel's side, which refuses others with an error.
unsafe impl Send for TransferRing {}

impl std::fmt::Debug for TransferRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransferRing").field("busy", &self.busy).finish_non_exhaustive()
    }
}

impl TransferRing {
    /// A ring of `slots` slots, 1 at least, with `bytes` bytes of memory, rounded up
    /// to pages.
    ///
    /// Errors: the first thing that the kernel lacks or refuses; it registers no
    /// more than 1 GiB as one buffer.
    pub fn open(slots: u32, bytes: usize) -> Result<TransferRing, OpenError> {
        let slots = slots.max(1);
        let (buffers, buffer_bytes) = (slots as usize, bytes / slots as usize);
        let refused = move |errno| OpenError::Register { buffers, buffer_bytes, errno };
        let flags = SetupFlags::ONE_THREAD;
        let uring = setup(slots, slots, flags)?;
        let mut memory = Pages::new(bytes, PageKind::Plain).map_err(refused)?;
        let (start, bytes) = (memory.as_mut_ptr(), memory.len());
        let buffer = libc::iovec { iov_base: start.cast(), iov_len: bytes };
        let mut ring = Ring::new(uring, flags, memory);
        // SAFETY: the buffer is the ring's memory.
        unsafe { ring.register(&[buffer]) }.map_err(refused)?;
        let busy = vec![false; slots as usize].into_boxed_slice();
        Ok(TransferRing { ring, start, bytes, busy })
    }

    /// Whether a slot has a request that has not ended.
    #[inline]
    pub fn is_busy(&self, slot: usize) -> bool {
        self.busy[slot]
    }

    /// Requests that have not ended.
    #[inline]
    pub fn under_way(&self) -> usize {
        self.ring.under_way()
    }

    /// The memory.
    ///
    /// Panics while a request is under way.
    #[inline]
    pub fn memory(&mut self) -> &mut [u8] {
        assert!(self.under_way() == 0, "the kernel has that memory");
        &mut self.ring.memory
    }

    /// Copies bytes into the memory, also while requests are under way: the caller sees
    /// to it that none of them is about that place.
    ///
    /// Errors: `EINVAL` for bytes beyond the memory.
    #[inline]
    pub fn store(&mut self, from: usize, bytes: &[u8]) -> Result<(), Errno> {
        let end = from.checked_add(bytes.len());
        if end.is_none_or(|end| end > self.bytes) {
            return Err(Errno::EINVAL);
        }
        // SAFETY: the target lies within the ring's memory, to which no reference exists
        // (`memory` borrows the ring), and which the slice cannot overlap with; what the
        // kernel reads or writes there at the same time is bytes of any value.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(from), bytes.len());
        }
        Ok(())
    }

    /// Queues a request, which is handed over with the next [`Self::submit`]. The file stays
    /// open until then: the entry has its number alone, and whatever file has that number
    /// by then is read or written.
    ///
    /// Errors: `EBUSY` for a slot that has one, `EINVAL` for bytes beyond the memory.
    #[inline]
    pub fn queue(&mut self, slot: usize, request: &Request<'_>) -> Result<(), Errno> {
        let Request { way, file, offset, from, bytes } = *request;
        if self.busy[slot] {
            return Err(Errno::EBUSY);
        }
        let end = from.checked_add(bytes).filter(|&end| end <= self.bytes);
        let length = end.and_then(|_| u32::try_from(bytes).ok()).ok_or(Errno::EINVAL)?;
        let fd = Fd(file.as_raw_fd());
        let start = self.start.wrapping_add(from);
        let entry = match way {
            Way::Read => opcode::ReadFixed::new(fd, start, length, 0).offset(offset).build(),
            Way::Write => opcode::WriteFixed::new(fd, start, length, 0).offset(offset).build(),
        };
        let entry = entry.user_data(slot as u64);
        // SAFETY: the entry points into the ring's memory, which it keeps to itself
        // from now on: see the note of the module.
        unsafe { self.ring.push(&entry) }?;
        self.busy[slot] = true;
        Ok(())
    }

    /// Hands over what is queued, and waits until something has ended. The same
    /// call does both.
    ///
    /// Errors: see io_uring_enter(2); `EINTR` when a signal ended the waiting.
    #[inline]
    pub fn submit(&mut self) -> Result<(), Errno> {
        self.ring.submit(1)
    }

    /// The next request that has ended; never waits.
    #[inline]
    pub fn ended(&mut self) -> Option<Ended> {
        let entry = self.ring.completion()?;
        let slot = usize::try_from(entry.user_data()).ok()?;
        self.busy[slot] = false;
        let result = usize::try_from(entry.result()).map_err(|_| Errno::from_raw(-entry.result()));
        Some(Ended { slot, result })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use rustix::io::fcntl_dupfd_cloexec;

    use super::*;
    use crate::file;

    fn ring(test: &str) -> Option<TransferRing> {
        match TransferRing::open(2, 5000) {
            Ok(ring) => Some(ring),
            Err(why) => {
                let name = format!("io_uring::transfers::tests::{test}");
                crate::skip::note(&name, &format!("no rings here: {why:?}"));
                None
            }
        }
    }

    fn await_end(ring: &mut TransferRing) -> Ended {
        loop {
            if let Some(ended) = ring.ended() {
                return ended;
            }
            ring.submit().unwrap();
        }
    }

    #[test]
    fn bytes_go_through_registered_memory() {
        let Some(mut ring) = ring("bytes_go_through_registered_memory") else { return };
        let [mut one, other] = [(); 2].map(|()| file::in_folder(&std::env::temp_dir()).unwrap());
        one.write_all(b"0123456789").unwrap();
        let read = Request { way: Way::Read, file: one.as_fd(), offset: 4, from: 10, bytes: 100 };
        ring.queue(1, &read).unwrap();
        assert_eq!(ring.queue(1, &read), Err(Errno::EBUSY));
        assert_eq!(await_end(&mut ring), Ended { slot: 1, result: Ok(6) });
        assert_eq!(&ring.memory()[10..16], b"456789");
        let write = Request { way: Way::Write, file: other.as_fd(), offset: 1, bytes: 6, ..read };
        ring.queue(1, &write).unwrap();
        assert_eq!(await_end(&mut ring).result, Ok(6));
        let mut bytes = [9; 8];
        assert_eq!(other.read_at(&mut bytes, 0).unwrap(), 7);
        assert_eq!(&bytes[..7], b"\x00456789");
    }

    /// The number of a file that is closed is given to another one.
    #[test]
    fn what_is_only_queued_is_written_nowhere_when_the_ring_goes() {
        let name = "what_is_only_queued_is_written_nowhere_when_the_ring_goes";
        let Some(mut ring) = ring(name) else { return };
        let [meant, other] = [(); 2].map(|()| file::in_folder(&std::env::temp_dir()).unwrap());
        // Numbers that no other test of this process is given.
        const NUMBERS: i32 = 700;
        let file = fcntl_dupfd_cloexec(&meant, NUMBERS).unwrap();
        let number = file.as_raw_fd();
        // One that the kernel has, and that ends when it is cancelled.
        let (silent, _open) = std::io::pipe().unwrap();
        let read = Request { way: Way::Read, file: meant.as_fd(), offset: 0, from: 0, bytes: 5 };
        ring.queue(0, &Request { file: silent.as_fd(), ..read }).unwrap();
        ring.queue(1, &read).unwrap();
        assert_eq!(await_end(&mut ring), Ended { slot: 1, result: Ok(0) });
        ring.queue(1, &Request { way: Way::Write, file: file.as_fd(), ..read }).unwrap();
        assert_eq!(ring.under_way(), 2);
        drop(file);
        let file = fcntl_dupfd_cloexec(&other, NUMBERS).unwrap();
        assert_eq!(file.as_raw_fd(), number);
        drop(ring);
        assert_eq!([meant, other].map(|file| file.metadata().unwrap().len()), [0, 0]);
    }

    #[test]
    fn what_does_not_fit_or_may_not_be_is_refused() {
        let Some(mut ring) = ring("what_does_not_fit_or_may_not_be_is_refused") else { return };
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let request =
            Request { way: Way::Write, file: file.as_fd(), offset: 0, from: 8190, bytes: 3 };
        assert_eq!(ring.queue(0, &request), Err(Errno::EINVAL));
        ring.queue(0, &Request { bytes: 2, ..request }).unwrap();
        assert_eq!(await_end(&mut ring), Ended { slot: 0, result: Err(Errno::EBADF) });
    }

    #[test]
    #[should_panic(expected = "the kernel has that memory")]
    fn memory_that_the_kernel_has_is_not_shown() {
        let Some(mut ring) = ring("memory_that_the_kernel_has_is_not_shown") else {
            panic!("the kernel has that memory")
        };
        let file = file::in_folder(&std::env::temp_dir()).unwrap();
        let request = Request { way: Way::Write, file: file.as_fd(), offset: 0, from: 0, bytes: 1 };
        ring.queue(0, &request).unwrap();
        ring.memory();
    }
}
