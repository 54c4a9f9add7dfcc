//! Everything that can go wrong with the file of results, and what to do.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use thiserror::Error;

use crate::beside::is_full;

/// Why the store could not do what it was asked.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The directory of the file could not be made.
    #[error(
        "cannot create the directory {path} for results: {source}\n  \
         name a file in a directory of yours with --db FILE"
    )]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file could not be looked at.
    #[error("cannot read {path}: {source}\n  name another file with --db FILE")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no file to read.
    #[error(
        "there are no results at {path}: the file does not exist\n  \
         `iolens run net --quick` makes the first ones, --db FILE reads others"
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// There is a file, and nothing was ever written to it.
    #[error(
        "there are no results in {path}: the file is empty\n  \
         `iolens run net --quick --db FILE` measures into it, another --db FILE reads others"
    )]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// SQLite could not write, and the file system has no room.
    #[error(
        "cannot {doing} in {path}: the file system of that file is full\n  \
         free space there, or name a file on another one with --db FILE; what was committed \
         before is safe"
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
    },
    /// The file is no database.
    #[error(
        "{path} is not a file of results: {found}; it was left as it is\n  \
         name another file with --db FILE"
    )]
    NotResults {
        /// The file.
        path: PathBuf,
        /// What it is instead, as far as can be told.
        found: String,
    },
    /// A newer iolens wrote the file.
    #[error(
        "{path} has schema version {found}, this build of iolens knows versions up to {supported}\n  \
         use the newer iolens that wrote it, or another file with --db FILE"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: u32,
        /// The version of this build.
        supported: u32,
    },
    /// A build from before the first release wrote the file.
    #[error(
        "{path} was written by an earlier build of iolens (schema {found}); this build reads schema \
         {supported}\n  keep the build that wrote it to read it, and start a new file with \
         --db FILE, or move this one away"
    )]
    Earlier {
        /// The file.
        path: PathBuf,
        /// The version of the file, of another count than ours.
        found: u32,
        /// The version of this build.
        supported: u32,
    },
    /// SQLite refused an operation.
    #[error("cannot {doing} in {path}: {}{}", said(source), advice(source))]
    Sqlite {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// A value that would not come back as it is.
    #[error("cannot store {what}: {why}\n  this is an error of iolens, please report it")]
    NotStorable {
        /// The value.
        what: &'static str,
        /// Why not.
        why: String,
    },
    /// A row that no iolens wrote in this way.
    #[error(
        "cannot {doing} in {path}: {why}\n  \
         the file is damaged or was edited; keep a copy, `iolens rm` removes the run"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What is wrong in the file.
        why: String,
    },
    /// Reading took far more steps than a file of its size can need.
    #[error(
        "cannot {doing} in {path}: it takes more steps than a file of its size can need, as its pages \
         lead to each other again and again\n  the file is damaged or was edited; keep a copy, \
         --db FILE starts a new one"
    )]
    Endless {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
    },
    /// A file that cannot be imported.
    #[error(
        "cannot import {path}: {}{why}\n  nothing of it was imported",
        line.map(|line| format!("line {line}: ")).unwrap_or_default()
    )]
    NotImported {
        /// The file.
        path: PathBuf,
        /// The line of a text, from 1.
        line: Option<u64>,
        /// What is wrong with it.
        why: String,
    },
    /// A run cannot begin under the label of another machine.
    #[error(
        "cannot begin a run in {path}: `{label}`, the name of this host, is the label of another \
         machine there, that of run {run} ({why})\n  measure into another file with --db FILE, or \
         `iolens rm` the runs of that machine and import them with --host NAME"
    )]
    LabelTaken {
        /// The file.
        path: PathBuf,
        /// The label.
        label: String,
        /// A run of the other machine.
        run: String,
        /// What tells the two apart.
        why: String,
    },
    /// There are only runs of other machines, and the last one of this was asked for.
    #[error(
        "there are no runs in {path} that were measured into it: all were imported\n  name one of \
         them, `iolens runs` lists them"
    )]
    NoOwnRuns {
        /// The file.
        path: PathBuf,
    },
    /// There are no runs to choose from.
    #[error("there are no runs in {path}\n  `iolens run net --quick` makes one")]
    NoRuns {
        /// The file.
        path: PathBuf,
    },
    /// No run answers to this.
    #[error("no run `{wanted}` in {path}\n  `iolens runs` lists them")]
    NoSuchRun {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        wanted: String,
    },
    /// More than one run answers to this.
    #[error("`{wanted}` may be any of {}\n  write one of these", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// Ids that begin so, or of runs with that name, oldest first.
        candidates: Vec<String>,
    },
}

/// What goes wrong within an operation. Where it is reported, it gets the operation's name.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// What is wrong in the file.
    #[error("{0}")]
    Damaged(String),
    /// What has its words already.
    #[error(transparent)]
    Told(#[from] StoreError),
}

impl Fault {
    /// Of `doing` on `path`.
    pub(crate) fn of(self, doing: &'static str, path: &Path) -> StoreError {
        use rusqlite::Error::{
            FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error,
        };

        let path = path.to_owned();
        let source = match self {
            Fault::Told(error) => return error,
            Fault::Damaged(why) => return StoreError::Damaged { doing, path, why },
            Fault::Sqlite(source) => source,
        };
        match &source {
            FromSqlConversionFailure(..)
            | IntegralValueOutOfRange(..)
            | InvalidColumnType(..)
            | Utf8Error(..) => StoreError::Damaged { doing, path, why: said(&source) },
            _ if is_endless(&source) => StoreError::Endless { doing, path },
            // Where the index of the WAL finds no room SQLite tells of I/O alone.
            _ if is_of_io(&source) && is_full(&path) => StoreError::Full { doing, path },
            _ => StoreError::Sqlite { doing, path, source },
        }
    }

    /// What is wrong, without the operation and the file.
    pub(crate) fn why(self) -> String {
        match self {
            Fault::Sqlite(error) => said(&error),
            Fault::Damaged(why) | Fault::Told(StoreError::Damaged { why, .. }) => why,
            Fault::Told(other) => other.to_string(),
        }
    }
}

/// Whether it was ended for its steps; nothing else ever interrupts SQLite.
fn is_endless(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted)
}

fn is_of_io(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen))
}

/// What SQLite calls an interruption, which only a limit of ours is.
const ENDLESS: &str = "it takes more steps than a file of its size can need";

/// What SQLite said, without the statement that it said it of.
pub(crate) fn said(error: &rusqlite::Error) -> String {
    match error {
        error if is_endless(error) => ENDLESS.to_owned(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        rusqlite::Error::FromSqlConversionFailure(_, _, why) => why.to_string(),
        other => other.to_string(),
    }
}

/// What the user can do about an error of SQLite, as a line of its own.
fn advice(error: &rusqlite::Error) -> &'static str {
    let extended = error.sqlite_error().map(|error| error.extended_code);
    if extended == Some(rusqlite::ffi::SQLITE_READONLY_ROLLBACK) {
        return "\n  what wrote it was killed, and its unfinished change lies in the -journal beside \
                it, which reading never touches: `iolens gc --db FILE` takes it back; where you may \
                not write, `iolens import FILE --db NEW` reads both through a copy";
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => {
            "\n  free space on that file system, or name a file on another one with --db FILE; \
             what was committed before is safe"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "\n  another process has been writing to it for 10 s: wait for that process to end, \
             or name another file with --db FILE"
        }
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
            "\n  the file and its directory must be writable, for reading too (WAL keeps an index \
             beside the file): copy it to a directory of yours, or name another with --db FILE"
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            "\n  keep a copy of the file and its -wal; `sqlite3 FILE .recover` may save rows; \
             --db FILE starts a new one"
        }
        Some(ErrorCode::Unknown) => {
            "\n  its tables are not those of its version: the file is damaged or was edited; keep a \
             copy, --db FILE starts a new one"
        }
        Some(ErrorCode::SystemIoFailure) => {
            "\n  the kernel log (`dmesg`) may say more about the device"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: i32, expect: &str) {
        let source = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        let error = Fault::from(source).of("append a trial", Path::new("results.db"));
        let message = error.to_string();
        assert!(message.starts_with("cannot append a trial in results.db: "), "{message}");
        assert!(message.contains(expect), "{message}");
    }

    #[test]
    fn errors_say_what_to_do() {
        check(rusqlite::ffi::SQLITE_FULL, "free space");
        check(rusqlite::ffi::SQLITE_BUSY, "another process");
        check(rusqlite::ffi::SQLITE_READONLY, "must be writable");
        check(rusqlite::ffi::SQLITE_READONLY_ROLLBACK, "`iolens gc --db FILE` takes it back");
        check(rusqlite::ffi::SQLITE_CORRUPT, ".recover");
        check(rusqlite::ffi::SQLITE_IOERR, "dmesg");
    }
}
