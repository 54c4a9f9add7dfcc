//! Tracing by ptrace(2). Linux 5.3 (`PTRACE_GET_SYSCALL_INFO`), on all architectures alike.
//!
//! The program is seized (`PTRACE_SEIZE`) before it executes, rather than asking for it by
//! `PTRACE_TRACEME`: a new thread or child then begins with a stop of its own kind, not with a
//! SIGSTOP that somebody may have sent, and what job control has stopped stays so
//! (`PTRACE_LISTEN`).
//!
//! # Safety
//! ptrace(2) is given numbers, and pointers to what lives on the caller's stack: a word and a
//! struct of the size that is said beside it.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::collections::{HashMap, HashSet};

use libc::{c_int, c_long, c_uint, pid_t};

use super::born::Born;
use super::{CallInTask, TraceError, TraceEvent, TracedCall};
use crate::errno::Errno;

/// A stop at a system call, with `PTRACE_O_TRACESYSGOOD`.
const AT_CALL: c_int = libc::SIGTRAP | 0x80;

/// A stop of a seized task that no signal delivers: `PTRACE_EVENT_STOP`, <linux/ptrace.h>.
const EVENT_STOP: c_int = 128;

/// A program that is stopped in its calls.
#[derive(Debug)]
pub(super) struct Ptraced {
    first: pid_t,
    /// Every task, with the call that it is in.
    tasks: HashMap<pid_t, Option<CallInTask>>,
    /// The task whose stop was told last: it goes on when the next is asked for.
    stopped: Option<Resumption>,
    ended: Option<i32>,
}

/// How a task goes on.
#[derive(Debug, Clone, Copy)]
struct Resumption {
    task: pid_t,
    request: c_uint,
    /// The signal that it gets; 0 for none.
    signal: c_int,
}

impl Ptraced {
    /// A child of the calling thread, which is to be seized.
    pub(super) fn of(first: u32) -> Ptraced {
        let first = first.cast_signed();
        Ptraced { first, tasks: HashMap::from([(first, None)]), stopped: None, ended: None }
    }

    /// Seizes it, and lets it execute.
    pub(super) fn execute(&mut self, born: &mut Born) -> Result<(), TraceError> {
        seize(self.first).map_err(TraceError::Seize)?;
        born.execute().map_err(TraceError::Start)?;
        self.await_execution(born)
    }

    /// Waits for its execution, the calls before which are ours.
    fn await_execution(&mut self, born: &mut Born) -> Result<(), TraceError> {
        loop {
            let (task, status) = wait_for_any().map_err(TraceError::Trace)?;
            if libc::WIFSTOPPED(status) && status >> 16 == libc::PTRACE_EVENT_EXEC {
                self.stopped = Some(Resumption { task, request: libc::PTRACE_SYSCALL, signal: 0 });
                return Ok(());
            } else if libc::WIFSTOPPED(status) {
                let signal = if status >> 16 == 0 { libc::WSTOPSIG(status) } else { 0 };
                Resumption { task, request: libc::PTRACE_CONT, signal }.resume()?;
            } else {
                self.tasks.remove(&task);
                self.ended = Some(status);
                return Err(TraceError::Start(born.failure().unwrap_or(Errno::ECANCELED)));
            }
        }
    }

    /// Lets the task of the last stop go on and waits for the next, of whichever task.
    pub(super) fn next_event(&mut self) -> Result<TraceEvent, TraceError> {
        loop {
            if let Some(status) = self.ended {
                return Ok(TraceEvent::Ended(status));
            }
            if let Some(stopped) = self.stopped.take() {
                stopped.resume()?;
            }
            let (task, status) = wait_for_any().map_err(TraceError::Trace)?;
            if !libc::WIFSTOPPED(status) {
                self.tasks.remove(&task);
                self.ended = (task == self.first).then_some(status);
                continue;
            }
            if let Some(stop) = self.at_stop(task, status).map_err(TraceError::Trace)? {
                return Ok(stop);
            }
        }
    }

    /// What a stop is, and how its task goes on; nothing to tell where it is no call.
    fn at_stop(&mut self, task: pid_t, status: c_int) -> Result<Option<TraceEvent>, Errno> {
        let call = self.tasks.entry(task).or_default();
        let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
        let mut next = Resumption { task, request: libc::PTRACE_SYSCALL, signal: 0 };
        let mut stop = None;
        match (signal, event) {
            (AT_CALL, _) => stop = told(task, call_info(task)?, call),
            (libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU, EVENT_STOP) => {
                next.request = libc::PTRACE_LISTEN;
            }
            // The task has the id of its process now; under its former one it is no more.
            (_, libc::PTRACE_EVENT_EXEC) => {
                let former = event_message(task)?;
                self.tasks.retain(|&other, _| other == task || other != former);
            }
            (signal, 0) => next.signal = signal,
            _ => {}
        }
        self.stopped = Some(next);
        Ok(stop)
    }

    /// Kills all of it, and waits for its end.
    pub(super) fn end(&self) {
        let mut tasks: HashSet<pid_t> = self.tasks.keys().copied().collect();
        // Whoever is being made while its parent dies comes up by its first stop, and is killed
        // in turn.
        loop {
            for &task in &tasks {
                let _ = crate::fork::kill(task.unsigned_abs());
            }
            match wait_for_any() {
                Ok((task, status)) if libc::WIFSTOPPED(status) => tasks.insert(task),
                Ok((task, _)) => tasks.remove(&task),
                Err(_) => break,
            };
        }
    }
}

impl Resumption {
    /// Lets the task go on. One that was killed meanwhile has gone.
    fn resume(self) -> Result<(), TraceError> {
        // SAFETY: numbers alone; the fourth is a signal.
        let result = unsafe { libc::ptrace(self.request, self.task, 0, c_long::from(self.signal)) };
        match done(result) {
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(errno) => Err(TraceError::Trace(errno)),
        }
    }
}

/// Seizes a child of ours, and with it all that it will make.
fn seize(child: pid_t) -> Result<(), Errno> {
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_EXITKILL;
    // SAFETY: numbers alone.
    done(unsafe { libc::ptrace(libc::PTRACE_SEIZE, child, 0, c_long::from(options)) })
}

/// What the kernel says of the call at which a task has stopped; `None` where it was killed
/// meanwhile.
fn call_info(task: pid_t) -> Result<Option<libc::ptrace_syscall_info>, Errno> {
    let mut info = std::mem::MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let bytes = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: the struct has the size that is said, lives on this stack, and is valid whatever
    // part of it the kernel writes, because all zeroes are.
    unsafe {
        match libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, task, bytes, info.as_mut_ptr()) {
            ..0 if Errno::last() == Errno::ESRCH => Ok(None),
            ..0 => Err(Errno::last()),
            _ => Ok(Some(info.assume_init())),
        }
    }
}

/// What there is to tell of a call, which is noted as the task's.
fn told(
    task: pid_t,
    info: Option<libc::ptrace_syscall_info>,
    call: &mut Option<CallInTask>,
) -> Option<TraceEvent> {
    let info = info?;
    match info.op {
        libc::PTRACE_SYSCALL_INFO_ENTRY => {
            // SAFETY: `op` says which part of the union the kernel has filled in.
            let entry = unsafe { info.u.entry };
            let entered = TracedCall { architecture: info.arch, number: entry.nr };
            let task = task.unsigned_abs();
            *call = Some(CallInTask { call: entered, task, arguments: entry.args });
            Some(TraceEvent::Enters(entered))
        }
        libc::PTRACE_SYSCALL_INFO_EXIT => {
            // SAFETY: as above.
            let exit = unsafe { info.u.exit };
            let value = (exit.is_error == 0).then(|| exit.sval.cast_unsigned());
            Some(TraceEvent::Returns { call: call.take(), value })
        }
        _ => None,
    }
}

/// What belongs to the event at which a task has stopped; 0 where it was killed meanwhile.
fn event_message(task: pid_t) -> Result<pid_t, Errno> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the kernel writes one word, which lives on this stack.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, task, 0, &raw mut message) };
    match done(result) {
        Ok(()) => Ok(pid_t::try_from(message).unwrap_or(0)),
        Err(Errno::ESRCH) => Ok(0),
        Err(errno) => Err(errno),
    }
}

/// Waits for any task that the calling thread traces to stop or to end.
fn wait_for_any() -> Result<(pid_t, c_int), Errno> {
    let mut status = 0;
    loop {
        // SAFETY: the kernel writes one int, which lives on this stack.
        match unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) } {
            ..0 if Errno::last() == Errno::EINTR => {}
            ..0 => return Err(Errno::last()),
            task => return Ok((task, status)),
        }
    }
}

fn done(result: c_long) -> Result<(), Errno> {
    if result < 0 { Err(Errno::last()) } else { Ok(()) }
}
