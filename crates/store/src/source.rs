//! What is imported, read whole into a private file before anything is written elsewhere.
//!
//! The private file is a temporary one of SQLite: it has no name, and goes with the process
//! however that ends. In it lines of JSON become tables, so that all that is imported is copied in
//! one and the same way. The file of the user is never opened to be written:
//!
//! - where no log lies beside it nobody writes it, and it is read as a file that does not
//!   change (`immutable`), which leaves nothing beside it; that it has not changed is checked;
//! - where a log and its index lie beside it, somebody may have it open: it is read as any
//!   reader does, in one snapshot, which keeps no writer waiting;
//! - where a log lies beside it without its index, nobody has it open, but who would read it
//!   in place would make that index: both are copied first, into a folder that goes with the
//!   import, or with the next one where it was killed (`copy`).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use rusqlite::backup::Backup;

use crate::beside::{beside, holds};
use crate::copy::{self, Copy};
use crate::error::said;
use crate::header::{NO_ID, is_id};
use crate::lines::{self, Taken};
use crate::open::{BUSY_LIMIT, beginning, is_database, is_ours, refuse_version};
use crate::read::{profiles, searches};
use crate::schema;
use crate::steps::{Steps, bytes_of};
use crate::tables::Schema;
use crate::trial::Trials;
use crate::upkeep::{READ_ONLY, open_unchanging};
use crate::{Fault, Store, StoreError};

/// How often a file is read anew that has changed meanwhile.
const TRIES: usize = 5;

/// Bytes that a line of JSON may have: a trial of many slices has a tenth of it.
const LINE_MAX: u64 = 256 << 20;

/// Something to import.
#[derive(Debug)]
pub struct Source {
    pub(crate) store: Store,
}

impl Source {
    /// Reads a database of iolens, or runs that were exported whole. Neither the file nor its
    /// directory is changed.
    ///
    /// # Errors
    /// [`StoreError::NotImported`] for what is neither, is cut off or cannot be read, with the
    /// line of a text; [`StoreError::Earlier`], [`StoreError::Newer`]; or what the system or
    /// SQLite says.
    pub fn open(path: &Path) -> Result<Source, StoreError> {
        match beginning(path)? {
            None => Err(refused(path, None, "there is no such file")),
            Some(begins) if is_database(&begins) => Source::of_database(path),
            Some(_) => {
                let file = File::open(path).map_err(|e| refused(path, None, &e.to_string()))?;
                Source::of_lines(path, file)
            }
        }
    }

    /// Reads a database into a private file.
    fn of_database(path: &Path) -> Result<Source, StoreError> {
        is_ours(path)?;
        copy::remove_abandoned(&std::env::temp_dir());
        let read = || {
            let mut private = Connection::open("")?;
            // All that is read of it has this limit together: it is read once.
            let steps = Steps::limit(&mut private, bytes_of(path))?;
            copy_unchanged(path, &mut private)?;
            // As a file that came from somewhere, it may define what is called when it is read.
            private.pragma_update(None, "trusted_schema", false)?;
            if let Some(odd) = schema::oddity(&private)? {
                return Err(refused(path, None, &odd).into());
            }
            refuse_version(path, schema::prepare(&private)?)?;
            refuse_other_tables(path, &private)?;
            private.pragma_update(None, "foreign_keys", true)?;
            Ok(Source { store: Store::of(private, steps, path) })
        };
        read().map_err(|fault: Fault| fault.of("read a database", path))
    }

    /// Reads runs that were exported whole, one behind another; `path` is what messages call
    /// them.
    ///
    /// # Errors
    /// [`StoreError::NotImported`] with the line.
    pub fn of_lines(path: &Path, text: impl Read) -> Result<Source, StoreError> {
        let mut lines = Numbered { text: BufReader::new(text), path, number: 0 };
        let Some(first) = lines.next()? else { return Err(refused(path, None, "it is empty")) };
        let store = Store::nowhere(path)?;
        let begins = store.commit("prepare the tables", |connection| {
            let (mut next, mut begins) = (Some(first), BTreeMap::new());
            while let Some(first) = next {
                lines::check_head(&first).map_err(|why| lines.refused(&why))?;
                let begin = lines.number;
                begins.insert(one_run(connection, &first, &mut lines)?, begin);
                next = lines.next()?;
            }
            Ok(begins)
        })?;
        for (id, begin) in begins {
            let unfit = |unfit: Unfit| refused(path, Some(begin + unfit.trials), &unfit.why);
            store.readable(&id).map_err(unfit)?;
        }
        Ok(Source { store })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// The private copy as results that can be written: nothing of it reaches the file.
    pub fn into_store(self) -> Store {
        self.store
    }
}

impl Store {
    /// Results that stand nowhere, and none yet; messages call them `path`.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn nowhere(path: &Path) -> Result<Store, StoreError> {
        let make = || {
            let private = Connection::open("")?;
            schema::create(&private)?;
            private.pragma_update(None, "foreign_keys", true)?;
            Ok(Store::of(private, Steps::default(), path))
        };
        make().map_err(|error: rusqlite::Error| Fault::from(error).of("prepare the tables", path))
    }
}

/// A file may say that it is of a version and have other tables.
fn refuse_other_tables(path: &Path, private: &Connection) -> Result<(), Fault> {
    let ours = Schema::of(&Store::nowhere(path)?.connection)?;
    match Schema::of(private)?.differs(&ours) {
        None => Ok(()),
        Some(table) => {
            let why = format!("its table `{table}` is not that of its version: it was edited");
            Err(refused(path, None, &why).into())
        }
    }
}

/// Takes the lines of one run; its id.
fn one_run<R: Read>(
    connection: &Connection,
    first: &str,
    lines: &mut Numbered<'_, R>,
) -> Result<String, StoreError> {
    let mut taken = Taken::into(connection).map_err(|e| lines.refused(&said(&e)))?;
    taken.line(first).map_err(|why| lines.refused(&why))?;
    while !taken.is_whole() {
        let Some(line) = lines.next()? else {
            return Err(lines.refused(
                "the file was cut off: the run has no last line, with `end`, behind this one\n  \
                 export it again",
            ));
        };
        taken.line(&line).map_err(|why| lines.refused(&why))?;
    }
    Ok(taken.run().map(|(_, id)| id.to_owned()).unwrap_or_default())
}

/// Lines of a text, counted.
struct Numbered<'a, R> {
    text: BufReader<R>,
    path: &'a Path,
    /// Of the line that was read last, from 1.
    number: u64,
}

impl<R: Read> Numbered<'_, R> {
    fn next(&mut self) -> Result<Option<String>, StoreError> {
        let mut bytes = Vec::new();
        let unreadable = |e: io::Error| refused(self.path, None, &e.to_string());
        let read = (&mut self.text).take(LINE_MAX).read_until(b'\n', &mut bytes);
        if read.map_err(unreadable)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if bytes.pop_if(|byte| *byte == b'\n').is_none() && bytes.len() as u64 == LINE_MAX {
            return Err(self.refused("it is longer than any line of a run"));
        }
        let text = String::from_utf8(bytes);
        text.map(Some).map_err(|_| self.refused("it is not UTF-8 text"))
    }

    /// Why the line that was read last is refused.
    fn refused(&self, why: &str) -> StoreError {
        refused(self.path, Some(self.number), why)
    }
}

fn refused(path: &Path, line: Option<u64>, why: &str) -> StoreError {
    StoreError::NotImported { path: path.to_owned(), line, why: why.to_owned() }
}

/// Size and time of a file; `None` where there is none.
type Stamp = Option<(u64, Option<SystemTime>)>;

/// What changes when a file is written: sizes and times of it and of the logs beside it. Of a
/// file that has an index beside it SQLite sees to one moment; there it is nothing.
fn stamp(path: &Path) -> Result<Vec<Stamp>, StoreError> {
    if is_live(path) {
        return Ok(Vec::new());
    }
    let of = |path: PathBuf| match fs::metadata(&path) {
        Ok(metadata) => Ok(Some((metadata.len(), metadata.modified().ok()))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StoreError::Unreadable { path, source }),
    };
    ["", "-wal", "-journal"].into_iter().map(|suffix| of(beside(path, suffix))).collect()
}

/// Whether somebody may have it open with a log.
fn is_live(path: &Path) -> bool {
    holds(path, "-wal") && beside(path, "-shm").exists()
}

/// Copies a database as it is at one moment.
fn copy_unchanged(path: &Path, private: &mut Connection) -> Result<(), Fault> {
    for _ in 0..TRIES {
        let before = stamp(path)?;
        copy_once(path, private)?;
        if stamp(path)? == before {
            return Ok(());
        }
    }
    let why = "it changed each time that it was read: a run writes it without a log\n  import it \
               when that has ended";
    Err(refused(path, None, why).into())
}

fn copy_once(path: &Path, private: &mut Connection) -> rusqlite::Result<()> {
    if is_live(path) {
        let source = Connection::open_with_flags(path, READ_ONLY)?;
        source.busy_timeout(BUSY_LIMIT)?;
        return all_pages(&source, private);
    }
    if holds(path, "-wal") || holds(path, "-journal") {
        let copy = Copy::of(path, &std::env::temp_dir())
            .map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))?;
        return all_pages(&Connection::open(copy.database())?, private);
    }
    all_pages(&open_unchanging(path)?, private)
}

fn all_pages(source: &Connection, private: &mut Connection) -> rusqlite::Result<()> {
    Backup::new(source, private)?.run_to_completion(i32::MAX, Duration::ZERO, None)
}

/// Why a run cannot be taken, and where it was read up to.
#[derive(Debug)]
pub(crate) struct Unfit {
    /// Trials that were read before.
    trials: u64,
    pub(crate) why: String,
}

impl Store {
    /// Whether a run can be read from its first row to the last.
    pub(crate) fn readable(&self, id: &str) -> Result<(), Unfit> {
        let mut trials = 0;
        let read = self.read_through(id, &mut trials);
        read.map_err(|fault| Unfit { trials, why: fault.why() })
    }

    /// Reads a run; `row` is behind its first one how many were read, and the one that is read.
    fn read_through(&self, id: &str, row: &mut u64) -> Result<(), Fault> {
        if !is_id(id) {
            return Err(Fault::Damaged(NO_ID.to_owned()));
        }
        self.header_with_end(id)?;
        let (connection, mut is_odd) = (self.connection(), false);
        let key = self.key(connection, id)?;
        *row = 1;
        Trials::of(connection, key)?.each(connection, |trial| {
            *row += 1;
            is_odd |= trial.slices.iter().any(|slice| slice.arm >= trial.arms.len());
        })?;
        if is_odd {
            return Err(Fault::Damaged(
                "a trial has slices of an arm that it does not have".to_owned(),
            ));
        }
        searches(connection, key)?;
        profiles(connection, key)?;
        Ok(())
    }
}
