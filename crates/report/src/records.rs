//! The rows of exports, once: CSV writes them as lines, JSON as objects. Which columns a row has,
//! and in which order, stands in [`columns`] alone; a name says where the value is found.
//!
//! Columns without `tx_` or `rx_` are sums over both ends where both are
//! known, else null: half of a cost is not a cost.

pub(crate) mod cells;
pub(crate) mod columns;
pub(crate) mod trials;

use std::collections::HashMap;
use std::fmt;

use iolens_model::axes::Study;
use iolens_model::cell::Cell;
use iolens_model::run::Run;
use iolens_stats::analysis::Interval;
use serde_json::{Value, json};

use self::columns::{Column, Columns, Kind};
use crate::groups::{Named, named, object};
use crate::totals::Counted;

/// A column that is asked for and that the rows do not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownColumn {
    /// Its name.
    pub name: String,
    /// Those that there are.
    pub known: Vec<String>,
}

impl fmt::Display for UnknownColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown column `{}`", self.name)
    }
}

impl std::error::Error for UnknownColumn {}

/// One row. All rows of an export have the same names in the same order.
pub(crate) struct Record {
    /// Names with units, and values.
    pub(crate) columns: Named,
    /// What has no place in a column: whole histograms.
    whole: Named,
    /// Id of its run.
    pub(crate) run: String,
}

impl Record {
    /// Errors: the first of these that it has no column of.
    pub(crate) fn check(&self, columns: &[String]) -> Result<(), UnknownColumn> {
        let has = |name: &String| self.columns.iter().any(|(own, _)| own == name);
        match columns.iter().find(|name| !has(name)) {
            None => Ok(()),
            Some(name) => Err(UnknownColumn {
                name: name.clone(),
                known: self.columns.iter().map(|(own, _)| own.to_string()).collect(),
            }),
        }
    }

    /// These columns in their order; all of it where none is named.
    pub(crate) fn only(self, columns: &[String]) -> Record {
        if columns.is_empty() {
            return self;
        }
        let find = |name: &String| self.columns.iter().find(|(own, _)| own == name).cloned();
        let columns = columns.iter().filter_map(find).collect();
        Record { columns, whole: Vec::new(), run: self.run }
    }

    /// The row as a JSON object.
    pub(crate) fn object(self) -> Value {
        object(self.columns.into_iter().chain(self.whole))
    }
}

/// The values of a row by name, and its counts.
struct Source {
    values: HashMap<String, Value>,
    counts: Option<Counted>,
}

impl Source {
    /// What a row says of itself, and the axes of its cell.
    fn new(cell: &Cell, own: Named) -> Source {
        let mut axes = json!(cell);
        let tuning = axes["tuning"].take();
        let source = Source { values: HashMap::new(), counts: None };
        source.with([("", object(own)), ("", axes), ("", tuning)])
    }

    /// And the values of these objects, with what their names begin with. What is there stays.
    fn with(mut self, objects: impl IntoIterator<Item = (&'static str, Value)>) -> Source {
        for (prefix, object) in objects {
            let Value::Object(values) = object else { continue };
            for (name, value) in values {
                let name = if prefix.is_empty() { name } else { format!("{prefix}{name}") };
                self.values.entry(name).or_insert(value);
            }
        }
        self
    }

    fn record(self, run: &Run, columns: &Columns) -> Record {
        let header = named! {
            run: run.header.id,
            study: run.header.plan.study().word(),
            host: run.header.host_label(),
        };
        let source = self.with([("", object(header))]);
        Record {
            columns: source.named(&columns.named),
            whole: source.named(&columns.whole),
            run: run.header.id.clone(),
        }
    }

    fn named(&self, columns: &[Column]) -> Named {
        columns.iter().map(|column| (column.name.clone().into(), self.value(column))).collect()
    }

    /// The value of a column: of an estimate the value, or the end of its interval where that is
    /// usable.
    fn value(&self, Column { name, end, whole, key, count }: &Column) -> Value {
        if let (Some(counts), Some(count)) = (&self.counts, count) {
            return json!(counts.value(*count));
        }
        let find = |name: &str| self.values.get(name);
        let found = find(name).or_else(|| find(whole)).or_else(|| find(key));
        let part = match end {
            Some(end) => found.and_then(|found| match found.get("interval")? {
                ends if is_usable(ends) => Some(&ends[*end]),
                _ => Some(&Value::Null),
            }),
            None => found.and_then(|found| found.get("value")),
        };
        part.or(found).cloned().unwrap_or_default()
    }
}

/// Whether an interval is one that a reader is shown.
fn is_usable(ends: &Value) -> bool {
    let [low, high] = ["low", "high"].map(|end| ends[end].as_f64());
    low.zip(high).is_none_or(|(low, high)| Interval { low, high }.is_usable())
}

/// Where requests were timed.
const TIMED: [&str; 2] = ["latency_p50_ns", "latency_p99_ns"];

/// Those of these rows, in their order: what is wanted, what requests took, where some were timed,
/// and what tells rows apart where they differ in it.
pub(crate) fn short(
    kind: Kind,
    study: Option<Study>,
    mut rows: impl Iterator<Item = Record>,
) -> Vec<String> {
    let (Some(study), Some(first)) = (study, rows.next()) else { return Vec::new() };
    let apart = columns::names(study, "{axes} {:tuning} isolated host");
    let is_timed = |name: &str, value: &Value| !value.is_null() && TIMED.contains(&name);
    let own = first.columns.iter();
    let is_wanted =
        |name: &str| columns::wanted(kind).split_ascii_whitespace().any(|word| word == name);
    let mut kept: Vec<bool> =
        own.map(|(name, value)| is_wanted(name) || is_timed(name, value)).collect();
    for row in rows {
        for ((kept, (name, value)), (_, of_first)) in
            kept.iter_mut().zip(&row.columns).zip(&first.columns)
        {
            let differs = value != of_first && apart.iter().any(|axis| axis == name);
            *kept = *kept || differs || is_timed(name, value);
        }
    }
    let named = first.columns.iter().zip(kept).filter(|(_, kept)| *kept);
    named.map(|((name, _), _)| name.to_string()).collect()
}
