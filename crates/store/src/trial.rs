//! Reading trials: each with its arms and slices, as it was appended.

use std::cmp::Ordering;

use iolens_model::arm::{Arm, ArmOutcome};
use iolens_model::cell::{Cell, NetSetting, Setting};
use iolens_model::outcome::{EndFacts, SliceOutcome, TrialOutcome};
use iolens_model::plan::Plan;
use iolens_model::tuning::Tuning;
use iolens_model::units::Bytes;
use rusqlite::fallible_streaming_iterator::FallibleStreamingIterator;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Rows};

use crate::counted::Columns;
use crate::row;

/// Columns of a trial and of an arm, in the order in which they are read. By number: a name
/// is looked for among all of them, for each value of each row.
const TRIAL: &str = "trial, pass, position, isolated, started_unix_ns, duration_ns, status, \
                     reason, environment_json, tx_json, rx_json, cell_json, topology, mode, \
                     working_set, fields, iovec, receiver, threads, message_bytes, ip, mtu_bytes, \
                     socket_buffer, receive_size, reap_batch, uring_depth, uring_batch, \
                     far_environment_json";
const ARM: &str = "label, primitive, role, status, reason, copies_sender, copies_end_to_end, \
                   latency_json, server_json, trial";

/// Where what was around a trial on the other machine stands among its columns.
const FAR_ENVIRONMENT: usize = 27;

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

/// Fewer are read before a second connection is open and has read the schema.
const HALVED_MIN: u64 = 1000;

impl Trials {
    /// All of a run.
    pub(crate) fn of(connection: &Connection, run: i64) -> rusqlite::Result<Trials> {
        let sql = "SELECT min(trial), max(trial), count(*) FROM trial WHERE run = ?";
        connection.prepare_cached(sql)?.query_row([run], |row| {
            let keys: (Option<i64>, Option<i64>) = (row.get(0)?, row.get(1)?);
            Ok(Trials { run, keys: keys.0.zip(keys.1), count: row.get(2)? })
        })
    }

    /// The first half and the rest; null where there are too few for two readers.
    pub(crate) fn halves(&self, connection: &Connection) -> rusqlite::Result<Option<[Trials; 2]>> {
        let Some((first, last)) = self.keys.filter(|_| self.count >= HALVED_MIN) else {
            return Ok(None);
        };
        let count = self.count / 2;
        let sql = "SELECT trial FROM trial WHERE run = ? ORDER BY trial LIMIT 1 OFFSET ?";
        let middle: i64 =
            connection.prepare_cached(sql)?.query_row((self.run, count), |row| row.get(0))?;
        let half = |first, last, count| Trials { run: self.run, keys: Some((first, last)), count };
        Ok(Some([half(first, middle - 1, count), half(middle, last, self.count - count)]))
    }

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
        let Some((first, last)) = self.keys else { return Ok(0) };
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
        let mut ends = [Ends::default(), Ends::default()];
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
    [tx, rx]: &mut [Ends; 2],
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
        tx: tx.read(row, 9)?,
        rx: rx.read(row, 10)?,
    })
}

/// What an end says of itself, which is nearly the same in every trial of a cell, and two
/// thirds of what is stored of a small one: what differs is how long it read counters.
#[derive(Default)]
struct Ends {
    /// What was said so far, the last first.
    known: Vec<Known>,
}

/// As many as the cells of a plan that is large.
const KNOWN_MAX: usize = 64;

/// What an end said in some trial.
struct Known {
    /// The JSON before and behind the value of `bracket_ns`.
    around: (String, String),
    /// What that says, while no trial has it.
    facts: Option<EndFacts>,
}

impl Ends {
    fn read(&mut self, row: &Row<'_>, at: usize) -> rusqlite::Result<Option<EndFacts>> {
        let ValueRef::Text(text) = row.get_ref(at)? else {
            return row::get_json_or_null(row, at);
        };
        let found = self
            .known
            .iter()
            .enumerate()
            .find_map(|(index, known)| Some((index, bracket_between(text, &known.around)?)));
        if let Some((index, bracket_ns)) = found {
            self.known[..=index].rotate_right(1);
            if let Some(facts) = self.known[0].facts.take() {
                return Ok(Some(EndFacts { bracket_ns, ..facts }));
            }
        } else if let Some((before, after)) =
            row.get_ref(at)?.as_str().ok().and_then(around_bracket)
        {
            self.known.truncate(KNOWN_MAX - 1);
            let around = (before.to_owned(), after.to_owned());
            self.known.insert(0, Known { around, facts: None });
        } else {
            // Which is no longer what the first of the known has said.
            self.known.clear();
        }
        row::get_json(row, at).map(Some)
    }

    /// Takes back what the last trial had, for the next that says the same.
    fn take_back(&mut self, facts: Option<EndFacts>) {
        if let (Some(facts), Some(known)) = (facts, self.known.first_mut()) {
            known.facts = Some(facts);
        }
    }
}

/// The value of `bracket_ns` in a JSON that is otherwise like another; null where it is not.
fn bracket_between(json: &[u8], (before, after): &(String, String)) -> Option<u64> {
    let value = json.strip_prefix(before.as_bytes())?.strip_suffix(after.as_bytes())?;
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| is_number)?.parse().ok()
}

/// The JSON of an end before and behind the value of `bracket_ns`.
fn around_bracket(json: &str) -> Option<(&str, &str)> {
    const KEY: &str = "\"bracket_ns\":";
    let (before, rest) = json.split_at(json.find(KEY)? + KEY.len());
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).filter(|&at| at > 0)?;
    let after = &rest[digits..];
    // It is a key of the end itself where it stands once.
    (!after.contains(KEY)).then_some((before, after))
}

/// The cell of a trial: in columns for `net`, as JSON for every other study.
fn cell(row: &Row<'_>, plan: &Plan) -> rusqlite::Result<Cell> {
    if let Some(cell) = row::get_json_or_null(row, 11)? {
        return Ok(cell);
    }
    let topology = row::get_word(row, 12)?;
    let only = || plan.net().map_or(Tuning::DEFAULT, |net| net.only_tuning(topology));
    let setting = NetSetting {
        topology,
        mode: row::get_word(row, 13)?,
        working_set: row::get_word(row, 14)?,
        fields: row.get(15)?,
        iovec: row::get_word(row, 16)?,
        receiver: row.get(17)?,
        tuning: tuning(row)?.unwrap_or_else(only),
    };
    Ok(Cell { setting: Setting::Net(setting), threads: row.get(18)?, size: Bytes(row.get(19)?) })
}

/// The settings that are of the cell since version 7; null in older rows.
fn tuning(row: &Row<'_>) -> rusqlite::Result<Option<Tuning>> {
    let Some(ip) = row::get_word_or_null(row, 20)? else { return Ok(None) };
    Ok(Some(Tuning {
        ip,
        mtu_bytes: row.get(21)?,
        socket_buffer: Bytes(row.get(22)?),
        receive_size: row.get::<_, Option<u64>>(23)?.map(Bytes),
        reap_batch: row.get(24)?,
        uring_depth: row.get(25)?,
        uring_batch: row.get(26)?,
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

    #[test]
    fn what_differs_between_trials_is_cut_out() {
        let json = r#"{"a":1,"bracket_ns":42,"why":["x"]}"#;
        assert_eq!(around_bracket(json), Some((&json[..20], r#","why":["x"]}"#)));
        for odd in ["", "{}", r#"{"bracket_ns":}"#, r#"{"bracket_ns":-1}"#, r#"{"bracket_ns":1"#] {
            assert_eq!(around_bracket(odd), None, "{odd}");
        }
        let twice = r#"{"why":"\"bracket_ns\":1","bracket_ns":2}"#;
        assert_eq!(around_bracket(twice), Some((&twice[..39], "}")));
        assert_eq!(around_bracket(r#"{"bracket_ns":1,"x":{"bracket_ns":2}}"#), None);
    }

    #[test]
    fn a_number_is_read_only_from_what_is_otherwise_the_same() {
        let around = (r#"{"bracket_ns":"#.to_owned(), ",1}".to_owned());
        let read = |json: &str| bracket_between(json.as_bytes(), &around);
        assert_eq!(read(r#"{"bracket_ns":42,1}"#), Some(42));
        for other in
            [r#"{"bracket_ns":42,2}"#, r#"{"bracket_ns":,1}"#, r#"{"bracket_ns":+4,1}"#, ""]
        {
            assert_eq!(read(other), None, "{other}");
        }
        assert_eq!(read(r#"{"bracket_ns":99999999999999999999,1}"#), None, "no 64-bit number");
    }
}
