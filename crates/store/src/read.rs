//! Reading: which runs there are, which one is meant, and a run as it was.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use iolens_model::origin::Origin;
use iolens_model::outcome::TrialOutcome;
use iolens_model::profile::ProfileTrial;
use iolens_model::run::SearchPhase;
use iolens_model::run::{Run, RunEnd, RunHeader};
use rusqlite::{Connection, OptionalExtension, Params, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::said;
use crate::header::{id_of, is_id, readable_id, text_of};
use crate::trial::{Stretch, Trials};
use crate::{Fault, Store, StoreError, header, row};

/// One line of the list of runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RunSummary {
    /// Eight hexadecimal digits.
    pub id: String,
    /// The user's name for it.
    pub name: Option<String>,
    /// Start, nanoseconds since 1970 (UTC).
    pub started_unix_ns: u64,
    /// The run whose crossovers it looks at anew; `None` for a run that stands for itself.
    pub confirms: Option<String>,
    /// Version and commit of the iolens that ran it.
    pub build: String,
    /// What was studied.
    pub study: String,
    /// Cells with at least one trial.
    pub cells: u64,
    /// Trials, failed and skipped ones too.
    pub trials: u64,
    /// How it ended; `None` while it runs, or if it was killed.
    pub end: Option<RunEnd>,
    /// The label of the machine that measured it; `None` where its name could not be read.
    pub host: Option<String>,
    /// Where it came from; `None` for a run that was measured into this file.
    pub origin: Option<Origin>,
    /// Why it cannot be read, of a run that is damaged; what else is known of it may be wrong.
    pub damaged: Option<String>,
}

impl RunSummary {
    /// How the run ended, in words.
    pub fn ended(&self) -> &'static str {
        if self.damaged.is_some() {
            return "damaged";
        }
        self.end.as_ref().map_or("killed or still running", |end| end.stopped_by.word())
    }
}

impl Store {
    /// Every run, in the order in which they came into the file; one that is damaged says so.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn runs(&self) -> Result<Vec<RunSummary>, StoreError> {
        self.snapshot("list the runs", |connection| {
            // Of `ab`, those that count system calls are of no pass.
            let counted = ", study, (SELECT count(*) FROM trial WHERE trial.run = run.run \
                 AND NOT (study = 'ab' AND CASE WHEN json_valid(trial_json) \
                 THEN coalesce(json_extract(trial_json, '$.pass') = 0, 0) ELSE 0 END)) AS trials, \
                 (SELECT count(DISTINCT cell) FROM trial WHERE trial.run = run.run) AS cells";
            let sql = header::select(counted, "ORDER BY run.run");
            let known = |row: &Row<'_>| Ok(summary(row).unwrap_or_else(|why| damaged(row, &why)));
            Ok(row::all(connection, &sql, [], known)?)
        })
    }

    /// The ids of all runs, in the order in which they came into the file.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn run_ids(&self) -> Result<Vec<String>, StoreError> {
        self.ids("list the runs", "SELECT id FROM run ORDER BY run", [])
    }

    /// What is known of every run besides its trials, in the order in which they came into the
    /// file. One that is damaged is left out.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn headers(&self) -> Result<Vec<RunHeader>, StoreError> {
        self.snapshot("read what is known of the runs", |connection| {
            let sql = header::select("", "ORDER BY run.run");
            let known = row::all(connection, &sql, [], |row| Ok(header::whole(row).ok()))?;
            Ok(known.into_iter().flatten().collect())
        })
    }

    /// The id of the run that is meant by an id, a unique beginning of one, a
    /// name that one run alone has, or `last`: the run that began last of those that were
    /// measured into this file and stand for themselves. Ids go before names, which in a file of
    /// somebody else may look like one.
    ///
    /// # Errors
    /// [`StoreError::NoRuns`], [`StoreError::NoOwnRuns`], [`StoreError::NoSuchRun`] or
    /// [`StoreError::Ambiguous`] with the candidates.
    pub fn find(&self, wanted: &str) -> Result<String, StoreError> {
        let runs = self.ids_and_names()?;
        if runs.is_empty() {
            return Err(StoreError::NoRuns { path: self.path.clone() });
        }
        if wanted == "last" {
            // A run that confirms another comes into question where that one is no more.
            let sql = "SELECT id FROM run WHERE run NOT IN (SELECT run FROM origin) \
                       ORDER BY confirms IS NULL DESC, run DESC LIMIT 1";
            let last = self.ids("list the runs", sql, [])?.pop();
            return last.ok_or_else(|| StoreError::NoOwnRuns { path: self.path.clone() });
        }
        if runs.iter().any(|(id, _)| id == wanted) {
            return Ok(wanted.to_owned());
        }
        let ids = |meant: &dyn Fn(&str, Option<&str>) -> bool| -> Vec<String> {
            let meant = runs.iter().filter(|(id, name)| meant(id, name.as_deref()));
            meant.map(|(id, _)| id.clone()).collect()
        };
        let mut candidates = ids(&|id, _| !wanted.is_empty() && id.starts_with(wanted));
        if candidates.is_empty() {
            candidates = ids(&|_, name| name == Some(wanted));
        }
        match &candidates[..] {
            [] => Err(self.no_such_run(wanted)),
            [_] => Ok(candidates.remove(0)),
            _ => Err(StoreError::Ambiguous { wanted: wanted.to_owned(), candidates }),
        }
    }

    /// Of every run, in the order in which they came into the file; what is no text is no name.
    fn ids_and_names(&self) -> Result<Vec<(String, Option<String>)>, StoreError> {
        self.snapshot("list the runs", |connection| {
            let called = |row: &Row<'_>| Ok((readable_id(row)?, row.get(1).ok().flatten()));
            Ok(row::all(connection, "SELECT id, name FROM run ORDER BY run", [], called)?)
        })
    }

    /// A run with all its trials in the order in which they were appended, as
    /// of one moment: a trial that is committed meanwhile is in it whole or
    /// not at all.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRun`], damaged rows, or what SQLite says.
    pub fn load(&self, run_id: &str) -> Result<Run, StoreError> {
        let keep = |kept: &mut Vec<TrialOutcome>, _: &RunHeader, trial: &TrialOutcome| {
            kept.push(trial.clone());
        };
        let (run, trials) = self.load_folded(run_id, keep)?;
        Ok(Run { trials: trials.into_iter().flatten().collect(), ..run })
    }

    /// A run without its trials, and what `fold` makes of those: it is shown each as soon as
    /// it is read, which is then let go, since a run may have more of them than memory should
    /// hold. Where there are many, two read at once, and there is a fold of each stretch of
    /// them, in their order. The header that is shown has no end yet.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn load_folded<F: Default + Send>(
        &self,
        run_id: &str,
        fold: impl Fn(&mut F, &RunHeader, &TrialOutcome) + Sync,
    ) -> Result<(Run, Vec<F>), StoreError> {
        self.snapshot("read a run", |connection| {
            let (key, mut header) = self.known(connection, run_id, header::whole)?;
            let end = header.end.take();
            let trials = Trials::of(connection, key)?;
            let read = |connection: &Connection, stretch: &Stretch| {
                let mut folded = F::default();
                let see = |trial: &TrialOutcome| fold(&mut folded, &header, trial);
                let seen = stretch.each(connection, see)?;
                Ok((folded, seen))
            };
            let other = (!self.is_private).then_some(&*self.path);
            let folded = in_stretches(connection, other, &trials, read)?;
            let (profiles, searches) = (profiles(connection, key)?, searches(connection, key)?);
            header.end = end;
            Ok((Run { header, trials: Vec::new(), profiles, searches }, folded))
        })
    }

    /// The ids of the runs that look at a run's crossovers anew, oldest first.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn confirming(&self, run_id: &str) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT id FROM run WHERE confirms = ? ORDER BY run";
        self.ids("look for runs that confirm a run", sql, [run_id])
    }

    /// The ids that a statement finds.
    pub(crate) fn ids(
        &self,
        doing: &'static str,
        sql: &str,
        params: impl Params,
    ) -> Result<Vec<String>, StoreError> {
        self.snapshot(doing, |connection| Ok(row::all(connection, sql, params, readable_id)?))
    }

    /// What was known of a run when it began: not its end, and none of its trials is read.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn header(&self, run_id: &str) -> Result<RunHeader, StoreError> {
        self.snapshot("read a run", |connection| Ok(self.known(connection, run_id, header::of)?.1))
    }

    /// The same, with its end where it has ended.
    pub(crate) fn header_with_end(&self, run_id: &str) -> Result<RunHeader, StoreError> {
        self.snapshot("read a run", |connection| {
            Ok(self.known(connection, run_id, header::whole)?.1)
        })
    }

    /// The key of a run, and what `read` has of its header.
    fn known(
        &self,
        connection: &Connection,
        run_id: &str,
        read: fn(&Row<'_>) -> rusqlite::Result<RunHeader>,
    ) -> Result<(i64, RunHeader), Fault> {
        let key = self.key(connection, run_id)?;
        let sql = header::select("", "WHERE run.run = ?");
        Ok((key, connection.prepare_cached(&sql)?.query_row([key], read)?))
    }

    /// The key of a run by its whole id, or by what a damaged one is called.
    pub(crate) fn key(&self, connection: &Connection, run_id: &str) -> Result<i64, Fault> {
        let sql = "SELECT run FROM run WHERE id = ?";
        let mut found = row::first(connection, sql, [run_id]).optional()?;
        if found.is_none() && !is_id(run_id) {
            let called = |row: &Row<'_>| Ok((readable_id(row)?, row.get(1)?));
            let all = row::all(connection, "SELECT id, run FROM run ORDER BY run", [], called)?;
            found = all.into_iter().find(|(id, _)| id == run_id).map(|(_, run)| run);
        }
        found.ok_or_else(|| self.no_such_run(run_id).into())
    }

    pub(crate) fn no_such_run(&self, wanted: &str) -> StoreError {
        StoreError::NoSuchRun { path: self.path.clone(), wanted: wanted.to_owned() }
    }
}

/// The sampled trials of a run, in the order in which they ran.
pub(crate) fn profiles(connection: &Connection, run: i64) -> rusqlite::Result<Vec<ProfileTrial>> {
    all(connection, "SELECT profile_json FROM profile WHERE run = ? ORDER BY profile", run)
}

/// The phases of the searches of a run, in the order in which they ran.
pub(crate) fn searches(connection: &Connection, run: i64) -> rusqlite::Result<Vec<SearchPhase>> {
    let sql = "SELECT search_phase_json FROM search_phase WHERE run = ? ORDER BY search_phase";
    all(connection, sql, run)
}

/// What is JSON in the one column of a statement.
fn all<T: DeserializeOwned>(
    connection: &Connection,
    sql: &str,
    run: i64,
) -> rusqlite::Result<Vec<T>> {
    row::all(connection, sql, [run], |row| row::get_json(row, 0))
}

/// What was read of stretches: which one, what came of it, and how many trials it had.
type Taken<F> = Vec<(usize, (F, u64))>;

/// Reads a run in stretches, each by whoever is free: this connection, and where there are
/// several and the file may be opened by others, one beside it. `read` says how many trials
/// it saw.
fn in_stretches<F: Send>(
    connection: &Connection,
    path: Option<&Path>,
    trials: &Trials,
    read: impl Fn(&Connection, &Stretch) -> rusqlite::Result<(F, u64)> + Sync,
) -> rusqlite::Result<Vec<F>> {
    let stretches = trials.stretches();
    let next = AtomicUsize::new(0);
    let take = |connection: &Connection| -> rusqlite::Result<Taken<F>> {
        let mut taken = Taken::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(stretch) = stretches.get(at) else { return Ok(taken) };
            taken.push((at, read(connection, stretch)?));
        }
    };
    let reading = |connection: &Connection| Ok(take(connection)?);
    let beside = || Store::open_read_only(path?).ok()?.snapshot("read a run", reading).ok();
    let (own, others) = thread::scope(|scope| {
        let beside = (stretches.len() > 1).then(|| scope.spawn(beside));
        let own = take(connection);
        let others = beside.and_then(|beside| beside.join().ok().flatten());
        (own, others.unwrap_or_default())
    });
    let own = own?;
    let seen = |taken: &Taken<F>| taken.iter().map(|(_, (_, seen))| seen).sum::<u64>();
    // No trial ever changes, but the run may have been removed since this connection
    // began to read, for which it is still whole.
    let is_whole = seen(&own) + seen(&others) == trials.count;
    let others = others.into_iter().filter(|_| is_whole);
    let mut taken: BTreeMap<usize, (F, u64)> = own.into_iter().chain(others).collect();
    let whole = stretches.iter().enumerate().map(|(at, stretch)| {
        let (folded, _) = taken.remove(&at).map_or_else(|| read(connection, stretch), Ok)?;
        Ok(folded)
    });
    whole.collect()
}

/// What can still be said of a run that cannot be read.
fn damaged(row: &Row<'_>, why: &rusqlite::Error) -> RunSummary {
    let text = |column: &str| row.get_ref(column).map(text_of).unwrap_or_default();
    RunSummary {
        id: text("id").replace(char::is_control, "\u{fffd}"),
        started_unix_ns: row.get("started_unix_ns").unwrap_or_default(),
        build: text("build"),
        study: text("study"),
        cells: row.get("cells").unwrap_or_default(),
        trials: row.get("trials").unwrap_or_default(),
        damaged: Some(said(why).replace(char::is_control, " ")),
        ..RunSummary::default()
    }
}

fn summary(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    let origin = header::origin(row)?;
    let host = match &origin {
        Some(origin) => Some(origin.host.clone()),
        None => header::host(row)?,
    };
    Ok(RunSummary {
        host,
        origin,
        damaged: None,
        id: id_of(row)?,
        name: row.get("name")?,
        started_unix_ns: row.get("started_unix_ns")?,
        confirms: row.get("confirms")?,
        build: row.get("build")?,
        study: row.get("study")?,
        cells: row.get("cells")?,
        trials: row.get("trials")?,
        end: header::end(row)?,
    })
}
