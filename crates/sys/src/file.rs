//! Files: those of others, which are read in many ways ([`open`], [`at`],
//! [`mapping`]) and asked about ([`about`], [`cache`], [`extents`]); those
//! that are made and written ([`create`], [`at`], [`copy`], [`mapping`]); and our own,
//! which have no name: one in memory, one in a folder. These are gone when their last descriptor
//! is closed, however the process ends.

pub mod about;
pub mod at;
pub mod cache;
pub mod copy;
pub mod create;
pub mod extents;
pub mod mapping;
pub mod open;

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, MemfdFlags, Mode, OFlags, fallocate, linkat, memfd_create, openat,
};

use crate::errno::Errno;

/// A file in memory; see memfd_create(2). The name only shows in /proc.
///
/// Errors: `ENOSYS` before Linux 3.17, `EMFILE` at the limit of descriptors.
pub fn in_memory(name: &str) -> Result<File, Errno> {
    Ok(File::from(memfd_create(name, MemfdFlags::CLOEXEC)?))
}

/// A file in memory that may be executed, also where the system makes such files only on request
/// (`vm.memfd_noexec`).
///
/// Errors: as [`in_memory`]; `EACCES` where the system makes none.
pub fn executable_in_memory(name: &str) -> Result<File, Errno> {
    match memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::EXEC) {
        // Before Linux 6.3 all of them may be.
        Err(rustix::io::Errno::INVAL) => in_memory(name),
        made => Ok(File::from(made?)),
    }
}

/// A file of the file system of `folder`, without a name (`O_TMPFILE`). Where
/// the file system knows no such files, it has a name until this returns.
///
/// Errors: see open(2); `EACCES`, `EROFS`, `ENOSPC`.
pub fn in_folder(folder: &Path) -> Result<File, Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match openat(CWD, folder, flags | OFlags::TMPFILE, mode) {
        Ok(fd) => return Ok(File::from(fd)),
        // What file systems, and kernels before 3.11, say that lack O_TMPFILE.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => {}
        Err(errno) => return Err(errno.into()),
    }
    let path = folder.join(format!("iolens-{}-{}", crate::process::id(), crate::clock::unix_ns()));
    let file = File::from(openat(CWD, &path, flags | OFlags::CREATE | OFlags::EXCL, mode)?);
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Gives a file that was made with `O_TMPFILE` a name (linkat(2)), which nothing
/// has yet.
///
/// Errors: `EEXIST`; `ENOENT` for a file that had a name once; `EXDEV` on another
/// file system.
pub fn give_name(file: &File, path: &Path) -> Result<(), Errno> {
    give_name_in(CWD, file, path.as_os_str())
}

/// The same in an open folder.
pub(crate) fn give_name_in(folder: BorrowedFd<'_>, file: &File, name: &OsStr) -> Result<(), Errno> {
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, own, folder, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// Allocates the first `bytes` of a file, which reads as zeros then where nothing
/// was written (fallocate(2)).
///
/// Errors: `EOPNOTSUPP`, `ENOSPC`.
pub fn allocate(file: &File, bytes: u64) -> Result<(), Errno> {
    Ok(fallocate(file, FallocateFlags::empty(), 0, bytes)?)
}

/// The file system that a file is on: its name, or its number in hexadecimal
/// (`f_type` of statfs(2)) where it is not one of the usual ones.
///
/// Errors: see fstatfs(2).
pub fn file_system(fd: BorrowedFd<'_>) -> Result<String, Errno> {
    // include/uapi/linux/magic.h, and fs/xfs/libxfs/xfs_format.h.
    const NAMES: [(u64, &str); 15] = [
        (0xEF53, "ext4"),
        (0x0102_1994, "tmpfs"),
        (0x5846_5342, "xfs"),
        (0x9123_683E, "btrfs"),
        (0x794C_7630, "overlay"),
        (0x2FC1_2FC1, "zfs"),
        (0xF2F5_2010, "f2fs"),
        (0x6573_5546, "fuse"),
        (0x6969, "nfs"),
        (0x0102_1997, "9p"),
        (0xFF53_4D42, "cifs"),
        (0x9584_58F6, "hugetlbfs"),
        (0x8584_58F6, "ramfs"),
        (0x9FA0, "proc"),
        (0x6265_6572, "sysfs"),
    ];
    let kind = rustix::fs::fstatfs(fd)?.f_type.cast_unsigned() & 0xFFFF_FFFF;
    let name = NAMES.iter().find(|(number, _)| *number == kind);
    Ok(name.map_or_else(|| format!("{kind:#x}"), |(_, name)| (*name).to_owned()))
}

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

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;

    use super::*;

    fn holds_what_is_written(mut file: File) {
        file.write_all(b"abc").unwrap();
        file.rewind().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "abc");
    }

    #[test]
    fn a_file_in_memory_has_no_name_anywhere() {
        let file = in_memory("iolens").unwrap();
        assert_eq!(file_system(file.as_fd()).unwrap(), "tmpfs");
        holds_what_is_written(file);
    }

    #[test]
    fn a_file_in_a_folder_leaves_nothing_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = in_folder(folder.path()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(!file_system(file.as_fd()).unwrap().is_empty());
        holds_what_is_written(file);
        assert_eq!(in_folder(&folder.path().join("none")).unwrap_err(), Errno::ENOENT);
    }

    #[test]
    fn a_file_goes_to_its_device_in_each_way() {
        let mut file = in_folder(&std::env::temp_dir()).unwrap();
        for bring in [fsync, fdatasync, syncfs] {
            file.write_all(&[1; 4096]).unwrap();
            assert_eq!(bring(file.as_fd()), Ok(()));
        }
        let (read, _write) = rustix::pipe::pipe().unwrap();
        assert_eq!(fsync(read.as_fd()), Err(Errno::EINVAL), "a pipe has no device");
        assert_eq!(fdatasync(read.as_fd()), Err(Errno::EINVAL));
    }
}
