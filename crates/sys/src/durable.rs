//! A file that is there whole or not at all, whatever ends the process or the machine: written
//! beside its place, brought to the device, moved in.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, linkat, mkdirat, open, openat, renameat, renameat_with,
    unlinkat,
};

use crate::errno::Errno;
use crate::file::give_name_in;
use crate::{clock, process};

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
        self.moved_in(name, bytes, mode, |passing| Ok(renameat(&self.0, passing, &self.0, name)?))
    }

    /// Writes the file `name` with this mode where none is, however late one comes.
    ///
    /// Errors: of openat(2), write(2), fsync(2) or renameat2(2); `EEXIST`, for links too.
    pub fn create(&self, name: &OsStr, bytes: &[u8], mode: u32) -> Result<(), Errno> {
        self.moved_in(name, bytes, mode, |passing| self.move_new(passing, name))
    }

    /// Writes a file, brings it to the device and has it moved in from its passing name. It gets
    /// that when it is whole; where the file system has no `O_TMPFILE`, from the start.
    fn moved_in(
        &self,
        name: &OsStr,
        bytes: &[u8],
        mode: u32,
        move_in: impl FnOnce(&OsStr) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let (passing, mode) = (passing(name), Mode::from_raw_mode(mode));
        let give = |file: File| give_name_in(self.0.as_fd(), &file, &passing);
        let whole = match self.nameless(bytes, mode).and_then(give) {
            Err(Errno::EOPNOTSUPP | Errno::EISDIR | Errno::ENOENT) => {
                self.named(&passing, bytes, mode)
            }
            named => named,
        };
        if whole == Err(Errno::EEXIST) {
            return whole; // What has that name is not ours.
        }
        let whole = whole.and_then(|()| move_in(&passing));
        if whole.is_err() {
            let _ = unlinkat(&self.0, &passing, AtFlags::empty());
        }
        whole?;
        Ok(rustix::fs::fsync(&self.0)?)
    }

    fn nameless(&self, bytes: &[u8], mode: Mode) -> Result<File, Errno> {
        self.written(OsStr::new("."), OFlags::TMPFILE, bytes, mode)
    }

    fn named(&self, passing: &OsStr, bytes: &[u8], mode: Mode) -> Result<(), Errno> {
        let new = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        self.written(passing, new, bytes, mode).map(drop)
    }

    fn written(&self, at: &OsStr, flags: OFlags, bytes: &[u8], mode: Mode) -> Result<File, Errno> {
        let flags = flags | OFlags::WRONLY | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.0, at, flags, mode)?);
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(file)
    }

    /// Moves a file to a name that nobody has. Where the file system cannot do that at once
    /// (`EINVAL`, as of NFS) or the kernel knows no such move, it has both names for a moment.
    fn move_new(&self, passing: &OsStr, name: &OsStr) -> Result<(), Errno> {
        match renameat_with(&self.0, passing, &self.0, name, RenameFlags::NOREPLACE) {
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                self.link_new(passing, name)
            }
            moved => Ok(moved?),
        }
    }

    fn link_new(&self, passing: &OsStr, name: &OsStr) -> Result<(), Errno> {
        linkat(&self.0, passing, &self.0, name, AtFlags::empty())?;
        Ok(unlinkat(&self.0, passing, AtFlags::empty())?)
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

/// Removes a file, and what a killed [`write`] of it may have left beside it: nobody else may
/// be writing it. That there is none is no error.
///
/// Errors: of unlink(2) or fsync(2).
pub fn remove(path: &Path) -> Result<(), Errno> {
    let name = path.file_name().ok_or(Errno::EINVAL)?;
    let entries = std::fs::read_dir(folder_of(path)).into_iter().flatten().flatten();
    let left = entries.filter(|entry| is_passing(&entry.file_name(), name));
    let left: Vec<PathBuf> = left.map(|entry| entry.path()).collect();
    for path in left.iter().map(PathBuf::as_path).chain([path]) {
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
            _ => {}
        }
    }
    sync_folder(path)
}

/// Bytes that a name may have, on every file system.
const NAME_MAX: usize = 255;

/// What a passing name ends with.
const PASSING: &[u8] = b".new";

/// Where a file is written before it is moved to its place: a name that no user's file has, of
/// this process and moment.
fn passing(name: &OsStr) -> OsString {
    let number = format!("{}-{}", process::id(), clock::unix_ns());
    let mut passing = beginning(name);
    passing.push(number);
    passing.push(OsStr::from_bytes(PASSING));
    passing
}

/// Whether `found` is such a name of the file `name`.
fn is_passing(found: &OsStr, name: &OsStr) -> bool {
    let beginning = beginning(name);
    let number = found.as_bytes().strip_prefix(beginning.as_bytes());
    let number = number.and_then(|rest| rest.strip_suffix(PASSING)).unwrap_or_default();
    let mut parts = number.split(|&byte| byte == b'-');
    let mut is_number =
        || parts.next().is_some_and(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit));
    is_number() && is_number() && parts.next().is_none()
}

/// What the passing names of a file begin with; of a long name, as much as there is room for.
fn beginning(name: &OsStr) -> OsString {
    // Two numbers, what is around them, and the end.
    const OTHERS: usize = 2 * 20 + 16;
    let kept = &name.as_bytes()[..name.len().min(NAME_MAX - OTHERS)];
    let mut beginning = OsString::from(".");
    beginning.push(OsStr::from_bytes(kept));
    beginning.push(".iolens-");
    beginning
}

/// The folder that a path is in.
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

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole_and_removed_with_its_remains() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        write(&path, "a first and longer text").unwrap();
        write(&path, "second").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "second");
        std::fs::write(folder.path().join(".record.iolens-77-1234.new"), "torn").unwrap();
        let others = [".record.iolens-77-x.new", ".records.iolens-7-1.new", "record.new"];
        for other in others {
            std::fs::write(folder.path().join(other), "another's").unwrap();
        }
        remove(&path).unwrap();
        assert_eq!(names(folder.path()), others);
        assert_eq!(remove(&path), Ok(()), "it is gone already");
        let nowhere = folder.path().join("none/record");
        assert_eq!(write(&nowhere, ""), Err(Errno::ENOENT));
    }

    #[test]
    fn a_file_has_no_name_before_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let own = Folder::open(folder.path()).unwrap();
        let (name, mode) = (OsStr::new("page"), Mode::from_raw_mode(0o600));
        match own.nameless(b"whole", mode) {
            Ok(file) => {
                assert!(names(folder.path()).is_empty());
                give_name_in(own.0.as_fd(), &file, name).unwrap();
                assert_eq!(give_name_in(own.0.as_fd(), &file, name), Err(Errno::EEXIST));
            }
            Err(lacks) => {
                assert!(matches!(lacks, Errno::EOPNOTSUPP | Errno::EISDIR), "{lacks}");
                own.named(name, b"whole", mode).unwrap();
            }
        }
        assert_eq!(own.named(name, b"torn", mode), Err(Errno::EEXIST));
        own.named(OsStr::new("other"), b"whole", mode).unwrap();
        for made in ["page", "other"] {
            assert_eq!(std::fs::read(folder.path().join(made)).unwrap(), b"whole");
        }
        assert_eq!(names(folder.path()), ["other", "page"]);
    }

    #[test]
    fn a_file_of_the_users_beside_the_place_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (own, beside) = (Folder::open(folder.path()).unwrap(), folder.path().join("page.new"));
        std::fs::write(&beside, "precious").unwrap();
        own.replace(OsStr::new("page"), b"first", 0o644).unwrap();
        own.replace(OsStr::new("page"), b"second", 0o644).unwrap();
        own.create(OsStr::new("other"), b"third", 0o644).unwrap();
        write(&folder.path().join("page"), "fourth").unwrap();
        assert_eq!(std::fs::read_to_string(&beside).unwrap(), "precious");
        assert_eq!(names(folder.path()), ["other", "page", "page.new"]);
        // As long as a name may be.
        let long = "x".repeat(NAME_MAX);
        own.replace(OsStr::new(&long), b"long", 0o644).unwrap();
        assert_eq!(std::fs::read(folder.path().join(long)).unwrap(), b"long");
    }

    #[test]
    fn what_comes_meanwhile_is_never_replaced_where_nothing_was() {
        let folder = tempfile::tempdir().unwrap();
        let (own, name) = (Folder::open(folder.path()).unwrap(), OsStr::new("page"));
        let links = |passing: &OsStr| own.link_new(passing, name);
        let moves = |passing: &OsStr| own.move_new(passing, name);
        let check = |move_in: &dyn Fn(&OsStr) -> Result<(), Errno>| {
            let planted = |passing: &OsStr| {
                std::fs::write(folder.path().join("page"), "came meanwhile").unwrap();
                move_in(passing)
            };
            assert_eq!(own.moved_in(name, b"ours", 0o644, planted), Err(Errno::EEXIST));
            let page = folder.path().join("page");
            assert_eq!(std::fs::read_to_string(&page).unwrap(), "came meanwhile");
            std::fs::remove_file(&page).unwrap();
            assert_eq!(own.moved_in(name, b"ours", 0o644, move_in), Ok(()));
            assert_eq!(std::fs::read_to_string(&page).unwrap(), "ours");
            assert_eq!(names(folder.path()), ["page"]);
        };
        check(&moves);
        // As where the file system knows no such move.
        check(&links);
        let dangling = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("nowhere"), &dangling).unwrap();
        assert_eq!(own.create(OsStr::new("link"), b"ours", 0o644), Err(Errno::EEXIST));
        assert_eq!(names(folder.path()), ["link", "page"]);
    }

    #[test]
    fn an_interrupted_replacement_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let (own, name) = (Folder::open(folder.path()).unwrap(), OsStr::new("page"));
        own.replace(name, b"first", 0o644).unwrap();
        // All of the new one is written, and its process ends before it is moved in.
        let torn = |_: &OsStr| Err(Errno::EINTR);
        assert_eq!(own.moved_in(name, b"second", 0o644, torn), Err(Errno::EINTR));
        assert_eq!(std::fs::read(folder.path().join("page")).unwrap(), b"first");
        assert_eq!(names(folder.path()), ["page"]);
    }

    #[test]
    fn a_planted_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, target) = (folder.path().join("record"), folder.path().join("target"));
        std::fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        write(&path, "x").unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
        assert!(path.symlink_metadata().unwrap().is_file());
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("pages")).unwrap();
        let own = Folder::open(folder.path()).unwrap();
        assert!(own.made_inside(OsStr::new("pages")).is_err(), "a link is no folder of ours");
    }
}
