//! What a file system says of a place in it: room and rights, without writing.

use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, StatVfsMountFlags, accessat, statvfs};

use crate::errno::Errno;

/// Bytes that an ordinary user may still write there; see statvfs(3).
///
/// Errors: `ENOENT`, `EACCES`.
pub fn free_bytes(path: &Path) -> Result<u64, Errno> {
    let about = statvfs(path)?;
    Ok(about.f_bavail.saturating_mul(about.f_frsize))
}

/// Whether this process may make files in a folder, or write to a file. Asks
/// for the effective user (`AT_EACCESS`).
///
/// Errors: `EACCES`, `EROFS`, `ENOENT`.
pub fn may_write(path: &Path) -> Result<(), Errno> {
    let wanted = if path.is_dir() { Access::WRITE_OK | Access::EXEC_OK } else { Access::WRITE_OK };
    Ok(accessat(CWD, path, wanted, AtFlags::EACCESS)?)
}

/// Whether this process may execute a file; see [`may_write`].
///
/// Errors: `EACCES`, `ENOENT`.
pub fn may_execute(path: &Path) -> Result<(), Errno> {
    Ok(accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS)?)
}

/// Whether the file system of a program gives it no capabilities at its start
/// (`nosuid`).
///
/// Errors: `ENOENT`, `EACCES`.
pub fn is_nosuid(path: &Path) -> Result<bool, Errno> {
    Ok(statvfs(path)?.f_flag.contains(StatVfsMountFlags::NOSUID))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_ours_has_room_and_may_be_written() {
        let dir = tempfile::tempdir().unwrap();
        assert!(free_bytes(dir.path()).unwrap() > 0);
        assert_eq!(may_write(dir.path()), Ok(()));
        assert_eq!(may_write(&dir.path().join("nothing")), Err(Errno::ENOENT));
        assert_eq!(free_bytes(&dir.path().join("nothing")), Err(Errno::ENOENT));
        assert!(is_nosuid(Path::new("/proc/self")).is_ok());
    }
}
