//! Values to columns and back. SQLite's integers are signed and its JSON has
//! no NaN: what would not come back as it is, is refused when it is written.

use std::fmt::Display;

use rusqlite::types::{Type, ValueRef};
use rusqlite::{Row, RowIndex};
use serde::Serialize;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::StoreError;

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
    if back == *value {
        Ok(text)
    } else {
        Err(refused("it does not read back as it was".to_owned()))
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
    value(row, column, word_of)
}

fn word_of<T: DeserializeOwned>(value: ValueRef<'_>) -> Result<T, String> {
    let word = value.as_str().map_err(|e| e.to_string())?;
    let word: StrDeserializer<'_, serde::de::value::Error> = word.into_deserializer();
    T::deserialize(word).map_err(|e| e.to_string())
}

/// A column that holds JSON.
pub(crate) fn get_json<T: DeserializeOwned>(
    row: &Row<'_>,
    column: impl RowIndex,
) -> rusqlite::Result<T> {
    value(row, column, json_of)
}

fn json_of<T: DeserializeOwned>(value: ValueRef<'_>) -> Result<T, String> {
    let text = value.as_str().map_err(|e| e.to_string())?;
    serde_json::from_str(text).map_err(|e| e.to_string())
}

/// What a column holds, as `read` has it.
fn value<T>(
    row: &Row<'_>,
    column: impl RowIndex,
    read: fn(ValueRef<'_>) -> Result<T, String>,
) -> rusqlite::Result<T> {
    let at = column.idx(row.as_ref())?;
    read(row.get_ref(at)?).map_err(|e| unreadable(row, at, e))
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
