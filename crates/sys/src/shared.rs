//! Numbers that processes have in common: a mapping that stays the same one in
//! those that are forked off; see mmap(2), `MAP_SHARED`.
//!
//! # Safety
//! The mapping is as long as its rows, readable and writable for as long as the
//! value that owns it lives, and only ever seen as atomic numbers, for which all
//! bits are valid.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use crate::errno::Errno;

/// Numbers of a row: two cache lines, which processors fetch as a pair, so that
/// the writers of two rows do not take each other's.
pub const ROW: usize = 16;

/// Rows of numbers, all 0 in the beginning. Memory is taken when a row is first
/// touched.
#[derive(Debug)]
pub struct SharedNumbers {
    start: NonNull<[AtomicU64; ROW]>,
    rows: usize,
}

// SAFETY: the memory belongs to the value, and holds only atomic numbers.
unsafe impl Send for SharedNumbers {}

// SAFETY: as above.
unsafe impl Sync for SharedNumbers {}

impl SharedNumbers {
    /// So many rows, and one at least.
    ///
    /// Errors: `ENOMEM`.
    pub fn new(rows: usize) -> Result<SharedNumbers, Errno> {
        let rows = rows.max(1);
        let bytes = rows.checked_mul(size_of::<[AtomicU64; ROW]>()).ok_or(Errno::ENOMEM)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choosing
        // touches no memory of ours.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
        match NonNull::new(start.cast()) {
            Some(first) if start != libc::MAP_FAILED => Ok(SharedNumbers { start: first, rows }),
            _ => Err(Errno::last()),
        }
    }

    /// Every row.
    #[inline]
    pub fn rows(&self) -> &[[AtomicU64; ROW]] {
        // SAFETY: the mapping begins on a page and has so many rows; the borrow
        // keeps it.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.rows) }
    }
}

impl Drop for SharedNumbers {
    fn drop(&mut self) {
        let bytes = self.rows * size_of::<[AtomicU64; ROW]>();
        // SAFETY: start and length are those of the mapping, which nobody borrows.
        unsafe { libc::munmap(self.start.as_ptr().cast(), bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::fork;

    #[test]
    fn a_child_counts_where_its_parent_reads() {
        let numbers = SharedNumbers::new(3).unwrap();
        fork::start(|| {
            numbers.rows()[2][ROW - 1].store(41, Ordering::Relaxed);
            0
        })
        .unwrap();
        let ended = fork::ended(fork::Patience::Waits).unwrap().unwrap();
        assert_eq!(ended.code, Some(0));
        assert_eq!(numbers.rows()[2][ROW - 1].load(Ordering::Relaxed), 41);
        assert_eq!(numbers.rows()[0][0].load(Ordering::Relaxed), 0);
    }
}
