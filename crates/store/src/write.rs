//! Writing: a run begins, trials are appended, the run ends.

use iolens_model::arm::ArmOutcome;
use iolens_model::outcome::{EndFacts, SliceOutcome, TrialOutcome};
use iolens_model::profile::ProfileTrial;
use iolens_model::run::SearchPhase;
use iolens_model::run::{RunEnd, RunHeader};
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use crate::counted::Columns;
use crate::header::STORED;
use crate::trial::Rest;
use crate::{Fault, Store, StoreError, counted, header, row, shared};

impl Store {
    /// Stores what is known when a run begins. `header.end` is not looked at:
    /// a run that begins has not ended, see [`Store::end_run`].
    ///
    /// # Errors
    /// An id that is there already, a host name that is the label of another machine here
    /// ([`StoreError::LabelTaken`]), or what SQLite says.
    pub fn begin_run(&mut self, header: &RunHeader) -> Result<(), StoreError> {
        self.refuse_taken_label(header)?;
        self.doing("begin a run", |connection| {
            let values = params![
                header.id,
                header.name,
                row::integer("the start of the run", header.started_unix_ns)?,
                header.build,
                header.plan.study().word(),
                header.confirms,
                header::json(header)?,
            ];
            let sql = "INSERT INTO run \
                       (id, name, started_unix_ns, build, study, confirms, run_json) \
                       VALUES (?, ?, ?, ?, ?, ?, ?)";
            connection.execute(sql, values)?;
            Ok(())
        })
    }

    /// Stores a trial with its arms and slices, all of it or nothing. When
    /// this has returned, no signal can take the trial back.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`] for a run that has not begun,
    /// [`StoreError::NotStorable`] for values that would not come back, or
    /// what SQLite says; in each case nothing of the trial is stored.
    pub fn append_trial(&mut self, run_id: &str, trial: &TrialOutcome) -> Result<(), StoreError> {
        self.commit("append a trial", |connection| {
            let run = self.key(connection, run_id)?;
            let key = insert_trial(connection, run, trial)?;
            insert_arms(connection, [run, key], &trial.arms)?;
            insert_slices(connection, [run, key], &trial.slices)
        })
    }

    /// Stores a sampled trial.
    ///
    /// # Errors
    /// As [`Store::append_trial`].
    pub fn append_profile(&mut self, run_id: &str, trial: &ProfileTrial) -> Result<(), StoreError> {
        self.doing("append a sampled trial", |connection| {
            let values = (self.key(connection, run_id)?, row::json("a sampled trial", trial)?);
            connection.execute("INSERT INTO profile (run, profile_json) VALUES (?, ?)", values)?;
            Ok(())
        })
    }

    /// Stores a phase of a search.
    ///
    /// # Errors
    /// As [`Store::append_trial`].
    pub fn append_search(&mut self, run_id: &str, phase: &SearchPhase) -> Result<(), StoreError> {
        self.doing("append a phase of a search", |connection| {
            let values = (self.key(connection, run_id)?, row::json("a phase of a search", phase)?);
            let sql = "INSERT INTO search_phase (run, search_phase_json) VALUES (?, ?)";
            connection.execute(sql, values)?;
            Ok(())
        })
    }

    /// Stores how a run ended and syncs the file, so that a run that has ended
    /// survives a power cut too. A resumed run may end again.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`] for a run that has not begun, or what SQLite
    /// says.
    pub fn end_run(&mut self, run_id: &str, end: &RunEnd) -> Result<(), StoreError> {
        self.doing("end a run", |connection| {
            let values = (self.key(connection, run_id)?, row::json("the end of the run", end)?);
            let sql = format!(
                "INSERT INTO run_end (run, trials, run_end_json) \
                 SELECT run, {STORED}, ?2 FROM run WHERE run = ?1"
            );
            connection.execute(&sql, values)?;
            Ok(())
        })?;
        // Passive: a reader in another process delays the copy into the main
        // file, not the sync of the log that comes before it.
        self.doing("sync the end of a run", |connection| {
            Ok(connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?)
        })
    }
}

fn insert_trial(connection: &Connection, run: i64, trial: &TrialOutcome) -> Result<i64, Fault> {
    let cell = shared::number(connection, run, "a cell", &trial.cell)?;
    let end = |facts: &Option<EndFacts>| {
        let told = |facts| shared::told(connection, run, "an end's facts", facts);
        facts.as_ref().map(told).transpose().map(Option::unzip)
    };
    let ((tx, tx_own), (rx, rx_own)) = (end(&trial.tx)?, end(&trial.rx)?);
    let json = row::json("a trial", &Rest::of(trial, [tx_own, rx_own]))?;
    let sql = "INSERT INTO trial (run, cell, tx, rx, trial_json) VALUES (?, ?, ?, ?, ?)";
    connection.execute(sql, (run, cell, tx, rx, json))?;
    Ok(connection.last_insert_rowid())
}

fn insert_arms(
    connection: &Connection,
    [run, trial]: [i64; 2],
    arms: &[ArmOutcome],
) -> Result<(), Fault> {
    let sql = "INSERT INTO arm (trial, arm, shared, arm_json) VALUES (?, ?, ?, ?)";
    let mut statement = connection.prepare_cached(sql)?;
    for (index, outcome) in arms.iter().enumerate() {
        let index = row::integer("an arm's index", index)?;
        let (shared, own) = shared::told(connection, run, "an arm", outcome)?;
        statement.execute((trial, index, shared, row::json("an arm", &own)?))?;
    }
    Ok(())
}

fn insert_slices(
    connection: &Connection,
    [run, trial]: [i64; 2],
    slices: &[SliceOutcome],
) -> Result<(), Fault> {
    let columns = Columns::all();
    let marks = vec!["?"; columns.len()].join(", ");
    let sql = format!("INSERT INTO slice (trial, {}) VALUES (?, {marks})", columns.sql());
    let mut statement = connection.prepare_cached(&sql)?;
    let names = counted::names();
    let mut is_counted = vec![false; names.len()];
    for slice in slices {
        let (own, counts) = counted::values(slice)?;
        is_counted.iter_mut().zip(&counts).for_each(|(is, count)| *is |= count.is_some());
        let counts = counts.into_iter().map(|count| count.map_or(Value::Null, Value::Integer));
        let values = [Value::Integer(trial)].into_iter().chain(own).chain(counts);
        statement.execute(params_from_iter(values))?;
    }
    let sql = "INSERT INTO run_count (run, name) VALUES (?, ?) ON CONFLICT DO NOTHING";
    let mut statement = connection.prepare_cached(sql)?;
    for (name, _) in names.iter().zip(is_counted).filter(|(_, is_counted)| *is_counted) {
        statement.execute((run, name))?;
    }
    Ok(())
}
