//! What marks a file as ours, and how an older one becomes a current one.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

/// `application_id` of our files: "ioLn" in ASCII.
pub const APPLICATION_ID: u32 = u32::from_be_bytes(*b"ioLn");

/// The schema this build reads and writes (`user_version`).
pub const SCHEMA_VERSION: u32 = 17;

/// Step i takes version i to version i + 1; version 0 is an empty file.
const MIGRATIONS: [&str; SCHEMA_VERSION as usize] = [
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
    include_str!("schema_6.sql"),
    include_str!("schema_7.sql"),
    include_str!("schema_8.sql"),
    include_str!("schema_9.sql"),
    include_str!("schema_10.sql"),
    include_str!("schema_11.sql"),
    include_str!("schema_12.sql"),
    include_str!("schema_13.sql"),
    include_str!("schema_14.sql"),
    include_str!("schema_15.sql"),
    include_str!("schema_16.sql"),
    include_str!("schema_17.sql"),
];

/// Brings the file to [`SCHEMA_VERSION`] in one transaction: another process
/// sees the old version or the new one. Returns the version found if it is
/// newer, and then changes nothing.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<Option<u32>> {
    if version(connection)? == SCHEMA_VERSION {
        return Ok(None);
    }
    // A table is made anew by dropping the old one, which would take along the
    // rows that refer to it. Inside a transaction this pragma does nothing:
    // <https://www.sqlite.org/lang_altertable.html#otheralter>
    connection.pragma_update(None, "foreign_keys", false)?;
    let found = migrate_unchecked(connection);
    connection.pragma_update(None, "foreign_keys", true)?;
    found
}

fn migrate_unchecked(connection: &mut Connection) -> rusqlite::Result<Option<u32>> {
    // Immediate: of two processes that both see version 0, one waits here and
    // then finds nothing left to do.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    if found > SCHEMA_VERSION {
        return Ok(Some(found));
    }
    for step in &MIGRATIONS[found as usize..] {
        transaction.execute_batch(step)?;
    }
    refuse_dangling(&transaction)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    transaction.commit()?;
    Ok(None)
}

/// Makes the tables of an earlier version, or of this one, in a file that is empty.
pub(crate) fn create(connection: &Connection, version: u32) -> rusqlite::Result<()> {
    for step in &MIGRATIONS[..version.min(SCHEMA_VERSION) as usize] {
        connection.execute_batch(step)?;
    }
    connection.pragma_update(None, "user_version", version)
}

/// Every row must still find the one that it refers to.
fn refuse_dangling(connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    if statement.exists([])? {
        let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY);
        return Err(rusqlite::Error::SqliteFailure(error, None));
    }
    Ok(())
}

/// What a file defines besides tables and indexes of their columns, which is all that a file of
/// ours has; null where there is nothing. A view or a trigger runs when somebody reads or
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
    let found = |sql| connection.query_row(sql, [], |row| row.get(0)).optional();
    match found(defined)? {
        None => found(computed),
        some => Ok(some),
    }
}

/// The schema version of the file.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}
