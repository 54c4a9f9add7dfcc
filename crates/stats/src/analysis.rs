//! What the analysis of a run says: plain data for reports, derived on read
//! and never stored.

use iolens_model::arm::{Arm, Role};
use iolens_model::axes::Cell;
use iolens_model::outcome::Status;
use serde::Serialize;

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
    /// Trials that are not used, by reason.
    pub rejected: Vec<Rejected>,
    /// Warnings about the whole run, each one sentence.
    pub warnings: Vec<String>,
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
    /// Every two compared arms against each other; with the baseline each has
    /// its contrast.
    pub pairs: Vec<PairContrast>,
    /// Remarks on the cell's numbers, each one sentence: gates that only
    /// flag, a ring that does not fit, the self-check excluding 1, …
    pub notes: Vec<String>,
}

/// The analysis of one arm in one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmAnalysis {
    /// Which arm.
    pub arm: Arm,
    /// `ok`, or why there are no numbers.
    pub status: Status,
    /// The reason, for every status but `ok`.
    pub reason: Option<String>,
    /// Single-arm figures; null where there is no usable trial.
    pub figures: Option<Figures>,
    /// The ratio to the baseline; null for the baseline and for controls.
    pub contrast: Option<Contrast>,
    /// The same ratio from isolated trials, where there are any.
    pub isolated: Option<Contrast>,
    /// CPU copies of each payload byte at the sender.
    pub copies_sender: Option<f64>,
    /// CPU copies of each payload byte, end to end.
    pub copies_end_to_end: Option<f64>,
}

impl ArmAnalysis {
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

/// Single-arm figures: totals over totals, with t intervals over trials.
/// Null where a part of the figure was not measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Received payload bits per second; null for arms without a receiver.
    pub goodput_bits_per_s: Option<Estimate>,
    /// Nanoseconds per message: 1 / message rate, not a latency.
    pub ns_per_message: Estimate,
    /// Nanoseconds per payload byte.
    pub ns_per_byte: Estimate,
    /// CPU time of the sending threads per payload byte, ns.
    pub tx_cpu_ns_per_byte: Option<Estimate>,
    /// CPU time of the receiving threads per payload byte, ns.
    pub rx_cpu_ns_per_byte: Option<Estimate>,
    /// System calls of the sender per message.
    pub tx_calls_per_message: Estimate,
    /// Context switches of both ends per message.
    pub context_switches_per_message: Option<Estimate>,
    /// The value of each used trial, for the strip behind the number:
    /// goodput in bit/s, or ns per message where there is no receiver.
    pub trial_values: Vec<f64>,
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
}

/// An arm against the baseline: time per message of the baseline over that of
/// the arm, so above 1 the arm is faster.
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
        self.pointwise.map(|i| (i.high / i.low).sqrt() - 1.0)
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
    /// Time per message of the second over that of the first: above 1 the
    /// first is faster.
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
    /// The word in tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Invalid => "INVALID",
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
