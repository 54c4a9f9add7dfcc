//! System calls of a program per operation, by name, without any privilege.
//!
//! They are counted in trials of their own, because a program that is traced is many times slower:
//! its time tells nothing. A program that speaks the loop protocol does N and 11 N operations, and
//! what is counted is the slope: what each slice costs in calls beside its operations (reading the
//! request, writing the answer) is the same in both and drops out. What the C library does without
//! the kernel (the vDSO, clock_gettime(2)) is no call, and work that io_uring does is not seen.
//! Calls that a runtime makes every so many milliseconds (nanosleep(2) of Go's sysmon) are more
//! than they would be untraced; they differ from trial to trial, and so are never exact.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use iolens_model::ab::AbCalls;
use iolens_sys::clock::monotonic_ns;
use iolens_sys::errno::Errno;
use iolens_sys::launch::Program;
use iolens_sys::ptrace::{TraceError, TraceKill, TraceStop, TracedCall, TracedProgram};
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
    /// Bytes that calls have moved.
    pub bytes: CountedBytes,
    /// What these counts do not say.
    pub remarks: Vec<CallsRemark>,
}

/// Bytes that calls have moved in two slices, by what they returned: read(2), write(2) and their
/// kin, and for both ways splice(2), sendfile(2) and copy_file_range(2). The lines of the protocol
/// are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedBytes {
    /// Bytes read or received, as [`AbCalls::calls`].
    pub read: [u64; 2],
    /// Bytes written or sent, as [`AbCalls::calls`].
    pub written: [u64; 2],
    /// Operations of both slices.
    pub operations: [u64; 2],
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
                stop => counts.add(stop),
            }
        }
    })
}

/// Calls per operation: of the difference between both slices.
#[must_use]
pub fn calls_per_operation(calls: &AbCalls) -> f64 {
    per_operation(calls.calls, calls.operations)
}

impl CountedBytes {
    /// Bytes read or received per operation.
    #[must_use]
    pub fn read_per_operation(&self) -> f64 {
        per_operation(self.read, self.operations)
    }

    /// Bytes written or sent per operation.
    #[must_use]
    pub fn written_per_operation(&self) -> f64 {
        per_operation(self.written, self.operations)
    }
}

fn per_operation(counts: [u64; 2], operations: [u64; 2]) -> f64 {
    let difference = |[less, more]: [u64; 2]| more as f64 - less as f64;
    difference(counts) / difference(operations)
}

/// What a program did in a slice.
#[derive(Debug, Default)]
struct Counts {
    calls: HashMap<TracedCall, u64>,
    read_bytes: u64,
    written_bytes: u64,
}

impl Counts {
    fn add(&mut self, stop: TraceStop) {
        match stop {
            TraceStop::Enters(call) => *self.calls.entry(call).or_default() += 1,
            TraceStop::Returns { call: Some(call), value: Some(bytes) } => {
                let [reads, writes] = moves_bytes(call.name().unwrap_or_default());
                self.read_bytes += if reads { bytes } else { 0 };
                self.written_bytes += if writes { bytes } else { 0 };
            }
            TraceStop::Returns { .. } | TraceStop::Ended(_) => {}
        }
    }
}

/// Whether what a call returns are bytes that it has read, and bytes that it has written.
fn moves_bytes(name: &str) -> [bool; 2] {
    match name {
        "read" | "pread64" | "readv" | "preadv" | "preadv2" | "recvfrom" | "recvmsg" => {
            [true, false]
        }
        "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "sendto" | "sendmsg" => {
            [false, true]
        }
        "splice" | "sendfile" | "copy_file_range" => [true, true],
        _ => [false, false],
    }
}

/// Both slices side by side.
fn counted(slices: &[Counts; 2], operations: [u64; 2]) -> CountedCalls {
    let mut by_name = BTreeMap::<String, [u64; 2]>::new();
    for (slice, counts) in slices.iter().enumerate() {
        for (call, count) in &counts.calls {
            let name = call.name().map_or_else(
                || format!("{} of architecture {:#x}", call.number, call.architecture),
                ToOwned::to_owned,
            );
            by_name.entry(name).or_default()[slice] += count;
        }
    }
    let has_ring = by_name.contains_key("io_uring_enter");
    let calls = by_name.into_iter().map(|(name, calls)| AbCalls { name, calls, operations });
    CountedCalls {
        calls: calls.collect(),
        bytes: CountedBytes {
            read: [slices[0].read_bytes, slices[1].read_bytes],
            written: [slices[0].written_bytes, slices[1].written_bytes],
            operations,
        },
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

/// Pipes to and from a program.
struct Way {
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
        let requests = Some(requests.into());
        let way = Way { requests, answers: answers.into(), printed: Vec::new(), is_closed: false };
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
            self.exchange(&format!("prepare {operations}\n"), step)?;
            self.counts = Counts::default();
        }
        let request = format!("{operations}\n");
        let answer = self.exchange(&request, step)?;
        let mut counts = std::mem::take(&mut self.counts);
        counts.read_bytes = counts.read_bytes.saturating_sub(request.len() as u64);
        counts.written_bytes = counts.written_bytes.saturating_sub(answer.len() as u64);
        Ok(counts)
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
                self.counts.add(stop);
                Ok(())
            }
            // What a call has printed is in the pipe when it returns, and not before.
            stop @ TraceStop::Returns { .. } => {
                self.counts.add(stop);
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
            counts.add(TraceStop::Enters(TracedCall { architecture, number: ENTER }));
        }
        let counted = counted(&[Counts::default(), counts], [0, 1]);
        let names: Vec<&str> = counted.calls.iter().map(|calls| calls.name.as_str()).collect();
        assert_eq!(names, ["426 of architecture 0x1", "io_uring_enter"]);
        assert_eq!(counted.remarks, [CallsRemark::IoUring]);
    }

    #[test]
    fn errors_move_no_bytes_and_splice_moves_them_both_ways() {
        let mut counts = Counts::default();
        let numbers = (0..512).map(|number| TracedCall { architecture: OWN, number });
        let named = |name: &str| numbers.clone().find(|call| call.name() == Some(name));
        let mut add = |name, value| counts.add(TraceStop::Returns { call: named(name), value });
        add("read", Some(5));
        add("read", None);
        add("openat", Some(3));
        add("sendmsg", Some(70));
        add("splice", Some(1000));
        assert_eq!((counts.read_bytes, counts.written_bytes), (1005, 1070));
    }
}
