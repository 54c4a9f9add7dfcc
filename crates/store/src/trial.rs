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
use crate::shared::{OfEnd, Shared, is_default};

/// Declares what a trial shares with no other, and has no table of its own.
macro_rules! rest {
    ($($(#[$how:meta])* $name:ident: $type:ty,)+) => {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        pub(crate) struct Rest {
            $($(#[$how])* $name: $type,)+
            /// What its ends said in it alone.
            #[serde(skip_serializing_if = "Option::is_none")]
            tx: Option<OfEnd>,
            #[serde(skip_serializing_if = "Option::is_none")]
            rx: Option<OfEnd>,
        }

        impl Rest {
            pub(crate) fn of(trial: &TrialOutcome, [tx, rx]: [Option<OfEnd>; 2]) -> Rest {
                Rest { $($name: trial.$name.clone(),)+ tx, rx }
            }

            /// The trial, with what is stored elsewhere.
            fn whole(
                self,
                cell: Cell,
                arms: Vec<ArmOutcome>,
                slices: Vec<SliceOutcome>,
                [tx, rx]: [Option<EndFacts>; 2],
            ) -> TrialOutcome {
                TrialOutcome { $($name: self.$name,)+ cell, arms, slices, tx, rx }
            }
        }
    };
}

rest! {
    pass: u32,
    position: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    isolated: bool,
    started_unix_ns: u64,
    duration_ns: u64,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    environment: Environment,
    #[serde(skip_serializing_if = "Option::is_none")]
    far_environment: Option<Environment>,
}

/// The trials of a run.
pub(crate) struct Trials {
    /// `None` where there are none.
    all: Option<Stretch>,
    /// How many there are.
    pub(crate) count: u64,
}

/// Trials that were appended one after another: keys of the first and of the last.
#[derive(Debug, Clone, Copy)]
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
            let first: Option<i64> = row.get(0)?;
            let all = first.zip(row.get(1)?).map(|(first, last)| Stretch { run, first, last });
            Ok(Trials { all, count: row.get(2)? })
        })
    }

    /// All of them in stretches about alike, in their order: one where they are few.
    pub(crate) fn stretches(&self) -> Vec<Stretch> {
        let Some(Stretch { run, first, last }) = self.all else { return Vec::new() };
        let number = (self.count / STRETCH_MIN).clamp(1, STRETCHES_MAX);
        // Keys rise by one, but for those of other runs that were appended between them.
        let keys = last.abs_diff(first).saturating_add(1);
        let begins = |at: u64| first.saturating_add_unsigned(keys / number * at);
        let stretch = |at| Stretch {
            run,
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
        self.all.map_or(Ok(0), |all| all.each(connection, see))
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
            "SELECT shared, arm_json, trial FROM arm WHERE trial BETWEEN ? AND ? \
             ORDER BY trial, arm",
        )?;
        let mut of_arms = Parts::of(of_arms.query([first, last])?, 2)?;
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
            of_arms.of_trial(key, |row| reader.arm(row))?;
            of_slices.of_trial(key, |row| {
                reader.slices.push(columns.read(row)?);
                Ok(())
            })?;
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
    shared_arms: Shared<'a, ArmOutcome>,
    /// Of the trial that is read next, each arm with the number of what it shares.
    numbers: Vec<i64>,
    arms: Vec<ArmOutcome>,
    slices: Vec<SliceOutcome>,
}

impl<'a> Reader<'a> {
    fn of(connection: &'a Connection, run: i64) -> Reader<'a> {
        Reader {
            cells: Shared::of(connection, run),
            ends: [Shared::of(connection, run), Shared::of(connection, run)],
            shared_arms: Shared::of(connection, run),
            numbers: Vec::new(),
            arms: Vec::new(),
            slices: Vec::new(),
        }
    }

    fn arm(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let number = row.get(0)?;
        self.arms.push(self.shared_arms.with(number, row::get_json(row, 1)?)?);
        self.numbers.push(number);
        Ok(())
    }

    fn read(&mut self, row: &Row<'_>, see: &mut impl FnMut(&TrialOutcome)) -> rusqlite::Result<()> {
        let (cell, [tx, rx]) = (row.get(1)?, [row.get(2)?, row.get(3)?]);
        let mut rest: Rest = row::get_json(row, 4)?;
        let [of_tx, of_rx] = &mut self.ends;
        let ends = [end(row, of_tx, tx, rest.tx.take())?, end(row, of_rx, rx, rest.rx.take())?];
        let (arms, slices) = (take(&mut self.arms), take(&mut self.slices));
        let trial = rest.whole(self.cells.take(cell)?, arms, slices, ends);
        see(&trial);
        self.cells.give_back(cell, trial.cell);
        for (shared, (number, facts)) in self.ends.iter_mut().zip([(tx, trial.tx), (rx, trial.rx)])
        {
            if let Some((number, facts)) = number.zip(facts) {
                shared.give_back(number, facts);
            }
        }
        (self.arms, self.slices) = (trial.arms, trial.slices);
        for (number, arm) in self.numbers.drain(..).zip(self.arms.drain(..)) {
            self.shared_arms.give_back(number, arm);
        }
        self.slices.clear();
        Ok(())
    }
}

/// What an end said in a trial, of what it shares with others and what it alone has; `None` where
/// it never answered.
fn end(
    row: &Row<'_>,
    shared: &mut Shared<'_, EndFacts>,
    number: Option<i64>,
    own: Option<OfEnd>,
) -> rusqlite::Result<Option<EndFacts>> {
    match (number, own) {
        (Some(number), Some(own)) => shared.with(number, own).map(Some),
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

    /// Reads the parts of a trial; those of an earlier one may not be asked for afterwards.
    fn of_trial(
        &mut self,
        trial: i64,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        while let Some(row) = self.rows.get() {
            match row.get::<_, i64>(self.key_at)?.cmp(&trial) {
                Ordering::Less => {}
                Ordering::Equal => read(row)?,
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
            let all = Stretch { run: 1, first: keys.0, last: keys.1 };
            let trials = Trials { all: Some(all), count: 100_000 };
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
