//! Reading trials: each with its arms and slices, as it was appended.

use std::cmp::Ordering;

use iolens_model::arm::{Arm, ArmOutcome};
use iolens_model::cell::{Cell, NetSetting, Setting};
use iolens_model::outcome::{SliceOutcome, TrialOutcome};
use iolens_model::plan::Plan;
use iolens_model::tuning::Tuning;
use iolens_model::units::Bytes;
use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator;
use rusqlite::{Connection, Row, Rows};

use crate::counted::Columns;
use crate::ends::End;
use crate::row;

/// Columns of a trial and of an arm, in the order in which they are read. By number: a name
/// is looked for among all of them, for each value of each row.
const TRIAL: &str = "trial, pass, position, isolated, started_unix_ns, duration_ns, status, \
                     reason, environment_json, tx_facts, tx_own_json, rx_facts, rx_own_json, \
                     far_environment_json, cell_json, topology, mode, working_set, fields, \
                     iovec, receiver, threads, message_bytes, ip, mtu_bytes, socket_buffer, \
                     receive_size, reap_batch, uring_depth, uring_batch";
const ARM: &str = "label, primitive, role, status, reason, copies_sender, copies_end_to_end, \
                   latency_json, server_json, trial";

/// Where those of its ends, and of its cell, begin.
const TX: usize = 9;
const RX: usize = 11;
const FAR_ENVIRONMENT: usize = 13;
const CELL: usize = 14;

/// Where the key of the trial stands among the columns of an arm.
const TRIAL_OF_ARM: usize = 9;

/// Trials of a run that were appended one after another.
pub(crate) struct Trials {
    run: i64,
    /// Keys of the first and of the last; null where there are none.
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
        plan: &Plan,
        see: impl FnMut(&TrialOutcome),
    ) -> rusqlite::Result<u64> {
        let Some((first, last)) = self.keys else { return Ok(0) };
        Stretch { run: self.run, first, last }.each(connection, plan, see)
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
        plan: &Plan,
        mut see: impl FnMut(&TrialOutcome),
    ) -> rusqlite::Result<u64> {
        let (first, last) = (self.first, self.last);
        let sql = format!("SELECT {ARM} FROM arm WHERE trial BETWEEN ? AND ? ORDER BY trial, arm");
        let mut of_arms = connection.prepare_cached(&sql)?;
        let mut of_arms = Parts::of(of_arms.query([first, last])?, TRIAL_OF_ARM)?;
        let columns = Columns::of(connection, self.run)?;
        let sql = format!(
            "SELECT {}, trial FROM slice WHERE trial BETWEEN ? AND ? ORDER BY trial, seq",
            columns.sql()
        );
        let mut of_slices = connection.prepare_cached(&sql)?;
        let mut of_slices = Parts::of(of_slices.query([first, last])?, columns.len())?;
        let slice = |row: &Row<'_>| slice(row, &columns);
        let sql = format!(
            "SELECT {TRIAL} FROM trial NOT INDEXED WHERE trial BETWEEN ? AND ? AND run = ? \
             ORDER BY trial"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query([first, last, self.run])?;
        let mut ends = [End::of(connection, self.run), End::of(connection, self.run)];
        let (mut arms, mut slices) = (Vec::new(), Vec::new());
        let mut seen = 0;
        while let Some(row) = rows.next()? {
            let key: i64 = row.get(0)?;
            of_arms.of_trial(key, &arm, &mut arms)?;
            of_slices.of_trial(key, &slice, &mut slices)?;
            let trial = trial(row, plan, arms, slices, &mut ends)?;
            see(&trial);
            seen += 1;
            (arms, slices) = (trial.arms, trial.slices);
            let [tx, rx] = &mut ends;
            tx.take_back(trial.tx);
            rx.take_back(trial.rx);
        }
        Ok(seen)
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

fn trial(
    row: &Row<'_>,
    plan: &Plan,
    arms: Vec<ArmOutcome>,
    slices: Vec<SliceOutcome>,
    [tx, rx]: &mut [End<'_>; 2],
) -> rusqlite::Result<TrialOutcome> {
    Ok(TrialOutcome {
        pass: row.get(1)?,
        position: row.get(2)?,
        isolated: row.get(3)?,
        cell: cell(row, plan)?,
        started_unix_ns: row.get(4)?,
        duration_ns: row.get(5)?,
        status: row::get_word(row, 6)?,
        reason: row.get(7)?,
        arms,
        slices,
        environment: row::get_json(row, 8)?,
        far_environment: row::get_json_or_null(row, FAR_ENVIRONMENT)?,
        tx: tx.read(row, TX)?,
        rx: rx.read(row, RX)?,
    })
}

/// The cell of a trial: in columns for `net`, as JSON for every other study.
fn cell(row: &Row<'_>, plan: &Plan) -> rusqlite::Result<Cell> {
    if let Some(cell) = row::get_json_or_null(row, CELL)? {
        return Ok(cell);
    }
    let topology = row::get_word(row, CELL + 1)?;
    let only = || plan.net().map_or(Tuning::DEFAULT, |net| net.only_tuning(topology));
    let setting = NetSetting {
        topology,
        mode: row::get_word(row, CELL + 2)?,
        working_set: row::get_word(row, CELL + 3)?,
        fields: row.get(CELL + 4)?,
        iovec: row::get_word(row, CELL + 5)?,
        receiver: row.get(CELL + 6)?,
        tuning: tuning(row)?.unwrap_or_else(only),
    };
    Ok(Cell {
        setting: Setting::Net(setting),
        threads: row.get(CELL + 7)?,
        size: Bytes(row.get(CELL + 8)?),
    })
}

/// The settings that are of the cell since version 7; null in older rows.
fn tuning(row: &Row<'_>) -> rusqlite::Result<Option<Tuning>> {
    let Some(ip) = row::get_word_or_null(row, CELL + 9)? else { return Ok(None) };
    Ok(Some(Tuning {
        ip,
        mtu_bytes: row.get(CELL + 10)?,
        socket_buffer: Bytes(row.get(CELL + 11)?),
        receive_size: row.get::<_, Option<u64>>(CELL + 12)?.map(Bytes),
        reap_batch: row.get(CELL + 13)?,
        uring_depth: row.get(CELL + 14)?,
        uring_batch: row.get(CELL + 15)?,
    }))
}

fn arm(row: &Row<'_>) -> rusqlite::Result<ArmOutcome> {
    Ok(ArmOutcome {
        arm: Arm { label: row.get(0)?, primitive: row.get(1)?, role: row::get_word(row, 2)? },
        status: row::get_word(row, 3)?,
        reason: row.get(4)?,
        copies_sender: row.get(5)?,
        copies_end_to_end: row.get(6)?,
        latency: row::get_json_or_null(row, 7)?,
        server: row::get_json_or_null(row, 8)?,
    })
}

fn slice(row: &Row<'_>, columns: &Columns) -> rusqlite::Result<SliceOutcome> {
    let [tx, rx] = columns.counts(row)?;
    Ok(SliceOutcome {
        seq: row.get(0)?,
        round: row.get(1)?,
        kind: row::get_word(row, 2)?,
        arm: row.get(3)?,
        all_active_ns: row.get(4)?,
        tx: tx.unwrap_or_default(),
        rx,
    })
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
