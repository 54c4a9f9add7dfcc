//! Writing: a run begins, trials are appended, the run ends.

use iolens_model::arm::ArmOutcome;
use iolens_model::outcome::{Counts, EndFacts, SliceOutcome, TrialOutcome};
use iolens_model::run::{RunEnd, RunHeader};
use iolens_model::units::Bytes;
use rusqlite::types::Value;
use rusqlite::{Statement, Transaction, TransactionBehavior, params, params_from_iter};

use crate::counted::{Columns, Named};
use crate::{Store, StoreError, ends, row};

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
            row::json("the command line", &header.command)?,
            row::json("the plan", &header.plan)?,
            row::json("the primitives", &header.primitives)?,
            row::json("the receivers", &header.receivers)?,
            row::json("the host's facts", &header.host)?,
            row::json("the calibration", &header.calibration)?,
            row::json("the calls", &header.calls)?,
            row::json("the engines", &header.engines)?,
            header.file.as_ref().map(|file| row::json("the file", file)).transpose()?,
            header.confirms,
            header.far.as_ref().map(|far| row::json("the other machine", far)).transpose()?,
        ];
        let sql = "INSERT INTO run (id, name, started_unix_ns, build, study, command_json, \
                   plan_json, primitives_json, receivers_json, host_json, calibration_json, calls_json, \
                   engines_json, file_json, confirms, far_json) \
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
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
        let named = match self.named.remove(&run) {
            Some(named) => named,
            None => Named::of(&self.connection, run).map_err(failed)?,
        };
        // Immediate: waiting for another writer happens here, within the busy
        // limit, and never in the middle.
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        let key = insert_trial(&transaction, run, trial, &failed)?;
        insert_arms(&transaction, key, &trial.arms, &failed)?;
        insert_slices(&transaction, key, &trial.slices, &failed)?;
        let named = named.with(&transaction, run, &trial.slices).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        self.named.insert(run, named);
        Ok(())
    }

    /// Stores how a run ended and syncs the file, so that a run that has ended
    /// survives a power cut too. A resumed run may end again.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`] for a run that has not begun, or what SQLite
    /// says.
    pub fn end_run(&mut self, run_id: &str, end: &RunEnd) -> Result<(), StoreError> {
        let run = self.run_key(run_id)?;
        let values = params![
            run,
            row::integer("the end of the run", end.finished_unix_ns)?,
            row::word("the rule that ended the run", &end.stopped_by)?,
            row::json("the unmet conditions", &end.unmet)?,
        ];
        let sql = "INSERT INTO run_end (run, trials, finished_unix_ns, stopped_by, unmet_json) \
                   VALUES (?1, (SELECT count(*) FROM trial WHERE run = ?1) \
                   + (SELECT count(*) FROM search_phase WHERE run = ?1), ?2, ?3, ?4)";
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
    let end = |facts: &Option<EndFacts>| {
        let stored = facts.as_ref().map(|facts| ends::stored(transaction, run, facts, failed));
        stored.transpose().map(Option::unzip)
    };
    let ((tx, tx_own), (rx, rx_own)) = (end(&trial.tx)?, end(&trial.rx)?);
    let far = trial.far_environment.as_ref();
    let far = far.map(|far| row::json("what was around a trial elsewhere", far)).transpose()?;
    let cell = &trial.cell;
    let net = cell.net();
    let tuning = net.map(|net| &net.tuning);
    let bytes = |what, size: Option<Bytes>| size.map(|size| row::integer(what, size.0)).transpose();
    let values = params![
        run,
        trial.pass,
        trial.position,
        trial.isolated,
        net.map(|net| net.topology.word()),
        net.map(|net| net.mode.word()),
        net.map(|net| net.working_set.word()),
        net.map(|net| net.fields),
        net.map(|net| net.iovec.word()),
        net.map(|net| &net.receiver),
        tuning.map(|tuning| tuning.ip.word()),
        tuning.and_then(|tuning| tuning.mtu_bytes),
        bytes("socket_buffer", tuning.map(|tuning| tuning.socket_buffer))?,
        bytes("receive_size", tuning.and_then(|tuning| tuning.receive_size))?,
        tuning.and_then(|tuning| tuning.reap_batch),
        tuning.map(|tuning| tuning.uring_depth),
        tuning.map(|tuning| tuning.uring_batch),
        cell.threads,
        bytes("message_bytes", net.map(|_| cell.size))?,
        net.is_none().then(|| row::json("a cell", cell)).transpose()?,
        row::integer("the start of a trial", trial.started_unix_ns)?,
        row::integer("the duration of a trial", trial.duration_ns)?,
        trial.status.word(),
        trial.reason,
        row::json("a trial's environment", &trial.environment)?,
        tx,
        tx_own,
        rx,
        rx_own,
        far,
    ];
    let sql = "INSERT INTO trial (run, pass, position, isolated, topology, mode, working_set, \
               fields, iovec, receiver, ip, mtu_bytes, socket_buffer, receive_size, reap_batch, \
               uring_depth, uring_batch, threads, message_bytes, cell_json, started_unix_ns, \
               duration_ns, status, reason, environment_json, tx_facts, tx_own_json, rx_facts, \
               rx_own_json, far_environment_json) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, \
               ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    transaction.execute(sql, values).map_err(failed)?;
    Ok(transaction.last_insert_rowid())
}

fn insert_arms(
    transaction: &Transaction<'_>,
    trial: i64,
    arms: &[ArmOutcome],
    failed: &impl Fn(rusqlite::Error) -> StoreError,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO arm (trial, arm, label, primitive, role, status, reason, \
               copies_sender, copies_end_to_end, latency_json, server_json) VALUES (?, ?, ?, ?, ?, ?, ?, ?, \
               ?, ?, ?)";
    let mut statement = transaction.prepare_cached(sql).map_err(failed)?;
    for (index, outcome) in arms.iter().enumerate() {
        let values = params![
            trial,
            row::integer("an arm's index", index)?,
            outcome.arm.label,
            outcome.arm.primitive,
            row::word("an arm's role", &outcome.arm.role)?,
            outcome.status.word(),
            outcome.reason,
            row::real("copies_sender", outcome.copies_sender)?,
            row::real("copies_end_to_end", outcome.copies_end_to_end)?,
            outcome.latency.as_ref().map(|l| row::json("latency", l)).transpose()?,
            outcome.server.as_ref().map(|s| row::json("what came of a server", s)).transpose()?,
        ];
        statement.execute(values).map_err(failed)?;
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
    slices.iter().try_for_each(|slice| insert_slice(&mut statement, trial, slice, failed))
}

fn insert_slice(
    statement: &mut Statement<'_>,
    trial: i64,
    slice: &SliceOutcome,
    failed: &impl Fn(rusqlite::Error) -> StoreError,
) -> Result<(), StoreError> {
    let mut values = vec![
        Value::Integer(trial),
        Value::Integer(slice.seq.into()),
        Value::Integer(slice.round.into()),
        Value::Text(row::word("a slice's kind", &slice.kind)?),
        Value::Integer(row::integer("a slice's arm", slice.arm)?),
        Value::Integer(row::integer("all_active_ns", slice.all_active_ns)?),
    ];
    let missing = [None; Counts::COUNT];
    for counts in [slice.tx.values(), slice.rx.as_ref().map_or(missing, Counts::values)] {
        for (name, count) in Counts::NAMES.into_iter().zip(counts) {
            values.push(match count {
                Some(count) => Value::Integer(row::integer(name, count)?),
                None => Value::Null,
            });
        }
    }
    statement.execute(params_from_iter(values)).map_err(failed)?;
    Ok(())
}
