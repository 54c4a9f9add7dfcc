//! Processes that are forked off and never become another program, as servers
//! of old make them; see fork(2), wait(2).
//!
//! # Safety
//! The child runs one closure and then ends by _exit(2): it never returns into
//! frames of its parent, runs none of their destructors and no handler of
//! atexit(3). Other threads of the parent do not exist in it: to the child they
//! stopped for ever. It must therefore take no lock that they may hold, which
//! would wait for ever, and start no thread. The C library puts the locks of its
//! allocator right (`__malloc_fork_unlock_child`, malloc/arena.c).

#![expect(unsafe_code, reason = "see the safety note above")]

use std::panic::AssertUnwindSafe;

use rustix::process::{Pid, Signal};

use crate::errno::Errno;

/// Exit code of a child whose closure panicked, as of a program of Rust's.
const PANICKED: u8 = 101;

/// A child that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its id, which is free from now on.
    pub id: u32,
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<u8>,
}

/// Forks a child that does `work` and ends with its result as exit code. It also
/// ends, by SIGKILL, when the thread that forked it does (`PR_SET_PDEATHSIG`).
/// Returns its id.
///
/// Errors: `EAGAIN` beyond `RLIMIT_NPROC`, a cgroup's pids.max or
/// kernel.pid_max; `ENOMEM`.
pub fn start(work: impl FnOnce() -> u8) -> Result<u32, Errno> {
    let parent = rustix::process::getpid();
    // SAFETY: the child ends in `end_with` whatever becomes of the closure; what
    // the closure may not do is said above.
    match unsafe { libc::fork() } {
        -1 => Err(Errno::last()),
        0 => {
            let tied = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            // The parent may have ended before that.
            if tied.is_err() || rustix::process::getppid() != Some(parent) {
                end_with(PANICKED);
            }
            end_with(std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or(PANICKED))
        }
        child => Ok(child.unsigned_abs()),
    }
}

fn end_with(code: u8) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(code.into()) }
}

/// Whether a call waits for the end of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Until one ends.
    Waits,
    /// Not at all (`WNOHANG`).
    Looks,
}

/// Takes note of a child of the calling thread that has ended, and of no other
/// thread's (`__WNOTHREAD`); nothing where none has and it only looks.
///
/// Errors: `ECHILD` where there is none; `EINTR`.
pub fn ended(patience: Patience) -> Result<Option<Ended>, Errno> {
    let look = match patience {
        Patience::Waits => 0,
        Patience::Looks => libc::WNOHANG,
    };
    let mut status = 0;
    // SAFETY: the kernel writes one int, which lives on this stack.
    match unsafe { libc::waitpid(-1, &raw mut status, look | libc::__WNOTHREAD) } {
        -1 => Err(Errno::last()),
        0 => Ok(None),
        id => {
            let exited = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
            let code = exited.and_then(|code| u8::try_from(code).ok());
            Ok(Some(Ended { id: id.unsigned_abs(), code }))
        }
    }
}

/// Ends a child of which [`ended`] has not told, by SIGKILL.
///
/// Errors: `ESRCH` where there is no such process.
pub fn kill(id: u32) -> Result<(), Errno> {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw).ok_or(Errno::ESRCH)?;
    Ok(rustix::process::kill_process(pid, Signal::KILL)?)
}

/// Kills a process group (`SIGKILL`), by the process that leads it.
///
/// Errors: `ESRCH` where there is none.
pub fn kill_group(id: u32) -> Result<(), Errno> {
    let pid = rustix::process::Pid::from_raw(id.cast_signed()).ok_or(Errno::ESRCH)?;
    Ok(rustix::process::kill_process_group(pid, Signal::KILL)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_says_how_it_ended() {
        let first = start(|| 7).unwrap();
        assert_eq!(ended(Patience::Waits), Ok(Some(Ended { id: first, code: Some(7) })));
        let second = start(|| {
            loop {
                std::hint::spin_loop()
            }
        })
        .unwrap();
        assert_eq!(ended(Patience::Looks), Ok(None));
        kill(second).unwrap();
        assert_eq!(ended(Patience::Waits), Ok(Some(Ended { id: second, code: None })));
        assert_eq!(ended(Patience::Looks), Err(Errno::from_raw(libc::ECHILD)));
    }

    #[test]
    fn children_of_another_thread_are_not_taken() {
        let theirs = start(|| 3).unwrap();
        let other = std::thread::spawn(|| ended(Patience::Waits));
        assert_eq!(other.join().unwrap(), Err(Errno::from_raw(libc::ECHILD)));
        assert_eq!(ended(Patience::Waits), Ok(Some(Ended { id: theirs, code: Some(3) })));
    }
}
