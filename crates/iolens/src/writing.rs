//! What is written for the user: files that he names, and pages in their folder beside the
//! database.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use iolens_engine::Errno;
use iolens_engine::durable::{self, Folder};
use iolens_model::run::Run;
use iolens_stats::analysis::Analysis;

use crate::failure::{Failure, USAGE, unusable, usage};

/// Writes the page to the place that is ours, replacing an older one.
pub(crate) fn write_page(run: &Run, analysis: &Analysis, path: &Path) -> Result<(), Failure> {
    replace(path, &iolens_report::html::page(run, analysis))
}

/// In the folder of pages, which is ours: neither it nor the page may be a link, which whoever
/// may write beside the database could point at any file.
pub(crate) fn replace(path: &Path, html: &str) -> Result<(), Failure> {
    let cannot = |errno: Errno| cannot_write(path, &errno);
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(cannot_write(path, &"it names no file"));
    };
    let beside = Folder::open(durable::folder_of(folder)).map_err(cannot)?;
    let folder = beside.made_inside(folder.file_name().unwrap_or_default()).map_err(cannot)?;
    folder.replace(name, html.as_bytes(), MODE).map_err(cannot)
}

/// Removes the page of a run; whether there was one.
///
/// Errors: of the system, where there is one that stays.
pub(crate) fn remove_page(path: &Path) -> Result<bool, Errno> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(false) };
    let beside = Folder::open(durable::folder_of(folder))?;
    match beside.inside(folder.file_name().unwrap_or_default()) {
        Err(Errno::ENOENT) => Ok(false),
        opened => opened?.remove(name),
    }
}

/// Mode of what is written for the user, before the umask.
const MODE: u32 = 0o666;

/// Writes a file that the user named; an existing one only when told to.
pub(crate) fn write_new(path: &Path, bytes: &[u8], overwrite: bool) -> Result<(), Failure> {
    if path.is_dir() || (!overwrite && path.symlink_metadata().is_ok()) {
        return Err(exists(path));
    }
    if !overwrite {
        // A file that appears meanwhile is not replaced either.
        let (folder, name) = place(path)?;
        return folder.create(&name, bytes, MODE).map_err(|errno| match errno {
            Errno::EEXIST => exists(path),
            errno => cannot_write(path, &errno),
        });
    }
    match path.metadata() {
        // A terminal, a pipe, /dev/null: nothing to replace.
        Ok(found) if !found.is_file() => {
            write_into(path, bytes).map_err(|e| cannot_write(path, &e))
        }
        Ok(found) => {
            // What a link of the user's leads to is what is replaced.
            let path = path.canonicalize().map_err(|e| cannot_write(path, &e))?;
            let (folder, name) = place(&path)?;
            let replaced = folder.replace(&name, bytes, found.mode() & 0o777);
            replaced.map_err(|errno| cannot_write(&path, &errno))
        }
        Err(_) => {
            let (folder, name) = place(path)?;
            folder.replace(&name, bytes, MODE).map_err(|errno| cannot_write(path, &errno))
        }
    }
}

/// Writes to a device, a pipe or a terminal; not to a file that has taken its place meanwhile.
fn write_into(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut opened = OpenOptions::new().write(true).open(path)?;
    if opened.metadata()?.is_file() {
        return Err(io::Error::other("it has become a file meanwhile"));
    }
    opened.write_all(bytes)
}

/// Refuses a file that the user named and [`write_new`] would not make: one that is there, and one
/// in a folder that cannot be opened.
pub(crate) fn refuse_unwritable(path: &Path) -> Result<(), Failure> {
    match path.symlink_metadata() {
        Ok(_) => Err(exists(path)),
        Err(_) => place(path).map(|_| ()).map_err(|failure| Failure { code: USAGE, ..failure }),
    }
}

/// Whether two files that are not there yet would be one: the same name in the same folder.
pub(crate) fn is_same_place(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| {
        let folder = durable::folder_of(path).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    a == b || place(a).is_some_and(|a| Some(a) == place(b))
}

/// The opened folder that a path is in, and its name there.
fn place(path: &Path) -> Result<(Folder, OsString), Failure> {
    let name = path.file_name().ok_or_else(|| cannot_write(path, &"it names no file"))?;
    let folder = Folder::open(durable::folder_of(path)).map_err(|e| cannot_write(path, &e))?;
    Ok((folder, name.to_owned()))
}

/// That a file is not written where something is already.
pub(crate) fn exists(path: &Path) -> Failure {
    let [what, advice] = match path.is_dir() {
        true => ["it is a directory", "name a file in it"],
        false => ["it exists", "replace it with --overwrite"],
    };
    usage!("cannot write {}: {what}\n  {advice}", path.display())
}

pub(crate) fn cannot_write(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    unusable!("cannot write {}: {error}", path.display())
}
