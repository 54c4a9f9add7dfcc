//! Which counts the slices of a run have. Most columns are NULL in every slice of it: those of
//! other studies, of counters that this machine lacks, of probes that were not asked for. To get
//! each of these out of SQLite takes most of the time in which a long run is read.

use std::collections::BTreeSet;

use iolens_model::outcome::{Counts, SliceOutcome};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Transaction};

use crate::row;

/// Columns of a slice besides those of its two ends.
const OWN: [&str; 5] = ["seq", "round", "kind", "arm", "all_active_ns"];

/// What the columns of the two ends begin with.
const ENDS: [&str; 2] = ["tx_", "rx_"];

/// The columns of slices, in the order in which they are written and read.
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

    /// Those that some slice of a run has; all of a run of an older version.
    pub(crate) fn of(connection: &Connection, run: i64) -> rusqlite::Result<Columns> {
        let names = names(connection, run)?;
        if names.is_empty() {
            return Ok(Columns::all());
        }
        let has = |end: &str, index: usize| names.contains(&column(end, index));
        Ok(Columns {
            ends: ENDS.map(|end| (0..Counts::COUNT).filter(|&index| has(end, index)).collect()),
        })
    }

    /// Their names, with commas between.
    pub(crate) fn sql(&self) -> String {
        let of_end = |(end, indices): (&&str, &Vec<usize>)| -> Vec<String> {
            indices.iter().map(|&index| column(end, index)).collect()
        };
        let of_ends = ENDS.iter().zip(&self.ends).flat_map(of_end);
        OWN.into_iter().map(str::to_owned).chain(of_ends).collect::<Vec<_>>().join(", ")
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        OWN.len() + self.ends[0].len() + self.ends[1].len()
    }

    /// The counts of both ends in a row that begins with these columns; null for an end whose
    /// first one, which is always counted, is NULL.
    pub(crate) fn counts(&self, row: &Row<'_>) -> rusqlite::Result<[Option<Counts>; 2]> {
        let [tx, rx] = &self.ends;
        Ok([counts(row, OWN.len(), tx)?, counts(row, OWN.len() + tx.len(), rx)?])
    }
}

/// The counts of an end from the column with index `at` on.
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

/// The name of a count's column.
fn column(end: &str, index: usize) -> String {
    format!("{end}{}", Counts::NAMES[index])
}

fn names(connection: &Connection, run: i64) -> rusqlite::Result<BTreeSet<String>> {
    let mut statement = connection.prepare_cached("SELECT name FROM run_count WHERE run = ?")?;
    let names = statement.query_map([run], |row| row.get(0))?;
    names.collect()
}

/// What is named of a run that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    /// These counts, and no slice has others.
    These(BTreeSet<String>),
    /// Nothing: it has trials of an older version.
    Nothing,
}

impl Named {
    /// Of a run to which a trial is about to be appended.
    pub(crate) fn of(connection: &Connection, run: i64) -> rusqlite::Result<Named> {
        let names = names(connection, run)?;
        let sql = "SELECT EXISTS (SELECT 1 FROM trial WHERE run = ?)";
        let has_trials: bool =
            connection.prepare_cached(sql)?.query_row([run], |row| row.get(0))?;
        Ok(if names.is_empty() && has_trials { Named::Nothing } else { Named::These(names) })
    }

    /// Names what the slices of a trial have besides; what is named then.
    pub(crate) fn with(
        &self,
        transaction: &Transaction<'_>,
        run: i64,
        slices: &[SliceOutcome],
    ) -> rusqlite::Result<Named> {
        let Named::These(names) = self else { return Ok(Named::Nothing) };
        let mut names = names.clone();
        let sql = "INSERT INTO run_count (run, name) VALUES (?, ?)";
        let mut statement = transaction.prepare_cached(sql)?;
        for name in present(slices) {
            if !names.contains(&name) {
                statement.execute((run, &name))?;
                names.insert(name);
            }
        }
        Ok(Named::These(names))
    }
}

/// The columns that are not NULL in all of these slices.
fn present(slices: &[SliceOutcome]) -> impl Iterator<Item = String> {
    let mut has = [[false; Counts::COUNT]; 2];
    for slice in slices {
        for (end, counts) in has.iter_mut().zip([Some(&slice.tx), slice.rx.as_ref()]) {
            let values = counts.map(Counts::values).into_iter().flatten();
            end.iter_mut().zip(values).for_each(|(has, value)| *has |= value.is_some());
        }
    }
    ENDS.into_iter().zip(has).flat_map(|(end, has)| {
        (0..Counts::COUNT).filter(move |&index| has[index]).map(move |index| column(end, index))
    })
}
