//! The child that becomes a traced program when its tracer is ready.
//!
//! # Safety
//! Between clone(2) and execve(2) the child makes async-signal-safe calls only
//! (signal-safety(7)), on its own copy of what was made before, and allocates nothing: locks of
//! the C library are as other threads left them.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use libc::{c_int, c_long, pid_t};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid};

use crate::errno::Errno;
use crate::launch::{Program, SignalsBlocked};

/// A program gets descriptors under numbers below this. What a child has until it executes is kept
/// at or above it, so that none is replaced too early.
const FIRST_COPY: RawFd = 10;

/// A child that waits until it may execute. Dropped, it ends, unless a tracer has it.
#[derive(Debug)]
pub(super) struct Born {
    pid: pid_t,
    /// Ends when the child executes, or says why it does not.
    stream: UnixStream,
    is_traced: bool,
}

impl Born {
    /// A child with these files and the program's errors open, the first process of a pid
    /// namespace of its own if it is to be apart. It is killed if the calling thread ends.
    ///
    /// Errors: of clone(2): `EPERM` for who may make no pid namespace; `EMFILE`.
    pub(super) fn of(
        program: &Program,
        files: &[(RawFd, BorrowedFd<'_>)],
        is_apart: bool,
    ) -> Result<Born, Errno> {
        let (stream, there) = UnixStream::pair()?;
        let copy = |fd: BorrowedFd<'_>| Ok::<_, Errno>(fcntl_dupfd_cloexec(fd, FIRST_COPY)?);
        let there = copy(there.as_fd())?;
        let errors = program.errors().map(|fd| (libc::STDERR_FILENO, fd));
        let files = files.iter().copied().chain(errors);
        let copies = files.map(|(number, fd)| Ok((number, copy(fd)?)));
        let copies = copies.collect::<Result<Vec<(RawFd, OwnedFd)>, Errno>>()?;
        let ends = (stream.as_raw_fd(), &there);
        let apart = if is_apart { libc::CLONE_NEWPID } else { 0 };
        let blocked = SignalsBlocked::all();
        // SAFETY: as fork(2) calls it: the child goes on here, on a copy of this stack, and ends
        // in `become_program`.
        let child = unsafe {
            libc::syscall(libc::SYS_clone, c_long::from(libc::SIGCHLD | apart), 0, 0, 0, 0)
        };
        match child {
            -1 => Err(Errno::last()),
            0 => become_program(program, &copies, ends, &blocked),
            child => {
                let pid = pid_t::try_from(child).map_err(|_| Errno::ESRCH)?;
                Ok(Born { pid, stream, is_traced: false })
            }
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// A descriptor of it (pidfd_open(2)).
    pub(super) fn fd(&self) -> Result<OwnedFd, Errno> {
        let pid = Pid::from_raw(self.pid).ok_or(Errno::ESRCH)?;
        Ok(pidfd_open(pid, PidfdFlags::empty())?)
    }

    /// Somebody else waits for its end from now on.
    pub(super) fn is_traced(&mut self) {
        self.is_traced = true;
    }

    /// Lets it execute.
    pub(super) fn execute(&mut self) -> Result<(), Errno> {
        Ok(self.stream.write_all(&[1])?)
    }

    /// Waits until it has executed or ended: why it did not execute, if it said so.
    pub(super) fn failure(&mut self) -> Option<Errno> {
        let mut said = [0; size_of::<i32>()];
        self.stream.read_exact(&mut said).ok()?;
        Some(Errno::from_raw(i32::from_ne_bytes(said)))
    }
}

impl Drop for Born {
    fn drop(&mut self) {
        if !self.is_traced {
            let _ = crate::fork::kill(self.id());
            let _ = wait(self.id());
        }
    }
}

/// Waits for the end of a child: its status of wait(2). With the first process of a pid namespace
/// all others there have ended.
pub(super) fn wait(child: u32) -> Result<i32, Errno> {
    let pid = Pid::from_raw(child.cast_signed());
    let ended = rustix::io::retry_on_intr(|| waitpid(pid, WaitOptions::empty()))?;
    ended.map(|(_, status)| status.as_raw()).ok_or(Errno::ECANCELED)
}

/// The child, from its birth to its execution, or its end.
fn become_program(
    program: &Program,
    files: &[(RawFd, OwnedFd)],
    (parents_end, ours): (RawFd, &OwnedFd),
    blocked: &SignalsBlocked,
) -> ! {
    let mut byte = [0u8; 1];
    // SAFETY: every call is async-signal-safe, and what they are given is this process's own
    // copy. The parent's end is closed here, so that the end of the parent is that of the stream.
    unsafe {
        libc::close(parents_end);
        for signal in [libc::SIGPIPE, libc::SIGINT] {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut ready = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0;
        ready = ready && libc::setpgid(0, 0) == 0;
        for (to, from) in files {
            ready = ready && libc::dup2(from.as_raw_fd(), *to) == *to;
        }
        // The parent writes when it has seen that this child is there: it ended before, or the
        // signal of its end comes.
        let go = libc::read(ours.as_raw_fd(), byte.as_mut_ptr().cast(), 1);
        if ready && go == 1 {
            blocked.put_back();
            program.execute();
        }
        let errno = *libc::__errno_location();
        libc::write(ours.as_raw_fd(), (&raw const errno).cast(), size_of::<c_int>());
        libc::_exit(127)
    }
}
