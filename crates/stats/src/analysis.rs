//! What the analysis of a run says: plain data for reports, derived on read
//! and never stored.

mod figures;
mod servers;

use std::sync::Arc;

use iolens_model::arm::{Arm, Role};
use iolens_model::cell::Cell;
use iolens_model::family::{Condition, Family};
use iolens_model::outcome::{MultishotCounts, Status};
use iolens_model::units::Bytes;
use serde::Serialize;

pub use self::figures::{Figures, LatencyFigures};
pub use self::servers::{CpuOf, CpuShares, EndFigures, Limits, Saturated, ServerFigures, Spent};
pub use crate::kinds::{Kind, Kinds};
pub use crate::quantity::Quantity;
pub use crate::told::{PmuPlace, TimeSpent, Told, ToldFact};

/// The analysis of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// Complete passes the figures rest on.
    pub passes: u32,
    /// Smallest difference that matters, as a fraction.
    pub delta: f64,
    /// Contrasts that the simultaneous intervals cover together (J).
    pub contrasts: u32,
    /// Cells, in the order of the plan.
    pub cells: Vec<CellAnalysis>,
    /// What the self-checks say about the run.
    pub self_check: SelfCheck,
    /// Where one arm overtakes another along the sizes, per curve and pair.
    pub crossovers: Vec<Crossover>,
    /// The fit t = a + b·n of each arm's curve with at least four sizes.
    pub cost_models: Vec<CostModel>,
    /// What the copy into the staging buffer costs, per cell that can tell.
    pub removed_copies: Vec<RemovedCopy>,
    /// The best figures of the run, and where they are.
    pub extremes: Vec<Extreme>,
    /// From where on more bytes or more threads no longer help.
    pub plateaus: Vec<Plateau>,
    /// The same of what is read of a file; empty in other studies than `file`.
    pub read_plateaus: Vec<ReadPlateau>,
    /// The cell farthest from its cost model; null where no curve has one.
    pub unexpected: Option<Unexpected>,
    /// The slope of single-arm figures over the run; null with too few trials.
    pub drift: Option<Drift>,
    /// Trials that are not used, by reason.
    pub rejected: Vec<Rejected>,
    /// Warnings about the whole run, each one sentence.
    pub warnings: Vec<String>,
    /// What all trials told besides.
    #[serde(skip)]
    pub told: Arc<Told>,
    /// The models of a run of servers by their kinds.
    #[serde(skip)]
    pub kinds: Arc<Kinds>,
}

/// The analysis of one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellAnalysis {
    /// Which cell.
    pub cell: Cell,
    /// Trials whose numbers are used.
    pub trials_used: u32,
    /// Trials that were started.
    pub trials_started: u32,
    /// Arms: the baseline first, then the compared ones in the plan's order,
    /// then the self-check, then controls.
    pub arms: Vec<ArmAnalysis>,
    /// What contrasts and pairs compare.
    pub compared: Quantity,
    /// Every two compared arms against each other; with the baseline each has
    /// its contrast.
    pub pairs: Vec<PairContrast>,
    /// The same of CPU time; empty in studies where that is not compared.
    pub cpu_pairs: Vec<PairContrast>,
    /// Remarks on the cell's numbers, each one sentence: gates that only
    /// flag, a ring that does not fit, the self-check excluding 1, …
    pub notes: Vec<String>,
}

impl CellAnalysis {
    /// The cell as if CPU time were what it compares: who is cheapest by that is decided by
    /// the same rules.
    #[must_use]
    pub fn by_cpu(&self) -> CellAnalysis {
        let arm =
            |arm: &ArmAnalysis| ArmAnalysis { contrast: arm.cpu_contrast.clone(), ..arm.clone() };
        CellAnalysis {
            arms: self.arms.iter().map(arm).collect(),
            pairs: self.cpu_pairs.clone(),
            ..self.clone()
        }
    }
}

/// The analysis of one arm in one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmAnalysis {
    /// Which arm.
    pub arm: Arm,
    /// What its primitive is listed with; null where the run does not say.
    pub family: Option<Family>,
    /// What its primitive needs of a message; null where it can send any.
    pub condition: Option<Condition>,
    /// `ok`, or why there are no numbers.
    pub status: Status,
    /// The reason, for every status but `ok`.
    pub reason: Option<String>,
    /// Single-arm figures; null where there is no usable trial.
    pub figures: Option<Figures>,
    /// The ratio to the baseline; null for the baseline and for controls.
    pub contrast: Option<Contrast>,
    /// The same of CPU time, of servers per request, of both ends of a connection per
    /// message, whatever the cell compares; null in studies where that is not compared.
    pub cpu_contrast: Option<Contrast>,
    /// The same ratio from isolated trials, where there are any.
    pub isolated: Option<Contrast>,
    /// CPU copies of each payload byte at the sender.
    pub copies_sender: Option<f64>,
    /// CPU copies of each payload byte, end to end.
    pub copies_end_to_end: Option<f64>,
    /// Zero-copy sends over all used trials; null for arms that make none.
    pub zerocopy: Option<ZerocopyFigures>,
    /// Share of received bytes that were mapped, 0 to 1; null for receivers that map none.
    pub mapped_share: Option<f64>,
    /// Multishot receives over all used trials; null for receivers that make none.
    pub multishot: Option<MultishotCounts>,
    /// Round-trip times pooled over all used trials; null without requests. Of a server
    /// from when each request was due.
    pub latency: Option<LatencyFigures>,
    /// What a server was offered and spent; null in other studies.
    pub server: Option<ServerFigures>,
}

/// Zero-copy sends of an arm in a cell, summed over its used trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ZerocopyFigures {
    /// As [`ZerocopyCounts::sends`](iolens_model::outcome::ZerocopyCounts::sends).
    pub sends: u64,
    /// Ids whose completion came.
    pub completions: u64,
    /// Notifications that the kernel delivered over sends; null where they were not counted.
    pub notifications_per_send: Option<f64>,
    /// Share of the completions that the kernel reported as copied, 0 to 1.
    pub copied_share: Option<f64>,
    /// Calls refused with `ENOBUFS` and made again.
    pub enobufs: u64,
}

impl ZerocopyFigures {
    /// Above this reported share a row is "copied", not "zero-copy".
    pub const COPIED_SHARE_MAX: f64 = 0.05;

    /// Whether the row is labelled "copied".
    #[must_use]
    pub fn is_copied(&self) -> bool {
        self.copied_share.is_some_and(|share| share > ZerocopyFigures::COPIED_SHARE_MAX)
    }
}

impl ArmAnalysis {
    /// The arm's label for tables and figures: what the kernel copied after
    /// all says so.
    #[must_use]
    pub fn shown_label(&self) -> String {
        match self.zerocopy.is_some_and(|zerocopy| zerocopy.is_copied()) {
            true => format!("{} (copied)", self.arm.label),
            false => self.arm.label.clone(),
        }
    }

    /// The conclusion about this arm: its contrast's, or INVALID where it was
    /// to be compared and has no numbers; null for the baseline and controls.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        match self.arm.role {
            Role::Baseline | Role::Control => None,
            Role::Compared | Role::SelfCheck => {
                Some(self.contrast.as_ref().map_or(Verdict::Invalid, |contrast| contrast.verdict))
            }
        }
    }
}

/// A value with its 95 % t interval over trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Totals over totals of the used trials.
    pub value: f64,
    /// The interval; null under two trials.
    pub interval: Option<Interval>,
    /// Trials.
    pub n: u32,
}

/// A closed interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies inside.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Half-width of the interval of a ratio as a fraction of it: exp(half-width of ln)
    /// − 1.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high / self.low).sqrt() - 1.0
    }
}

/// An arm against the baseline: time per message (or what else is compared) of the
/// baseline over that of the arm, so above 1 the arm is faster (or costs less).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contrast {
    /// Geometric mean over trials of the trial's typical (median) ratio.
    pub ratio: f64,
    /// Trials.
    pub n: u32,
    /// Standard deviation over trials of the ln ratio; null under two.
    pub sd_ln: Option<f64>,
    /// Pointwise 95 % interval, the one that is shown.
    pub pointwise: Option<Interval>,
    /// Pointwise 90 % interval, for equivalence.
    pub pointwise90: Option<Interval>,
    /// Simultaneous 95 % interval over all contrasts of the run, the one that
    /// verdicts use.
    pub simultaneous: Option<Interval>,
    /// The ratio of total times, and its interval: where it leaves the
    /// typical ratio's interval, a tail lives.
    pub total_ratio: Estimate,
    /// Whether the total ratio and the typical ratio disagree beyond their
    /// intervals.
    pub tail: bool,
    /// The conclusion.
    pub verdict: Verdict,
    /// The rule and the numbers behind it, one clause.
    pub reason: String,
    /// For an undecided contrast, about how many trials would decide it.
    pub trials_needed: Option<u32>,
}

impl Contrast {
    /// Half-width of the pointwise interval as a fraction of the ratio:
    /// exp(half-width of ln) − 1. Null without an interval.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        self.pointwise.map(|interval| interval.half_width())
    }
}

/// Two compared arms against each other, paired by trial through the baseline
/// that both were measured with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairContrast {
    /// Label of an arm.
    pub first: String,
    /// Label of a later one.
    pub second: String,
    /// Time per message (or what else is compared) of the second over that of the
    /// first: above 1 the first is faster.
    pub ratio: f64,
    /// Trials.
    pub n: u32,
    /// Simultaneous 95 % interval over all contrasts and all pairs of the run.
    pub simultaneous: Option<Interval>,
}

impl PairContrast {
    /// The interval of `label` against the other arm; above 1 it is faster.
    #[must_use]
    pub fn interval_of(&self, label: &str) -> Option<Interval> {
        let of_first = self.simultaneous?;
        match label == self.first {
            true => Some(of_first),
            false => Some(Interval { low: 1.0 / of_first.high, high: 1.0 / of_first.low }),
        }
    }
}

/// What can be concluded of a contrast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    /// The data cannot be used.
    Invalid,
    /// The data shows who measured and not what was measured, as a floor: see
    /// [`Limits`].
    Unranked,
    /// The difference is smaller than δ, either way.
    Equivalent,
    /// Faster than the baseline by more than δ.
    Faster,
    /// Slower than the baseline by more than δ.
    Slower,
    /// A real difference that may be smaller than δ.
    Small,
    /// None of these.
    Inconclusive,
}

impl Verdict {
    /// Whether the contrast says something of the arm: it is neither invalid nor what a
    /// client could do.
    #[must_use]
    pub fn is_ranked(self) -> bool {
        !matches!(self, Verdict::Invalid | Verdict::Unranked)
    }

    /// The word in tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Invalid => "INVALID",
            Verdict::Unranked => "UNRANKED",
            Verdict::Equivalent => "EQUIVALENT",
            Verdict::Faster => "FASTER",
            Verdict::Slower => "SLOWER",
            Verdict::Small => "SMALL",
            Verdict::Inconclusive => "INCONCLUSIVE",
        }
    }
}

/// What the hidden second copies of the baseline say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SelfCheck {
    /// Cells with a self-check that has an interval.
    pub cells: u32,
    /// How many of them exclude 1 pointwise; about 5 % do by chance.
    pub excluding_one: u32,
    /// More than this many is beyond the 99 % binomial bound.
    pub bound: u32,
    /// Median over cells of the half-width, as a fraction: the noise floor.
    pub floor_median: Option<f64>,
    /// The widest half-width.
    pub floor_widest: Option<f64>,
    /// Self-checks that were called FASTER or SLOWER; must be zero.
    pub judged: u32,
}

impl SelfCheck {
    /// Whether more self-checks exclude 1 than chance allows.
    #[must_use]
    pub fn untrustworthy(&self) -> bool {
        self.excluding_one > self.bound
    }
}

/// An arm of a trial that is kept in the store and not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// Pass.
    pub pass: u32,
    /// Cell.
    pub cell: String,
    /// Arm, or null for the whole trial.
    pub arm: Option<String>,
    /// `failed`, `invalid`, `skipped` or `interrupted`.
    pub status: Status,
    /// Gate or failure, with the numbers.
    pub reason: String,
}

/// Where the second of two arms overtakes the first along the sizes of one
/// curve, as a band: what the simultaneous intervals can tell apart by more
/// than δ, and nothing in between (METHOD 2.5).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Crossover {
    /// The curve; its size is 0.
    pub curve: Cell,
    /// Label of the arm that is looked at from the small sizes.
    pub first: String,
    /// Label of the other one.
    pub second: String,
    /// Smallest size measured with both arms.
    pub smallest: Bytes,
    /// Largest size measured with both arms.
    pub largest: Bytes,
    /// The first is ahead by more than δ at every size up to this one; null
    /// where it is not at the smallest.
    pub first_ahead_to: Option<Bytes>,
    /// The second is ahead by more than δ at every size from this one on;
    /// null where it is not at the largest.
    pub second_ahead_from: Option<Bytes>,
    /// What the curve says as a whole.
    pub shape: CrossoverShape,
    /// Every size with both arms: time of the first over that of the second
    /// (above 1 the second is faster), simultaneous interval.
    pub points: Vec<CrossoverPoint>,
    /// Neighbouring sizes between which the ratio jumps by more than three
    /// times the local noise: nothing is interpolated across.
    pub steps: Vec<(Bytes, Bytes)>,
}

/// One size of a crossover.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CrossoverPoint {
    /// Message size.
    pub size: Bytes,
    /// Time of the first arm over that of the second.
    pub ratio: f64,
    /// Simultaneous interval; null without one.
    pub simultaneous: Option<Interval>,
}

/// What two curves do to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CrossoverShape {
    /// The first is ahead at small sizes and the second at large ones.
    Crosses,
    /// The first is ahead at every size.
    FirstThroughout,
    /// The second is ahead at every size.
    SecondThroughout,
    /// The first is ahead at small sizes, then nobody is: open above.
    FirstThenUnknown,
    /// The second is ahead at large sizes, before that nobody is: open below.
    UnknownThenSecond,
    /// Neither is ahead by more than δ at any size that can be told.
    NeitherAnywhere,
    /// The order changes more than once, or the second is ahead at small
    /// sizes: no band says that.
    Mixed,
}

/// The fit t(n) = a + b·n of ns per message over the sizes of one arm's curve
/// (METHOD 2.6).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostModel {
    /// The curve; its size is 0.
    pub curve: Cell,
    /// The arm.
    pub label: String,
    /// a: ns per message that do not depend on its size.
    pub fixed_ns: Estimate,
    /// b: ns per byte.
    pub per_byte_ns: Estimate,
    /// a / b, bytes: where half the time is the fixed part (Hockney's n½).
    pub half_size_bytes: Estimate,
    /// Whether a is only an upper bound: no size is as small as n½ / 4.
    pub fixed_is_upper_bound: bool,
    /// Largest deviation of a size from the fit, as a fraction of the fit.
    pub worst_residual: f64,
    /// The size it is at.
    pub worst_at: Bytes,
    /// The first size that the fit does not hold for, where it holds for smaller
    /// ones alone; null where it is one of all sizes.
    pub breaks_at: Option<Bytes>,
}

impl CostModel {
    /// Beyond this residual a curve is not affine and its fit no headline.
    pub const RESIDUAL_MAX: f64 = 0.10;

    /// Whether the fit may be stated.
    #[must_use]
    pub fn is_affine(&self) -> bool {
        self.worst_residual.abs() <= CostModel::RESIDUAL_MAX
    }
}

/// What the copy that an iovec removes costs in one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RemovedCopy {
    /// The cell.
    pub cell: Cell,
    /// ns per byte of `send_staged` less that of `sendmsg_iov`, paired by
    /// trial; may be negative.
    pub staged_less_iov_ns_per_byte: Estimate,
    /// ns per byte of the control `memcpy`.
    pub memcpy_ns_per_byte: Estimate,
    /// What the difference has beyond that `memcpy`, ns per byte, paired by
    /// trial: 95 % interval for all contrasts of the run together.
    pub beyond_memcpy_ns_per_byte: Option<Interval>,
}

/// A best figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Extreme {
    /// Which figure.
    pub what: ExtremeKind,
    /// The arm that has it.
    pub label: String,
    /// Where.
    pub cell: Cell,
    /// The figure, in the unit of its kind.
    pub value: Estimate,
}

/// Figures of which the best is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtremeKind {
    /// Highest goodput, bit/s.
    HighestGoodput,
    /// Lowest time per message in mode `stream`, ns.
    LowestNsPerMessage,
    /// Lowest median round trip in mode `rr`, ns.
    LowestLatencyP50,
    /// Lowest 99th percentile of the round trip, ns.
    LowestLatencyP99,
    /// Least CPU time of both ends per byte, ns.
    LeastCpuNsPerByte,
    /// Fewest L1d misses per KiB.
    FewestL1dMissesPerKib,
    /// Fewest LLC misses per KiB.
    FewestLlcMissesPerKib,
    /// Fewest context switches per message.
    FewestContextSwitchesPerMessage,
}

/// From where on more of an axis is shown not to raise an arm's goodput by more
/// than δ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plateau {
    /// The arm.
    pub label: String,
    /// The cell in which it begins.
    pub from: Cell,
    /// The axis that grows.
    pub axis: PlateauAxis,
    /// Goodput there, bit/s.
    pub goodput_bits_per_s: Estimate,
    /// Highest goodput beyond, bit/s.
    pub best_beyond_bits_per_s: Estimate,
}

/// From where on more of an axis is shown not to raise the rate at which an
/// engine reads by more than δ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadPlateau {
    /// The engine's arm.
    pub label: String,
    /// The cell in which it begins.
    pub from: Cell,
    /// The axis that grows.
    pub axis: PlateauAxis,
    /// Bytes of the file read per second there.
    pub read_bytes_per_s: Estimate,
    /// The highest such rate beyond.
    pub best_beyond_bytes_per_s: Estimate,
}

/// An axis along which goodput may stop growing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlateauAxis {
    /// Message size.
    Size,
    /// Thread pairs.
    Threads,
}

/// The measurement that is farthest from what its neighbours and its cost
/// model let expect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unexpected {
    /// Where.
    pub cell: Cell,
    /// The arm.
    pub label: String,
    /// ns per message as measured.
    pub measured_ns: Estimate,
    /// ns per message by the cost model, corrected by how far its neighbours
    /// on the curve are from theirs; by the model alone at an end.
    pub expected_ns: f64,
    /// measured / expected.
    pub ratio: f64,
    /// 95 % interval of the ratio for all candidates together.
    pub simultaneous: Option<Interval>,
    /// Measurements among which this one is the farthest.
    pub candidates: u32,
    /// Whether that interval leaves 1 out by more than δ; if not, nothing is unexpected.
    pub beyond_interval: bool,
}

/// Slope of single-arm figures over the run's time (METHOD 2.8).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Drift {
    /// Change of the time per message per hour, as a fraction (0.02: 2 %
    /// slower each hour).
    pub per_hour: f64,
    /// 95 % interval.
    pub interval: Interval,
    /// Change over the whole run, as a fraction.
    pub over_run: f64,
    /// Trials behind it.
    pub n: u32,
    /// Whether the change over the run is beyond the precision asked for and
    /// its interval excludes zero: single-arm figures are then marked, ratios
    /// stand.
    pub matters: bool,
}
