//! What all rings have in common: requests under way, the memory that they use, and an end that
//! waits for them.
//!
//! # Safety
//! The kernel may use what a request points at from when the request is queued until its last
//! completion was taken. All of that belongs to the ring as its memory, which goes when no request
//! is left, and stays for good where one may be.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use io_uring::types::{CancelBuilder, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, squeue};

use super::LAST_WAIT;
use super::setup::{SetupFlags, await_poll_thread};
use crate::errno::Errno;
use crate::process;

/// Operations of io_uring_register(2) that give a ring an index in the calling thread.
const IORING_REGISTER_RING_FDS: u32 = 20;
const IORING_UNREGISTER_RING_FDS: u32 = 21;

/// A ring with the memory of its requests.
pub(super) struct Ring<M> {
    uring: ManuallyDrop<IoUring>,
    pub(super) memory: ManuallyDrop<M>,
    /// Requests that were queued and whose last completion was not taken.
    under_way: usize,
    is_polled: bool,
    /// Whether it has registered buffers.
    locks: bool,
    /// Whether it has registered files.
    has_files: bool,
    own_index: Option<OwnIndex>,
}

/// The index of a registered ring, which holds in one thread.
#[derive(Debug, Clone, Copy)]
struct OwnIndex {
    index: RawFd,
    thread: u32,
}

/// `struct io_uring_rsrc_update` of include/uapi/linux/io_uring.h.
#[repr(C)]
struct OwnIndexUpdate {
    offset: u32,
    reserved: u32,
    data: u64,
}

impl<M> Ring<M> {
    /// One that was set up with these flags.
    pub(super) fn new(uring: IoUring, flags: SetupFlags, memory: M) -> Ring<M> {
        Ring {
            uring: ManuallyDrop::new(uring),
            memory: ManuallyDrop::new(memory),
            under_way: 0,
            is_polled: flags.contains(SetupFlags::SQPOLL),
            locks: false,
            has_files: false,
            own_index: None,
        }
    }

    /// Requests that were queued and whose last completion was not taken.
    #[inline]
    pub(super) fn under_way(&self) -> usize {
        self.under_way
    }

    /// Whether a thread of the kernel's takes the requests.
    #[inline]
    pub(super) fn is_polled(&self) -> bool {
        self.is_polled
    }

    /// Registers buffers (`IORING_REGISTER_BUFFERS`).
    ///
    /// # Safety
    /// They are part of the ring's memory.
    pub(super) unsafe fn register(&mut self, buffers: &[libc::iovec]) -> Result<(), Errno> {
        // SAFETY: they live as long as the ring, or for ever.
        unsafe { self.uring.submitter().register_buffers(buffers) }?;
        self.locks = true;
        Ok(())
    }

    /// Registers a file, as number 0 (`IORING_REGISTER_FILES`).
    pub(super) fn register_file(&mut self, file: BorrowedFd<'_>) -> Result<(), Errno> {
        self.uring.submitter().register_files(&[file.as_raw_fd()])?;
        self.has_files = true;
        Ok(())
    }

    /// Registers the ring with this thread, which alone may use it from then on.
    pub(super) fn register_itself(&mut self) -> Result<(), Errno> {
        let data = u64::from(self.uring.as_raw_fd().unsigned_abs());
        // At any index that is free.
        let update = OwnIndexUpdate { offset: u32::MAX, reserved: 0, data };
        let index = self.name_itself(IORING_REGISTER_RING_FDS, update)?;
        self.own_index = Some(OwnIndex { index, thread: process::thread_id() });
        Ok(())
    }

    /// Registers the ring's index or takes it back; the index.
    fn name_itself(&self, operation: u32, mut update: OwnIndexUpdate) -> Result<RawFd, Errno> {
        let (fd, one) = (self.uring.as_raw_fd(), 1u32);
        // SAFETY: the kernel reads and writes one update, which lives on this stack.
        let done = unsafe {
            libc::syscall(libc::SYS_io_uring_register, fd, operation, &raw mut update, one)
        };
        if done < 0 { Err(Errno::last()) } else { Ok(update.offset.cast_signed()) }
    }

    /// Queues a request.
    ///
    /// Errors: `EBUSY` when the queue is full.
    ///
    /// # Safety
    /// What it points at is part of the ring's memory, or lives for ever.
    #[inline]
    pub(super) unsafe fn push(&mut self, entry: &squeue::Entry) -> Result<(), Errno> {
        // SAFETY: see the note of the module.
        unsafe { self.uring.submission().push(entry) }.map_err(|_| Errno::EBUSY)?;
        self.under_way += 1;
        Ok(())
    }

    /// Queues requests, all at once or none.
    ///
    /// Errors, safety: as [`Self::push`].
    #[inline]
    pub(super) unsafe fn push_all(&mut self, entries: &[squeue::Entry]) -> Result<(), Errno> {
        // SAFETY: see the note of the module.
        unsafe { self.uring.submission().push_multiple(entries) }.map_err(|_| Errno::EBUSY)?;
        self.under_way += entries.len();
        Ok(())
    }

    /// Whether no request has room in the queue.
    #[inline]
    pub(super) fn is_full(&mut self) -> bool {
        self.uring.submission().is_full()
    }

    /// Hands over what is queued, and waits until `want` have completed.
    #[inline]
    pub(super) fn submit(&mut self, want: usize) -> Result<(), Errno> {
        self.uring.submitter().submit_and_wait(want)?;
        Ok(())
    }

    /// The same, no longer than the limit; how many the kernel has taken.
    #[inline]
    pub(super) fn submit_within(&mut self, want: usize, limit: &Timespec) -> io::Result<usize> {
        let args = SubmitArgs::new().timespec(limit);
        if self.own_index.is_none() {
            return self.uring.submitter().submit_with_args(want, &args);
        }
        let queued = self.uring.submission().len();
        self.call(u32::try_from(queued).unwrap_or(u32::MAX), want, &args)
    }

    /// The same where a thread of the kernel's takes what is queued: it is woken if it sleeps.
    /// System calls that were made.
    #[inline]
    pub(super) fn submit_to_thread(&mut self) -> Result<u32, Errno> {
        let mut calls = 0;
        if self.uring.submission().need_wakeup() {
            self.uring.submitter().submit()?;
            calls += 1;
        }
        if self.uring.completion().is_empty() {
            self.uring.submitter().submit_and_wait(1)?;
            calls += 1;
        }
        Ok(calls)
    }

    /// Hands over so many requests and waits until something has completed, no longer than the
    /// limit, in one call. Once a request is handed over the call succeeds, even if nothing
    /// completes in time or a signal ends the waiting.
    #[inline]
    pub(super) fn enter(&mut self, requests: u32, limit: &Timespec) -> Result<(), Errno> {
        self.call(requests, 1, &SubmitArgs::new().timespec(limit))?;
        Ok(())
    }

    /// io_uring_enter(2); how many requests the kernel has taken.
    #[inline]
    fn call(&mut self, requests: u32, want: usize, args: &SubmitArgs) -> io::Result<usize> {
        let mut flags = EnterFlags::GETEVENTS | EnterFlags::EXT_ARG;
        if self.is_polled && self.uring.submission().need_wakeup() {
            flags |= EnterFlags::SQ_WAKEUP;
        }
        let want = u32::try_from(want).unwrap_or(u32::MAX);
        let Some(OwnIndex { index, .. }) = self.own_index else {
            // SAFETY: with `EXT_ARG` the argument is a `SubmitArgs`, which lives for the call with
            // all that it points to.
            return unsafe {
                self.uring.submitter().enter(requests, want, flags.bits(), Some(args))
            };
        };
        let flags = (flags | EnterFlags::REGISTERED_RING).bits();
        // SAFETY: as above.
        let taken = unsafe {
            let (args, bytes) = (std::ptr::from_ref(args), size_of::<SubmitArgs>());
            libc::syscall(libc::SYS_io_uring_enter, index, requests, want, flags, args, bytes)
        };
        usize::try_from(taken).map_err(|_| io::Error::last_os_error())
    }

    /// The next completion that has come; never waits.
    #[inline]
    pub(super) fn completion(&mut self) -> Option<cqueue::Entry> {
        let entry = self.uring.completion().next()?;
        self.under_way = self.under_way.saturating_sub(usize::from(!cqueue::more(entry.flags())));
        Some(entry)
    }

    /// One more completion comes of a request than its last one said.
    #[inline]
    pub(super) fn expect_another(&mut self) {
        self.under_way += 1;
    }

    /// Completions that the kernel had no room for and lost.
    #[inline]
    pub(super) fn lost(&mut self) -> u32 {
        self.uring.completion().overflow()
    }

    /// Waits until the thread that takes the requests sleeps; whether there is one.
    pub(super) fn idle(&mut self) -> Result<bool, Errno> {
        if self.is_polled {
            await_poll_thread(&mut self.uring)?;
        }
        Ok(self.is_polled)
    }

    /// Cancels what is under way, and takes all completions, until there is no request or none
    /// ends any more. What is only queued never becomes one.
    pub(super) fn end(&mut self, mut each: impl FnMut(&cqueue::Entry)) {
        let mut take = |ring: &mut Self| {
            while let Some(entry) = ring.completion() {
                each(&entry);
            }
        };
        take(self);
        if self.handed_over() == 0 {
            return;
        }
        let limit = Timespec::from(LAST_WAIT);
        // Whether there was anything left to cancel shows in the completions.
        let _ = self.uring.submitter().register_sync_cancel(Some(limit), CancelBuilder::any());
        take(self);
        while self.handed_over() > 0 {
            let waited = self.enter(0, &limit);
            take(self);
            if waited.is_err_and(|errno| errno != Errno::EINTR) {
                break;
            }
        }
    }

    /// Requests that the kernel has, or may have.
    fn handed_over(&mut self) -> usize {
        let queued = if self.is_polled { 0 } else { self.uring.submission().len() };
        self.under_way.saturating_sub(queued)
    }
}

impl<M> Drop for Ring<M> {
    fn drop(&mut self) {
        self.end(|_| {});
        let is_over = self.handed_over() == 0;
        if is_over && self.locks {
            // With the ring alone the kernel would give back what they lock, but some time later
            // (`io_ring_exit_work`, io_uring/io_uring.c).
            let _ = self.uring.submitter().unregister_buffers();
        }
        if is_over && self.has_files {
            // They would stay open as long.
            let _ = self.uring.submitter().unregister_files();
        }
        // In another thread, this index may stand for another ring.
        if let Some(own) = self.own_index.filter(|own| own.thread == process::thread_id()) {
            let offset = own.index.cast_unsigned();
            let update = OwnIndexUpdate { offset, reserved: 0, data: 0 };
            let _ = self.name_itself(IORING_UNREGISTER_RING_FDS, update);
        }
        // SAFETY: each is dropped here and nowhere else; the memory stays for good where the
        // kernel may still use it.
        unsafe {
            ManuallyDrop::drop(&mut self.uring);
            if is_over {
                ManuallyDrop::drop(&mut self.memory);
            }
        }
    }
}
