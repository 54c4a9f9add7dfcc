//! What is started, from which file, and how long it may take.

use crate::files::ProgramFile;

/// A program, ready for one cell: its arguments have no placeholders any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserProgram {
    /// The arm's name.
    pub name: String,
    /// Its words, of which the first is how it sees itself called.
    pub argv: Vec<String>,
    /// Its file.
    pub file: ProgramFile,
}

/// What each process executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramPlace {
    /// A copy of the file of its own.
    FreshCopy,
    /// The file where it lies.
    InPlace,
}

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramLimits {
    /// From the start of a program to its `ready`, and for a first operation.
    pub start_ns: u64,
    /// A slice, or a run of a command, at least: twenty times what is expected may be more.
    pub slice_ns: u64,
    /// A command's first run, of which nothing is known.
    pub first_run_ns: u64,
    /// From the end of its input to a program's end.
    pub end_ns: u64,
    /// From SIGTERM to SIGKILL.
    pub term_ns: u64,
}

impl ProgramLimits {
    /// What the protocol promises.
    pub const USUAL: ProgramLimits = ProgramLimits {
        start_ns: 30_000_000_000,
        slice_ns: 5_000_000_000,
        first_run_ns: 600_000_000_000,
        end_ns: 5_000_000_000,
        term_ns: 2_000_000_000,
    };

    /// The limit of something that is expected to take so long.
    #[must_use]
    pub fn of_slice(&self, expected_ns: u64) -> u64 {
        self.slice_ns.max(expected_ns.saturating_mul(20))
    }
}
