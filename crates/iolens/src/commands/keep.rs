//! `iolens keep`: programs of the user's that later ones are compared with. Each is a file in a
//! folder of ours beside the database, by its name.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use iolens_engine::Errno;
use iolens_engine::durable::{self, Folder};
use iolens_model::units::Bytes;

use crate::args::Keep;
use crate::failure::{Failure, unusable, usage};
use crate::{output, places};

/// Keeps a program, removes one, or lists them.
pub(crate) fn keep(args: &Keep) -> Result<ExitCode, Failure> {
    let database = places::database(args.db.as_deref())?;
    match (&args.file, &args.name, &args.rm) {
        (Some(file), Some(name), _) => take(&database, file, name)?,
        (_, _, Some(name)) => remove(&database, name)?,
        _ => list(&database)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The file of a kept program.
pub(crate) fn path(database: &Path, name: &str) -> Result<PathBuf, Failure> {
    let path = places::kept(database).join(name);
    match path.is_file() {
        true => Ok(path),
        false => Err(none(database, name)),
    }
}

/// SHA-256 of a kept program.
pub(crate) fn sha256(database: &Path, name: &str) -> Result<String, Failure> {
    let path = path(database, name)?.display().to_string();
    Ok(iolens_programs::facts(&[path]).map_err(Failure::unusable)?.sha256)
}

fn none(database: &Path, name: &str) -> Failure {
    let kept = match names(database).as_slice() {
        [] => "nothing is kept yet".to_owned(),
        names => format!("kept: {}", names.join(", ")),
    };
    usage!("no program is kept as {name}: {kept}\n  `iolens keep FILE --as {name}` keeps one")
}

fn names(database: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(places::kept(database)).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

fn take(database: &Path, file: &Path, name: &str) -> Result<(), Failure> {
    let told = [file.display().to_string()];
    let told = if told[0].contains('/') { told } else { [format!("./{}", told[0])] };
    let facts = iolens_programs::facts(&told).map_err(Failure::usage)?;
    let bytes = std::fs::read(file).map_err(|e| usage!("cannot read {}: {e}", file.display()))?;
    let folder = places::kept(database);
    let made = folder_of(&folder).and_then(|folder| folder.create(name.as_ref(), &bytes, MODE));
    made.map_err(|errno| match errno {
        Errno::EEXIST => usage!(
            "a program is kept as {name} already, and is not replaced\n  take another name, or \
             first: iolens keep --rm {name}"
        ),
        errno => unusable!("cannot keep {} in {}: {errno}", file.display(), folder.display()),
    })?;
    let size = Bytes(bytes.len() as u64);
    output::result(&format!("kept {name}: {}, {size}, SHA-256 {}", facts.path, facts.sha256));
    output::note(&format!(
        "iolens ab --against {name} COMMAND compares a program with it (--loop, if both speak the \
         loop protocol)"
    ));
    Ok(())
}

/// Mode of a kept program, before the umask.
const MODE: u32 = 0o777;

/// The folder of kept programs, made where it is not there; no link is followed to it.
fn folder_of(kept: &Path) -> Result<Folder, Errno> {
    let beside = durable::folder_of(kept);
    // Where nothing was measured yet, the folder of results is not there.
    std::fs::create_dir_all(beside)?;
    let beside = Folder::open(beside)?;
    beside.made_inside(kept.file_name().unwrap_or_default())
}

fn remove(database: &Path, name: &str) -> Result<(), Failure> {
    let kept = places::kept(database);
    let removed = match Folder::open(&kept) {
        Err(Errno::ENOENT) => Ok(false),
        opened => opened.and_then(|folder| folder.remove(name.as_ref())),
    };
    match removed {
        Ok(true) => {
            output::result(&format!("removed {name}"));
            Ok(())
        }
        Ok(false) => Err(none(database, name)),
        Err(errno) => Err(unusable!("cannot remove {name} from {}: {errno}", kept.display())),
    }
}

fn list(database: &Path) -> Result<(), Failure> {
    let names = names(database);
    if names.is_empty() {
        output::result("no programs are kept; iolens keep FILE --as NAME keeps one");
        return Ok(());
    }
    for name in names {
        let sha256 = sha256(database, &name)?;
        output::result(&format!("{name}  SHA-256 {sha256}"));
    }
    Ok(())
}
