//! Copies within the kernel: copy_file_range(2), sendfile(2) between files, and
//! clones (`FICLONE`), which share blocks instead.
//!
//! # Safety
//! The kernel reads and writes the offsets, which live on the stack of the call;
//! no other pointer goes to it.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::errno::Errno;
use crate::socket::count;

/// Where bytes come from, and where they go.
#[derive(Debug, Clone, Copy)]
pub struct Between<'a> {
    /// The file that is read.
    pub from: BorrowedFd<'a>,
    /// The file that is written.
    pub to: BorrowedFd<'a>,
}

/// Copies at most `bytes` from `offset` of one file to the same offset of the
/// other: the file system does it, which may share blocks instead
/// (`remap_file_range`), else the page cache does (`splice_copy_file_range`,
/// fs/splice.c). 0 is the end of the source, or a source without a size, as files
/// of /proc are.
///
/// Errors: see copy_file_range(2); `EXDEV` between file systems of two kinds
/// (Linux 5.19; between any two before 5.3), `EOPNOTSUPP` and `EINVAL` where one
/// of them cannot, `ETXTBSY` into a swap file.
#[inline]
pub fn copy_file_range(between: Between<'_>, offset: u64, bytes: usize) -> Result<usize, Errno> {
    let mut from = libc::off64_t::try_from(offset).map_err(|_| Errno::EINVAL)?;
    let mut to = from;
    // SAFETY: both offsets live on this stack.
    count(unsafe {
        libc::copy_file_range(
            between.from.as_raw_fd(),
            &raw mut from,
            between.to.as_raw_fd(),
            &raw mut to,
            bytes,
            0,
        )
    })
}

/// Makes the whole of one file share the blocks of the other (`FICLONE`): no
/// bytes move.
///
/// Errors: see ioctl_ficlonerange(2); `EOPNOTSUPP`, `ENOTTY` where the file system
/// has no shared blocks, `EXDEV` between two file systems, `EINVAL` where it
/// has but not for these.
pub fn clone_file(between: Between<'_>) -> Result<(), Errno> {
    Ok(rustix::fs::ioctl_ficlone(between.to, between.from)?)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;
    use crate::file;

    #[test]
    fn a_range_goes_to_the_same_place_of_the_other_file() {
        let [mut one, other] = [(); 2].map(|()| file::in_folder(&std::env::temp_dir()).unwrap());
        one.write_all(b"0123456789").unwrap();
        let between = Between { from: one.as_fd(), to: other.as_fd() };
        assert_eq!(copy_file_range(between, 4, 3), Ok(3));
        let mut bytes = [9; 10];
        use std::os::unix::fs::FileExt;
        assert_eq!(other.read_at(&mut bytes, 0).unwrap(), 7);
        assert_eq!(&bytes[..7], b"\0\0\0\x00456");
        assert_eq!(copy_file_range(between, 10, 3), Ok(0), "the source ends there");
        assert_eq!(copy_file_range(between, u64::MAX, 3), Err(Errno::EINVAL));
    }

    #[test]
    fn a_file_of_proc_is_empty_for_it_and_cannot_be_cloned() {
        let source = std::fs::File::open("/proc/self/stat").unwrap();
        let target = file::in_folder(&std::env::temp_dir()).unwrap();
        let between = Between { from: source.as_fd(), to: target.as_fd() };
        // 0 or an error, by the kernel: never any bytes.
        assert!(!matches!(copy_file_range(between, 0, 100), Ok(1..)));
        assert!(clone_file(between).is_err());
    }
}
