//! How a command ends when it cannot do what it was asked: one message and
//! one exit code.

use std::fmt::Display;
use std::path::PathBuf;

use iolens_engine::Interrupts;
use iolens_harness::host;
use iolens_model::host::HostFacts;
use iolens_store::StoreError;

/// Exit code 1: `--strict` found something undecided or invalid, `audit`
/// something impossible, `compare` something slower.
pub(crate) const FOUND: u8 = 1;
/// Exit code 2: the command line asks for something that cannot be.
pub(crate) const USAGE: u8 = 2;
/// Exit code 3: `ab --strict` found something undecided.
pub(crate) const UNDECIDED: u8 = 3;
/// Exit code 4: nothing usable came of it, or the machine is locked.
pub(crate) const NOTHING_USABLE: u8 = 4;
/// Exit code 130: interrupted by the user.
pub(crate) const INTERRUPTED: u8 = 130;

/// A command that ended early.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Exit code.
    pub(crate) code: u8,
    /// What was tried, on what, what the system said, what to do.
    pub(crate) message: String,
}

impl Failure {
    /// Something about the command line.
    pub(crate) fn usage(message: impl Display) -> Failure {
        Failure { code: USAGE, message: message.to_string() }
    }

    /// The user ended it.
    pub(crate) fn interrupted(message: impl Display) -> Failure {
        Failure { code: INTERRUPTED, message: message.to_string() }
    }

    /// Something about the machine or the store.
    pub(crate) fn unusable(message: impl Display) -> Failure {
        Failure { code: NOTHING_USABLE, message: message.to_string() }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::unusable(error)
    }
}

/// [`Failure::usage`] with the words of [`format!`].
macro_rules! usage {
    ($($words:tt)+) => { $crate::failure::Failure::usage(format!($($words)+)) };
}

/// [`Failure::unusable`] with the words of [`format!`].
macro_rules! unusable {
    ($($words:tt)+) => { $crate::failure::Failure::unusable(format!($($words)+)) };
}

pub(crate) use {unusable, usage};

/// This program, of which workers are started.
pub(crate) fn this_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|e| unusable!("cannot find the program that runs: {e}"))
}

/// All that is known of this machine.
pub(crate) fn this_host() -> Result<HostFacts, Failure> {
    host::read(&host::Root::real()).map_err(Failure::unusable)
}

/// What this machine has room for.
pub(crate) fn this_hosts_limits() -> Result<HostFacts, Failure> {
    host::limits(&host::Root::real()).map_err(Failure::unusable)
}

/// An ear for signals.
pub(crate) fn catch() -> Result<Interrupts, Failure> {
    Interrupts::catch().map_err(|e| unusable!("cannot catch signals: {e}"))
}
