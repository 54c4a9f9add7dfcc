//! How a command ends when it cannot do what it was asked: one message and
//! one exit code.

use std::fmt::Display;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Error};
use iolens_engine::Interrupts;
use iolens_model::axes::Study;
use iolens_store::StoreError;

use crate::args::Args;
use crate::axes;

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

/// An ear for signals.
pub(crate) fn catch() -> Result<Interrupts, Failure> {
    Interrupts::catch().map_err(|e| unusable!("cannot catch signals: {e}"))
}

// Command lines that the parser refuses: what the table of axes knows of a flag is said instead
// of what the parser would.

/// Words of commands that were renamed.
const RENAMED: [(&str, &str); 2] = [("primitives", "methods"), ("topologies", "networks")];

/// What is wrong with the words that were typed. What is no mistake (help), or one that the
/// parser knows best, is printed by it and ends the process.
pub(crate) fn misread(error: Error, typed: &[String]) -> Failure {
    let words: Vec<&str> = typed.iter().skip(1).map(String::as_str).collect();
    match known(&error, &words) {
        Some(message) => Failure::usage(message),
        None => error.exit(),
    }
}

/// The same behind the name of a plan of a study.
pub(crate) fn misread_plan(error: Error, study: Study) -> Failure {
    match known(&error, &["run", study.word()]) {
        Some(message) => Failure::usage(message),
        None => error.exit(),
    }
}

fn known(error: &Error, words: &[&str]) -> Option<String> {
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match (error.kind(), words) {
        (ErrorKind::UnknownArgument, _) => {
            let flag = said(ContextKind::InvalidArg)?.strip_prefix("--")?;
            of_flag(flag.split('=').next().unwrap_or(flag), words)
        }
        (ErrorKind::MissingSubcommand, ["run", ..]) => Some(
            "run what? Name a study (net, file, write, copy, syscall, server), a plan or a \
             file.toml\n  start with: iolens run net --quick"
                .to_owned(),
        ),
        (ErrorKind::InvalidValue, ["list", ..]) => {
            let word = said(ContextKind::InvalidValue)?;
            let (_, now) = RENAMED.into_iter().find(|(old, _)| *old == word)?;
            Some(format!("`list {word}` is now `list {now}`"))
        }
        _ => None,
    }
}

/// What to write instead of a flag that a command does not have.
fn of_flag(flag: &str, words: &[&str]) -> Option<String> {
    let mark = |flag: &str| format!("--{flag}");
    match words {
        ["run", "--resume", run, ..] => Some(format!("run --resume is now: iolens resume {run}")),
        ["run", study, ..] if flag == "resume" && Study::of_run(study).is_some() => {
            Some("run --resume is now: iolens resume RUN".to_owned())
        }
        ["run", study, ..] if let Some(study) = Study::of_run(study) => {
            let answer = axes::elsewhere(study, flag, mark)?;
            Some(format!("{answer}\n  iolens run {study} --help"))
        }
        ["resume", ..] if axes::is_flag(flag) => Some(format!(
            "resume has no {}: a run continues with the plan it began with\n  iolens resume --help",
            mark(flag)
        )),
        ["run", ..] if axes::is_flag(flag) => {
            Some(format!("name the study first, then {}\n  iolens run net --{flag}", mark(flag)))
        }
        _ => {
            let mut command = &Args::command();
            for word in words {
                let Some(below) = command.find_subcommand(word) else { break };
                command = below;
            }
            let has = |flag: &str| command.get_arguments().any(|arg| arg.get_long() == Some(flag));
            let now = axes::renamed(flag, has)?;
            Some(format!("{} is now {}", mark(flag), mark(now)))
        }
    }
}
