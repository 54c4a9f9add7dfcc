//! What a thread of an end reports.

use iolens_model::copy::ProgramStart;
use iolens_model::outcome::{ArmFact, Counts};
use iolens_model::reading::Histogram;

use super::bracket::Bracket;
use super::sampling::StackSampler;
use iolens_harness::op::Span;

/// One slice on one thread.
pub(crate) struct ThreadSlice {
    /// First and last call; at the receiving end the first and the last bytes.
    pub(crate) span: Span,
    /// When the slice was over for this thread.
    pub(crate) end_ns: u64,
    pub(crate) counts: Counts,
}

/// What one thread brings home.
pub(crate) struct ThreadReport {
    /// One entry per slice of the trial.
    pub(crate) slices: Vec<ThreadSlice>,
    pub(crate) bracket: Bracket,
    pub(crate) cpus: Vec<u32>,
    /// The CPU that it was bound to in the slices of each arm, where it follows what comes in;
    /// else empty.
    pub(crate) homes: Vec<u32>,
    /// Round-trip times by arm; empty at the answering end.
    pub(crate) latency: Vec<Histogram>,
    pub(crate) sampler: StackSampler,
    /// What its arms found when they were opened.
    pub(crate) arm_facts: Vec<ArmFact>,
    /// What starting its programs took.
    pub(crate) starts: Vec<ProgramStart>,
}
