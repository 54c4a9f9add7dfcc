//! Reading trials: each with its arms and slices, as it was appended.

use std::cmp::Ordering;
use std::mem::take;

use iolens_model::arm::ArmOutcome;
use iolens_model::cell::Cell;
use iolens_model::outcome::{EndFacts, Environment, SliceOutcome, Status, TrialOutcome};
use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator;
use rusqlite::{Connection, Row, Rows};
use serde::{Deserialize, Serialize};

use crate::counted::Columns;
use crate::row;
use crate::shared::{Own, Shared};

/// What a trial shares with no other, and has no table of its own.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rest {
    pass: u32,
    position: u32,
    isolated: bool,
    started_unix_ns: u64,
    duration_ns: u64,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    environment: Environment,
    #[serde(skip_serializing_if = "Option::is_none")]
    far_environment: Option<Environment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tx: Option<Own>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rx: Option<Own>,
}

impl Rest {
    /// Of a trial, and what its ends said in it alone.
    pub(crate) fn of(trial: &TrialOutcome, [tx, rx]: [Option<Own>; 2]) -> Rest {
        Rest {
            pass: trial.pass,
            position: trial.position,
            isolated: trial.isolated,
            started_unix_ns: trial.started_unix_ns,
            duration_ns: trial.duration_ns,
            status: trial.status,
            reason: trial.reason.clone(),
            environment: trial.environment.clone(),
            far_environment: trial.far_environment.clone(),
            tx,
            rx,
        }
    }
}

/// Trials of a run that were appended one after another.
pub(crate) struct Trials {
    run: i64,
    /// Keys of the first and of the last; `None` where there are none.
    keys: Option<(i64, i64)>,
    /// How many there are.
    pub(crate) count: u64,
}

/// A stretch of them: keys of the first and of the last.
#[derive(Debug)]
pub(crate) struct Stretch {
    run: i64,
    first: i64,
    last: i64,
}

/// Fewer are read before another connection is open and has read the schema.
const STRETCH_MIN: u64 = 500;

/// So many that readers of unlike speed end at about the same time.
const STRETCHES_MAX: u64 = 32;

impl Trials {
    /// All of a run.
    pub(crate) fn of(connection: &Connection, run: i64) -> rusqlite::Result<Trials> {
        let sql = "SELECT min(trial), max(trial), count(*) FROM trial WHERE run = ?";
        connection.prepare_cached(sql)?.query_row([run], |row| {
            let keys: (Option<i64>, Option<i64>) = (row.get(0)?, row.get(1)?);
            Ok(Trials { run, keys: keys.0.zip(keys.1), count: row.get(2)? })
        })
    }

    /// All of them in stretches about alike, in their order: one where they are few.
    pub(crate) fn stretches(&self) -> Vec<Stretch> {
        let Some((first, last)) = self.keys else { return Vec::new() };
        let number = (self.count / STRETCH_MIN).clamp(1, STRETCHES_MAX);
        // Keys rise by one, but for those of other runs that were appended between them.
        let keys = last.abs_diff(first).saturating_add(1);
        let begins = |at: u64| first.saturating_add_unsigned(keys / number * at);
        let stretch = |at| Stretch {
            run: self.run,
            first: begins(at),
            last: if at + 1 == number { last } else { begins(at + 1).saturating_sub(1) },
        };
        (0..number).map(stretch).collect()
    }

    /// As [`Stretch::each`], of all.
    pub(crate) fn each(
        &self,
        connection: &Connection,
        see: impl FnMut(&TrialOutcome),
    ) -> rusqlite::Result<u64> {
        let Some((first, last)) = self.keys else { return Ok(0) };
        Stretch { run: self.run, first, last }.each(connection, see)
    }
}

impl Stretch {
    /// Shows each to `see`, in the order in which they were appended, and returns how many
    /// there were.
    ///
    /// Three statements go through trials, arms and slices side by side: to look for the parts
    /// of each trial takes several times as long. What other runs appended between them is
    /// passed over.
    pub(crate) fn each(
        &self,
        connection: &Connection,
        mut see: impl FnMut(&TrialOutcome),
    ) -> rusqlite::Result<u64> {
        let (first, last) = (self.first, self.last);
        let mut of_arms = connection.prepare_cached(
            "SELECT arm_json, trial FROM arm WHERE trial BETWEEN ? AND ? ORDER BY trial, arm",
        )?;
        let mut of_arms = Parts::of(of_arms.query([first, last])?, 1)?;
        let columns = Columns::of(connection, self.run)?;
        let sql = format!(
            "SELECT {}, trial FROM slice WHERE trial BETWEEN ? AND ? ORDER BY trial, seq",
            columns.sql()
        );
        let mut of_slices = connection.prepare_cached(&sql)?;
        let mut of_slices = Parts::of(of_slices.query([first, last])?, columns.len())?;
        let mut statement = connection.prepare_cached(
            "SELECT trial, cell, tx, rx, trial_json FROM trial NOT INDEXED \
             WHERE trial BETWEEN ? AND ? AND run = ? ORDER BY trial",
        )?;
        let mut rows = statement.query([first, last, self.run])?;
        let mut reader = Reader::of(connection, self.run);
        let mut seen = 0;
        while let Some(row) = rows.next()? {
            let key: i64 = row.get(0)?;
            let (arms, slices) = (&mut reader.arms, &mut reader.slices);
            of_arms.of_trial(key, &|row| row::get_json(row, 0), arms)?;
            of_slices.of_trial(key, &|row| columns.read(row), slices)?;
            reader.read(row, &mut see)?;
            seen += 1;
        }
        Ok(seen)
    }
}

/// Reads the rows of trials one after another, and keeps what the next one may have alike.
struct Reader<'a> {
    cells: Shared<'a, Cell>,
    ends: [Shared<'a, EndFacts>; 2],
    /// Of the trial that is read next.
    arms: Vec<ArmOutcome>,
    slices: Vec<SliceOutcome>,
}

impl<'a> Reader<'a> {
    fn of(connection: &'a Connection, run: i64) -> Reader<'a> {
        Reader {
            cells: Shared::of(connection, run),
            ends: [Shared::of(connection, run), Shared::of(connection, run)],
            arms: Vec::new(),
            slices: Vec::new(),
        }
    }

    fn read(&mut self, row: &Row<'_>, see: &mut impl FnMut(&TrialOutcome)) -> rusqlite::Result<()> {
        let (cell, [tx, rx]) = (row.get(1)?, [row.get(2)?, row.get(3)?]);
        let rest: Rest = row::get_json(row, 4)?;
        let trial = TrialOutcome {
            pass: rest.pass,
            position: rest.position,
            isolated: rest.isolated,
            cell: self.cells.take(cell)?,
            started_unix_ns: rest.started_unix_ns,
            duration_ns: rest.duration_ns,
            status: rest.status,
            reason: rest.reason,
            arms: take(&mut self.arms),
            slices: take(&mut self.slices),
            environment: rest.environment,
            far_environment: rest.far_environment,
            tx: end(row, &mut self.ends[0], tx, rest.tx)?,
            rx: end(row, &mut self.ends[1], rx, rest.rx)?,
        };
        see(&trial);
        self.cells.give_back(cell, trial.cell);
        for (shared, (number, facts)) in self.ends.iter_mut().zip([(tx, trial.tx), (rx, trial.rx)])
        {
            if let (Some(number), Some(mut facts)) = (number, facts) {
                Own::take(&mut facts);
                shared.give_back(number, facts);
            }
        }
        (self.arms, self.slices) = (trial.arms, trial.slices);
        Ok(())
    }
}

/// What an end said in a trial, of what it shares with others and what it alone has; `None` where
/// it never answered.
fn end(
    row: &Row<'_>,
    shared: &mut Shared<'_, EndFacts>,
    number: Option<i64>,
    own: Option<Own>,
) -> rusqlite::Result<Option<EndFacts>> {
    match (number, own) {
        (Some(number), Some(own)) => {
            let mut facts = shared.take(number)?;
            own.put(&mut facts);
            Ok(Some(facts))
        }
        (None, None) => Ok(None),
        _ => Err(row::unreadable(row, 4, "one of an end's two parts is missing")),
    }
}

/// The rows of the parts of trials, in the order of the trials.
struct Parts<'a> {
    /// Those that were not asked for yet, from the current one on.
    rows: Rows<'a>,
    /// The column that says which trial a row is of.
    key_at: usize,
}

impl<'a> Parts<'a> {
    /// Of rows that have the key of their trial in this column.
    fn of(mut rows: Rows<'a>, key_at: usize) -> rusqlite::Result<Parts<'a>> {
        rows.advance()?;
        Ok(Parts { rows, key_at })
    }

    /// Puts the parts of a trial in place of those of another; none of an earlier one may be
    /// asked for afterwards.
    fn of_trial<T>(
        &mut self,
        trial: i64,
        read: &impl Fn(&Row<'_>) -> rusqlite::Result<T>,
        parts: &mut Vec<T>,
    ) -> rusqlite::Result<()> {
        parts.clear();
        while let Some(row) = self.rows.get() {
            match row.get::<_, i64>(self.key_at)?.cmp(&trial) {
                Ordering::Less => {}
                Ordering::Equal => parts.push(read(row)?),
                Ordering::Greater => break,
            }
            self.rows.advance()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of somebody else may have any keys.
    #[test]
    fn keys_at_the_ends_of_their_range_are_read_once() {
        for keys in [(i64::MIN, i64::MAX), (i64::MIN, 7), (-3, i64::MAX), (i64::MAX, i64::MAX)] {
            let trials = Trials { run: 1, keys: Some(keys), count: 100_000 };
            let stretches = trials.stretches();
            let ends = (stretches[0].first, stretches[stretches.len() - 1].last);
            assert_eq!(ends, keys);
            for pair in stretches.windows(2) {
                let is_next = pair[0].last.checked_add(1) == Some(pair[1].first);
                assert!(is_next || keys.0 == keys.1, "{keys:?}: {pair:?}");
            }
        }
    }
}
