//! System calls of a program per operation, by name.
//!
//! They are counted in trials of their own: by the tracepoints `raw_syscalls` for who may see them,
//! else by ptrace(2), which needs no privilege and makes a program many times slower. Threads of a
//! program that is so much slower meet elsewhere than they do untraced, and make other calls of
//! futex(2); a runtime's calls of every so many milliseconds (nanosleep(2) of Go's sysmon) are more
//! for each operation. Where the program makes more calls than can be read from the tracepoints, it
//! is run once more, by ptrace.
//!
//! A program that speaks the loop protocol does N and 11 N operations, and what is counted is the
//! slope: what each slice costs in calls beside its operations (reading the request, writing the
//! answer) is the same in both and drops out. What the C library does without the kernel (the vDSO,
//! clock_gettime(2)) is no call, and work that io_uring does is not seen. Calls that differ from
//! trial to trial are never exact.
//!
//! The bytes of a call are what read(2), write(2) and their kin returned. Lines of the protocol
//! are longer in one slice than in the other, so they are known by their pipes and left out.

mod conversation;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use conversation::{Conversation, Spoken};
use iolens_harness::tracefs;
use iolens_model::ab::{AbByteWay, AbCalls, AbCallsBy, AbMode};
use iolens_programs::{Seed, environment};
use iolens_sys::clock::monotonic_ns;
use iolens_sys::errno::Errno;
use iolens_sys::file::create::Identity;
use iolens_sys::launch::Program;
use iolens_sys::perf_event::calls::CallTracepoints;
use iolens_sys::proc::Root;
use iolens_sys::tracing::{
    CallInTask, TraceError, TraceEvent, TraceKill, TraceMeans, TracedCall, TracedProgram,
};
use iolens_sys::{file, pipe};

use crate::calls_error::{CallsError, CallsStep};
use crate::commands::Stage;
use crate::setup::{AbExit, AbSetup};
use crate::trial::Draws;

/// Trials of an arm that count: one alone does not show whether its counts are always the same.
pub const CALLS_TRIALS: usize = 2;

/// Operations of the larger slice, in those of the smaller.
const LARGER: u64 = 11;

/// How often it is asked whether the user wants an end.
const LOOK: Duration = Duration::from_millis(250);

/// What was counted in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedCalls {
    /// Calls by name, sorted by it.
    pub calls: Vec<AbCalls>,
    /// By what.
    pub by: AbCallsBy,
}

/// The tracepoints of system calls; `None` where this user cannot have their numbers.
pub fn call_tracepoints(root: &Root) -> Option<CallTracepoints> {
    let number = |side| tracefs::number(root, &format!("raw_syscalls:sys_{side}")).ok();
    Some(CallTracepoints { enter: number("enter")?, exit: number("exit")? })
}

/// Counts the calls of a program that speaks the loop protocol, on its standard input and output
/// or on the descriptors 3 and 4, by the tracepoints if there are some and they suffice. It is
/// killed, with all that it has started, if all of it takes longer than the limit, and if the user
/// wants an end, after which is asked four times a second.
///
/// Errors: see [`CallsError`].
///
/// # Panics
/// For no operations.
pub fn count_calls_of_loop(
    program: &mut Program,
    operations: u64,
    limit: Duration,
    tracepoints: Option<CallTracepoints>,
    interrupted: &dyn Fn() -> bool,
) -> Result<CountedCalls, CallsError> {
    assert!(operations > 0, "a slice has operations");
    let both = [operations, operations.saturating_mul(LARGER)];
    let nothing = &mut || Ok(());
    by_what_suffices(tracepoints, interrupted, nothing, move |(), means, cancel| {
        let mut conversation = Conversation::begin(program, limit, means, cancel)?;
        conversation.await_ready()?;
        conversation.settle()?;
        // It grows its buffers and fills its caches now.
        conversation.slice(both[1])?;
        let counts = [conversation.slice(both[0])?, conversation.slice(both[1])?];
        conversation.end();
        Ok(counted(&counts, both, means))
    })
}

/// Counts the calls of a run of a program, from its first instruction to its end, as those of one
/// operation: its counts are of no operation and of one. What it has started and leaves behind is
/// killed, and so is all of it if it takes longer than the limit or the user wants an end. Its
/// status is returned with them, as wait(2) gives it. `ready` is called before each run, of which
/// there may be two, and returns its input and output.
///
/// Errors: see [`CallsError`].
pub fn count_calls_of_command(
    program: &mut Program,
    ready: &mut dyn FnMut() -> Result<[File; 2], CallsError>,
    limit: Duration,
    tracepoints: Option<CallTracepoints>,
    interrupted: &dyn Fn() -> bool,
) -> Result<(CountedCalls, i32), CallsError> {
    by_what_suffices(tracepoints, interrupted, ready, move |[input, output], means, cancel| {
        let files = [(0, input.as_fd()), (1, output.as_fd())];
        let mut traced = TracedProgram::start(program, &files, deadline_ns(limit), cancel, means)?;
        let mut counts = Counts::default();
        loop {
            match traced.next_event()? {
                TraceEvent::Ended(status) => {
                    return match traced.killed() {
                        Some(TraceKill::Cancelled) => Err(CallsError::Interrupted),
                        Some(TraceKill::Overdue) => {
                            Err(CallsError::Overdue { step: CallsStep::Run, limit })
                        }
                        None => {
                            let both = [Counts::default(), counts];
                            Ok((counted(&both, [0, 1], means), status))
                        }
                    };
                }
                event => counts.add(event, None),
            }
        }
    })
}

/// By the tracepoints if they suffice, else by ptrace(2); with what `ready` returns before each.
fn by_what_suffices<R: Send, T: Send>(
    tracepoints: Option<CallTracepoints>,
    interrupted: &dyn Fn() -> bool,
    ready: &mut dyn FnMut() -> Result<R, CallsError>,
    mut work: impl FnMut(R, TraceMeans, BorrowedFd<'_>) -> Result<T, CallsError> + Send,
) -> Result<T, CallsError> {
    let mut by = |means| {
        let ready = ready()?;
        on_a_thread(interrupted, |cancel| work(ready, means, cancel))
    };
    match tracepoints.map(|numbers| by(TraceMeans::Tracepoints(numbers))) {
        None
        | Some(Err(
            CallsError::Unseen | CallsError::Trace(TraceError::Record(_) | TraceError::Lost(_)),
        )) => by(TraceMeans::Ptrace),
        Some(counted) => counted,
    }
}

/// What a program did in a slice.
#[derive(Debug, Default)]
struct Counts {
    calls: HashMap<TracedCall, u64>,
    /// Bytes moved, but for requests.
    bytes: HashMap<TracedCall, u64>,
    /// Those of them that went the way of answers, in the order of the calls.
    answered: Vec<(TracedCall, u64)>,
    /// Bytes of the answer to the request before, which was read when its call had not come back.
    late_bytes: u64,
}

impl Counts {
    /// Notes what was done, beside a conversation if there is one.
    fn add(&mut self, event: TraceEvent, conversation: Option<&Spoken>) {
        match event {
            TraceEvent::Enters(call) => *self.calls.entry(call).or_default() += 1,
            TraceEvent::Returns { call: Some(made), value: Some(bytes @ 1..) } => {
                let name = made.call.name().unwrap_or_default();
                if !files(name).is_empty() {
                    self.moved(&made, name, bytes, conversation);
                }
            }
            TraceEvent::Returns { .. } | TraceEvent::Ended(_) | TraceEvent::Quiet => {}
        }
    }

    fn moved(
        &mut self,
        made: &CallInTask,
        name: &str,
        mut bytes: u64,
        conversation: Option<&Spoken>,
    ) {
        if conversation.is_some_and(|spoken| touches(made, name, spoken.requests)) {
            return;
        }
        if conversation.is_some_and(|spoken| touches(made, name, spoken.answers)) {
            let late = bytes.min(self.late_bytes);
            self.late_bytes -= late;
            bytes -= late;
            match self.answered.last_mut() {
                Some((call, all)) if *call == made.call => *all += bytes,
                _ => self.answered.push((made.call, bytes)),
            }
        }
        *self.bytes.entry(made.call).or_default() += bytes;
    }

    /// What was done up to an answer, whose bytes, the last that went its way, are taken from the
    /// calls that moved them. What is done from here on is counted anew.
    fn until(&mut self, answer: &str) -> Counts {
        let mut counts = std::mem::take(self);
        let mut bytes = answer.len() as u64;
        while let Some((call, of_call)) = counts.answered.pop().filter(|_| bytes > 0) {
            let part = of_call.min(bytes);
            bytes -= part;
            let all = counts.bytes.entry(call).or_default();
            *all = all.saturating_sub(part);
        }
        self.late_bytes = bytes;
        counts
    }
}

/// Whether a call of this name moves bytes to or from a file.
fn touches(made: &CallInTask, name: &str, file: Identity) -> bool {
    files(name).iter().any(|at| made.file(*at) == Some(file))
}

/// The arguments of a call of this name that are the files between which it moves bytes; none for
/// one that moves none, whose arguments are other numbers.
fn files(name: &str) -> &'static [usize] {
    match name {
        name if AbByteWay::of(name).is_none() => &[],
        "splice" | "copy_file_range" => &[0, 2],
        "sendfile" | "tee" => &[0, 1],
        _ => &[0],
    }
}

/// Both slices side by side.
fn counted(slices: &[Counts; 2], operations: [u64; 2], means: TraceMeans) -> CountedCalls {
    let mut by_name = BTreeMap::<String, AbCalls>::new();
    for (slice, counts) in slices.iter().enumerate() {
        let all = counts.calls.iter().map(|(call, count)| (call, *count, 0));
        let all = all.chain(counts.bytes.iter().map(|(call, bytes)| (call, 0, *bytes)));
        for (call, count, moved) in all {
            let name = call.name().map_or_else(
                || format!("{} of architecture {:#x}", call.number, call.architecture),
                ToOwned::to_owned,
            );
            let none = AbCalls { name: name.clone(), calls: [0; 2], operations, bytes: None };
            let own = by_name.entry(name).or_insert(none);
            own.calls[slice] += count;
            if moved > 0 {
                own.bytes.get_or_insert_default()[slice] += moved;
            }
        }
    }
    let by = match means {
        TraceMeans::Ptrace => AbCallsBy::Ptrace,
        TraceMeans::Tracepoints(_) => AbCallsBy::Tracepoints,
    };
    CountedCalls { calls: by_name.into_values().collect(), by }
}

fn deadline_ns(limit: Duration) -> u64 {
    monotonic_ns().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
}

/// Does what must all be done by one thread, which has no other children. The pipe that it gets
/// ends when the user wants an end.
fn on_a_thread<T: Send>(
    interrupted: &dyn Fn() -> bool,
    work: impl FnOnce(BorrowedFd<'_>) -> Result<T, CallsError> + Send,
) -> Result<T, CallsError> {
    let (cancelled, cancel) = pipe::open(1).map_err(CallsError::Pipe)?;
    // Its sender goes with the thread's end, however that comes.
    let (runs, has_ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("trace".to_owned());
        let thread = builder.spawn_scoped(scope, move || {
            let _runs = runs;
            work(cancelled.as_fd())
        });
        let thread = thread.map_err(|why| CallsError::Trace(TraceError::Start(why.into())))?;
        let mut cancel = Some(cancel);
        while has_ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            cancel = cancel.filter(|_| !interrupted());
        }
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

// The trial that counts the system calls of one program, which no clock sees.

/// How long such a trial may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Operations of the smaller slice at most: ptrace(2) makes each call a hundred times as long.
const OPERATIONS_MAX: u64 = 1000;

/// Part of a timed slice that the smaller one is.
const OPERATIONS_SHARE: u64 = 20;

/// Counts the calls of one of the programs, by its number in the setup; `operations` are those of
/// a timed slice.
///
/// Errors: why they were not counted.
pub fn count_calls(
    setup: &AbSetup,
    program: usize,
    operations: u64,
    interrupted: &dyn Fn() -> bool,
) -> Result<CountedCalls, CallsError> {
    let mut traced = traced(setup, program).map_err(CallsError::Pipe)?;
    let tracepoints = call_tracepoints(&Root::real());
    match setup.mode {
        AbMode::Loop => {
            let operations = (operations / OPERATIONS_SHARE).clamp(1, OPERATIONS_MAX);
            count_calls_of_loop(&mut traced, operations, LIMIT, tracepoints, interrupted)
        }
        AbMode::Command => {
            let own = setup.programs.get(program).ok_or(CallsError::Pipe(Errno::EINVAL))?;
            let mut stage = Stage::new(setup, own, setup.limits.first_run_ns)?;
            let mut draws = Draws::of(0);
            let mut ready = || Ok(stage.ready(&mut draws, interrupted)?);
            let (counted, status) =
                count_calls_of_command(&mut traced, &mut ready, LIMIT, tracepoints, interrupted)?;
            match ExitStatus::from_raw(status).code() {
                Some(0) => Ok(counted),
                Some(_) if setup.exit == AbExit::Ignored => Ok(counted),
                _ => Err(CallsError::Ended { step: CallsStep::Run, status }),
            }
        }
    }
}

/// The program, from where it lies: where its code is changes no count.
fn traced(setup: &AbSetup, program: usize) -> Result<Program, Errno> {
    let program = setup.programs.get(program).ok_or(Errno::EINVAL)?;
    let argv: Vec<Vec<u8>> = program.argv.iter().map(|word| word.clone().into()).collect();
    let errors = file::in_memory("iolens-errors")?;
    let seed = Seed::of(0).to_string();
    let environment = environment(&seed, setup.mode == AbMode::Loop);
    Program::with(program.file.path.as_ref(), &argv, errors, &environment)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::conversation::Way;
    use super::*;

    /// io_uring_enter(2), which has the same number everywhere.
    const ENTER: u64 = 426;

    /// `AUDIT_ARCH_X86_64` or `AUDIT_ARCH_AARCH64`, and one that no machine has.
    const OWN: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
    const FOREIGN: u32 = 1;

    fn counted(slices: [Counts; 2]) -> Vec<AbCalls> {
        super::counted(&slices, [0, 1], TraceMeans::Ptrace).calls
    }

    #[test]
    fn a_call_without_a_name_has_its_number() {
        let mut counts = Counts::default();
        for architecture in [FOREIGN, OWN] {
            counts.add(TraceEvent::Enters(TracedCall { architecture, number: ENTER }), None);
        }
        let counted = counted([Counts::default(), counts]);
        let names: Vec<&str> = counted.iter().map(|calls| calls.name.as_str()).collect();
        assert_eq!(names, ["426 of architecture 0x1", "io_uring_enter"]);
    }

    fn named(name: &str) -> TracedCall {
        let mut all = (0..512).map(|number| TracedCall { architecture: OWN, number });
        all.find(|call| call.name() == Some(name)).unwrap()
    }

    /// A call that this thread makes with these files, and what it returns.
    fn returns(name: &str, files: &[&File], value: Option<u64>) -> TraceEvent {
        let mut arguments = [u64::MAX; 6];
        for (at, file) in super::files(name).iter().zip(files) {
            arguments[*at] = u64::from(file.as_raw_fd().unsigned_abs());
        }
        let made = CallInTask { call: named(name), task: std::process::id(), arguments };
        TraceEvent::Returns { call: Some(made), value }
    }

    fn bytes(counts: Counts) -> Vec<(String, [u64; 2])> {
        let counted = counted([Counts::default(), counts]);
        counted.into_iter().filter_map(|calls| Some((calls.name, calls.bytes?))).collect()
    }

    #[test]
    fn bytes_are_those_of_a_name_and_errors_move_none() {
        let mut counts = Counts::default();
        counts.add(TraceEvent::Enters(named("close")), None);
        for (name, value) in [
            ("read", Some(5)),
            ("read", None),
            ("pread64", Some(0)),
            ("openat", Some(3)),
            ("sendmsg", Some(70)),
            ("splice", Some(1000)),
            ("read", Some(6)),
        ] {
            counts.add(returns(name, &[], value), None);
        }
        let expect = [("read", 11), ("sendmsg", 70), ("splice", 1000)];
        assert_eq!(bytes(counts), expect.map(|(name, bytes)| (name.to_owned(), [0, bytes])));
    }

    #[test]
    fn lines_of_the_protocol_are_no_bytes_and_what_a_program_prints_before_is() {
        let (way, ends) = Way::open().unwrap();
        let [input, output] = ends.map(File::from);
        let (again, other) = (output.try_clone().unwrap(), tempfile::tempfile().unwrap());
        let mut counts = Counts::default();
        for (name, files, bytes) in [
            ("read", vec![&input], 4),
            ("readv", vec![&input], 1),
            ("read", vec![&other], 100),
            ("write", vec![&output], 30),
            ("sendfile", vec![&again, &other], 7),
            ("write", vec![&other], 500),
            ("writev", vec![&again], 4),
        ] {
            counts.add(returns(name, &files, Some(bytes)), Some(&way.spoken));
        }
        // The last six that were printed, two of them by sendfile(2).
        let found = bytes(counts.until("ok =1\n"));
        let expect = [("read", 100), ("sendfile", 5), ("write", 530)];
        assert_eq!(found, expect.map(|(name, bytes)| (name.to_owned(), [0, bytes])));
    }

    /// sched_getaffinity(2) takes the number of a process, which may be one of a descriptor, and
    /// returns a number of bytes.
    #[test]
    fn a_call_that_moves_no_bytes_touches_no_file() {
        let (way, [_, output]) = Way::open().unwrap();
        let descriptor = u64::from(output.as_raw_fd().unsigned_abs());
        for (name, expect) in [("sched_getaffinity", false), ("close", false), ("write", true)] {
            let arguments = [descriptor; 6];
            let made = CallInTask { call: named(name), task: std::process::id(), arguments };
            assert_eq!(touches(&made, name, way.spoken.answers), expect, "{name}");
        }
    }

    /// Another thread was told of while the one that answered had not come back.
    #[test]
    fn an_answer_is_no_bytes_of_the_slice_after_it() {
        let (way, [_, output]) = Way::open().unwrap();
        let output = File::from(output);
        let mut counts = Counts::default();
        assert_eq!(bytes(counts.until("ok\n")), []);
        for printed in [3, 10, 3] {
            counts.add(returns("write", &[&output], Some(printed)), Some(&way.spoken));
        }
        assert_eq!(bytes(counts.until("ok\n")), [("write".to_owned(), [0, 10])]);
        assert_eq!(counts.late_bytes, 0);
    }
}
