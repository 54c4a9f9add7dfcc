//! Memory that is read where it lies, whether it is a slice or a mapped file, whose bytes
//! others may change meanwhile; and memory that is touched, so that no page of it is missing
//! when a clock runs, or so that pages are missing for sure.
//!
//! # Safety
//! A mapping is made, written within its length and unmapped in one function,
//! which hands it to nobody.

#![expect(unsafe_code, reason = "see the safety note above")]

use crate::errno::Errno;
use crate::scan;

/// Bytes in memory. What is read beyond their end panics.
pub trait Memory: Copy {
    /// How many there are.
    fn bytes(self) -> usize;

    /// `N` of them from `at` on, in registers once it is compiled into its caller.
    fn array<const N: usize>(self, at: usize) -> [u8; N];

    /// Reads every byte, as [`scan::scan`] does.
    fn scan(self) -> u64;

    /// Brings every page in, where reading a byte of it is what does that; otherwise nothing.
    fn touch(self) -> u64;
}

impl Memory for &[u8] {
    #[inline(always)]
    fn bytes(self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn array<const N: usize>(self, at: usize) -> [u8; N] {
        *self[at..].first_chunk().expect("beyond the end")
    }

    #[inline]
    fn scan(self) -> u64 {
        scan::scan(self)
    }

    #[inline(always)]
    fn touch(self) -> u64 {
        0
    }
}

/// Reads one byte of every cache line of `bytes`: brings them into the cache
/// and faults in their pages. The sum is returned so that no compiler drops
/// the reads.
pub fn touch(bytes: &[u8]) -> u64 {
    const CACHE_LINE_BYTES: usize = 64;
    let sum = bytes.iter().step_by(CACHE_LINE_BYTES).map(|&b| u64::from(b)).sum();
    std::hint::black_box(sum)
}

/// Maps memory that nobody had before, writes to each of its pages of 4 KiB,
/// and gives it back: at least one page fault, and at most one for each page.
///
/// Errors: `ENOMEM`, and what else mmap(2) says.
pub fn touch_fresh_pages(pages: usize) -> Result<(), Errno> {
    const PAGE_BYTES: usize = 4096;
    let bytes = pages * PAGE_BYTES;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous mapping at an address of the kernel's choosing
    // touches no memory of ours.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(Errno::last());
    }
    for page in 0..pages {
        // SAFETY: the offset is below the length of the mapping, which is
        // writable and known to this function alone.
        unsafe { start.cast::<u8>().add(page * PAGE_BYTES).write_volatile(1) };
    }
    // SAFETY: the mapping is the one made above, and nothing points into it.
    if unsafe { libc::munmap(start, bytes) } == 0 { Ok(()) } else { Err(Errno::last()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage;

    #[test]
    fn fresh_pages_fault_each_time() {
        for _ in 0..3 {
            let before = usage::thread_usage().unwrap().minor_faults;
            touch_fresh_pages(16).unwrap();
            let faults = usage::thread_usage().unwrap().minor_faults - before;
            assert!((1..=24).contains(&faults), "{faults}");
        }
    }
}
