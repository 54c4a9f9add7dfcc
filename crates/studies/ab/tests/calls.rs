//! Counts of programs that make a known number of calls: this one, started again as
//! [`program`], and the shell.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use iolens_ab::calls::{CALLS_TRIALS, CountedCalls, count_calls_of_command, count_calls_of_loop};
use iolens_ab::calls_error::{CallsError, CallsStep};
use iolens_model::ab::{AbCalls, AbCallsBy};
use iolens_sys::launch::Program;
use iolens_sys::perf_event::calls::CallTracepoints;

#[path = "../../../../tests/support/skip.rs"]
mod skip;

#[macro_use]
#[path = "../../../../tests/support/raw_syscalls.rs"]
mod raw_syscalls;

const MINUTE: Duration = Duration::from_secs(60);

/// What a program does is in this variable: a word, and a number.
const WORK: &str = "IOLENS_TEST_WORK";

/// The program: not a test, which it is only because nothing else in this file is started.
#[test]
fn program() {
    let Ok(work) = std::env::var(WORK) else { return };
    let (work, amount) = work.split_once(' ').unwrap();
    let amount: u32 = amount.parse().unwrap();
    let file = File::open("/proc/self/exe").unwrap();
    let null = File::options().write(true).open("/dev/null").unwrap();
    let zero = File::open("/dev/zero").unwrap();
    let preads = || (0..amount).for_each(|at| file.read_exact_at(&mut [0; 64], at.into()).unwrap());
    assert!(work != "dies-early", "as it should");
    let apart = |number| format!("/dev/fd/{number}");
    let (requests, mut answers): (Box<dyn BufRead>, Box<dyn Write>) = match work {
        "apart" => (
            Box::new(BufReader::new(File::open(apart(3)).unwrap())),
            Box::new(File::options().write(true).open(apart(4)).unwrap()),
        ),
        _ => (Box::new(std::io::stdin().lock()), Box::new(std::io::stdout())),
    };
    // The answer is one call.
    let mut say = |line: &str| answers.write_all(line.as_bytes()).unwrap();
    say(match work {
        "talks" => "ready-made\nnothing\nready unit=read\n",
        "prepares" => "\nready prepare\n",
        _ => "\nready unit=read\n",
    });
    for line in requests.lines() {
        let line = line.unwrap();
        let is_work = !line.starts_with("prepare ");
        for _ in 0..line.trim_start_matches("prepare ").parse::<u64>().unwrap() {
            match work {
                "prepares" if is_work => {
                    (0..amount).for_each(|_| null.write_all_at(b"0", 0).unwrap())
                }
                "writes" => (0..amount).for_each(|_| null.write_all_at(b"0123456789", 0).unwrap()),
                "blocks" => drop(file.read_at(&mut vec![0; amount as usize], 0).unwrap()),
                "prints" => (0..amount).for_each(|_| say("row\n")),
                "copies" => {
                    let mut block = vec![0; amount as usize];
                    (&zero).read_exact(&mut block).unwrap();
                    (&null).write_all(&block).unwrap();
                }
                "threads" => std::thread::scope(|scope| drop(scope.spawn(preads))),
                "children" => {
                    let mut child = std::process::Command::new("/bin/sh");
                    let ended = child.args(["-c", "kill -0 $$; kill -0 $$"]).status();
                    assert!(ended.unwrap().success());
                }
                "dies" => panic!("as it should"),
                "hangs" => loop {
                    std::hint::spin_loop();
                },
                "says" => say("error no such table\n"),
                "apart" => {
                    preads();
                    println!("ok, it prints what it likes");
                }
                _ => preads(),
            }
        }
        say(if work == "talks" { "okay\nok sum=1f\n" } else { "ok sum=1f\n" });
    }
}

fn this_program(work: &str) -> Program {
    let own = std::env::current_exe().unwrap();
    let words = ["program", "--exact", "program", "--nocapture", "--test-threads=2"];
    let words = words.map(|word| word.as_bytes().to_vec());
    let errors = tempfile::tempfile().unwrap();
    Program::with(&own, &words, errors, &[(WORK, work), ("RUST_BACKTRACE", "0")]).unwrap()
}

/// How a test counts.
struct By {
    name: &'static str,
    by: AbCallsBy,
    tracepoints: Option<CallTracepoints>,
}

impl By {
    fn ptrace() -> By {
        By { name: "by_ptrace", by: AbCallsBy::Ptrace, tracepoints: None }
    }

    fn tracepoints() -> By {
        let numbers = raw_syscalls::numbers();
        let tracepoints = numbers.map(|[enter, exit]| CallTracepoints { enter, exit });
        By { name: "by_tracepoints", by: AbCallsBy::Tracepoints, tracepoints }
    }

    fn skip<T>(&self, test: &str, why: &str) -> Option<T> {
        skip::note(&format!("{}::{test}", self.name), why);
        None
    }

    /// `None` where calls may not be counted so, which is noted for the test of this name.
    fn allowed<T>(
        &self,
        test: &str,
        count: impl FnOnce(Option<CallTracepoints>) -> Result<T, CallsError>,
    ) -> Option<Result<T, CallsError>> {
        if self.by == AbCallsBy::Tracepoints && self.tracepoints.is_none() {
            return self.skip(test, "no numbers of tracepoints");
        }
        match count(self.tracepoints) {
            Err(why @ CallsError::Refused { .. }) => self.skip(test, &why.to_string()),
            counted => Some(counted),
        }
    }

    fn count(&self, test: &str, work: &str, operations: u64, limit: Duration) -> Option<Counted> {
        self.allowed(test, |tracepoints| {
            let mut program = this_program(work);
            count_calls_of_loop(&mut program, operations, limit, tracepoints, &|| false)
        })
    }
}

by_each! {
    one_pread_more_is_exactly_one
    bytes_are_those_of_each_call_and_not_those_of_the_protocol
    lines_of_the_program_are_passed_over
    a_program_may_speak_apart_from_its_output_and_prepare_itself
    threads_and_children_are_followed
    what_goes_wrong_is_said_with_its_step
    answers_by_a_descriptor_that_is_another_now_are_answers
    calls_of_a_whole_command_are_those_of_one_run
}

type Counted = Result<CountedCalls, CallsError>;

fn per_operation(counted: &CountedCalls, name: &str) -> f64 {
    let calls = counted.calls.iter().find(|calls| calls.name == name);
    calls.map_or(0.0, AbCalls::per_operation)
}

/// Every name whose calls grow with the operations, with its calls and bytes per operation.
fn growing(counted: &CountedCalls) -> Vec<(&str, f64, f64)> {
    let all = counted.calls.iter();
    all.map(|calls| (calls.name.as_str(), calls.per_operation(), calls.bytes_per_operation()))
        .filter(|&(_, calls, bytes)| calls != 0.0 || bytes != 0.0)
        .collect()
}

fn one_pread_more_is_exactly_one(by: &By, test: &str) {
    for (work, preads) in [("preads 20", 20.0), ("preads 21", 21.0)] {
        for _ in 0..CALLS_TRIALS {
            let Some(counted) = by.count(test, work, 20, MINUTE) else { return };
            let counted = counted.unwrap();
            assert_eq!(counted.by, by.by);
            let expect = [("pread64", preads, 64.0 * preads)];
            assert_eq!(growing(&counted), expect, "the protocol's own calls drop out");
        }
    }
}

fn bytes_are_those_of_each_call_and_not_those_of_the_protocol(by: &By, test: &str) {
    for (work, expect) in [
        ("writes 3", ("pwrite64", 3.0, 30.0)),
        ("blocks 4096", ("pread64", 1.0, 4096.0)),
        ("blocks 0", ("pread64", 1.0, 0.0)),
        ("prints 5", ("write", 5.0, 20.0)),
        // Its lines are read and written by calls of the same names as what it works on.
        ("copies 4096", ("read", 1.0, 4096.0)),
    ] {
        // Nine operations have a shorter request than 99.
        let Some(counted) = by.count(test, work, 9, MINUTE) else { return };
        let counted = counted.unwrap();
        let found = growing(&counted);
        assert!(found.contains(&expect), "{work}: {found:?}");
        if !work.starts_with("copies") {
            assert_eq!(found.len(), 1, "{work}: {found:?}");
            continue;
        }
        assert!(found.contains(&("write", 1.0, 4096.0)), "{found:?}");
        let read = counted.calls.iter().find(|calls| calls.name == "read").unwrap();
        assert_eq!(read.bytes, Some([9 * 4096, 99 * 4096]), "{read:?}");
    }
}

fn lines_of_the_program_are_passed_over(by: &By, test: &str) {
    let Some(talks) = by.count(test, "talks 2", 5, MINUTE) else { return };
    let talks = talks.unwrap();
    assert_eq!(per_operation(&talks, "pread64"), 2.0);
    let write = talks.calls.iter().find(|calls| calls.name == "write").unwrap();
    // It writes `okay` before each answer.
    assert_eq!(write.bytes, Some([5, 5]));
}

fn a_program_may_speak_apart_from_its_output_and_prepare_itself(by: &By, test: &str) {
    let Some(apart) = by.count(test, "apart 5", 3, MINUTE) else { return };
    let apart = apart.unwrap();
    assert_eq!(growing(&apart), [("pread64", 5.0, 320.0), ("write", 1.0, 28.0)]);
    let Some(prepares) = by.count(test, "prepares 4", 3, MINUTE) else { return };
    let prepares = prepares.unwrap();
    assert_eq!(per_operation(&prepares, "pwrite64"), 4.0);
    assert_eq!(per_operation(&prepares, "pread64"), 0.0, "those are not in its slices");
}

fn threads_and_children_are_followed(by: &By, test: &str) {
    let Some(threads) = by.count(test, "threads 7", 3, MINUTE) else { return };
    let threads = threads.unwrap();
    let preads = threads.calls.iter().find(|calls| calls.name == "pread64").unwrap();
    assert_eq!((preads.per_operation(), preads.bytes_per_operation()), (7.0, 448.0));
    let Some(children) = by.count(test, "children 0", 2, MINUTE) else { return };
    let children = children.unwrap();
    assert_eq!(per_operation(&children, "kill"), 2.0, "{children:?}");
    assert_eq!(per_operation(&children, "execve"), 1.0);
}

fn what_goes_wrong_is_said_with_its_step(by: &By, test: &str) {
    let fails = |work, limit| by.count(test, work, 1, limit).map(Result::unwrap_err);
    let Some(early) = fails("dies-early 0", MINUTE) else { return };
    assert_eq!(early, CallsError::Ended { step: CallsStep::SetUp, status: 101 << 8 });
    // The first slice is the one that warms up, as large as the last.
    let step = CallsStep::Slice(11);
    assert_eq!(fails("dies 0", MINUTE), Some(CallsError::Ended { step, status: 101 << 8 }));
    let line = "error no such table".to_owned();
    assert_eq!(fails("says 0", MINUTE), Some(CallsError::Said { step, line }));
    let limit = Duration::from_millis(500);
    match fails("hangs 1", limit) {
        // On a machine that is too busy it may not have come so far.
        Some(CallsError::Overdue { step: CallsStep::SetUp | CallsStep::Slice(11), .. }) => {}
        other => panic!("{other:?}"),
    }
    let closes = ["sh", "-c", "echo ready; exec >&-; while :; do :; done"];
    let closes = closes.map(|word| word.as_bytes().to_vec());
    let errors = tempfile::tempfile().unwrap();
    let mut closes = Program::new("/bin/sh".as_ref(), &closes, errors).unwrap();
    let limit = Duration::from_millis(500);
    let closed = count_calls_of_loop(&mut closes, 1, limit, by.tracepoints, &|| false);
    match closed.unwrap_err() {
        CallsError::Closed { .. } | CallsError::Overdue { step: CallsStep::SetUp, .. } => {}
        other => panic!("{other:?}"),
    }
    let mut hangs = this_program("hangs 0");
    let endless = count_calls_of_loop(&mut hangs, 1, MINUTE, by.tracepoints, &|| true);
    assert_eq!(endless, Err(CallsError::Interrupted));
}

/// The shell gives its output back after each line: who looks later finds another file there.
fn answers_by_a_descriptor_that_is_another_now_are_answers(by: &By, test: &str) {
    const SCRIPT: &str = "exec 8>&1 >/dev/null; echo ready >&8; \
         while read n; do \
         while [ $n -gt 0 ]; do n=$((n - 1)); kill -0 $$; done; echo ok >&8; done";
    let words = ["sh", "-c", SCRIPT].map(|word| word.as_bytes().to_vec());
    let errors = tempfile::tempfile().unwrap();
    let mut sh = Program::new("/bin/sh".as_ref(), &words, errors).unwrap();
    let counted = by.allowed(test, |tracepoints| {
        count_calls_of_loop(&mut sh, 3, MINUTE, tracepoints, &|| false)
    });
    let Some(counted) = counted else { return };
    assert_eq!(per_operation(&counted.unwrap(), "kill"), 1.0);
}

fn calls_of_a_whole_command_are_those_of_one_run(by: &By, test: &str) {
    let null = File::options().read(true).write(true).open("/dev/null").unwrap();
    let run = |script: &str, limit| {
        let words = ["sh", "-c", script].map(|word| word.as_bytes().to_vec());
        let mut sh =
            Program::new("/bin/sh".as_ref(), &words, tempfile::tempfile().unwrap()).unwrap();
        let mut ready = || Ok([null.try_clone().unwrap(), null.try_clone().unwrap()]);
        by.allowed(test, |tracepoints| {
            count_calls_of_command(&mut sh, &mut ready, limit, tracepoints, &|| false)
        })
    };
    let script = "echo 0123; kill -0 $$; kill -0 $$; (kill -0 $$); exit 3";
    let Some(counted) = run(script, MINUTE) else { return };
    let (counted, status) = counted.unwrap();
    assert_eq!(ExitStatus::from_raw(status).code(), Some(3));
    let kill = counted.calls.iter().find(|calls| calls.name == "kill").unwrap();
    assert_eq!((kill.calls, kill.operations), ([0, 3], [0, 1]));
    assert_eq!(kill.bytes, None);
    let write = counted.calls.iter().find(|calls| calls.name == "write").unwrap();
    assert_eq!((write.per_operation(), write.bytes), (1.0, Some([0, 5])));
    let limit = Duration::from_millis(50);
    let endless = run("while :; do :; done", limit);
    assert_eq!(endless, Some(Err(CallsError::Overdue { step: CallsStep::Run, limit })));
}

/// No kernel has these tracepoints, so the command is run again, by ptrace.
#[test]
fn what_comes_before_a_run_comes_before_each() {
    let words = ["cat"].map(|word| word.as_bytes().to_vec());
    let errors = tempfile::tempfile().unwrap();
    let mut cat = Program::new("/bin/cat".as_ref(), &words, errors).unwrap();
    let mut times = 0;
    let mut ready = || {
        times += 1;
        let mut input = tempfile::tempfile().unwrap();
        input.write_all(b"0123").unwrap();
        input.rewind().unwrap();
        Ok([input, tempfile::tempfile().unwrap()])
    };
    let none = Some(CallTracepoints { enter: u64::MAX, exit: u64::MAX });
    let (counted, _) = match count_calls_of_command(&mut cat, &mut ready, MINUTE, none, &|| false) {
        Err(why @ CallsError::Refused { .. }) => {
            return skip::note("what_comes_before_a_run_comes_before_each", &why.to_string());
        }
        counted => counted.unwrap(),
    };
    assert_eq!((counted.by, times), (AbCallsBy::Ptrace, 2));
    // By write(2) or by one that needs no buffer.
    let has_copied = |calls: &AbCalls| calls.name != "read" && calls.bytes == Some([0, 4]);
    assert!(counted.calls.iter().any(has_copied), "{counted:?}");
}
