//! The page cache: what of a file is in it (cachestat(2)), and hints what to do
//! about it (posix_fadvise(2)).
//!
//! # Safety
//! The kernel reads one struct and writes another, both on this stack and as
//! large as those of its headers.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, BorrowedFd};

pub use rustix::fs::Advice;

use crate::errno::Errno;

/// Pages of a range of a file, of 4 KiB on x86-64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Cached {
    /// In the page cache.
    pub pages: u64,
    /// Of them, not yet written to the device.
    pub dirty: u64,
    /// Of them, being written now.
    pub writeback: u64,
    /// Evicted, as far as the kernel still remembers them.
    pub evicted: u64,
    /// Of these, evicted so recently that memory is short.
    pub recently_evicted: u64,
}

/// `cachestat` of the one table of system calls that all architectures share.
const SYS_CACHESTAT: libc::c_long = 451;

/// Counts what is in the page cache of `bytes` from `offset` on.
///
/// Errors: `ENOSYS` before Linux 6.5; `EPERM` for who neither opened the file for
/// writing nor owns it nor may write to it; `EOPNOTSUPP` on hugetlbfs.
pub fn cached(fd: BorrowedFd<'_>, offset: u64, bytes: u64) -> Result<Cached, Errno> {
    // A length of zero would mean the rest of the file.
    if bytes == 0 {
        return Ok(Cached::default());
    }
    let range = [offset, bytes];
    let mut cached = Cached::default();
    // SAFETY: `struct cachestat_range` is two numbers of 64 bits and `struct
    // cachestat` five, of include/uapi/linux/mman.h; both live for the call.
    let result = unsafe {
        libc::syscall(SYS_CACHESTAT, fd.as_raw_fd(), range.as_ptr(), &raw mut cached, 0u32)
    };
    if result == 0 { Ok(cached) } else { Err(Errno::last()) }
}

/// Says how a range of a file will be used; `bytes` of 0 means to its end.
/// [`Advice::DontNeed`] drops pages that are clean, whole and mapped by nobody.
///
/// Errors: see posix_fadvise(2); `ESPIPE` for a pipe.
pub fn advise(fd: BorrowedFd<'_>, offset: u64, bytes: u64, advice: Advice) -> Result<(), Errno> {
    Ok(rustix::fs::fadvise(fd, offset, NonZeroU64::new(bytes), advice)?)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::file::in_memory;

    #[test]
    fn what_was_written_is_in_the_cache() {
        let file = in_memory("iolens").unwrap();
        std::io::Write::write_all(&mut &file, &[1; 10_000]).unwrap();
        match cached(file.as_fd(), 0, 10_000) {
            Ok(cached) => assert_eq!(cached.pages, 3),
            // Older kernels.
            Err(errno) => assert_eq!(errno, Errno::ENOSYS),
        }
        assert_eq!(cached(file.as_fd(), 0, 0), Ok(Cached::default()));
        assert_eq!(advise(file.as_fd(), 0, 0, Advice::Random), Ok(()));
    }
}
