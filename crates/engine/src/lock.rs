//! At most one measuring run at a time on the machine, whichever user starts
//! it: two runs would measure each other.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use iolens_sys::lock::{Attempt, Lock, LockedBy, holder, try_take};
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
    if let Some(folder) = stated_folder() {
        return folder;
    }
    // Decided by the folder and not by who asks, so that all users agree.
    let run_lock = Path::new("/run/lock");
    let everybody = run_lock.metadata().is_ok_and(|m| m.is_dir() && m.mode() & 0o002 != 0);
    if everybody { run_lock.into() } else { "/tmp".into() }
}

/// The folder that tests state for what a run writes down of itself. As root it is taken only
/// where it is root's and nobody else may write in it: the journal says what root puts back.
pub(crate) fn stated_folder() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("IOLENS_LOCK_DIR")?);
    let found = folder.metadata().ok()?;
    let is_safe = process::effective_uid() != 0 || (found.uid() == 0 && found.mode() & 0o022 == 0);
    (folder.is_absolute() && is_safe).then_some(folder)
}

impl MachineLock {
    /// Tries for a tenth of a second: somebody who removes the file of a killed run holds the
    /// lock for a moment.
    ///
    /// Errors: [`LockError`].
    pub fn try_take() -> Result<MachineLock, LockError> {
        const PAUSES: u32 = 10;
        const PAUSE: Duration = Duration::from_millis(10);
        for _ in 0..PAUSES {
            match MachineLock::try_once() {
                Err(LockError::HeldBy(_)) => thread::park_timeout(PAUSE),
                other => return other,
            }
        }
        MachineLock::try_once()
    }

    fn try_once() -> Result<MachineLock, LockError> {
        let path = folder().join("iolens.lock");
        let own = format!(
            "pid {} of user {}, since {}",
            process::id(),
            process::effective_uid(),
            iolens_model::moment::utc(clock::unix_ns()),
        );
        match try_take(&path, LockedBy::Anybody, &own) {
            Ok(Attempt::Taken(lock)) => Ok(MachineLock { _lock: lock }),
            Ok(Attempt::HeldBy(holder)) => Err(LockError::HeldBy(holder)),
            Ok(Attempt::Odd(why)) => Err(LockError::Unusable(unusable(&path, &why))),
            Err(errno) => Err(LockError::Unusable(unusable(&path, &errno))),
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
    let seen = holder(&path, &locks).map_err(|errno| unusable(&path, &errno));
    let seen = seen.and_then(|holder| match holder {
        Some(holder) => Ok(Some(holder)),
        None => {
            storage::may_write(&folder).map_err(|errno| unusable(&path, &errno))?;
            Ok(None)
        }
    });
    (path, seen)
}

/// Removes the lock file of a run that was killed; one that is held stays.
pub fn sweep() {
    if folder().join("iolens.lock").exists() {
        // Taking it proves that nobody holds it; dropping it removes the file.
        let _ = MachineLock::try_once();
    }
}

fn unusable(path: &Path, why: &dyn fmt::Display) -> String {
    format!("cannot lock {}: {why}", path.display())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::strange_lock::lock_file;

    /// The seeds of the fuzzer.
    const SEEDS: [&[u8]; 3] = [
        include_bytes!("../../../fuzz/seeds/lock/held"),
        include_bytes!("../../../fuzz/seeds/lock/lines"),
        include_bytes!("../../../fuzz/seeds/lock/locks"),
    ];

    #[test]
    fn the_seeds_of_a_lock_file_are_said_in_a_line() {
        SEEDS.iter().for_each(|seed| lock_file(seed));
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 64,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]
        #[test]
        fn no_lock_file_makes_it_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            which in 0_usize..3,
            at in 0_usize..100,
        ) {
            let seed = SEEDS[which];
            lock_file(&[&seed[..at.min(seed.len())], &bytes].concat());
        }
    }
}
