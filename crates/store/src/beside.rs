//! What SQLite keeps beside a file.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What SQLite may keep beside a file.
pub(crate) const LOGS: [&str; 3] = ["-wal", "-journal", "-shm"];

/// What SQLite keeps beside a file under this suffix.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Whether a log lies beside a file, and is not empty.
pub(crate) fn holds(path: &Path, suffix: &str) -> bool {
    fs::metadata(beside(path, suffix)).is_ok_and(|metadata| metadata.len() > 0)
}

/// More than SQLite makes at once: the index of a WAL is 32 KiB.
static PROBE: [u8; 64 << 10] = [0; 64 << 10];

/// Where SQLite finds no room for what it keeps beside a file it tells of an I/O error: whether the
/// file system of a file refuses bytes for want of room. The bytes go to a file
/// beside it that is removed again.
pub(crate) fn is_full(path: &Path) -> bool {
    let probe = &beside(path, &format!("-room-{}", std::process::id()));
    // What is there already is somebody else's, and stays.
    let tried = File::create_new(probe).and_then(|mut file| {
        let written = file.write_all(&PROBE).and_then(|()| file.sync_all());
        let _ = fs::remove_file(probe);
        written
    });
    let is_room = |kind| matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    tried.is_err_and(|why| is_room(why.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_removes_what_it_made_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.db");
        let probe = beside(&path, &format!("-room-{}", std::process::id()));
        assert!(!is_full(&path) && !probe.exists());
        fs::write(&probe, "somebody else's").unwrap();
        assert!(!is_full(&path));
        assert_eq!(fs::read_to_string(&probe).unwrap(), "somebody else's");
    }
}
