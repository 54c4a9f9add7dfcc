//! Asking a traced program for slices.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use iolens_sys::clock::monotonic_ns;
use iolens_sys::errno::Errno;
use iolens_sys::file::about::about;
use iolens_sys::file::create::Identity;
use iolens_sys::launch::Program;
use iolens_sys::tracing::{CallInTask, TraceEvent, TraceKill, TraceMeans, TracedProgram};
use iolens_sys::{pipe, poll};

use super::{Counts, deadline_ns, touches};
use crate::calls_error::{CallsError, CallsStep};

/// What a pipe holds, where that is allowed: a program that prints more than this at once waits
/// for a reader, and makes no stop at which it would be read.
const PIPE_BYTES: usize = 1 << 20;

/// How long a program may take to be quiet once it is set up.
const SETTLE_LIMIT: Duration = Duration::from_millis(500);

/// How long a program may take to end when its input has.
const END_LIMIT: Duration = Duration::from_secs(5);

/// A traced program, and how to speak to it.
pub(super) struct Conversation {
    traced: TracedProgram,
    /// Its standard input and output, and its descriptors 3 and 4.
    ways: [Way; 2],
    /// The way that it has chosen: where `ready` came from.
    chosen: usize,
    /// Whether it wants to prepare itself before each slice.
    prepares: bool,
    /// Since the last answer.
    counts: Counts,
    /// Whether something had been printed by no call that was told of when nothing was last told.
    has_unseen: bool,
    limit: Duration,
}

/// The pipes that lines of the protocol go through, whatever descriptors a program has of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spoken {
    pub(super) requests: Identity,
    pub(super) answers: Identity,
}

/// Pipes to and from a program.
pub(super) struct Way {
    pub(super) spoken: Spoken,
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
    pub(super) fn open() -> Result<(Way, [OwnedFd; 2]), Errno> {
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

    /// Reads what is there, and at most so many bytes of it.
    fn read(&mut self, at_most: u64) -> Result<(), Errno> {
        let mut buffer = [0; 4096];
        let mut left = usize::try_from(at_most).unwrap_or(usize::MAX);
        while left > 0 && !self.is_closed && poll::is_readable(self.answers.as_fd(), 0)? {
            let room = left.min(buffer.len());
            let bytes = self.answers.read(&mut buffer[..room])?;
            self.is_closed = bytes == 0;
            self.printed.extend_from_slice(&buffer[..bytes]);
            left -= bytes;
        }
        Ok(())
    }

    /// Whether something is there to read.
    fn has_more(&self) -> Result<bool, Errno> {
        let answers = self.answers.as_fd();
        Ok(!poll::has_ended(answers)? && poll::is_readable(answers, 0)?)
    }

    /// The next whole line, with its end.
    fn line(&mut self) -> Option<String> {
        let end = self.printed.iter().position(|&byte| byte == b'\n')?;
        let line: Vec<u8> = self.printed.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line).into_owned())
    }
}

impl Conversation {
    pub(super) fn begin(
        program: &Program,
        limit: Duration,
        means: TraceMeans,
        cancel: BorrowedFd<'_>,
    ) -> Result<Conversation, CallsError> {
        let (standard, [input, output]) = Way::open().map_err(CallsError::Pipe)?;
        let (apart, [third, fourth]) = Way::open().map_err(CallsError::Pipe)?;
        let files = [(0, &input), (1, &output), (3, &third), (4, &fourth)];
        let files = files.map(|(number, fd)| (number, fd.as_fd()));
        Ok(Conversation {
            traced: TracedProgram::start(program, &files, deadline_ns(limit), cancel, means)?,
            ways: [standard, apart],
            chosen: 0,
            prepares: false,
            counts: Counts::default(),
            has_unseen: false,
            limit,
        })
    }

    /// Waits until it is set up; what it prints before is passed over.
    pub(super) fn await_ready(&mut self) -> Result<(), CallsError> {
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

    /// Lets threads that are not held up do what they do at their start, as long as that is not
    /// long: it is no part of a slice.
    pub(super) fn settle(&mut self) -> Result<(), CallsError> {
        let until_ns = deadline_ns(SETTLE_LIMIT);
        let settles = !self.traced.stops();
        while settles
            && monotonic_ns() < until_ns
            && self.go_on(CallsStep::SetUp)? != TraceEvent::Quiet
        {}
        Ok(())
    }

    /// What the program does from the last answer to the one to this request.
    pub(super) fn slice(&mut self, operations: u64) -> Result<Counts, CallsError> {
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

    /// Waits for what it does next, and reads what it has printed by that.
    fn go_on(&mut self, step: CallsStep) -> Result<TraceEvent, CallsError> {
        let event = self.traced.next_event()?;
        if event != TraceEvent::Quiet {
            self.has_unseen = false;
        }
        match event {
            TraceEvent::Ended(status) => return Err(self.end_of(step, status)),
            TraceEvent::Enters(_) => self.counts.add(event, None),
            TraceEvent::Returns { call, value } => {
                self.counts.add(event, Some(&self.ways[self.chosen].spoken));
                self.read(call.as_ref(), value).map_err(CallsError::Pipe)?;
            }
            TraceEvent::Quiet if self.misses_output().map_err(CallsError::Pipe)? => {
                return Err(CallsError::Unseen);
            }
            TraceEvent::Quiet => {}
        }
        Ok(event)
    }

    /// Reads what a call has printed, which is in the pipe when it returns, and not before. A
    /// program that does not stop may have printed more since, by calls of which will be told.
    fn read(&mut self, call: Option<&CallInTask>, value: Option<u64>) -> Result<(), Errno> {
        let stops = self.traced.stops();
        let by = call.zip(value).map(|(call, bytes)| (call, call.call.name(), bytes));
        self.ways.iter_mut().try_for_each(|way| match by {
            _ if stops => way.read(u64::MAX),
            Some((call, Some(name), bytes)) if touches(call, name, way.spoken.answers) => {
                way.read(bytes)
            }
            _ => Ok(()),
        })
    }

    /// Whether it has printed something of which it was not told for two quiet whiles in a row.
    fn misses_output(&mut self) -> Result<bool, Errno> {
        let had_unseen = self.has_unseen;
        self.has_unseen = self.ways[0].has_more()? || self.ways[1].has_more()?;
        for way in &mut self.ways {
            // One that is killed has closed nothing itself.
            let has_ended = poll::has_ended(way.answers.as_fd())?;
            way.is_closed |= has_ended && self.traced.killed().is_none();
        }
        Ok(had_unseen && self.has_unseen)
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
    pub(super) fn end(self) {
        let Conversation { mut traced, ways, .. } = self;
        // Its output stays open: a program may end early once nobody reads what it prints.
        let _answers = ways.map(|way| way.answers);
        let limited = traced.end_by(deadline_ns(END_LIMIT));
        while limited.is_ok() && !matches!(traced.next_event(), Ok(TraceEvent::Ended(_)) | Err(_)) {
        }
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
