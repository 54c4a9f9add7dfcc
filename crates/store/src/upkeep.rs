//! Upkeep of the file: what room it takes, runs that are taken out of it, and
//! room that is given back.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use iolens_model::run::{Extent, StoppedBy};
use iolens_model::units::Bytes;
use rusqlite::{Connection, OpenFlags, Row};

use crate::beside::beside;
use crate::header::STORED;
use crate::header::readable_id;
use crate::steps::{Steps, bytes_of};
use crate::{Fault, Store, StoreError, header, row};

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
        self.doing("measure the results", |connection| extent(connection, &self.path))
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
        let look = || {
            // Nothing is missed where there is no log.
            let mut connection = match beside(path, "-wal").exists() {
                true => Connection::open_with_flags(path, READ_ONLY)?,
                false => open_unchanging(path)?,
            };
            Steps::limit(&mut connection, bytes_of(path))?;
            connection.busy_timeout(Duration::ZERO)?;
            extent(&connection, path)
        };
        look().map(Some).map_err(|fault| fault.of("look at results", path))
    }

    /// Removes runs with all that is theirs, every one of them or none: the one
    /// way anything is ever taken out of the file.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`] where there is none, or what SQLite says.
    pub fn remove(&mut self, run_ids: &[String]) -> Result<Removed, StoreError> {
        self.commit("remove a run", |connection| {
            let free_before = free_bytes(connection)?;
            let mut removed = Removed::default();
            for id in run_ids {
                let run = self.key(connection, id)?;
                let count = |table| row::count(connection, table, run);
                removed.trials += count("trial")?;
                removed.slices += count("trial JOIN slice USING (trial)")?;
                removed.phases += count("search_phase")?;
                removed.profiles += count("profile")?;
                connection.execute("DELETE FROM run WHERE run = ?", [run])?;
            }
            removed.freed = Bytes(free_bytes(connection)?.saturating_sub(free_before));
            Ok(removed)
        })
    }

    /// Ids of the runs that hold nothing: without a trial, a phase of a search
    /// or a sample, and cut short. A run that began a moment ago is one too, so
    /// that who removes them must know that nothing measures.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn empty_runs(&self) -> Result<Vec<String>, StoreError> {
        self.snapshot("look for empty runs", |connection| {
            let nothing = format!(
                "WHERE {STORED} = 0 AND NOT EXISTS (SELECT 1 FROM profile WHERE profile.run = run.run) \
                 ORDER BY run.run"
            );
            let cut_short = |row: &Row<'_>| {
                // One whose end cannot be read may be anything.
                let is_cut_short = header::end(row).is_ok_and(|end| {
                    end.is_none_or(|end| end.stopped_by == StoppedBy::Interrupted)
                });
                is_cut_short.then(|| readable_id(row)).transpose()
            };
            let ids = row::all(connection, &header::select("", &nothing), [], cut_short)?;
            Ok(ids.into_iter().flatten().collect())
        })
    }

    /// Gives free pages and the log back to the file system. Returns whether
    /// all of it went: somebody who reads at this moment keeps the log.
    ///
    /// # Errors
    /// What SQLite says: a full disk, as the file is written anew before the old
    /// one goes, or somebody who writes.
    pub fn compact(&mut self) -> Result<bool, StoreError> {
        self.doing("give free room back", |connection| {
            if free_bytes(connection)? > 0 {
                connection.execute_batch("VACUUM")?;
            }
            // The first column is 1 where somebody kept it from being done.
            let busy: i64 = row::first(connection, "PRAGMA wal_checkpoint(TRUNCATE)", [])?;
            Ok(busy == 0)
        })
    }
}

/// How files are opened that are not written to.
pub(crate) const READ_ONLY: OpenFlags =
    OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// Opens a file that nobody writes, without leaving anything beside it. SQLite makes a log and its
/// index also to read, unless it is told that nothing changes.
pub(crate) fn open_unchanging(path: &Path) -> rusqlite::Result<Connection> {
    let uri = format!("file:{}?immutable=1", escaped(path));
    Connection::open_with_flags(uri, READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
}

/// A path within a URI: <https://www.sqlite.org/uri.html>.
fn escaped(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;

    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-_.".contains(&b);
    let bytes = path.as_os_str().as_bytes().iter();
    bytes.map(|&b| if plain(b) { char::from(b).into() } else { format!("%{b:02X}") }).collect()
}

fn extent(connection: &Connection, path: &Path) -> Result<Extent, Fault> {
    let size = |path: PathBuf| match fs::metadata(&path) {
        Ok(metadata) => Ok(Bytes(metadata.len())),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Bytes(0)),
        Err(source) => Err(StoreError::Unreadable { path, source }),
    };
    Ok(Extent {
        // `count(*)` is one step, however long it takes.
        runs: row::first(connection, "SELECT count(run) FROM run", [])?,
        file_bytes: size(path.to_owned())?,
        log_bytes: size(beside(path, "-wal"))?,
        free_bytes: Bytes(free_bytes(connection)?),
    })
}

/// Bytes of pages in the file that hold nothing.
fn free_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    Ok(pragma("freelist_count")? * pragma("page_size")?)
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

    #[test]
    fn a_file_system_with_room_is_not_full_and_keeps_nothing() {
        let directory = tempfile::tempdir().expect("a directory for the test");
        assert!(!crate::beside::is_full(&directory.path().join("results.db")));
        assert_eq!(fs::read_dir(directory.path()).expect("it lists").count(), 0);
        assert!(!crate::beside::is_full(Path::new("/nowhere/results.db")), "that is another fault");
    }
}
