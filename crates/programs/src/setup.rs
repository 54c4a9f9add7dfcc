//! What is started, which file its name means, how long it may take, and how it ended.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use iolens_sys::errno::Errno;
use iolens_sys::{signal, storage};

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

// Which file a program's name means, and how one ended, in words.

/// Whether this process may start the program of a file: a file system may be mounted `noexec`.
///
/// Errors: see [`storage::may_execute`].
pub fn may_start(program: &Path) -> Result<(), Errno> {
    storage::may_execute(program)
}

/// The file of a program.
///
/// Errors: there is none in `PATH`.
pub fn find_program(name: impl AsRef<OsStr>) -> Result<PathBuf, String> {
    let name = Path::new(name.as_ref());
    found(name).ok_or_else(|| format!("there is no program `{}` in PATH", name.display()))
}

/// The file of a program's name.
fn found(name: &Path) -> Option<PathBuf> {
    if name.as_os_str().as_bytes().contains(&b'/') {
        return Some(name.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&folders).map(|folder| folder.join(name));
    places.find(|place| may_start(place).is_ok() && place.is_file())
}

/// How a process ended, in words.
#[must_use]
pub fn describe_end(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal::BUS), _) => {
            "was killed by SIGBUS: a mapped file had lost a page or had no room for one, or its device \
             failed"
                .to_owned()
        }
        (Some(signal), _) => format!("was killed by signal {signal}"),
        (None, Some(code)) => format!("exited with status {code}"),
        (None, None) => "ended".to_owned(),
    }
}
