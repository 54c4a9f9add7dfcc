//! Reading trials: each with its arms and slices, as it was appended.

use iolens_model::arm::{Arm, ArmOutcome};
use iolens_model::cell::{Cell, NetSetting, Setting};
use iolens_model::outcome::{EndFacts, SliceOutcome, TrialOutcome};
use iolens_model::plan::Plan;
use iolens_model::tuning::Tuning;
use iolens_model::units::Bytes;
use rusqlite::{Connection, Row};

use crate::row;

/// Columns of a trial and of an arm, in the order in which they are read. By number: a name
/// is looked for among all of them, for each value of each row.
const TRIAL: &str = "trial, pass, position, isolated, started_unix_ns, duration_ns, status, \
                     reason, environment_json, tx_json, rx_json, cell_json, topology, mode, \
                     working_set, fields, iovec, receiver, threads, message_bytes, ip, mtu_bytes, \
                     socket_buffer, receive_size, reap_batch, uring_depth, uring_batch";
const ARM: &str = "label, primitive, role, status, reason, copies_sender, copies_end_to_end, \
                   latency_json, server_json";

/// All trials of a run of this plan in the order in which they were appended, each as
/// `keep` leaves it.
pub(crate) fn all(
    connection: &Connection,
    run: i64,
    plan: &Plan,
    mut keep: impl FnMut(TrialOutcome) -> TrialOutcome,
) -> rusqlite::Result<Vec<TrialOutcome>> {
    let sql = format!("SELECT {ARM} FROM arm WHERE trial = ? ORDER BY arm");
    let mut of_arms = connection.prepare_cached(&sql)?;
    let sql = format!("SELECT {} FROM slice WHERE trial = ? ORDER BY seq", row::slice_columns());
    let mut of_slices = connection.prepare_cached(&sql)?;
    let sql = format!("SELECT {TRIAL} FROM trial WHERE run = ? ORDER BY trial");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut ends = [Ends::default(), Ends::default()];
    let trials = statement.query_map([run], |row| {
        let key: i64 = row.get(0)?;
        let arms = of_arms.query_map([key], arm)?.collect::<rusqlite::Result<_>>()?;
        let slices = of_slices.query_map([key], slice)?.collect::<rusqlite::Result<_>>()?;
        trial(row, plan, arms, slices, &mut ends).map(&mut keep)
    })?;
    trials.collect()
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
        tx: tx.read(row, 9)?,
        rx: rx.read(row, 10)?,
    })
}

/// What an end says of itself, which is nearly the same in every trial, and two thirds of
/// what is stored of a small one: what differs is how long it read counters.
#[derive(Default)]
struct Ends {
    /// The JSON around that number, and what it says.
    known: Option<(String, String, EndFacts)>,
}

impl Ends {
    fn read(&mut self, row: &Row<'_>, at: usize) -> rusqlite::Result<Option<EndFacts>> {
        let value = row.get_ref(at)?;
        let parts = value.as_str().ok().and_then(around_bracket);
        let Some((before, bracket_ns, after)) = parts else {
            return row::get_json_or_null(row, at);
        };
        if let Some((known_before, known_after, facts)) = &self.known
            && (known_before.as_str(), known_after.as_str()) == (before, after)
        {
            return Ok(Some(EndFacts { bracket_ns, ..facts.clone() }));
        }
        let facts: EndFacts = row::get_json(row, at)?;
        self.known = Some((before.to_owned(), after.to_owned(), facts.clone()));
        Ok(Some(facts))
    }
}

/// The JSON of an end before and behind the value of `bracket_ns`, and that value.
fn around_bracket(json: &str) -> Option<(&str, u64, &str)> {
    const KEY: &str = "\"bracket_ns\":";
    let at = json.find(KEY)? + KEY.len();
    let (before, rest) = json.split_at(at);
    let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
    let (value, after) = rest.split_at(digits);
    // It is a key of the end itself where it stands once.
    (!after.contains(KEY)).then_some((before, value.parse().ok()?, after))
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

fn slice(row: &Row<'_>) -> rusqlite::Result<SliceOutcome> {
    Ok(SliceOutcome {
        seq: row.get(0)?,
        round: row.get(1)?,
        kind: row::get_word(row, 2)?,
        arm: row.get(3)?,
        all_active_ns: row.get(4)?,
        tx: row::get_counts(row, row::TX_AT)?.unwrap_or_default(),
        rx: row::get_counts(row, row::RX_AT)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_trials_is_cut_out() {
        let json = r#"{"a":1,"bracket_ns":42,"why":["x"]}"#;
        assert_eq!(around_bracket(json), Some((&json[..20], 42, r#","why":["x"]}"#)));
        for odd in ["", "{}", r#"{"bracket_ns":}"#, r#"{"bracket_ns":-1}"#, r#"{"bracket_ns":1"#] {
            assert_eq!(around_bracket(odd), None, "{odd}");
        }
        let twice = r#"{"why":"\"bracket_ns\":1","bracket_ns":2}"#;
        assert_eq!(around_bracket(twice), Some((&twice[..39], 2, "}")));
        assert_eq!(around_bracket(r#"{"bracket_ns":1,"x":{"bracket_ns":2}}"#), None);
    }
}
