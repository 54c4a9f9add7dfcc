//! What the coordinator and a worker say to each other, in frames over the worker's stdin and
//! stdout.

use std::net::SocketAddr;

use iolens_model::load::{Connects, Load, NetworkCounts};
use iolens_model::outcome::{Counts, EndFacts};
use iolens_model::plan::NetworkOptions;
use iolens_model::profile::Samples;
use iolens_model::reading::Histogram;
use iolens_model::reading::NotMeasured;
use iolens_model::server::Served;
use iolens_model::server::Throttled;
use iolens_model::trial::Trial;
use serde::{Deserialize, Serialize};

pub use super::link::Peer;

/// Version of this protocol; another one is refused by either side.
pub const PROTOCOL_VERSION: u32 = 13;

/// Version and commit of this build; see the build script.
pub const BUILD: &str = env!("IOLENS_BUILD");

iolens_model::words! {
    /// Which end of the connections a worker is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Side {
        /// The sending end.
        Tx = "sending",
        /// The receiving end.
        Rx = "receiving",
    }
}

impl Side {
    /// The word in names of devices and columns.
    pub fn short(self) -> &'static str {
        match self {
            Side::Tx => "tx",
            Side::Rx => "rx",
        }
    }
}

/// From the coordinator to a worker, in this order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToWorker {
    /// The answer to the worker's hello.
    Hello {
        /// The coordinator's protocol version.
        protocol: u32,
    },
    /// One step towards the topology, where that is not loopback; before
    /// [`ToWorker::Prepare`]. Answered by [`FromWorker::Staged`].
    Stage(StageStep),
    /// The whole trial, slices and all. The receiving end answers
    /// [`FromWorker::Listening`], then both answer [`FromWorker::Ready`].
    Prepare(Box<Task>),
    /// Go. Answered by [`FromWorker::Finished`].
    Run,
    /// Serve as one arm of the trial. Answered by [`FromWorker::Serving`].
    Serve(Box<ServerTask>),
    /// Be the client of all arms of the trial. Answered by [`FromWorker::Ready`].
    Visit(Box<ClientTask>),
    /// To a worker that serves or visits.
    Turn(Turn),
}

/// What a server is, in a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerTask {
    /// The trial.
    pub trial: Trial,
    /// The arm that it is, by its index.
    pub arm: usize,
}

/// What the client is to do in a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientTask {
    /// The trial.
    pub trial: Trial,
    /// Where each arm listens.
    pub addresses: Vec<SocketAddr>,
}

/// What comes next in a trial of servers: the coordinator has one do a slice at a
/// time, so that no server works but the one whose slice it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// To a server: a slice of its arm is about to begin. Answered by
    /// [`FromWorker::Begun`].
    Begin,
    /// To the client: offer what this slice is, by its position. Answered by
    /// [`FromWorker::Offered`].
    Offer(usize),
    /// To a server: the slice is over. Answered by [`FromWorker::Counted`].
    End,
    /// To all: nothing more comes. Answered by [`FromWorker::Served`] or
    /// [`FromWorker::Visited`].
    Conclude,
}

/// A step towards network namespaces of our own. For a veth pair both workers
/// enter, the sending one makes the pair, both open their end. For a device
/// that drops what is sent, the sending one enters and makes it, and the other
/// one joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageStep {
    /// Move into a new network namespace.
    Enter {
        /// The process whose user namespace shall own it; `None` for this
        /// process's own, or a new one if that grants too little.
        beside: Option<u32>,
    },
    /// Move into the network namespace of another worker.
    Join {
        /// Its process.
        pid: u32,
        /// Whether it made a user namespace for it, which is joined too.
        user_namespace: bool,
    },
    /// Make the device that drops what is sent, and switch it on.
    Sink {
        /// Its protocol.
        network: NetworkOptions,
        /// Its queues.
        queues: u32,
    },
    /// Make the veth pair.
    Pair {
        /// The process in whose network namespace the other end is made.
        far_pid: u32,
        /// Its MTU.
        network: NetworkOptions,
    },
    /// Give this end's device its address and switch it on.
    Open {
        /// Which end this worker is.
        side: Side,
        /// Its protocol.
        network: NetworkOptions,
    },
}

/// One end's part in a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Which end this worker is.
    pub side: Side,
    /// What to do.
    pub trial: Trial,
    /// Where the receiving end listens; `None` for that end itself.
    pub peer: Option<Peer>,
    /// Proves that a connection belongs to this trial.
    pub token: u64,
}

/// From a worker to the coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWorker {
    /// The first message.
    Hello {
        /// The worker's protocol version.
        protocol: u32,
        /// The worker's build.
        build: String,
    },
    /// A step of the topology is done.
    Staged {
        /// Whether this worker made a user namespace, which the other one has
        /// to join.
        user_namespace: bool,
    },
    /// The receiving end waits for connections here.
    Listening {
        /// How it is reached.
        peer: Peer,
    },
    /// Everything is connected, allocated and warm.
    Ready,
    /// A server answers here.
    Serving {
        /// Its address.
        address: SocketAddr,
    },
    /// A server has taken its readings before a slice.
    Begun,
    /// The client has offered a slice, and all of its requests have ended.
    Offered {
        /// What it counted and saw.
        slice: Box<ClientSlice>,
    },
    /// A server has taken its readings after a slice.
    Counted {
        /// What it counted.
        slice: Box<ServerSlice>,
    },
    /// A server has ended.
    Served {
        /// What it says of itself.
        facts: Box<EndFacts>,
        /// What it did.
        served: Box<Served>,
    },
    /// The client has closed its connections.
    Visited {
        /// What it says of itself.
        facts: Box<EndFacts>,
        /// Its connections to each arm.
        connects: Vec<Connects>,
    },
    /// The trial is over.
    Finished {
        /// What this end counted.
        report: Box<EndReport>,
    },
    /// The trial ended early at this end.
    Failed {
        /// Where and why.
        failure: Failure,
    },
}

/// What a server counted in a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSlice {
    /// Requests answered, and what its threads and processes spent; its time is what
    /// lies between the readings, and not the slice's.
    pub counts: Counts,
    /// Threads and processes that served at once so far, at most; those that have ended
    /// as well.
    pub tasks: u64,
    /// What the kernel counted in its network namespace.
    pub network: Option<NetworkCounts>,
    /// Processes in /proc.
    pub processes: Option<u64>,
    /// How its cgroups held it back.
    pub throttled: Option<Throttled>,
}

/// What the client counted and saw in a slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientSlice {
    /// Requests answered; its time is the slice's: from when the first request was due
    /// to the last reply.
    pub counts: Counts,
    /// The load, and what became of it.
    pub load: Load,
    /// How its cgroups held it back.
    pub throttled: Option<Throttled>,
}

/// Where and why an end gave up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Position of the slice that ran; `None` before the first one.
    pub slice: Option<usize>,
    /// What was tried and what the system said, one clause.
    pub what: String,
    /// Whether this only follows from what happened somewhere else: the peer
    /// or another thread has gone.
    pub consequence: bool,
    /// Whether the machine's limits do not allow the arm at all: it is
    /// skipped, and nothing has failed.
    pub refused: bool,
}

impl Failure {
    /// A failure of this end's own, before the first slice.
    pub(crate) fn cause(what: impl Into<String>) -> Failure {
        Failure { slice: None, what: what.into(), consequence: false, refused: false }
    }
}

/// What one end counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndReport {
    /// The end itself.
    pub facts: EndFacts,
    /// One entry per slice of the trial; `None` where this end has no part.
    pub slices: Vec<Option<EndSlice>>,
    /// Round-trip times by arm, of the requesting end in mode `rr`; else
    /// empty.
    pub latency: Vec<Histogram>,
    /// Stacks of the end's threads, in trials that ask for them.
    pub samples: Option<EndSamples>,
}

/// Where the threads of an end spent their CPU time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSamples {
    /// By arm, of its measured slices.
    pub arms: Vec<Samples>,
    /// Whether the kernel was sampled too.
    pub kernel: bool,
    /// What was not, and why.
    pub missing: Vec<NotMeasured>,
}

/// One slice at one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSlice {
    /// What was counted.
    pub counts: Counts,
    /// From the last thread's first call to the first thread's last call.
    pub all_active_ns: u64,
}

#[cfg(test)]
mod tests {
    use iolens_harness::frames::{FrameBuffer, write_frame};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_frame_survives_any_split() {
        let hello = FromWorker::Hello { protocol: PROTOCOL_VERSION, build: "x".into() };
        let mut wire = Vec::new();
        write_frame(&mut wire, &hello).unwrap();
        write_frame(&mut wire, &FromWorker::Ready).unwrap();
        for split in 0..=wire.len() {
            let mut buffer = FrameBuffer::default();
            buffer.extend(&wire[..split]);
            let mut got: Vec<FromWorker> = Vec::new();
            while let Some(message) = buffer.take().unwrap() {
                got.push(message);
            }
            buffer.extend(&wire[split..]);
            while let Some(message) = buffer.take().unwrap() {
                got.push(message);
            }
            assert_eq!(got, [hello.clone(), FromWorker::Ready]);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut buffer = FrameBuffer::default();
            buffer.extend(&bytes);
            let _ = buffer.take::<ToWorker>();
        }
    }
}
