//! The ring of memory into which the kernel writes the records of an event; see
//! perf_event_open(2), "MMAP layout".
//!
//! # Safety
//! The ring is mapped shared with the kernel, which writes records behind
//! `data_head` and never before `data_tail`, that only we move. Bytes between
//! the two do not change: they are copied out word by word with volatile
//! reads, after an acquiring load of the head and before a releasing store of
//! the tail, as the header of the kernel prescribes (include/uapi/linux/
//! perf_event.h, `struct perf_event_mmap_page`). No reference into the mapping
//! is ever handed out.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings as abi;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::errno::Errno;

/// Words of a record at most: `size` of its header has 16 bits.
const RECORD_WORDS_MAX: usize = (u16::MAX as usize + 1) / WORD_BYTES;
const WORD_BYTES: usize = size_of::<u64>();

/// Pages that are shared with the kernel.
#[derive(Debug)]
pub(super) struct Ring {
    start: *mut u8,
    bytes: usize,
    page_bytes: usize,
    /// The record that is handed over.
    record: Vec<u64>,
}

// SAFETY: the mapping belongs to its owner and to no thread; whatever moves the
// tail goes through `&mut Ring`.
unsafe impl Send for Ring {}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this length, and nothing points into it.
        // It cannot fail for a mapping that exists.
        let _ = unsafe { munmap(self.start.cast(), self.bytes) };
    }
}

impl Ring {
    /// Of an event, with so many pages, a power of two, for records.
    ///
    /// Errors: of mmap(2): `EPERM` where `kernel.perf_event_mlock_kb` and
    /// `RLIMIT_MEMLOCK` are used up.
    pub(super) fn of(fd: &OwnedFd, pages: usize) -> Result<Ring, Errno> {
        let page_bytes = rustix::param::page_size();
        let bytes = (1 + pages) * page_bytes;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choosing.
        let start = unsafe { mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, fd, 0) }?;
        let record = Vec::with_capacity(RECORD_WORDS_MAX);
        Ok(Ring { start: start.cast(), bytes, page_bytes, record })
    }

    fn page(&self) -> *mut abi::perf_event_mmap_page {
        self.start.cast()
    }

    /// Where the kernel's last record ends, in bytes since the beginning.
    fn head(&self) -> u64 {
        // SAFETY: the field lies in the first page, is aligned, and is only
        // ever written by the kernel; pairs with its release of the records.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.page()).data_head) }.load(Ordering::Acquire)
    }

    fn tail(&self) -> &AtomicU64 {
        // SAFETY: as above; written by us alone.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.page()).data_tail) }
    }

    /// The word at a position of the endless stream of records.
    fn word(&self, at: u64) -> u64 {
        let ring_bytes = (self.bytes - self.page_bytes) as u64;
        let offset = usize::try_from(at % ring_bytes).unwrap_or(0);
        // SAFETY: within the data pages and aligned: records are multiples of
        // eight bytes. The kernel does not write between tail and head.
        unsafe { self.start.add(self.page_bytes + offset).cast::<u64>().read_volatile() }
    }

    /// Hands over the words of every record since the last call, header first,
    /// oldest record first. Allocates nothing.
    pub(super) fn drain(&mut self, mut each: impl FnMut(&[u64])) {
        let head = self.head();
        let mut at = self.tail().load(Ordering::Relaxed);
        let mut record = std::mem::take(&mut self.record);
        while at < head {
            // The upper 16 bits of a header are the record's size.
            let bytes = (self.word(at) >> 48).max(WORD_BYTES as u64).min(head - at);
            record.clear();
            let words = (at..at + bytes).step_by(WORD_BYTES).take(RECORD_WORDS_MAX);
            record.extend(words.map(|at| self.word(at)));
            each(&record);
            at += bytes;
        }
        self.record = record;
        // Pairs with the kernel's reading of the tail: our reads are done.
        self.tail().store(at, Ordering::Release);
    }
}
