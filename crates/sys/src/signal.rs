//! Signals as bytes in a pipe, so that the one loop that waits for workers
//! also hears the user.
//!
//! # Safety
//! The handler does nothing but write(2) to a descriptor that is never closed.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use rustix::pipe::{PipeFlags, pipe_with};

use crate::errno::Errno;

/// The signal of who reads a mapped page that its file has lost (`SIGBUS`).
pub const BUS: i32 = libc::SIGBUS;

/// An address that is not the process's.
pub const SEGV: i32 = libc::SIGSEGV;

/// Write end of the pipe, for the handler; -1 before there is one. Written
/// once and never closed, so the handler can always use it.
static PIPE_WRITE: AtomicI32 = AtomicI32::new(-1);

/// Whether the process was continued.
static CONTINUED: AtomicBool = AtomicBool::new(false);

/// Whether somebody listens.
static CAUGHT: AtomicBool = AtomicBool::new(false);

/// The readable side of "the user wants this to end". When it is dropped, signals do again what
/// they did before.
#[derive(Debug)]
pub struct Interrupts {
    read: BorrowedFd<'static>,
    came: Cell<bool>,
    before: Vec<(libc::c_int, libc::sighandler_t)>,
}

extern "C" fn on_signal(signal: libc::c_int) {
    let fd = PIPE_WRITE.load(Ordering::Relaxed);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 64")]
    let byte = signal as u8;
    // SAFETY: write(2) is async-signal-safe and `byte` lives on this stack;
    // errno is saved and put back because the interrupted code may read it.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(fd, (&raw const byte).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

extern "C" fn on_continue(_: libc::c_int) {
    CONTINUED.store(true, Ordering::Relaxed);
}

impl Interrupts {
    /// Catches SIGINT, SIGTERM and SIGHUP from now on, those excepted that
    /// whoever started us wants ignored (nohup(1)).
    ///
    /// Errors: `EMFILE` and the like from pipe2(2), `EBUSY` while they are caught.
    pub fn catch() -> Result<Interrupts, Errno> {
        Interrupts::catch_but(|_| false)
    }

    /// As [`Self::catch`], and SIGINT also where it is ignored: a shell without job control
    /// ignores it for what a script starts with `&`, and nobody has asked for that.
    ///
    /// Errors: as [`Self::catch`].
    pub fn catch_in_scripts_too() -> Result<Interrupts, Errno> {
        Interrupts::catch_but(|signal| signal == libc::SIGINT)
    }

    /// Catches those that are not ignored, and those that are caught all the same.
    fn catch_but(all_the_same: impl Fn(libc::c_int) -> bool) -> Result<Interrupts, Errno> {
        let read = pipe()?;
        if CAUGHT.swap(true, Ordering::Acquire) {
            return Err(Errno::EBUSY);
        }
        let mut caught = Interrupts { read, came: Cell::new(false), before: Vec::new() };
        // What came for those who listened before.
        while matches!(rustix::io::read(read, &mut [0u8; 16]), Ok(1..)) {}
        let ends = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
        let ends = ends.map(|signal| (signal, on_signal as *const ()));
        for (signal, own) in ends.into_iter().chain([(libc::SIGCONT, on_continue as *const ())]) {
            let before = handler(signal)?;
            if before != libc::SIG_IGN || all_the_same(signal) {
                set_handler(signal, own as libc::sighandler_t)?;
                caught.before.push((signal, before));
            }
        }
        Ok(caught)
    }

    /// Whether this process was stopped (`SIGSTOP`, `SIGTSTP`) and has gone on since this was
    /// asked last: clocks ran meanwhile.
    pub fn was_stopped(&self) -> bool {
        CONTINUED.swap(false, Ordering::Relaxed)
    }

    /// Whether a signal has come since [`Self::catch`]; once it has, it stays.
    pub fn came(&self) -> bool {
        if matches!(rustix::io::read(self.read, &mut [0u8; 16]), Ok(1..)) {
            self.came.set(true);
        }
        self.came.get()
    }
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        for &(signal, before) in &self.before {
            // It was set with success before.
            let _ = set_handler(signal, before);
        }
        CAUGHT.store(false, Ordering::Release);
    }
}

/// The read end of the pipe, which is made once and stays: a handler never finds it closed.
fn pipe() -> Result<BorrowedFd<'static>, Errno> {
    static PIPE: OnceLock<[OwnedFd; 2]> = OnceLock::new();
    let [read, write] = match PIPE.get() {
        Some(made) => made,
        None => {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
            PIPE.get_or_init(|| [read, write])
        }
    };
    PIPE_WRITE.store(write.as_raw_fd(), Ordering::Relaxed);
    Ok(read.as_fd())
}

/// SIGINT, SIGTERM and SIGHUP kept waiting, for as long as there is something to put back
/// first: they do what they do when this is dropped. Of the calling thread, so all others
/// must do the same, or not be there.
#[derive(Debug)]
pub(crate) struct Delayed {
    before: libc::sigset_t,
    waiting: OwnedFd,
}

impl Delayed {
    /// From now on.
    ///
    /// Errors: `EMFILE` and the like from signalfd(2).
    pub(crate) fn these() -> Result<Delayed, Errno> {
        // SAFETY: the sets live on this stack, and the kernel and libc only fill them in; the
        // descriptor is new and nobody else's.
        unsafe {
            let mut these: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut these);
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::sigaddset(&raw mut these, signal);
            }
            let fd = libc::signalfd(-1, &raw const these, libc::SFD_CLOEXEC);
            if fd < 0 {
                return Err(Errno::last());
            }
            let waiting = OwnedFd::from_raw_fd(fd);
            match libc::pthread_sigmask(libc::SIG_BLOCK, &raw const these, &raw mut before) {
                0 => Ok(Delayed { before, waiting }),
                error => Err(Errno::from_raw(error)),
            }
        }
    }
}

/// Readable as soon as one waits.
impl AsFd for Delayed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiting.as_fd()
    }
}

impl Drop for Delayed {
    fn drop(&mut self) {
        // SAFETY: the set was filled in by pthread_sigmask(3), which cannot fail with it.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut())
        };
    }
}

/// A thread of this process, to interrupt it.
#[derive(Debug, Clone, Copy)]
pub struct ThreadId(rustix::thread::Pid);

/// The calling thread.
pub fn this_thread() -> ThreadId {
    ThreadId(rustix::thread::gettid())
}

/// Interrupts whatever a thread waits for, by SIGTERM to it alone, which must
/// be caught ([`Interrupts::catch`]): the call returns what it has done so far,
/// or `EINTR`.
///
/// Errors: `ESRCH` when the thread has ended.
pub fn interrupt(thread: ThreadId) -> Result<(), Errno> {
    let process = rustix::process::getpid().as_raw_nonzero().get();
    let thread = thread.0.as_raw_nonzero().get();
    // SAFETY: tgkill(2) takes three numbers and touches no memory of ours.
    match unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGTERM) } {
        0 => Ok(()),
        _ => Err(Errno::last()),
    }
}

/// Ignores the keyboard's interrupt: a worker ends when its control pipe
/// does, not when the terminal says so.
///
/// Errors: none for SIGINT; passed on if there is one.
pub fn ignore_interrupt() -> Result<(), Errno> {
    set_handler(libc::SIGINT, libc::SIG_IGN)
}

/// Lets a write beyond `RLIMIT_FSIZE` fail with `EFBIG`, instead of ending the
/// process by SIGXFSZ.
///
/// Errors: none for SIGXFSZ; passed on if there is one.
pub fn ignore_file_size_limit() -> Result<(), Errno> {
    set_handler(libc::SIGXFSZ, libc::SIG_IGN)
}

/// Stops ignoring SIGCHLD, which a parent may have ignored and which execve(2) keeps so: children
/// would vanish as they end, and their numbers could become those of others.
///
/// Errors: none for SIGCHLD; passed on if there is one.
pub fn wait_for_children() -> Result<(), Errno> {
    set_handler(libc::SIGCHLD, libc::SIG_DFL)
}

/// Waits for no child: the kernel forgets one as it ends, and charges its time to nobody (wait(2),
/// NOTES).
///
/// Errors: none for SIGCHLD; passed on if there is one.
pub fn ignore_children() -> Result<(), Errno> {
    set_handler(libc::SIGCHLD, libc::SIG_IGN)
}

/// What a signal does.
fn handler(signal: libc::c_int) -> Result<libc::sighandler_t, Errno> {
    // SAFETY: an all-zero sigaction is valid, and the kernel only writes to it.
    let (result, action) = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(signal, std::ptr::null(), &raw mut action), action)
    };
    if result == 0 { Ok(action.sa_sigaction) } else { Err(Errno::last()) }
}

pub(crate) fn set_handler(signal: libc::c_int, handler: libc::sighandler_t) -> Result<(), Errno> {
    // SAFETY: an all-zero sigaction is valid; the handler is a function of the
    // right type or SIG_IGN, does only async-signal-safe work and never goes away.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut())
    };
    if result == 0 { Ok(()) } else { Err(Errno::last()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork::{self, Patience};

    #[test]
    fn what_was_caught_ends_the_process_again_when_nobody_listens() {
        let child = fork::start(|| {
            let own = rustix::process::getpid();
            let ends = || rustix::process::kill_process(own, rustix::process::Signal::TERM);
            for _ in 0..2 {
                let caught = Interrupts::catch().unwrap();
                assert!(!caught.came());
                assert_eq!(Interrupts::catch().err(), Some(Errno::EBUSY));
                assert!(!caught.was_stopped());
                rustix::process::kill_process(own, rustix::process::Signal::CONT).unwrap();
                assert!(caught.was_stopped() && !caught.was_stopped() && !caught.came());
                ends().unwrap();
                assert!(caught.came());
            }
            ends().unwrap();
            0
        });
        let child = child.unwrap();
        assert_eq!(fork::ended(Patience::Waits), Ok(Some(fork::Ended { id: child, code: None })));
    }
}
