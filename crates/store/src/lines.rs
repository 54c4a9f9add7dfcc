//! A whole run as lines of JSON, without loss: `iolens export RUN --format json --rows all`.
//!
//! - The first line names the format, its version and the schema, and has the run itself with
//!   its ends, what its trials share and the names of its counts.
//! - Then a line for each trial with its arms and slices, for each phase of a search, and for
//!   each sampled trial.
//! - The last line has how many there were of each: a file that lacks it was cut off.
//!
//! A row is an object with the columns of its table in the schema that the first line names,
//! in their order; one that is NULL is left out. JSON that a column holds stands there as
//! JSON, byte for byte. Numbers that a file gives its rows are left out, as another file gives
//! them others; so is where the run came from, which the file that takes it says anew.

use std::collections::BTreeMap;

use rusqlite::Connection;
use rusqlite::types::Value;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::error::said;
use crate::row;
use crate::schema::SCHEMA_VERSION;
use crate::tables::{Column, Group, OF_RUN, RUN, Schema, Table, object};

/// What the first line calls itself.
pub const FORMAT: &str = "iolens-run";

/// The version of how lines are made. The columns in them are of the schema, whose versions
/// began anew with this one.
pub const FORMAT_VERSION: u32 = 2;

/// The lines of a stored run, one after another.
pub(crate) struct Lines<'a> {
    connection: &'a Connection,
    schema: Schema,
    run: i64,
    id: String,
    /// What is still to come, the next one last.
    waiting: Vec<Piece>,
    written: Counts,
}

/// What becomes a line.
enum Piece {
    First,
    Row(Group, i64),
    Last,
}

/// How many rows of each table there were.
type Counts = BTreeMap<&'static str, u64>;

/// None yet, of the tables whose rows are counted in the last line.
fn none() -> Counts {
    OF_RUN.into_iter().flat_map(Group::tables).map(|table| (table.name, 0)).collect()
}

fn count(written: &mut Counts, table: &Table, rows: u64) {
    written.entry(table.name).and_modify(|written| *written += rows);
}

/// The id of a run, as it stands in the file.
fn id_of(connection: &Connection, run: i64) -> rusqlite::Result<String> {
    row::first(connection, "SELECT id FROM run WHERE run = ?", [run])
}

impl<'a> Lines<'a> {
    /// Of the run with this number.
    pub(crate) fn of(connection: &'a Connection, run: i64) -> rusqlite::Result<Lines<'a>> {
        let mut waiting = vec![Piece::Last];
        for group in OF_RUN.into_iter().rev() {
            let numbers = group.table.numbers(connection, run)?;
            waiting.extend(numbers.into_iter().rev().map(|number| Piece::Row(group, number)));
        }
        waiting.push(Piece::First);
        let (schema, id) = (Schema::of(connection)?, id_of(connection, run)?);
        Ok(Lines { connection, schema, run, id, waiting, written: none() })
    }

    /// The next line, without its end; `None` behind the last.
    pub(crate) fn next(&mut self) -> rusqlite::Result<Option<String>> {
        let members = match self.waiting.pop() {
            None => return Ok(None),
            Some(Piece::First) => {
                let head = format!(
                    "\"format\":\"{FORMAT}\",\"version\":{FORMAT_VERSION},\
                     \"schema\":{SCHEMA_VERSION}"
                );
                format!("{head},{}", self.group(&RUN, self.run)?)
            }
            Some(Piece::Row(group, number)) => self.group(&group, number)?,
            Some(Piece::Last) => {
                let mut members = vec![format!("\"run\":{}", json!(self.id))];
                members.extend(
                    OF_RUN
                        .into_iter()
                        .flat_map(Group::tables)
                        .map(|table| format!("\"{}\":{}", table.name, self.written[table.name])),
                );
                format!("\"end\":{{{}}}", members.join(","))
            }
        };
        Ok(Some(format!("{{{members}}}")))
    }

    /// The row of a group and its parts, as members of an object.
    fn group(&mut self, group: &Group, of: i64) -> rusqlite::Result<String> {
        let own = self.rows(&Table { of: None, ..group.table }, of)?;
        let mut members = vec![format!("\"{}\":{own}", group.table.name)];
        for part in group.parts {
            members.push(format!("\"{}\":[{}]", part.name, self.rows(part, of)?));
        }
        Ok(members.join(","))
    }

    /// The rows that a table has of an owner, or the one with a number where it has none, with
    /// commas between.
    fn rows(&mut self, table: &Table, of: i64) -> rusqlite::Result<String> {
        let columns = self.schema.columns(table);
        let sql = table.select(columns);
        let rows = row::all(self.connection, &sql, [of], |row| object(row, columns))?;
        count(&mut self.written, table, rows.len() as u64);
        Ok(rows.join(","))
    }
}

/// Whether what follows a first line can be read.
///
/// Errors: what it is instead, and what to do.
pub(crate) fn check_head(line: &str) -> Result<(), String> {
    /// What is the same in every version.
    #[derive(Deserialize)]
    struct Head {
        format: String,
        version: u32,
        schema: u32,
    }
    let no_run = "it is not a run that iolens exported with --format json --rows all";
    let head: Head = serde_json::from_str(line).map_err(|e| format!("{no_run}: {e}"))?;
    if head.format != FORMAT {
        return Err(no_run.to_owned());
    }
    let versions =
        [("version", head.version, FORMAT_VERSION), ("schema", head.schema, SCHEMA_VERSION)];
    match versions.into_iter().find(|(_, found, read)| found != read) {
        None => Ok(()),
        Some((what, found, read)) => {
            let build = if found < read { "earlier build" } else { "newer iolens" };
            Err(format!(
                "its {what} is {found}, this build reads {read}: use the {build} that wrote it"
            ))
        }
    }
}

/// Rows by the names of their columns.
type Object<'a> = BTreeMap<String, &'a RawValue>;

/// Takes lines of a run, in their order, into a file.
pub(crate) struct Taken<'a> {
    connection: &'a Connection,
    schema: Schema,
    /// Number and id, from the first line on.
    run: Option<(i64, String)>,
    /// The group of the line before, by its place.
    group: usize,
    written: Counts,
    is_whole: bool,
}

impl<'a> Taken<'a> {
    /// Nothing yet.
    pub(crate) fn into(connection: &'a Connection) -> rusqlite::Result<Taken<'a>> {
        let (schema, written) = (Schema::of(connection)?, none());
        Ok(Taken { connection, schema, run: None, group: 0, written, is_whole: false })
    }

    /// Whether the last line of the run was there, which was right.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Number and id of the run, once it has begun.
    pub(crate) fn run(&self) -> Option<(i64, &str)> {
        self.run.as_ref().map(|(number, id)| (*number, id.as_str()))
    }

    /// Takes one line.
    ///
    /// Errors: what is wrong with it; the file then holds a part of the run.
    pub(crate) fn line(&mut self, line: &str) -> Result<(), String> {
        let mut object: Object<'_> =
            serde_json::from_str(line).map_err(|e| format!("it is not an object: {e}"))?;
        if self.is_whole {
            return Err("the run has ended before it".to_owned());
        }
        let Some((run, _)) = self.run else {
            check_head(line)?;
            for key in ["format", "version", "schema"] {
                object.remove(key);
            }
            let run = self.group(&RUN, None, object)?;
            let id = id_of(self.connection, run).map_err(|e| said(&e))?;
            self.run = Some((run, id));
            return Ok(());
        };
        if let Some(end) = object.remove("end") {
            self.compare(end)?;
            self.is_whole = true;
            return Ok(());
        }
        let found = OF_RUN.iter().position(|group| object.contains_key(group.table.name));
        let Some(place) = found else {
            let keys: Vec<&str> = object.keys().map(String::as_str).take(5).collect();
            return Err(format!("it is not a line of a run: it has the keys {}", shown(&keys)));
        };
        if place < self.group {
            let (late, before) = (OF_RUN[place].table.name, OF_RUN[self.group].table.name);
            return Err(format!("a {late} cannot follow a {before}"));
        }
        self.group = place;
        self.group(&OF_RUN[place], Some(run), object).map(|_| ())
    }

    /// The row of a group and its parts; its number.
    fn group(
        &mut self,
        group: &Group,
        of: Option<i64>,
        mut object: Object<'_>,
    ) -> Result<i64, String> {
        let name = group.table.name;
        let row = object.remove(name).ok_or_else(|| format!("it has no `{name}`"))?;
        let number = self.insert(&group.table, of, row)?;
        for part in group.parts {
            let Some(rows) = object.remove(part.name) else {
                return Err(format!("it has no `{}`", part.name));
            };
            let rows: Vec<&RawValue> = serde_json::from_str(rows.get())
                .map_err(|_| format!("`{}` is not a list", part.name))?;
            for row in rows {
                self.insert(part, Some(number), row)?;
            }
        }
        match object.first_key_value() {
            None => Ok(number),
            Some((key, _)) => Err(format!("`{}` does not belong to a {name}", shown(&[key]))),
        }
    }

    fn insert(&mut self, table: &Table, of: Option<i64>, row: &RawValue) -> Result<i64, String> {
        let name = table.name;
        let object: Object<'_> = serde_json::from_str(row.get())
            .map_err(|_| format!("`{name}` has a row that is not an object"))?;
        let columns = self.schema.columns(table);
        if let Some(unknown) =
            object.keys().find(|key| columns.iter().all(|column| column.name != **key))
        {
            return Err(format!("`{name}` has no column `{}`", shown(&[unknown])));
        }
        let value = |column: &Column| match object.get(&column.name) {
            Some(json) => column.value(json).map_err(|why| format!("{name}: {why}")),
            None => Ok(Value::Null),
        };
        let values = columns.iter().map(value).collect::<Result<_, _>>()?;
        let number = table.insert(self.connection, of, columns, values);
        count(&mut self.written, table, 1);
        number.map_err(|e| format!("{name}: {}", said(&e)))
    }

    /// Holds the counts of the last line against what was there.
    fn compare(&self, end: &RawValue) -> Result<(), String> {
        let end: Object<'_> =
            serde_json::from_str(end.get()).map_err(|_| "`end` is not an object".to_owned())?;
        let id = self.run().map(|(_, id)| json!(id).to_string());
        if end.get("run").map(|id| id.get()) != id.as_deref() {
            return Err("it ends another run".to_owned());
        }
        for (name, written) in &self.written {
            let said = end.get(*name).map_or("none", |count| count.get());
            if said != written.to_string() {
                return Err(format!(
                    "{written} rows of `{name}` came before it, and it says {said}"
                ));
            }
        }
        Ok(())
    }
}

/// Keys of somebody else's file, as far as a message has room.
fn shown(keys: &[&str]) -> String {
    let short = |key: &&str| key.chars().take(40).collect::<String>().escape_debug().to_string();
    keys.iter().map(short).collect::<Vec<_>>().join(", ")
}
