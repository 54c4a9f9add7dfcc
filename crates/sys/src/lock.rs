//! An advisory lock on a file, which the kernel drops when its holder dies.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::errno::Errno;

/// Opens the lock file, which any user may lock, and makes it if needed.
/// Never follows a symbolic link: the directory is world-writable.
///
/// Errors: `EACCES` in a directory closed to us, `ELOOP` for a planted link.
fn open(path: &Path) -> Result<File, Errno> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
    // Without O_CREAT first: fs.protected_regular forbids O_CREAT on somebody
    // else's file in a sticky directory even where opening it is allowed.
    match options.open(path) {
        Ok(file) => Ok(file),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let file = options.create_new(true).mode(0o666).open(path)?;
            file.set_permissions(Permissions::from_mode(0o666))?;
            Ok(file)
        }
        Err(e) => Err(e.into()),
    }
}

/// A lock that is held; released, and its file removed, when dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

/// What came of trying to take the lock.
#[derive(Debug)]
pub enum Attempt {
    /// It is ours.
    Taken(Lock),
    /// Somebody has it; the text is what the holder wrote about itself.
    HeldBy(String),
}

/// Tries to take the lock at `path`, and writes `holder` into the file.
///
/// Errors: of open(2), flock(2) or write(2).
pub fn try_take(path: &Path, holder: &str) -> Result<Attempt, Errno> {
    loop {
        let mut file = match open(path) {
            // Made by somebody else between our two attempts.
            Err(e) if e.raw() == libc::EEXIST => continue,
            other => other?,
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut text = String::new();
                // Best effort: the holder is only named, never acted on.
                let _ = file.read_to_string(&mut text);
                return Ok(Attempt::HeldBy(text.trim().to_owned()));
            }
            Err(e) => return Err(e.into()),
        }
        // The former holder may have removed the file between open and flock:
        // then this lock is on a file that nobody else can find.
        if is_still_at(&file, path) {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(holder.as_bytes())?;
            return Ok(Attempt::Taken(Lock { file, path: path.to_owned() }));
        }
    }
}

/// Who holds the lock at `path`, as he wrote it, without touching it: the
/// kernel's list of locks names files by inode (`locks`, of /proc/locks; see
/// proc_locks(5)). Nothing if nobody does.
///
/// Errors: of open(2) or read(2), but not `ENOENT`.
pub fn holder(path: &Path, locks: &str) -> Result<Option<String>, Errno> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK);
    let mut file = match options.open(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let inode = format!(":{}", file.metadata()?.ino());
    // `1: FLOCK  ADVISORY  WRITE 711 08:02:1234 0 EOF`
    let is_ours = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some("FLOCK") && words.nth(3).is_some_and(|file| file.ends_with(&inode))
    };
    if !locks.lines().any(is_ours) {
        return Ok(None);
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(Some(text.trim().to_owned()))
}

fn is_still_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(ours), Ok(theirs)) => ours.dev() == theirs.dev() && ours.ino() == theirs.ino(),
        _ => false,
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while still locked, so that nobody waits on a dead file. In
        // a sticky directory another user's file stays; the lock ends anyway.
        if is_still_at(&self.file, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_taker_hears_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let Attempt::Taken(first) = try_take(&path, "pid 1").unwrap() else { panic!("held") };
        let Attempt::HeldBy(heard) = try_take(&path, "pid 2").unwrap() else { panic!("taken") };
        assert_eq!(heard, "pid 1");
        drop(first);
        assert!(!path.exists());
        assert!(matches!(try_take(&path, "pid 2").unwrap(), Attempt::Taken(_)));
    }

    #[test]
    fn the_holder_is_seen_without_taking_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let locks = || std::fs::read_to_string("/proc/locks").unwrap();
        assert_eq!(holder(&path, &locks()), Ok(None));
        let Attempt::Taken(lock) = try_take(&path, "pid 1").unwrap() else { panic!("held") };
        assert_eq!(holder(&path, &locks()), Ok(Some("pid 1".to_owned())));
        assert_eq!(holder(&path, "1: FLOCK\n"), Ok(None));
        drop(lock);
        std::fs::write(&path, "of one who was killed").unwrap();
        assert_eq!(holder(&path, &locks()), Ok(None));
    }

    #[test]
    fn a_planted_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, target) = (dir.path().join("lock"), dir.path().join("target"));
        std::fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert_eq!(try_take(&path, "x").unwrap_err().raw(), libc::ELOOP);
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    }
}
