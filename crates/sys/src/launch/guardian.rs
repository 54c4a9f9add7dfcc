//! Kills the process groups of programs if iolens is killed. The kernel kills the first process of
//! each group (`PR_SET_PDEATHSIG`), but not the processes that this one has started.
//!
//! A guardian is forked for a thread that asks for one, before it has anything to measure: after a
//! fork the next write to each page copies it. It waits for the end of a pipe, whose other end only
//! that thread's process has, and then kills the groups whose numbers stand in memory that both
//! see. The kernel writes a number there as it makes the process (`CLONE_PARENT_SETTID`), and
//! waiting for that process takes the number out again. Neither costs a system call, and the
//! guardian sleeps meanwhile. A process that leaves its group is not found.
//!
//! # Safety
//! The guardian is forked off and makes async-signal-safe calls only (signal-safety(7)), on its own
//! copy of what was made before. It ends by _exit(2). The kernel writes into a number of the shared
//! memory, which lives as long as the value that leads there.

use std::cell::RefCell;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use libc::{c_long, pid_t};

use super::SignalsBlocked;
use crate::errno::Errno;
use crate::pipe;
use crate::shared::{ROW, SharedNumbers};

/// Rows of groups: more than are there at once. A group beyond them has no guardian.
const ROWS: usize = 64;

/// A number that is taken, and has no group yet: the kernel writes the lower half.
const TAKEN: u64 = 1 << 32;

thread_local! {
    static GUARDIAN: RefCell<Option<Guardian>> = const { RefCell::new(None) };
}

/// A process that waits for the end of this thread or of its process.
#[derive(Debug)]
struct Guardian {
    groups: Arc<SharedNumbers>,
    guardian: pid_t,
    /// The process that forked it: a fork of that has this value, and no guardian.
    of: u32,
    _ours: OwnedFd,
}

/// The place of a group that is killed if this process is.
#[derive(Debug)]
pub(super) struct Place {
    groups: Arc<SharedNumbers>,
    at: usize,
}

/// Has a guardian for the programs that this thread starts from now on. Where there can be none,
/// they are started without.
pub fn stand_by() {
    if with_guardian(|_| ()).is_none() {
        // A thread that ends has none any more.
        let _ = GUARDIAN.try_with(|own| *own.borrow_mut() = Guardian::new().ok());
    }
}

/// A place for a group of this thread; `None` where there is no guardian, or no place.
pub(super) fn place() -> Option<Place> {
    with_guardian(Guardian::place).flatten()
}

/// The guardian of this thread.
#[cfg(test)]
pub(super) fn own() -> Option<pid_t> {
    with_guardian(|own| own.guardian)
}

fn with_guardian<T>(work: impl FnOnce(&Guardian) -> T) -> Option<T> {
    let is_own = |guardian: &&Guardian| guardian.of == std::process::id();
    GUARDIAN.try_with(|own| own.borrow().as_ref().filter(is_own).map(work)).ok().flatten()
}

impl Guardian {
    /// Errors: `EMFILE`, `ENOMEM`, `EAGAIN` beyond limits of processes.
    fn new() -> Result<Guardian, Errno> {
        let groups = Arc::new(SharedNumbers::new(ROWS)?);
        let (theirs, ours) = pipe::open(1)?;
        let highest = highest_descriptor();
        let blocked = SignalsBlocked::all();
        // Without a signal at its end, so that waiting for any child does not find it.
        // SAFETY: as fork(2) calls it: the child goes on here, on a copy of this stack, and ends
        // in `guard`.
        let child = unsafe { libc::syscall(libc::SYS_clone, c_long::from(0), 0, 0, 0, 0) };
        match child {
            -1 => Err(Errno::last()),
            0 => guard(theirs.as_raw_fd(), highest, &groups),
            child => {
                drop(blocked);
                let guardian = pid_t::try_from(child).map_err(|_| Errno::ESRCH)?;
                Ok(Guardian { groups, guardian, of: std::process::id(), _ours: ours })
            }
        }
    }

    fn place(&self) -> Option<Place> {
        let mut numbers = self.groups.rows().iter().flatten();
        // Only this thread takes numbers; any thread may give one back.
        let at = numbers.position(|number| number.load(Ordering::Acquire) == 0)?;
        let place = Place { groups: Arc::clone(&self.groups), at };
        place.number().store(TAKEN, Ordering::Release);
        Some(place)
    }
}

/// It ends with its thread, even if a fork of this process holds the other end of the pipe too.
impl Drop for Guardian {
    fn drop(&mut self) {
        if self.of != std::process::id() {
            return;
        }
        kill_all(&self.groups);
        // SAFETY: takes numbers; the status is not asked for. The guardian has its number until it
        // is waited for here.
        unsafe {
            libc::kill(self.guardian, libc::SIGKILL);
            while libc::waitpid(self.guardian, std::ptr::null_mut(), libc::__WALL) == -1
                && Errno::last() == Errno::EINTR
            {}
        }
    }
}

impl Place {
    fn number(&self) -> &AtomicU64 {
        &self.groups.rows()[self.at / ROW][self.at % ROW]
    }

    /// Where the kernel writes the number of the process that is to lead the group.
    pub(super) fn as_ptr(&self) -> *mut pid_t {
        // The lower half comes first: all processors of ours are little-endian.
        self.number().as_ptr().cast()
    }

    /// The group has been killed, or never was: its number may be another's from now on.
    pub(super) fn leave(self) {
        self.number().store(0, Ordering::Release);
    }
}

/// The guardian, from its birth to its end.
fn guard(pipe: RawFd, highest: u32, groups: &SharedNumbers) -> ! {
    // SAFETY: every call is async-signal-safe, and takes numbers or what lives on this stack.
    // Signals are blocked, as they were in the parent.
    unsafe {
        // Killing the process group of iolens, as a terminal does, must not end it.
        libc::setsid();
        // `pkill iolens` must not end it.
        libc::prctl(libc::PR_SET_NAME, c"guard-programs".as_ptr());
        close_all_but(pipe.unsigned_abs(), highest);
        let mut byte = 0u8;
        while libc::read(pipe, (&raw mut byte).cast(), 1) == -1 && Errno::last() == Errno::EINTR {}
        kill_all(groups);
        libc::_exit(0)
    }
}

/// Kills all groups that nobody has waited for. Async-signal-safe.
fn kill_all(groups: &SharedNumbers) {
    for number in groups.rows().iter().flatten() {
        let low = (number.load(Ordering::Acquire) & (TAKEN - 1)).cast_signed();
        if let Ok(leader @ 2..) = pid_t::try_from(low) {
            // SAFETY: takes numbers. The leader keeps its number until it is waited for, and the
            // number is taken out before that.
            unsafe { libc::kill(-leader, libc::SIGKILL) };
        }
    }
}

/// The highest of the descriptors, or more.
fn highest_descriptor() -> u32 {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.max().unwrap_or(1 << 16)
}

/// Closes every descriptor but one: an open copy would keep files and pipes of iolens alive.
///
/// # Safety
/// Nobody in this process may use another one from here on.
unsafe fn close_all_but(kept: u32, highest: u32) {
    let close = |first: u32, last: u32| {
        // SAFETY: takes numbers; what this closes is used by nobody.
        first > last || unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0
    };
    let has_closed = kept.checked_sub(1).is_none_or(|last| close(0, last));
    if has_closed && close(kept + 1, u32::MAX) {
        return;
    }
    // Before Linux 5.9, and where a filter refuses it.
    for fd in (0..=highest).filter(|fd| *fd != kept) {
        // SAFETY: as above.
        unsafe { libc::close(fd.cast_signed()) };
    }
}
