//! What is known of a run besides its trials: columns that runs are looked up by, and JSON.

use iolens_model::host::HostFacts;
use iolens_model::origin::Origin;
use iolens_model::run::{RunEnd, RunHeader};
use rusqlite::Row;
use rusqlite::types::{Type, ValueRef};
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::{Map, Value};

use crate::{StoreError, row};

/// What is not in the JSON: it has a column, or a table of its own.
const ELSEWHERE: [&str; 7] =
    ["id", "name", "started_unix_ns", "build", "confirms", "end", "origin"];

/// How many trials and phases of searches the run of a row has.
pub(crate) const STORED: &str = "((SELECT count(*) FROM trial WHERE trial.run = run.run) \
     + (SELECT count(*) FROM search_phase AS phase WHERE phase.run = run.run))";

/// The statement that reads headers with their ends, and these columns besides. A run has its
/// latest end, unless trials or phases of searches came after that. The id stands first, for who
/// calls a damaged run by it.
pub(crate) fn select(columns: &str, of_which: &str) -> String {
    format!(
        "SELECT id, name, started_unix_ns, build, confirms, run_json, origin.host, \
         origin.path, origin.imported_unix_ns, ifnull((SELECT \
         CASE trials WHEN {STORED} THEN run_end_json END FROM run_end \
         WHERE run_end.run = run.run ORDER BY run_end DESC LIMIT 1), 'null') AS run_end_json\
         {columns} FROM run LEFT JOIN origin USING (run) {of_which}"
    )
}

/// As it is stored.
pub(crate) fn json(header: &RunHeader) -> Result<String, StoreError> {
    let refused = |e: serde_json::Error| StoreError::NotStorable {
        what: "the facts of a run",
        why: e.to_string(),
    };
    let whole = row::json("the facts of a run", header)?;
    let mut known: Map<String, Value> = serde_json::from_str(&whole).map_err(refused)?;
    known.retain(|key, _| !ELSEWHERE.contains(&key.as_str()));
    serde_json::to_string(&known).map_err(refused)
}

/// The header of a run in a row of [`select`], without its end.
pub(crate) fn of(row: &Row<'_>) -> rusqlite::Result<RunHeader> {
    let mut known: Map<String, Value> = row::get_json(row, "run_json")?;
    let columns: [(&str, Value); 6] = [
        ("id", id_of(row)?.into()),
        ("name", row.get::<_, Option<String>>("name")?.into()),
        ("started_unix_ns", row.get::<_, u64>("started_unix_ns")?.into()),
        ("build", row.get::<_, String>("build")?.into()),
        ("confirms", row.get::<_, Option<String>>("confirms")?.into()),
        ("end", Value::Null),
    ];
    known.extend(columns.map(|(key, value)| (key.to_owned(), value)));
    let header = RunHeader::deserialize(Value::Object(known));
    let header = header.and_then(|header| {
        header.plan.check_cells().map_err(serde_json::Error::custom)?;
        match header.calibration {
            None if header.plan.needs_calibration() => {
                Err(serde_json::Error::missing_field("calibration"))
            }
            _ => Ok(header),
        }
    });
    let header = header.map_err(|why| row::unreadable(row, "run_json", why))?;
    Ok(RunHeader { origin: origin(row)?, ..header })
}

/// The label of the machine that measured a run, as far as its host told a name.
pub(crate) fn host(row: &Row<'_>) -> rusqlite::Result<Option<String>> {
    #[derive(Deserialize)]
    struct Known {
        host: HostFacts,
    }
    Ok(row::get_json::<Known>(row, "run_json")?.host.name().map(str::to_owned))
}

/// Where a run came from, of its columns there.
pub(crate) fn origin(row: &Row<'_>) -> rusqlite::Result<Option<Origin>> {
    let Some(host) = row.get("host")? else { return Ok(None) };
    let (path, imported_unix_ns) = (row.get("path")?, row.get("imported_unix_ns")?);
    Ok(Some(Origin { host, path, imported_unix_ns }))
}

/// The same with its end, where it has one.
pub(crate) fn whole(row: &Row<'_>) -> rusqlite::Result<RunHeader> {
    Ok(RunHeader { end: end(row)?, ..of(row)? })
}

pub(crate) fn end(row: &Row<'_>) -> rusqlite::Result<Option<RunEnd>> {
    row::get_json(row, "run_end_json")
}

pub(crate) fn id_of(row: &Row<'_>) -> rusqlite::Result<String> {
    let id = text_of(row.get_ref("id")?);
    match is_id(&id) {
        true => Ok(id),
        false => Err(rusqlite::Error::FromSqlConversionFailure(1, Type::Text, NO_ID.into())),
    }
}

/// An id as the first column, whatever stands there: what a terminal cannot show, or is no text
/// in UTF-8, is shown as such. It names the run also where it is damaged.
pub(crate) fn readable_id(row: &Row<'_>) -> rusqlite::Result<String> {
    let mut text = text_of(row.get_ref(0)?);
    if !is_id(&text) {
        text = text.replace(char::is_control, "\u{fffd}");
    }
    Ok(text)
}

/// As much of a value as is text.
pub(crate) fn text_of(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Null => String::new(),
    }
}

/// Why a run with any other id is damaged.
pub(crate) const NO_ID: &str = "its id is not one: eight hexadecimal digits";

/// Digits of an id.
const ID_DIGITS: usize = 8;

/// Whether a text is the id of a run: eight hexadecimal digits. It becomes the name of a file.
pub fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
