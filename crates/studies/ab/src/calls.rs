//! System calls of a program per operation, by name, without any privilege.
//!
//! They are counted in trials of their own, because a program that is traced is many times slower:
//! its time tells nothing. A program that speaks the loop protocol does N and 11 N operations, and
//! what is counted is the slope: what each slice costs in calls beside its operations (reading the
//! request, writing the answer) is the same in both and drops out. What the C library does without
//! the kernel (the vDSO, clock_gettime(2)) is no call, and work that io_uring does is not seen.
//! Calls that a runtime makes every so many milliseconds (nanosleep(2) of Go's sysmon) are more
//! than they would be untraced; they differ from trial to trial, and so are never exact.
//!
//! The bytes of a call are what read(2), write(2) and their kin returned. Lines of the protocol
//! are longer in one slice than in the other, so they are known by their pipes and left out.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use iolens_model::ab::{AbByteWay, AbCalls};
use iolens_sys::clock::monotonic_ns;
use iolens_sys::errno::Errno;
use iolens_sys::file::about::about;
use iolens_sys::file::create::Identity;
use iolens_sys::launch::Program;
use iolens_sys::ptrace::{CallInTask, TraceError, TraceKill, TraceStop, TracedCall, TracedProgram};
use iolens_sys::{pipe, poll};

use crate::calls_error::{CallsError, CallsStep};

/// Trials of an arm that count: one alone does not show whether its counts are always the same.
pub const CALLS_TRIALS: usize = 2;

/// Operations of the larger slice, in those of the smaller.
const LARGER: u64 = 11;

/// What a pipe holds, where that is allowed: a program that prints more than this at once waits
/// for a reader, and makes no stop at which it would be read.
const PIPE_BYTES: usize = 1 << 20;

/// How long a program may take to end when its input has.
const END_LIMIT: Duration = Duration::from_secs(5);

/// How often it is asked whether the user wants an end.
const LOOK: Duration = Duration::from_millis(250);

/// What was counted in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedCalls {
    /// Calls by name, sorted by it.
    pub calls: Vec<AbCalls>,
    /// What these counts do not say.
    pub remarks: Vec<CallsRemark>,
}

/// What counts of calls do not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallsRemark {
    /// It calls io_uring_enter(2): what the kernel does for it in a ring is no call.
    IoUring,
}

/// Counts the calls of a program that speaks the loop protocol, on its standard input and output
/// or on the descriptors 3 and 4. It is killed, with all that it has started, if all of it takes
/// longer than the limit, and if the user wants an end, after which is asked four times a second.
///
/// Errors: see [`CallsError`].
///
/// # Panics
/// For no operations.
pub fn count_calls_of_loop(
    program: &mut Program,
    operations: u64,
    limit: Duration,
    interrupted: &dyn Fn() -> bool,
) -> Result<CountedCalls, CallsError> {
    assert!(operations > 0, "a slice has operations");
    let both = [operations, operations.saturating_mul(LARGER)];
    on_a_thread(interrupted, move |cancel| {
        let mut conversation = Conversation::begin(program, limit, cancel)?;
        conversation.await_ready()?;
        // It grows its buffers and fills its caches now.
        conversation.slice(both[1])?;
        let counts = [conversation.slice(both[0])?, conversation.slice(both[1])?];
        conversation.end();
        Ok(counted(&counts, both))
    })
}

/// Counts the calls of a run of a program, from its first instruction to its end, as those of one
/// operation: its counts are of no operation and of one. What it has started and leaves behind is
/// killed, and so is all of it if it takes longer than the limit or the user wants an end. Its
/// status is returned with them, as wait(2) gives it.
///
/// Errors: see [`CallsError`].
pub fn count_calls_of_command(
    program: &mut Program,
    input: BorrowedFd<'_>,
    output: BorrowedFd<'_>,
    limit: Duration,
    interrupted: &dyn Fn() -> bool,
) -> Result<(CountedCalls, i32), CallsError> {
    on_a_thread(interrupted, move |cancel| {
        let files = [(0, input), (1, output)];
        let mut traced = TracedProgram::start(program, &files, deadline_ns(limit), cancel)?;
        let mut counts = Counts::default();
        loop {
            match traced.next_stop()? {
                TraceStop::Ended(status) => {
                    return match traced.killed() {
                        Some(TraceKill::Cancelled) => Err(CallsError::Interrupted),
                        Some(TraceKill::Overdue) => {
                            Err(CallsError::Overdue { step: CallsStep::Run, limit })
                        }
                        None => Ok((counted(&[Counts::default(), counts], [0, 1]), status)),
                    };
                }
                stop => counts.add(stop, None),
            }
        }
    })
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
    fn add(&mut self, stop: TraceStop, conversation: Option<&Spoken>) {
        match stop {
            TraceStop::Enters(call) => *self.calls.entry(call).or_default() += 1,
            TraceStop::Returns { call: Some(made), value: Some(bytes @ 1..) } => {
                let name = made.call.name().unwrap_or_default();
                if AbByteWay::of(name).is_some() {
                    self.moved(&made, name, bytes, conversation);
                }
            }
            TraceStop::Returns { .. } | TraceStop::Ended(_) => {}
        }
    }

    fn moved(
        &mut self,
        made: &CallInTask,
        name: &str,
        mut bytes: u64,
        conversation: Option<&Spoken>,
    ) {
        let touches = |file: Identity| files(name).iter().any(|at| made.file(*at) == Some(file));
        if conversation.is_some_and(|spoken| touches(spoken.requests)) {
            return;
        }
        if conversation.is_some_and(|spoken| touches(spoken.answers)) {
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

/// The arguments of a call of this name that are the files between which it moves bytes.
fn files(name: &str) -> &'static [usize] {
    match name {
        "splice" | "copy_file_range" => &[0, 2],
        "sendfile" | "tee" => &[0, 1],
        _ => &[0],
    }
}

/// Both slices side by side.
fn counted(slices: &[Counts; 2], operations: [u64; 2]) -> CountedCalls {
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
    let has_ring = by_name.contains_key("io_uring_enter");
    CountedCalls {
        calls: by_name.into_values().collect(),
        remarks: has_ring.then_some(CallsRemark::IoUring).into_iter().collect(),
    }
}

/// A traced program, and how to speak to it.
struct Conversation {
    traced: TracedProgram,
    /// Its standard input and output, and its descriptors 3 and 4.
    ways: [Way; 2],
    /// The way that it has chosen: where `ready` came from.
    chosen: usize,
    /// Whether it wants to prepare itself before each slice.
    prepares: bool,
    /// Since the last answer.
    counts: Counts,
    limit: Duration,
}

/// The pipes that lines of the protocol go through, whatever descriptors a program has of them.
#[derive(Debug, Clone, Copy)]
struct Spoken {
    requests: Identity,
    answers: Identity,
}

/// Pipes to and from a program.
struct Way {
    spoken: Spoken,
    /// `None` from the end of its input on.
    requests: Option<File>,
    answers: File,
    /// What it has printed of lines that are not used up.
    printed: Vec<u8>,
    /// Whether it has closed its output.
    is_closed: bool,
}

impl Way {
    /// With the program's ends.
    fn open() -> Result<(Way, [OwnedFd; 2]), Errno> {
        let (input, requests) = pipe::open(PIPE_BYTES)?;
        let (answers, output) = pipe::open(PIPE_BYTES)?;
        let spoken = Spoken {
            requests: Identity::of(&about(input.as_fd())?),
            answers: Identity::of(&about(output.as_fd())?),
        };
        let requests = Some(requests.into());
        let (answers, printed) = (answers.into(), Vec::new());
        let way = Way { spoken, requests, answers, printed, is_closed: false };
        Ok((way, [input, output]))
    }

    fn read_what_is_there(&mut self) -> Result<(), Errno> {
        let mut buffer = [0; 4096];
        while !self.is_closed && poll::is_readable(self.answers.as_fd(), 0)? {
            let bytes = self.answers.read(&mut buffer)?;
            self.is_closed = bytes == 0;
            self.printed.extend_from_slice(&buffer[..bytes]);
        }
        Ok(())
    }

    /// The next whole line, with its end.
    fn line(&mut self) -> Option<String> {
        let end = self.printed.iter().position(|&byte| byte == b'\n')?;
        let line: Vec<u8> = self.printed.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line).into_owned())
    }
}

impl Conversation {
    fn begin(
        program: &Program,
        limit: Duration,
        cancel: BorrowedFd<'_>,
    ) -> Result<Conversation, CallsError> {
        let (standard, [input, output]) = Way::open().map_err(CallsError::Pipe)?;
        let (apart, [third, fourth]) = Way::open().map_err(CallsError::Pipe)?;
        let files = [(0, &input), (1, &output), (3, &third), (4, &fourth)];
        let files = files.map(|(number, fd)| (number, fd.as_fd()));
        Ok(Conversation {
            traced: TracedProgram::start(program, &files, deadline_ns(limit), cancel)?,
            ways: [standard, apart],
            chosen: 0,
            prepares: false,
            counts: Counts::default(),
            limit,
        })
    }

    /// Waits until it is set up; what it prints before is passed over.
    fn await_ready(&mut self) -> Result<(), CallsError> {
        let step = CallsStep::SetUp;
        loop {
            for chosen in 0..self.ways.len() {
                while let Some(line) = self.ways[chosen].line() {
                    if is(step, &line, "ready")? {
                        self.ways[1 - chosen].requests = None;
                        self.chosen = chosen;
                        self.prepares = line.split_ascii_whitespace().any(|word| word == "prepare");
                        return Ok(());
                    }
                }
            }
            self.go_on(step)?;
        }
    }

    /// What the program does from the last answer to the one to this request.
    fn slice(&mut self, operations: u64) -> Result<Counts, CallsError> {
        let step = CallsStep::Slice(operations);
        if self.prepares {
            let answer = self.exchange(&format!("prepare {operations}\n"), step)?;
            self.counts.until(&answer);
        }
        let answer = self.exchange(&format!("{operations}\n"), step)?;
        Ok(self.counts.until(&answer))
    }

    /// The answer to a request, with the end of its line. Lines of the program's own are passed
    /// over.
    fn exchange(&mut self, request: &str, step: CallsStep) -> Result<String, CallsError> {
        if let Some(requests) = &mut self.ways[self.chosen].requests {
            // What cannot be written has no reader: the program ends, or its time is over.
            let _ = requests.write_all(request.as_bytes());
        }
        loop {
            self.ways[1 - self.chosen].printed.clear();
            while let Some(line) = self.ways[self.chosen].line() {
                if is(step, &line, "ok")? {
                    return Ok(line);
                }
            }
            self.go_on(step)?;
        }
    }

    /// Lets it go on to its next stop, and reads what it has printed then.
    fn go_on(&mut self, step: CallsStep) -> Result<(), CallsError> {
        match self.traced.next_stop()? {
            TraceStop::Ended(status) => Err(self.end_of(step, status)),
            stop @ TraceStop::Enters(_) => {
                self.counts.add(stop, None);
                Ok(())
            }
            // What a call has printed is in the pipe when it returns, and not before.
            stop @ TraceStop::Returns { .. } => {
                self.counts.add(stop, Some(&self.ways[self.chosen].spoken));
                let read = self.ways.iter_mut().try_for_each(Way::read_what_is_there);
                read.map_err(CallsError::Pipe)
            }
        }
    }

    /// What its end was.
    fn end_of(&self, step: CallsStep, status: i32) -> CallsError {
        match self.traced.killed() {
            Some(TraceKill::Cancelled) => CallsError::Interrupted,
            Some(TraceKill::Overdue) if self.ways[self.chosen].is_closed => {
                CallsError::Closed { step }
            }
            Some(TraceKill::Overdue) => CallsError::Overdue { step, limit: self.limit },
            None => CallsError::Ended { step, status },
        }
    }

    /// Ends its input and lets it end; it is killed when that takes too long.
    fn end(self) {
        let Conversation { mut traced, ways, .. } = self;
        // Its output stays open, or it might end for having nobody who reads it.
        let _answers = ways.map(|way| way.answers);
        let limited = traced.end_by(deadline_ns(END_LIMIT));
        while limited.is_ok() && !matches!(traced.next_stop(), Ok(TraceStop::Ended(_)) | Err(_)) {}
    }
}

/// Whether a line begins with this word.
///
/// Errors: it says that the program failed.
fn is(step: CallsStep, line: &str, word: &str) -> Result<bool, CallsError> {
    match line.split_ascii_whitespace().next() {
        Some("error") => Err(CallsError::Said { step, line: line.trim_end().to_owned() }),
        first => Ok(first == Some(word)),
    }
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

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    /// io_uring_enter(2), which has the same number everywhere.
    const ENTER: u64 = 426;

    /// `AUDIT_ARCH_X86_64` or `AUDIT_ARCH_AARCH64`, and one that no machine has.
    const OWN: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
    const FOREIGN: u32 = 1;

    #[test]
    fn what_counts_do_not_say_is_remarked() {
        let mut counts = Counts::default();
        for architecture in [FOREIGN, OWN] {
            counts.add(TraceStop::Enters(TracedCall { architecture, number: ENTER }), None);
        }
        let counted = counted(&[Counts::default(), counts], [0, 1]);
        let names: Vec<&str> = counted.calls.iter().map(|calls| calls.name.as_str()).collect();
        assert_eq!(names, ["426 of architecture 0x1", "io_uring_enter"]);
        assert_eq!(counted.remarks, [CallsRemark::IoUring]);
    }

    fn named(name: &str) -> TracedCall {
        let mut all = (0..512).map(|number| TracedCall { architecture: OWN, number });
        all.find(|call| call.name() == Some(name)).unwrap()
    }

    /// A call that this thread makes with these files, and what it returns.
    fn returns(name: &str, files: &[&File], value: Option<u64>) -> TraceStop {
        let mut arguments = [u64::MAX; 6];
        for (at, file) in super::files(name).iter().zip(files) {
            arguments[*at] = u64::from(file.as_raw_fd().unsigned_abs());
        }
        let made = CallInTask { call: named(name), task: std::process::id(), arguments };
        TraceStop::Returns { call: Some(made), value }
    }

    fn bytes(counts: Counts) -> Vec<(String, [u64; 2])> {
        let counted = counted(&[Counts::default(), counts], [0, 1]);
        counted.calls.into_iter().filter_map(|calls| Some((calls.name, calls.bytes?))).collect()
    }

    #[test]
    fn bytes_are_those_of_a_name_and_errors_move_none() {
        let mut counts = Counts::default();
        counts.add(TraceStop::Enters(named("close")), None);
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
