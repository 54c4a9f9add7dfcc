//! Upkeep of the file: what room it takes, runs that are taken out of it, and
//! room that is given back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use iolens_model::run::{Extent, StoppedBy};
use iolens_model::units::Bytes;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::header;
use crate::read::readable_id;
use crate::steps::{Steps, bytes_of};
use crate::{Store, StoreError};

/// What was taken out of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// Trials, failed and skipped ones too.
    pub trials: u64,
    /// Slices of those.
    pub slices: u64,
    /// Phases of searches.
    pub phases: u64,
    /// Sampled trials.
    pub profiles: u64,
    /// Room that is free in the file now, and was not before.
    pub freed: Bytes,
}

impl Store {
    /// How many runs there are, and what room they take.
    ///
    /// # Errors
    /// What the system or SQLite says.
    pub fn extent(&self) -> Result<Extent, StoreError> {
        extent(self.connection(), &self.path)
    }

    /// The same of the results at `path`; nothing where there are none. Changes neither the file
    /// nor its directory, and waits for nobody.
    ///
    /// # Errors
    /// As [`Store::open_read_only`].
    pub fn look(path: &Path) -> Result<Option<Extent>, StoreError> {
        if !crate::open::is_ours(path)? {
            return Ok(None);
        }
        let failed = |source| StoreError::sqlite("look at results", path, source);
        let mut connection = open_untouched(path).map_err(failed)?;
        Steps::limit(&mut connection, bytes_of(path)).map_err(failed)?;
        connection.busy_timeout(Duration::ZERO).map_err(failed)?;
        extent(&connection, path).map(Some)
    }

    /// Removes runs with all that is theirs, every one of them or none: the one
    /// way anything is ever taken out of the file.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`] where there is none, or what SQLite says.
    pub fn remove(&mut self, run_ids: &[String]) -> Result<Removed, StoreError> {
        let failed = self.failed("remove a run");
        let begin = TransactionBehavior::Immediate;
        let transaction = Transaction::new_unchecked(self.connection(), begin).map_err(&failed)?;
        let free_before = free_bytes(&transaction).map_err(&failed)?;
        let mut removed = Removed::default();
        for id in run_ids {
            remove_one(&transaction, self.run_key(id)?, &mut removed).map_err(&failed)?;
        }
        let free_after = free_bytes(&transaction).map_err(&failed)?;
        removed.freed = Bytes(free_after.saturating_sub(free_before));
        transaction.commit().map_err(&failed)?;
        Ok(removed)
    }

    /// Ids of the runs that hold nothing: without a trial, a phase of a search
    /// or a sample, and cut short. A run that began a moment ago is one too, so
    /// that who removes them must know that nothing measures.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn empty_runs(&self) -> Result<Vec<String>, StoreError> {
        self.snapshot("look for empty runs", |connection| {
            let sql = "SELECT id, run FROM run \
                       WHERE NOT EXISTS (SELECT 1 FROM trial WHERE trial.run = run.run) \
                       AND NOT EXISTS (SELECT 1 FROM search_phase WHERE search_phase.run = run.run) \
                       AND NOT EXISTS (SELECT 1 FROM profile WHERE profile.run = run.run) \
                       ORDER BY run";
            let mut statement = connection.prepare(sql)?;
            let mut rows = statement.query([])?;
            let mut ids = Vec::new();
            while let Some(row) = rows.next()? {
                // One whose end cannot be read may be anything.
                let is_cut_short = header::end(connection, row.get(1)?, 0).is_ok_and(|end| {
                    end.is_none_or(|end| end.stopped_by == StoppedBy::Interrupted)
                });
                if is_cut_short {
                    ids.push(readable_id(row)?);
                }
            }
            Ok(ids)
        })
    }

    /// Gives free pages and the log back to the file system. Returns whether
    /// all of it went: somebody who reads at this moment keeps the log.
    ///
    /// # Errors
    /// What SQLite says: a full disk, as the file is written anew before the old
    /// one goes, or somebody who writes.
    pub fn compact(&mut self) -> Result<bool, StoreError> {
        let failed = self.failed("give free room back");
        if free_bytes(self.connection()).map_err(&failed)? > 0 {
            self.connection().execute_batch("VACUUM").map_err(&failed)?;
        }
        // The first column is 1 where somebody kept it from being done.
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy: i64 = self.connection().query_row(sql, [], |row| row.get(0)).map_err(&failed)?;
        Ok(busy == 0)
    }
}

/// Opens a file without leaving anything beside it. SQLite makes a log and its
/// index also to read, unless it is told that nothing changes; and nothing is
/// missed that way where there is no log.
fn open_untouched(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if log_of(path).exists() {
        return Connection::open_with_flags(path, flags);
    }
    let uri = format!("file:{}?immutable=1", escaped(path));
    Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
}

/// A path within a URI: <https://www.sqlite.org/uri.html>.
pub(crate) fn escaped(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;

    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-_.".contains(&b);
    let bytes = path.as_os_str().as_bytes().iter();
    bytes.map(|&b| if plain(b) { char::from(b).into() } else { format!("%{b:02X}") }).collect()
}

/// The log beside a file in WAL mode.
fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// What SQLite may keep beside a file.
pub(crate) const LOGS: [&str; 3] = ["-wal", "-journal", "-shm"];

/// What SQLite keeps beside a file under this suffix.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn extent(connection: &Connection, path: &Path) -> Result<Extent, StoreError> {
    let failed = |source| StoreError::sqlite("measure the results", path, source);
    // `count(*)` is one step, however long it takes.
    let count = "SELECT count(run) FROM run";
    let runs = connection.query_row(count, [], |row| row.get(0)).map_err(failed)?;
    let free_bytes = Bytes(free_bytes(connection).map_err(failed)?);
    let size = |path: &Path| match fs::metadata(path) {
        Ok(metadata) => Ok(Bytes(metadata.len())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Bytes(0)),
        Err(source) => Err(StoreError::Unreadable { path: path.to_owned(), source }),
    };
    Ok(Extent { runs, file_bytes: size(path)?, log_bytes: size(&log_of(path))?, free_bytes })
}

/// Bytes of pages in the file that hold nothing.
fn free_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    Ok(pragma("freelist_count")? * pragma("page_size")?)
}

fn remove_one(connection: &Connection, run: i64, removed: &mut Removed) -> rusqlite::Result<()> {
    let count = |sql| connection.query_row(sql, [run], |row| row.get::<_, u64>(0));
    removed.trials += count("SELECT count(*) FROM trial WHERE run = ?")?;
    removed.slices += count(
        "SELECT count(*) FROM trial JOIN slice ON slice.trial = trial.trial WHERE trial.run = ?",
    )?;
    removed.phases += count("SELECT count(*) FROM search_phase WHERE run = ?")?;
    removed.profiles += count("SELECT count(*) FROM profile WHERE run = ?")?;
    connection.execute("DELETE FROM run WHERE run = ?", [run])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_escaped_for_its_uri() {
        assert_eq!(escaped(Path::new("/a b/é?#%.db")), "/a%20b/%C3%A9%3F%23%25.db");
    }

    #[test]
    fn who_writes_is_in_the_way_and_nothing_is_removed() {
        let directory = tempfile::tempdir().expect("a directory for the test");
        let path = directory.path().join("results.db");
        let mut store = Store::open(&path).expect("it opens");
        let row = "INSERT INTO run (id, started_unix_ns, build, study, run_json) \
                   VALUES ('0000000a', 7, '', 'net', '')";
        store.connection.execute(row, []).expect("a run begins");
        store.connection.busy_timeout(Duration::ZERO).expect("it does not wait");
        let other = Connection::open(&path).expect("it opens");
        other.execute_batch("BEGIN IMMEDIATE").expect("it locks");
        let refused = store.remove(&["0000000a".to_owned()]).expect_err("another one writes");
        let words = refused.to_string();
        assert!(words.contains("cannot remove a run in") && words.contains("locked"), "{words}");
        assert_eq!(store.empty_runs().expect("who writes is not in the way"), ["0000000a"]);
        assert_eq!(
            Store::look(&path).expect("who writes is not in the way").map(|e| e.runs),
            Some(1)
        );
        other.execute_batch("ROLLBACK").expect("it unlocks");
        assert_eq!(store.remove(&["0000000a".to_owned()]).expect("nobody writes").trials, 0);
    }
}
