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
use std::time::Duration;

use iolens_model::command_line;
use iolens_sys::errno::Errno;
use iolens_sys::launch::Program;
use iolens_sys::{child, file};

use crate::files::{describe_end, find_program};

/// Environment variable that says which end a worker is, `tx` or `rx`, so that
/// others can find it: /proc/PID/environ leads to the process, and that to its
/// network namespace (`nsenter -t PID -n`).
pub const END_VARIABLE: &str = "IOLENS_END";

/// How a worker is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// A process and both pipes to it.
#[derive(Debug)]
pub struct Spawned {
    /// The process.
    pub child: Child,
    /// What it reads.
    pub stdin: ChildStdin,
    /// What it writes.
    pub stdout: ChildStdout,
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
pub const SOCKET_VARIABLE: &str = "IOLENS_SOCKET";

/// Starts a worker, with these variables besides those of this process, and with this socket if
/// there is one.
///
/// Errors: what was started and what the system said.
pub fn spawn(
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
        child::leave_open(&mut command, socket);
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
pub fn spawn_apart(program: &str, arguments: &[&str], errors: File) -> Result<Spawned, Errno> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("SSH_ASKPASS_REQUIRE", "never")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(errors);
    let mut child = child::without_terminal(&mut command).spawn()?;
    match (child.stdin.take(), child.stdout.take()) {
        (Some(stdin), Some(stdout)) => Ok(Spawned { child, stdin, stdout }),
        _ => Err(Errno::EPIPE),
    }
}

/// A program that takes longer to read or copy a file than this has stopped.
const RUN_LIMIT: Duration = Duration::from_secs(60 * 60);

/// Runs a program of others to its end, in the C locale; the last that it said on its standard
/// error. It ends with the calling thread.
///
/// Errors: what was started, how it ended and what it said.
pub fn run_to_end(arguments: &[String]) -> Result<String, String> {
    run_within(arguments, RUN_LIMIT)
}

fn run_within(arguments: &[String], limit: Duration) -> Result<String, String> {
    let name = arguments.first().ok_or("no program is named")?;
    let errors = file::in_folder(&std::env::temp_dir())
        .map_err(|errno| format!("cannot create a file for the errors of {name}: {errno}"))?;
    let copy = errors.try_clone().map_err(|e| {
        format!("cannot duplicate the file for the errors of {name}: {}", Errno::from(e))
    })?;
    let cannot = |errno: Errno| format!("cannot start {name}: {errno}");
    let argv: Vec<Vec<u8>> = arguments.iter().map(|word| word.as_bytes().to_vec()).collect();
    let mut program =
        Program::with(&find_program(name)?, &argv, copy, &[("LC_ALL", "C")]).map_err(cannot)?;
    let command = || command_line::join(arguments);
    let ended = program.run_within(limit).map_err(|errno| match errno {
        Errno::ETIMEDOUT => {
            format!("`{}` was killed: it had not ended after {} s", command(), limit.as_secs())
        }
        errno => cannot(errno),
    })?;
    let status = ExitStatus::from_raw(ended.status);
    let said = last_words(&errors).unwrap_or_default().trim().to_owned();
    match status.success() {
        true => Ok(said),
        false => Err(format!("`{}` {}: {said}", command(), describe_end(status))),
    }
}

/// Gets ready to start a program that is an arm, looked for in `PATH` as a shell would.
/// What it says of its errors goes to `errors`.
///
/// Errors: why it cannot be started.
pub fn program(argv: &[Vec<u8>], errors: File) -> Result<Program, String> {
    let name = OsStr::from_bytes(argv.first().ok_or("a program without a name")?);
    let cannot = |errno: Errno| format!("cannot start {}: {errno}", name.display());
    Program::new(&find_program(name)?, argv, errors).map_err(cannot)
}

/// Bytes of a program's errors that are looked at, from the end.
const ERRORS_BYTES_MAX: u64 = 4096;

/// How a program ended, in words, and the last that it said.
pub fn obituary(status: ExitStatus, errors: &File) -> String {
    match last_line(errors) {
        Some(line) => format!("{}: {line}", describe_end(status)),
        None => format!("{}, and said nothing", describe_end(status)),
    }
}

/// The last line of what a program has said, without what was not meant to be read.
pub fn last_line(errors: &File) -> Option<String> {
    let text = last_words(errors)?;
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    let shown = line.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    Some(shown.collect())
}

/// The end of what a program has said; `None` where that cannot be read.
fn last_words(mut errors: &File) -> Option<String> {
    let bytes = errors.metadata().ok()?.len();
    let from = bytes.saturating_sub(ERRORS_BYTES_MAX);
    errors.seek(std::io::SeekFrom::Start(from)).ok()?;
    let mut text = Vec::new();
    errors.take(ERRORS_BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use iolens_sys::clock;
    use iolens_sys::fork::{self, Patience};

    use super::*;

    fn run(script: &str, limit: Duration) -> Result<String, String> {
        let words = ["sh", "-c", script].map(str::to_owned);
        run_within(&words, limit)
    }

    #[test]
    fn what_a_program_says_is_kept_from_its_end_alone() {
        let long = Duration::from_secs(60);
        let script = "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done >&2; \
                      echo $LC_ALL >&2";
        let said = run(script, long).unwrap();
        assert!(said.len() as u64 <= ERRORS_BYTES_MAX && said.ends_with("line 1999\nC"), "{said}");
        assert_eq!(
            run("echo why >&2; exit 3", long),
            Err("`sh -c 'echo why >&2; exit 3'` exited with status 3: why".to_owned())
        );
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let why = run("cat /dev/zero >/dev/null & wait", Duration::ZERO).unwrap_err();
        assert!(why.ends_with("was killed: it had not ended after 0 s"), "{why}");
    }

    /// Nobody is left to kill it, or to want what it does.
    #[test]
    fn a_program_ends_with_who_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("id");
        let script = format!("echo $$ >{}; exec tail -f /dev/null", place.display());
        let words = ["sh", "-c", &script].map(str::to_owned);
        let waits = fork::start(|| u8::from(run_to_end(&words).is_err())).unwrap();
        let id = loop {
            let text = std::fs::read_to_string(&place).unwrap_or_default();
            match text.strip_suffix('\n') {
                Some(id) => break id.to_owned(),
                None => std::thread::yield_now(),
            }
        };
        fork::kill(waits).unwrap();
        while !matches!(fork::ended(Patience::Waits), Ok(Some(_))) {}
        let lives = || {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat"));
            stat.is_ok_and(|stat| !stat.contains(") Z "))
        };
        let deadline_ns = clock::monotonic_ns() + 20_000_000_000;
        while lives() && clock::monotonic_ns() < deadline_ns {
            std::thread::yield_now();
        }
        assert!(!lives());
    }
}
