//! A search for the highest rate that a server keeps: what is asked, and what each step found.

use serde::{Deserialize, Serialize};

use crate::arm::Arm;
use crate::cell::Cell;
use crate::latency::Histogram;
use crate::outcome::{Environment, SliceOutcome};
use crate::server::{OfferedSlice, ServerArm};
pub use crate::slo::{Goal, Percentile, Slo};
use crate::status::Status;
use crate::units::Nanos;

/// A phase of a search: one model alone, asked at one rate for some time, or in a closed
/// loop for as much as it takes. Stored raw: whether it kept a limit is computed when it
/// is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchPhase {
    /// Its place among the phases of the run, from 1.
    pub number: u32,
    /// The setting of the axes; its load is `searched`, or `closed`.
    pub cell: Cell,
    /// The model.
    pub arm: Arm,
    /// The step of its rate from what the closed loop took; `None` for that loop.
    pub step: Option<i32>,
    /// Requests per second that were offered; `None` for the closed loop.
    pub rate: Option<f64>,
    /// How long they were, what does not count included.
    pub phase: Nanos,
    /// Time at the beginning that does not count.
    pub dropped: Nanos,
    /// Start, nanoseconds since 1970 (UTC).
    pub started_unix_ns: u64,
    /// From the start of its processes to their end.
    pub duration_ns: u64,
    /// How it ended.
    pub status: Status,
    /// Why, for every status but `ok`.
    pub reason: Option<String>,
    /// Times from when requests were due; `None` where none was measured.
    pub latency: Option<Histogram>,
    /// What came of it besides; `None` where it did not come to its end.
    pub server: Option<Box<ServerArm>>,
    /// The counts of both ends, likewise.
    pub slice: Option<SliceOutcome>,
    /// The machine meanwhile.
    pub environment: Environment,
}

impl SearchPhase {
    /// What the client saw; `None` where the phase did not come to its end.
    #[must_use]
    pub fn offered(&self) -> Option<&OfferedSlice> {
        self.server.as_ref()?.offered.last()
    }

    /// Right replies per second while requests were due; `None` where none could come.
    #[must_use]
    pub fn achieved(&self) -> Option<f64> {
        let offered = self.offered().filter(|offered| offered.window.0 > 0)?;
        Some(offered.replies_in_window as f64 / offered.window.as_seconds())
    }
}
