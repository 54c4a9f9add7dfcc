//! At most one measuring run at a time on the machine, whichever user starts
//! it: two runs would measure each other.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use iolens_sys::errno::Errno;
use iolens_sys::lock::{Attempt, Lock, holder, try_take};
use iolens_sys::proc::Root;
use iolens_sys::{clock, process, storage};

/// The machine's lock; released when dropped or when the process dies.
#[derive(Debug)]
pub struct MachineLock {
    _lock: Lock,
}

/// Why the machine is not ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockError {
    /// Another run has it; what it wrote about itself.
    HeldBy(String),
    /// The lock file cannot be used.
    Unusable(String),
}

/// The folder that every user can lock in and that outlives no boot, or the
/// one that is always there. Tests bring their own.
fn folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("IOLENS_LOCK_DIR") {
        return folder.into();
    }
    // Decided by the folder and not by who asks, so that all users agree.
    let run_lock = Path::new("/run/lock");
    let everybody = run_lock.metadata().is_ok_and(|m| m.is_dir() && m.mode() & 0o002 != 0);
    if everybody { run_lock.into() } else { "/tmp".into() }
}

impl MachineLock {
    /// Tries once.
    ///
    /// Errors: [`LockError`].
    pub fn try_take() -> Result<MachineLock, LockError> {
        let path = folder().join("iolens.lock");
        let own = format!(
            "pid {} of user {}, since {}",
            process::id(),
            process::effective_uid(),
            iolens_model::moment::utc(clock::unix_ns()),
        );
        match try_take(&path, &own) {
            Ok(Attempt::Taken(lock)) => Ok(MachineLock { _lock: lock }),
            Ok(Attempt::HeldBy(holder)) => Err(LockError::HeldBy(holder)),
            Err(errno) => Err(LockError::Unusable(unusable(&path, errno))),
        }
    }
}

/// Who is measuring on the machine that `root` shows, seen without taking the
/// lock, and the file that says so.
///
/// Errors: why no run could take the lock.
pub(crate) fn look(root: &Root) -> (PathBuf, Result<Option<String>, String>) {
    let folder = folder();
    let path = folder.join("iolens.lock");
    let locks = root.read("proc/locks").unwrap_or_default();
    let seen = holder(&path, &locks).map_err(|errno| unusable(&path, errno));
    let seen = seen.and_then(|holder| match holder {
        Some(holder) => Ok(Some(holder)),
        None => {
            storage::may_write(&folder).map_err(|errno| unusable(&path, errno))?;
            Ok(None)
        }
    });
    (path, seen)
}

/// Removes the lock file of a run that was killed; one that is held stays.
pub fn sweep() {
    if folder().join("iolens.lock").exists() {
        // Taking it proves that nobody holds it; dropping it removes the file.
        let _ = MachineLock::try_take();
    }
}

fn unusable(path: &Path, errno: Errno) -> String {
    format!("cannot lock {}: {errno}", path.display())
}
