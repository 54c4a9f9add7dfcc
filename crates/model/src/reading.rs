//! A reading that may not have been taken. Missing beats wrong: "unknown" is
//! never zero.

use serde::{Deserialize, Serialize};

/// A value that was read, or the reason why it was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// Read, and covers the whole of what it is said to cover.
    Exact(T),
    /// Not read; the reason is one clause without a full stop.
    NotMeasured {
        /// What stood in the way.
        why: String,
    },
}

impl<T> Reading<T> {
    /// A reading that was not taken, for this reason.
    #[must_use]
    pub fn not_measured(why: impl Into<String>) -> Self {
        Reading::NotMeasured { why: why.into() }
    }

    /// The value, where there is one.
    #[must_use]
    pub fn value(&self) -> Option<&T> {
        match self {
            Reading::Exact(value) => Some(value),
            Reading::NotMeasured { .. } => None,
        }
    }

    /// The reason, where there is no value.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Reading::Exact(_) => None,
            Reading::NotMeasured { why } => Some(why),
        }
    }

    /// Applies `f` to the value and keeps the reason.
    #[must_use]
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Reading::Exact(value) => Reading::Exact(f(value)),
            Reading::NotMeasured { why } => Reading::NotMeasured { why },
        }
    }
}

/// A metric that one end could not read in a trial, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotMeasured {
    /// The metric's name in the table of [`crate::metrics`].
    pub metric: String,
    /// The reason, one clause.
    pub why: String,
}
