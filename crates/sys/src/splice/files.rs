//! Pipes between two files: references to the pages of one go into the pipe,
//! and what they hold is copied to the other (`iter_file_splice_write`,
//! fs/splice.c).
//!
//! # Safety
//! The kernel reads and writes the offsets, which live on the stack of the call;
//! no other pointer goes to it.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::{AsRawFd, BorrowedFd};

use super::Pipe;
use crate::errno::Errno;
use crate::socket::count;

impl Pipe {
    /// Moves references to at most `bytes` of a file from `offset` on into the
    /// pipe, as far as there are places. 0 is the end of the file.
    ///
    /// Errors: see splice(2); `EINVAL` where the file system cannot.
    #[inline]
    pub fn take_from(
        &self,
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
    ) -> Result<usize, Errno> {
        let mut offset = libc::off64_t::try_from(offset).map_err(|_| Errno::EINVAL)?;
        let none = std::ptr::null_mut();
        // SAFETY: the offset lives on this stack; a pipe has none.
        count(unsafe {
            libc::splice(file.as_raw_fd(), &raw mut offset, self.into.as_raw_fd(), none, bytes, 0)
        })
    }

    /// Writes at most `bytes` of what the pipe refers to into a file at `offset`.
    /// 0 is an empty pipe.
    ///
    /// Errors: see splice(2) and write(2); `EINVAL` where the file system cannot,
    /// or for a file that is open for appending.
    #[inline]
    pub fn give_to(&self, file: BorrowedFd<'_>, offset: u64, bytes: usize) -> Result<usize, Errno> {
        let mut offset = libc::off64_t::try_from(offset).map_err(|_| Errno::EINVAL)?;
        let none = std::ptr::null_mut();
        // SAFETY: as above.
        count(unsafe {
            libc::splice(self.out.as_raw_fd(), none, file.as_raw_fd(), &raw mut offset, bytes, 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::file;

    #[test]
    fn what_a_file_gives_to_a_pipe_another_takes() {
        let [mut one, other] = [(); 2].map(|()| file::in_folder(&std::env::temp_dir()).unwrap());
        one.write_all(b"0123456789").unwrap();
        let pipe = Pipe::open().unwrap();
        assert_eq!(pipe.take_from(one.as_fd(), 4, 100), Ok(6));
        assert_eq!(pipe.give_to(other.as_fd(), 1, 4), Ok(4));
        assert_eq!(pipe.give_to(other.as_fd(), 5, 100), Ok(2), "no more is in it");
        let mut bytes = [9; 8];
        assert_eq!(other.read_at(&mut bytes, 0).unwrap(), 7);
        assert_eq!(&bytes[..7], b"\x00456789");
        assert_eq!(pipe.take_from(one.as_fd(), 10, 100), Ok(0), "the file ends there");
        assert_eq!(pipe.take_from(one.as_fd(), u64::MAX, 1), Err(Errno::EINVAL));
    }
}
