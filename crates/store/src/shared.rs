//! What many trials of a run have alike: their cell, and most of what their two ends say of
//! themselves, which is most of what there is to store of a small trial. Each text stands once in
//! a run, and a trial has its number.

use std::collections::BTreeMap;

use iolens_model::copy::ProgramStart;
use iolens_model::outcome::{CountsByPmu, EndFacts, Flows};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Transaction};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{StoreError, row};

/// What differs between trials whose ends are otherwise alike.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Own {
    bracket_ns: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    by_pmu: Vec<CountsByPmu>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    starts: Vec<ProgramStart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strangers: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strange_datagrams: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_round_trip_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    flows: Vec<Flows>,
    /// Where threads follow what comes in for them; else it is the same in every trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_cpus: Option<Vec<Vec<u32>>>,
}

impl Own {
    /// Takes it out of what an end said.
    pub(crate) fn take(facts: &mut EndFacts) -> Own {
        let follows = !facts.flows.is_empty();
        Own {
            bracket_ns: std::mem::take(&mut facts.bracket_ns),
            by_pmu: std::mem::take(&mut facts.by_pmu),
            starts: std::mem::take(&mut facts.starts),
            strangers: facts.strangers.take(),
            strange_datagrams: facts.strange_datagrams.take(),
            min_round_trip_ns: facts.min_round_trip_ns.take(),
            flows: std::mem::take(&mut facts.flows),
            thread_cpus: follows.then(|| std::mem::take(&mut facts.thread_cpus)),
        }
    }

    /// Puts it back.
    pub(crate) fn put(self, facts: &mut EndFacts) {
        facts.bracket_ns = self.bracket_ns;
        facts.by_pmu = self.by_pmu;
        facts.starts = self.starts;
        facts.strangers = self.strangers;
        facts.strange_datagrams = self.strange_datagrams;
        facts.min_round_trip_ns = self.min_round_trip_ns;
        facts.flows = self.flows;
        if let Some(thread_cpus) = self.thread_cpus {
            facts.thread_cpus = thread_cpus;
        }
    }
}

/// Stores what an end said in a trial of a run: its number, and what the trial alone has.
pub(crate) fn end(
    transaction: &Transaction<'_>,
    run: i64,
    facts: Option<&EndFacts>,
    failed: &impl Fn(rusqlite::Error) -> StoreError,
) -> Result<Option<(i64, Own)>, StoreError> {
    let Some(facts) = facts else { return Ok(None) };
    let mut shared = facts.clone();
    let own = Own::take(&mut shared);
    Ok(Some((number(transaction, run, "an end's facts", &shared, failed)?, own)))
}

/// The number of a value in a run, which it gets if it has none.
pub(crate) fn number<T: Serialize + DeserializeOwned + PartialEq>(
    transaction: &Transaction<'_>,
    run: i64,
    what: &'static str,
    value: &T,
    failed: &impl Fn(rusqlite::Error) -> StoreError,
) -> Result<i64, StoreError> {
    let text = row::json(what, value)?;
    let numbered = || -> rusqlite::Result<i64> {
        let sql = "SELECT number FROM shared WHERE run = ? AND shared_json = ?";
        let found = transaction.prepare_cached(sql)?.query_row((run, &text), |row| row.get(0));
        if let Some(number) = found.optional()? {
            return Ok(number);
        }
        let sql = "INSERT INTO shared (run, number, shared_json) VALUES \
                   (?1, (SELECT ifnull(max(number) + 1, 0) FROM shared WHERE run = ?1), ?2) \
                   RETURNING number";
        transaction.prepare_cached(sql)?.query_row((run, &text), |row| row.get(0))
    };
    numbered().map_err(failed)
}

/// Values of one kind that the trials of a run share, by their numbers.
pub(crate) struct Shared<'a, T> {
    connection: &'a Connection,
    run: i64,
    /// What a trial has meanwhile is missing.
    known: BTreeMap<i64, T>,
}

/// As many as the cells of a plan that is large.
const KNOWN_MAX: usize = 256;

impl<'a, T: DeserializeOwned> Shared<'a, T> {
    /// Of a run.
    pub(crate) fn of(connection: &'a Connection, run: i64) -> Shared<'a, T> {
        Shared { connection, run, known: BTreeMap::new() }
    }

    /// The value with this number, for a trial that has it until it is given back.
    pub(crate) fn take(&mut self, number: i64) -> rusqlite::Result<T> {
        if let Some(value) = self.known.remove(&number) {
            return Ok(value);
        }
        let sql = "SELECT shared_json FROM shared WHERE run = ? AND number = ?";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found = statement.query_row((self.run, number), |row| row::get_json(row, 0));
        found.optional()?.ok_or_else(|| {
            let why = format!("a trial has number {number} of what is shared, which is not there");
            rusqlite::Error::FromSqlConversionFailure(0, Type::Integer, why.into())
        })
    }

    pub(crate) fn give_back(&mut self, number: i64, value: T) {
        if self.known.len() == KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(number, value);
    }
}
