//! Opening a file of results: ours or nobody's, never somebody else's.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::beside::{LOGS, beside, holds};
use crate::schema::{self, APPLICATION_ID, EARLIER_ID, SCHEMA_VERSION};
use crate::steps::{Steps, bytes_of};
use crate::{Fault, Store, StoreError};

/// How long an operation waits for another process that is writing. A trial is
/// written in milliseconds; ten seconds are a process that hangs.
pub(crate) const BUSY_LIMIT: Duration = Duration::from_secs(10);

/// First bytes of every SQLite file, and the offsets (big-endian) of two
/// fields behind them: <https://www.sqlite.org/fileformat.html#the_database_header>
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const USER_VERSION_AT: usize = 60;
const APPLICATION_ID_AT: usize = 68;
const HEADER_BYTES: usize = 100;

impl Store {
    /// Opens the results at `path` for writing; makes the directory and the
    /// file where there are none.
    ///
    /// # Errors
    /// A directory that cannot be made, a file that is not ours
    /// ([`StoreError::NotResults`]) or of another schema ([`StoreError::Earlier`],
    /// [`StoreError::Newer`]), which is not touched, or what SQLite says.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            let failed = |source| StoreError::Directory { path: directory.to_owned(), source };
            fs::create_dir_all(directory).map_err(failed)?;
        }
        if identify(path)? == Identity::Nothing {
            make_private(path);
        }
        let store =
            connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        store.doing("open results for writing", refuse_read_only)?;
        store.refuse_oddities()?;
        // The schema is made before the switch to WAL: the mark that says whose
        // file it is must be in the file itself, not in a log beside it.
        store.doing("prepare the tables", |connection| {
            Ok(refuse_version(path, schema::prepare(connection)?)?)
        })?;
        store.doing("switch to WAL", enter_wal)?;
        Ok(store)
    }

    /// Opens the results at `path` for reading, also while a run writes them.
    ///
    /// # Errors
    /// As [`Store::open`]; [`StoreError::Missing`] where there is no file, and
    /// [`StoreError::Empty`] where nothing is in it.
    pub fn open_read_only(path: &Path) -> Result<Store, StoreError> {
        match identify(path)? {
            Identity::Nothing => return Err(StoreError::Missing { path: path.to_owned() }),
            Identity::Empty => return Err(StoreError::Empty { path: path.to_owned() }),
            Identity::Ours => {}
        }
        let store = connect(path, to_read(path))?;
        store.doing("open results for reading", |connection| {
            Ok(connection.pragma_update(None, "query_only", true)?)
        })?;
        store.refuse_oddities()?;
        store.doing("read the schema version", |connection| {
            Ok(refuse_version(path, schema::version(connection)?)?)
        })?;
        Ok(store)
    }

    /// A file of ours defines tables and their indexes; what else could be in one runs when it
    /// is read or written.
    fn refuse_oddities(&self) -> Result<(), StoreError> {
        match self.doing("read the schema", |connection| Ok(schema::oddity(connection)?))? {
            None => Ok(()),
            Some(found) => Err(not_results(&self.path, found)),
        }
    }
}

/// How a file is opened that is only read. SQLite makes a log and its index also to read, and
/// takes them away again only where it might have written. So it may where no log holds anything
/// that it would write into the file.
fn to_read(path: &Path) -> OpenFlags {
    match ["-wal", "-journal"].into_iter().any(|log| holds(path, log)) {
        true => OpenFlags::SQLITE_OPEN_READ_ONLY,
        false => OpenFlags::SQLITE_OPEN_READ_WRITE,
    }
}

/// SQLite opens a file that may not be written for reading, without a word:
/// then the first trial would be lost, after minutes of measuring.
fn refuse_read_only(connection: &Connection) -> Result<(), Fault> {
    let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY);
    match connection.is_readonly("main")? {
        true => Err(rusqlite::Error::SqliteFailure(error, None).into()),
        false => Ok(()),
    }
}

/// Lets readers read while a trial is written. A file system without
/// shared memory keeps the rollback journal: slower, and as safe.
fn enter_wal(connection: &Connection) -> Result<(), Fault> {
    match connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())) {
        // Another process is at it this very moment: it will do it.
        Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(()),
        other => Ok(other?),
    }
}

/// Makes an empty file for its user alone: a command line in it may say more than is meant for
/// others. SQLite gives its logs the mode of the file.
fn make_private(path: &Path) {
    const MODE: u32 = 0o600;
    let mut options = OpenOptions::new();
    // What cannot be made here is SQLite's to refuse.
    let _ = options.write(true).create(true).truncate(false).mode(MODE).open(path);
}

/// What stands at a path.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    /// No file.
    Nothing,
    /// An empty one, which is what SQLite makes first.
    Empty,
    /// A file of ours.
    Ours,
}

fn not_results(path: &Path, found: impl Into<String>) -> StoreError {
    StoreError::NotResults { path: path.to_owned(), found: found.into() }
}

/// What a file begins with, as much as the header of SQLite has; `None` where there is none, and
/// nothing of what is no regular file: what is read from a pipe is gone.
pub(crate) fn beginning(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let read = || -> io::Result<Vec<u8>> {
        let mut header = Vec::with_capacity(HEADER_BYTES);
        if fs::metadata(path)?.is_file() {
            File::open(path)?.take(HEADER_BYTES as u64).read_to_end(&mut header)?;
        }
        Ok(header)
    };
    match read() {
        Ok(header) => Ok(Some(header)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StoreError::Unreadable { path: path.to_owned(), source }),
    }
}

/// Whether what begins so is a database of SQLite, of whatever program.
pub(crate) fn is_database(beginning: &[u8]) -> bool {
    beginning.starts_with(MAGIC)
}

/// Looks at the header without SQLite, which would already touch the journal
/// of a foreign database.
fn identify(path: &Path) -> Result<Identity, StoreError> {
    let refused = |found: &str| Err(not_results(path, found));
    let Some(header) = beginning(path)? else { return Ok(Identity::Nothing) };
    if path.is_dir() {
        return refused("it is a directory");
    }
    if !path.is_file() {
        return refused("it is not a regular file");
    }
    refuse_odd_logs(path)?;
    if header.is_empty() {
        return Ok(Identity::Empty);
    }
    if header.len() < HEADER_BYTES || !is_database(&header) {
        return refused("it is not an SQLite database");
    }
    let found = big_endian(&header, USER_VERSION_AT);
    match big_endian(&header, APPLICATION_ID_AT) {
        APPLICATION_ID => refuse_version(path, found).map(|()| Identity::Ours),
        EARLIER_ID => {
            let (path, supported) = (path.to_owned(), SCHEMA_VERSION);
            Err(StoreError::Earlier { path, found, supported })
        }
        other => refused(&format!(
            "it is an SQLite database of another program (application_id {other:#010x})"
        )),
    }
}

/// SQLite opens what it finds beside a database as its logs: it would follow a link, wait for
/// ever for the other end of a FIFO, and empty a file that has another name elsewhere.
fn refuse_odd_logs(path: &Path) -> Result<(), StoreError> {
    for suffix in LOGS {
        let log = beside(path, suffix);
        match fs::symlink_metadata(&log) {
            Ok(found) if !is_log(&found) => {
                let found =
                    format!("{} beside it is not a regular file with one name", log.display());
                return Err(not_results(path, found));
            }
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(StoreError::Unreadable { path: log, source: e });
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// Whether something may be a log of SQLite: what it makes has no second name.
pub(crate) fn is_log(found: &fs::Metadata) -> bool {
    found.is_file() && found.nlink() == 1
}

/// Whether there is a file of ours.
pub(crate) fn is_ours(path: &Path) -> Result<bool, StoreError> {
    Ok(identify(path)? == Identity::Ours)
}

fn big_endian(header: &[u8], at: usize) -> u32 {
    header[at..at + 4].iter().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

/// Refuses every schema but that of this build.
pub(crate) fn refuse_version(path: &Path, found: u32) -> Result<(), StoreError> {
    match found {
        SCHEMA_VERSION => Ok(()),
        0 => Err(not_results(path, "its schema version is 0, which no iolens writes")),
        _ => {
            let (path, supported) = (path.to_owned(), SCHEMA_VERSION);
            Err(StoreError::Newer { path, found, supported })
        }
    }
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Store, StoreError> {
    let connect = || -> rusqlite::Result<Store> {
        // Without SQLITE_OPEN_URI: a path is a path, whatever is written in it.
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        // Before the first statement, which reads what tables there are.
        let steps = Steps::limit(&mut connection, bytes_of(path))?;
        connection.busy_timeout(BUSY_LIMIT)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        Ok(Store { connection, steps, path: path.to_owned(), is_private: false })
    };
    connect().map_err(|error| Fault::from(error).of("open results", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_another_process_keeps_locked_is_named_with_what_to_do() {
        let directory = tempfile::tempdir().expect("a directory for the test");
        let path = directory.path().join("results.db");
        let mut store = Store::open(&path).expect("a new file opens");
        // The limit itself is no matter here.
        store.connection.busy_timeout(Duration::ZERO).expect("it is set");
        let other = Connection::open(&path).expect("it opens twice");
        other.execute_batch("BEGIN IMMEDIATE").expect("it is locked");
        let message = store.remove(&["0000000a".to_owned()]).expect_err("it is locked").to_string();
        for part in ["results.db", "database is locked", "another process", "--db FILE"] {
            assert!(message.contains(part), "no `{part}` in {message}");
        }
        assert_eq!(store.runs().expect("it can be read meanwhile"), []);
        other.execute_batch("COMMIT").expect("it is given back");
        let message = store.remove(&["0000000a".to_owned()]).expect_err("no such run").to_string();
        assert!(message.contains("no run `0000000a`"), "{message}");
    }
}
