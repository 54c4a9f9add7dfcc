//! What came of a trial: raw counts, never ratios.

mod row;

use serde::{Deserialize, Serialize};

use crate::ab::AbQuantity;
use crate::arm::ArmOutcome;
use crate::cell::Cell;
use crate::copy::ProgramStart;
use crate::file::FileCounts;
pub use crate::reading::Status;
use crate::reading::{NotMeasured, Reading};
use crate::server::Throttled;
use crate::trial::SliceKind;
use crate::units::Nanos;

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
    /// The same of the other machine; `None` where both ends are on one, or it was not heard of.
    pub far_environment: Option<Environment>,
    /// The sending end; `None` if it never answered.
    pub tx: Option<EndFacts>,
    /// The receiving end.
    pub rx: Option<EndFacts>,
}

impl TrialOutcome {
    /// What both ends found or arranged of its arms.
    pub fn arm_facts(&self) -> impl Iterator<Item = &ArmFact> {
        [&self.tx, &self.rx].into_iter().flatten().flat_map(|end| &end.arm_facts)
    }
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
    /// The receiving end; `None` for arms that have none.
    pub rx: Option<Counts>,
}

/// What one end counted in one slice, summed over its threads, read outside
/// the slice's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Units of work done: messages sent, or received in whole; calls made.
    pub messages: u64,
    /// Payload bytes the kernel accepted, or delivered.
    pub bytes: u64,
    /// System calls that moved, or tried to move, payload; `None` for programs, whose calls
    /// nobody counts: see [`crate::file::EngineFacts::program`].
    pub calls: Option<u64>,
    /// First call of the first thread to the end of the last one.
    pub time_ns: u64,
    /// CPU time of the end's threads, user and kernel, and of the threads of the kernel's that
    /// worked for them (io_uring's); `None` where one of those ended before it was read.
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
    /// Segments that the end's kernel sent on the arm's connections, those
    /// that only acknowledge and those sent again too.
    pub segments_out: Option<u64>,
    /// Ticks in softirq on the end's CPUs, whoever caused them.
    pub softirq_ticks: Option<u64>,
    /// Zero-copy sends; `None` for arms that make none.
    pub zerocopy: Option<ZerocopyCounts>,
    /// Payload bytes that the kernel mapped into the receiver's address space
    /// instead of copying them; `None` for receivers that map none, and at the
    /// sending end.
    pub mapped_bytes: Option<u64>,
    /// Multishot receives; `None` for receivers that make none, and at the sending
    /// end.
    pub multishot: Option<MultishotCounts>,
    /// What was found around a slice that reads a file; `None` in other studies.
    pub file: Option<FileCounts>,
    /// Time for which threads of the end were ready to run and waited for a
    /// CPU, ns.
    pub run_delay_ns: Option<u64>,
    /// What the PMU counted.
    pub pmu: PmuCounts,
    /// What the kernel counted by itself.
    pub kernel: KernelCounts,
}

impl Counts {
    /// The sum with those of a later slice, saturating; `None` where either is `None`.
    pub fn plus(&self, later: &Counts) -> Counts {
        let both = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        Counts {
            messages: self.messages.saturating_add(later.messages),
            bytes: self.bytes.saturating_add(later.bytes),
            calls: both(self.calls, later.calls),
            time_ns: self.time_ns.saturating_add(later.time_ns),
            task_clock_ns: both(self.task_clock_ns, later.task_clock_ns),
            voluntary_switches: both(self.voluntary_switches, later.voluntary_switches),
            involuntary_switches: both(self.involuntary_switches, later.involuntary_switches),
            migrations: both(self.migrations, later.migrations),
            minor_faults: both(self.minor_faults, later.minor_faults),
            major_faults: both(self.major_faults, later.major_faults),
            retransmits: both(self.retransmits, later.retransmits),
            segments_out: both(self.segments_out, later.segments_out),
            softirq_ticks: both(self.softirq_ticks, later.softirq_ticks),
            run_delay_ns: both(self.run_delay_ns, later.run_delay_ns),
            mapped_bytes: both(self.mapped_bytes, later.mapped_bytes),
            multishot: self.multishot.zip(later.multishot).map(|(a, b)| a.plus(&b)),
            zerocopy: self.zerocopy.zip(later.zerocopy).map(|(a, b)| a.plus(&b)),
            file: self.file.zip(later.file).map(|(a, b)| a.and_later(&b)),
            pmu: self.pmu.plus(&later.pmu),
            kernel: self.kernel.plus(&later.kernel),
        }
    }

    /// Of a process that did so many operations. Switches are because it waited and because the
    /// scheduler took the CPU, faults without I/O and with.
    pub fn of_process(
        operations: u64,
        time: Nanos,
        cpu: Option<Nanos>,
        switches: Option<[u64; 2]>,
        faults: Option<[u64; 2]>,
    ) -> Counts {
        Counts {
            messages: operations,
            time_ns: time.0,
            task_clock_ns: cpu.map(|cpu| cpu.0),
            voluntary_switches: switches.map(|[waited, _]| waited),
            involuntary_switches: switches.map(|[_, taken]| taken),
            minor_faults: faults.map(|[without, _]| without),
            major_faults: faults.map(|[_, with]| with),
            ..Counts::default()
        }
    }

    /// Page faults, those that waited for I/O too.
    pub fn faults(&self) -> Option<u64> {
        Some(self.minor_faults?.saturating_add(self.major_faults?))
    }

    /// What is judged of programs, ns.
    pub fn judged(&self, quantity: AbQuantity) -> Option<u64> {
        match quantity {
            AbQuantity::Time => Some(self.time_ns),
            AbQuantity::Cpu => self.task_clock_ns,
        }
    }
}

/// Zero-copy sends and what the kernel said became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ZerocopyCounts {
    /// Sends whose bytes the kernel may have kept a reference to: successful
    /// calls with `MSG_ZEROCOPY`, each of which has an id, or sends through
    /// io_uring whose result announced a notification.
    pub sends: u64,
    /// Ids whose completion was read from the error queue, or notifications.
    pub completions: u64,
    /// Notifications that the kernel delivered for them: messages of the error
    /// queue, each of which may cover a range of ids (`skb_zerocopy_notify_extend`),
    /// or CQEs with `IORING_CQE_F_NOTIF`.
    pub notifications: u64,
    /// Those of them that the kernel reported as copied after all; `None` where
    /// it does not report that (io_uring before Linux 6.2). Lossy for
    /// `MSG_ZEROCOPY`: a notification that is merged into another one loses its
    /// own flag (`skb_zerocopy_notify_extend`, net/core/skbuff.c), so exact
    /// only where none or all are.
    pub copied: Option<u64>,
    /// Sends refused with `ENOBUFS`, or with `ENOMEM` by io_uring, and made
    /// again.
    pub enobufs: u64,
}

/// Multishot receives: requests that stay and fill buffers which were provided
/// to their ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MultishotCounts {
    /// Requests handed over because the one before had ended: its completion
    /// came without `IORING_CQE_F_MORE`.
    pub rearms: u64,
    /// Requests that ended with `ENOBUFS`: all buffers were filled and more had
    /// come.
    pub enobufs: u64,
}

impl MultishotCounts {
    /// The counts of both.
    pub fn plus(&self, other: &MultishotCounts) -> MultishotCounts {
        MultishotCounts {
            rearms: self.rearms.saturating_add(other.rearms),
            enobufs: self.enobufs.saturating_add(other.enobufs),
        }
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &MultishotCounts) -> MultishotCounts {
        MultishotCounts {
            rearms: self.rearms.saturating_sub(earlier.rearms),
            enobufs: self.enobufs.saturating_sub(earlier.enobufs),
        }
    }
}

/// Declares a set of counts once: its fields, their names as columns and
/// metrics have them, and the same values as an array in that order. Adding a
/// counter is one line here, and one in the table of metrics.
macro_rules! counts {
    ($(#[$about:meta])* $set:ident { $($(#[$what:meta])* $name:ident,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $set {
            $(
                $(#[$what])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $name: Option<u64>,
            )+
        }

        impl $set {
            /// How many counts there are.
            pub const COUNT: usize = [$(stringify!($name)),+].len();

            /// Names of the counts as columns and metrics have them, in the
            /// order of [`Self::values`].
            pub const NAMES: [&'static str; Self::COUNT] = [$(stringify!($name)),+];

            /// The counts in the order of [`Self::NAMES`].
            pub fn values(&self) -> [Option<u64>; Self::COUNT] {
                [$(self.$name),+]
            }

            /// Counts from values in the order of [`Self::NAMES`].
            pub fn from_values(values: [Option<u64>; Self::COUNT]) -> $set {
                let [$($name),+] = values;
                $set { $($name),+ }
            }

            /// Counts of both; a sum with an unknown part is unknown.
            pub fn plus(&self, other: &$set) -> $set {
                let (a, b) = (self.values(), other.values());
                let sum = |i: usize| Some(a[i]?.saturating_add(b[i]?));
                $set::from_values(std::array::from_fn(sum))
            }

            /// What came on top since `earlier`.
            pub fn since(&self, earlier: &$set) -> $set {
                let (now, before) = (self.values(), earlier.values());
                let difference = |i: usize| Some(now[i]?.saturating_sub(before[i]?));
                $set::from_values(std::array::from_fn(difference))
            }
        }
    };
}

counts! {
    /// Counts of the end's threads by the processor's performance monitoring
    /// unit, from perf_event_open(2). Each is `None` where it was not counted the
    /// whole time; the reason stands in the end's facts.
    PmuCounts {
        /// CPU cycles in user mode.
        cycles_user,
        /// CPU cycles in the kernel.
        cycles_kernel,
        /// Instructions retired in user mode.
        instructions_user,
        /// Instructions retired in the kernel.
        instructions_kernel,
        /// Loads that looked into the first-level data cache.
        l1d_loads,
        /// Those of them that did not find their data there.
        l1d_misses,
        /// References to the last-level cache.
        llc_references,
        /// Those of them that missed.
        llc_misses,
        /// Branches retired.
        branches,
        /// Those of them that were predicted wrong.
        branch_misses,
        /// Loads that looked into the first-level data TLB.
        dtlb_loads,
        /// Those of them that missed.
        dtlb_misses,
        /// Cycles in which the front end issued nothing.
        stalled_cycles_frontend,
        /// Cycles in which the back end took nothing.
        stalled_cycles_backend,
    }
}

counts! {
    /// Counts by the kernel itself, from perf_event_open(2): software events
    /// and tracepoints of the end's threads, and everybody's on the end's CPUs.
    /// Each is `None` where it was not counted; the reason stands in the end's
    /// facts.
    KernelCounts {
        /// `task-clock` of the end's threads, ns: holds what the hypervisor
        /// stole from them, other than [`Counts::task_clock_ns`].
        perf_task_clock_ns,
        /// Context switches of the end's threads.
        perf_context_switches,
        /// Moves of the end's threads to another CPU.
        perf_migrations,
        /// Page faults of the end's threads served without I/O.
        perf_minor_faults,
        /// Page faults of the end's threads that waited for I/O.
        perf_major_faults,
        /// System calls of the end's threads, `raw_syscalls:sys_enter`.
        sys_enter,
        /// Copies of packet data to a receiver, `skb:skb_copy_datagram_iovec`.
        skb_copy_datagram_iovec,
        /// Segments sent again, `tcp:tcp_retransmit_skb`, in the context of the
        /// end's threads.
        tcp_retransmit_skb,
        /// Times a thread of the end was switched away from, `sched:sched_switch`.
        sched_switch,
        /// Time over which the end's CPUs were counted as a whole, ns, all of
        /// them together.
        cpu_clock_ns,
        /// Context switches on the end's CPUs, whoever was switched.
        cpu_context_switches,
    }
}

impl ZerocopyCounts {
    /// Counts of both.
    pub fn plus(&self, other: &ZerocopyCounts) -> ZerocopyCounts {
        ZerocopyCounts {
            sends: self.sends + other.sends,
            completions: self.completions + other.completions,
            notifications: self.notifications + other.notifications,
            copied: self.copied.zip(other.copied).map(|(a, b)| a + b),
            enobufs: self.enobufs + other.enobufs,
        }
    }

    /// What came on top since `earlier`.
    pub fn since(&self, earlier: &ZerocopyCounts) -> ZerocopyCounts {
        ZerocopyCounts {
            sends: self.sends - earlier.sends,
            completions: self.completions - earlier.completions,
            notifications: self.notifications - earlier.notifications,
            copied: self.copied.zip(earlier.copied).map(|(now, then)| now - then),
            enobufs: self.enobufs - earlier.enobufs,
        }
    }

    /// Nothing sent yet, and everything counted; `copied` as it begins.
    pub fn none(copied: Option<u64>) -> ZerocopyCounts {
        ZerocopyCounts { copied, ..ZerocopyCounts::default() }
    }

    /// Notifications over sends; `None` where nothing was sent.
    pub fn notifications_per_send(&self) -> Option<f64> {
        (self.sends > 0).then(|| self.notifications as f64 / self.sends as f64)
    }

    /// Share of completed ids that the kernel reported as copied, 0 to 1;
    /// `None` where none has completed, or where it does not report that.
    pub fn copied_share(&self) -> Option<f64> {
        let copied = self.copied.filter(|_| self.completions > 0)?;
        Some(copied as f64 / self.completions as f64)
    }
}

/// What one end says about itself after a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndFacts {
    /// Build of the worker.
    pub build: String,
    /// The message size this end used.
    pub message_bytes: u64,
    /// The threads this end ran.
    pub threads: u32,
    /// Processors each thread may run on, as the kernel reads them back. Of one that follows
    /// what comes in for it, those that it was bound to one after another: `flows` has them.
    pub thread_cpus: Vec<Vec<u32>>,
    /// Congestion control, as the kernel reads it back; `None` without TCP.
    pub congestion: Option<String>,
    /// `SO_SNDBUF` as read back.
    pub send_buffer_bytes: Option<u64>,
    /// `SO_RCVBUF` as read back.
    pub receive_buffer_bytes: Option<u64>,
    /// `TCP_NODELAY` as read back.
    pub nodelay: Option<bool>,
    /// `TCP_MAXSEG` of a connection.
    pub mss_bytes: Option<u64>,
    /// MTU of the device between the ends; `None` over loopback, whose device
    /// is the machine's.
    pub mtu_bytes: Option<u64>,
    /// Packet sockets (`AF_PACKET`) that listen in the network namespace of
    /// this end, from /proc/net/packet: each forces copies of zero-copy
    /// sends. `None` where that cannot be read.
    pub packet_taps: Option<u64>,
    /// Bytes that one arm sends from, over all threads; `None` at the receiving
    /// end.
    pub ring_bytes: Option<u64>,
    /// Time spent reading counters, all slices.
    pub bracket_ns: u64,
    /// The PMU that each thread was counted on, on machines with several kinds
    /// of cores; empty elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thread_pmus: Vec<String>,
    /// Counts of the PMU over the measured slices by kind of core, where the
    /// end's threads ran on several: their sums mix what is not alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_pmu: Vec<CountsByPmu>,
    /// What its arms found or arranged when they were opened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arm_facts: Vec<ArmFact>,
    /// What starting the programs among its arms took.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<ProgramStart>,
    /// Connections to the port for data that were not of this trial, at least; `None` at an end
    /// that has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strangers: Option<u64>,
    /// Datagrams to its ports that did not come from the other end, at least; `None` at an end
    /// that has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strange_datagrams: Option<u64>,
    /// Where what comes in from another machine is received, by arm; empty where both ends are
    /// on one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<Flows>,
    /// The shortest round trip that TCP saw on a connection to another machine, in nanoseconds;
    /// `None` where both ends are on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_round_trip_ns: Option<u64>,
    /// Packets that calls of this end found by polling a device (`TcpExt BusyPollRxPackets` of
    /// its network namespace); `None` where none was to be polled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_polled_packets: Option<u64>,
    /// What this end could not read, and why.
    pub not_measured: Vec<NotMeasured>,
}

/// Where the kernel receives what comes in for an arm at an end, and where its threads ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flows {
    /// Index into the trial's arms.
    pub arm: usize,
    /// The CPU that took in what came last for each thread's connection or port, after the
    /// last slice (`SO_INCOMING_CPU`, socket(7)); `None` where the kernel does not tell.
    pub incoming_cpus: Vec<Option<u32>>,
    /// The CPU that each thread was bound to.
    pub cpus: Vec<u32>,
}

impl EndFacts {
    /// Whether each thread was bound to one CPU at a time, for whole slices.
    pub fn is_pinned(&self) -> bool {
        let is_one = |cpus: &Vec<u32>| cpus.len() == 1;
        !self.thread_cpus.is_empty()
            && (!self.flows.is_empty() || self.thread_cpus.iter().all(is_one))
    }
}

/// Something about an arm that a reader of its numbers should know, such as
/// the size of a pipe that the kernel agreed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmFact {
    /// Index into the trial's arms.
    pub arm: usize,
    /// What it is, with its unit.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// What one kind of cores counted for an arm over the measured slices of a
/// trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountsByPmu {
    /// The PMU, by its name in /sys/bus/event_source/devices.
    pub pmu: String,
    /// Index into the trial's arms.
    pub arm: usize,
    /// Threads of the end that ran there.
    pub threads: u32,
    /// CPU time of these threads, ns.
    pub task_clock_ns: Option<u64>,
    /// What they counted.
    pub counts: PmuCounts,
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
    /// How the cgroups around iolens held it back, which gave it less CPU time than it wanted.
    #[serde(default = "throttled_unread")]
    pub throttled: Reading<Throttled>,
    /// Runnable tasks when the trial began, ours not yet among them.
    pub procs_running_before: Reading<u64>,
    /// Runnable tasks after the workers had ended.
    pub procs_running_after: Reading<u64>,
    /// The fixed calibration loop just before the trial.
    pub loop_before_ns: Reading<u64>,
    /// The same loop just after it.
    pub loop_after_ns: Reading<u64>,
}

/// Of trials that were stored before it was read.
fn throttled_unread() -> Reading<Throttled> {
    Reading::not_measured("the iolens that ran the trial did not read it")
}

impl Environment {
    /// An environment of which nothing could be read.
    pub fn unknown(why: &str) -> Environment {
        let missing = || Reading::not_measured(why);
        Environment {
            cpu_ticks: missing(),
            steal_ticks: missing(),
            softirq_ticks: missing(),
            psi_cpu_some_us: missing(),
            throttled: Reading::not_measured(why),
            procs_running_before: missing(),
            procs_running_after: missing(),
            loop_before_ns: missing(),
            loop_after_ns: missing(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_of_an_older_run_is_read() {
        let mut stored = serde_json::to_value(Environment::unknown("not asked")).unwrap();
        stored.as_object_mut().unwrap().remove("throttled").unwrap();
        let read: Environment = serde_json::from_value(stored).unwrap();
        assert!(read.throttled.why().unwrap().contains("did not read it"));
        assert_eq!(read.steal_ticks, Reading::not_measured("not asked"));
    }
}
