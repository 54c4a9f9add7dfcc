//! Pipes as the way of messages (pipe(7)), made outside every clock; and named ones (fifo(7)).
//!
//! # Safety
//! One descriptor is replaced under its own number; it stays valid throughout.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

use crate::errno::Errno;

/// A pipe that holds about `bytes`: the end to read from and the end to write
/// to. Where the user may not have one so large (`fs.pipe-max-size`,
/// `fs.pipe-user-pages-soft`) it has the kernel's own size.
///
/// Errors: `EMFILE`, `ENFILE` at the limit of descriptors.
pub fn open(bytes: usize) -> Result<(OwnedFd, OwnedFd), Errno> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    let _ = fcntl_setpipe_size(&write, bytes);
    Ok((read, write))
}

/// What a pipe holds (`F_GETPIPE_SZ`).
///
/// Errors: `EBADF` for what is not a pipe.
pub fn size_bytes(pipe: BorrowedFd<'_>) -> Result<usize, Errno> {
    Ok(fcntl_getpipe_size(pipe)?)
}

/// Ends what is written to a pipe: its reader reads the rest and then the end.
/// A pipe has no shutdown(2), and its last writer is in use by others, so the
/// descriptor gets /dev/null instead.
///
/// Errors: of open(2) for /dev/null and of dup3(2).
pub fn finish_writing(pipe: BorrowedFd<'_>) -> Result<(), Errno> {
    let null = File::options().write(true).open("/dev/null").map_err(Errno::from)?;
    // SAFETY: the descriptor is open before and after, and whoever borrows it
    // writes to /dev/null from now on.
    let result = unsafe { libc::dup3(null.as_raw_fd(), pipe.as_raw_fd(), libc::O_CLOEXEC) };
    if result < 0 { Err(Errno::last()) } else { Ok(()) }
}

/// Opens a named pipe (fifo(7)) to be written, without waiting for a reader.
///
/// Errors: of open(2); `ENXIO` where nobody has it open to read it.
pub fn writer(path: &Path) -> Result<File, Errno> {
    open_fifo(path, OFlags::WRONLY)
}

/// Opens a named pipe to be read, without waiting for a writer.
///
/// Errors: of open(2).
pub fn reader(path: &Path) -> Result<File, Errno> {
    open_fifo(path, OFlags::RDONLY)
}

fn open_fifo(path: &Path, direction: OFlags) -> Result<File, Errno> {
    let flags = direction | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Makes a named pipe, for its owner.
///
/// Errors: of mknod(2); `EEXIST` where something has that name.
pub fn make_fifo(path: &Path) -> Result<(), Errno> {
    Ok(rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::socket;

    #[test]
    fn a_pipe_has_the_size_that_was_asked_and_ends_when_it_is_finished() {
        let (read, write) = open(128 << 10).unwrap();
        assert_eq!(size_bytes(write.as_fd()), Ok(128 << 10));
        assert_eq!(socket::write(write.as_fd(), b"all of it"), Ok(9));
        finish_writing(write.as_fd()).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(socket::read(read.as_fd(), &mut buffer), Ok(9));
        assert_eq!(socket::read(read.as_fd(), &mut buffer), Ok(0));
        // The descriptor is still one.
        assert_eq!(socket::write(write.as_fd(), b"x"), Ok(1));
    }
}
