//! Values to columns and back. SQLite's integers are signed and its JSON has
//! no NaN: what would not come back as it is, is refused when it is written.

use std::fmt::Display;

use rusqlite::types::{FromSql, Type};
use rusqlite::{Connection, Params, Row, RowIndex};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::de::value::StrDeserializer;

use crate::StoreError;

/// What a statement finds, as `read` has each row.
pub(crate) fn all<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(params, read)?.collect()
}

/// The first column of the first row that a statement finds.
pub(crate) fn first<T: FromSql>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
) -> rusqlite::Result<T> {
    connection.prepare_cached(sql)?.query_row(params, |row| row.get(0))
}

/// How many rows of a table, or of several joined, a run has.
pub(crate) fn count(connection: &Connection, table: &str, run: i64) -> rusqlite::Result<u64> {
    first(connection, &format!("SELECT count(*) FROM {table} WHERE run = ?"), [run])
}

/// An unsigned count as SQLite's integer.
pub(crate) fn integer<T>(what: &'static str, value: T) -> Result<i64, StoreError>
where
    T: TryInto<i64> + Display + Copy,
{
    value.try_into().map_err(|_| StoreError::NotStorable {
        what,
        why: format!("{value} does not fit a signed 64-bit integer"),
    })
}

/// A value as JSON that is read back once before it is trusted.
pub(crate) fn json<T>(what: &'static str, value: &T) -> Result<String, StoreError>
where
    T: Serialize + DeserializeOwned + PartialEq,
{
    let refused = |why: String| StoreError::NotStorable { what, why };
    let text = serde_json::to_string(value).map_err(|e| refused(e.to_string()))?;
    let back: T = serde_json::from_str(&text).map_err(|e| refused(e.to_string()))?;
    match back == *value {
        true => Ok(text),
        false => Err(refused("it does not read back as it was".to_owned())),
    }
}

/// The one word of a value of a plain enum: what its JSON is without quotes.
pub(crate) fn word<T: Serialize>(what: &'static str, value: &T) -> Result<String, StoreError> {
    let refused = |why: String| StoreError::NotStorable { what, why };
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Ok(word),
        Ok(other) => Err(refused(format!("{other} is not one word"))),
        Err(e) => Err(refused(e.to_string())),
    }
}

/// A column that holds the one word of a plain enum.
pub(crate) fn get_word<T: DeserializeOwned>(
    row: &Row<'_>,
    column: impl RowIndex,
) -> rusqlite::Result<T> {
    read(row, column, |word| T::deserialize(StrDeserializer::<serde::de::value::Error>::new(word)))
}

/// A column that holds JSON.
pub(crate) fn get_json<T: DeserializeOwned>(
    row: &Row<'_>,
    column: impl RowIndex,
) -> rusqlite::Result<T> {
    read(row, column, |text| serde_json::from_str(text))
}

/// What the text of a column says, as `parse` has it.
fn read<T, E: Display>(
    row: &Row<'_>,
    column: impl RowIndex,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> rusqlite::Result<T> {
    let at = column.idx(row.as_ref())?;
    let text = row.get_ref(at)?.as_str().map_err(|e| unreadable(row, at, e))?;
    parse(text).map_err(|e| unreadable(row, at, e))
}

/// The error of a column that does not hold what it should.
pub(crate) fn unreadable(
    row: &Row<'_>,
    column: impl RowIndex,
    error: impl Display,
) -> rusqlite::Error {
    let statement = row.as_ref();
    let at = column.idx(statement).unwrap_or(0);
    let why = format!("column {}: {error}", statement.column_name(at).unwrap_or("?"));
    rusqlite::Error::FromSqlConversionFailure(at, Type::Text, why.into())
}
