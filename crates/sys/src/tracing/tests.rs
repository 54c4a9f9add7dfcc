//! Programs whose calls are known, by each of the means.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal};

use super::*;
use crate::clock::monotonic_ns;
use crate::fork::{Patience, ended};
use crate::skip;

#[macro_use]
#[path = "../../../../tests/support/raw_syscalls.rs"]
mod raw_syscalls;

const MINUTE_NS: u64 = 60_000_000_000;

/// How a test traces.
struct By {
    name: &'static str,
    /// `None` where there are no tracepoints.
    means: Option<TraceMeans>,
}

impl By {
    fn ptrace() -> By {
        By { name: "tracing::tests::by_ptrace", means: Some(TraceMeans::Ptrace) }
    }

    fn tracepoints() -> By {
        let numbers = raw_syscalls::numbers();
        let means = numbers.map(|[enter, exit]| CallTracepoints { enter, exit });
        By { name: "tracing::tests::by_tracepoints", means: means.map(TraceMeans::Tracepoints) }
    }

    fn skip(&self, test: &str, why: &str) {
        skip::note(&format!("{}::{test}", self.name), why);
    }

    fn start(&self, test: &str, job: &Job<'_>) -> Option<TracedProgram> {
        let Some(means) = self.means else {
            self.skip(test, "no numbers of tracepoints");
            return None;
        };
        match job.start(means) {
            Err(why @ (TraceError::Seize(_) | TraceError::Record(_))) => {
                self.skip(test, &why.to_string());
                None
            }
            traced => Some(traced.unwrap()),
        }
    }

    fn run(&self, test: &str, words: &[&str]) -> Option<Seen> {
        Some(seen(&mut self.start(test, &Job::of(words))?))
    }
}

/// What is started.
struct Job<'a> {
    words: &'a [&'a str],
    limit_ns: u64,
    output: File,
    cancel: OwnedFd,
}

impl Job<'_> {
    fn of<'a>(words: &'a [&'a str]) -> Job<'a> {
        // Nobody writes to it, and it has no end as long as the other end is open: for ever.
        let (cancel, other) = crate::pipe::open(1).unwrap();
        std::mem::forget(other);
        let output = File::options().write(true).open("/dev/null").unwrap();
        Job { words, limit_ns: MINUTE_NS, output, cancel }
    }

    fn start(&self, means: TraceMeans) -> Result<TracedProgram, TraceError> {
        let errors = crate::file::in_folder(&std::env::temp_dir()).unwrap();
        let words: Vec<_> = self.words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let program = Program::new(self.words[0].as_ref(), &words, errors).unwrap();
        let null = File::open("/dev/null").unwrap();
        let files = [(0, null.as_fd()), (1, self.output.as_fd())];
        let deadline_ns = monotonic_ns().saturating_add(self.limit_ns);
        TracedProgram::start(&program, &files, deadline_ns, self.cancel.as_fd(), means)
    }
}

/// Calls by name until a program's end, its status, and why it was killed.
type Seen = (HashMap<&'static str, u64>, ExitStatus, Option<TraceKill>);

fn seen(traced: &mut TracedProgram) -> Seen {
    let mut seen = HashMap::new();
    loop {
        match traced.next_event().unwrap() {
            TraceEvent::Enters(call) => *seen.entry(call.name().unwrap()).or_default() += 1,
            TraceEvent::Returns { .. } | TraceEvent::Quiet => {}
            TraceEvent::Ended(status) => {
                return (seen, ExitStatus::from_raw(status), traced.killed());
            }
        }
    }
}

/// This program, to run one of its tests.
fn itself(test: &str) -> [String; 3] {
    let own = std::env::current_exe().unwrap().into_os_string().into_string().unwrap();
    [own, "--exact".to_owned(), format!("tracing::tests::{test}")]
}

by_each! {
    every_call_of_a_program_and_its_children_is_seen
    threads_are_followed
    signals_arrive
    what_is_stopped_stays_so
    one_that_takes_too_long_is_killed_with_what_it_started
    one_that_is_cancelled_is_killed
    one_that_is_dropped_is_gone
    one_whose_tracer_ends_is_killed
    what_a_call_returned_is_told_with_it
    what_cannot_be_executed_is_an_error_and_not_an_end
}

fn every_call_of_a_program_and_its_children_is_seen(by: &By, test: &str) {
    let seven = ["kill -0 $$"; 7].join("; ");
    let script = format!("{seven}; ({seven}; ({seven}); exit 0) & wait; exit 3");
    let Some((seen, status, killed)) = by.run(test, &["/bin/sh", "-c", &script]) else { return };
    assert_eq!((seen["kill"], seen["exit_group"]), (21, 3), "{seen:?}");
    assert_eq!((status.code(), killed), (Some(3), None));
}

fn threads_are_followed(by: &By, test: &str) {
    let words = itself("two_threads_make_fifty_calls_each");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some((seen, status, _)) = by.run(test, &words) else { return };
    assert!(status.success(), "{status}");
    assert_eq!(seen["getppid"], 100, "{seen:?}");
}

#[test]
fn two_threads_make_fifty_calls_each() {
    // Within a pid namespace of its own its parent is 0.
    let calls = || (0..50).for_each(|_| assert!(crate::calls::parent_id() >= 0));
    let threads = [std::thread::spawn(calls), std::thread::spawn(calls)];
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// By a child: the first process of a namespace ends by no signal of its own.
fn signals_arrive(by: &By, test: &str) {
    let child = "trap 'kill -0 $$' USR1; kill -USR1 $$; kill -TERM $$";
    let script = format!("sh -c \"{}\"; exit $?", child.replace('$', "\\$"));
    let Some((seen, status, _)) = by.run(test, &["/bin/sh", "-c", &script]) else { return };
    assert_eq!((seen["kill"], status.code()), (3, Some(128 + libc::SIGTERM)), "{seen:?}");
}

fn what_is_stopped_stays_so(by: &By, test: &str) {
    let words = itself("a_child_that_is_stopped_goes_on_when_it_is_told");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some((seen, status, _)) = by.run(test, &words) else { return };
    assert!(status.success(), "{status}");
    assert_eq!(seen["kill"], 3, "{seen:?}");
}

#[test]
fn a_child_that_is_stopped_goes_on_when_it_is_told() {
    use rustix::process::{WaitOptions, kill_process, waitpid};
    let mut sh = std::process::Command::new("/bin/sh");
    let mut child = sh.args(["-c", "kill -STOP $$; kill -0 $$"]).spawn().unwrap();
    let id = Pid::from_raw(child.id().cast_signed()).unwrap();
    let (_, status) = waitpid(Some(id), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(status.stopped(), "{status:?}");
    kill_process(id, Signal::CONT).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Whoever is left has the output open.
fn one_that_takes_too_long_is_killed_with_what_it_started(by: &By, test: &str) {
    let script = "setsid sh -c \"trap '' TERM HUP; while :; do :; done\" & wait";
    let (output, given) = crate::pipe::open(1).unwrap();
    let words = ["/bin/sh", "-c", script];
    let job = Job { limit_ns: 300_000_000, output: given.into(), ..Job::of(&words) };
    let Some(mut traced) = by.start(test, &job) else { return };
    let (_, status, killed) = seen(&mut traced);
    assert_eq!((status.signal(), killed), (Some(libc::SIGKILL), Some(TraceKill::Overdue)));
    drop((traced, job));
    assert_eq!(rustix::io::read(&output, &mut [0; 1]), Ok(0));
}

fn one_that_is_cancelled_is_killed(by: &By, test: &str) {
    let (cancel, other) = crate::pipe::open(1).unwrap();
    let words = ["/bin/sh", "-c", "while :; do :; done"];
    let Some(mut traced) = by.start(test, &Job { cancel, ..Job::of(&words) }) else { return };
    drop(other);
    assert_eq!(seen(&mut traced).2, Some(TraceKill::Cancelled));
}

fn one_that_is_dropped_is_gone(by: &By, test: &str) {
    let script = "while :; do :; done & while :; do kill -0 $$; done";
    let Some(mut traced) = by.start(test, &Job::of(&["/bin/sh", "-c", script])) else { return };
    let name = |event| match event {
        TraceEvent::Enters(call) => call.name(),
        _ => None,
    };
    while name(traced.next_event().unwrap()) != Some("kill") {}
    drop(traced);
    assert_eq!(ended(Patience::Looks), Err(Errno::from_raw(libc::ECHILD)));
}

/// As when all of iolens is killed: nobody drops anything.
fn one_whose_tracer_ends_is_killed(by: &By, test: &str) {
    let (output, given) = crate::pipe::open(1).unwrap();
    let has_begun = std::thread::scope(|scope| {
        let tracer = scope.spawn(|| {
            let words = ["/bin/sh", "-c", "while :; do :; done & while :; do :; done"];
            let job = Job { output: given.into(), ..Job::of(&words) };
            by.start(test, &job).map(std::mem::forget).is_some()
        });
        tracer.join().unwrap()
    });
    if has_begun {
        assert_eq!(rustix::io::read(&output, &mut [0; 1]), Ok(0));
    }
}

fn what_a_call_returned_is_told_with_it(by: &By, test: &str) {
    let words = ["/bin/sh", "-c", "echo seven; kill -0 2147483647; echo nine"];
    let Some(mut traced) = by.start(test, &Job::of(&words)) else { return };
    let mut told = Vec::new();
    loop {
        match traced.next_event().unwrap() {
            TraceEvent::Returns { call: Some(made), value } => match made.call.name() {
                Some(name @ "kill") => told.push((name, value)),
                Some(name @ "write") if made.arguments[0] == 1 => told.push((name, value)),
                _ => {}
            },
            TraceEvent::Ended(_) => break,
            _ => {}
        }
    }
    assert_eq!(told, [("write", Some(6)), ("kill", None), ("write", Some(5))]);
}

fn what_cannot_be_executed_is_an_error_and_not_an_end(by: &By, test: &str) {
    let Some(means) = by.means else { return by.skip(test, "no numbers of tracepoints") };
    for (path, why) in [("/no/such/program", Errno::ENOENT), ("/", Errno::EACCES)] {
        match Job::of(&[path]).start(means).map(drop) {
            Err(refused @ (TraceError::Seize(_) | TraceError::Record(_))) => {
                return by.skip(test, &refused.to_string());
            }
            result => assert_eq!(result, Err(TraceError::Start(why)), "{path}"),
        }
    }
}

/// More than can be read may be made: then that is said, and nothing is counted.
#[test]
fn no_record_is_missed_without_a_word() {
    let by = By { name: "tracing::tests", ..By::tracepoints() };
    let test = "no_record_is_missed_without_a_word";
    let words = ["/bin/dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=100000"];
    let Some(mut traced) = by.start(test, &Job::of(&words)) else { return };
    let mut written = 0;
    loop {
        match traced.next_event() {
            Ok(TraceEvent::Returns { call: Some(made), value }) if made.arguments[0] == 1 => {
                written += u64::from((made.call.name(), value) == (Some("write"), Some(1)));
            }
            Ok(TraceEvent::Ended(_)) => return assert_eq!(written, 100_000),
            Ok(_) => {}
            Err(why) => return assert!(matches!(why, TraceError::Lost(1..)), "{why}"),
        }
    }
}

#[test]
fn a_program_of_another_kind_is_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small");
    // Its class is that of 32 bits.
    let mut header = [0u8; 64];
    header[..5].copy_from_slice(b"\x7fELF\x01");
    std::fs::write(&path, header).unwrap();
    let means = TraceMeans::Tracepoints(CallTracepoints { enter: 0, exit: 0 });
    let started = Job::of(&[path.to_str().unwrap()]).start(means).map(drop);
    assert_eq!(started, Err(TraceError::Record(Errno::from_raw(libc::ENOEXEC))));
}
