//! Whether a file system has room left, found out by writing to it: where SQLite finds none for
//! what it keeps beside a file, it tells of an I/O error.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

/// More than SQLite makes at once: the index of a WAL is 32 KiB.
static PROBE: [u8; 64 << 10] = [0; 64 << 10];

/// Whether the file system of a file refuses bytes for want of room. The bytes go to a file
/// beside it that is removed again.
pub(crate) fn is_full(path: &Path) -> bool {
    let mut name = path.as_os_str().to_owned();
    name.push(format!("-room-{}", std::process::id()));
    let probe = Path::new(&name);
    let tried = File::create_new(probe).and_then(|mut file| {
        file.write_all(&PROBE)?;
        file.sync_all()
    });
    // Who could not be made need not be removed.
    let _ = fs::remove_file(probe);
    let is_room = |kind| matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    tried.is_err_and(|why| is_room(why.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_with_room_is_not_full_and_keeps_nothing() {
        let directory = tempfile::tempdir().expect("a directory for the test");
        assert!(!is_full(&directory.path().join("results.db")));
        assert_eq!(fs::read_dir(directory.path()).expect("it lists").count(), 0);
        assert!(!is_full(Path::new("/nowhere/results.db")), "that is another fault");
    }
}
