//! What marks a file as ours, and its tables.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::{Fault, counted, row, within};

/// `application_id` of our files: "iolr" in ASCII.
pub const APPLICATION_ID: u32 = u32::from_be_bytes(*b"iolr");

/// That of files of builds before the first release, which had another count of versions.
pub(crate) const EARLIER_ID: u32 = u32::from_be_bytes(*b"ioLn");

/// The schema this build reads and writes (`user_version`).
pub const SCHEMA_VERSION: u32 = 1;

const TABLES: &str = include_str!("schema.sql");

/// Stands in it for the columns that follow from the counts of the model.
const COUNTS: &str = "/* tx_ and rx_ of each count */";

/// Makes the tables in an empty file, and columns for counts that a file lacks because the build
/// that made it did not know them. In one transaction: another process sees all or nothing.
/// Returns the version of the file; of another one than ours it changes nothing.
pub(crate) fn prepare(connection: &Connection) -> Result<u32, Fault> {
    if version(connection)? == SCHEMA_VERSION && counted::missing(connection)?.is_empty() {
        return Ok(SCHEMA_VERSION);
    }
    // Immediate: of two processes that both find an empty file, one waits here and then finds
    // nothing left to do.
    within(connection, TransactionBehavior::Immediate, |connection| {
        match version(connection)? {
            0 => create(connection)?,
            SCHEMA_VERSION => {
                for column in counted::missing(connection)? {
                    let sql = format!("ALTER TABLE slice ADD COLUMN {column} INTEGER");
                    connection.execute_batch(&sql)?;
                }
            }
            newer => return Ok(newer),
        }
        Ok(SCHEMA_VERSION)
    })
}

/// Makes the tables in a file that is empty, and marks it.
pub(crate) fn create(connection: &Connection) -> rusqlite::Result<()> {
    let counts: String =
        counted::names().iter().map(|column| format!("{column} INTEGER,\n")).collect();
    connection.execute_batch(&TABLES.replace(COUNTS, &counts))?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", SCHEMA_VERSION)
}

/// What a file defines besides tables and indexes of their columns, which is all that a file of
/// ours has; `None` where there is nothing. A view or a trigger runs when somebody reads or
/// writes, for as long as it likes.
pub(crate) fn oddity(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let defined = "SELECT 'it defines a ' || type || ', which no iolens does' FROM sqlite_schema \
                   WHERE type NOT IN ('table', 'index') UNION ALL \
                   SELECT 'it defines a virtual table, or an odd one, which no iolens does' FROM sqlite_schema \
                   WHERE type = 'table' AND coalesce(sql, '') NOT GLOB 'CREATE TABLE *' LIMIT 1";
    let computed = "SELECT 'it defines a computed column, which no iolens does' \
                    FROM sqlite_schema AS t, pragma_table_xinfo(t.name) AS c \
                    WHERE t.type = 'table' AND c.hidden <> 0 UNION ALL \
                    SELECT 'it defines an index of an expression, which no iolens does' \
                    FROM sqlite_schema AS i, pragma_index_xinfo(i.name) AS c \
                    WHERE i.type = 'index' AND c.cid = -2 LIMIT 1";
    match row::first(connection, defined, []).optional()? {
        None => row::first(connection, computed, []).optional(),
        some => Ok(some),
    }
}

/// The schema version of the file.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}
