//! Why a trial did not come to its end.

/// Why a trial has no reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Something failed.
    Failed {
        /// The slice that ran, if it is known.
        slice: Option<usize>,
        /// What happened, one clause.
        what: String,
        /// Whether the machine's limits do not allow the arm at all.
        refused: bool,
    },
    /// It took longer than it may.
    TimeUp,
    /// The user wants to stop.
    Interrupted,
}

impl Trouble {
    /// Something failed before the first slice.
    pub(crate) fn failed(what: impl Into<String>) -> Trouble {
        Trouble::Failed { slice: None, what: what.into(), refused: false }
    }
}

pub(super) fn failed(what: impl Into<String>) -> Trouble {
    Trouble::failed(what)
}
