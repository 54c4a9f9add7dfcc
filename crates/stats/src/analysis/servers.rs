//! Figures of one server: what it was offered, what it and its client spent, and which
//! of them could do no more.

use iolens_model::load::Outcomes;
use serde::Serialize;

use super::{EndFigures, Estimate, LatencyFigures};
use crate::quantity::Quantity;
use crate::remark::Limited;

/// What came of a server in a cell, over its used trials. Times from when requests were
/// due are the arm's [`latency`](super::ArmAnalysis::latency).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerFigures {
    /// Right replies per second.
    pub requests_per_s: Estimate,
    /// Requests that were due per second; null in a closed loop.
    pub offered_per_s: Option<Estimate>,
    /// Requests per second that the schedule was to make, each rate once: the baseline
    /// has that of every group that it was measured in; empty in a closed loop.
    pub rates_asked: Vec<f64>,
    /// How requests ended.
    pub outcomes: Outcomes,
    /// The server: all its threads, and its children.
    pub server: EndFigures,
    /// The client's process.
    pub client: EndFigures,
    /// Times from when requests were sent; null without any.
    pub from_sent: Option<LatencyFigures>,
    /// How long after they were due the client took requests up; null in a closed loop.
    pub lag: Option<LatencyFigures>,
    /// Threads and processes that it had at the end of a slice, at most.
    pub tasks_max: u64,
    /// CPU time of the server over the time of its slices and the processors that it can
    /// use: those that it has, or fewer where fewer of its threads and processes have
    /// answered anything. 0 to about 1.
    pub server_busy: Option<Estimate>,
    /// The share of its time in which the client's busiest thread worked, 0 to 1. Looking
    /// whether something is to be done is no work.
    pub client_busy: Option<Estimate>,
    /// Who had no time left; null where either is not known.
    pub saturated: Option<Saturated>,
    /// What every processor did before the servers were started.
    pub cpus_before: Vec<CpuShares>,
    /// The same when they stood, connected, and nobody asked.
    pub cpus_idle: Vec<CpuShares>,
    /// The same in the slices of this one.
    pub cpus_in_slices: Vec<CpuShares>,
    /// What else than the server the load shows.
    pub limits: Limits,
}

/// What one processor did, in shares of its time, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CpuShares {
    /// Its number.
    pub cpu: u32,
    /// Whose threads may run on it.
    pub of: CpuOf,
    /// User mode.
    pub user: f64,
    /// The kernel for a thread.
    pub system: f64,
    /// Interrupts.
    pub irq: f64,
    /// Softirq, whoever it was for.
    pub softirq: f64,
    /// Taken by the hypervisor for somebody else.
    pub steal: f64,
    /// Nothing.
    pub idle: f64,
    /// Its time, in clock ticks of 10 ms: the shares are no finer.
    pub ticks: u64,
}

/// Whose threads may run on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuOf {
    /// The server's.
    Server,
    /// The client's.
    Client,
    /// Both.
    Both,
    /// None of ours.
    Neither,
}

impl CpuOf {
    /// The word in tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            CpuOf::Server => "server",
            CpuOf::Client => "client",
            CpuOf::Both => "both",
            CpuOf::Neither => "neither",
        }
    }
}

/// Who had no time left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Saturated {
    /// The server.
    Server,
    /// The client: what the server could do is not known.
    Client,
    /// Both.
    Both,
    /// Neither of them: they wait for each other, or the schedule leaves them time.
    Neither,
}

impl Saturated {
    /// By the shares of their time in which they were busy.
    #[must_use]
    pub fn of(server: f64, client: f64) -> Saturated {
        let full = |share: f64| share >= crate::load::BUSY_SHARE;
        match (full(server), full(client)) {
            (true, true) => Saturated::Both,
            (true, false) => Saturated::Server,
            (false, true) => Saturated::Client,
            (false, false) => Saturated::Neither,
        }
    }

    /// The word in tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Saturated::Server => "server",
            Saturated::Client => "client",
            Saturated::Both => "both",
            Saturated::Neither => "neither",
        }
    }
}

/// What else than the server a load shows: each where it was so in more than half of the
/// used trials.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Limits {
    /// The client had no time left: the rate is a floor, and not ranked. What a request
    /// costs the server stands.
    pub client_busy: Option<Limited>,
    /// The client was late: times from due, and their tail, are its own.
    pub client_late: Option<Limited>,
    /// The rate that was asked for was not kept, so that neither cost nor times are
    /// those at that rate.
    pub rate_not_kept: Option<Limited>,
}

impl Limits {
    /// The one that keeps a server from being ranked by a quantity.
    ///
    /// Where a client had no time left, the time of a request is the client's. Where a rate
    /// was not kept, the cost of a request is that of another rate than the others'.
    pub(crate) fn against(&self, quantity: Quantity) -> Option<Limited> {
        match quantity {
            Quantity::Time => self.client_busy,
            Quantity::ServerCpu => self.rate_not_kept,
            Quantity::Cpu => None,
        }
    }
}
