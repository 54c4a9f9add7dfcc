//! A place for one test, and the binary run in it.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use iolens_model::run::RunHeader;
use iolens_store::Store;
use serde_json::Value;

use crate::sample;

/// A folder with a database and a lock that no other test has.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
}

/// How a finished command ended.
pub(crate) struct Finished {
    /// What was typed, where that is known.
    line: String,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, and returns its path as it is typed.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), content).unwrap();
        self.path(name).display().to_string()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Makes a folder, and returns its path.
    pub(crate) fn make_folder(&self, name: &str) -> PathBuf {
        std::fs::create_dir(self.path(name)).unwrap();
        self.path(name)
    }

    /// The binary with these arguments, of which `PLACE` is the folder; nothing is inherited that
    /// could matter.
    pub(crate) fn command(&self, line: &str) -> Command {
        let line = line.replace("PLACE", self.folder.path().to_str().unwrap());
        let tool = std::env::var("IOLENS_TEST_BIN")
            .unwrap_or_else(|_| env!("CARGO_BIN_EXE_iolens").to_owned());
        let line = line.replace("TOOL", &tool);
        let mut command = Command::new(tool);
        command
            .args(line.split_whitespace())
            .env("XDG_DATA_HOME", self.path("data"))
            .env("HOME", self.folder.path())
            .env("IOLENS_LOCK_DIR", self.folder.path())
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    /// Runs to the end.
    pub(crate) fn run(&self, line: &str) -> Finished {
        Finished { line: line.to_owned(), ..finished(self.command(line).output().unwrap()) }
    }

    /// Runs a line that must fail with this code and these words.
    #[track_caller]
    pub(crate) fn fails(&self, line: &str, code: i32, words: &str) -> Finished {
        let done = self.run(line).ended(code);
        done.says(words);
        done
    }

    /// The same, with no result.
    #[track_caller]
    pub(crate) fn refuses(&self, line: &str, code: i32, words: &str) {
        assert_eq!(self.fails(line, code, words).stdout, "", "{line}");
    }

    /// Runs to the end and reads stdout as JSON.
    pub(crate) fn json(&self, line: &str) -> Value {
        self.run(line).json()
    }

    /// Runs lines that must fail with this code and the words beside them.
    #[track_caller]
    pub(crate) fn fail_each<const N: usize>(&self, code: i32, all: [(&str, &str); N]) {
        all.into_iter().for_each(|(line, words)| drop(self.fails(line, code, words)));
    }

    /// Columns of the rows of a kind, as they are exported.
    pub(crate) fn rows<const N: usize>(&self, kind: &str, names: [&str; N]) -> Vec<[String; N]> {
        let csv = self.run(&format!("export last --columns all --rows {kind}")).stdout;
        let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let header = lines.next().expect("a header");
        let at = names.map(|name| header.iter().position(|column| *column == name).expect(name));
        lines.map(|row| at.map(|column| row[column].to_owned())).collect()
    }

    /// What a list has of this kind.
    pub(crate) fn listed(&self, kind: &str) -> Vec<Value> {
        list(&self.json(&format!("list {kind} --json"))[kind]).to_vec()
    }

    /// Rows of the last run, as JSON has them.
    pub(crate) fn exported(&self, kind: &str) -> Vec<Value> {
        list(&self.json(&format!("export last --format json --rows {kind}"))[kind]).to_vec()
    }

    /// The plan of a run, which is the same plan where it is read again.
    pub(crate) fn printed_plan(&self, run: &str) -> String {
        let printed = self.run(&format!("{run} --print-plan")).ended(0).stdout;
        self.write("printed.toml", &printed);
        assert_eq!(self.run("run PLACE/printed.toml --print-plan").stdout, printed, "{run}");
        printed
    }

    /// The database in its usual place, with these runs: each with a trial, and ended.
    pub(crate) fn with_runs(&self, headers: &[RunHeader]) -> Store {
        self.with_runs_in("data/iolens/iolens.db", headers)
    }

    /// The same in a file.
    pub(crate) fn with_runs_in(&self, file: &str, headers: &[RunHeader]) -> Store {
        let mut store = Store::open(&self.path(file)).unwrap();
        for header in headers {
            store.begin_run(header).unwrap();
            store.append_trial(&header.id, &sample::trial(1, 0)).unwrap();
            store.end_run(&header.id, &sample::end()).unwrap();
        }
        store
    }

    /// Runs that are stored.
    pub(crate) fn runs(&self) -> usize {
        list(&self.json("runs --json")).len()
    }

    /// Starts and hands the progress lines over as they come.
    pub(crate) fn start(&self, line: &str) -> Running {
        started(self.command(line))
    }

    /// The same in a mount namespace of its own, after some words of a shell, which
    /// exits with 77 where they fail.
    pub(crate) fn in_a_mount_namespace(&self, before: &str, line: &str) -> Command {
        let command = self.command(line);
        let script = format!("{before} || exit 77; exec \"$@\"");
        started_by(&["unshare", "--mount", "sh", "-c", &script, "sh"], &command)
    }
}

/// These words, and behind them those of a command, with its environment.
pub(crate) fn started_by(words: &[&str], inner: &Command) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null());
    command
}

/// Whether the test is root's.
pub(crate) fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

/// How many entries a folder has.
pub(crate) fn entries(folder: impl AsRef<Path>) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// The items of a list.
#[track_caller]
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

#[track_caller]
pub(crate) fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key}: {value}"))
}

pub(crate) fn started(mut command: Command) -> Running {
    Running::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

/// Whether a mount namespace with these words of a shell can be had.
pub(crate) fn may_mount(before: &str) -> bool {
    let tried = Command::new("unshare").args(["--mount", "sh", "-c", before]).output();
    tried.is_ok_and(|done| done.status.success())
}

pub(crate) fn finished(output: Output) -> Finished {
    Finished {
        line: String::new(),
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Finished {
    #[track_caller]
    pub(crate) fn assert_code(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{}: {}{}", self.line, self.stdout, self.stderr);
    }

    /// The same on the way.
    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> Finished {
        self.assert_code(code);
        self
    }

    /// Checks that these words are on stderr.
    #[track_caller]
    pub(crate) fn says(&self, words: impl AsRef<str>) -> &Finished {
        let words = words.as_ref();
        assert!(self.stderr.contains(words), "{}: no `{words}` in {}", self.line, self.stderr);
        self
    }

    /// Checks that these words are in the result.
    #[track_caller]
    pub(crate) fn prints(&self, words: impl AsRef<str>) -> &Finished {
        let words = words.as_ref();
        assert!(self.stdout.contains(words), "{}: no `{words}` in {}", self.line, self.stdout);
        self
    }

    /// The result in one line, with single blanks.
    pub(crate) fn flat(&self) -> String {
        self.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let Finished { line, stdout, stderr, .. } = self;
        serde_json::from_str(stdout).unwrap_or_else(|e| panic!("{line}: {e}: {stderr}"))
    }

    /// Checks that a run came to its end, whatever its numbers are worth: where others have
    /// the processors all trials may be unusable, which its exit code says.
    #[track_caller]
    pub(crate) fn assert_ended(&self) {
        assert!(matches!(self.code, Some(0 | 4)), "{:?}: {}", self.code, self.stderr);
    }
}

/// A command that still runs.
pub(crate) struct Running {
    pub(crate) child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Running {
    /// A process whose output is piped.
    pub(crate) fn of(mut child: Child) -> Running {
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Running { child, stderr }
    }

    /// Waits for a progress line that contains `text`.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let mut seen = String::new();
        loop {
            let mut line = String::new();
            let n = self.stderr.read_line(&mut line).unwrap();
            assert!(n > 0, "it ended before it said `{text}`: {seen}");
            if line.contains(text) {
                return line;
            }
            seen.push_str(&line);
        }
    }

    /// Process ids of what it has started, once there is something.
    pub(crate) fn programs(&self) -> Vec<u32> {
        loop {
            let programs = children(self.child.id());
            if !programs.is_empty() {
                return programs;
            }
            std::thread::yield_now();
        }
    }

    /// Process ids of the two workers, once both are there.
    pub(crate) fn workers(&self) -> Vec<u32> {
        loop {
            let workers = children(self.child.id());
            if workers.len() == 2 {
                return workers;
            }
            std::thread::yield_now();
        }
    }

    /// A worker whose threads of the trial have started: one besides those
    /// that listen to the coordinator and conduct the trial.
    pub(crate) fn worker_at_work(&self) -> u32 {
        loop {
            let at_work = |&pid: &u32| {
                let threads = waits_of_threads(pid);
                threads.len() >= 3 && threads.iter().sum::<u64>() >= WAITS
            };
            if let Some(pid) = self.workers().into_iter().find(at_work) {
                return pid;
            }
        }
    }

    /// Sends a signal to a worker and returns the line of the trial that
    /// failed. A worker may have said its last word when the signal comes, and
    /// then its trial is sound and the next one is hit.
    pub(crate) fn hit_until_it_fails(
        &mut self,
        signal: &str,
        worker: impl Fn(&Running) -> u32,
    ) -> String {
        loop {
            let pid = worker(self).to_string();
            // It may be gone already.
            let _ = Command::new("kill").args([&format!("-{signal}"), &pid]).output();
            // A pass of a trial has up to two lines.
            for _ in 0..4 {
                let line = self.wait_for("pass ");
                if line.contains("failed:") {
                    return line;
                }
            }
        }
    }

    pub(crate) fn signal(&self, signal: &str) {
        send_signal(self.child.id(), signal);
    }

    /// Interrupts it, and waits for the end.
    #[track_caller]
    pub(crate) fn interrupted(self) -> Finished {
        self.signal("INT");
        self.finish().ended(130)
    }

    /// Kills it, and waits for the end.
    pub(crate) fn killed(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end.
    pub(crate) fn finish(mut self) -> Finished {
        let mut stderr = String::new();
        let mut stdout = String::new();
        let reader = self.child.stdout.take().unwrap();
        let text = std::thread::spawn(move || {
            let mut reader = reader;
            reader.read_to_string(&mut stdout).map(|_| stdout)
        });
        self.stderr.read_to_string(&mut stderr).unwrap();
        let code = self.child.wait().unwrap().code();
        Finished { line: String::new(), code, stdout: text.join().unwrap().unwrap(), stderr }
    }
}

/// So often a worker waits in its first slices: for its other end, in each. Before the
/// first one it does a few times.
const WAITS: u64 = 30;

/// How often each thread of a process has waited, from /proc.
fn waits_of_threads(pid: u32) -> Vec<u64> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let waits = threads.filter_map(|thread| {
        let status = std::fs::read_to_string(thread.path().join("status")).ok()?;
        let count = status.lines().find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"))?;
        count.trim().parse().ok()
    });
    waits.collect()
}

/// Children of a process that do something for it, from /proc.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let list = list.unwrap_or_default();
    let all = list.split_whitespace().filter_map(|pid| pid.parse().ok());
    let guards = |pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim_end() == "guard-programs")
    };
    all.filter(|pid| !guards(pid)).collect()
}

/// Whether a child of a process has mapped a file.
pub(crate) fn a_child_has_mapped(parent: u32, path: &Path) -> bool {
    let path = path.to_str().unwrap();
    let maps = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/maps"));
    children(parent).iter().any(|pid| maps(pid).is_ok_and(|maps| maps.contains(path)))
}

/// Whether a process is there and not a zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(") ").next().unwrap_or("Z").starts_with('Z'))
}

/// Waits until these processes have ended, for a minute at most.
pub(crate) fn wait_until_gone(processes: &[u32]) {
    let begin = std::time::Instant::now();
    while processes.iter().any(|&pid| is_alive(pid)) {
        assert!(begin.elapsed().as_secs() < 60, "a process outlives its parent");
        std::thread::yield_now();
    }
}

pub(crate) fn send_signal(pid: u32, signal: &str) {
    let sent = Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).output();
    assert!(sent.unwrap().status.success(), "kill -{signal} {pid}");
}
