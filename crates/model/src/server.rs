//! The study `server`: its axes, what a trial tells its workers, and what came of an
//! arm besides the counts of its slices.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::axes::{Topology, axis, crossed, several};
use crate::external::External;
use crate::load::{Arrivals, ClientThread, Connects, Length, NetworkCounts, Outcomes};
use crate::reading::Histogram;
use crate::slo::{Goal, Slo};
use crate::units::{Cpu, Nanos};

/// The fact of an arm that says what its model makes for each connection: `process`,
/// `thread` or `nothing`. See [`ArmFact`](crate::outcome::ArmFact).
pub const MAKES: &str = "made per connection";

/// The value of [`MAKES`] of a model whose connections share what there is.
pub const MAKES_NOTHING: &str = "nothing";

/// How much is offered to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum LoadLevel {
    /// As much as it takes: every reply makes the next request due.
    Closed,
    /// Requests by a schedule, at this share of what the slowest of the models that are
    /// compared took in a closed loop, in percent, 1 to 100.
    Percent(u8),
    /// Requests at the rates that a search asks for; nobody can ask for it by this name.
    Searched,
}

/// How a load that a search offers is stored.
const SEARCHED: &str = "searched";

impl fmt::Display for LoadLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadLevel::Closed => f.write_str("closed"),
            LoadLevel::Percent(share) => write!(f, "{share}%"),
            LoadLevel::Searched => f.write_str(SEARCHED),
        }
    }
}

impl FromStr for LoadLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<LoadLevel, String> {
        let refused = || {
            format!(
                "`{text}` is not a load: write closed, or a share of what the slowest model takes, \
                 1% to 100%"
            )
        };
        if text == "closed" {
            return Ok(LoadLevel::Closed);
        }
        let share = text.strip_suffix('%').and_then(|share| share.parse().ok());
        share.filter(|share| (1..=100).contains(share)).map(LoadLevel::Percent).ok_or_else(refused)
    }
}

impl TryFrom<String> for LoadLevel {
    type Error = String;

    fn try_from(text: String) -> Result<LoadLevel, String> {
        if text == SEARCHED { Ok(LoadLevel::Searched) } else { text.parse() }
    }
}

impl From<LoadLevel> for String {
    fn from(level: LoadLevel) -> String {
        level.to_string()
    }
}

/// One setting of the axes that `server` alone has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ServerSetting {
    /// Where the client and the servers stand.
    pub topology: Topology,
    /// What a server does for a request, as it is written.
    pub service: String,
    /// How many requests a connection carries.
    pub length: Length,
    /// How much is offered.
    pub load: LoadLevel,
    /// Connections at a time, at least 1.
    pub connections: u32,
}

impl ServerSetting {
    /// `16 connections`.
    pub fn connections_in_words(&self) -> String {
        let plural = if self.connections == 1 { "" } else { "s" };
        format!("{} connection{plural}", self.connections)
    }

    /// `closed loop`, or `50% of the slowest's rate`.
    pub fn load_in_words(&self) -> String {
        match self.load {
            LoadLevel::Closed => "closed loop".to_owned(),
            LoadLevel::Percent(_) => format!("{} of the slowest's rate", self.load),
            LoadLevel::Searched => "open loop".to_owned(),
        }
    }

    /// `long connections`.
    pub fn length_in_words(&self) -> String {
        format!("{} connections", self.length.word())
    }

    /// Whether requests are due by a schedule.
    pub fn is_open_loop(&self) -> bool {
        self.load != LoadLevel::Closed
    }
}

/// The axes of `server`, and what all its cells have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerAxes {
    /// Where the client and the servers stand.
    pub topologies: Vec<Topology>,
    /// Services, as they are written.
    pub services: Vec<String>,
    /// How many requests a connection carries.
    pub lengths: Vec<Length>,
    /// How much is offered.
    pub loads: Vec<LoadLevel>,
    /// Connections at a time.
    pub connections: Vec<u32>,
    /// How requests of an open loop follow each other.
    pub arrivals: Arrivals,
    /// Requests in flight on each connection, at most.
    pub in_flight: u32,
    /// How long a phase of an open loop is, what is thrown away of it included.
    pub phase: Nanos,
    /// Connections that may wait to be taken.
    pub backlog: u32,
    /// Threads of the client; `None` for as many as it has processors.
    pub client_threads: Option<u32>,
    /// Processors of the servers; `None` for the first half.
    pub server_cpus: Option<Vec<u32>>,
    /// Processors of the client; `None` for the other half.
    pub client_cpus: Option<Vec<u32>>,
    /// Programs of the user's that are arms.
    pub external: Vec<External>,
    /// Services whose servers are each measured by themselves.
    pub alone_services: Vec<String>,
    /// Numbers of long connections with which servers are each measured by themselves.
    pub alone_connections: Vec<u32>,
    /// Limits of latency: the highest rate that keeps each is searched for.
    pub slo: Vec<Slo>,
    /// Whether the knee is searched for.
    pub knee: bool,
}

impl ServerAxes {
    /// Whether each server is measured by itself with this setting, where the plan does
    /// not have it so throughout.
    pub fn measures_alone(&self, setting: &ServerSetting) -> bool {
        self.alone_services.contains(&setting.service)
            || (setting.length == Length::Long
                && self.alone_connections.contains(&setting.connections))
    }

    /// What is searched for, limits before the knee.
    pub fn goals(&self) -> Vec<Goal> {
        let knee = self.knee.then_some(Goal::Knee);
        self.slo.iter().copied().map(Goal::Slo).chain(knee).collect()
    }

    /// Every setting, in the order of the axes.
    pub(crate) fn settings(&self) -> Vec<ServerSetting> {
        let first = ServerSetting {
            topology: Topology::Loopback,
            service: String::new(),
            length: Length::Long,
            load: LoadLevel::Closed,
            connections: 1,
        };
        let all = crossed(vec![first], &self.topologies, |one, &place| one.topology = place);
        let all = crossed(all, &self.services, |one, service| one.service.clone_from(service));
        let all = crossed(all, &self.lengths, |one, &length| one.length = length);
        let all = crossed(all, &self.loads, |one, &load| one.load = load);
        crossed(all, &self.connections, |one, &connections| one.connections = connections)
    }

    /// How many values each axis has.
    pub(crate) fn lengths(&self) -> [usize; 5] {
        let [topologies, services] = [self.topologies.len(), self.services.len()];
        [topologies, services, self.lengths.len(), self.loads.len(), self.connections.len()]
    }

    /// What tells a setting from others of the plan besides its connections.
    pub(crate) fn told_apart(&self, server: &ServerSetting) -> Vec<String> {
        let rows = [
            (self.topologies.len(), server.topology.to_string()),
            (self.services.len(), server.service.clone()),
            (self.lengths.len(), server.length_in_words()),
            (self.loads.len(), server.load_in_words()),
            (self.connections.len(), server.connections_in_words()),
        ];
        several(rows)
    }
}

/// What the workers of a trial of servers are told besides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialServers {
    /// Requests per second of an open loop, over all threads of the client; `None` in a
    /// closed one.
    pub rate: Option<f64>,
    /// Arms, by their indices, that are offered the rate of another kind of models than
    /// their own: the baseline is compared with both.
    pub at_others_rate: Vec<usize>,
    /// How they follow each other.
    pub arrivals: Arrivals,
    /// What random gaps come from.
    pub seed: u64,
    /// Requests in flight on each connection, at most.
    pub in_flight: u32,
    /// Time at the beginning of a phase that does not count.
    pub dropped: Nanos,
    /// Connections that may wait to be taken.
    pub backlog: u32,
    /// Threads of the client, at least 1 and no more than connections.
    pub client_threads: u32,
    /// Programs that are arms, by their names.
    pub programs: Vec<External>,
    /// How long the use of processors is watched while nothing is asked: before the
    /// servers start, and when they stand.
    pub rest: Nanos,
}

/// Trials compare bit for bit; a rate is never NaN.
impl Eq for TrialServers {}

/// What came of an arm of a trial of servers besides the counts of its slices.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ServerArm {
    /// Requests per second that an open loop was to make; `None` in a closed one.
    pub rate: Option<f64>,
    /// Whether that is the rate of another kind of models than its own.
    pub at_others_rate: bool,
    /// What the client saw of each slice that is stored, in their order.
    pub offered: Vec<OfferedSlice>,
    /// Times from when a request was sent, over the measured slices; those from when
    /// it was due are the arm's latency.
    pub from_sent: Histogram,
    /// How long after they were due requests were taken up, likewise; empty in a closed
    /// loop.
    pub lag: Histogram,
    /// Connections that the client made to it.
    pub connects: Connects,
    /// What the client saw go wrong, and how often, in all slices.
    pub failures: Vec<(String, u64)>,
    /// What the server saw go wrong.
    pub mishaps: Vec<(Mishap, u64)>,
    /// Requests of each of its threads or processes that answered any.
    pub requests_by_task: Vec<u64>,
    /// Threads or processes that it had at once, at most.
    pub tasks_max: u64,
    /// Threads or processes that its model makes for what it was asked, at least and at
    /// most; `None` where that is not known.
    pub tasks_asked: Option<(u64, Option<u64>)>,
    /// What every processor did meanwhile.
    pub cpus: CpuUse,
}

/// What every processor of the machine did in a trial, from /proc/stat; empty where that
/// could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CpuUse {
    /// Before the trial's servers were started.
    pub before: Vec<CpuTime>,
    /// When all of them stood, connected, and nobody asked.
    pub idle: Vec<CpuTime>,
    /// In the measured slices of the arm.
    pub slices: Vec<CpuTime>,
}

/// What one processor did for a time, in clock ticks (`USER_HZ`, 100 per second).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CpuTime {
    /// Its number.
    pub cpu: u32,
    /// User mode, also of low priority.
    pub user: u64,
    /// The kernel for a thread.
    pub system: u64,
    /// Interrupts.
    pub irq: u64,
    /// Softirq, whoever it was for: on loopback and veth the packets of both ends.
    pub softirq: u64,
    /// Taken by the hypervisor for somebody else.
    pub steal: u64,
    /// Nothing, or waiting for storage.
    pub idle: u64,
}

/// What the client saw of one slice.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OfferedSlice {
    /// Position of the slice in the trial.
    pub seq: u32,
    /// Requests that were due.
    pub scheduled: u64,
    /// How they ended.
    pub outcomes: Outcomes,
    /// Right replies that came in the window.
    pub replies_in_window: u64,
    /// The time in which requests were due.
    pub window: Nanos,
    /// Replies to requests that had timed out.
    pub late_replies: u64,
    /// What each thread of the client spent.
    pub threads: Vec<ClientThread>,
    /// What the kernel counted in the client's network namespace.
    pub network: Option<NetworkCounts>,
    /// The same in the servers'; `None` where both are in one.
    pub server_network: Option<NetworkCounts>,
    /// Entries of /proc that are processes, for a service that reads them all.
    pub processes: Option<u64>,
    /// How the cgroups of the server held it back, and those of the client; `None` where
    /// they have no such account.
    pub throttled: [Option<Throttled>; 2],
}

impl OfferedSlice {
    /// CPU time in which the client only polled, ns.
    pub fn polled_ns(&self) -> u64 {
        self.threads.iter().map(ClientThread::polled_ns).sum()
    }
}

/// How cgroups held back what ran in them, because the processor time of a period was
/// spent (`cpu.stat`, sched-bwc.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Throttled {
    /// Periods in which they did.
    pub periods: u64,
    /// For how long.
    pub time: Nanos,
}

impl Throttled {
    /// What came on top since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Throttled) -> Throttled {
        Throttled {
            periods: self.periods.saturating_sub(earlier.periods),
            time: Nanos(self.time.0.saturating_sub(earlier.time.0)),
        }
    }
}

/// What a server did, summed over its threads and processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// The concurrency model, by id.
    pub model: String,
    /// The service, as it is written.
    pub service: String,
    /// The address that it listened on.
    pub address: String,
    /// From the first moment it listened to the end.
    pub time: Nanos,
    /// Connections taken.
    pub connections: u64,
    /// Requests answered as they should be.
    pub requests: u64,
    /// What went wrong, by kind; kinds that did not occur are left out.
    pub mishaps: Vec<(Mishap, u64)>,
    /// Requests of each thread or process that answered, in the order in which
    /// they began; those of tasks that took another's place count there too.
    pub requests_by_task: Vec<u64>,
    /// Threads and processes that answered a request.
    pub tasks: u64,
    /// Of them, those that were there at once, at most.
    pub tasks_at_once: u64,
    /// CPU time of this process and of children that have ended; `None` where it
    /// cannot be read.
    pub cpu: Option<Cpu>,
    /// Why it ended by itself; `None` where it was told to.
    pub failure: Option<String>,
}

axis! {
    /// What can go wrong with a request or a connection; the server goes on.
    Mishap {
        /// A request whose id is not a number: answered with an error and closed.
        NotANumber = "not_a_number",
        /// A request beyond the longest one: the same.
        TooLong = "too_long",
        /// The client ended a connection within a request.
        CutOff = "cut_off",
        /// The client reset a connection, or went away before its reply.
        Reset = "reset",
        /// The client did not move for too long.
        TimedOut = "timed_out",
        /// There was no descriptor for a connection, which was closed.
        NoDescriptor = "no_descriptor",
        /// There was no thread or process for a connection, which was closed.
        NoTask = "no_task",
        /// A connection's descriptor did not fit into the sets of select(2), and it was
        /// closed.
        BeyondSelect = "beyond_select",
        /// A process of the server that others ended, or that failed.
        ChildDied = "child_died",
        /// The service could not answer a request, which got an error.
        Service = "service",
        /// Anything else that the system said of a connection.
        Other = "other",
    }
}

impl Mishap {
    /// What happened, for a person, with what would change it.
    pub fn text(self) -> &'static str {
        match self {
            Mishap::NotANumber => "requests whose id is not a number, answered with an error",
            Mishap::TooLong => "requests of more than 64 KiB, answered with an error",
            Mishap::CutOff => "connections that their client ended within a request",
            Mishap::Reset => "connections that were reset, or gone before their reply",
            Mishap::TimedOut => "connections whose client did not move for too long",
            Mishap::NoDescriptor => {
                "connections closed for lack of a descriptor: RLIMIT_NOFILE (`ulimit -n`)"
            }
            Mishap::NoTask => {
                "connections closed for lack of a thread or process: RLIMIT_NPROC (`ulimit -u`), \
                 kernel.threads-max, kernel.pid_max, a cgroup's pids.max"
            }
            Mishap::BeyondSelect => {
                "connections closed because their descriptor is beyond what select(2)'s fd_set \
                 holds (FD_SETSIZE, 1024): `select_large` has longer sets"
            }
            Mishap::ChildDied => {
                "processes of the server that ended by a signal or an error, with what they served"
            }
            Mishap::Service => "requests that the service could not answer, answered with an error",
            Mishap::Other => "connections that failed in another way",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_written_as_it_is_read() {
        for text in ["closed", "1%", "50%", "100%"] {
            let level: LoadLevel = text.parse().unwrap();
            assert_eq!(level.to_string(), text);
            let stored = serde_json::to_string(&level).unwrap();
            assert_eq!(serde_json::from_str::<LoadLevel>(&stored).unwrap(), level);
        }
        let searched = serde_json::to_string(&LoadLevel::Searched).unwrap();
        assert_eq!(serde_json::from_str::<LoadLevel>(&searched).unwrap(), LoadLevel::Searched);
        assert!("searched".parse::<LoadLevel>().is_err(), "no user asks for it");
        for text in ["", "open", "0%", "101%", "50", "-5%", "5.5%"] {
            assert!(text.parse::<LoadLevel>().unwrap_err().contains("1% to 100%"), "{text}");
        }
    }

    #[test]
    fn words_are_those_of_stored_data() {
        for mishap in Mishap::ALL {
            let stored = serde_json::to_string(&mishap).unwrap();
            assert_eq!(stored, format!("\"{}\"", mishap.word()));
            assert!(!mishap.text().is_empty());
        }
    }
}
