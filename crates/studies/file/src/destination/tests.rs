//! Where nothing is written to, and what is there after a writing that failed.

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;

use super::*;
use crate::skip;

fn refusal(path: &Path, existing: Existing, source: Option<&Subject>) -> String {
    Destination::check(path, existing, source).map(drop).unwrap_err()
}

/// Refused with and without consent.
fn refused(path: &Path, source: Option<&Subject>, expect: &str) {
    for existing in [Existing::Refuse, Existing::Overwrite] {
        let why = refusal(path, existing, source);
        assert!(why.contains(expect) && why.contains(&path.display().to_string()), "{why}");
    }
}

#[test]
fn what_is_no_regular_file_is_never_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("file"), "precious").unwrap();
    symlink("file", path("link")).unwrap();
    symlink("nowhere", path("dangling")).unwrap();
    let _listener = UnixListener::bind(path("socket")).unwrap();
    assert!(Command::new("mkfifo").arg(path("fifo")).status().unwrap().success());
    refused(&path("link"), None, "it is a symbolic link to file, and links are not followed");
    refused(&path("dangling"), None, "a symbolic link to nowhere, which does not exist");
    refused(&path("socket"), None, "it is a socket");
    refused(&path("fifo"), None, "it is a FIFO");
    refused(folder.path(), None, "it is a directory");
    refused(Path::new("/dev/null"), None, "it is a character device, and devices are never");
    refused(Path::new("/"), None, "names a directory");
    refused(&path("folder/"), None, "names a directory");
    assert!(refusal(Path::new(""), Existing::Refuse, None).contains("is empty"));
    assert_eq!(std::fs::read_to_string(path("file")).unwrap(), "precious");
    let disks = std::fs::read_dir("/dev").unwrap().flatten();
    let mut disks = disks.map(|entry| entry.path());
    let is_disk =
        |path: &PathBuf| Found::at(path).is_ok_and(|found| found.about().kind == Kind::BlockDevice);
    match disks.find(is_disk) {
        Some(disk) => refused(&disk, None, "it is a block device, and devices are never"),
        None => skip::note(
            "destination::tests::what_is_no_regular_file_is_never_written_to",
            "this machine shows no block device",
        ),
    }
}

#[test]
fn a_file_is_not_copied_onto_itself_by_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let (file, other) = (folder.path().join("file"), folder.path().join("other"));
    std::fs::write(&file, "precious").unwrap();
    std::fs::hard_link(&file, &other).unwrap();
    let source = Subject::open(&file).unwrap();
    refused(&file, Some(&source), "that is the source itself");
    refused(&other, Some(&source), "it is the same file as");
    refused(&folder.path().join("./file"), Some(&source), "copying a file onto itself");
    // By way of a link to its folder.
    symlink(folder.path(), folder.path().join("here")).unwrap();
    refused(&folder.path().join("here/file"), Some(&source), "it is the same file as");
}

#[test]
fn what_cannot_be_made_is_said_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("file"), "").unwrap();
    refused(&path("none/file"), None, "ENOENT (no such file or directory): there is no folder");
    refused(&path("file/below"), None, "ENOTDIR");
    refused(&path(&"x".repeat(256)), None, "its last name has 256 bytes");
    refused(Path::new("/dev/iolens-none"), None, "is where devices are");
    let destination = Destination::check(&path("new"), Existing::Refuse, None).unwrap();
    let why = destination.check_room(1 << 62).unwrap_err();
    assert!(why.contains("4 EiB") || why.contains("GiB") && why.contains("free"), "{why}");
    assert_eq!(destination.check_room(1), Ok(()));
    assert!(!path("new").exists(), "checking makes nothing");
    if iolens_sys::process::effective_uid() == 0 {
        return skip::note(
            "destination::tests::what_cannot_be_made_is_said_before",
            "root may write anywhere",
        );
    }
    let closed = std::fs::Permissions::from_mode(0o555);
    std::fs::set_permissions(folder.path(), closed).unwrap();
    refused(&path("new"), None, "this user may not make files there");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn leftovers(folder: &Path) -> Leftovers {
    Leftovers::in_folder(&folder.join("records"))
}

#[test]
fn a_new_file_is_there_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    for completes in [false, true] {
        let destination = Destination::check(&path, Existing::Refuse, None).unwrap();
        let target = destination.open(&leftovers(folder.path())).unwrap();
        target.file().write_all(b"half").unwrap();
        assert!(!path.exists());
        assert!(target.remains().contains("there is no"), "{}", target.remains());
        match completes {
            true => target.complete().unwrap(),
            false => drop(target),
        }
        assert_eq!(path.exists(), completes);
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "half");
}

#[test]
fn a_name_that_somebody_took_meanwhile_stays_his() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    let destination = Destination::check(&path, Existing::Refuse, None).unwrap();
    let target = destination.open(&leftovers(folder.path())).unwrap();
    std::fs::write(&path, "theirs").unwrap();
    let why = target.complete().unwrap_err();
    assert!(why.contains("somebody has made one there meanwhile"), "{why}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
}

#[test]
fn where_no_file_is_without_a_name_it_has_another_until_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    for completes in [false, true] {
        let (file, state) = beside(&path, &leftovers(folder.path())).unwrap();
        let target = Target { file, path: path.clone(), state };
        target.file().write_all(b"half").unwrap();
        assert!(!path.exists());
        match completes {
            true => target.complete().unwrap(),
            false => drop(target),
        }
        let names = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, usize::from(completes), "the file alone");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "half");
}

#[test]
fn what_is_written_over_stays_as_it_is_when_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old");
    std::fs::write(&path, "0123456789").unwrap();
    let destination = Destination::check(&path, Existing::Overwrite, None).unwrap();
    assert_eq!(destination.existing().unwrap().bytes, 10);
    let target = destination.open(&leftovers(folder.path())).unwrap();
    target.file().write_all(b"new").unwrap();
    assert!(target.remains().contains("partly new, partly as it was"), "{}", target.remains());
    drop(target);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new3456789");
    let destination = Destination::check(&path, Existing::Overwrite, None).unwrap();
    let target = destination.open(&leftovers(folder.path())).unwrap();
    assert_eq!([target.cut(4), target.cut(4)], [Ok(true), Ok(false)]);
    target.complete().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new3");
}
