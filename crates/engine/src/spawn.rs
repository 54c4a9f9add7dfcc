//! The one place that starts processes: workers, of this same binary, spoken to
//! over their standard input and output, and the programs that a worker compares its
//! engines with.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use iolens_model::shell;
use iolens_sys::errno::Errno;
use iolens_sys::launch::Program;
use iolens_sys::{detach, inherit, signal, storage};

use crate::trial::Launch;

/// A process and both pipes to it.
pub(crate) struct Spawned {
    pub(crate) child: Child,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

/// Hands a file to the program that the desktop opens it with, and does not wait for that.
///
/// Errors: what was started and what the system said.
pub fn opened(path: &Path) -> Result<(), String> {
    let (program, quiet) = ("xdg-open", Stdio::null);
    let started =
        Command::new(program).arg(path).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
    started
        .map(drop)
        .map_err(|e| format!("cannot open {}: {program}: {}", path.display(), Errno::from(e)))
}

/// Says to a worker which descriptor is its end of a pair of sockets.
pub(crate) const SOCKET_VARIABLE: &str = "IOLENS_SOCKET";

/// Starts a worker, with these variables besides those of this process, and with this socket if
/// there is one.
///
/// Errors: what was started and what the system said.
pub(crate) fn spawn(
    launch: &Launch,
    environment: &[(&str, &str)],
    socket: Option<OwnedFd>,
) -> Result<Spawned, String> {
    let program = launch.program.display();
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.arguments)
        .envs(environment.iter().copied())
        .env_remove(SOCKET_VARIABLE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    if let Some(socket) = socket {
        command.env(SOCKET_VARIABLE, socket.as_raw_fd().to_string());
        inherit::leave_open(&mut command, socket);
    }
    let mut child =
        command.spawn().map_err(|e| format!("cannot start {program}: {}", Errno::from(e)))?;
    match (child.stdin.take(), child.stdout.take()) {
        (Some(stdin), Some(stdout)) => Ok(Spawned { child, stdin, stdout }),
        _ => Err(format!("{program} was started without its pipes")),
    }
}

/// Starts a program with both pipes to it, without a terminal, and with its errors in a file.
/// ssh(1) starts no window to ask for a password either.
///
/// Errors: what the system said.
pub(crate) fn spawn_apart(
    program: &str,
    arguments: &[&str],
    errors: File,
) -> Result<Spawned, Errno> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("SSH_ASKPASS_REQUIRE", "never")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(errors);
    let mut child = detach::without_terminal(&mut command).spawn()?;
    match (child.stdin.take(), child.stdout.take()) {
        (Some(stdin), Some(stdout)) => Ok(Spawned { child, stdin, stdout }),
        _ => Err(Errno::EPIPE),
    }
}

/// Runs a program of others to its end, in the C locale; what it said on its standard
/// error.
///
/// Errors: what was started, how it ended and what it said.
pub(crate) fn run_to_end(arguments: &[String]) -> Result<String, String> {
    let (program, rest) = arguments.split_first().ok_or("no program is named")?;
    let output = Command::new(program)
        .args(rest)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .map_err(|e| format!("cannot start {program}: {}", Errno::from(e)))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match output.status.success() {
        true => Ok(said),
        false => Err(format!("`{}` {}: {said}", shell::join(arguments), describe(output.status))),
    }
}

/// Gets ready to start a program that is an arm, looked for in `PATH` as a shell would.
/// What it says of its errors goes to `errors`.
///
/// Errors: why it cannot be started.
pub(crate) fn program(argv: &[Vec<u8>], errors: File) -> Result<Program, String> {
    let name = OsStr::from_bytes(argv.first().ok_or("a program without a name")?);
    let cannot = |errno: Errno| format!("cannot start {}: {errno}", name.display());
    Program::new(&find(name)?, argv, errors).map_err(cannot)
}

/// The file of a program.
///
/// Errors: there is none in `PATH`.
pub(crate) fn find(name: impl AsRef<OsStr>) -> Result<PathBuf, String> {
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
    places.find(|place| storage::may_execute(place).is_ok() && place.is_file())
}

/// Bytes of a program's errors that are looked at, from the end.
const ERRORS_BYTES_MAX: u64 = 4096;

/// How a program ended, in words, and the last that it said.
pub(crate) fn obituary(status: ExitStatus, errors: &File) -> String {
    match last_line(errors) {
        Some(line) => format!("{}: {line}", describe(status)),
        None => format!("{}, and said nothing", describe(status)),
    }
}

/// The last line of what a program has said, without what was not meant to be read.
pub(crate) fn last_line(mut errors: &File) -> Option<String> {
    let bytes = errors.metadata().ok()?.len();
    let from = bytes.saturating_sub(ERRORS_BYTES_MAX);
    errors.seek(std::io::SeekFrom::Start(from)).ok()?;
    let mut text = Vec::new();
    errors.take(ERRORS_BYTES_MAX).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    let shown = line.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    Some(shown.collect())
}

/// How a process ended, in words.
pub(crate) fn describe(status: ExitStatus) -> String {
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
