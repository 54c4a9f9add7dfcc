//! What marks a file as ours, and how an older one becomes a current one.

use rusqlite::{Connection, TransactionBehavior};

/// `application_id` of our files: "ioLn" in ASCII.
pub const APPLICATION_ID: u32 = u32::from_be_bytes(*b"ioLn");

/// The schema this build reads and writes (`user_version`).
pub const SCHEMA_VERSION: u32 = 7;

/// Step i takes version i to version i + 1; version 0 is an empty file.
const MIGRATIONS: [&str; SCHEMA_VERSION as usize] = [
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
    include_str!("schema_6.sql"),
    include_str!("schema_7.sql"),
];

/// Brings the file to [`SCHEMA_VERSION`] in one transaction: another process
/// sees the old version or the new one. Returns the version found if it is
/// newer, and then changes nothing.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<Option<u32>> {
    if version(connection)? == SCHEMA_VERSION {
        return Ok(None);
    }
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
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    transaction.commit()?;
    Ok(None)
}

/// The schema version of the file.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}
