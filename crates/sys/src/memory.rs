//! Memory that is read where it lies, whether it is a slice or a mapped file, whose bytes
//! others may change meanwhile.

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
