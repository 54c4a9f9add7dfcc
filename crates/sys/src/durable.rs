//! A file that is there whole or not at all, whatever ends the process or the machine: written
//! beside its place, brought to the device, moved in.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, open, openat, renameat, unlinkat};

use crate::errno::Errno;

/// An open folder. What is done in it is done there, whatever its path has come to mean, and
/// follows no symbolic link.
#[derive(Debug)]
pub struct Folder(OwnedFd);

const OPEN_FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::CLOEXEC);

impl Folder {
    /// The folder at `path`, as the user named it: links in it are followed.
    ///
    /// Errors: of open(2).
    pub fn open(path: &Path) -> Result<Folder, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(Folder(open(path, OPEN_FOLDER, Mode::empty())?))
    }

    /// The folder `name` in this one.
    ///
    /// Errors: of openat(2); `ENOTDIR` or `ELOOP` where a link stands there.
    pub fn inside(&self, name: &OsStr) -> Result<Folder, Errno> {
        let flags = OPEN_FOLDER | OFlags::NOFOLLOW;
        Ok(Folder(openat(&self.0, name, flags, Mode::empty())?))
    }

    /// The same, which is made where there is none.
    ///
    /// Errors: of mkdirat(2) or openat(2).
    pub fn made_inside(&self, name: &OsStr) -> Result<Folder, Errno> {
        match mkdirat(&self.0, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => self.inside(name),
            Err(e) => Err(e.into()),
        }
    }

    /// Writes the file `name` with this mode, or replaces it; what stood there stays until the
    /// new one is whole. When this returns, so would the machine find it after losing its power.
    ///
    /// Errors: of openat(2), write(2), fsync(2) or renameat(2).
    pub fn replace(&self, name: &OsStr, bytes: &[u8], mode: u32) -> Result<(), Errno> {
        let beside = beside(name);
        let whole = self.write_new(&beside, bytes, mode).and_then(|()| {
            renameat(&self.0, &beside, &self.0, name)?;
            Ok(rustix::fs::fsync(&self.0)?)
        });
        if whole.is_err() {
            let _ = unlinkat(&self.0, &beside, AtFlags::empty());
        }
        whole
    }

    /// A file that is new: what an earlier process left in its place goes.
    fn write_new(&self, name: &OsStr, bytes: &[u8], mode: u32) -> Result<(), Errno> {
        self.remove(name)?;
        let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let opened = openat(&self.0, name, new | OFlags::CLOEXEC, Mode::from_raw_mode(mode))?;
        let mut file = File::from(opened);
        file.write_all(bytes)?;
        Ok(file.sync_all()?)
    }

    /// Removes the file `name`; whether there was one.
    ///
    /// Errors: of unlinkat(2).
    pub fn remove(&self, name: &OsStr) -> Result<bool, Errno> {
        match unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::NOENT) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }
}

/// Writes a file of mode 0644, or replaces it, as [`Folder::replace`] does.
///
/// Errors: of open(2), write(2), fsync(2) or rename(2).
pub fn write(path: &Path, text: &str) -> Result<(), Errno> {
    let name = path.file_name().ok_or(Errno::EINVAL)?;
    Folder::open(folder_of(path))?.replace(name, text.as_bytes(), 0o644)
}

/// Removes a file, and one that [`write`] may have left beside it. That there
/// is none is no error.
///
/// Errors: of unlink(2) or fsync(2).
pub fn remove(path: &Path) -> Result<(), Errno> {
    for path in [path, &path.with_file_name(beside(path.file_name().unwrap_or_default()))] {
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
            _ => {}
        }
    }
    sync_folder(path)
}

/// Where a file is written before it is moved to its place.
fn beside(name: &OsStr) -> OsString {
    let mut name = name.to_owned();
    name.push(".new");
    name
}

/// The folder that a path is in.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Brings the name of a file to the device: fsync(2) of the folder that it is in.
///
/// Errors: of open(2) or fsync(2).
pub fn sync_folder(path: &Path) -> Result<(), Errno> {
    Ok(File::open(folder_of(path))?.sync_all()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_removed_with_its_remains() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        write(&path, "a first and longer text").unwrap();
        write(&path, "second").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "second");
        std::fs::write(folder.path().join("record.new"), "torn").unwrap();
        remove(&path).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(remove(&path), Ok(()), "it is gone already");
        let nowhere = folder.path().join("none/record");
        assert_eq!(write(&nowhere, ""), Err(Errno::ENOENT));
    }

    #[test]
    fn a_planted_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, target) = (folder.path().join("record"), folder.path().join("target"));
        std::fs::write(&target, "precious").unwrap();
        for link in [&path, &folder.path().join("record.new")] {
            std::os::unix::fs::symlink(&target, link).unwrap();
            write(&path, "x").unwrap();
            assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
            assert!(path.symlink_metadata().unwrap().is_file());
            std::fs::remove_file(&path).unwrap();
        }
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("pages")).unwrap();
        let own = Folder::open(folder.path()).unwrap();
        assert!(own.made_inside(OsStr::new("pages")).is_err(), "a link is no folder of ours");
    }

    #[test]
    fn what_cannot_be_written_whole_leaves_what_was_there() {
        // A device without room, where a file would be written: nothing of it stays.
        let folder = tempfile::tempdir().unwrap();
        let own = Folder::open(folder.path()).unwrap();
        own.replace(OsStr::new("page"), b"first", 0o644).unwrap();
        std::fs::create_dir(folder.path().join("page.new")).unwrap();
        assert!(own.replace(OsStr::new("page"), b"second", 0o644).is_err());
        assert_eq!(std::fs::read(folder.path().join("page")).unwrap(), b"first");
    }
}
