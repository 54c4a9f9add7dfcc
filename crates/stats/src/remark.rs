//! What decides a verdict and what is said beside numbers, as facts: which arm, what was found, how
//! much. The words for them are the report's.

#![expect(missing_docs, reason = "names, types and units say it")]

use iolens_model::cell::Cell;
use iolens_model::host::SysctlChange;
use iolens_model::outcome::Status;
use serde::Serialize;

use crate::estimate::Interval;
pub use crate::gates::Check;

/// A remark on numbers that are used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Remark {
    /// Label of the arm it is about; `None` where it is about the cell.
    pub arm: Option<String>,
    /// What it says.
    #[serde(flatten)]
    pub kind: RemarkKind,
}

impl Remark {
    pub(crate) fn of(arm: &str, kind: RemarkKind) -> Remark {
        Remark { arm: Some(arm.to_owned()), kind }
    }
}

/// What a remark says. `trials` are those it holds for, `of` those that were looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RemarkKind {
    /// The interval of the baseline's hidden copy excludes 1, which one in twenty does by
    /// chance. With several groups of arms: those it was measured beside.
    SelfCheckOff { interval: Interval, beside: Vec<String> },
    /// The arm was refused in some passes, the latest for this.
    NotUsed { passes: u32, check: Option<Check>, reason: String },
    /// What should not happen and did.
    Events {
        what: Event,
        count: u64,
        /// How long they took, where that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        lasted_ns: Option<u64>,
        trials: u32,
        of: u32,
    },
    /// A share that should be larger, or of what was lost smaller; the worst.
    Share { what: Share, share: f64, trials: u32, of: u32 },
    /// A value over its bound; the largest.
    Excess { what: Excess, ratio: f64, trials: u32, of: u32 },
    /// What bounded a load on a server.
    Limited(Limited),
    /// Slices are not as long as the baseline's.
    UnequalSlices(UnequalSlices),
    /// The kernel copied this share of the zero-copy sends: the row is labelled "copied".
    Copied { share: f64, tapped: bool },
    /// How much a receiver that maps pages has mapped, and why no more; with what was changed
    /// for the run.
    Mapped { receiver: String, share: f64, changed: Vec<SysctlChange>, why: Option<Unmapped> },
    /// The ratio depends on what else runs in the process.
    SharingMatters { shared_ratio: f64, shared: Interval, isolated_ratio: f64, isolated: Interval },
}

/// Events that are counted and should not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    Retransmits,
    MajorFaults,
    Stolen,
    /// At the other machine.
    StolenThere,
    /// Refused with ENOBUFS and made again.
    ZeroCopyRefused,
    /// Switches and faults on which getrusage and perf disagree.
    AccountsDisagree,
    Timeouts,
    Resets,
    RefusedConnections,
    /// The client gave up at a limit of its own.
    Abandoned,
    ListenOverflows,
    ListenDrops,
    /// Periods in which a cgroup held an end back.
    Throttled,
    /// At the other machine.
    ThrottledThere,
}

/// Shares that are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// Of the connections' time, with a request in flight.
    InFlight,
    /// Of the mean time per request, the median round trip.
    MedianOfMean,
    /// Of the slices' time, between every thread's first and last call, where threads share CPUs.
    TakingTurns,
    /// Of the slices' time, with all threads at work, receipts included.
    AllAtWork,
    /// Of the messages.
    Lost,
}

impl Share {
    /// Whether more is worse.
    pub(crate) fn is_loss(self) -> bool {
        self == Share::Lost
    }
}

/// Values that are above their bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Excess {
    /// A plain memcpy over the copy bandwidth measured before the run.
    CopyBandwidth,
    /// Empty calls over their rate before the run.
    EmptyCalls,
    /// Rings that are called hot over the L2 cache.
    Rings,
}

/// What else than the server a load shows, with the worst of its values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum Limited {
    /// The share of its time in which the client's busiest thread worked.
    ClientBusy { busy_share: f64, trials: u32, of: u32 },
    /// p99 of how late the client took requests up.
    ClientLate { late_p99_ns: f64, trials: u32, of: u32 },
    /// Replies in time over requests that were due.
    RateNotKept { answered_share: f64, trials: u32, of: u32 },
}

/// Slices of an arm and of the baseline beside it that are not equally long.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct UnequalSlices {
    /// Median slice of the arm.
    pub arm_ns: f64,
    /// Median slice of the baseline.
    pub baseline_ns: f64,
    /// Time in each that is not its messages', at most.
    pub overhead_ns: f64,
    /// By how much the ratio may be off, as a fraction.
    pub bias: f64,
}

/// Why bytes were not mapped (can_map_frag, net/ipv4/tcp.c).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum Unmapped {
    /// A message is less than a page.
    SmallMessages,
    /// The late copy fills whole pages but the last of each segment.
    ShortSegments,
    /// The sending kernel copies into blocks of several pages; the sysctl that forbids it.
    BlocksOfPages { high_order_alloc_disable: Option<String> },
    /// Segments do not end where pages do.
    PartlyFilled,
    /// Pages of a file or of the sending process.
    ForeignPages,
}

/// A warning about a whole run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Warning {
    /// A pass that is not used since so many of its cells lack arms.
    IncompletePass {
        pass: u32,
        cells_missing: u32,
        cells: u32,
    },
    FewPasses {
        complete: u32,
        minimum: u32,
    },
    /// Trials of cells that the plan does not have.
    OutsideThePlan {
        trials: u32,
    },
    /// A sysctl that iolens changed for the run.
    Changed {
        change: SysctlChange,
    },
    /// The hidden copy ran with its counters closed, and is no self-check.
    CountersClosed,
    /// More self-checks exclude 1 than chance allows.
    SelfChecksExclude {
        excluding: u32,
        counted: u32,
        bound: u32,
    },
    /// Self-checks that differ from the baseline by more than the threshold.
    SelfChecksDiffer {
        judged: u32,
        counted: u32,
    },
    /// An arm's goodput does not depend on the size.
    FlatThroughput {
        arm: String,
        least_bits_per_s: f64,
        most_bits_per_s: f64,
        curve: Cell,
    },
    /// An arm's context switches do not depend on its messages.
    SteadySwitching {
        arm: String,
        least_per_s: f64,
        most_per_s: f64,
        cells: u32,
        /// The largest rate of messages over the smallest.
        rates_apart: f64,
    },
    /// Trials resemble those of the pass before, so that all intervals are wider.
    Neighbours {
        contrasts: u32,
        passes: u32,
        correlation: f64,
        widened: f64,
    },
    /// The same in every trial that has it.
    #[serde(untagged)]
    Circumstance(Circumstance),
}

/// What is the same in every trial that has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Circumstance {
    /// A packet socket in the network namespace of an end: zero-copy sends are copied.
    PacketTap,
    /// Nobody tells what of the file was in the page cache.
    CacheUnknown,
    /// Nobody tells whether bytes came from a device.
    DeviceUnknown,
    /// Nobody tells what of the file was dirty.
    DirtyUnknown,
    /// A slice left more dirty than the kernel keeps without writing it back.
    Dirty { left_bytes: u64, background_bytes: u64 },
    /// A socket buffer that was capped by net.core.wmem_max or rmem_max.
    SocketBuffer { option: &'static str, granted_bytes: u64, asked_bytes: u64 },
    /// With the reason that was stored.
    MigrationsNotMeasured { whose: Option<Whose>, reason: Option<String> },
    /// Counters that stood still while the threads worked, and those that counted in some
    /// slices only.
    CountersNotUsed { still: Vec<&'static str>, partly: Vec<&'static str> },
}

/// An end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    Server,
    Client,
    SendingEnd,
    ReceivingEnd,
}

// What decides a verdict, as facts.

/// The rule behind a verdict, and its numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum VerdictReason {
    /// The numbers cannot be used.
    Unusable(Unusable),
    /// Those of the baseline cannot be.
    BaselineUnusable(Unusable),
    /// No trial has the arm together with the baseline.
    NeverTogether,
    /// One of two runs has no ratio of it.
    NoRatio,
    /// One of two runs says so, or both.
    InRuns { a: Option<Box<VerdictReason>>, b: Option<Box<VerdictReason>> },
    /// The load shows something else than the server, or than the baseline's.
    Limited {
        #[serde(flatten)]
        limited: Limited,
        of_baseline: bool,
    },
    /// What slices hold besides their messages may shift the ratio by more than half of δ.
    UnequalSlices {
        #[serde(flatten)]
        slices: UnequalSlices,
        delta: f64,
    },
    /// So many trials have no interval.
    NoSpread { trials: u32 },
    /// The pointwise 90 % interval lies inside ±δ.
    Within { pointwise90: Interval, delta: f64, self_check_half_width: Option<f64> },
    /// The simultaneous interval lies beyond the bound on one side.
    Beyond { interval: Interval, bound: f64, is_above: bool },
    /// That of a hidden copy of the baseline does.
    CopyDiffers { interval: Interval, bound: f64, is_above: bool },
    /// The simultaneous interval excludes 1 and reaches inside ±δ.
    MayBeSmall { interval: Interval, delta: f64, noise: Option<Noise> },
    /// It does neither; about so many trials would decide.
    Open {
        interval: Option<Interval>,
        delta: f64,
        trials: u32,
        trials_needed: Option<u32>,
        in_each_run: bool,
        noise: Option<Noise>,
    },
}

impl VerdictReason {
    /// Whether it has the simultaneous interval that decided.
    pub fn has_interval(&self) -> bool {
        use VerdictReason::{Beyond, CopyDiffers, MayBeSmall, Open};
        matches!(self, Beyond { .. } | CopyDiffers { .. } | MayBeSmall { .. } | Open { .. })
    }
}

/// Numbers that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unusable {
    /// `failed`, `invalid`, `skipped` or `interrupted`.
    pub status: Status,
    /// What refuses them; `None` where the engine or the kernel did.
    pub check: Option<Check>,
    /// In its words.
    pub reason: String,
}

/// A self-check that is wider than δ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Noise {
    /// Its half-width, as a fraction; `None` where its interval is not usable.
    pub half_width: Option<f64>,
}
