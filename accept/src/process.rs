//! Commands with a time limit, whose output is kept with the time of each line.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::sleep;
use std::time::Instant;

use procfs::process::Process;

use crate::prelude::*;

/// How often a child is asked whether it has ended.
const POLL: Duration = Duration::from_millis(5);

/// A command that is to run; where nothing else is said it may take half an hour.
pub struct Job {
    command: Command,
    limit: Duration,
}

/// A line of a command.
pub struct Said {
    /// Since the start of the command.
    pub after: Duration,
    is_stderr: bool,
    pub text: String,
}

/// A command that has ended.
pub struct Finished {
    words: String,
    pub status: ExitStatus,
    pub elapsed: Duration,
    pub said: Vec<Said>,
}

/// A command that runs; dropped, it is killed.
pub struct Running {
    words: String,
    child: Child,
    begin: Instant,
    limit: Duration,
    says: Receiver<Said>,
    said: Vec<Said>,
}

impl Job {
    pub fn new(program: impl AsRef<OsStr>) -> Job {
        Job { command: Command::new(program), limit: Duration::from_secs(1800) }
    }

    /// A program and its arguments, separated by blanks.
    pub fn of(line: impl AsRef<str>) -> Job {
        let line = line.as_ref();
        let (program, rest) = line.split_once(' ').unwrap_or((line, ""));
        Job::new(program).words(rest)
    }

    /// Cargo in the root of the workspace.
    pub fn cargo(words: impl AsRef<str>) -> Job {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Job::new(cargo).words(words).directory(&crate::root())
    }

    pub fn shell(script: &str) -> Job {
        Job::of("sh -c").arg(script)
    }

    /// Arguments that are separated by blanks.
    pub fn words(self, words: impl AsRef<str>) -> Job {
        self.args(words.as_ref().split_whitespace())
    }

    pub fn arg(self, arg: impl AsRef<OsStr>) -> Job {
        self.args([arg])
    }

    pub fn args(mut self, args: impl IntoIterator<Item: AsRef<OsStr>>) -> Job {
        self.command.args(args);
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Job {
        self.command.env(name, value);
        self
    }

    pub fn directory(mut self, directory: &Path) -> Job {
        self.command.current_dir(directory);
        self
    }

    pub fn minutes(mut self, minutes: u64) -> Job {
        self.limit = Duration::from_secs(60 * minutes);
        self
    }

    /// Runs it to its end; an error is a command that did not start or did not
    /// end in time.
    pub fn run(self) -> Res<Finished> {
        self.start()?.finish()
    }

    /// Runs it to its end, which has to be a good one.
    pub fn success(self) -> Res<Finished> {
        self.run()?.success()
    }

    pub fn json(self) -> Res<Value> {
        self.success()?.json()
    }

    /// How it is named in messages: of an argument that is a script its first line.
    fn name(&self) -> String {
        let program = Path::new(self.command.get_program()).file_name().unwrap_or_default();
        let words = [program].into_iter().chain(self.command.get_args());
        let first = |word: &OsStr| word.to_string_lossy().lines().next().map(str::to_owned);
        words.filter_map(first).collect::<Vec<_>>().join(" ")
    }

    /// Starts it in a process group of its own, so that a limit ends what it
    /// started too.
    pub fn start(mut self) -> Res<Running> {
        let (begin, words, limit) = (Instant::now(), self.name(), self.limit);
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.command.process_group(0).spawn();
        let mut child = child.with_context(|| format!("cannot start `{words}`"))?;
        let (sender, says) = channel();
        follow(child.stdout.take(), false, begin, sender.clone());
        follow(child.stderr.take(), true, begin, sender);
        Ok(Running { words, child, begin, limit, says, said: Vec::new() })
    }
}

/// Reads lines in a thread of its own until the other end is closed.
fn follow<R>(pipe: Option<R>, is_stderr: bool, begin: Instant, sender: Sender<Said>)
where
    R: Read + Send + 'static,
{
    std::thread::spawn(move || {
        let lines = pipe.into_iter().flat_map(|pipe| BufReader::new(pipe).split(b'\n'));
        for line in lines.map_while(Result::ok) {
            let text = String::from_utf8_lossy(&line).into_owned();
            if sender.send(Said { after: begin.elapsed(), is_stderr, text }).is_err() {
                break;
            }
        }
    });
}

impl Running {
    /// Waits for a line that contains `part`, of those that nobody has waited for yet.
    pub fn wait_for(&mut self, part: &str, seconds: u64) -> Res<String> {
        let until = Instant::now() + Duration::from_secs(seconds);
        loop {
            let next = self.says.recv_timeout(until.saturating_duration_since(Instant::now()));
            let next = next.with_context(|| {
                let said: Vec<&str> = self.said.iter().map(|said| &*said.text).collect();
                format!("`{}` said no `{part}`\n{}", self.words, said.join("\n"))
            })?;
            let text = next.text.clone();
            self.said.push(next);
            if text.contains(part) {
                return Ok(text);
            }
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has said something by now.
    pub fn has_said(&mut self, part: &str) -> bool {
        self.said.extend(self.says.try_iter());
        self.said.iter().any(|said| said.text.contains(part))
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Calls this every few milliseconds, until it has seen enough or the command has ended or is
    /// late.
    pub fn watch(&mut self, mut sees_enough: impl FnMut(&mut Running) -> bool) {
        while self.is_running() && self.begin.elapsed() < self.limit && !sees_enough(self) {
            sleep(POLL);
        }
    }

    /// Sends a signal to this process alone.
    pub fn signal(&self, name: &str) -> Res {
        Job::of(format!("kill -{name} {}", self.id())).success().map(drop)
    }

    /// SIGKILL to this process alone, and everything it had written.
    pub fn kill(mut self) -> Res<Finished> {
        self.child.kill()?;
        self.limit = Duration::MAX;
        self.finish()
    }

    /// Waits for its end and for all of its output.
    pub fn finish(self) -> Res<Finished> {
        self.finish_watched(|_| ())
    }

    /// The same, while this looks at it every few milliseconds.
    pub fn finish_watched(mut self, mut look: impl FnMut(&mut Running)) -> Res<Finished> {
        self.watch(|running| {
            look(running);
            false
        });
        let status = self.child.try_wait()?;
        let (elapsed, words) = (self.begin.elapsed(), self.words.clone());
        let Some(status) = status else {
            // The whole process group.
            let _ = Job::of(format!("kill -KILL -- -{}", self.id())).run();
            bail!("`{words}` did not end within {:?}", self.limit);
        };
        // A grandchild may hold the pipes for ever; then what came is taken.
        let patience = Instant::now() + Duration::from_secs(5);
        let left = || patience.saturating_duration_since(Instant::now());
        while let Ok(next) = self.says.recv_timeout(left()) {
            self.said.push(next);
        }
        Ok(Finished { words, status, elapsed, said: std::mem::take(&mut self.said) })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Finished {
    /// This, if the command said that it succeeded.
    pub fn success(self) -> Res<Finished> {
        if self.status.success() {
            return Ok(self);
        }
        let tail = |is_stderr| {
            let lines: Vec<&str> = self.lines(is_stderr).collect();
            lines[lines.len().saturating_sub(12)..].join("\n")
        };
        let said = [tail(false), tail(true)].join("\n");
        bail!("`{}`: {}\n{}", self.words, self.status, said.trim())
    }

    fn lines(&self, is_stderr: bool) -> impl Iterator<Item = &str> {
        let lines = self.said.iter().filter(move |said| said.is_stderr == is_stderr);
        lines.map(|said| said.text.as_str())
    }

    pub fn out_lines(&self) -> impl Iterator<Item = &str> {
        self.lines(false)
    }

    pub fn err_lines(&self) -> impl Iterator<Item = &str> {
        self.lines(true)
    }

    pub fn stdout(&self) -> String {
        self.out_lines().collect::<Vec<_>>().join("\n")
    }

    pub fn stderr(&self) -> String {
        self.err_lines().collect::<Vec<_>>().join("\n")
    }

    pub fn json(&self) -> Res<Value> {
        serde_json::from_str(&self.stdout()).with_context(|| {
            format!("`{}` printed no JSON ({})\n{}", self.words, self.status, self.stderr())
        })
    }

    pub fn seconds(&self) -> f64 {
        self.elapsed.as_secs_f64()
    }

    /// Whether it refused with this exit code, and said this on stderr.
    pub fn refuses(&self, code: i32, part: &str) -> bool {
        self.status.code() == Some(code) && !self.noted(part).is_empty()
    }

    /// The first line of stdout that contains `part`, or nothing.
    pub fn line(&self, part: &str) -> &str {
        self.out_lines().find(|line| line.contains(part)).unwrap_or_default().trim()
    }

    /// The first line of stderr that contains `part`, or nothing.
    pub fn noted(&self, part: &str) -> &str {
        self.err_lines().find(|line| line.contains(part)).unwrap_or_default().trim()
    }
}

/// Asks every few milliseconds until it holds, or gives up after so long; whether it holds.
pub fn until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    loop {
        if holds() {
            return true;
        }
        if begin.elapsed() >= limit {
            return false;
        }
        sleep(POLL);
    }
}

/// Tests that are always run, here with what they print: they have to pass, one at least.
pub fn tests(check: &Check, words: &str) -> Res<Finished> {
    let done = Job::cargo(format!("test {words}")).run()?;
    let results = done.out_lines().filter(|line| line.starts_with("test result:"));
    let ran: Vec<&str> = results.filter(|line| !line.contains(" 0 passed")).collect();
    check.judge(words, done.status.success() && !ran.is_empty(), ran.join("; "));
    miss_skipped(check, &done);
    Ok(done)
}

/// Tests that passed because they could not run (tests/support/skip.rs).
pub fn miss_skipped(check: &Check, done: &Finished) {
    let skipped = done.err_lines().filter_map(|line| line.split_once("SKIP "));
    skipped.for_each(|(_, why)| check.missing(why));
}

/// The user this process runs as.
pub fn own_user() -> Res<u32> {
    Ok(Process::myself()?.uid()?)
}

/// Every process.
pub fn processes() -> impl Iterator<Item = Process> {
    procfs::process::all_processes().into_iter().flatten().flatten()
}

/// What the kernel tells of a process by its number; nothing when it has gone.
pub fn process(id: u32) -> Option<Process> {
    Process::new(id.try_into().ok()?).ok()
}

/// Names in a folder; none where there is no folder.
pub fn names(folder: impl Into<PathBuf>) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

// Root and an ordinary user, each with a copy of the tool and a home.

/// A user of no rights on every system.
const NOBODY: u32 = 65534;

/// A user with a copy of the tool and a home, which is the bench's own.
pub struct User {
    pub id: u32,
    pub bench: Bench,
}

/// Root and an ordinary user; for who is not root himself alone.
pub fn users(bench: &Bench) -> Res<Vec<User>> {
    let own = own_user()?;
    let ids = if own == 0 { vec![0, NOBODY] } else { vec![own] };
    ids.into_iter().map(|id| User::new(bench, id)).collect()
}

impl User {
    fn new(bench: &Bench, id: u32) -> Res<User> {
        let mut own = bench.room(&format!("user-{id}/home"))?;
        own.tool = own.path("../iolens");
        let may = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        may(&own.path(""), 0o777)?;
        fs::copy(&bench.tool, &own.tool)?;
        may(&own.tool, 0o755)?;
        Ok(User { id, bench: own })
    }

    /// A program of this user, with a home and a data directory of its own.
    pub fn job(&self, program: impl AsRef<OsStr>, words: &str) -> Job {
        let (id, home) = (self.id, self.bench.path(""));
        let setpriv = match own_user().is_ok_and(|own| own == id) {
            true => "setpriv --".to_owned(),
            false => format!("setpriv --reuid={id} --regid={id} --clear-groups --"),
        };
        let job = Job::of(&setpriv).arg(program).words(words).minutes(1).directory(&home);
        // Programs of the system: those of root's own path may be root's alone.
        let job = job.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        job.env("HOME", &home).env("XDG_DATA_HOME", home.join("data"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_status_are_kept() {
        let finished = Job::shell("echo a; echo b >&2; exit 3").run().expect("it runs");
        assert_eq!(finished.status.code(), Some(3));
        assert_eq!((finished.line("a"), finished.noted("b"), finished.noted("a")), ("a", "b", ""));
        let message = finished.success().err().expect("3 is no success").to_string();
        assert!(message.contains("exit status: 3") && message.contains('b'), "{message}");
    }

    #[test]
    fn a_limit_ends_what_does_not_end() {
        let message = Job::of("tail -f /dev/null").minutes(0).run().err();
        assert!(message.is_some_and(|why| why.to_string().contains("did not end within")));
    }

    #[test]
    fn a_killed_command_leaves_what_it_said() {
        let script = "echo ready; echo more; exec tail -f /dev/null";
        let mut running = Job::shell(script).start().expect("it runs");
        running.wait_for("ready", 20).expect("it says so");
        let finished = running.kill().expect("it is killed");
        assert!(!finished.status.success());
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = Job::new("no-such-program-here").run().err();
        assert!(missing.is_some_and(|why| why.to_string().contains("no-such-program-here")));
    }
}
