//! What many trials of a run have alike: their cell, and most of what is said of their arms and
//! by their ends, which is most of what there is to store of a small trial. Each text stands once
//! in a run, and what has it has its number.

use std::collections::HashMap;
use std::mem::take;

use iolens_model::arm::ArmOutcome;
use iolens_model::copy::ProgramStart;
use iolens_model::outcome::{CountsByPmu, EndFacts, Flows};
use iolens_model::reading::Histogram;
use iolens_model::server::ServerArm;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Fault, row};

/// Data of a trial that are split into a part that many trials share and a part of its own.
pub(crate) trait Told: Serialize + DeserializeOwned + PartialEq + Clone {
    /// What one trial alone has.
    type Own: Serialize + DeserializeOwned + PartialEq;

    /// Takes that out, and leaves what is shared.
    fn take_own(&mut self) -> Self::Own;

    /// Puts it back.
    fn put_own(&mut self, own: Self::Own);
}

/// Declares which fields those are.
macro_rules! own {
    ($own:ident of $whole:ident, $facts:ident:
        $($name:ident: $type:ty $(where $varies:expr)?,)+
    ) => {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        pub(crate) struct $own {
            $(
                #[serde(default, skip_serializing_if = "is_default")]
                $name: $type,
            )+
        }

        impl Told for $whole {
            type Own = $own;

            fn take_own(&mut self) -> $own {
                let $facts = self;
                $own {
                    $($name: if true $(&& $varies)? {
                        take(&mut $facts.$name)
                    } else {
                        Default::default()
                    },)+
                }
            }

            fn put_own(&mut self, own: $own) {
                $(if !is_default(&own.$name) {
                    self.$name = own.$name;
                })+
            }
        }
    };
}

own! { OfArm of ArmOutcome, arm:
    copies_sender: Option<f64>,
    copies_end_to_end: Option<f64>,
    latency: Option<Histogram>,
    server: Option<Box<ServerArm>>,
}

own! { OfEnd of EndFacts, facts:
    bracket_ns: u64,
    by_pmu: Vec<CountsByPmu>,
    starts: Vec<ProgramStart>,
    strangers: Option<u64>,
    strange_datagrams: Option<u64>,
    min_round_trip_ns: Option<u64>,
    // Where threads follow what comes in for them; else they are the same in every trial.
    thread_cpus: Vec<Vec<u32>> where !facts.flows.is_empty(),
    flows: Vec<Flows>,
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Stores what is shared of a value: its number, and what the trial alone has.
pub(crate) fn told<T: Told>(
    connection: &Connection,
    run: i64,
    what: &'static str,
    value: &T,
) -> Result<(i64, T::Own), Fault> {
    let mut shared = value.clone();
    let own = shared.take_own();
    Ok((number(connection, run, what, &shared)?, own))
}

/// The number of a value in a run, which it gets if it has none.
pub(crate) fn number<T: Serialize + DeserializeOwned + PartialEq>(
    connection: &Connection,
    run: i64,
    what: &'static str,
    value: &T,
) -> Result<i64, Fault> {
    let text = row::json(what, value)?;
    let sql = "SELECT number FROM shared WHERE run = ? AND shared_json = ?";
    if let Some(number) = row::first(connection, sql, (run, &text)).optional()? {
        return Ok(number);
    }
    let sql = "INSERT INTO shared (run, number, shared_json) VALUES \
               (?1, (SELECT ifnull(max(number) + 1, 0) FROM shared WHERE run = ?1), ?2) \
               RETURNING number";
    Ok(row::first(connection, sql, (run, &text))?)
}

/// Values of one kind that the trials of a run share, by their numbers.
pub(crate) struct Shared<'a, T> {
    connection: &'a Connection,
    run: i64,
    /// What a trial has meanwhile is missing.
    known: HashMap<i64, T>,
}

/// As many as the cells of a plan that is large.
const KNOWN_MAX: usize = 256;

impl<'a, T: DeserializeOwned> Shared<'a, T> {
    /// Of a run.
    pub(crate) fn of(connection: &'a Connection, run: i64) -> Shared<'a, T> {
        Shared { connection, run, known: HashMap::new() }
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

    /// Takes back what a trial had, for the next that has the same.
    pub(crate) fn give_back(&mut self, number: i64, value: T) {
        if self.known.len() == KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(number, value);
    }
}

impl<T: Told> Shared<'_, T> {
    /// The value with this number in a trial that alone has this.
    pub(crate) fn with(&mut self, number: i64, own: T::Own) -> rusqlite::Result<T> {
        let mut value = self.take(number)?;
        // What another trial alone had.
        value.take_own();
        value.put_own(own);
        Ok(value)
    }
}
