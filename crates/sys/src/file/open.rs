//! Opening files of others to read them, without doing anything to what is no
//! ordinary file: a FIFO or a device is known before it is opened.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, statat};

use super::about::Kind;
use crate::errno::Errno;

/// Whether reads go through the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// Through the page cache.
    Buffered,
    /// Around it (`O_DIRECT`).
    Direct,
}

/// What becomes of a symbolic link in the last part of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// It is followed.
    Follow,
    /// It is refused with `ELOOP` (`O_NOFOLLOW`).
    Refuse,
}

/// What is at a path, behind symbolic links, without opening it.
///
/// Errors: see stat(2); `ENOENT`, `EACCES`, `ENOTDIR`, `ELOOP`.
pub fn kind(path: &Path) -> Result<Kind, Errno> {
    Ok(Kind::of_mode(statat(CWD, path, AtFlags::empty())?.st_mode))
}

/// Opens a file for reading. Waits for nobody (`O_NONBLOCK`, which an ordinary
/// file ignores): a FIFO that took the file's place meanwhile is opened at once.
///
/// Errors: see open(2); `ENOENT`, `EACCES`; `ELOOP` for a refused link; `EINVAL`
/// where the file system has no `O_DIRECT`.
pub fn read_only(path: &Path, caching: Caching, links: Links) -> Result<File, Errno> {
    let mut flags = flags(caching) | OFlags::NONBLOCK | OFlags::NOCTTY;
    if links == Links::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    Ok(File::from(openat(CWD, path, flags, Mode::empty())?))
}

/// Opens the file of a descriptor once more: the same file whatever has become
/// of its path, with a position and a readahead of its own.
///
/// Errors: see open(2); `ENOENT` without /proc; `EINVAL` where the file system
/// has no `O_DIRECT`.
pub fn again(fd: BorrowedFd<'_>, caching: Caching) -> Result<File, Errno> {
    Ok(File::from(openat(CWD, own_path(fd), flags(caching), Mode::empty())?))
}

/// The same, and reading it does not change its access time (`O_NOATIME`).
///
/// Errors: as [`again`]; `EPERM` for who neither owns the file nor has
/// `CAP_FOWNER`.
pub fn again_without_atime(fd: BorrowedFd<'_>, caching: Caching) -> Result<File, Errno> {
    let flags = flags(caching) | OFlags::NOATIME;
    Ok(File::from(openat(CWD, own_path(fd), flags, Mode::empty())?))
}

fn flags(caching: Caching) -> OFlags {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    match caching {
        Caching::Buffered => flags,
        Caching::Direct => flags | OFlags::DIRECT,
    }
}

/// Where /proc shows an open file to this process.
pub(super) fn own_path(fd: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

/// Where other processes of this user find an open file, also one without a
/// name, for as long as this process has it open.
pub fn path_for_others(fd: &impl AsFd) -> String {
    format!("/proc/{}/fd/{}", crate::process::id(), fd.as_fd().as_raw_fd())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn a_file_is_opened_again_by_its_descriptor() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "abc").unwrap();
        let file = read_only(&path, Caching::Buffered, Links::Refuse).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut bytes = [0; 3];
        for again in [
            again(file.as_fd(), Caching::Buffered).unwrap(),
            again_without_atime(file.as_fd(), Caching::Buffered).unwrap(),
            File::open(path_for_others(&file)).unwrap(),
        ] {
            again.read_exact_at(&mut bytes, 0).unwrap();
            assert_eq!(&bytes, b"abc");
        }
    }

    #[test]
    fn what_is_no_ordinary_file_is_known_unopened() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let made = rustix::fs::mknodat(
            CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        );
        made.unwrap();
        assert_eq!(kind(&fifo), Ok(Kind::Fifo));
        assert_eq!(kind(folder.path()), Ok(Kind::Directory));
        assert_eq!(kind(Path::new("/dev/null")), Ok(Kind::CharacterDevice));
        assert_eq!(kind(&folder.path().join("none")), Err(Errno::ENOENT));
        // Nobody writes to it, and still this does not wait.
        drop(read_only(&fifo, Caching::Buffered, Links::Follow).unwrap());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("fifo", &link).unwrap();
        assert_eq!(kind(&link), Ok(Kind::Fifo));
        let refused = read_only(&link, Caching::Buffered, Links::Refuse).unwrap_err();
        assert_eq!(refused.raw(), libc::ELOOP);
    }
}
