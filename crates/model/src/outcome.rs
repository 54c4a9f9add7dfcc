//! What came of a trial: raw counts, never ratios.

use serde::{Deserialize, Serialize};

use crate::arm::ArmOutcome;
use crate::axes::Cell;
use crate::reading::{NotMeasured, Reading};
use crate::trial::SliceKind;

/// How a trial, or an arm in it, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Ran to its end.
    Ok,
    /// Ran, but a gate says that its numbers cannot be used.
    Invalid,
    /// Began and did not end as it should.
    Failed,
    /// Did not begin.
    Skipped,
    /// Ended by the user.
    Interrupted,
}

impl Status {
    /// The word in tables and columns.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Invalid => "invalid",
            Status::Failed => "failed",
            Status::Skipped => "skipped",
            Status::Interrupted => "interrupted",
        }
    }

    /// The status of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Status> {
        [Status::Ok, Status::Invalid, Status::Failed, Status::Skipped, Status::Interrupted]
            .into_iter()
            .find(|status| status.word() == word)
    }
}

/// A trial that was started, whatever became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialOutcome {
    /// Pass, from 1.
    pub pass: u32,
    /// Position in the pass, from 0.
    pub position: u32,
    /// Whether this is one arm of an isolated comparison.
    pub isolated: bool,
    /// The setting of the axes.
    pub cell: Cell,
    /// Start, nanoseconds since 1970 (UTC).
    pub started_unix_ns: u64,
    /// From the spawn of the workers to their end.
    pub duration_ns: u64,
    /// How the trial ended.
    pub status: Status,
    /// Why, for every status but `ok`.
    pub reason: Option<String>,
    /// How each arm ended, in the order of the trial.
    pub arms: Vec<ArmOutcome>,
    /// Counts per slice, in the order in which they ran.
    pub slices: Vec<SliceOutcome>,
    /// The machine around the trial.
    pub environment: Environment,
    /// The sending end; null if it never answered.
    pub tx: Option<EndFacts>,
    /// The receiving end.
    pub rx: Option<EndFacts>,
}

/// The counts of one slice at both ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceOutcome {
    /// Position in the trial, from 0.
    pub seq: u32,
    /// Round, from 0.
    pub round: u32,
    /// Whether it counts.
    pub kind: SliceKind,
    /// Index into the trial's arms.
    pub arm: usize,
    /// From the last thread's first call to the first thread's last call; 0
    /// if they never all ran.
    pub all_active_ns: u64,
    /// The sending end; its `time_ns` is the slice's clock: from the first
    /// call to the last receipt.
    pub tx: Counts,
    /// The receiving end; null for arms that have none.
    pub rx: Option<Counts>,
}

/// What one end counted in one slice, summed over its threads, read outside
/// the slice's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Messages sent, or received in whole.
    pub messages: u64,
    /// Payload bytes the kernel accepted, or delivered.
    pub bytes: u64,
    /// System calls that moved, or tried to move, payload.
    pub calls: u64,
    /// First call of the first thread to the end of the last one.
    pub time_ns: u64,
    /// CPU time of the end's threads, user and kernel.
    pub task_clock_ns: Option<u64>,
    /// Voluntary context switches: the thread waited.
    pub voluntary_switches: Option<u64>,
    /// Involuntary context switches: the scheduler took the CPU.
    pub involuntary_switches: Option<u64>,
    /// Moves to another CPU.
    pub migrations: Option<u64>,
    /// Page faults served without I/O.
    pub minor_faults: Option<u64>,
    /// Page faults that waited for I/O.
    pub major_faults: Option<u64>,
    /// Segments retransmitted on the arm's connections.
    pub retransmits: Option<u64>,
    /// Ticks in softirq on the end's CPUs, whoever caused them.
    pub softirq_ticks: Option<u64>,
}

/// What one end says about itself after a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndFacts {
    /// Build of the worker.
    pub build: String,
    /// The message size this end used.
    pub message_bytes: u64,
    /// The threads this end ran.
    pub threads: u32,
    /// Processors each thread may run on, as the kernel reads them back.
    pub thread_cpus: Vec<Vec<u32>>,
    /// Congestion control, as the kernel reads it back; null without TCP.
    pub congestion: Option<String>,
    /// `SO_SNDBUF` as read back.
    pub send_buffer_bytes: Option<u64>,
    /// `SO_RCVBUF` as read back.
    pub receive_buffer_bytes: Option<u64>,
    /// `TCP_NODELAY` as read back.
    pub nodelay: Option<bool>,
    /// `TCP_MAXSEG` of a connection.
    pub mss_bytes: Option<u64>,
    /// Bytes that one arm sends from, over all threads; null at the receiving
    /// end.
    pub ring_bytes: Option<u64>,
    /// Time spent reading counters, all slices.
    pub bracket_ns: u64,
    /// What this end could not read, and why.
    pub not_measured: Vec<NotMeasured>,
}

/// The machine around a trial: differences from its start to its end unless
/// named otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// All ticks of all CPUs, idle ones too.
    pub cpu_ticks: Reading<u64>,
    /// Ticks the hypervisor gave to somebody else.
    pub steal_ticks: Reading<u64>,
    /// Ticks in softirq on all CPUs.
    pub softirq_ticks: Reading<u64>,
    /// Microseconds in which some task waited for a CPU (PSI).
    pub psi_cpu_some_us: Reading<u64>,
    /// Runnable tasks when the trial began, ours not yet among them.
    pub procs_running_before: Reading<u64>,
    /// Runnable tasks after the workers had ended.
    pub procs_running_after: Reading<u64>,
    /// The fixed calibration loop just before the trial.
    pub loop_before_ns: Reading<u64>,
    /// The same loop just after it.
    pub loop_after_ns: Reading<u64>,
}

impl Environment {
    /// An environment of which nothing could be read.
    #[must_use]
    pub fn unknown(why: &str) -> Environment {
        let missing = || Reading::not_measured(why);
        Environment {
            cpu_ticks: missing(),
            steal_ticks: missing(),
            softirq_ticks: missing(),
            psi_cpu_some_us: missing(),
            procs_running_before: missing(),
            procs_running_after: missing(),
            loop_before_ns: missing(),
            loop_after_ns: missing(),
        }
    }
}
