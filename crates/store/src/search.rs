//! Phases of searches: appended one by one, read back with their run.

use iolens_model::arm::Arm;
use iolens_model::search::SearchPhase;
use iolens_model::units::Nanos;
use rusqlite::{Connection, params};

use crate::{Store, StoreError, row};

impl Store {
    /// Stores a phase of a search.
    ///
    /// # Errors
    /// As [`Store::append_trial`].
    pub fn append_search(&mut self, run_id: &str, phase: &SearchPhase) -> Result<(), StoreError> {
        let values = params![
            self.run_key(run_id)?,
            phase.number,
            row::json("the cell", &phase.cell)?,
            phase.arm.label,
            phase.arm.primitive,
            row::word("an arm's role", &phase.arm.role)?,
            phase.step,
            row::real("the rate of a phase", phase.rate)?,
            row::integer("the length of a phase", phase.phase.0)?,
            row::integer("the time that does not count", phase.dropped.0)?,
            row::integer("the start of a phase", phase.started_unix_ns)?,
            row::integer("the duration of a phase", phase.duration_ns)?,
            phase.status.word(),
            phase.reason,
            phase.latency.as_ref().map(|l| row::json("latency", l)).transpose()?,
            phase.server.as_ref().map(|s| row::json("what came of a server", s)).transpose()?,
            phase.slice.as_ref().map(|s| row::json("the counts of a phase", s)).transpose()?,
            row::json("a phase's environment", &phase.environment)?,
        ];
        let sql = "INSERT INTO search_phase (run, number, cell_json, label, primitive, role, step, \
                   rate_per_s, phase_ns, dropped_ns, started_unix_ns, duration_ns, status, reason, \
                   latency_json, server_json, slice_json, environment_json) \
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let done = self.connection.execute(sql, values);
        done.map(|_| ()).map_err(self.failed("append a phase of a search"))
    }
}

/// Every phase of a run, in the order in which they ran.
pub(crate) fn all(connection: &Connection, run: i64) -> rusqlite::Result<Vec<SearchPhase>> {
    let sql = "SELECT number, cell_json, label, primitive, role, step, rate_per_s, phase_ns, \
               dropped_ns, started_unix_ns, duration_ns, status, reason, latency_json, \
               server_json, slice_json, environment_json FROM search_phase WHERE run = ? \
               ORDER BY search_phase";
    let mut statement = connection.prepare_cached(sql)?;
    let phases = statement.query_map([run], |row| {
        Ok(SearchPhase {
            number: row.get("number")?,
            cell: row::get_json(row, "cell_json")?,
            arm: Arm {
                label: row.get("label")?,
                primitive: row.get("primitive")?,
                role: row::get_word(row, "role")?,
            },
            step: row.get("step")?,
            rate: row.get("rate_per_s")?,
            phase: Nanos(row.get("phase_ns")?),
            dropped: Nanos(row.get("dropped_ns")?),
            started_unix_ns: row.get("started_unix_ns")?,
            duration_ns: row.get("duration_ns")?,
            status: row::get_word(row, "status")?,
            reason: row.get("reason")?,
            latency: row::get_json_or_null(row, "latency_json")?,
            server: row::get_json_or_null(row, "server_json")?,
            slice: row::get_json_or_null(row, "slice_json")?,
            environment: row::get_json(row, "environment_json")?,
        })
    })?;
    phases.collect()
}
