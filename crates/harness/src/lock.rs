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
pub fn stated_folder() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("IOLENS_LOCK_DIR")?);
    let found = folder.metadata().ok()?;
    let is_safe = is_safe_for(process::effective_uid(), found.uid(), found.mode());
    (folder.is_absolute() && is_safe).then_some(folder)
}

/// Whether a user may believe what stands in a folder of this owner and mode.
fn is_safe_for(user: u32, owner: u32, mode: u32) -> bool {
    user != 0 || (owner == 0 && mode & 0o022 == 0)
}

impl MachineLock {
    /// Tries for a tenth of a second: somebody who removes the file of a killed run holds the
    /// lock for a moment.
    ///
    /// Errors: [`LockError`].
    pub fn try_take() -> Result<MachineLock, LockError> {
        const PAUSE: Duration = Duration::from_millis(10);
        insist(MachineLock::try_once, || thread::park_timeout(PAUSE))
    }

    fn try_once() -> Result<MachineLock, LockError> {
        let path = folder().join("iolens.lock");
        let own = format!(
            "pid {} of user {}, since {}",
            process::id(),
            process::effective_uid(),
            iolens_model::units::utc(clock::unix_ns()),
        );
        match try_take(&path, LockedBy::Anybody, &own) {
            Ok(Attempt::Taken(lock)) => Ok(MachineLock { _lock: lock }),
            Ok(Attempt::HeldBy(holder)) => Err(LockError::HeldBy(holder)),
            Ok(Attempt::Odd(why)) => Err(LockError::Unusable(unusable(&path, &why))),
            Err(errno) => Err(LockError::Unusable(unusable(&path, &errno))),
        }
    }
}

/// Tries again while somebody holds it, with a pause before each of ten more times.
fn insist<L>(
    mut try_once: impl FnMut() -> Result<L, LockError>,
    mut pause: impl FnMut(),
) -> Result<L, LockError> {
    const PAUSES: u32 = 10;
    for _ in 0..PAUSES {
        match try_once() {
            Err(LockError::HeldBy(_)) => pause(),
            other => return other,
        }
    }
    try_once()
}

/// Who is measuring on the machine that `root` shows, seen without taking the
/// lock, and the file that says so.
///
/// Errors: why no run could take the lock.
pub fn look(root: &Root) -> (PathBuf, Result<Option<String>, String>) {
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

    use super::*;
    use crate::strange_lock::lock_file;

    /// The seeds of the fuzzer.
    const SEEDS: [&[u8]; 3] = [
        include_bytes!("../../../fuzz/seeds/lock/held"),
        include_bytes!("../../../fuzz/seeds/lock/lines"),
        include_bytes!("../../../fuzz/seeds/lock/locks"),
    ];

    #[test]
    fn who_holds_it_for_a_moment_stops_nobody() {
        let held = || Err(LockError::HeldBy("pid 7".to_owned()));
        let (mut tries, mut pauses) = (0, 0);
        let try_once = || {
            tries += 1;
            if tries < 4 { held() } else { Ok(tries) }
        };
        assert_eq!(insist(try_once, || pauses += 1), Ok(4));
        assert_eq!(pauses, 3);
        assert_eq!(insist::<u32>(held, || pauses += 1), held());
        assert_eq!(pauses, 13, "and there is an end to it");
    }

    #[test]
    fn root_believes_no_folder_of_others() {
        for (user, owner, mode, is_safe) in [
            (0, 0, 0o40_755, true),
            (0, 0, 0o41_777, false),
            (0, 0, 0o40_775, false),
            (0, 1000, 0o40_700, false),
            (1000, 1000, 0o41_777, true),
        ] {
            assert_eq!(is_safe_for(user, owner, mode), is_safe, "{user} {owner} {mode:o}");
        }
    }

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
