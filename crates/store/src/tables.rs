//! The tables that hold a run, and their rows as JSON. Which columns a table has is asked of
//! the file; a test compares the tables with those of the schema.

use std::collections::BTreeMap;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row, params_from_iter};
use serde_json::value::RawValue;

use crate::{counted, row};

/// A table with rows of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Table {
    /// Its name, which is also that of the key that its own rows are numbered with.
    pub(crate) name: &'static str,
    /// The column that says whose row it is: the name of the table above.
    pub(crate) of: Option<&'static str>,
    /// Columns in whose order the rows stand.
    pub(crate) order: &'static str,
    /// Whether its rows are numbered by the file that holds them, so that the number says
    /// nothing in another one.
    pub(crate) is_numbered: bool,
}

/// A table whose rows have rows of their own, or stand alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) table: Table,
    /// Tables of rows that belong to one of its.
    pub(crate) parts: &'static [Table],
}

const fn numbered(name: &'static str, of: Option<&'static str>) -> Table {
    Table { name, of, order: name, is_numbered: true }
}

const fn part(name: &'static str, of: &'static str, order: &'static str) -> Table {
    Table { name, of: Some(of), order, is_numbered: false }
}

/// The run itself: one row.
pub(crate) const RUN: Group = Group {
    table: numbered("run", None),
    parts: &[
        numbered("run_end", Some("run")),
        part("shared", "run", "number"),
        part("run_count", "run", "name"),
    ],
};

/// What a run has many of, in the order in which it is written.
pub(crate) const OF_RUN: [Group; 3] = [
    Group {
        table: numbered("trial", Some("run")),
        parts: &[part("arm", "trial", "arm"), part("slice", "trial", "seq")],
    },
    Group { table: numbered("search_phase", Some("run")), parts: &[] },
    Group { table: numbered("profile", Some("run")), parts: &[] },
];

/// Tables that say something of a run in this file alone.
#[cfg(test)]
const STAY: [&str; 1] = ["origin"];

/// The columns of every table of a run in a file, asked once.
pub(crate) struct Schema(BTreeMap<&'static str, Vec<Column>>);

impl Schema {
    pub(crate) fn of(connection: &Connection) -> rusqlite::Result<Schema> {
        let all = tables().map(|table| Ok((table.name, table.columns(connection)?)));
        all.collect::<rusqlite::Result<_>>().map(Schema)
    }

    /// Those of a table.
    pub(crate) fn columns(&self, table: &Table) -> &[Column] {
        self.0.get(table.name).map_or(&[], Vec::as_slice)
    }

    /// A table whose columns are others in another file; `None` where all are the same.
    pub(crate) fn differs(&self, other: &Schema) -> Option<&'static str> {
        self.0.keys().copied().find(|table| self.0.get(table) != other.0.get(table))
    }
}

impl Group {
    /// Its table, and those of its parts.
    pub(crate) fn tables(self) -> impl Iterator<Item = Table> {
        [self.table].into_iter().chain(self.parts.iter().copied())
    }
}

/// Every table of a run.
fn tables() -> impl Iterator<Item = Table> {
    [RUN].into_iter().chain(OF_RUN).flat_map(Group::tables)
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    kind: Kind,
}

/// What a column holds, if not NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    Text,
    /// Text that is JSON.
    Json,
}

impl Table {
    /// Columns that are the same in every file that has the run: all but its own number, and
    /// whose row it is.
    fn columns(&self, connection: &Connection) -> rusqlite::Result<Vec<Column>> {
        let mut columns = self.all_columns(connection)?;
        columns.retain(|column| {
            !(self.is_numbered && column.name == self.name) && Some(column.name.as_str()) != self.of
        });
        if self.name == "slice" {
            // Counts that a later build added to a file stand behind all others there.
            let names = counted::names();
            let place = |column: &Column| {
                names.iter().position(|name| *name == column.name).map_or(0, |at| at + 1)
            };
            columns.sort_by_cached_key(place);
        }
        Ok(columns)
    }

    fn all_columns(&self, connection: &Connection) -> rusqlite::Result<Vec<Column>> {
        let sql = format!("SELECT name, type FROM pragma_table_info('{}')", self.name);
        row::all(connection, &sql, [], |row| {
            let (name, declared): (String, String) = (row.get(0)?, row.get(1)?);
            let kind = match declared.as_str() {
                "INTEGER" => Kind::Integer,
                _ if name.ends_with("_json") => Kind::Json,
                _ => Kind::Text,
            };
            Ok(Column { name, kind })
        })
    }

    /// The statement that reads these columns of the rows of one owner, behind their numbers.
    pub(crate) fn select(&self, columns: &[Column]) -> String {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let (name, order) = (self.name, self.order);
        let of = self.of.unwrap_or(name);
        format!("SELECT {} FROM {name} WHERE {of} = ? ORDER BY {order}", names.join(", "))
    }

    /// Numbers of the rows of a run, in their order.
    pub(crate) fn numbers(&self, connection: &Connection, run: i64) -> rusqlite::Result<Vec<i64>> {
        let name = self.name;
        let sql = format!("SELECT {name} FROM {name} WHERE run = ? ORDER BY {name}");
        row::all(connection, &sql, [run], |row| row.get(0))
    }

    /// Appends a row with values for these columns, of an owner where it has one; its number.
    pub(crate) fn insert(
        &self,
        connection: &Connection,
        of: Option<i64>,
        columns: &[Column],
        values: Vec<Value>,
    ) -> rusqlite::Result<i64> {
        let owner = self.of.filter(|_| of.is_some());
        let names = owner.into_iter().chain(columns.iter().map(|column| column.name.as_str()));
        let names: Vec<&str> = names.collect();
        let marks = vec!["?"; names.len()].join(", ");
        let sql = format!("INSERT INTO {} ({}) VALUES ({marks})", self.name, names.join(", "));
        let values = of.map(Value::Integer).into_iter().chain(values);
        connection.prepare_cached(&sql)?.execute(params_from_iter(values))?;
        Ok(connection.last_insert_rowid())
    }
}

/// The JSON object of a row with these columns: one that is NULL is left out.
pub(crate) fn object(row: &Row<'_>, columns: &[Column]) -> rusqlite::Result<String> {
    let mut members = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        let value = row.get_ref(index)?;
        if !matches!(value, ValueRef::Null) {
            let (name, json) = (&column.name, column.json(value));
            let json = json.map_err(|why| row::unreadable(row, index, why))?;
            // Names are those of the schema, which has no marks in them.
            members.push(format!("\"{name}\":{json}"));
        }
    }
    Ok(format!("{{{}}}", members.join(",")))
}

impl Column {
    /// What it holds as JSON: a text that is JSON as it stands.
    fn json(&self, value: ValueRef<'_>) -> Result<String, String> {
        let text = || value.as_str().map_err(|e| e.to_string());
        match self.kind {
            Kind::Integer => value.as_i64().map(|n| n.to_string()).map_err(|e| e.to_string()),
            Kind::Text => serde_json::to_string(text()?).map_err(|e| e.to_string()),
            Kind::Json => {
                let text = text()?;
                let _: &RawValue = serde_json::from_str(text).map_err(|e| e.to_string())?;
                match text.contains(['\n', '\r']) {
                    true => Err("it is JSON of more than one line".to_owned()),
                    false => Ok(text.to_owned()),
                }
            }
        }
    }

    /// The same backwards.
    pub(crate) fn value(&self, json: &RawValue) -> Result<Value, String> {
        let text = json.get();
        let wrong = |what: &str| {
            let part: String = text.chars().take(40).collect();
            format!("`{}`: `{part}` is not {what}", self.name)
        };
        match self.kind {
            Kind::Integer => serde_json::from_str(text)
                .map(Value::Integer)
                .map_err(|_| wrong("a signed 64-bit integer")),
            Kind::Text => serde_json::from_str(text).map(Value::Text).map_err(|_| wrong("a text")),
            // A column that holds nothing is left out.
            Kind::Json if text == "null" => Err(wrong("a value")),
            // It could not be written as a line again.
            Kind::Json if text.contains(['\n', '\r']) => Err(wrong("JSON of one line")),
            Kind::Json => Ok(Value::Text(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::schema;

    fn current() -> Connection {
        let connection = Connection::open_in_memory().expect("it opens");
        schema::create(&connection).expect("the tables are made");
        connection
    }

    /// A table is exported and imported, or is said to stay.
    #[test]
    fn no_table_of_the_schema_is_forgotten() {
        let connection = current();
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' \
                   AND name NOT LIKE 'sqlite_%'";
        let mut statement = connection.prepare(sql).expect("it reads");
        let there = statement.query_map([], |row| row.get(0)).expect("it reads");
        let there: BTreeSet<String> = there.collect::<Result<_, _>>().expect("it reads");
        let known = tables().map(|table| table.name).chain(STAY);
        assert_eq!(known.map(str::to_owned).collect::<BTreeSet<_>>(), there);
    }

    /// A column is left out only as the number of a row: what refers to a table, or numbers it.
    #[test]
    fn no_column_of_the_schema_is_forgotten() {
        let connection = current();
        let names = |columns: Vec<Column>| -> BTreeSet<String> {
            columns.into_iter().map(|column| column.name).collect()
        };
        for table in tables() {
            let all = names(table.all_columns(&connection).expect("it reads"));
            let kept = names(table.columns(&connection).expect("it reads"));
            let own = table.is_numbered.then_some(table.name);
            let expect = own.into_iter().chain(table.of).map(str::to_owned).collect();
            assert_eq!(&all - &kept, expect, "{}", table.name);
            let sql = "SELECT \"from\" FROM pragma_foreign_key_list(?)";
            let mut statement = connection.prepare(sql).expect("it reads");
            let refers = statement.query_map([table.name], |row| row.get(0)).expect("it reads");
            let refers: BTreeSet<String> = refers.collect::<Result<_, _>>().expect("it reads");
            assert!(table.of.is_none_or(|of| refers.contains(of)), "{}: {refers:?}", table.name);
        }
    }

    #[test]
    fn values_come_back_as_they_were() {
        let column = |kind| Column { name: "x".to_owned(), kind };
        let back = |kind, value: Value| {
            let json = column(kind).json(ValueRef::from(&value)).expect("it is written");
            let raw = RawValue::from_string(json).expect("it is JSON");
            assert_eq!(column(kind).value(&raw), Ok(value));
        };
        back(Kind::Integer, Value::Integer(i64::MIN));
        back(Kind::Text, Value::Text("a\"b\n\u{1}µ".to_owned()));
        back(Kind::Json, Value::Text(r#"{"b":1.10,"a":[null]}"#.to_owned()));
        let refused = |kind, value: Value| column(kind).json(ValueRef::from(&value)).is_err();
        assert!(refused(Kind::Json, Value::Text("{\n}".to_owned())));
        assert!(refused(Kind::Json, Value::Text("{".to_owned())));
        assert!(refused(Kind::Text, Value::Blob(vec![255])));
        let wrong = |kind, json: &str| {
            column(kind).value(&RawValue::from_string(json.to_owned()).expect("JSON")).is_err()
        };
        assert!(wrong(Kind::Integer, "99999999999999999999") && wrong(Kind::Integer, "1.5"));
        assert!(wrong(Kind::Text, "1") && wrong(Kind::Json, "null"));
    }

    #[test]
    fn json_that_is_no_line_is_refused() {
        let column = Column { name: "trial_json".to_owned(), kind: Kind::Json };
        let of = |text: &str| column.value(serde_json::from_str::<&RawValue>(text).unwrap());
        assert_eq!(of("{\"a\": 1}"), Ok(Value::Text("{\"a\": 1}".to_owned())));
        assert!(of("{\"a\":\r1}").unwrap_err().ends_with("is not JSON of one line"));
    }
}
