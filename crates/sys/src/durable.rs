//! A small file that is there whole or not at all, whatever ends the process
//! or the machine: written beside its place, brought to the device, moved in.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::errno::Errno;

/// Writes a file of mode 0644, or replaces it. When this returns, so would the
/// machine find it after losing its power. Follows no symbolic link.
///
/// Errors: of open(2), write(2), fsync(2) or rename(2).
pub fn write(path: &Path, text: &str) -> Result<(), Errno> {
    let beside = beside(path);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o644);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
    let mut file = options.open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&beside, path)?;
    sync_folder(path)
}

/// Removes a file, and one that [`write`] may have left beside it. That there
/// is none is no error.
///
/// Errors: of unlink(2) or fsync(2).
pub fn remove(path: &Path) -> Result<(), Errno> {
    for path in [path, &beside(path)] {
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
            _ => {}
        }
    }
    sync_folder(path)
}

/// Where a file is written before it is moved to its place.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

/// Brings the name of a file to the device: fsync(2) of the folder that it is in.
///
/// Errors: of open(2) or fsync(2).
pub fn sync_folder(path: &Path) -> Result<(), Errno> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok(File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_removed_with_its_remains() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        write(&path, "a first and longer text").unwrap();
        write(&path, "second").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "second");
        std::fs::write(beside(&path), "torn").unwrap();
        remove(&path).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(remove(&path), Ok(()), "it is gone already");
        let nowhere = folder.path().join("none/record");
        assert_eq!(write(&nowhere, ""), Err(Errno::ENOENT));
    }

    #[test]
    fn a_planted_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, target) = (folder.path().join("record"), folder.path().join("target"));
        std::fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, beside(&path)).unwrap();
        assert_eq!(write(&path, "x").unwrap_err().raw(), libc::ELOOP);
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    }
}
