//! Reading trials: each with its arms and slices, as it was appended.

use iolens_model::arm::{Arm, ArmOutcome};
use iolens_model::axes::Cell;
use iolens_model::outcome::{SliceOutcome, TrialOutcome};
use iolens_model::units::Bytes;
use rusqlite::{Connection, Row};

use crate::row;

/// All trials of a run in the order in which they were appended.
pub(crate) fn all(connection: &Connection, run: i64) -> rusqlite::Result<Vec<TrialOutcome>> {
    let mut statement =
        connection.prepare_cached("SELECT * FROM trial WHERE run = ? ORDER BY trial")?;
    let trials = statement.query_map([run], |row| {
        let key = row.get("trial")?;
        trial(row, arms(connection, key)?, slices(connection, key)?)
    })?;
    trials.collect()
}

fn trial(
    row: &Row<'_>,
    arms: Vec<ArmOutcome>,
    slices: Vec<SliceOutcome>,
) -> rusqlite::Result<TrialOutcome> {
    Ok(TrialOutcome {
        pass: row.get("pass")?,
        position: row.get("position")?,
        isolated: row.get("isolated")?,
        cell: Cell {
            topology: row::get_word(row, "topology")?,
            mode: row::get_word(row, "mode")?,
            working_set: row::get_word(row, "working_set")?,
            fields: row.get("fields")?,
            iovec: row::get_word(row, "iovec")?,
            receiver: row.get("receiver")?,
            threads: row.get("threads")?,
            message_bytes: Bytes(row.get("message_bytes")?),
        },
        started_unix_ns: row.get("started_unix_ns")?,
        duration_ns: row.get("duration_ns")?,
        status: row::get_word(row, "status")?,
        reason: row.get("reason")?,
        arms,
        slices,
        environment: row::get_json(row, "environment_json")?,
        tx: row::get_json_or_null(row, "tx_json")?,
        rx: row::get_json_or_null(row, "rx_json")?,
    })
}

fn arms(connection: &Connection, trial: i64) -> rusqlite::Result<Vec<ArmOutcome>> {
    let mut statement =
        connection.prepare_cached("SELECT * FROM arm WHERE trial = ? ORDER BY arm")?;
    let arms = statement.query_map([trial], |row| {
        Ok(ArmOutcome {
            arm: Arm {
                label: row.get("label")?,
                primitive: row.get("primitive")?,
                role: row::get_word(row, "role")?,
            },
            status: row::get_word(row, "status")?,
            reason: row.get("reason")?,
            copies_sender: row.get("copies_sender")?,
            copies_end_to_end: row.get("copies_end_to_end")?,
            latency: row::get_json_or_null(row, "latency_json")?,
        })
    })?;
    arms.collect()
}

fn slices(connection: &Connection, trial: i64) -> rusqlite::Result<Vec<SliceOutcome>> {
    let sql = format!("SELECT {} FROM slice WHERE trial = ? ORDER BY seq", row::slice_columns());
    let mut statement = connection.prepare_cached(&sql)?;
    let slices = statement.query_map([trial], |row| {
        Ok(SliceOutcome {
            seq: row.get(0)?,
            round: row.get(1)?,
            kind: row::get_word(row, "kind")?,
            arm: row.get(3)?,
            all_active_ns: row.get(4)?,
            tx: row::get_counts(row, row::TX_AT)?.unwrap_or_default(),
            rx: row::get_counts(row, row::RX_AT)?,
        })
    })?;
    slices.collect()
}
