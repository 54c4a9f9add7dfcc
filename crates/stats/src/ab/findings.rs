//! What is found, as numbers. A change is exp(ln(arm / other)) − 1: +0.049 is 4.9 % more of the
//! quantity per operation. Arms are given by their place, the baseline being 0.

use iolens_model::ab::AbQuantity;
use serde::Serialize;

use super::AbLook;
use super::links::AbLinks;
use super::sample::Sample;
use crate::estimate::Interval;

/// The part of a variance under which it is nothing: half of it is that of the width.
const NOISE_SHARE_MIN: f64 = 0.05;

/// What is concluded of a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbJudgement {
    /// The look that this was.
    pub look: AbLook,
    /// By quantity and arm.
    pub contrasts: Vec<AbContrast>,
    /// The arms that have a hidden copy, by quantity and arm.
    pub copies: Vec<AbCopies>,
    /// What cannot be compared.
    pub missing: Vec<AbMissing>,
}

impl AbJudgement {
    /// The contrast of an arm by a quantity.
    pub(super) fn contrast(&self, arm: usize, quantity: AbQuantity) -> Option<&AbContrast> {
        self.contrasts.iter().find(|one| (one.arm, one.quantity) == (arm, quantity))
    }

    /// Whether a run may end here: there are contrasts, and each is decided.
    pub fn decided(&self) -> bool {
        !self.contrasts.is_empty() && self.contrasts.iter().all(AbContrast::is_decided)
    }

    /// Whether it may end here because more trials tell no more of what is not decided.
    pub fn is_exhausted(&self) -> bool {
        let is_over = |one: &AbContrast| one.is_decided() || one.is_exhausted();
        !self.contrasts.is_empty() && self.contrasts.iter().all(is_over)
    }
}

/// An arm against the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbContrast {
    /// Which arm.
    pub arm: usize,
    /// What is compared.
    pub quantity: AbQuantity,
    /// Units that have both arms.
    pub units: u32,
    /// The change; `None` where it is too large to be a number.
    pub change: Option<f64>,
    /// Interval of 95 % for this change alone, looked at once; `None` with too few units for one.
    pub pointwise: Option<Interval>,
    /// The interval of the verdict, for all claims together: at the level of the look, or of an
    /// early one where copies of one program are noisier than δ.
    pub simultaneous: Option<Interval>,
    /// What layout may explain, as a fraction of time; `None` where nothing was linked anew, and
    /// where several links of each side show it.
    pub layout_allowance: Option<f64>,
    /// What the links show; `None` where each program is one file.
    pub links: Option<AbLinks>,
    /// The word.
    pub verdict: AbVerdict,
    /// The rule and its numbers.
    pub reason: AbReason,
    /// What could have been seen.
    pub power: AbPower,
    /// The values behind it, of which intervals at other levels are made.
    #[serde(skip)]
    pub(super) sample: Sample,
}

impl AbContrast {
    /// Whether more units cannot be expected to change the verdict: it is FASTER, SLOWER or
    /// EQUIVALENT, or BUILD with an interval that nowhere reaches beyond the allowance, or a
    /// program does not keep to its turns.
    pub fn is_decided(&self) -> bool {
        match self.verdict {
            AbVerdict::Equivalent | AbVerdict::Slower | AbVerdict::Faster => true,
            AbVerdict::Build => {
                matches!(self.reason, AbReason::WithinAllowance { is_whole: true, .. })
            }
            AbVerdict::Invalid => matches!(self.reason, AbReason::WorksBetween { .. }),
            AbVerdict::Small | AbVerdict::Inconclusive => false,
        }
    }

    /// Whether more trials of the same links leave the interval as wide as it is, to 3 %: the rest
    /// is what links differ by.
    pub fn is_exhausted(&self) -> bool {
        let share = self.links.as_ref().and_then(|links| links.noise_share);
        share.is_some_and(|share| share < NOISE_SHARE_MIN)
    }
}

iolens_model::words! {
    /// What can be concluded, in the order in which it is tried.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    pub enum AbVerdict {
        /// Copies of one arm differ.
        Invalid = "INVALID",
        /// The difference is smaller than δ, either way.
        Equivalent = "EQUIVALENT",
        /// Slower than the baseline by more than δ and than layout explains.
        Slower = "SLOWER",
        /// Faster by more than both.
        Faster = "FASTER",
        /// This file differs by more than δ, but linking one source anew can do that.
        Build = "BUILD",
        /// A real difference that may be smaller than δ.
        Small = "SMALL",
        /// None of these.
        Inconclusive = "INCONCLUSIVE",
    }
}

/// The rule behind a verdict. Intervals are of changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum AbReason {
    /// The copies of this arm differ by more than the bound, δ/2.
    CopiesDiffer {
        /// The arm, which may be the baseline.
        of: usize,
        /// Interval of 99.9 % of the copy against the arm.
        interval: Interval,
        /// The bound, as a fraction.
        bound: f64,
    },
    /// This arm works between its turns, in the time of others or in nobody's.
    WorksBetween {
        /// The arm, which may be the baseline.
        of: usize,
        /// CPU time between its slices, as a part of that within them.
        share: f64,
        /// The largest part with which numbers can be used.
        bound: f64,
    },
    /// There are fewer units than a verdict takes.
    TooFew {
        /// Units.
        units: u32,
        /// As many as it takes.
        least: u32,
    },
    /// A side has fewer links than a verdict takes.
    TooFewLinks {
        /// Links of the baseline and of the arm.
        links: [u32; 2],
        /// As many as it takes.
        least: u32,
    },
    /// So few have no interval at this level.
    NoInterval {
        /// Units.
        units: u32,
    },
    /// The interval of two one-sided tests lies within δ.
    Within {
        /// Of 99.8 % or 91 %, for all claims together.
        interval: Interval,
        /// Smallest difference that matters.
        delta: f64,
    },
    /// The simultaneous interval lies beyond the bound.
    Beyond {
        /// The interval.
        interval: Interval,
        /// The larger of δ and the layout allowance.
        bound: f64,
    },
    /// It lies beyond δ, and reaches within the layout allowance.
    WithinAllowance {
        /// The interval.
        interval: Interval,
        /// Smallest difference that matters.
        delta: f64,
        /// What layout may explain, as a fraction of time.
        allowance: f64,
        /// Whether all of it lies within the allowance.
        is_whole: bool,
    },
    /// It excludes no change and reaches within δ.
    MayBeSmall {
        /// The interval.
        interval: Interval,
        /// Smallest difference that matters.
        delta: f64,
        /// What keeps it from EQUIVALENT, where it would be.
        noise: Option<AbNoise>,
    },
    /// It does neither.
    Open {
        /// The interval.
        interval: Interval,
        /// Smallest difference that matters.
        delta: f64,
        /// What keeps it from EQUIVALENT, where it would be.
        noise: Option<AbNoise>,
    },
}

/// Copies of one arm that are not known to be equal within δ: their interval of 99.9 % is wider
/// to either side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AbNoise {
    /// The arm, which may be the baseline.
    pub of: usize,
    /// Half-width of the interval, as a fraction; `None` without one.
    pub half_width: Option<f64>,
}

/// The hidden copy of an arm against the arm: what is found between equals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbCopies {
    /// Which arm.
    pub arm: usize,
    /// What is compared.
    pub quantity: AbQuantity,
    /// Units that have both.
    pub units: u32,
    /// The change from the arm to its copy; `None` where it is too large to be a number.
    pub change: Option<f64>,
    /// Interval of 95 %; `None` with too few units for one.
    pub pointwise: Option<Interval>,
    /// Interval of 99.9 %, by which contrasts of the arm are refused.
    pub gate: Option<Interval>,
    /// Whether the interval of 95 % excludes no change: that of one pair in twenty does.
    pub excludes_no_change: bool,
    /// Whether the gate refuses the contrasts of the arm.
    pub differ: bool,
    /// Whether the gate is too wide for anything to be EQUIVALENT to the arm.
    pub noise: Option<AbNoise>,
    /// The values behind it.
    #[serde(skip)]
    pub(super) sample: Sample,
}

/// The smallest slowdown that is called SLOWER in nine of ten runs, as a change. It lies beyond
/// the larger of δ and the layout allowance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AbPower {
    /// In as many units as there are, at this look; `None` with too few for a verdict.
    pub now: Option<f64>,
    /// At the end of the whole budget.
    pub at_budget: Option<f64>,
}

/// A contrast that there is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AbMissing {
    /// Which arm.
    pub arm: usize,
    /// What would be compared.
    pub quantity: AbQuantity,
    /// Why not.
    pub why: AbMissingWhy,
}

/// Why there is no contrast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AbMissingWhy {
    /// The baseline was measured in no trial.
    OfBaseline,
    /// The arm was measured in no trial.
    OfArm,
    /// Both were, but in no round together.
    NeverTogether,
    /// Both were, but it is not known which of their links ran.
    OfLinks,
}
