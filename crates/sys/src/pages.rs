//! Memory of whole pages, to read into: aligned as direct I/O asks for it, and
//! faulted in before any clock runs.
//!
//! # Safety
//! A mapping is anonymous, private and readable and writable for as long as the
//! value that owns it lives; nobody else knows where it is.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::errno::Errno;

/// The smallest page of the kernels that we run on: no step of this size leaves one out.
pub const PAGE_BYTES: usize = 4096;

/// Size of this kernel's pages: 4 KiB on x86-64, up to 64 KiB on ARM.
#[inline]
pub fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// Size of a huge page on x86-64 and, with pages of 4 KiB, on ARM.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Which pages a buffer is to be made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    /// The kernel's usual ones.
    Plain,
    /// Huge ones where the kernel has them to give (`MADV_HUGEPAGE`).
    Huge,
}

/// A buffer of whole pages, all of which are there.
#[derive(Debug)]
pub struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to the value alone, which moves like a Box.
unsafe impl Send for Pages {}

// SAFETY: a shared reference only reads.
unsafe impl Sync for Pages {}

impl Pages {
    /// At least `bytes` bytes, and one page, every page of them written to.
    ///
    /// Errors: `ENOMEM`.
    pub fn new(bytes: usize, kind: PageKind) -> Result<Pages, Errno> {
        let (unit, huge) = match kind {
            PageKind::Plain => (PAGE_BYTES, false),
            PageKind::Huge => (HUGE_PAGE_BYTES, true),
        };
        let bytes = bytes.max(1).checked_next_multiple_of(unit).ok_or(Errno::ENOMEM)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping at an address of the kernel's choosing
        // touches no memory of ours.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
        let start = match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => start,
            _ => return Err(Errno::last()),
        };
        let mut pages = Pages { start, bytes };
        if huge {
            // Only a hint: without huge pages there are plain ones.
            // SAFETY: start and length are those of the mapping.
            unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        }
        for page in pages.chunks_mut(PAGE_BYTES) {
            page[0] = 1;
        }
        Ok(pages)
    }
}

impl Pages {
    /// Where the byte at `offset` is, for who shares the memory with the kernel and
    /// so may have no reference to all of it. Panics outside.
    pub(crate) fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.bytes, "outside of the pages");
        // SAFETY: within the mapping.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Deref for Pages {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: start and length are those of the mapping, whose bytes are all
        // initialised: the kernel gives out zeros.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Pages {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the value is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is the one made by `new`, and no reference into it
        // outlives the value.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::thread_usage;

    #[test]
    fn pages_are_there_and_aligned() {
        for (wanted, kind) in [(1, PageKind::Plain), (70_000, PageKind::Plain), (1, PageKind::Huge)]
        {
            let mut pages = Pages::new(wanted, kind).unwrap();
            assert_eq!(pages.as_ptr().addr() % PAGE_BYTES, 0);
            assert!(pages.len() >= wanted && pages.len().is_multiple_of(PAGE_BYTES));
            let before = thread_usage().unwrap().minor_faults;
            pages.fill(7);
            assert!(thread_usage().unwrap().minor_faults - before <= 1);
            assert!(pages.iter().all(|&byte| byte == 7));
        }
        assert_eq!(Pages::new(usize::MAX, PageKind::Plain).unwrap_err(), Errno::ENOMEM);
    }
}
