//! The system calls of a program and of all that it starts, by either of two means, told alike:
//!
//! - ptrace(2), which needs no privilege for one's own children: the program is stopped twice in
//!   each call, so that none is missed, and is a hundred times slower;
//! - the tracepoints `raw_syscalls`, for who may see the kernel's: the program is not held up, so
//!   that its threads meet as they do untraced, and calls are lost where it makes more than can be
//!   read.

mod born;
mod call;
mod ptrace;
mod recorded;
mod watch;

use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use crate::errno::Errno;
use crate::launch::Program;
use crate::perf_event::calls::{CallRecorder, CallTracepoints};
use born::Born;
use ptrace::Ptraced;
use recorded::{Recorded, is_of_another_kind};
use watch::Watch;

pub use call::{CallInTask, TracedCall};

/// What a traced program, or something that it started, has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceEvent {
    /// It makes a call.
    Enters(TracedCall),
    /// A call has come back.
    Returns {
        /// Which; `None` for one that was made before it was traced.
        call: Option<CallInTask>,
        /// What it said; `None` for an error.
        value: Option<u64>,
    },
    /// Nothing was recorded for a while. One that is stopped in its calls is waited for.
    Quiet,
    /// The first process has ended, with this status of wait(2).
    Ended(i32),
}

/// Why a program cannot be traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// It was not started.
    #[error("{0}")]
    Start(Errno),
    /// It may not be seized.
    #[error("PTRACE_SEIZE: {0}")]
    Seize(Errno),
    /// What follows failed.
    #[error("ptrace: {0}")]
    Trace(Errno),
    /// Its calls may not be recorded, or not in a way that ends all that it starts.
    #[error("raw_syscalls: {0}")]
    Record(Errno),
    /// So many records of its calls were lost.
    #[error("raw_syscalls: {0} records lost")]
    Lost(u64),
}

/// Why a program was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceKill {
    /// Its time was over.
    Overdue,
    /// Who started it wanted an end.
    Cancelled,
}

/// How the calls of a program are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceMeans {
    /// By ptrace(2).
    Ptrace,
    /// By both of these tracepoints. A program of 32 bits has other numbers of calls, which they
    /// do not tell apart: one whose file says so is refused (`ENOEXEC`).
    Tracepoints(CallTracepoints),
}

/// A program whose system calls are seen, and those of its threads and children. Dropped, it is
/// killed with all of them and waited for; if the thread that started it ends, the kernel kills
/// them. Only that thread may have to do with it.
#[derive(Debug)]
pub struct TracedProgram {
    first: u32,
    /// The first process.
    fd: OwnedFd,
    tracer: Tracer,
    watches: Vec<Watch>,
    _stays: PhantomData<*const ()>,
}

#[derive(Debug)]
enum Tracer {
    Ptraced(Ptraced),
    Recorded(Box<Recorded>),
}

impl TracedProgram {
    /// Starts a program, with `files` open under these numbers, below 10 and not 2, in a process
    /// group of its own. It is killed, whatever it does, at the deadline, a time of
    /// [`crate::clock`], and as soon as `cancel` can be read from or has ended. The calling
    /// thread must have no other child: [`Self::next_event`] waits for all.
    ///
    /// Errors: of clone(2) and execve(2); of `PTRACE_SEIZE`: `EPERM` where a security module,
    /// a filter of system calls or another tracer is before us, `EIO` before Linux 3.4; of
    /// perf_event_open(2), and where there can be no pid namespace, without which something that
    /// a recorded program starts might outlive it.
    pub fn start(
        program: &Program,
        files: &[(RawFd, BorrowedFd<'_>)],
        deadline_ns: u64,
        cancel: BorrowedFd<'_>,
        means: TraceMeans,
    ) -> Result<TracedProgram, TraceError> {
        let is_apart = means != TraceMeans::Ptrace;
        if is_apart && is_of_another_kind(program.path()) {
            return Err(TraceError::Record(Errno::from_raw(libc::ENOEXEC)));
        }
        let mut born = Born::of(program, files, is_apart).map_err(|errno| match is_apart {
            true => TraceError::Record(errno),
            false => TraceError::Start(errno),
        })?;
        let fd = born.fd().map_err(TraceError::Start)?;
        let first = born.id();
        let tracer = match means {
            TraceMeans::Ptrace => Tracer::Ptraced(Ptraced::of(first)),
            TraceMeans::Tracepoints(numbers) => {
                let recorder = CallRecorder::of(first, numbers).map_err(TraceError::Record)?;
                Tracer::Recorded(Box::new(Recorded::of(first, recorder)))
            }
        };
        born.is_traced();
        let (watches, _stays) = (Vec::new(), PhantomData);
        let mut traced = TracedProgram { first, fd, tracer, watches, _stays };
        traced.watch(deadline_ns, Some(cancel)).map_err(TraceError::Start)?;
        match &mut traced.tracer {
            Tracer::Ptraced(program) => program.execute(&mut born),
            Tracer::Recorded(program) => program.execute(&mut born),
        }?;
        Ok(traced)
    }

    /// The first process.
    pub fn id(&self) -> u32 {
        self.first
    }

    /// Whether it stands still when an event is told, so that what it has done since is nothing.
    pub fn stops(&self) -> bool {
        matches!(self.tracer, Tracer::Ptraced(_))
    }

    /// Why it was killed, if it was, or has been told to be.
    pub fn killed(&self) -> Option<TraceKill> {
        self.watches.iter().find_map(Watch::killed)
    }

    /// Has it killed at an earlier deadline than before.
    ///
    /// Errors: `EAGAIN` where there may be no more threads, `EMFILE`.
    pub fn end_by(&mut self, deadline_ns: u64) -> Result<(), Errno> {
        self.watch(deadline_ns, None)
    }

    fn watch(&mut self, deadline_ns: u64, cancel: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
        let program = self.fd.try_clone()?;
        let cancel = cancel.map(|fd| fd.try_clone_to_owned()).transpose()?;
        self.watches.push(Watch::over(program, deadline_ns, cancel)?);
        Ok(())
    }

    /// Waits for the next event, of whichever task; one that was stopped for the last goes on.
    /// Signals are passed on. Once the first process has ended, so says every call.
    ///
    /// Errors: of ptrace(2) and wait4(2): `EIO` before Linux 5.3; records that were lost.
    pub fn next_event(&mut self) -> Result<TraceEvent, TraceError> {
        match &mut self.tracer {
            Tracer::Ptraced(program) => program.next_event(),
            Tracer::Recorded(program) => program.next_event(self.fd.as_fd()),
        }
    }
}

impl Drop for TracedProgram {
    fn drop(&mut self) {
        match &mut self.tracer {
            Tracer::Ptraced(program) => program.end(),
            Tracer::Recorded(program) => program.end(),
        }
        self.watches.drain(..).for_each(Watch::end);
    }
}

#[cfg(test)]
mod tests;
