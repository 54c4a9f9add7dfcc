//! Reads and writes at an offset: pread(2), preadv2(2) and pwrite(2), as the C library offers
//! them. Those that begin where the descriptor stands are those of [`socket`](crate::socket).
//!
//! # Safety
//! Pointers and lengths come from live slices: of reads exclusively the caller's; of writes the
//! kernel only reads them.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::errno::Errno;
use crate::socket::count;
pub use crate::socket::{read, readv, write, writev};

/// How preadv2(2) is to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Only what is in memory (`RWF_NOWAIT`, Linux 4.14).
    NoWait,
    /// What was not in the page cache before leaves it again (`RWF_DONTCACHE`,
    /// Linux 6.14).
    DontCache,
}

impl How {
    const fn flags(self) -> libc::c_int {
        match self {
            How::NoWait => libc::RWF_NOWAIT,
            How::DontCache => libc::RWF_DONTCACHE,
        }
    }
}

/// Reads at an offset with pread(2); 0 is the end of the file.
///
/// Errors: see pread(2); `EINTR`, `EIO`, `EINVAL` for a direct read that is not
/// aligned.
#[inline(always)]
pub fn pread(fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let at = offset.cast_signed();
    // SAFETY: pointer and length are those of `buffer`, exclusively ours for this call.
    let n = unsafe { libc::pread64(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), at) };
    count(n)
}

/// Reads at an offset with preadv2(2) into one buffer.
///
/// Errors: see preadv2(2); `EAGAIN` where [`How::NoWait`] would have to wait,
/// `EOPNOTSUPP` where kernel or file system do not know the flag.
#[inline(always)]
pub fn preadv2(
    fd: BorrowedFd<'_>,
    buffer: &mut [u8],
    offset: u64,
    how: How,
) -> Result<usize, Errno> {
    let piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let at = offset.cast_signed();
    // SAFETY: the one piece is `buffer`, exclusively ours for this call.
    let n = unsafe { libc::preadv64v2(fd.as_raw_fd(), &raw const piece, 1, at, how.flags()) };
    count(n)
}

/// Moves the position that [`read`] reads from.
///
/// Errors: see lseek(2); `EINVAL` beyond 2⁶³.
#[inline(always)]
pub fn seek(fd: BorrowedFd<'_>, offset: u64) -> Result<(), Errno> {
    // SAFETY: lseek takes numbers and touches no memory of ours.
    match unsafe { libc::lseek64(fd.as_raw_fd(), offset.cast_signed(), libc::SEEK_SET) } {
        -1 => Err(Errno::last()),
        _ => Ok(()),
    }
}

/// Writes at `offset`; the position of the descriptor stays where it is.
///
/// Errors: see pwrite(2); `ENOSPC`, `EDQUOT`, `EFBIG`, `EIO`, `EINTR`; `EINVAL`
/// for an offset that no file can have, and for what `O_DIRECT` cannot do.
#[inline]
pub fn pwrite(fd: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize, Errno> {
    let offset = libc::off64_t::try_from(offset).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the slice lives for this call, and the kernel only reads it.
    count(unsafe { libc::pwrite64(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), offset) })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::file;
    use crate::file::in_folder;

    #[test]
    fn reads_start_where_they_are_told_to() {
        let file = in_folder(&std::env::temp_dir()).unwrap();
        std::io::Write::write_all(&mut &file, b"abcdefgh").unwrap();
        let (fd, mut buffer) = (file.as_fd(), [0; 4]);
        assert_eq!((pread(fd, &mut buffer, 2), &buffer), (Ok(4), b"cdef"));
        match preadv2(fd, &mut buffer, 6, How::NoWait) {
            Ok(n) => assert_eq!((n, &buffer[..2]), (2, &b"gh"[..])),
            // tmpfs.
            Err(errno) => assert_eq!(errno, Errno::EOPNOTSUPP),
        }
        assert_eq!(pread(fd, &mut buffer, 8), Ok(0));
        seek(fd, 5).unwrap();
        assert_eq!((read(fd, &mut buffer[..1]), &buffer[..1]), (Ok(1), &b"f"[..]));
        assert_eq!(seek(fd, u64::MAX), Err(Errno::EINVAL));
        assert_eq!(pread(fd, &mut buffer, u64::MAX), Err(Errno::EINVAL));
    }

    #[test]
    fn the_position_stays_where_it_is() {
        let file = file::in_folder(&std::env::temp_dir()).unwrap();
        let fd = file.as_fd();
        assert_eq!(write(fd, b"abc"), Ok(3));
        assert_eq!(pwrite(fd, b"XY", 4), Ok(2));
        assert_eq!(write(fd, b"d"), Ok(1));
        let mut bytes = [0; 8];
        assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 6);
        assert_eq!(&bytes[..6], b"abcdXY");
        assert_eq!(pwrite(fd, b"x", u64::MAX), Err(Errno::EINVAL));
    }

    #[test]
    fn what_may_only_be_read_is_not_written() {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        assert_eq!(pwrite(file.as_fd(), b"x", 0), Err(Errno::EBADF));
    }
}
