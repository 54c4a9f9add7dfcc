//! A plan: everything that is decided before the first trial. It is stored
//! with the run, and nothing in it changes once data exist.

use serde::{Deserialize, Deserializer, Serialize};

use crate::axes::{Cell, Counting, Iovec, IpVersion, Mode, Study, Topology, WorkingSet};
use crate::units::{Bytes, Nanos};

/// What is measured, how, and when it is enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What is studied.
    pub study: Study,
    /// Arms, as registry ids, the baseline among them.
    pub primitives: Vec<String>,
    /// The arm that the others are compared with.
    pub baseline: String,
    /// Message sizes.
    pub sizes: Vec<Bytes>,
    /// Thread pairs.
    pub threads: Vec<u32>,
    /// Where the ends stand.
    pub topologies: Vec<Topology>,
    /// What travels.
    pub modes: Vec<Mode>,
    /// Sizes of the memory that is sent from.
    pub working_sets: Vec<WorkingSet>,
    /// Fields per message.
    pub fields: u32,
    /// When the iovec is built.
    pub iovec: Iovec,
    /// Receivers, as registry ids. Plans of older files name one.
    #[serde(alias = "receiver", deserialize_with = "one_or_more")]
    pub receivers: Vec<String>,
    /// How a trial is laid out.
    pub schedule: Schedule,
    /// How often every cell is visited.
    pub passes: Passes,
    /// Wall time after which no new pass begins that would end later.
    pub budget: Nanos,
    /// Half-width of the ratio at which a contrast is precise enough, as a
    /// fraction (0.03 is ±3 %).
    pub precision: f64,
    /// Smallest difference that matters, as a fraction.
    pub delta: f64,
    /// A first look: sentences say "Indicative".
    pub quick: bool,
    /// One arm per process pair in every trial.
    pub isolate: bool,
    /// Seed of every random order in the run.
    pub seed: u64,
    /// Processors to use; `None` for all that iolens may run on.
    pub cpus: Option<Vec<u32>>,
    /// Socket settings, the same for all arms.
    pub socket: SocketOptions,
    /// The network between the ends.
    pub network: NetworkOptions,
    /// What is read around slices.
    #[serde(default)]
    pub probes: Probes,
    /// Whether sysctls of the whole machine may be changed for the time of the
    /// run, where a receiver needs it.
    #[serde(default)]
    pub allow_sysctl: bool,
}

/// How the slices of a trial are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Arms alternate in slices of fixed work: what this tool is for.
    Slices {
        /// How long a slice is meant to last with one thread pair.
        slice: Nanos,
        /// Rounds thrown away at the start of each trial.
        discarded_rounds: u32,
        /// Rounds that count.
        rounds: u32,
    },
    /// One arm after another, each for a fixed time: the classic way.
    Window {
        /// How long each arm sends.
        window: Nanos,
    },
    /// One arm after another, each for a fixed number of messages.
    Messages {
        /// Messages of each arm, over all its threads.
        messages: u64,
    },
}

impl Schedule {
    /// Whether arms alternate in slices.
    #[must_use]
    pub fn is_sliced(&self) -> bool {
        matches!(self, Schedule::Slices { .. })
    }
}

/// How often every cell is visited, one trial each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passes {
    /// Stopping for precision is considered from here on.
    pub minimum: u32,
    /// The run ends here.
    pub maximum: u32,
}

/// Socket settings asked of both ends; what the kernel made of them is stored
/// with each trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketOptions {
    /// `TCP_CONGESTION`.
    pub congestion: String,
    /// `SO_SNDBUF` and `SO_RCVBUF`; the kernel doubles it and caps it at
    /// `net.core.wmem_max` and `rmem_max`.
    pub buffer_bytes: Bytes,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// Bytes asked of one `recv`, whatever the message size.
    pub receive_bytes: Bytes,
}

/// The network between the ends. Over loopback only the protocol is ours to
/// choose; the device is the machine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkOptions {
    /// IPv4 or IPv6.
    pub ip: IpVersion,
    /// MTU of a veth pair, headers of IP and TCP included.
    pub mtu_bytes: u32,
}

impl NetworkOptions {
    /// MTU of the device of [`Topology::Sink`]: the largest, so that a datagram
    /// of any length goes out in one piece.
    pub const SINK_MTU_BYTES: u32 = 65_535;

    /// MTU of the device that we make for a topology; null where it is the
    /// machine's.
    #[must_use]
    pub fn device_mtu_bytes(self, topology: Topology) -> Option<u32> {
        match topology {
            Topology::Loopback => None,
            Topology::Veth => Some(self.mtu_bytes),
            Topology::Sink => Some(NetworkOptions::SINK_MTU_BYTES),
        }
    }

    /// The largest message that is one datagram in [`Topology::Sink`]: its MTU
    /// less the headers of IP (RFC 791, RFC 8200) and UDP (RFC 768).
    #[must_use]
    pub fn datagram_max(self) -> Bytes {
        const UDP_HEADER_BYTES: u32 = 8;
        let ip_header_bytes = match self.ip {
            IpVersion::V4 => 20,
            IpVersion::V6 => 40,
        };
        let headers_bytes = ip_header_bytes + UDP_HEADER_BYTES;
        Bytes(u64::from(NetworkOptions::SINK_MTU_BYTES - headers_bytes))
    }
}

/// What is read around slices besides the kernel's own accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probes {
    /// When events of perf_event_open(2) are open.
    pub counting: Counting,
    /// Whether the kernel's software events are counted too, which makes each
    /// context switch dearer.
    pub software: bool,
    /// Whether tracepoints are counted too, of which each passage costs.
    pub tracepoints: bool,
}

/// IPv4 with the MTU of Ethernet.
impl Default for NetworkOptions {
    fn default() -> Self {
        NetworkOptions { ip: IpVersion::V4, mtu_bytes: 1500 }
    }
}

impl Plan {
    /// Every cell of the plan, in the order of its axes.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &topology in &self.topologies {
            for &mode in &self.modes {
                for &working_set in &self.working_sets {
                    // Where nobody receives, it does not matter how.
                    let receivers = match topology.has_receiver() {
                        true => &self.receivers[..],
                        false => &self.receivers[..self.receivers.len().min(1)],
                    };
                    for receiver in receivers {
                        let setting = Cell {
                            topology,
                            mode,
                            working_set,
                            fields: self.fields,
                            iovec: self.iovec,
                            receiver: receiver.clone(),
                            threads: 0,
                            message_bytes: Bytes(0),
                        };
                        cells.extend(self.sizes_and_threads(&setting));
                    }
                }
            }
        }
        cells
    }

    /// The cells of one setting of the other axes.
    fn sizes_and_threads<'a>(&'a self, setting: &'a Cell) -> impl Iterator<Item = Cell> + 'a {
        let sizes = move |&threads: &'a u32| {
            let cell = move |&message_bytes| Cell { threads, message_bytes, ..setting.clone() };
            self.sizes.iter().map(cell)
        };
        self.threads.iter().flat_map(sizes)
    }
}

/// A word, or a list of them.
fn one_or_more<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        One(String),
        More(Vec<String>),
    }
    Ok(match Either::deserialize(from)? {
        Either::One(word) => vec![word],
        Either::More(words) => words,
    })
}
