//! The columns of slices, and which of them a run has. Most are NULL in every slice of a run:
//! those of other studies, of counters that this machine lacks, of probes that were not asked
//! for. To get each of these out of SQLite takes most of the time in which a long run is read.

use iolens_model::outcome::{Counts, SliceOutcome};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row};

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
    let sql = "SELECT name FROM pragma_table_info('slice')";
    let there: Vec<String> = row::all(connection, sql, [], |row| row.get(0))?;
    let is_missing = |name: &String| !there.is_empty() && !there.contains(name);
    Ok(names().into_iter().filter(is_missing).collect())
}

/// The columns in which slices are read or written: of counts by their places among all, rising.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Columns(Vec<usize>);

impl Columns {
    /// Every one there is.
    pub(crate) fn all() -> Columns {
        Columns((0..names().len()).collect())
    }

    /// Those that some slice of a run has.
    pub(crate) fn of(connection: &Connection, run: i64) -> rusqlite::Result<Columns> {
        let all = names();
        let place = |row: &Row<'_>| {
            let name: String = row.get(0)?;
            all.iter().position(|known| *known == name).ok_or_else(|| {
                let shown: String = name.chars().take(40).flat_map(char::escape_debug).collect();
                row::unreadable(row, 0, format!("this build has no count `{shown}`"))
            })
        };
        let sql = "SELECT name FROM run_count WHERE run = ?";
        let mut places = row::all(connection, sql, [run], place)?;
        places.sort_unstable();
        Ok(Columns(places))
    }

    /// Their names, with commas between.
    pub(crate) fn sql(&self) -> String {
        let names = names();
        let counts = self.0.iter().map(|&place| &*names[place]);
        OWN.into_iter().chain(counts).collect::<Vec<_>>().join(", ")
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        OWN.len() + self.0.len()
    }

    /// The slice in a row that begins with these columns.
    pub(crate) fn read(&self, row: &Row<'_>) -> rusqlite::Result<SliceOutcome> {
        let mut counts = [[None; Counts::COUNT]; 2];
        let all = counts.as_flattened_mut();
        for (at, &place) in (OWN.len()..).zip(&self.0) {
            // Most of what a run has is read here, so not by way of what any type may be.
            all[place] = match row.get_ref(at)? {
                ValueRef::Null => None,
                ValueRef::Integer(count @ 0..) => Some(count.unsigned_abs()),
                _ => row.get(at)?,
            };
        }
        let [tx, rx] = &counts;
        Ok(SliceOutcome {
            seq: row.get(0)?,
            round: row.get(1)?,
            kind: row::get_word(row, 2)?,
            arm: row.get(3)?,
            all_active_ns: row.get(4)?,
            tx: of_end(row, tx)?.ok_or_else(|| {
                row::unreadable(row, OWN.len(), "the sending end counted nothing")
            })?,
            rx: of_end(row, rx)?,
        })
    }
}

/// The counts of an end; `None` where it lacks the first one, which is always counted.
fn of_end(
    row: &Row<'_>,
    counts: &[Option<u64>; Counts::COUNT],
) -> rusqlite::Result<Option<Counts>> {
    let missing = || row::unreadable(row, OWN.len(), "a count that goes with others is missing");
    counts[0].map(|_| Counts::from_values(counts).ok_or_else(missing)).transpose()
}

/// The values of a slice for [`Columns::all`]: its own, and those of its counts.
pub(crate) fn values(slice: &SliceOutcome) -> Result<([Value; 5], Vec<Option<i64>>), StoreError> {
    let own = [
        Value::Integer(slice.seq.into()),
        Value::Integer(slice.round.into()),
        Value::Text(row::word("a slice's kind", &slice.kind)?),
        Value::Integer(row::integer("a slice's arm", slice.arm)?),
        Value::Integer(row::integer("all_active_ns", slice.all_active_ns)?),
    ];
    let missing = [None; Counts::COUNT];
    let ends = [slice.tx.values(), slice.rx.as_ref().map_or(missing, Counts::values)];
    let counts = Counts::NAMES.iter().cycle().zip(ends.as_flattened());
    let count = |(name, count): (&&'static str, &Option<u64>)| {
        count.map(|count| row::integer(name, count)).transpose()
    };
    Ok((own, counts.map(count).collect::<Result<_, _>>()?))
}
