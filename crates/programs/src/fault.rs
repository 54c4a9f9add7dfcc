//! What ends an arm in a trial.

use iolens_model::reading::Status;
use thiserror::Error;

use crate::protocol::LineFault;

/// What ended an arm: words that follow the arm's name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProgramFault {
    /// It did not begin.
    #[error("{0}")]
    NotStarted(String),
    /// It did not say that it is set up.
    #[error(
        "did not print `ready` within {} of its start{heard}: does it speak the loop protocol, and \
         flush what it prints? Without --loop a whole run is measured",
        span(*limit_ns)
    )]
    NotReady {
        /// The limit.
        limit_ns: u64,
        /// What it did print.
        heard: String,
    },
    /// It ended by itself.
    #[error("{when}: it {how}")]
    Died {
        /// In which slice.
        when: String,
        /// The status or signal, and what it wrote to stderr.
        how: String,
    },
    /// It said something that it should not have.
    #[error("{when}: {what}")]
    Said {
        /// In which slice.
        when: String,
        /// What, quoted.
        what: String,
    },
    /// It does not answer any more.
    #[error("{when}: it did not {what} within {}{heard}", span(*limit_ns))]
    Hangs {
        /// In which slice.
        when: String,
        /// To answer, or to end.
        what: &'static str,
        /// The limit.
        limit_ns: u64,
        /// What it did print.
        heard: String,
    },
    /// It closed its end.
    #[error("{when}: it closed its {which} and goes on: the loop protocol needs it to the end")]
    Closed {
        /// In which slice.
        when: String,
        /// Its input or its output.
        which: &'static str,
    },
    /// It does not end at the end of its input.
    #[error(
        "did not end within {} of the end of its input, and was killed: let its loop end when there \
         is no line to read",
        span(*limit_ns)
    )]
    StaysOn {
        /// The limit.
        limit_ns: u64,
    },
    /// It ended with another status than 0.
    #[error("{0}")]
    BadExit(String),
    /// Something of the system's.
    #[error("{0}")]
    System(String),
    /// The user wanted an end.
    #[error("was interrupted")]
    Interrupted,
}

/// A limit in words.
fn span(ns: u64) -> String {
    match ns / 1_000_000 {
        ms if ms % 1000 == 0 => format!("{} s", ms / 1000),
        ms => format!("{ms} ms"),
    }
}

impl ProgramFault {
    /// What becomes of the arm.
    pub fn status(&self) -> Status {
        match self {
            ProgramFault::Interrupted => Status::Interrupted,
            ProgramFault::NotStarted(_) => Status::Skipped,
            _ => Status::Failed,
        }
    }

    /// Whether the arm is not to be tried again: it would take as long each time.
    pub fn ends_the_arm(&self) -> bool {
        matches!(self, ProgramFault::Hangs { .. } | ProgramFault::NotReady { .. })
    }

    /// What is wrong with a line.
    pub(crate) fn said(when: &str, fault: &LineFault) -> ProgramFault {
        ProgramFault::Said { when: when.to_owned(), what: fault.to_string() }
    }
}
