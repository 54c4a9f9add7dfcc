//! Counts of programs that make a known number of calls: this one, started again as
//! [`program`], and the shell.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use iolens_ab::call_changes::{ChangePerOperation, call_changes, change_of_all_calls};
use iolens_ab::calls::{
    CALLS_TRIALS, CallsRemark, CountedCalls, calls_per_operation, count_calls_of_command,
    count_calls_of_loop,
};
use iolens_ab::calls_error::{CallsError, CallsStep};
use iolens_sys::launch::Program;

#[path = "../../../../tests/support/skip.rs"]
mod skip;

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

/// `None` where nothing may be traced, which is noted for the test of this name.
fn count(test: &str, work: &str, operations: u64, limit: Duration) -> Option<Counted> {
    match count_calls_of_loop(&mut this_program(work), operations, limit, &|| false) {
        Err(why @ CallsError::Refused { .. }) => {
            skip::note(test, &why.to_string());
            None
        }
        counted => Some(counted),
    }
}

type Counted = Result<CountedCalls, CallsError>;

fn per_operation(counted: &CountedCalls, name: &str) -> f64 {
    let calls = counted.calls.iter().find(|calls| calls.name == name);
    calls.map_or(0.0, calls_per_operation)
}

#[test]
fn one_pread_more_is_exactly_one() {
    let test = "one_pread_more_is_exactly_one";
    let trial = |work| count(test, work, 20, MINUTE).map(Result::unwrap);
    let mut trials = Vec::new();
    for work in ["preads 20", "preads 21"] {
        for _ in 0..CALLS_TRIALS {
            let Some(counted) = trial(work) else { return };
            trials.push(counted);
        }
    }
    let calls: Vec<&[_]> = trials.iter().map(|counted| &counted.calls[..]).collect();
    let changes = call_changes(&calls[..CALLS_TRIALS], &calls[CALLS_TRIALS..]);
    let changed: Vec<_> = changes.iter().filter(|one| !one.change.is_none()).collect();
    let [changed] = changed[..] else { panic!("{changed:?}") };
    let one_more = ChangePerOperation::Exact { from: 20.0, to: 21.0 };
    assert_eq!((changed.name.as_str(), changed.change), ("pread64", one_more));
    let all = change_of_all_calls(&calls[..CALLS_TRIALS], &calls[CALLS_TRIALS..]);
    assert_eq!(all, Some(one_more), "the protocol's own calls drop out");
    let bytes = trials.iter().map(|counted| counted.bytes.read_per_operation());
    assert_eq!(bytes.collect::<Vec<f64>>(), [1280.0, 1280.0, 1344.0, 1344.0]);
    assert!(trials.iter().all(|counted| counted.bytes.written_per_operation() == 0.0));
}

#[test]
fn bytes_written_are_counted_and_the_programs_lines_are_passed_over() {
    let test = "bytes_written_are_counted_and_the_programs_lines_are_passed_over";
    let Some(written) = count(test, "writes 3", 5, MINUTE) else { return };
    let written = written.unwrap();
    assert_eq!(per_operation(&written, "pwrite64"), 3.0);
    assert_eq!(written.bytes.written_per_operation(), 30.0);
    assert_eq!(written.bytes.read_per_operation(), 0.0);
    let Some(talks) = count(test, "talks 2", 5, MINUTE) else { return };
    assert_eq!(per_operation(&talks.unwrap(), "pread64"), 2.0);
}

#[test]
fn a_program_may_speak_apart_from_its_output_and_prepare_itself() {
    let test = "a_program_may_speak_apart_from_its_output_and_prepare_itself";
    let Some(apart) = count(test, "apart 5", 3, MINUTE) else { return };
    let apart = apart.unwrap();
    assert_eq!((per_operation(&apart, "pread64"), per_operation(&apart, "write")), (5.0, 1.0));
    let Some(prepares) = count(test, "prepares 4", 3, MINUTE) else { return };
    let prepares = prepares.unwrap();
    assert_eq!(per_operation(&prepares, "pwrite64"), 4.0);
    assert_eq!(per_operation(&prepares, "pread64"), 0.0, "those are not in its slices");
}

#[test]
fn threads_and_children_are_followed() {
    let test = "threads_and_children_are_followed";
    let Some(threads) = count(test, "threads 7", 3, MINUTE) else { return };
    assert_eq!(per_operation(&threads.unwrap(), "pread64"), 7.0);
    let Some(children) = count(test, "children 0", 2, MINUTE) else { return };
    let children = children.unwrap();
    assert_eq!(per_operation(&children, "kill"), 2.0, "{children:?}");
    assert_eq!(per_operation(&children, "execve"), 1.0);
}

#[test]
fn what_goes_wrong_is_said_with_its_step() {
    let test = "what_goes_wrong_is_said_with_its_step";
    let fails = |work, limit| count(test, work, 1, limit).map(Result::unwrap_err);
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
    let closed = count_calls_of_loop(&mut closes, 1, Duration::from_millis(500), &|| false);
    match closed.unwrap_err() {
        CallsError::Closed { .. } | CallsError::Overdue { step: CallsStep::SetUp, .. } => {}
        other => panic!("{other:?}"),
    }
    let endless = count_calls_of_loop(&mut this_program("hangs 0"), 1, MINUTE, &|| true);
    assert_eq!(endless, Err(CallsError::Interrupted));
}

#[test]
fn calls_of_a_whole_command_are_those_of_one_run() {
    let test = "calls_of_a_whole_command_are_those_of_one_run";
    let null = File::options().read(true).write(true).open("/dev/null").unwrap();
    let run = |script: &str, limit| {
        let words = ["sh", "-c", script].map(|word| word.as_bytes().to_vec());
        let mut sh =
            Program::new("/bin/sh".as_ref(), &words, tempfile::tempfile().unwrap()).unwrap();
        count_calls_of_command(&mut sh, null.as_fd(), null.as_fd(), limit, &|| false)
    };
    let (counted, status) = match run("kill -0 $$; kill -0 $$; (kill -0 $$); exit 3", MINUTE) {
        Err(why @ CallsError::Refused { .. }) => return skip::note(test, &why.to_string()),
        counted => counted.unwrap(),
    };
    assert_eq!(ExitStatus::from_raw(status).code(), Some(3));
    let kill = counted.calls.iter().find(|calls| calls.name == "kill").unwrap();
    assert_eq!((kill.calls, kill.operations), ([0, 3], [0, 1]));
    assert_eq!(counted.remarks, [] as [CallsRemark; 0]);
    let limit = Duration::from_millis(50);
    let endless = run("while :; do :; done", limit);
    assert_eq!(endless, Err(CallsError::Overdue { step: CallsStep::Run, limit }));
}
