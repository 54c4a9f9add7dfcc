//! The system calls of a program and of all that it starts, by ptrace(2), which needs no
//! privilege for one's own children. Linux 5.3 (`PTRACE_GET_SYSCALL_INFO`), on all
//! architectures alike.
//!
//! The program is seized (`PTRACE_SEIZE`) before it executes, rather than asking for it by
//! `PTRACE_TRACEME`: a new thread or child then begins with a stop of its own kind, not with a
//! SIGSTOP that somebody may have sent, and what job control has stopped stays so
//! (`PTRACE_LISTEN`).
//!
//! # Safety
//! ptrace(2) is given numbers, and pointers to what lives on the caller's stack: a word and a
//! struct of the size that is said beside it. Between fork(2) and execve(2) the child makes
//! async-signal-safe calls only (signal-safety(7)), on its own copy of what was made before.

#![expect(unsafe_code, reason = "see the safety note above")]

mod call;
mod watch;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use libc::{c_int, c_long, c_uint, pid_t};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::errno::Errno;
use crate::launch::{Program, SignalsBlocked};
use crate::ptrace::watch::Watch;

pub use call::{CallInTask, TracedCall};

/// A stop at a system call, with `PTRACE_O_TRACESYSGOOD`.
const AT_CALL: c_int = libc::SIGTRAP | 0x80;

/// A stop of a seized task that no signal delivers: `PTRACE_EVENT_STOP`, <linux/ptrace.h>.
const EVENT_STOP: c_int = 128;

/// A program gets descriptors under numbers below this. What a child has until it executes is kept
/// at or above it, so that none is replaced too early.
const FIRST_COPY: RawFd = 10;

/// What a traced program, or something that it started, has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceStop {
    /// It is about to make a call.
    Enters(TracedCall),
    /// A call has come back.
    Returns {
        /// Which; `None` for one that was made before it was traced.
        call: Option<CallInTask>,
        /// What it said; `None` for an error.
        value: Option<u64>,
    },
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
}

/// Why a program was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceKill {
    /// Its time was over.
    Overdue,
    /// Who started it wanted an end.
    Cancelled,
}

/// A program whose system calls are seen, and those of its threads and children. Dropped, it is
/// killed with all of them and waited for; if the thread that started it ends, the kernel kills
/// them (`PTRACE_O_EXITKILL`). Only that thread may have to do with it.
#[derive(Debug)]
pub struct TracedProgram {
    first: pid_t,
    /// Every task, with the call that it is in.
    tasks: HashMap<pid_t, Option<CallInTask>>,
    /// The task whose stop was told last: it goes on when the next is asked for.
    stopped: Option<Resumption>,
    ended: Option<i32>,
    /// The first process; `None` until it is there.
    fd: Option<OwnedFd>,
    watches: Vec<Watch>,
    _stays: PhantomData<*const ()>,
}

/// How a task goes on.
#[derive(Debug, Clone, Copy)]
struct Resumption {
    task: pid_t,
    request: c_uint,
    /// The signal that it gets; 0 for none.
    signal: c_int,
}

impl TracedProgram {
    /// Starts a program, with `files` open under these numbers, below 10 and not 2, in a process
    /// group of its own. It is killed, whatever it does, at the deadline, a time of
    /// [`crate::clock`], and as soon as `cancel` can be read from or has ended. The calling
    /// thread must have no other child: [`Self::next_stop`] waits for all.
    ///
    /// Errors: of fork(2) and execve(2); of `PTRACE_SEIZE`: `EPERM` where a security module,
    /// a filter of system calls or another tracer is before us, `EIO` before Linux 3.4.
    pub fn start(
        program: &Program,
        files: &[(RawFd, BorrowedFd<'_>)],
        deadline_ns: u64,
        cancel: BorrowedFd<'_>,
    ) -> Result<TracedProgram, TraceError> {
        let (mut here, there) = UnixStream::pair().map_err(not_started)?;
        let copy = |fd: BorrowedFd<'_>| fcntl_dupfd_cloexec(fd, FIRST_COPY).map_err(not_started);
        let there = copy(there.as_fd())?;
        let errors = program.errors().map(|fd| (libc::STDERR_FILENO, fd));
        let files = files.iter().copied().chain(errors);
        let copies = files.map(|(number, fd)| Ok((number, copy(fd)?)));
        let copies = copies.collect::<Result<Vec<(RawFd, OwnedFd)>, TraceError>>()?;
        let ends = (here.as_raw_fd(), &there);
        let blocked = SignalsBlocked::all();
        let child = crate::fork::start(|| become_program(program, &copies, ends, &blocked));
        drop(blocked);
        drop((copies, there));
        let first = child.map_err(not_started)?.cast_signed();
        let mut traced = TracedProgram {
            first,
            tasks: HashMap::from([(first, None)]),
            stopped: None,
            ended: None,
            fd: None,
            watches: Vec::new(),
            _stays: PhantomData,
        };
        let id = Pid::from_raw(first).ok_or(not_started(Errno::ESRCH))?;
        traced.fd = Some(pidfd_open(id, PidfdFlags::empty()).map_err(not_started)?);
        traced.watch(deadline_ns, Some(cancel)).map_err(not_started)?;
        seize(first).map_err(TraceError::Seize)?;
        here.write_all(&[1]).map_err(not_started)?;
        traced.await_execution(&mut here)?;
        Ok(traced)
    }

    /// Waits for its execution, the calls before which are ours.
    fn await_execution(&mut self, from: &mut UnixStream) -> Result<(), TraceError> {
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
                let mut said = [0; size_of::<i32>()];
                let why = from.read_exact(&mut said).map(|()| i32::from_ne_bytes(said));
                return Err(TraceError::Start(why.map_or(Errno::ECANCELED, Errno::from_raw)));
            }
        }
    }

    /// The first process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.first.unsigned_abs()
    }

    /// Why it was killed, if it was, or has been told to be.
    #[must_use]
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
        let program = self.fd.as_ref().ok_or(Errno::ESRCH)?.try_clone()?;
        let cancel = cancel.map(|fd| fd.try_clone_to_owned()).transpose()?;
        self.watches.push(Watch::over(program, deadline_ns, cancel)?);
        Ok(())
    }

    /// Lets the task of the last stop go on and waits for the next, of whichever task. Signals
    /// are passed on. Once the first process has ended, so says every call.
    ///
    /// Errors: of ptrace(2) and wait4(2): `EIO` before Linux 5.3.
    pub fn next_stop(&mut self) -> Result<TraceStop, TraceError> {
        loop {
            if let Some(status) = self.ended {
                return Ok(TraceStop::Ended(status));
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
    fn at_stop(&mut self, task: pid_t, status: c_int) -> Result<Option<TraceStop>, Errno> {
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
}

impl Drop for TracedProgram {
    fn drop(&mut self) {
        // Whoever is being made while its parent dies comes up by its first stop, and is killed
        // in turn.
        loop {
            for &task in self.tasks.keys() {
                let _ = crate::fork::kill(task.unsigned_abs());
            }
            match wait_for_any() {
                Ok((task, status)) if libc::WIFSTOPPED(status) => {
                    self.tasks.insert(task, None);
                }
                Ok((task, _)) => {
                    self.tasks.remove(&task);
                }
                Err(_) => break,
            }
        }
        self.watches.drain(..).for_each(Watch::end);
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

/// The child, from its birth to its execution, or the status of its end.
fn become_program(
    program: &Program,
    files: &[(RawFd, OwnedFd)],
    (parents_end, ours): (RawFd, &OwnedFd),
    blocked: &SignalsBlocked,
) -> u8 {
    let mut byte = [0u8; 1];
    // SAFETY: every call is async-signal-safe, and what they are given is this process's own
    // copy. The parent's end is closed here, so that the end of the parent is that of the stream.
    unsafe {
        libc::close(parents_end);
        for signal in [libc::SIGPIPE, libc::SIGINT] {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut ready = libc::setpgid(0, 0) == 0;
        for (to, from) in files {
            ready = ready && libc::dup2(from.as_raw_fd(), *to) == *to;
        }
        let go = libc::read(ours.as_raw_fd(), byte.as_mut_ptr().cast(), 1);
        if ready && go == 1 {
            blocked.put_back();
            program.execute();
        }
        let errno = *libc::__errno_location();
        libc::write(ours.as_raw_fd(), (&raw const errno).cast(), size_of::<c_int>());
    }
    127
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
) -> Option<TraceStop> {
    let info = info?;
    match info.op {
        libc::PTRACE_SYSCALL_INFO_ENTRY => {
            // SAFETY: `op` says which part of the union the kernel has filled in.
            let entry = unsafe { info.u.entry };
            let entered = TracedCall { architecture: info.arch, number: entry.nr };
            let task = task.unsigned_abs();
            *call = Some(CallInTask { call: entered, task, arguments: entry.args });
            Some(TraceStop::Enters(entered))
        }
        libc::PTRACE_SYSCALL_INFO_EXIT => {
            // SAFETY: as above.
            let exit = unsafe { info.u.exit };
            let value = (exit.is_error == 0).then(|| exit.sval.cast_unsigned());
            Some(TraceStop::Returns { call: call.take(), value })
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

fn not_started(error: impl Into<Errno>) -> TraceError {
    TraceError::Start(error.into())
}

fn done(result: c_long) -> Result<(), Errno> {
    if result < 0 { Err(Errno::last()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use rustix::process::Signal;

    use super::*;
    use crate::clock::monotonic_ns;
    use crate::skip;

    const MINUTE_NS: u64 = 60_000_000_000;

    /// Calls by name until a program's end, its status, and why it was killed.
    type Seen = (HashMap<&'static str, u64>, ExitStatus, Option<TraceKill>);

    fn start(path: &str, words: &[&str], limit_ns: u64) -> Result<TracedProgram, TraceError> {
        // Nobody writes to it, and it has no end as long as the other end is open: for ever.
        let (cancel, other) = crate::pipe::open(1).unwrap();
        std::mem::forget(other);
        start_until(path, words, limit_ns, cancel.as_fd())
    }

    fn start_until(
        path: &str,
        words: &[&str],
        limit_ns: u64,
        cancel: BorrowedFd<'_>,
    ) -> Result<TracedProgram, TraceError> {
        let errors = crate::file::in_folder(&std::env::temp_dir()).unwrap();
        let words: Vec<_> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let program = Program::new(path.as_ref(), &words, errors).unwrap();
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        let files = [(0, null.as_fd()), (1, null.as_fd())];
        let deadline_ns = monotonic_ns().saturating_add(limit_ns);
        TracedProgram::start(&program, &files, deadline_ns, cancel)
    }

    /// `None` where nothing may be traced, which is noted for the test of this name.
    fn if_allowed(test: &str, traced: Result<TracedProgram, TraceError>) -> Option<TracedProgram> {
        match traced {
            Err(why @ TraceError::Seize(_)) => {
                skip::note(&format!("ptrace::tests::{test}"), &why.to_string());
                None
            }
            traced => Some(traced.unwrap()),
        }
    }

    fn run(test: &str, words: &[&str], limit_ns: u64) -> Option<Seen> {
        let mut traced = if_allowed(test, start(words[0], words, limit_ns))?;
        let mut seen = HashMap::new();
        loop {
            match traced.next_stop().unwrap() {
                TraceStop::Enters(call) => *seen.entry(call.name().unwrap()).or_default() += 1,
                TraceStop::Returns { .. } => {}
                TraceStop::Ended(status) => {
                    return Some((seen, ExitStatus::from_raw(status), traced.killed()));
                }
            }
        }
    }

    /// This program, to run one of its tests.
    fn itself(test: &str) -> [String; 3] {
        let own = std::env::current_exe().unwrap().into_os_string().into_string().unwrap();
        [own, "--exact".to_owned(), format!("ptrace::tests::{test}")]
    }

    #[test]
    fn every_call_of_a_program_and_its_children_is_seen() {
        let test = "every_call_of_a_program_and_its_children_is_seen";
        let seven = ["kill -0 $$"; 7].join("; ");
        let script = format!("{seven}; ({seven}; ({seven}); exit 0) & wait; exit 3");
        let Some((seen, status, killed)) = run(test, &["/bin/sh", "-c", &script], MINUTE_NS) else {
            return;
        };
        assert_eq!((seen["kill"], seen["exit_group"]), (21, 3), "{seen:?}");
        assert_eq!((status.code(), killed), (Some(3), None));
    }

    #[test]
    fn threads_are_followed() {
        let test = "threads_are_followed";
        let words = itself("two_threads_make_fifty_calls_each");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let Some((seen, status, _)) = run(test, &words, MINUTE_NS) else { return };
        assert!(status.success(), "{status}");
        assert_eq!(seen["getppid"], 100, "{seen:?}");
    }

    #[test]
    fn two_threads_make_fifty_calls_each() {
        let calls = || (0..50).for_each(|_| assert!(crate::null_call::getppid() > 0));
        let threads = [std::thread::spawn(calls), std::thread::spawn(calls)];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn signals_arrive() {
        let script = "trap 'kill -0 $$' USR1; kill -USR1 $$; kill -TERM $$";
        let words = ["/bin/sh", "-c", script];
        let Some((seen, status, _)) = run("signals_arrive", &words, MINUTE_NS) else { return };
        assert_eq!((seen["kill"], status.signal()), (3, Some(libc::SIGTERM)), "{seen:?}");
    }

    #[test]
    fn what_is_stopped_stays_so() {
        let words = itself("a_child_that_is_stopped_goes_on_when_it_is_told");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let Some((seen, status, _)) = run("what_is_stopped_stays_so", &words, MINUTE_NS) else {
            return;
        };
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

    #[test]
    fn one_that_takes_too_long_is_killed_with_what_it_started() {
        let test = "one_that_takes_too_long_is_killed_with_what_it_started";
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("child");
        let child = "trap '' TERM HUP; while :; do :; done";
        let script =
            format!("setsid sh -c \"echo \\$\\$ >{}; {child}\" & wait", note.to_str().unwrap());
        let limit_ns = 300_000_000;
        let Some((_, status, killed)) = run(test, &["/bin/sh", "-c", &script], limit_ns) else {
            return;
        };
        assert_eq!((status.signal(), killed), (Some(libc::SIGKILL), Some(TraceKill::Overdue)));
        // On a machine that is too busy it may not have come so far.
        let id = std::fs::read_to_string(note).unwrap_or_default();
        if let Ok(id) = id.trim().parse::<u32>() {
            let state = std::fs::read_to_string(format!("/proc/{id}/stat"));
            assert!(state.as_ref().map_or(true, |state| state.contains(") Z ")), "{state:?}");
        }
    }

    #[test]
    fn one_that_is_cancelled_is_killed() {
        let (cancel, other) = crate::pipe::open(1).unwrap();
        let words = ["sh", "-c", "while :; do :; done"];
        let traced = start_until("/bin/sh", &words, u64::MAX, cancel.as_fd());
        let Some(mut traced) = if_allowed("one_that_is_cancelled_is_killed", traced) else {
            return;
        };
        drop(other);
        while !matches!(traced.next_stop().unwrap(), TraceStop::Ended(_)) {}
        assert_eq!(traced.killed(), Some(TraceKill::Cancelled));
    }

    #[test]
    fn one_that_is_dropped_is_gone() {
        let script = "while :; do :; done & while :; do kill -0 $$; done";
        let traced = start("/bin/sh", &["sh", "-c", script], u64::MAX);
        let Some(mut traced) = if_allowed("one_that_is_dropped_is_gone", traced) else { return };
        let name = |stop| match stop {
            TraceStop::Enters(call) => call.name(),
            _ => None,
        };
        while name(traced.next_stop().unwrap()) != Some("kill") {}
        drop(traced);
        assert_eq!(wait_for_any(), Err(Errno::from_raw(libc::ECHILD)));
    }

    #[test]
    fn what_cannot_be_executed_is_an_error_and_not_an_end() {
        let start = |path| start(path, &["x"], MINUTE_NS).map(drop);
        let seize = |result: &Result<(), TraceError>| matches!(result, Err(TraceError::Seize(_)));
        let missing = start("/no/such/program");
        assert!(missing == Err(TraceError::Start(Errno::ENOENT)) || seize(&missing), "{missing:?}");
        let folder = start("/");
        assert!(folder == Err(TraceError::Start(Errno::EACCES)) || seize(&folder), "{folder:?}");
    }
}
