//! Buffers that are provided to a ring (`IORING_REGISTER_PBUF_RING`), for requests
//! to take from; see io_uring_register_buf_ring(3).
//!
//! # Safety
//! Memory is only used through raw pointers within its bounds; who owns it frees
//! it when the kernel has no request left that takes from there, or never.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

use super::OpenError;
use crate::pages::page_bytes;

/// The only group of buffers of a ring.
pub(super) const GROUP: u16 = 0;

/// Buffers of a ring at most: `IORING_REGISTER_PBUF_RING` takes no more.
pub const BUFFERS_MAX: u16 = 1 << 15;

/// The buffers of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    /// How many: a power of two, [`BUFFERS_MAX`] at most.
    pub count: u16,
    /// Bytes of each.
    pub bytes: u32,
}

/// `struct io_uring_buf_ring`: one entry per buffer.
#[derive(Debug)]
pub(super) struct Provided {
    entries: Memory,
    /// Entries that were ever filled in, modulo 2¹⁶.
    tail: u16,
    buffers: Buffers,
}

impl Provided {
    /// Registers entries, none of which leads to a buffer yet.
    ///
    /// Errors: [`OpenError::BufferRing`].
    pub(super) fn register(uring: &IoUring, buffers: Buffers) -> Result<Provided, OpenError> {
        let entries = Memory::new(usize::from(buffers.count) * size_of::<BufRingEntry>());
        let address = entries.start.as_ptr() as u64;
        // SAFETY: the entries are as many, begin on a page, and are zero: none is
        // provided. They are freed after the requests, or never.
        let registered = unsafe {
            uring.submitter().register_buf_ring_with_flags(address, buffers.count, GROUP, 0)
        };
        registered.map_err(|e| OpenError::BufferRing {
            buffers: usize::from(buffers.count),
            errno: e.into(),
        })?;
        Ok(Provided { entries, tail: 0, buffers })
    }

    /// Fills the next entry in with a buffer of `memory`, of which the kernel is
    /// not told yet.
    #[inline]
    pub(super) fn provide(&mut self, id: u16, memory: &Memory) {
        let place = usize::from(self.tail & (self.buffers.count - 1));
        let buffer = memory.at(usize::from(id) * self.buffers.bytes as usize);
        let at = self.entries.at(place * size_of::<BufRingEntry>()).cast::<BufRingEntry>();
        // SAFETY: an aligned entry of the ring. The kernel does not read it before
        // the tail has passed it, and never the tail's own bytes in the first
        // one, which are not written here.
        let entry = unsafe { &mut *at };
        entry.set_addr(buffer as u64);
        entry.set_len(self.buffers.bytes);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Tells the kernel of the entries that were filled in.
    #[inline]
    pub(super) fn publish(&mut self) {
        let first = self.entries.at(0).cast::<BufRingEntry>();
        // SAFETY: the first entry; its tail is two bytes, aligned, which only this
        // thread writes and the kernel reads with acquire (`smp_load_acquire` in
        // io_uring/kbuf.c), which this store pairs with.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(first).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }
}

/// Memory that begins on a page and is only used through raw pointers.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) start: NonNull<u8>,
    layout: Layout,
}

impl Memory {
    /// Memory of zeros, every page of which is there.
    pub(super) fn new(bytes: usize) -> Memory {
        let layout = Layout::from_size_align(bytes.max(1), page_bytes())
            .unwrap_or_else(|_| panic!("no machine has {bytes} bytes"));
        // SAFETY: the layout is not empty.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { std::alloc::handle_alloc_error(layout) };
        for at in (0..bytes).step_by(page_bytes()) {
            // SAFETY: within the allocation, which nobody else knows yet.
            unsafe { start.add(at).write_volatile(0) };
        }
        Memory { start, layout }
    }

    /// The byte at `offset`; panics outside.
    #[inline]
    pub(super) fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.layout.size(), "outside of the memory");
        // SAFETY: within the allocation.
        unsafe { self.start.add(offset) }.as_ptr()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed once.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), self.layout) };
    }
}
