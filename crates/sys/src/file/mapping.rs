//! A file mapped for reading, or to be written (mmap(2), shared). Its bytes are never handed out as
//! a slice: other processes may change them, and a page that the file has lost
//! meanwhile raises SIGBUS, which ends the process.
//!
//! # Safety
//! A mapping is readable for as long as the value that owns it lives. Its memory
//! is read through raw pointers alone, within its length, into values that this
//! process owns; none of them decides where is read next.
//!
//! The mapping is private to this type and never handed out as a slice, because
//! others may change the file at any time: bytes go in by copying, within its
//! length.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::marker::PhantomData;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

use crate::errno::Errno;
use crate::memory::Memory;
use crate::pages::{PAGE_BYTES, page_bytes};
use crate::scan;
use crate::socket::count;

/// What a mapping is for.
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
pub(super) enum Access {
    Read = libc::PROT_READ,
    ReadWrite = libc::PROT_READ | libc::PROT_WRITE,
}

/// A range of a file in memory.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

/// A range of a mapping.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    start: *const u8,
    bytes: usize,
    mapping: PhantomData<&'a Mapping>,
}

impl Memory for View<'_> {
    #[inline(always)]
    fn bytes(self) -> usize {
        self.bytes
    }

    #[inline(always)]
    fn array<const N: usize>(self, at: usize) -> [u8; N] {
        assert!(at <= self.bytes && N <= self.bytes - at, "beyond the end");
        // SAFETY: as many bytes are readable there; arrays of bytes lie anywhere.
        unsafe { self.start.add(at).cast::<[u8; N]>().read() }
    }

    #[inline]
    fn scan(self) -> u64 {
        // SAFETY: the range is within the mapping, which is readable.
        unsafe { scan::scan_memory(self.start, self.bytes) }
    }

    /// Reads one byte of each page of the range: every one of them is mapped then.
    #[inline]
    fn touch(self) -> u64 {
        let mut sum = 0u64;
        let mut at = 0;
        while at < self.bytes {
            // SAFETY: within the range, which is within the mapping.
            let place = unsafe { self.start.add(at) };
            // SAFETY: as above.
            sum = sum.wrapping_add(u64::from(unsafe { place.read_volatile() }));
            // The first byte of the next page.
            at += PAGE_BYTES - place.addr() % PAGE_BYTES;
        }
        sum
    }
}

// SAFETY: the mapping belongs to the value alone, and is only read.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `bytes` bytes from `offset` on, which is a multiple of a page.
    ///
    /// Errors: see mmap(2); `EINVAL` for no bytes or an offset within a page,
    /// `ENODEV` where the file system has no mappings.
    pub fn of_file(fd: BorrowedFd<'_>, offset: u64, bytes: usize) -> Result<Mapping, Errno> {
        Mapping::map(fd, offset, bytes, Access::Read)
    }

    /// The same, for one of two uses.
    pub(super) fn map(
        fd: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
        access: Access,
    ) -> Result<Mapping, Errno> {
        let none = std::ptr::null_mut();
        let (fd, offset, access) = (fd.as_raw_fd(), offset.cast_signed(), access as libc::c_int);
        // SAFETY: a new mapping at an address of the kernel's choosing touches no
        // memory of ours.
        let start = unsafe { libc::mmap64(none, bytes, access, libc::MAP_SHARED, fd, offset) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => {
                Ok(Mapping { start, bytes })
            }
            _ => Err(Errno::last()),
        }
    }

    /// Bytes of the mapping.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// A range of it, to be read where it lies. Panics beyond the end, as all of these.
    #[inline]
    pub fn view(&self, range: Range<usize>) -> View<'_> {
        View { start: self.at(&range), bytes: range.len(), mapping: PhantomData }
    }

    /// Writes a range to another file at `offset`, as pwrite(2) does from any
    /// memory.
    ///
    /// Errors: see pwrite(2); `EFAULT` where the mapped file has no such page any
    /// more, which raises no signal here.
    #[inline]
    pub fn write_to(
        &self,
        range: Range<usize>,
        to: BorrowedFd<'_>,
        offset: u64,
    ) -> Result<usize, Errno> {
        let (start, bytes, at) = (self.at(&range), range.len(), offset.cast_signed());
        // SAFETY: the range lies within the mapping, and the kernel only reads it.
        count(unsafe { libc::pwrite64(to.as_raw_fd(), start.cast(), bytes, at) })
    }

    /// Maps all pages of a range now, and reads them from the device if need be
    /// (`MADV_POPULATE_READ`).
    ///
    /// Errors: `EINVAL` before Linux 5.14; `EFAULT` beyond the end of the file,
    /// which may have come nearer; `EHWPOISON`.
    #[inline]
    pub fn populate(&self, range: Range<usize>) -> Result<(), Errno> {
        // From the page that the range begins in.
        let first = range.start / page_bytes() * page_bytes();
        let start = self.at(&(first..range.end)).cast_mut().cast();
        // SAFETY: the range is within the mapping, and what it maps stays the same.
        match unsafe { libc::madvise(start, range.end - first, libc::MADV_POPULATE_READ) } {
            0 => Ok(()),
            _ => Err(Errno::last()),
        }
    }

    /// Asks for huge pages (`MADV_HUGEPAGE`): a fault in it reads as much of the file into the
    /// page cache at once, in one piece where the file system can.
    ///
    /// Errors: `EINVAL` from a kernel without transparent huge pages.
    pub fn prefer_huge_pages(&self) -> Result<(), Errno> {
        let start = self.start.as_ptr().cast();
        // SAFETY: the range is the mapping, and what it maps stays the same.
        match unsafe { libc::madvise(start, self.bytes, libc::MADV_HUGEPAGE) } {
            0 => Ok(()),
            _ => Err(Errno::last()),
        }
    }

    /// Where a range begins that lies within the mapping.
    #[inline]
    pub(super) fn at(&self, range: &Range<usize>) -> *const u8 {
        assert!(range.start <= range.end && range.end <= self.bytes, "beyond the mapping");
        // SAFETY: the offset is within the mapping.
        unsafe { self.start.as_ptr().add(range.start) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is the one made by `of_file`; views borrow it, so that none of
        // them outlives it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

// A file mapped to be written to (mmap(2), shared): what is stored there is in the
// file at once, and goes to its device when the kernel or fsync(2) writes it back.
//
// Touching a page that the file no longer has, or that there is no room for on
// the device, is SIGBUS, which ends the process: whoever stores to a mapping does
// so in a process of its own.

/// A range of a file.
#[derive(Debug)]
pub struct WritableMapping(Mapping);

impl WritableMapping {
    /// Maps `bytes` bytes of a file, 1 at least, from `offset` on, which is a multiple
    /// of a page.
    ///
    /// Errors: see mmap(2); `ENODEV` where the file system cannot, `EACCES` for a
    /// descriptor that may not write, `ENOMEM`, `EINVAL` for no bytes or an offset
    /// within a page.
    pub fn of_file(
        fd: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
    ) -> Result<WritableMapping, Errno> {
        Mapping::map(fd, offset, bytes, Access::ReadWrite).map(WritableMapping)
    }

    /// Copies `bytes` to `offset` of the mapping. SIGBUS if the file has no such
    /// page any more, or the device no room.
    ///
    /// Panics beyond the mapping's end.
    #[inline]
    pub fn store(&mut self, offset: usize, bytes: &[u8]) {
        let start = self.0.at(&(offset..offset + bytes.len())).cast_mut();
        // SAFETY: the target lies within the mapping, which is writable; the slice
        // is memory of ours and cannot overlap with it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len()) };
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::super::create;
    use super::*;
    use crate::file;

    fn file_of(bytes: &[u8]) -> File {
        let file = crate::file::in_folder(&std::env::temp_dir()).unwrap();
        file.write_all_at(bytes, 0).unwrap();
        file
    }

    #[test]
    fn a_mapping_has_the_bytes_of_the_file() {
        let bytes: Vec<u8> =
            (0..3 * PAGE_BYTES + 11).map(|at| crate::ring::content(3, at)).collect();
        let file = file_of(&bytes);
        let mapping = Mapping::of_file(file.as_fd(), 0, bytes.len()).unwrap();
        for range in [0..bytes.len(), 1..2, 5..PAGE_BYTES + 5, 100..100, 8191..bytes.len()] {
            let view = mapping.view(range.clone());
            assert_eq!(view.scan(), scan::scan(&bytes[range.clone()]));
            let copy: Vec<u8> = (0..view.bytes()).map(|at| view.array::<1>(at)[0]).collect();
            assert_eq!(copy, bytes[range.clone()]);
            assert!(range.len() < 8 || view.array::<8>(range.len() - 8) == copy[range.len() - 8..]);
            let pages = range.clone().filter(|at| at % PAGE_BYTES == 0 || *at == range.start);
            let touched: u64 = pages.map(|at| u64::from(bytes[at])).sum();
            assert_eq!(view.touch(), touched, "{range:?}");
        }
    }

    #[test]
    fn what_is_populated_faults_no_more() {
        let file = file_of(&[1; 64 * PAGE_BYTES]);
        let mapping = Mapping::of_file(file.as_fd(), 0, 64 * PAGE_BYTES).unwrap();
        match mapping.populate(0..mapping.bytes()) {
            Ok(()) => {
                let before = crate::usage::thread_usage().unwrap().minor_faults;
                assert_eq!(mapping.view(0..mapping.bytes()).touch(), 64);
                let faults = crate::usage::thread_usage().unwrap().minor_faults - before;
                assert!(faults < 4, "{faults}");
            }
            // Older kernels.
            Err(errno) => assert_eq!(errno, Errno::EINVAL),
        }
    }

    #[test]
    fn nothing_and_places_within_a_page_cannot_be_mapped() {
        let file = file_of(&[1; 10]);
        for (offset, bytes) in [(0, 0), (1, 9)] {
            let refused = Mapping::of_file(file.as_fd(), offset, bytes).unwrap_err();
            assert_eq!(refused, Errno::EINVAL);
        }
    }

    #[test]
    #[should_panic(expected = "beyond the mapping")]
    fn nothing_is_read_beyond_the_end() {
        let file = file_of(&[1; 10]);
        let _ = Mapping::of_file(file.as_fd(), 0, 10).unwrap().view(5..11);
    }

    #[test]
    fn a_page_that_is_gone_is_an_error_of_the_call() {
        let [one, other] = [(); 2].map(|()| crate::file::in_memory("iolens").unwrap());
        std::io::Write::write_all(&mut &one, &[7; 8192]).unwrap();
        let mapping = Mapping::of_file(one.as_fd(), 0, 8192).unwrap();
        assert_eq!(mapping.write_to(4096..4100, other.as_fd(), 2), Ok(4));
        assert_eq!(other.metadata().unwrap().len(), 6);
        one.set_len(0).unwrap();
        let gone = mapping.write_to(0..4096, other.as_fd(), 0).unwrap_err();
        assert_eq!(gone.raw(), libc::EFAULT);
    }

    #[test]
    fn what_is_stored_is_in_the_file() {
        let file = file::in_folder(&std::env::temp_dir()).unwrap();
        create::truncate(file.as_fd(), 5000).unwrap();
        let mut mapping = WritableMapping::of_file(file.as_fd(), 0, 5000).unwrap();
        mapping.store(4096, b"abc");
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, 4095).unwrap();
        assert_eq!(&bytes, b"\0abc");
        assert_eq!(WritableMapping::of_file(file.as_fd(), 0, 0).unwrap_err(), Errno::EINVAL);
        let reads = create::reopen(file.as_fd(), create::How::READS).unwrap();
        assert_eq!(WritableMapping::of_file(reads.as_fd(), 0, 1).unwrap_err(), Errno::EACCES);
    }

    #[test]
    #[should_panic(expected = "beyond the mapping")]
    fn nothing_is_stored_beyond_the_end() {
        let file = file::in_folder(&std::env::temp_dir()).unwrap();
        create::truncate(file.as_fd(), 10).unwrap();
        WritableMapping::of_file(file.as_fd(), 0, 10).unwrap().store(8, b"abc");
    }
}
