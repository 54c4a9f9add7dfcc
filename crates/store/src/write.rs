//! Writing: a run begins, trials are appended, the run ends.

use iolens_model::arm::ArmOutcome;
use iolens_model::outcome::{EndFacts, SliceOutcome, TrialOutcome};
use iolens_model::profile::ProfileTrial;
use iolens_model::run::{RunEnd, RunHeader};
use iolens_model::search::SearchPhase;
use rusqlite::types::Value;
use rusqlite::{Transaction, TransactionBehavior, params, params_from_iter};

use crate::counted::Columns;
use crate::trial::Rest;
use crate::{Store, StoreError, counted, header, row, shared};

impl Store {
    /// Stores what is known when a run begins. `header.end` is not looked at:
    /// a run that begins has not ended, see [`Store::end_run`].
    ///
    /// # Errors
    /// An id that is there already, a host name that is the label of another machine here
    /// ([`StoreError::LabelTaken`]), or what SQLite says.
    pub fn begin_run(&mut self, header: &RunHeader) -> Result<(), StoreError> {
        self.refuse_taken_label(header)?;
        let values = params![
            header.id,
            header.name,
            row::integer("the start of the run", header.started_unix_ns)?,
            header.build,
            header.plan.study().word(),
            header.confirms,
            header::json(header)?,
        ];
        let sql = "INSERT INTO run (id, name, started_unix_ns, build, study, confirms, run_json) \
                   VALUES (?, ?, ?, ?, ?, ?, ?)";
        self.connection.execute(sql, values).map_err(self.failed("begin a run"))?;
        Ok(())
    }

    /// Stores a trial with its arms and slices, all of it or nothing. When
    /// this has returned, no signal can take the trial back.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`] for a run that has not begun,
    /// [`StoreError::NotStorable`] for values that would not come back, or
    /// what SQLite says; in each case nothing of the trial is stored.
    pub fn append_trial(&mut self, run_id: &str, trial: &TrialOutcome) -> Result<(), StoreError> {
        let run = self.run_key(run_id)?;
        let path = self.path.clone();
        let failed = |source| StoreError::sqlite("append a trial", &path, source);
        // Immediate: waiting for another writer happens here, within the busy
        // limit, and never in the middle.
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        let key = insert_trial(&transaction, run, trial, &failed)?;
        insert_arms(&transaction, [run, key], &trial.arms, &failed)?;
        insert_slices(&transaction, key, &trial.slices, &failed)?;
        counted::name(&transaction, run, &trial.slices).map_err(failed)?;
        transaction.commit().map_err(failed)
    }

    /// Stores a sampled trial.
    ///
    /// # Errors
    /// As [`Store::append_trial`].
    pub fn append_profile(&mut self, run_id: &str, trial: &ProfileTrial) -> Result<(), StoreError> {
        let json = row::json("a sampled trial", trial)?;
        let sql = "INSERT INTO profile (run, profile_json) VALUES (?, ?)";
        let done = self.connection.execute(sql, (self.run_key(run_id)?, json));
        done.map(|_| ()).map_err(self.failed("append a sampled trial"))
    }

    /// Stores a phase of a search.
    ///
    /// # Errors
    /// As [`Store::append_trial`].
    pub fn append_search(&mut self, run_id: &str, phase: &SearchPhase) -> Result<(), StoreError> {
        let json = row::json("a phase of a search", phase)?;
        let sql = "INSERT INTO search_phase (run, search_phase_json) VALUES (?, ?)";
        let done = self.connection.execute(sql, (self.run_key(run_id)?, json));
        done.map(|_| ()).map_err(self.failed("append a phase of a search"))
    }

    /// Stores how a run ended and syncs the file, so that a run that has ended
    /// survives a power cut too. A resumed run may end again.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`] for a run that has not begun, or what SQLite
    /// says.
    pub fn end_run(&mut self, run_id: &str, end: &RunEnd) -> Result<(), StoreError> {
        let run = self.run_key(run_id)?;
        let values = (run, row::json("the end of the run", end)?);
        let sql = "INSERT INTO run_end (run, trials, run_end_json) \
                   VALUES (?1, (SELECT count(*) FROM trial WHERE run = ?1) \
                   + (SELECT count(*) FROM search_phase WHERE run = ?1), ?2)";
        self.connection.execute(sql, values).map_err(self.failed("end a run"))?;
        // Passive: a reader in another process delays the copy into the main
        // file, not the sync of the log that comes before it.
        self.connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
            .map_err(self.failed("sync the end of a run"))
    }
}

fn insert_trial(
    transaction: &Transaction<'_>,
    run: i64,
    trial: &TrialOutcome,
    failed: &impl Fn(rusqlite::Error) -> StoreError,
) -> Result<i64, StoreError> {
    let cell = shared::number(transaction, run, "a cell", &trial.cell, failed)?;
    let end = |facts: &Option<EndFacts>| {
        let told = |facts| shared::told(transaction, run, "an end's facts", facts, failed);
        facts.as_ref().map(told).transpose().map(Option::unzip)
    };
    let ((tx, tx_own), (rx, rx_own)) = (end(&trial.tx)?, end(&trial.rx)?);
    let json = row::json("a trial", &Rest::of(trial, [tx_own, rx_own]))?;
    let sql = "INSERT INTO trial (run, cell, tx, rx, trial_json) VALUES (?, ?, ?, ?, ?)";
    transaction.execute(sql, (run, cell, tx, rx, json)).map_err(failed)?;
    Ok(transaction.last_insert_rowid())
}

fn insert_arms(
    transaction: &Transaction<'_>,
    [run, trial]: [i64; 2],
    arms: &[ArmOutcome],
    failed: &impl Fn(rusqlite::Error) -> StoreError,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO arm (trial, arm, shared, arm_json) VALUES (?, ?, ?, ?)";
    let mut statement = transaction.prepare_cached(sql).map_err(failed)?;
    for (index, outcome) in arms.iter().enumerate() {
        let index = row::integer("an arm's index", index)?;
        let (shared, own) = shared::told(transaction, run, "an arm", outcome, failed)?;
        statement.execute((trial, index, shared, row::json("an arm", &own)?)).map_err(failed)?;
    }
    Ok(())
}

fn insert_slices(
    transaction: &Transaction<'_>,
    trial: i64,
    slices: &[SliceOutcome],
    failed: &impl Fn(rusqlite::Error) -> StoreError,
) -> Result<(), StoreError> {
    let columns = Columns::all();
    let marks = vec!["?"; columns.len()].join(", ");
    let sql = format!("INSERT INTO slice (trial, {}) VALUES (?, {marks})", columns.sql());
    let mut statement = transaction.prepare_cached(&sql).map_err(failed)?;
    for slice in slices {
        let values = [Value::Integer(trial)].into_iter().chain(counted::values(slice)?);
        statement.execute(params_from_iter(values)).map_err(failed)?;
    }
    Ok(())
}
