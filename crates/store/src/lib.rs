//! Results of iolens: one SQLite file, append-only, raw counts only. Whatever
//! can be computed from them is computed when a run is read, so that a better
//! analysis applies to old runs as well.
//!
//! - A trial is one transaction: it is there with all its arms and slices, or
//!   not at all.
//! - Counts are columns with their unit in the name, NULL where a count was
//!   not taken; facts that are read only together are JSON. Both follow from the
//!   types of the model: a new axis or count needs nothing here.
//! - A file of another schema is refused and left as it is. A change of the plain
//!   data that stored JSON does not deserialize into is another schema.
//! - Runs of other files come in whole, through a private copy, and say where they came from
//!   ([`Store::import`]).
//!
//! # Durability
//! The journal is WAL with `synchronous = NORMAL`. A commit then has written
//! its frames to the WAL with `write(2)`: they are in the page cache, which
//! belongs to the kernel, so no signal to the process, SIGKILL included, can
//! take a committed trial back (`tests/it/crash.rs` kills a writer to see).
//! `FULL` would add an `fsync` per commit. That buys the last trials before a
//! power cut or a kernel crash, and pays with device I/O and its interrupts
//! between trials of the measurement; no crash of either kind can damage the
//! file. The end of a run syncs: a run that is complete survives power cuts.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod beside;
mod copy;
mod counted;
mod error;
mod header;
mod import;
mod lines;
mod open;
mod read;
mod row;
mod schema;
mod shared;
mod source;
mod steps;
mod tables;
mod trial;
mod upkeep;
mod write;

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use error::Fault;
pub use error::StoreError;
pub use header::is_id;
pub use import::{Fate, Imported, Importing};
pub use lines::{FORMAT, FORMAT_VERSION};
pub use read::RunSummary;
pub use schema::{APPLICATION_ID, SCHEMA_VERSION};
pub use source::Source;
use steps::Steps;
pub use upkeep::Removed;

/// An open file of results.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    /// Of the operation under way; of a private copy those of all operations together.
    steps: Steps,
    path: PathBuf,
    /// Whether it is a copy that no other connection can open.
    is_private: bool,
}

impl Store {
    /// A private copy of what stands at `path`.
    fn of(connection: Connection, steps: Steps, path: &Path) -> Store {
        Store { connection, steps, path: path.to_owned(), is_private: true }
    }

    /// The connection, for an operation that begins.
    fn connection(&self) -> &Connection {
        if !self.is_private {
            self.steps.begin();
        }
        &self.connection
    }

    /// Where the results are.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Does something with the file; where it goes wrong it is named.
    fn doing<T>(
        &self,
        doing: &'static str,
        act: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        act(self.connection()).map_err(|fault| fault.of(doing, &self.path))
    }

    /// Reads in one transaction: everything in it is of one moment.
    fn snapshot<T>(
        &self,
        doing: &'static str,
        read: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.doing(doing, |connection| within(connection, TransactionBehavior::Deferred, read))
    }

    /// Writes all of it or nothing. Waiting for another writer happens at the begin, within the
    /// busy limit, and never in the middle.
    fn commit<T>(
        &self,
        doing: &'static str,
        write: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.doing(doing, |connection| within(connection, TransactionBehavior::Immediate, write))
    }
}

/// Does something in one transaction, and commits it where it has gone well.
fn within<T>(
    connection: &Connection,
    behavior: TransactionBehavior,
    act: impl FnOnce(&Connection) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let transaction = Transaction::new_unchecked(connection, behavior)?;
    let value = act(&transaction)?;
    transaction.commit()?;
    Ok(value)
}
