//! Files to write to: looked at before anything is opened for writing, made
//! without a name or under one that nobody has, and named when they are whole.
//! No symbolic link at the end of a path is followed; see open(2), linkat(2),
//! renameat2(2).

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, StatxAttributes, StatxFlags};

use super::about::{About, about};
use super::open::own_path;
use crate::errno::Errno;

/// A file by its number on its device: the same through every hard link and
/// every bind mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Major and minor number of `st_dev`.
    pub device: (u32, u32),
    /// `st_ino`.
    pub inode: u64,
}

impl Identity {
    /// The one that the kernel says this of.
    pub fn of(about: &About) -> Identity {
        Identity { device: about.device, inode: about.inode }
    }
}

/// What stands at a path, held, so that nothing else can take its place before
/// it is opened. Holding it neither reads nor writes (`O_PATH`).
#[derive(Debug)]
pub struct Found {
    held: File,
    about: About,
}

impl Found {
    /// Looks at what stands at a path, without following a link that does.
    ///
    /// Errors: `ENOENT`, `EACCES`, `ENOTDIR`, `ELOOP`, `ENAMETOOLONG`.
    pub fn at(path: &Path) -> Result<Found, Errno> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC);
        let held = options.open(path)?;
        let about = about(held.as_fd())?;
        Ok(Found { held, about })
    }

    /// What it is, and how large.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Which one it is.
    pub fn identity(&self) -> Identity {
        Identity::of(&self.about)
    }

    /// Whether something is mounted there (`STATX_ATTR_MOUNT_ROOT`, Linux 5.8);
    /// `None` where the kernel does not say.
    ///
    /// Errors: see statx(2).
    pub fn is_mount_point(&self) -> Result<Option<bool>, Errno> {
        let about = rustix::fs::statx(&self.held, "", AtFlags::EMPTY_PATH, StatxFlags::TYPE)?;
        let told = about.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT);
        Ok(told.then(|| about.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)))
    }

    /// Opens this very file, whatever stands at its path by now.
    ///
    /// Errors: as [`reopen`].
    pub fn open(&self, how: How) -> Result<File, Errno> {
        reopen(self.held.as_fd(), how)
    }
}

/// What a descriptor may be used for, and how its writes reach the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct How {
    /// Whether it writes, besides reading.
    pub writes: bool,
    /// Past the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Each write returns when its bytes are on the device (`O_DSYNC`).
    pub dsync: bool,
}

impl How {
    /// For reading alone.
    pub const READS: How = How { writes: false, direct: false, dsync: false };
    /// For reading and writing, through the page cache.
    pub const WRITES: How = How { writes: true, direct: false, dsync: false };

    fn flags(self) -> OFlags {
        let access = if self.writes { OFlags::RDWR } else { OFlags::RDONLY };
        let mut flags = access | OFlags::CLOEXEC;
        flags.set(OFlags::DIRECT, self.direct);
        flags.set(OFlags::DSYNC, self.dsync);
        flags
    }
}

/// A second description of an open file, with a position and flags of its own.
///
/// Errors: see open(2); `ENOENT` without /proc, `EINVAL` where the file system
/// has no `O_DIRECT`, `EACCES`, `EROFS`, `ETXTBSY` for a program that runs.
pub fn reopen(fd: BorrowedFd<'_>, how: How) -> Result<File, Errno> {
    let path = own_path(fd);
    Ok(File::from(rustix::fs::openat(CWD, path, how.flags(), Mode::empty())?))
}

/// The mode of new files, before the process's mask.
const MODE: Mode = Mode::from_raw_mode(0o666);

/// A file of a folder's file system that has no name yet (`O_TMPFILE`): it is gone
/// when its last descriptor is, unless
/// [`give_name`](super::give_name) was called.
///
/// Errors: see open(2); `EOPNOTSUPP` and `EISDIR` where the file system or the
/// kernel has no such files.
pub fn nameless(folder: &Path) -> Result<File, Errno> {
    let flags = How::WRITES.flags() | OFlags::TMPFILE;
    Ok(File::from(rustix::fs::openat(CWD, folder, flags, MODE)?))
}

/// A new file under a name that nobody has (`O_EXCL`).
///
/// Errors: see open(2); `EEXIST`, for links too.
pub fn exclusive(path: &Path) -> Result<File, Errno> {
    let flags = How::WRITES.flags() | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    Ok(File::from(rustix::fs::openat(CWD, path, flags, MODE)?))
}

/// Moves a file to a name that nobody has. Where the file system cannot do that
/// at once (`EINVAL` of `RENAME_NOREPLACE`, as with NFS), the file has both names
/// for a moment.
///
/// Errors: see renameat2(2), linkat(2); `EEXIST`.
pub fn rename(from: &Path, to: &Path) -> Result<(), Errno> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            rustix::fs::linkat(CWD, from, CWD, to, AtFlags::empty())?;
            Ok(std::fs::remove_file(from)?)
        }
        done => Ok(done?),
    }
}

/// Makes a file longer, with a hole, or shorter.
///
/// Errors: see ftruncate(2); `EFBIG` beyond `RLIMIT_FSIZE` or what the file system
/// can hold, `EINVAL` beyond what files can have.
pub fn truncate(file: BorrowedFd<'_>, bytes: u64) -> Result<(), Errno> {
    Ok(rustix::fs::ftruncate(file, bytes)?)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::super::about::Kind;
    use super::super::give_name;
    use super::*;

    #[test]
    fn what_stands_at_a_path_is_said_and_never_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), "abc").unwrap();
        std::fs::hard_link(path("file"), path("other")).unwrap();
        std::os::unix::fs::symlink("nowhere", path("dangling")).unwrap();
        std::os::unix::fs::symlink("file", path("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        let kind = |path: &Path| Found::at(path).unwrap().about().kind;
        assert_eq!(kind(&path("file")), Kind::Regular);
        assert_eq!(kind(&path("dangling")), Kind::Link);
        assert_eq!(kind(&path("link")), Kind::Link);
        assert_eq!(kind(&path("socket")), Kind::Socket);
        assert_eq!(kind(folder.path()), Kind::Directory);
        assert_eq!(kind(Path::new("/dev/null")), Kind::CharacterDevice);
        let [file, other] = ["file", "other"].map(|name| Found::at(&path(name)).unwrap());
        assert_eq!(file.identity(), other.identity(), "hard links are one file");
        assert_eq!(file.about().bytes, 3);
        assert_ne!(file.is_mount_point(), Ok(Some(true)));
        assert_ne!(Found::at(Path::new("/proc")).unwrap().is_mount_point(), Ok(Some(false)));
        assert_eq!(Found::at(&path("none")).unwrap_err(), Errno::ENOENT);
        let long = path(&"x".repeat(300));
        assert_eq!(Found::at(&long).unwrap_err().raw(), libc::ENAMETOOLONG);
    }

    #[test]
    fn what_was_looked_at_is_opened_whatever_stands_there_now() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "first").unwrap();
        let found = Found::at(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "second").unwrap();
        let mut text = String::new();
        found.open(How::READS).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "first");
    }

    #[test]
    fn a_name_that_somebody_has_is_never_taken() {
        let folder = tempfile::tempdir().unwrap();
        let (taken, free) = (folder.path().join("taken"), folder.path().join("free"));
        std::fs::write(&taken, "theirs").unwrap();
        assert_eq!(exclusive(&taken).unwrap_err().raw(), libc::EEXIST);
        let mut file = exclusive(&free).unwrap();
        file.write_all(b"ours").unwrap();
        assert_eq!(rename(&free, &taken).unwrap_err().raw(), libc::EEXIST);
        assert_eq!(std::fs::read_to_string(&taken).unwrap(), "theirs");
        let moved = folder.path().join("moved");
        rename(&free, &moved).unwrap();
        assert_eq!(std::fs::read_to_string(&moved).unwrap(), "ours");
        assert!(!free.exists());
    }

    #[test]
    fn a_nameless_file_leaves_nothing_until_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = match nameless(folder.path()) {
            Ok(file) => file,
            Err(errno) => {
                return crate::skip::note(
                    "file::create::tests::a_nameless_file_leaves_nothing_until_it_is_named",
                    &format!("the file system of temporary files has no O_TMPFILE: {errno}"),
                );
            }
        };
        file.write_all(b"abc").unwrap();
        truncate(file.as_fd(), 2).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let second = reopen(file.as_fd(), How { dsync: true, ..How::WRITES }).unwrap();
        assert_eq!(second.metadata().unwrap().len(), 2);
        let path = folder.path().join("named");
        give_name(&file, &path).unwrap();
        assert_eq!(give_name(&file, &path).unwrap_err().raw(), libc::EEXIST);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "ab");
    }
}
