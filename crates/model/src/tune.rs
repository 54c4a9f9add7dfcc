//! What `tune` tried on one file and measured: raw counts of every trial, what was
//! known of file and machine, and no conclusion, which follows from these each time
//! it is asked for.

use serde::{Deserialize, Serialize};

use crate::axes::axis;
use crate::file::Consumer;
use crate::units::{Bytes, Nanos};

/// Version of a stored record.
pub const SCHEMA: u32 = 1;

axis! {
    /// What is looked for.
    Task {
        /// The fastest way to read a file.
        Read = "read",
        /// The fastest way to copy it into a folder.
        Copy = "copy",
    }
}

axis! {
    /// What of the file is to be in the page cache when a trial begins.
    CacheWish {
        /// Whatever is there.
        AsIs = "as-is",
        /// All of it.
        Warm = "warm",
        /// Nothing.
        Cold = "cold",
    }
}

axis! {
    /// The class of an engine: how the bytes come to who wants them.
    Way {
        /// One call after the other copies them into a buffer.
        Called = "copied by calls",
        /// They are copied within the kernel.
        Kernel = "copied within the kernel",
        /// The file's pages are mapped.
        Mapped = "mapped",
        /// Requests through a ring of io_uring.
        Ring = "through a ring",
        /// Around the page cache.
        Direct = "direct",
        /// No byte moves: blocks are shared.
        Shared = "shared blocks",
    }
}

axis! {
    /// What bounds how fast bytes can come.
    LimitKind {
        /// Memory that is only read.
        Scan = "scan",
        /// Memory that is copied.
        Copy = "copy",
        /// The crossing into the kernel and back.
        Crossing = "crossing",
        /// The device below the file system.
        Device = "device",
        /// A quota of processor time.
        Cgroup = "cgroup",
    }
}

axis! {
    /// What a trial is for.
    Stage {
        /// The bounds of memory and device.
        Limits = "limits",
        /// Finding out how long trials take.
        Pilot = "pilot",
        /// The first look at all configurations.
        Grid = "grid",
        /// Neighbours of the best one.
        Refinement = "refinement",
        /// The comparison that counts.
        Final = "final",
        /// Before the page cache is made of large folios.
        Uncured = "uncured",
        /// After that.
        Cured = "cured",
    }
}

axis! {
    /// Why the final ended.
    Stop {
        /// Everything was known to the width that was wanted.
        Precision = "precision",
        /// In results of builds that ended a final by what they found: the best takes
        /// nearly all that the limit leaves.
        Bound = "bound",
        /// Likewise: the best ones differ by less than what matters.
        Equivalent = "equivalent",
        /// Likewise: the best one is faster, beyond doubt.
        Decided = "decided",
        /// The time was up.
        Budget = "budget",
    }
}

/// One way to use an engine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Configuration {
    /// The engine's id.
    pub engine: String,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Threads, each with a range of the file.
    pub threads: u32,
    /// Reads under way at once in each thread; 1 for engines that have no more.
    pub depth: u32,
}

impl Configuration {
    /// `pread, 128 KiB, 2 threads`.
    pub fn words(&self) -> String {
        let threads = if self.threads == 1 { "thread" } else { "threads" };
        let mut text =
            format!("{}, {}, {} {threads}", self.engine, Bytes(self.block_bytes), self.threads);
        if self.depth > 1 {
            text.push_str(&format!(", depth {}", self.depth));
        }
        text
    }
}

/// What a trial does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// An engine of ours.
    Engine(Configuration),
    /// A program of others, by its name: its argument list stands in the record.
    Program(String),
    /// Memory of our own, as a bound.
    Limit {
        /// Read or copied.
        kind: LimitKind,
        /// By so many threads.
        threads: u32,
    },
}

impl Work {
    /// In words.
    pub fn words(&self) -> String {
        match self {
            Work::Engine(configuration) => configuration.words(),
            Work::Program(name) => name.clone(),
            Work::Limit { kind, threads: 1 } => format!("memory {kind}, 1 thread"),
            Work::Limit { kind, threads } => format!("memory {kind}, {threads} threads"),
        }
    }

    /// The configuration of an engine.
    pub fn configuration(&self) -> Option<&Configuration> {
        match self {
            Work::Engine(configuration) => Some(configuration),
            _ => None,
        }
    }
}

/// A range of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Where it begins.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// One trial: one reading or copying of an extent by a fresh process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// What was done.
    pub work: Work,
    /// What for.
    pub stage: Stage,
    /// Trials of one stage and round stand side by side.
    pub round: u32,
    /// What of the file.
    pub extent: Extent,
    /// From the first call to the last, or the life of a program; `None` where it failed.
    pub time_ns: Option<u64>,
    /// Processor time, user and kernel; `None` where it was not read.
    pub cpu_ns: Option<u64>,
    /// System calls; `None` where nobody counted.
    pub calls: Option<u64>,
    /// Share of the extent in the page cache before, and after; `None` where the kernel
    /// does not say.
    pub resident_before_share: Option<f64>,
    /// After.
    pub resident_after_share: Option<f64>,
    /// Bytes from a device; `None` where the kernel does not say.
    pub device_bytes: Option<u64>,
    /// Why it counts for nothing; `None` where it counts.
    pub failure: Option<String>,
}

/// Something that was not tried, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

/// An engine as this machine has it for this file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its id.
    pub engine: String,
    /// Its class.
    pub way: Way,
    /// Whether several reads of a thread can be under way at once.
    pub has_depth: bool,
    /// Whether threads can share the work.
    pub is_shared: bool,
    /// What it calls, for who writes the program: calls and flags.
    pub calls: String,
    /// Most bytes of buffers that all its threads may lock together; `None` for an engine
    /// that locks none, or without a limit.
    pub locked_bytes_max: Option<u64>,
}

impl Candidate {
    /// Whether a configuration of it keeps to the memory that it may lock.
    pub fn may_lock(&self, one: &Configuration) -> bool {
        // A registered buffer may begin and end anywhere in a page: io_uring counts both.
        const EDGES_BYTES: u64 = 4096;
        let each = one.block_bytes.saturating_add(EDGES_BYTES);
        let buffers = u64::from(one.threads) * u64::from(one.depth);
        self.locked_bytes_max.is_none_or(|most| each.saturating_mul(buffers) <= most)
    }
}

/// What was known before anything was timed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The file, absolute.
    pub file: String,
    /// Its size.
    pub file_bytes: u64,
    /// When it was last changed, in nanoseconds since 1970; `None` where that is unknown.
    pub changed_ns: Option<u64>,
    /// Its file system.
    pub file_system: String,
    /// The device of that, as major:minor.
    pub device: String,
    /// What direct reads have to be multiples of; `None` where it is not told.
    pub direct_alignment_bytes: Option<u32>,
    /// Share of the file in the page cache; `None` where the kernel does not say.
    pub resident_share: Option<f64>,
    /// Share that huge pages map; `None` where it was not found out.
    pub huge_mapped_share: Option<f64>,
    /// The folder of copies and its file system; `None` for reading.
    pub folder: Option<(String, String)>,
    /// Release of the kernel.
    pub kernel: String,
    /// Model of the processor.
    pub cpu: String,
    /// Processors that may be used.
    pub cpus: u32,
    /// Memory of the machine; `None` where it is not told.
    pub memory_bytes: Option<u64>,
    /// Processor time that cgroups allow, in processors; `None` for no limit.
    pub cgroup_cpus: Option<f64>,
    /// The hypervisor, in words; `None` on bare metal.
    pub hypervisor: Option<String>,
    /// One crossing into the kernel and back, which does nothing.
    pub crossing_ns: f64,
    /// What a reader of times of this file should know.
    pub warnings: Vec<String>,
}

/// What the user wanted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wishes {
    /// Reading or copying.
    pub task: Task,
    /// The state of the page cache.
    pub cache: CacheWish,
    /// What becomes of the bytes of a reading.
    pub consumer: Consumer,
    /// Most threads.
    pub threads_max: u32,
    /// Time for everything.
    pub budget: Nanos,
    /// What random orders follow from.
    pub seed: u64,
    /// Most bytes of a copy.
    pub bytes_max: Option<Bytes>,
}

/// A file of which huge pages map less than this share is in small pieces.
pub const FOLIOS_SMALL: f64 = 0.9;

/// The file dropped from the page cache and read again in large folios.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cure {
    /// Time of that; `None` where it failed.
    pub time: Option<Nanos>,
    /// Share that huge pages map before; `None` where it is not told.
    pub huge_before_share: Option<f64>,
    /// And after.
    pub huge_after_share: Option<f64>,
    /// Why it failed.
    pub failure: Option<String>,
}

/// The proof that the winner brings the bytes of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Checksum of what the winner brought.
    pub winner: String,
    /// Checksum of an independent plain reading.
    pub plain: String,
    /// Bytes that both are of.
    pub bytes: u64,
}

/// Everything that was tried and measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The build that measured.
    pub build: String,
    /// When it began, in nanoseconds since 1970.
    pub began_ns: u64,
    /// What was wanted.
    pub wishes: Wishes,
    /// What was known.
    pub facts: Facts,
    /// Engines that were tried, simplest first.
    pub candidates: Vec<Candidate>,
    /// What was not, and why.
    pub pruned: Vec<Pruned>,
    /// Argument lists of programs of others, by name.
    pub programs: Vec<(String, Vec<String>)>,
    /// All trials, in the order in which they ran.
    pub trials: Vec<Trial>,
    /// Bytes per second of the device; `None` where it does not count.
    pub device_bytes_per_s: Option<f64>,
    /// Why the final ended.
    pub stop: Stop,
    /// That the bytes are those of the file; `None` where that was not possible.
    pub proof: Option<Proof>,
    /// The cure for small folios; `None` where it was not tried.
    pub cure: Option<Cure>,
    /// Time of everything.
    pub duration: Nanos,
    /// Time that a hypervisor took from this machine meanwhile; `None` where it is not
    /// told.
    pub stolen: Option<Nanos>,
    /// Whether a quota held this process back meanwhile.
    pub was_throttled: bool,
    /// What a reader should know besides.
    pub notes: Vec<String>,
}
