//! Where a file is written: checked before anything is opened for writing, made so
//! that a part of it never looks like the whole, and gone if it does not become
//! whole.
//!
//! A new file has no name while it is written (`O_TMPFILE`), and gets its own when it
//! is whole and nobody has taken it meanwhile. Where the file system knows no files
//! without a name it has one beside its place, which [`leftover`](super::leftover)
//! writes down. An existing file, with consent, is written in place: it keeps its
//! blocks, its owner and mode and its hard links, and is cut behind its new end.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use iolens_model::units::Bytes;
use iolens_sys::errno::Errno;
use iolens_sys::file::about::{About, Kind};
use iolens_sys::file::create::{self, Found, How, Identity};
use iolens_sys::{durable, file, storage};

use crate::leftover::{Leftover, Leftovers};
use crate::subject::Subject;
use crate::test_file::no_files;

/// What is to become of a file that stands there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It is left alone, and nothing is written.
    Refuse,
    /// It is written in place, if it is a regular file.
    Overwrite,
}

/// A place that may be written to.
#[derive(Debug)]
pub struct Destination {
    path: PathBuf,
    folder: PathBuf,
    existing: Option<Found>,
}

impl Destination {
    /// Checks a place. Opens nothing for writing, and makes nothing.
    ///
    /// Errors: why nothing can or may be written there, and what to do.
    pub fn check(
        path: &Path,
        existing: Existing,
        source: Option<&Subject>,
    ) -> Result<Destination, String> {
        let folder = folder_of(path)?;
        let found = match Found::at(path) {
            Ok(found) => Some(found),
            Err(Errno::ENOENT) => None,
            Err(errno) => return Err(unreachable(path, errno)),
        };
        if let Some(found) = &found {
            check_found(path, found, existing, source)?;
        } else {
            check_folder(path, &folder)?;
        }
        if let Some(Err(errno)) = found.as_ref().map(|_| storage::may_write(path)) {
            return Err(refused(path, errno));
        }
        Ok(Destination { path: path.to_owned(), folder, existing: found })
    }

    /// Whether there is room for a file of so many bytes, as far as the file system
    /// says; blocks that an existing file has are used again.
    ///
    /// Errors: how much there is.
    pub fn check_room(&self, bytes: u64) -> Result<(), String> {
        let has = self.existing.as_ref().map_or(0, |found| found.about().allocated_bytes);
        let needed = bytes.saturating_sub(has);
        let free = match storage::free_bytes(&self.folder) {
            Ok(free) => free,
            // What cannot be asked is found out by writing.
            Err(_) => return Ok(()),
        };
        if needed <= free {
            return Ok(());
        }
        let folder = self.folder.display();
        Err(format!(
            "cannot write {} to {}: the file system of {folder} has {} free\n  write less, or \
             somewhere else",
            Bytes(needed),
            self.path.display(),
            Bytes(free)
        ))
    }

    /// The name of the file system that it is on.
    ///
    /// Errors: what the system said.
    pub fn file_system(&self) -> Result<String, String> {
        let cannot = |errno: Errno| {
            format!("cannot find out the file system of {}: {errno}", self.folder.display())
        };
        let folder = File::open(&self.folder).map_err(|e| cannot(e.into()))?;
        file::file_system(folder.as_fd()).map_err(cannot)
    }

    /// What stands there already, as the kernel said when it was checked.
    pub fn existing(&self) -> Option<&About> {
        self.existing.as_ref().map(Found::about)
    }

    /// Opens what is there, or makes what is not; see [`Target`].
    ///
    /// Errors: what was tried and what the system said.
    pub fn open(self, leftovers: &Leftovers) -> Result<Target, String> {
        let cannot = |errno| refused(&self.path, errno);
        let (file, state) = match self.existing {
            Some(found) => (found.open(How::WRITES).map_err(cannot)?, State::InPlace),
            None => match create::nameless(&self.folder) {
                Ok(file) => (file, State::Nameless),
                Err(Errno::EOPNOTSUPP | Errno::EISDIR | Errno::ENOENT) => {
                    beside(&self.path, leftovers)?
                }
                Err(errno) => return Err(cannot(errno)),
            },
        };
        Ok(Target { file, path: self.path, state })
    }
}

/// The folder that a path's last name stands in.
///
/// Errors: a path that ends with no name of a file.
fn folder_of(path: &Path) -> Result<PathBuf, String> {
    let name = path.display();
    let text = path.as_os_str().as_encoded_bytes();
    if text.is_empty() {
        return Err("the path of the file to write is empty: name a file".to_owned());
    }
    if text.ends_with(b"/") || path.file_name().is_none() {
        return Err(format!("cannot write to {name}: that names a directory, not a file"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok(folder.unwrap_or(Path::new(".")).to_owned())
}

/// Why what stands there is not written to.
fn check_found(
    path: &Path,
    found: &Found,
    existing: Existing,
    source: Option<&Subject>,
) -> Result<(), String> {
    let name = path.display();
    let refuse = |why: String| Err(format!("will not write to {name}: {why}"));
    let kind = found.about().kind;
    match kind {
        Kind::Regular => {}
        Kind::Link => {
            let target = std::fs::read_link(path).map(|target| target.display().to_string());
            let leads = match path.exists() {
                true => "",
                false => ", which does not exist",
            };
            let target = target.unwrap_or_else(|_| "something".to_owned());
            return refuse(format!(
                "it is a symbolic link to {target}{leads}, and links are not followed\n  name the \
                 file itself"
            ));
        }
        Kind::Directory => {
            return refuse("it is a directory\n  name a file in it".to_owned());
        }
        Kind::BlockDevice | Kind::CharacterDevice => {
            return refuse(format!(
                "it is {}, and devices are never written to, with or without --overwrite",
                kind.words()
            ));
        }
        _ => return refuse(format!("it is {}, not a regular file", kind.words())),
    }
    if let Some(source) = source
        && Identity::of(source.about()) == found.identity()
    {
        let same = match Path::new(source.name()) == path {
            true => "that is the source itself".to_owned(),
            false => format!(
                "it is the same file as {} (inode {}), by another name",
                source.name(),
                found.identity().inode
            ),
        };
        return refuse(format!("{same}\n  copying a file onto itself would destroy it"));
    }
    if found.is_mount_point() == Ok(Some(true)) {
        return refuse("it is a mount point: another file is mounted over it".to_owned());
    }
    match existing {
        Existing::Overwrite => Ok(()),
        Existing::Refuse => refuse(
            "it exists already\n  name another file, or write over this one with --overwrite"
                .to_owned(),
        ),
    }
}

/// Why no file can be made in a folder.
fn check_folder(path: &Path, folder: &Path) -> Result<(), String> {
    let name = path.display();
    match std::fs::metadata(folder) {
        Err(e) => Err(unreachable(path, e.into())),
        Ok(about) if !about.is_dir() => Err(unreachable(path, Errno::ENOTDIR)),
        Ok(_) if is_devices(folder) => Err(format!(
            "will not make {name}: {} is where devices are, and this is none of them: a file there \
             would take memory until the machine is started again\n  name a file elsewhere",
            folder.display()
        )),
        Ok(_) => storage::may_write(folder).map_err(|errno| {
            format!("cannot create {name}: {errno} on {}{}", folder.display(), no_files(errno))
        }),
    }
}

/// Whether a folder is /dev or below, where a name that is not there is most often a
/// device that was mistyped; /dev/shm is for files.
fn is_devices(folder: &Path) -> bool {
    let folder = std::fs::canonicalize(folder).unwrap_or_default();
    folder.starts_with("/dev") && !folder.starts_with("/dev/shm")
}

/// Why a place cannot be looked at.
fn unreachable(path: &Path, errno: Errno) -> String {
    let name = path.display();
    let folder = folder_of(path).unwrap_or_default();
    let folder = folder.display();
    match errno {
        Errno::ENOENT => {
            format!("cannot create {name}: {errno}: there is no folder {folder}\n  make it first")
        }
        Errno::ENOTDIR => format!("cannot create {name}: {errno}: {folder} is not a folder"),
        Errno::EACCES => {
            format!("cannot create {name}: {errno}: this user may not look into {folder}")
        }
        Errno::ENAMETOOLONG => {
            let bytes = path.file_name().map_or(0, |name| name.len());
            format!(
                "cannot create {name}: {errno}: its last name has {bytes} bytes; most file systems \
                 take 255"
            )
        }
        errno => format!("cannot create {name}: {errno}"),
    }
}

/// Why a file cannot be opened for writing.
fn refused(path: &Path, errno: Errno) -> String {
    let name = path.display();
    match errno {
        Errno::EROFS => {
            format!("cannot write to {name}: {errno}: its file system is mounted read-only")
        }
        Errno::EACCES => format!("cannot write to {name}: {errno}: this user may not"),
        Errno::ETXTBSY => format!("cannot write to {name}: {errno}: it is a program that runs"),
        Errno::EPERM => format!(
            "cannot write to {name}: {errno}: it may be immutable or for appending only (lsattr \
             shows that)"
        ),
        errno => format!("cannot write to {name}: {errno}"),
    }
}

/// A file being written. Dropped before [`Target::complete`], a new one is removed;
/// one that is written in place stays as it is then.
#[derive(Debug)]
pub struct Target {
    file: File,
    path: PathBuf,
    state: State,
}

/// How it stands in its folder.
#[derive(Debug)]
enum State {
    /// Not at all, yet.
    Nameless,
    /// Under another name.
    Beside(Leftover),
    /// As it always did.
    InPlace,
}

/// Makes a file beside its place.
fn beside(path: &Path, leftovers: &Leftovers) -> Result<(File, State), String> {
    let (file, leftover) = leftovers.make_beside(path)?;
    Ok((file, State::Beside(leftover)))
}

impl Target {
    /// The file, for reading and writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Where it is, or will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is there if it does not become whole, as the end of a sentence.
    pub fn remains(&self) -> String {
        let name = self.path.display();
        match self.state {
            State::Nameless | State::Beside(_) => {
                format!("what was written is removed; there is no {name}")
            }
            State::InPlace => format!(
                "{name} was being written over (--overwrite) and is left as it is now: partly \
                 new, partly as it was"
            ),
        }
    }

    /// Cuts an existing file behind its new end; whether there was something to cut.
    ///
    /// Errors: see ftruncate(2).
    pub fn cut(&self, bytes: u64) -> Result<bool, String> {
        let longer = self.file.metadata().is_ok_and(|about| about.len() > bytes);
        if longer {
            create::truncate(self.file.as_fd(), bytes).map_err(|errno| {
                format!("cannot cut {} to {}: {errno}", self.path.display(), Bytes(bytes))
            })?;
        }
        Ok(longer)
    }

    /// It is whole: gives it its name.
    ///
    /// Errors: what the system said; `EEXIST` if somebody has taken the name
    /// meanwhile. A new file is removed then.
    pub fn complete(self) -> Result<(), String> {
        let Target { file: written, path, state } = self;
        let named = match state {
            State::InPlace => return Ok(()),
            State::Nameless => file::give_name(&written, &path),
            State::Beside(leftover) => leftover.move_to(&path),
        };
        named.map_err(|errno| match errno {
            Errno::EEXIST => format!(
                "cannot name the finished file {}: somebody has made one there meanwhile; it is \
                 left alone, and what was written is removed",
                path.display()
            ),
            errno => format!(
                "cannot name the finished file {}: {errno}; what was written is removed",
                path.display()
            ),
        })
    }
}

/// Brings the name of a file to the device.
///
/// Errors: see fsync(2).
pub fn sync_folder_of(path: &Path) -> Result<(), String> {
    durable::sync_folder(path)
        .map_err(|errno| format!("cannot sync the folder of {}: {errno}", path.display()))
}

#[cfg(test)]
mod tests;
