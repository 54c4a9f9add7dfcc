//! What is derived from whole curves, over sizes, threads or the time of the run.

use iolens_model::cell::Cell;
use iolens_model::units::Bytes;
use serde::Serialize;

use super::{Estimate, Interval};

/// Where the second of two arms overtakes the first along the sizes of one
/// curve, as a band: what the simultaneous intervals can tell apart by more
/// than δ, and nothing in between (METHOD, Across sizes).
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
    /// The first is ahead by more than δ at every size up to this one; `None`
    /// where it is not at the smallest.
    pub first_ahead_to: Option<Bytes>,
    /// The second is ahead by more than δ at every size from this one on;
    /// `None` where it is not at the largest.
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
    /// Simultaneous interval; `None` without one.
    pub simultaneous: Option<Interval>,
}

impl CrossoverPoint {
    /// Of the pair in the other order.
    #[must_use]
    pub fn turned(self) -> CrossoverPoint {
        let simultaneous = self.simultaneous.map(Interval::inverse);
        CrossoverPoint { ratio: 1.0 / self.ratio, simultaneous, ..self }
    }
}

/// Where the second of two arms overtakes the first, as a point: from the fresh trials of a run
/// that was made for it, at sizes inside the band (METHOD, Across sizes).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Crossing {
    /// The curve; its size is 0.
    pub curve: Cell,
    /// Label of the arm that is ahead below it.
    pub first: String,
    /// Label of the one that is ahead above it.
    pub second: String,
    /// The run whose trials show it; they are in no other figure.
    pub run: String,
    /// Sizes that were measured, rising.
    pub sizes: Vec<Bytes>,
    /// Passes that have both arms at each of them.
    pub passes: u32,
    /// The size at which both take the same time, bytes; pointwise 95 % interval. `None` where the
    /// order does not change exactly once.
    pub at_bytes: Option<Estimate>,
    /// Why there is none.
    pub reason: Option<String>,
}

/// What two curves do to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CrossoverShape {
    /// The first is ahead at small sizes and the second at large ones; at some sizes it may
    /// be unknown who is.
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
    /// The order changes more than once, or sizes at which one is ahead lie among others at
    /// which nobody is: no band says that.
    Mixed,
}

/// The fit t(n) = a + b·n of ns per message over the sizes of one arm's curve
/// (METHOD, Across sizes).
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
    /// ones alone; `None` where it is one of all sizes.
    pub breaks_at: Option<Bytes>,
}

impl CostModel {
    /// Beyond this residual a curve is not affine and its fit no headline.
    pub const RESIDUAL_MAX: f64 = 0.10;

    /// Whether the fit may be stated.
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

/// Slope of single-arm figures over the run's time (METHOD, Drift).
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
