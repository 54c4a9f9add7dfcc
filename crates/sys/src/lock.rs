//! An advisory lock on a file, which the kernel drops when its holder dies.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::errno::Errno;
use crate::file;

/// Bytes that a holder has to name itself.
const HOLDER_MAX: u64 = 256;

/// Who may lock a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockedBy {
    /// Every user: the file is made with mode 0666.
    Anybody,
    /// Whoever made it: 0600.
    Owner,
}

/// Opens the lock file and makes it if needed. Never follows a symbolic link and waits for
/// nobody: the directory is world-writable.
///
/// Errors: `EACCES` in a directory closed to us, `ELOOP` for a planted link.
fn open(path: &Path, locked_by: LockedBy) -> Result<File, Errno> {
    let mode = match locked_by {
        LockedBy::Anybody => 0o666,
        LockedBy::Owner => 0o600,
    };
    let mut options = OpenOptions::new();
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    options.read(true).write(true).custom_flags(flags);
    // Without O_CREAT first: fs.protected_regular forbids O_CREAT on somebody
    // else's file in a sticky directory even where opening it is allowed.
    match options.open(path) {
        Ok(file) => Ok(file),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            match make(path, mode) {
                // No /proc, or no O_TMPFILE: for a moment its mode is what umask(2) leaves of it.
                Err(Errno::ENOENT) => {
                    let file = options.create_new(true).mode(mode).open(path)?;
                    file.set_permissions(Permissions::from_mode(mode))?;
                    Ok(file)
                }
                made => made,
            }
        }
        Err(e) => Err(e.into()),
    }
}

/// Makes the file with its whole mode before it has its name: whoever finds it may open it.
fn make(path: &Path, mode: u32) -> Result<File, Errno> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let file = file::in_folder(folder.unwrap_or(Path::new(".")))?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file::give_name(&file, path)?;
    Ok(file)
}

/// Why a file that somebody put there is none to lock: what is written into a file of
/// several names is written into somebody else's.
fn oddity(file: &File) -> Result<Option<&'static str>, Errno> {
    let found = file.metadata()?;
    Ok(match () {
        () if !found.is_file() => Some("it is not a regular file"),
        () if found.nlink() > 1 => Some("it has several names (hard links)"),
        () => None,
    })
}

/// What the holder wrote about itself: the first line, without what a terminal would obey.
///
/// Errors: of read(2).
fn written_by_holder(file: &File) -> Result<String, Errno> {
    let mut bytes = Vec::new();
    file.take(HOLDER_MAX).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.trim().lines().next().unwrap_or_default();
    Ok(line.chars().filter(|letter| !letter.is_control()).collect())
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
    /// What stands there is no lock file, and why; it was not touched.
    Odd(&'static str),
}

/// Tries to take the lock at `path`, and writes `holder` into the file, which `locked_by` may
/// lock if it is made here.
///
/// Errors: of open(2), flock(2) or write(2).
pub fn try_take(path: &Path, locked_by: LockedBy, holder: &str) -> Result<Attempt, Errno> {
    loop {
        let mut file = match open(path, locked_by) {
            // Made by somebody else between our two attempts.
            Err(e) if e.raw() == libc::EEXIST => continue,
            other => other?,
        };
        if let Some(why) = oddity(&file)? {
            return Ok(Attempt::Odd(why));
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                // Best effort: the holder is only named, never acted on.
                return Ok(Attempt::HeldBy(written_by_holder(&file).unwrap_or_default()));
            }
            Err(e) => return Err(e.into()),
        }
        // The former holder may have removed the file between open and flock:
        // then this lock is on a file that nobody else can find.
        if is_still_at(&file, path) {
            // A link may have been made since.
            if let Some(why) = oddity(&file)? {
                return Ok(Attempt::Odd(why));
            }
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
    let file = match options.open(path) {
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
    Ok(Some(match oddity(&file)? {
        Some(why) => why.to_owned(),
        None => written_by_holder(&file)?,
    }))
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

    fn try_take(path: &Path, holder: &str) -> Result<Attempt, Errno> {
        super::try_take(path, LockedBy::Anybody, holder)
    }

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

    #[test]
    fn a_planted_fifo_is_no_lock_and_nobody_waits_on_it() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
        let held = File::options().read(true).write(true).open(&path).unwrap();
        flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(matches!(try_take(&path, "x").unwrap(), Attempt::Odd("it is not a regular file")));
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        assert_eq!(holder(&path, &locks), Ok(Some("it is not a regular file".to_owned())));
    }

    #[test]
    fn a_hard_link_to_another_file_is_no_lock_and_that_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (path, target) = (dir.path().join("lock"), dir.path().join("target"));
        std::fs::write(&target, "precious").unwrap();
        std::fs::hard_link(&target, &path).unwrap();
        let Attempt::Odd(why) = try_take(&path, "x").unwrap() else { panic!("it was taken") };
        assert_eq!(why, "it has several names (hard links)");
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    }

    #[test]
    fn of_a_huge_lock_file_the_first_line_is_read_and_no_escape_sequence() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        (&file).write_all(b"pid 1\x1b]0;owned\x07\nmore").unwrap();
        file.set_len(1 << 40).unwrap();
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        let Attempt::HeldBy(heard) = try_take(&path, "x").unwrap() else { panic!("not held") };
        assert_eq!(heard, "pid 1]0;owned");
    }

    #[test]
    fn a_lock_of_the_owner_alone_is_closed_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let taken = super::try_take(&path, LockedBy::Owner, "x").unwrap();
        assert!(matches!(taken, Attempt::Taken(_)));
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
    }
}
