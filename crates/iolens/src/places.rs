//! Where results live: the XDG data directory, or beside `--db FILE`.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use iolens_model::command_line::quoted;

use crate::failure::{Failure, unusable, usage};

/// The database: `--db`, or `iolens/iolens.db` in the XDG data directory.
pub(crate) fn database(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = named(given)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| given.is_some() && !folder.exists()) {
        None => Ok(path),
        Some(folder) => Err(usage!(
            "cannot keep results in {}: there is no folder {}\n  make it, or name another file",
            path.display(),
            folder.display()
        )),
    }
}

/// The file of `--db` as it is typed, once it was asked for.
static NAMED: OnceLock<String> = OnceLock::new();

/// What `--db` named, as it is typed.
pub(crate) fn named_by_user() -> Option<&'static str> {
    NAMED.get().map(String::as_str)
}

fn named(given: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = given {
        if let Some(name) = path.to_str() {
            NAMED.get_or_init(|| quoted(name));
        }
        return Ok(path.to_owned());
    }
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .map(|data| data.join("iolens/iolens.db"))
        .ok_or_else(|| {
            Failure::unusable(
                "cannot find a place for results: neither XDG_DATA_HOME nor HOME is set\n  \
                 name a file with --db FILE",
            )
        })
}

/// The database, which must be there already.
pub(crate) fn existing_database(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = named(given)?;
    if path.exists() {
        return Ok(path);
    }
    Err(unusable!(
        "there are no results yet: {} does not exist\n  measure with `iolens run net --quick`",
        path.display()
    ))
}

/// The folder of kept programs, beside the database.
pub(crate) fn kept(database: &Path) -> PathBuf {
    database.parent().unwrap_or(Path::new("")).join("kept")
}

/// The page of a run, in a folder of ours beside the database.
pub(crate) fn page(database: &Path, run: &str) -> PathBuf {
    let folder = database.parent().unwrap_or(Path::new("")).join("reports");
    folder.join(format!("{run}.html"))
}
