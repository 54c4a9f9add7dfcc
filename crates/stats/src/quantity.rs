//! What is compared: of every arm so much for each message, less being better. One
//! place says what that is in a cell; ratios, the noise floor, stopping, drift and
//! verdicts follow.

use iolens_model::cell::Cell;
use iolens_model::outcome::{Counts, SliceOutcome};
use serde::Serialize;

use crate::interval::Parts;
use crate::values::{Sums, arrived};

/// A quantity of which an arm takes so much for each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Time, ns.
    Time,
    /// CPU time of a server's threads and children, user and kernel, ns.
    ServerCpu,
}

impl Quantity {
    /// What decides in a cell.
    ///
    /// Time, but where requests come by a schedule: there the time from one to the next
    /// is the schedule's, the same for every server, and says nothing about any.
    #[must_use]
    pub fn of(cell: &Cell) -> Quantity {
        match cell.server() {
            Some(setting) if setting.is_open_loop() => Quantity::ServerCpu,
            _ => Quantity::Time,
        }
    }

    /// Everything that is compared in a cell.
    pub(crate) fn all(cell: &Cell) -> &'static [Quantity] {
        match (Quantity::of(cell), cell.server()) {
            (Quantity::Time, Some(_)) => &[Quantity::Time, Quantity::ServerCpu],
            (Quantity::Time, None) => &[Quantity::Time],
            (Quantity::ServerCpu, _) => &[Quantity::ServerCpu],
        }
    }

    /// `time` or `server CPU time`, of which an arm takes so much per message.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Quantity::Time => "time",
            Quantity::ServerCpu => "server CPU time",
        }
    }

    /// So much over so many messages, of a trial; null where either is zero or was not
    /// counted.
    pub(crate) fn of_trial(self, sums: &Sums) -> Option<Parts> {
        self.parts(&sums.tx, sums.received())
    }

    /// The same of a slice.
    pub(crate) fn of_slice(self, slice: &SliceOutcome) -> Option<Parts> {
        self.parts(&slice.tx, slice.rx.as_ref())
    }

    fn parts(self, tx: &Counts, rx: Option<&Counts>) -> Option<Parts> {
        let (over, under) = match self {
            Quantity::Time => (tx.time_ns as f64, arrived(tx, rx)),
            Quantity::ServerCpu => (tx.task_clock_ns? as f64, tx.messages as f64),
        };
        (over > 0.0 && under > 0.0).then_some(Parts { over, under })
    }
}
