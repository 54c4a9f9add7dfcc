//! What the two ends of a trial say of themselves. It is nearly the same in every trial of a
//! cell, and of a small trial most of what there is to store: each text of it stands once in a
//! run, and a trial has the number of its text and what it alone has.

use std::collections::BTreeMap;

use iolens_model::copy::ProgramStart;
use iolens_model::outcome::{CountsByPmu, EndFacts, Flows};
use rusqlite::{Connection, OptionalExtension, Row, Transaction};
use serde::{Deserialize, Serialize};

use crate::{StoreError, row};

/// What differs between trials whose ends are otherwise alike.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Own {
    bracket_ns: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    by_pmu: Vec<CountsByPmu>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    starts: Vec<ProgramStart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    strangers: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    strange_datagrams: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min_round_trip_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    flows: Vec<Flows>,
    /// Where threads follow what comes in for them; else it is the same in every trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thread_cpus: Option<Vec<Vec<u32>>>,
}

impl Own {
    /// Takes it out of what an end said.
    fn take(facts: &mut EndFacts) -> Own {
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
    fn put(self, facts: &mut EndFacts) {
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

/// Stores what an end of a run's trial said: the number of its text, and as JSON what the
/// trial alone has.
pub(crate) fn stored(
    transaction: &Transaction<'_>,
    run: i64,
    facts: &EndFacts,
    failed: &impl Fn(rusqlite::Error) -> StoreError,
) -> Result<(i64, String), StoreError> {
    let mut shared = facts.clone();
    let own = row::json("what an end counted", &Own::take(&mut shared))?;
    let text = row::json("an end's facts", &shared)?;
    let number = numbered(transaction, run, &text).map_err(failed)?;
    Ok((number, own))
}

/// The number of a text in a run, which it gets if it has none.
fn numbered(transaction: &Transaction<'_>, run: i64, text: &str) -> rusqlite::Result<i64> {
    let sql = "SELECT number FROM end_facts WHERE run = ? AND facts_json = ?";
    let found = transaction.prepare_cached(sql)?.query_row((run, text), |row| row.get(0));
    if let Some(number) = found.optional()? {
        return Ok(number);
    }
    let sql = "INSERT INTO end_facts (run, number, facts_json) VALUES \
               (?1, (SELECT ifnull(max(number) + 1, 0) FROM end_facts WHERE run = ?1), ?2) \
               RETURNING number";
    transaction.prepare_cached(sql)?.query_row((run, text), |row| row.get(0))
}

/// What one of the two ends said in the trials of a run, one after another.
pub(crate) struct End<'a> {
    connection: &'a Connection,
    run: i64,
    /// By their numbers; what a trial has meanwhile is missing.
    known: BTreeMap<i64, EndFacts>,
    /// The number of what the last trial has.
    lent: i64,
}

/// As many as the cells of a plan that is large.
const KNOWN_MAX: usize = 256;

impl<'a> End<'a> {
    /// Of a run.
    pub(crate) fn of(connection: &'a Connection, run: i64) -> End<'a> {
        End { connection, run, known: BTreeMap::new(), lent: 0 }
    }

    /// What it said in the trial of a row that has the number of the text and what the trial
    /// alone has from index `at` on; null where it never answered.
    pub(crate) fn read(&mut self, row: &Row<'_>, at: usize) -> rusqlite::Result<Option<EndFacts>> {
        let own: Option<Own> = row::get_json_or_null(row, at + 1)?;
        let number: Option<i64> = row.get(at)?;
        let (number, own) = match (number, own) {
            (Some(number), Some(own)) => (number, own),
            (None, None) => return Ok(None),
            _ => return Err(row::unreadable(row, at, "one of an end's two parts is missing")),
        };
        let mut facts = match self.known.remove(&number) {
            Some(facts) => facts,
            None => self.facts(number)?,
        };
        self.lent = number;
        own.put(&mut facts);
        Ok(Some(facts))
    }

    /// Takes back what the last trial had, for the next whose end says the same.
    pub(crate) fn take_back(&mut self, facts: Option<EndFacts>) {
        let Some(mut facts) = facts else { return };
        Own::take(&mut facts);
        if self.known.len() == KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(self.lent, facts);
    }

    fn facts(&self, number: i64) -> rusqlite::Result<EndFacts> {
        let sql = "SELECT facts_json FROM end_facts WHERE run = ? AND number = ?";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.query_row((self.run, number), |row| row::get_json(row, 0))
    }
}
