//! What stands in the lock of the machine, which every user may write.

use std::os::unix::fs::MetadataExt;

use iolens_sys::lock;

/// The machine's lock, and behind a NUL the kernel's list of locks but for the file's inode,
/// which stands as `INODE` in it.
pub fn lock_file(bytes: &[u8]) {
    let (text, locks) = match bytes.iter().position(|byte| *byte == 0) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &b"1: FLOCK ADVISORY WRITE 711 08:02:INODE 0 EOF"[..]),
    };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("iolens.lock");
    std::fs::write(&path, text).expect("it can be written");
    let inode = path.metadata().expect("it is there").ino().to_string();
    let locks = String::from_utf8_lossy(locks).replace("INODE", &inode);
    if let Some(holder) = lock::holder(&path, &locks).expect("it can be read") {
        assert!(!holder.contains(char::is_control), "{holder:?}");
        assert!(holder.chars().count() <= 256);
    }
}
