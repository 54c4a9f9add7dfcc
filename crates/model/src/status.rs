//! How a trial ended, or an arm of it.

use serde::{Deserialize, Serialize};

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
