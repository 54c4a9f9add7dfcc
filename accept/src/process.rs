//! Commands with a time limit, whose output is kept with the time of each line.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

/// How often a child is asked whether it has ended.
const POLL: Duration = Duration::from_millis(5);

/// A command that is to run.
pub(crate) struct Job {
    command: Command,
    /// How it is named in messages.
    words: String,
    limit: Duration,
}

/// Lines with the time since the start of their command.
type Lines = Vec<(Duration, String)>;

/// A command that has ended.
pub(crate) struct Finished {
    words: String,
    pub(crate) status: ExitStatus,
    pub(crate) elapsed: Duration,
    stdout: Lines,
    stderr: Lines,
}

/// A command that runs.
pub(crate) struct Running {
    words: String,
    child: Child,
    begin: Instant,
    limit: Duration,
    stdout: Receiver<(Duration, String)>,
    stderr: Receiver<(Duration, String)>,
    readers: [JoinHandle<()>; 2],
}

impl Job {
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Job {
        let words = Path::new(program.as_ref()).file_name().unwrap_or_default();
        let words = words.to_string_lossy().into_owned();
        Job { command: Command::new(program), words, limit: Duration::from_secs(60) }
    }

    /// Cargo in the root of the workspace.
    pub(crate) fn cargo(args: &[&str]) -> Job {
        Job::new(cargo()).args(args).directory(&crate::root())
    }

    pub(crate) fn args(mut self, args: &[&str]) -> Job {
        self.words = format!("{} {}", self.words, args.join(" "));
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Job {
        self.command.env(name, value);
        self
    }

    pub(crate) fn directory(mut self, directory: &Path) -> Job {
        self.command.current_dir(directory);
        self
    }

    pub(crate) fn limit_minutes(mut self, minutes: u64) -> Job {
        self.limit = Duration::from_secs(60 * minutes);
        self
    }

    /// Runs it to its end; an error is a command that did not start or did not
    /// end in time.
    pub(crate) fn run(self) -> Result<Finished, String> {
        self.start()?.finish()
    }

    /// Starts it in a process group of its own, so that a limit ends what it
    /// started too.
    pub(crate) fn start(mut self) -> Result<Running, String> {
        let begin = Instant::now();
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.command.process_group(0).spawn();
        let mut child = child.map_err(|e| format!("cannot start `{}`: {e}", self.words))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (stdout, first) = follow(stdout.ok_or("stdout was piped")?, begin);
        let (stderr, second) = follow(stderr.ok_or("stderr was piped")?, begin);
        let readers = [first, second];
        let (words, limit) = (self.words, self.limit);
        Ok(Running { words, child, begin, limit, stdout, stderr, readers })
    }
}

/// Reads lines in a thread of its own until the other end is closed.
fn follow<R>(pipe: R, begin: Instant) -> (Receiver<(Duration, String)>, JoinHandle<()>)
where
    R: Read + Send + 'static,
{
    let (sender, receiver) = channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if sender.send((begin.elapsed(), line)).is_err() {
                break;
            }
        }
    });
    (receiver, reader)
}

impl Running {
    /// Waits for a line of stdout that contains `part`.
    pub(crate) fn wait_for_line(&self, part: &str, limit: Duration) -> Result<String, String> {
        self.wait_on(&self.stdout, part, limit)
    }

    /// The same for stderr.
    pub(crate) fn wait_for_note(&self, part: &str, limit: Duration) -> Result<String, String> {
        self.wait_on(&self.stderr, part, limit)
    }

    fn wait_on(
        &self,
        lines: &Receiver<(Duration, String)>,
        part: &str,
        limit: Duration,
    ) -> Result<String, String> {
        let until = Instant::now() + limit;
        let mut said = Vec::new();
        loop {
            match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok((_, line)) if line.contains(part) => return Ok(line),
                Ok((_, line)) => said.push(line),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("`{}` said no `{part}` within {limit:?}", self.words));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let (words, said) = (&self.words, said.join("\n"));
                    return Err(format!("`{words}` ended without saying `{part}`\n{said}"));
                }
            }
        }
    }

    /// The process of the command.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether a line of stderr that nobody has looked at yet contains `part`; those
    /// looked at are given away.
    pub(crate) fn has_said_on_stderr(&self, part: &str) -> bool {
        self.stderr.try_iter().any(|(_, line)| line.contains(part))
    }

    /// Whether it is still running.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// SIGKILL to this process alone, and everything it had written.
    pub(crate) fn kill(mut self) -> Result<Finished, String> {
        self.child.kill().map_err(|e| format!("cannot kill `{}`: {e}", self.words))?;
        self.finish()
    }

    /// Waits for its end and for all of its output.
    pub(crate) fn finish(mut self) -> Result<Finished, String> {
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if self.begin.elapsed() < self.limit => std::thread::sleep(POLL),
                Ok(None) => return Err(self.give_up()),
                Err(e) => return Err(format!("cannot wait for `{}`: {e}", self.words)),
            }
        };
        let elapsed = self.begin.elapsed();
        // A grandchild may hold the pipes for ever; then what came is taken.
        let patience = Instant::now() + Duration::from_secs(5);
        while !self.readers.iter().all(JoinHandle::is_finished) && Instant::now() < patience {
            std::thread::sleep(POLL);
        }
        let (stdout, stderr) = (self.stdout.try_iter().collect(), self.stderr.try_iter().collect());
        Ok(Finished { words: self.words, status, elapsed, stdout, stderr })
    }

    /// Ends the whole process group; the message of it.
    fn give_up(mut self) -> String {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.child.wait();
        format!("`{}` did not end within {:?}", self.words, self.limit)
    }
}

impl Finished {
    /// This, if the command said that it succeeded.
    pub(crate) fn success(self) -> Result<Finished, String> {
        if self.status.success() {
            return Ok(self);
        }
        let said = [self.tail(&self.stdout), self.tail(&self.stderr)].join("\n");
        Err(format!("`{}`: {}\n{}", self.words, self.status, said.trim()))
    }

    pub(crate) fn stdout(&self) -> String {
        text(&self.stdout)
    }

    pub(crate) fn stderr(&self) -> String {
        text(&self.stderr)
    }

    /// Lines of stdout with the time since the start.
    pub(crate) fn stdout_lines(&self) -> &[(Duration, String)] {
        &self.stdout
    }

    /// Lines of stderr with the time since the start.
    pub(crate) fn stderr_lines(&self) -> &[(Duration, String)] {
        &self.stderr
    }

    /// Path of an executable among cargo's JSON messages.
    pub(crate) fn executable(&self, name: &str) -> Option<PathBuf> {
        let messages = self.stdout.iter().filter_map(|(_, line)| serde_json::from_str(line).ok());
        let named = |message: Value| {
            let is_it = message["target"]["name"] == name;
            message["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
        };
        messages.filter_map(named).next_back()
    }

    fn tail(&self, lines: &Lines) -> String {
        let from = lines.len().saturating_sub(12);
        lines[from..].iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n")
    }
}

fn text(lines: &Lines) -> String {
    lines.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n")
}

/// Whether a program is in the path.
fn is_there(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// The cargo that started us, else the one in the path.
fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The user this process runs as.
pub(crate) fn own_user() -> Result<u32, String> {
    let own = std::fs::metadata("/proc/self").map_err(|e| format!("no /proc/self: {e}"))?;
    Ok(own.uid())
}

/// A field of a process in kB, as `RssAnon:`; null when it has gone.
pub(crate) fn status_kib(process: u32, field: &str) -> Option<u64> {
    field_kib(&std::fs::read_to_string(format!("/proc/{process}/status")).ok()?, field)
}

fn field_kib(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// Makes sure that a program can be run; root installs it where it is missing.
pub(crate) fn need(program: &str, package: &str) -> Result<(), String> {
    if is_there(program) {
        return Ok(());
    }
    if own_user() != Ok(0) {
        return Err(format!("{program} is missing: `apt-get install {package}` as root"));
    }
    install(package)?;
    if is_there(program) { Ok(()) } else { Err(format!("{package} brought no {program}")) }
}

/// Installs a package.
pub(crate) fn install(package: &str) -> Result<(), String> {
    let apt = |args: &[&str]| {
        Job::new("apt-get")
            .args(args)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .limit_minutes(10)
            .run()
    };
    apt(&["update"])?;
    apt(&["install", "-y", "--no-install-recommends", package])?.success().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Job {
        Job::new("sh").args(&["-c", script])
    }

    #[test]
    fn output_and_status_are_kept() {
        let finished = shell("echo a; echo b >&2; exit 3").run().expect("it runs");
        assert_eq!(finished.status.code(), Some(3));
        assert_eq!(finished.stdout(), "a");
        assert_eq!(finished.stderr_lines()[0].1, "b");
        let message = finished.success().err().expect("3 is no success");
        assert!(message.contains("exit status: 3") && message.contains('b'), "{message}");
    }

    #[test]
    fn a_limit_ends_what_does_not_end() {
        let message = shell("exec tail -f /dev/null").limit_minutes(0).run().err();
        assert!(message.is_some_and(|message| message.contains("did not end within")));
    }

    #[test]
    fn a_killed_command_leaves_what_it_said() {
        let running =
            shell("echo ready; echo more; exec tail -f /dev/null").start().expect("it runs");
        running.wait_for_line("ready", Duration::from_secs(20)).expect("it says so");
        let finished = running.kill().expect("it is killed");
        assert!(!finished.status.success());
    }

    #[test]
    fn the_status_of_a_process_is_read() {
        assert_eq!(field_kib("Name:\tx\nRssAnon:\t    1234 kB\n", "RssAnon:"), Some(1234));
        assert_eq!(field_kib("Name:\tx\n", "RssAnon:"), None);
        assert!(status_kib(std::process::id(), "VmHWM:").is_some_and(|kib| kib > 100));
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = Job::new("no-such-program-here").run().err();
        assert!(missing.is_some_and(|message| message.contains("no-such-program-here")));
    }
}
