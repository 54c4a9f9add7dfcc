//! Reading trials: each with its arms and slices, as it was appended.

use iolens_model::arm::{Arm, ArmOutcome};
use iolens_model::cell::{Cell, NetSetting, Setting};
use iolens_model::outcome::{SliceOutcome, TrialOutcome};
use iolens_model::plan::Plan;
use iolens_model::tuning::Tuning;
use iolens_model::units::Bytes;
use rusqlite::{Connection, Row};

use crate::row;

/// All trials of a run of this plan in the order in which they were appended, each as
/// `keep` leaves it.
pub(crate) fn all(
    connection: &Connection,
    run: i64,
    plan: &Plan,
    mut keep: impl FnMut(TrialOutcome) -> TrialOutcome,
) -> rusqlite::Result<Vec<TrialOutcome>> {
    // Once for all trials: the last one has more than a hundred columns.
    let mut of_arms =
        connection.prepare_cached("SELECT * FROM arm WHERE trial = ? ORDER BY arm")?;
    let sql = format!("SELECT {} FROM slice WHERE trial = ? ORDER BY seq", row::slice_columns());
    let mut of_slices = connection.prepare_cached(&sql)?;
    let mut statement =
        connection.prepare_cached("SELECT * FROM trial WHERE run = ? ORDER BY trial")?;
    let trials = statement.query_map([run], |row| {
        let key: i64 = row.get("trial")?;
        let arms = of_arms.query_map([key], arm)?.collect::<rusqlite::Result<_>>()?;
        let slices = of_slices.query_map([key], slice)?.collect::<rusqlite::Result<_>>()?;
        trial(row, plan, arms, slices).map(&mut keep)
    })?;
    trials.collect()
}

fn trial(
    row: &Row<'_>,
    plan: &Plan,
    arms: Vec<ArmOutcome>,
    slices: Vec<SliceOutcome>,
) -> rusqlite::Result<TrialOutcome> {
    Ok(TrialOutcome {
        pass: row.get("pass")?,
        position: row.get("position")?,
        isolated: row.get("isolated")?,
        cell: cell(row, plan)?,
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

/// The cell of a trial: in columns for `net`, as JSON for every other study.
fn cell(row: &Row<'_>, plan: &Plan) -> rusqlite::Result<Cell> {
    if let Some(cell) = row::get_json_or_null(row, "cell_json")? {
        return Ok(cell);
    }
    let topology = row::get_word(row, "topology")?;
    let only = || plan.net().map_or(Tuning::DEFAULT, |net| net.only_tuning(topology));
    let setting = NetSetting {
        topology,
        mode: row::get_word(row, "mode")?,
        working_set: row::get_word(row, "working_set")?,
        fields: row.get("fields")?,
        iovec: row::get_word(row, "iovec")?,
        receiver: row.get("receiver")?,
        tuning: tuning(row)?.unwrap_or_else(only),
    };
    Ok(Cell {
        setting: Setting::Net(setting),
        threads: row.get("threads")?,
        size: Bytes(row.get("message_bytes")?),
    })
}

/// The settings that are of the cell since version 7; null in older rows.
fn tuning(row: &Row<'_>) -> rusqlite::Result<Option<Tuning>> {
    let Some(ip) = row::get_word_or_null(row, "ip")? else { return Ok(None) };
    Ok(Some(Tuning {
        ip,
        mtu_bytes: row.get("mtu_bytes")?,
        socket_buffer: Bytes(row.get("socket_buffer")?),
        receive_size: row.get::<_, Option<u64>>("receive_size")?.map(Bytes),
        reap_batch: row.get("reap_batch")?,
        uring_depth: row.get("uring_depth")?,
        uring_batch: row.get("uring_batch")?,
    }))
}

fn arm(row: &Row<'_>) -> rusqlite::Result<ArmOutcome> {
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
        server: row::get_json_or_null(row, "server_json")?,
    })
}

fn slice(row: &Row<'_>) -> rusqlite::Result<SliceOutcome> {
    Ok(SliceOutcome {
        seq: row.get(0)?,
        round: row.get(1)?,
        kind: row::get_word(row, "kind")?,
        arm: row.get(3)?,
        all_active_ns: row.get(4)?,
        tx: row::get_counts(row, row::TX_AT)?.unwrap_or_default(),
        rx: row::get_counts(row, row::RX_AT)?,
    })
}
