//! Values to columns and back. SQLite's integers are signed and its JSON has
//! no NaN: what would not come back as it is, is refused when it is written.

use std::fmt::Display;

use iolens_model::file::FileCounts;
use iolens_model::outcome::{Counts, KernelCounts, MultishotCounts, PmuCounts, ZerocopyCounts};
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

/// A number that is one: SQLite would make NULL, "unknown", of NaN.
pub(crate) fn real(what: &'static str, value: Option<f64>) -> Result<Option<f64>, StoreError> {
    match value {
        Some(number) if !number.is_finite() => {
            Err(StoreError::NotStorable { what, why: format!("{number} is not a finite number") })
        }
        other => Ok(other),
    }
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

/// A column that holds such a word or nothing.
pub(crate) fn get_word_or_null<T: DeserializeOwned>(
    row: &Row<'_>,
    column: impl RowIndex,
) -> rusqlite::Result<Option<T>> {
    value_or_null(row, column, word_of)
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

/// A column that holds JSON or nothing.
pub(crate) fn get_json_or_null<T: DeserializeOwned>(
    row: &Row<'_>,
    column: impl RowIndex,
) -> rusqlite::Result<Option<T>> {
    value_or_null(row, column, json_of)
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

/// The same of a column that may hold nothing.
fn value_or_null<T>(
    row: &Row<'_>,
    column: impl RowIndex,
    read: fn(ValueRef<'_>) -> Result<T, String>,
) -> rusqlite::Result<Option<T>> {
    let at = column.idx(row.as_ref())?;
    match row.get_ref(at)? {
        ValueRef::Null => Ok(None),
        _ => value(row, at, read).map(Some),
    }
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

/// Columns that no other place names; of the first four, all but the calls of programs are
/// always counted.
const ACCOUNTS: [&str; 30] = [
    "messages",
    "bytes",
    "calls",
    "time_ns",
    "task_clock_ns",
    "voluntary_switches",
    "involuntary_switches",
    "migrations",
    "minor_faults",
    "major_faults",
    "retransmits",
    "softirq_ticks",
    "run_delay_ns",
    "zerocopy_sends",
    "zerocopy_completions",
    "zerocopy_copied",
    "enobufs",
    "segments_out",
    "mapped_bytes",
    "zerocopy_notifications",
    "rearms",
    "ring_enobufs",
    "resident_before_bytes",
    "resident_after_bytes",
    "device_bytes",
    "short_reads",
    "would_block",
    "dirty_before_bytes",
    "dirty_after_bytes",
    "size_error_bytes",
];

/// Where the PMU's counts begin, and where the kernel's do.
const PMU_AT: usize = ACCOUNTS.len();
const KERNEL_AT: usize = PMU_AT + PmuCounts::COUNT;
const COUNTS: usize = KERNEL_AT + KernelCounts::COUNT;

/// Columns of the counts of one end, without the `tx_` or `rx_` before them.
pub(crate) const COUNT_COLUMNS: [&str; COUNTS] = {
    let mut columns = [""; COUNTS];
    let mut at = 0;
    while at < COUNTS {
        columns[at] = if at < PMU_AT {
            ACCOUNTS[at]
        } else if at < KERNEL_AT {
            PmuCounts::NAMES[at - PMU_AT]
        } else {
            KernelCounts::NAMES[at - KERNEL_AT]
        };
        at += 1;
    }
    columns
};

/// The counts of one end in the order of [`COUNT_COLUMNS`].
pub(crate) fn from_counts(counts: &Counts) -> [Option<u64>; COUNTS] {
    let accounts = [
        Some(counts.messages),
        Some(counts.bytes),
        counts.calls,
        Some(counts.time_ns),
        counts.task_clock_ns,
        counts.voluntary_switches,
        counts.involuntary_switches,
        counts.migrations,
        counts.minor_faults,
        counts.major_faults,
        counts.retransmits,
        counts.softirq_ticks,
        counts.run_delay_ns,
        counts.zerocopy.map(|z| z.sends),
        counts.zerocopy.map(|z| z.completions),
        counts.zerocopy.and_then(|z| z.copied),
        counts.zerocopy.map(|z| z.enobufs),
        counts.segments_out,
        counts.mapped_bytes,
        counts.zerocopy.and_then(|z| z.notifications),
        counts.multishot.map(|m| m.rearms),
        counts.multishot.map(|m| m.enobufs),
        counts.file.and_then(|file| file.resident_before_bytes),
        counts.file.and_then(|file| file.resident_after_bytes),
        counts.file.and_then(|file| file.device_bytes),
        counts.file.map(|file| file.short_reads),
        counts.file.map(|file| file.would_block),
        counts.file.and_then(|file| file.dirty_before_bytes),
        counts.file.and_then(|file| file.dirty_after_bytes),
        counts.file.and_then(|file| file.size_error_bytes),
    ];
    let mut all = [None; COUNTS];
    let events = counts.pmu.values().into_iter().chain(counts.kernel.values());
    all.iter_mut().zip(accounts.into_iter().chain(events)).for_each(|(slot, count)| *slot = count);
    all
}

/// The counts of one end from the column with index `at` on; `None` where the
/// first ones, which are always counted, are NULL.
pub(crate) fn get_counts(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Counts>> {
    let Some(messages) = row.get(at)? else {
        return Ok(None);
    };
    Ok(Some(Counts {
        messages,
        bytes: row.get(at + 1)?,
        calls: row.get(at + 2)?,
        time_ns: row.get(at + 3)?,
        task_clock_ns: row.get(at + 4)?,
        voluntary_switches: row.get(at + 5)?,
        involuntary_switches: row.get(at + 6)?,
        migrations: row.get(at + 7)?,
        minor_faults: row.get(at + 8)?,
        major_faults: row.get(at + 9)?,
        retransmits: row.get(at + 10)?,
        softirq_ticks: row.get(at + 11)?,
        run_delay_ns: row.get(at + 12)?,
        zerocopy: get_zerocopy(row, at + 13, at + 19)?,
        segments_out: row.get(at + 17)?,
        mapped_bytes: row.get(at + 18)?,
        multishot: get_multishot(row, at + 20)?,
        file: get_file(row, at + 22)?,
        pmu: PmuCounts::from_values(get_values(row, at + PMU_AT)?),
        kernel: KernelCounts::from_values(get_values(row, at + KERNEL_AT)?),
    }))
}

/// Zero-copy counts from the column with index `at` on, with the notifications
/// in another; `None` where the arm made no such sends.
fn get_zerocopy(
    row: &Row<'_>,
    at: usize,
    notifications_at: usize,
) -> rusqlite::Result<Option<ZerocopyCounts>> {
    let Some(sends) = row.get(at)? else { return Ok(None) };
    Ok(Some(ZerocopyCounts {
        sends,
        completions: row.get(at + 1)?,
        notifications: row.get(notifications_at)?,
        copied: row.get(at + 2)?,
        enobufs: row.get(at + 3)?,
    }))
}

/// Multishot counts from the column with index `at` on; `None` where the
/// receiver makes no such requests.
fn get_multishot(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<MultishotCounts>> {
    let Some(rearms) = row.get(at)? else { return Ok(None) };
    Ok(Some(MultishotCounts { rearms, enobufs: row.get(at + 1)? }))
}

/// What was found around a slice that reads or writes a file, from the column with index `at`
/// on; `None` in other studies.
fn get_file(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<FileCounts>> {
    let Some(short_reads) = row.get(at + 3)? else { return Ok(None) };
    Ok(Some(FileCounts {
        resident_before_bytes: row.get(at)?,
        resident_after_bytes: row.get(at + 1)?,
        device_bytes: row.get(at + 2)?,
        short_reads,
        would_block: row.get(at + 4)?,
        dirty_before_bytes: row.get(at + 5)?,
        dirty_after_bytes: row.get(at + 6)?,
        size_error_bytes: row.get(at + 7)?,
    }))
}

fn get_values<const N: usize>(row: &Row<'_>, at: usize) -> rusqlite::Result<[Option<u64>; N]> {
    let mut values = [None; N];
    for (index, value) in values.iter_mut().enumerate() {
        *value = row.get(at + index)?;
    }
    Ok(values)
}

/// Columns of a slice besides those of its two ends.
const SLICE_COLUMNS: [&str; 5] = ["seq", "round", "kind", "arm", "all_active_ns"];

/// Where the sending end's counts begin in [`slice_columns`].
pub(crate) const TX_AT: usize = SLICE_COLUMNS.len();

/// Where the receiving end's counts begin.
pub(crate) const RX_AT: usize = TX_AT + COUNT_COLUMNS.len();

/// Columns of a slice besides its trial, in the order in which they are
/// written and read.
pub(crate) fn slice_columns() -> String {
    let counts =
        ["tx_", "rx_"].into_iter().flat_map(|end| COUNT_COLUMNS.map(|c| end.to_owned() + c));
    let own = SLICE_COLUMNS.into_iter().map(str::to_owned);
    own.chain(counts).collect::<Vec<_>>().join(", ")
}
