//! A copy of a database with its logs, in a folder of its own below that for temporary files.
//!
//! The folder is locked (flock(2)) as long as the import lives that has made it. The kernel
//! gives up the lock of a process however that ends, so that a folder whose lock is free was
//! left by one that was killed: the next import removes it.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::beside::beside;
use crate::open::is_log;

/// What the name of such a folder begins with; sixteen hexadecimal digits follow.
const PREFIX: &str = "iolens-import-";

/// How often a new folder may be taken for one that was left.
const TRIES: usize = 5;

/// The name of a database in its folder of its own.
const COPIED: &str = "copy.db";

/// A folder with a database and its logs, which goes when it is dropped.
pub(crate) struct Copy {
    folder: PathBuf,
    /// The open folder; `None` where the file system knows no locks, so that nobody takes it for
    /// one that was left.
    lock: Option<File>,
}

impl Copy {
    /// Copies a database and what lies beside it into a new folder of `parent`.
    ///
    /// Errors: what the system said.
    pub(crate) fn of(path: &Path, parent: &Path) -> io::Result<Copy> {
        let mut copy = Copy::empty(parent)?;
        for _ in 0..TRIES {
            if copy.lock.is_some() {
                break;
            }
            copy = Copy::empty(parent)?;
        }
        for suffix in ["", "-wal", "-journal"] {
            let from = beside(path, suffix);
            if fs::symlink_metadata(&from).is_ok_and(|found| suffix.is_empty() || is_log(&found)) {
                fs::copy(from, copy.folder.join(format!("{COPIED}{suffix}")))?;
            }
        }
        Ok(copy)
    }

    /// A new folder; without its lock where another import took it for one that was left.
    fn empty(parent: &Path) -> io::Result<Copy> {
        let mut random = [0; 8];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        let folder = parent.join(format!("{PREFIX}{:016x}", u64::from_ne_bytes(random)));
        DirBuilder::new().mode(0o700).create(&folder)?;
        let lock = locked(&folder);
        Ok(Copy { folder, lock })
    }

    /// The database.
    pub(crate) fn database(&self) -> PathBuf {
        self.folder.join(COPIED)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // What cannot be removed is in a folder for what is temporary.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Locks a folder that is there and that nobody has locked; `None` for any other, and for one
/// that may not be opened.
fn locked(folder: &Path) -> Option<File> {
    let found = fs::symlink_metadata(folder).ok().filter(fs::Metadata::is_dir)?;
    let open = File::open(folder).ok()?;
    open.try_lock().ok()?;
    // Who had the lock until now has removed the folder.
    let same = |a: &fs::Metadata, b: &fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    let (opened, named) = (open.metadata().ok()?, fs::symlink_metadata(folder).ok()?);
    (same(&found, &opened) && same(&opened, &named)).then_some(open)
}

/// Removes the folders in `parent` that imports have left which were killed.
pub(crate) fn remove_abandoned(parent: &Path) {
    let is_digits =
        |digits: &str| digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if digits.is_some_and(is_digits)
            && let Some(_lock) = locked(&entry.path())
        {
            // That of another user stays his.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(parent: &Path) -> Vec<String> {
        let entries = fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> =
            entries.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_an_import_left_is_removed_and_what_one_uses_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path();
        let others =
            ["iolens-import-", "iolens-import-00000000000000zz", "iolens-import-1", "notes"];
        for other in others {
            fs::create_dir(parent.join(other)).unwrap();
        }
        let target = parent.join("notes");
        std::os::unix::fs::symlink(target, parent.join(format!("{PREFIX}{:016x}", 1))).unwrap();
        let kept = names(parent);

        let used = Copy::empty(parent).unwrap();
        fs::write(used.database(), "used").unwrap();
        let left = parent.join(format!("{PREFIX}{:016x}", 2));
        fs::create_dir(&left).unwrap();
        fs::write(left.join(COPIED), "left").unwrap();
        remove_abandoned(parent);
        assert!(
            used.lock.is_some() && used.database().exists() && !left.exists(),
            "{:?}",
            names(parent)
        );
        drop(used);
        assert_eq!(names(parent), kept);
    }
}
