//! The columns of slices, and which of them a run has. Most are NULL in every slice of a run:
//! those of other studies, of counters that this machine lacks, of probes that were not asked
//! for. To get each of these out of SQLite takes most of the time in which a long run is read.

use std::collections::BTreeSet;

use iolens_model::outcome::{Counts, SliceOutcome};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row, Transaction};

use crate::{StoreError, row};

/// Columns of a slice besides those of its two ends.
const OWN: [&str; 5] = ["seq", "round", "kind", "arm", "all_active_ns"];

/// What the columns of the two ends begin with.
const ENDS: [&str; 2] = ["tx_", "rx_"];

/// The columns of counts, in the order in which they are written and exported.
pub(crate) fn names() -> Vec<String> {
    ENDS.iter()
        .flat_map(|end| Counts::NAMES.iter().map(move |name| format!("{end}{name}")))
        .collect()
}

/// Those of them that the table of a file lacks; none where there is no such table.
pub(crate) fn missing(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info('slice')")?;
    let there = statement.query_map([], |row| row.get(0))?;
    let there: BTreeSet<String> = there.collect::<rusqlite::Result<_>>()?;
    let is_missing = |name: &String| !there.is_empty() && !there.contains(name);
    Ok(names().into_iter().filter(is_missing).collect())
}

/// The columns in which slices are read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Columns {
    /// Of each end, the indices of its counts, rising.
    ends: [Vec<usize>; 2],
}

impl Columns {
    /// Every one there is.
    pub(crate) fn all() -> Columns {
        Columns { ends: [0, 1].map(|_| (0..Counts::COUNT).collect()) }
    }

    /// Those that some slice of a run has.
    pub(crate) fn of(connection: &Connection, run: i64) -> rusqlite::Result<Columns> {
        let mut columns = Columns { ends: [Vec::new(), Vec::new()] };
        let mut statement =
            connection.prepare_cached("SELECT name FROM run_count WHERE run = ?")?;
        let mut rows = statement.query([run])?;
        let all = names();
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            let Some(at) = all.iter().position(|known| *known == name) else {
                let shown: String = name.chars().take(40).flat_map(char::escape_debug).collect();
                return Err(row::unreadable(
                    row,
                    0,
                    format!("`{shown}` is no count of this build"),
                ));
            };
            columns.ends[at / Counts::COUNT].push(at % Counts::COUNT);
        }
        columns.ends.iter_mut().for_each(|end| end.sort_unstable());
        Ok(columns)
    }

    /// Their names, with commas between.
    pub(crate) fn sql(&self) -> String {
        let of_end = |(end, indices): (&&str, &Vec<usize>)| -> Vec<String> {
            indices.iter().map(|&index| format!("{end}{}", Counts::NAMES[index])).collect()
        };
        let of_ends = ENDS.iter().zip(&self.ends).flat_map(of_end);
        OWN.into_iter().map(str::to_owned).chain(of_ends).collect::<Vec<_>>().join(", ")
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        OWN.len() + self.ends[0].len() + self.ends[1].len()
    }

    /// The slice in a row that begins with these columns.
    pub(crate) fn read(&self, row: &Row<'_>) -> rusqlite::Result<SliceOutcome> {
        let [tx, rx] = &self.ends;
        let at = OWN.len();
        let missing = || row::unreadable(row, at, "the sending end counted nothing");
        Ok(SliceOutcome {
            seq: row.get(0)?,
            round: row.get(1)?,
            kind: row::get_word(row, 2)?,
            arm: row.get(3)?,
            all_active_ns: row.get(4)?,
            tx: counts(row, at, tx)?.ok_or_else(missing)?,
            rx: counts(row, at + tx.len(), rx)?,
        })
    }
}

/// The values of a slice for [`Columns::all`].
pub(crate) fn values(slice: &SliceOutcome) -> Result<Vec<Value>, StoreError> {
    let mut values = vec![
        Value::Integer(slice.seq.into()),
        Value::Integer(slice.round.into()),
        Value::Text(row::word("a slice's kind", &slice.kind)?),
        Value::Integer(row::integer("a slice's arm", slice.arm)?),
        Value::Integer(row::integer("all_active_ns", slice.all_active_ns)?),
    ];
    let missing = [None; Counts::COUNT];
    for counts in [slice.tx.values(), slice.rx.as_ref().map_or(missing, Counts::values)] {
        for (name, count) in Counts::NAMES.into_iter().zip(counts) {
            values.push(match count {
                Some(count) => Value::Integer(row::integer(name, count)?),
                None => Value::Null,
            });
        }
    }
    Ok(values)
}

/// The counts of an end from the column with index `at` on; `None` for an end whose first one,
/// which is always counted, is NULL.
fn counts(row: &Row<'_>, at: usize, indices: &[usize]) -> rusqlite::Result<Option<Counts>> {
    let mut values = [None; Counts::COUNT];
    if indices.first() != Some(&0) || row.get::<_, Option<u64>>(at)?.is_none() {
        return Ok(None);
    }
    for (place, &index) in indices.iter().enumerate() {
        // Most of what a run has is read here, so not by way of what any type may be.
        values[index] = match row.get_ref(at + place)? {
            ValueRef::Null => None,
            ValueRef::Integer(count @ 0..) => Some(count.unsigned_abs()),
            _ => row.get(at + place)?,
        };
    }
    let counts = Counts::from_values(&values);
    counts
        .map(Some)
        .ok_or_else(|| row::unreadable(row, at, "a count that goes with others is missing"))
}

/// Names the columns that are not NULL in all of these slices of a run.
pub(crate) fn name(
    transaction: &Transaction<'_>,
    run: i64,
    slices: &[SliceOutcome],
) -> rusqlite::Result<()> {
    let mut has = [[false; Counts::COUNT]; 2];
    for slice in slices {
        for (end, counts) in has.iter_mut().zip([Some(&slice.tx), slice.rx.as_ref()]) {
            let values = counts.map(Counts::values).into_iter().flatten();
            end.iter_mut().zip(values).for_each(|(has, value)| *has |= value.is_some());
        }
    }
    let sql = "INSERT INTO run_count (run, name) VALUES (?, ?) ON CONFLICT DO NOTHING";
    let mut statement = transaction.prepare_cached(sql)?;
    for (name, _) in names().iter().zip(has.as_flattened()).filter(|(_, has)| **has) {
        statement.execute((run, name))?;
    }
    Ok(())
}
