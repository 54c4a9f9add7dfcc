//! What a server did, from when it began to listen until it ended.

use serde::{Deserialize, Serialize};

use crate::axes::axis;
use crate::units::{Cpu, Nanos};

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
    #[must_use]
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
    fn words_are_those_of_stored_data() {
        for mishap in Mishap::ALL {
            let stored = serde_json::to_string(&mishap).unwrap();
            assert_eq!(stored, format!("\"{}\"", mishap.word()));
            assert!(!mishap.text().is_empty());
        }
    }
}
