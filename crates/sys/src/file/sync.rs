//! Bringing what was written to the device: fsync(2), fdatasync(2), syncfs(2),
//! and sync_file_range(2), which writes pages back and says nothing about
//! metadata or the device's own cache.
//!
//! # Safety
//! Numbers go to the kernel, and no pointers.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::errno::Errno;

/// Brings a file to the device, with everything about it.
///
/// Errors: see fsync(2); `EIO`, `ENOSPC`, `EDQUOT`: earlier writes are lost.
#[inline]
pub fn fsync(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    Ok(rustix::fs::fsync(fd)?)
}

/// Brings a file to the device, with what is needed to read it again.
///
/// Errors: as [`fsync`].
#[inline]
pub fn fdatasync(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    Ok(rustix::fs::fdatasync(fd)?)
}

/// Brings everything of the file system to the device that the file is on.
///
/// Errors: as [`fsync`].
pub fn syncfs(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    Ok(rustix::fs::syncfs(fd)?)
}

/// Writes back every dirty page of a file, and waits until none is under way.
/// What else the kernel keeps about the file may stay in memory.
///
/// Errors: see sync_file_range(2); `ESPIPE` for what is no file of a disk.
pub fn write_back(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: numbers; a length of 0 is everything to the end of the file.
    match unsafe { libc::sync_file_range(fd.as_raw_fd(), 0, 0, flags) } {
        0 => Ok(()),
        _ => Err(Errno::last()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;
    use crate::file;

    #[test]
    fn a_file_goes_to_its_device_in_each_way() {
        let mut file = file::in_folder(&std::env::temp_dir()).unwrap();
        for bring in [fsync, fdatasync, syncfs, write_back] {
            file.write_all(&[1; 4096]).unwrap();
            assert_eq!(bring(file.as_fd()), Ok(()));
        }
    }

    #[test]
    fn a_pipe_has_no_device() {
        let (read, _write) = rustix::pipe::pipe().unwrap();
        assert_eq!(fsync(read.as_fd()), Err(Errno::EINVAL));
        assert_eq!(fdatasync(read.as_fd()), Err(Errno::EINVAL));
        assert_eq!(write_back(read.as_fd()).unwrap_err().raw(), libc::ESPIPE);
    }
}
