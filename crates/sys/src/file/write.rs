//! Writing to a file at a place (pwrite(2)); those that write where the
//! descriptor stands are those of [`socket`](crate::socket).
//!
//! # Safety
//! Pointers and lengths come from live slices, which the kernel only reads.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::errno::Errno;
use crate::socket::count;
pub use crate::socket::{write, writev};

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
