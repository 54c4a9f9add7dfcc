//! A file mapped to be written to (mmap(2), shared): what is stored there is in the
//! file at once, and goes to its device when the kernel or fsync(2) writes it back.
//!
//! Touching a page that the file no longer has, or that there is no room for on
//! the device, is SIGBUS, which ends the process: whoever stores to a mapping does
//! so in a process of its own.
//!
//! # Safety
//! The mapping is private to this type and never handed out as a slice, because
//! others may change the file at any time: bytes go in by copying, within its
//! length.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::BorrowedFd;

use super::mapping::{Access, Mapping};
use crate::errno::Errno;

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
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::super::create;
    use super::*;
    use crate::file;

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
    #[should_panic(expected = "")]
    fn nothing_is_stored_beyond_the_end() {
        let file = file::in_folder(&std::env::temp_dir()).unwrap();
        create::truncate(file.as_fd(), 10).unwrap();
        WritableMapping::of_file(file.as_fd(), 0, 10).unwrap().store(8, b"abc");
    }
}
