//! Starting a program so that it costs what starting one must: a child that borrows
//! this process's memory until it executes (`CLONE_VM | CLONE_VFORK`, as
//! posix_spawn(3) of glibc does), so that no page table is copied, however large this
//! process is; and one that dies with its parent, which posix_spawn cannot arrange.
//!
//! # Safety
//! Between clone(2) and execve(2) the child runs in the memory of its parent, whose
//! calling thread waits meanwhile, on a stack of its own. There it makes
//! async-signal-safe calls only, allocates nothing, and writes to nothing of the
//! parent's but the one word that says why it could not execute (and `errno`, which the
//! waiting thread reads after its own calls alone) and the other that says whether it stops as
//! it has executed. Signals are blocked in the caller
//! around it, so that no handler of the parent's runs in the child.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process_group, pidfd_open, waitid,
};

use crate::clock::monotonic_ns;
use crate::errno::Errno;
use crate::poll::is_readable;

mod guardian;
mod held;

use guardian::Place;
pub use guardian::stand_by;
pub use held::StackPlace;

/// The place of what takes a program's errors, among its files.
const ERRORS: usize = 2;

/// Stack of a child until it executes, in 16-byte units: a few calls deep.
const STACK_UNITS: usize = (64 << 10) / 16;

/// Numbers below this are a program's own: what it gets is kept at or above it here, so that
/// none is replaced before it is handed over.
const OWN_NUMBERS: RawFd = 10;

/// A program with its arguments and its open files, ready to be started again and again.
#[derive(Debug)]
pub struct Program {
    path: CString,
    /// What `argv` and `envp` point into.
    _words: Vec<CString>,
    /// Ended by null, as execve(2) wants them.
    argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    /// What it has open, from number 0.
    files: Vec<OwnedFd>,
    stack: Vec<u128>,
}

// SAFETY: the pointers lead to the strings of `_words`, on the heap, which are this
// struct's own and are never changed.
unsafe impl Send for Program {}

/// Gives a file a number that is no program's own, so that a child can still execute it by that
/// number, as /proc/self/fd/N.
///
/// Errors: `EMFILE`.
pub fn numbered_apart(file: File) -> Result<File, Errno> {
    Ok(File::from(fcntl_dupfd_cloexec(&file, OWN_NUMBERS)?))
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// As wait4(2) gives it: see [`std::process::ExitStatus`].
    pub status: i32,
    /// CPU time, user and kernel, of it and of those of its children that it waited for.
    pub cpu: Duration,
    /// The part of it that is kernel time. The kernel splits it by what it sees at its ticks: of a
    /// process in which none fell it calls all user time.
    pub kernel: Duration,
    /// Context switches because it waited.
    pub voluntary_switches: u64,
    /// Context switches because the scheduler took the CPU.
    pub involuntary_switches: u64,
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that waited for I/O.
    pub major_faults: u64,
}

impl Ended {
    /// Context switches, because it waited and because the scheduler took the CPU.
    pub fn switches(&self) -> [u64; 2] {
        [self.voluntary_switches, self.involuntary_switches]
    }

    /// Page faults, without I/O and with.
    pub fn faults(&self) -> [u64; 2] {
        [self.minor_faults, self.major_faults]
    }
}

impl Program {
    /// Gets ready to start `path` with the arguments `argv` (the first of which is how
    /// the program is to see itself called) and the environment of this process. Its input
    /// and its output are /dev/null, its errors go to `errors`.
    ///
    /// Errors: `EINVAL` for a text with a zero byte in it, and open(2) of /dev/null.
    pub fn new(path: &Path, argv: &[Vec<u8>], errors: File) -> Result<Program, Errno> {
        Program::with(path, argv, errors, &[])
    }

    /// As [`Self::new`], with these variables in place of this process's.
    ///
    /// Errors: as [`Self::new`].
    pub fn with(
        path: &Path,
        argv: &[Vec<u8>],
        errors: File,
        environment: &[(&str, &str)],
    ) -> Result<Program, Errno> {
        let null = File::options().read(true).write(true).open("/dev/null")?;
        let files = [null.as_fd(), null.as_fd(), errors.as_fd()];
        Program::with_files(path, argv, environment, &files)
    }

    /// As [`Self::with`], with these files open from number 0, at most ten, and no others.
    ///
    /// Errors: `EINVAL` for a text with a zero byte in it or too many files, `EMFILE`.
    pub fn with_files(
        path: &Path,
        argv: &[Vec<u8>],
        environment: &[(&str, &str)],
        files: &[BorrowedFd<'_>],
    ) -> Result<Program, Errno> {
        if files.len() > OWN_NUMBERS.unsigned_abs() as usize {
            return Err(Errno::EINVAL);
        }
        let kept = files.iter().map(|fd| fcntl_dupfd_cloexec(fd, OWN_NUMBERS));
        let files = kept.collect::<Result<Vec<OwnedFd>, _>>()?;
        let word = |bytes: &[u8]| CString::new(bytes).map_err(|_| Errno::EINVAL);
        let mut words = argv.iter().map(|text| word(text)).collect::<Result<Vec<_>, _>>()?;
        let arguments = words.len();
        let is_ours = |name: &OsString| environment.iter().all(|&(other, _)| *name != *other);
        let ours = std::env::vars_os().filter(|(name, _)| is_ours(name));
        let given = environment.iter().map(|&(name, value)| (name.into(), value.into()));
        for (name, value) in ours.chain(given) {
            let (name, value): (OsString, OsString) = (name, value);
            words.push(word(&[&name.into_vec()[..], b"=", &value.into_vec()[..]].concat())?);
        }
        let ended = |words: &[CString]| {
            let pointers = words.iter().map(|word| word.as_ptr());
            pointers.chain([std::ptr::null()]).collect::<Vec<*const c_char>>()
        };
        Ok(Program {
            path: word(path.as_os_str().as_encoded_bytes())?,
            argv: ended(&words[..arguments]),
            envp: ended(&words[arguments..]),
            _words: words,
            files,
            stack: vec![0; STACK_UNITS],
        })
    }

    /// Starts it and waits for its end. It is killed if the calling thread ends first.
    ///
    /// Errors: why it was not started: of clone(2), or of execve(2).
    pub fn run(&mut self) -> Result<Ended, Errno> {
        let start = Start { apart: 0, leads: false, holds: false };
        wait(self.start(&Parent::by_id(), start)?.0.pid)
    }

    /// Starts it and waits for its end, at most so long: then it is killed, with what it has
    /// started and is in its process group. It is killed as well if the calling thread ends
    /// first.
    ///
    /// Errors: as [`Self::run`]; `ETIMEDOUT` for one that was killed; of pidfd_open(2).
    pub fn run_within(&mut self, limit: Duration) -> Result<Ended, Errno> {
        let begun = self.begin_in_group()?;
        let has_ended = begun.ends_within(limit);
        if has_ended != Ok(true) {
            begun.kill();
        }
        let ended = begun.wait()?;
        if has_ended? { Ok(ended) } else { Err(Errno::ETIMEDOUT) }
    }

    /// Starts it and does not wait, in a process group of its own. It is killed if the
    /// calling thread ends first, with what is in its group then. Where that is allowed it is the
    /// first process of a pid namespace of its own (pid_namespaces(7)), so that all that it starts
    /// is killed with it; elsewhere what leaves its group may outlive it.
    ///
    /// Errors: as [`Self::run`].
    pub fn begin(&mut self) -> Result<Begun, Errno> {
        Ok(self.begin_apart(false)?.0)
    }

    /// The same, and whether it stops, traced, as it has executed.
    fn begin_apart(&mut self, holds: bool) -> Result<(Begun, bool), Errno> {
        let parent = Parent::watched();
        let start = |apart| Start { apart, leads: true, holds };
        match self.start(&parent, start(libc::CLONE_NEWPID)) {
            // EPERM without rights, ENOSPC and EUSERS beyond limits, EINVAL without the
            // kernel's option: whatever it was, one without a namespace tells of the rest.
            Err(_) => self.start(&parent, start(0)),
            started => started,
        }
    }

    /// As [`Self::begin`], without a namespace: making and ending one takes time that is not
    /// the program's.
    ///
    /// Errors: as [`Self::run`].
    pub fn begin_in_group(&mut self) -> Result<Begun, Errno> {
        let start = Start { apart: 0, leads: true, holds: false };
        Ok(self.start(&Parent::by_id(), start)?.0)
    }

    /// The file that is executed.
    pub(crate) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.path.to_bytes()))
    }

    /// What it writes its errors to; `None` for one that was given no such file.
    pub(crate) fn errors(&self) -> Option<BorrowedFd<'_>> {
        self.files.get(ERRORS).map(AsFd::as_fd)
    }

    /// Becomes this program, with the descriptors of this process; returns if it cannot, with
    /// the reason in `errno`. Allocates nothing, so that a forked child may call it.
    pub(crate) fn execute(&self) {
        // SAFETY: both lists end by null, and lead to strings of this struct.
        unsafe { libc::execve(self.path.as_ptr(), self.argv.as_ptr(), self.envp.as_ptr()) };
    }

    /// A child that has executed, and whether it stops as it has.
    fn start(&mut self, parent: &Parent, how: Start) -> Result<(Begun, bool), Errno> {
        let Start { apart, leads, holds } = how;
        // The end of a namespace takes all that is in it along.
        let place = (leads && apart == 0).then(guardian::place).flatten();
        let mut job = Job {
            path: self.path.as_ptr(),
            argv: self.argv.as_ptr(),
            envp: self.envp.as_ptr(),
            files: &self.files,
            parent: if apart == 0 { parent.id } else { 0 },
            parent_fd: parent.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            leads,
            mask: no_signals(),
            errno: 0,
            holds,
            is_held: false,
        };
        // SAFETY: it is as large as the vector; stacks grow down here, from an address
        // that 16 divides because the element's alignment does.
        let top = unsafe { self.stack.as_mut_ptr().add(STACK_UNITS) }.cast::<c_void>();
        let blocked = SignalsBlocked::all();
        job.mask = blocked.before;
        // One that gets no SIGTRAP would not stop.
        job.holds = holds && !blocked.lets_none_through(libc::SIGTRAP);
        let tells = if place.is_some() { libc::CLONE_PARENT_SETTID } else { 0 };
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD | apart | tells;
        let told = place.as_ref().map_or(std::ptr::null_mut(), Place::as_ptr);
        // SAFETY: see the module's note. This thread goes on when the child has executed
        // or ended, so `job` and the stack outlive what the child does with them.
        let pid = unsafe { libc::clone(child, top, flags, (&raw mut job).cast(), told) };
        let failed = Errno::from(std::io::Error::last_os_error());
        drop(blocked);
        if pid < 0 {
            if let Some(place) = place {
                place.leave();
            }
            return Err(failed);
        }
        let begun = Begun { pid, ended: Mutex::new(None), place: Mutex::new(place) };
        // The child wrote it before this thread went on: no other one knows of it.
        // SAFETY: `job` is a local that lives; volatile because another task wrote it.
        match unsafe { (&raw const job.errno).read_volatile() } {
            // SAFETY: as above.
            0 => Ok((begun, unsafe { (&raw const job.is_held).read_volatile() })),
            errno => {
                begun.wait()?;
                Err(Errno::from_raw(errno))
            }
        }
    }
}

/// A program that was started.
#[derive(Debug)]
pub struct Begun {
    pid: libc::pid_t,
    /// How it ended, from when it was waited for and its id may be another's.
    ended: Mutex<Option<Ended>>,
    /// Where its group stands until then.
    place: Mutex<Option<Place>>,
}

impl Begun {
    /// Its process.
    pub fn id(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Waits for its end.
    ///
    /// Errors: of waitid(2) and wait4(2), which are not documented for a child of ours.
    pub fn wait(&self) -> Result<Ended, Errno> {
        let pid = Pid::from_raw(self.pid).ok_or(Errno::ESRCH)?;
        // It keeps its id until it is waited for below, where nobody kills it any more.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        if self.ended().is_none() {
            rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), options))?;
        }
        let mut ended = self.lock();
        match *ended {
            Some(ended) => Ok(ended),
            None => {
                // It has ended, and with it what it left in its group.
                let _ = crate::fork::kill_group(self.id());
                let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(place) = place.take() {
                    place.leave();
                }
                Ok(*ended.insert(wait(self.pid)?))
            }
        }
    }

    /// How it has ended, as wait4(2) says it, while it still has its id; `None` while it runs.
    ///
    /// Errors: of waitid(2), which are not documented for a child of ours.
    pub fn peek(&self) -> Result<Option<i32>, Errno> {
        if let Some(ended) = self.ended() {
            return Ok(Some(ended.status));
        }
        let pid = Pid::from_raw(self.pid).ok_or(Errno::ESRCH)?;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let status = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), options))?;
        Ok(status.and_then(|status| {
            // Bits as in wait(2): exit statuses above signals.
            status.exit_status().map(|code| code << 8).or_else(|| status.terminating_signal())
        }))
    }

    /// A descriptor that is readable from its end (pidfd_open(2)).
    ///
    /// Errors: `ENOSYS` before Linux 5.3; `EMFILE`; `ESRCH` once it was waited for.
    pub fn watch(&self) -> Result<OwnedFd, Errno> {
        let ended = self.lock();
        let pid = Pid::from_raw(self.pid).filter(|_| ended.is_none()).ok_or(Errno::ESRCH)?;
        Ok(pidfd_open(pid, PidfdFlags::empty())?)
    }

    /// Whether it ends within so long; it is not waited for.
    fn ends_within(&self, limit: Duration) -> Result<bool, Errno> {
        let fd = self.watch()?;
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let deadline_ns = monotonic_ns().saturating_add(limit_ns);
        loop {
            match is_readable(fd.as_fd(), deadline_ns.saturating_sub(monotonic_ns())) {
                Err(Errno::EINTR) => {}
                result => return result,
            }
        }
    }

    /// How it ended, once somebody has waited for it.
    pub fn ended(&self) -> Option<Ended> {
        *self.lock()
    }

    /// Asks it and its process group to end (`SIGTERM`), unless it has ended. The first process
    /// of a pid namespace does not hear that if it handles it not (pid_namespaces(7)).
    pub fn terminate(&self) {
        let ended = self.lock();
        if let (None, Some(pid)) = (*ended, Pid::from_raw(self.pid)) {
            let _ = kill_process_group(pid, Signal::TERM);
        }
    }

    /// Kills it with its process group, unless it has ended.
    pub fn kill(&self) {
        let ended = self.lock();
        if ended.is_none() {
            // It is still there, if only to be waited for.
            let _ = crate::fork::kill_group(self.id());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Ended>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who starts a child.
struct Parent {
    id: libc::pid_t,
    /// Readable from its end, also within another pid namespace, where every parent's id is 0;
    /// `None` for who needs it not, and where the system has no such thing (Linux 5.3).
    fd: Option<OwnedFd>,
}

impl Parent {
    /// This process, of which a child in its own pid namespace needs no more than the id.
    fn by_id() -> Parent {
        Parent { id: getpid().as_raw_nonzero().get(), fd: None }
    }

    /// This process, for a child in any namespace.
    fn watched() -> Parent {
        Parent { fd: pidfd_open(getpid(), PidfdFlags::empty()).ok(), ..Parent::by_id() }
    }
}

/// How a child is started.
#[derive(Debug, Clone, Copy)]
struct Start {
    /// Flags of clone(2) besides those of all.
    apart: c_int,
    /// Whether it is to lead a process group.
    leads: bool,
    /// Whether it is to stop before its first instruction.
    holds: bool,
}

/// What the child needs, all of it made before.
struct Job<'a> {
    path: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
    /// Its files, from number 0.
    files: &'a [OwnedFd],
    /// The id of the parent as the child sees it: 0 from within another pid namespace.
    parent: libc::pid_t,
    /// As [`Parent::fd`]; -1 for none.
    parent_fd: RawFd,
    /// Whether it is to lead a process group.
    leads: bool,
    /// The signals that the caller blocks.
    mask: libc::sigset_t,
    /// Why it did not execute; 0 if it did.
    errno: c_int,
    /// Whether it is to stop before its first instruction, and whether it will.
    holds: bool,
    is_held: bool,
}

/// The child, from its birth to its execution.
extern "C" fn child(job: *mut c_void) -> c_int {
    let job = job.cast::<Job<'_>>();
    // SAFETY: `job` is the caller's, which waits; every call is async-signal-safe, and
    // what they are given lives as long as the caller waits.
    unsafe {
        // As a shell would have it: those that the parent ignores would stay ignored.
        for signal in [libc::SIGPIPE, libc::SIGINT] {
            libc::signal(signal, libc::SIG_DFL);
        }
        let dies = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // Whose parent had ended before is told of no end.
        let has_parent = libc::getppid() == (*job).parent && !has_ended((*job).parent_fd);
        if !has_parent {
            // Else it would say what some call of the waiting thread said before.
            *libc::__errno_location() = libc::ESRCH;
        }
        let mut ready = dies == 0 && has_parent;
        ready = ready && (!(*job).leads || libc::setpgid(0, 0) == 0);
        for (to, from) in (0..).zip((*job).files) {
            ready = ready && libc::dup2(from.as_raw_fd(), to) == to;
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const (*job).mask, std::ptr::null_mut());
        if ready && (*job).holds {
            let is_traced = libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0;
            (&raw mut (*job).is_held).write_volatile(is_traced);
        }
        if ready {
            libc::execve((*job).path, (*job).argv, (*job).envp);
        }
        let errno = *libc::__errno_location();
        // An error without a number must not look like none.
        (&raw mut (*job).errno).write_volatile(if errno == 0 { libc::ESRCH } else { errno });
        libc::_exit(127)
    }
}

/// Whether a process has ended, by its descriptor; false where there is none.
fn has_ended(fd: RawFd) -> bool {
    let mut polled = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one struct, which lives on this stack; the call is async-signal-safe, and leaves
    // out what has a negative number.
    unsafe { libc::poll(&raw mut polled, 1, 0) > 0 }
}

/// All signals of the calling thread wait, until this is dropped: no handler of ours runs in a
/// child that has yet to execute.
pub(crate) struct SignalsBlocked {
    before: libc::sigset_t,
}

impl SignalsBlocked {
    pub(crate) fn all() -> SignalsBlocked {
        let (all, mut before) = (all_signals(), no_signals());
        // SAFETY: both sets are valid, and pthread_sigmask writes the second.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
        SignalsBlocked { before }
    }

    /// Whether this signal was blocked before.
    fn lets_none_through(&self, signal: c_int) -> bool {
        // SAFETY: the set was written by pthread_sigmask(3).
        unsafe { libc::sigismember(&raw const self.before, signal) == 1 }
    }

    /// Lets through what was let through before. A forked child may call it.
    pub(crate) fn put_back(&self) {
        // SAFETY: the set was written by pthread_sigmask(3).
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut())
        };
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        self.put_back();
    }
}

fn no_signals() -> libc::sigset_t {
    set(libc::sigemptyset)
}

fn all_signals() -> libc::sigset_t {
    set(libc::sigfillset)
}

fn set(fill: unsafe extern "C" fn(*mut libc::sigset_t) -> c_int) -> libc::sigset_t {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: both functions that come here initialise the set that they are given.
    unsafe {
        fill(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Waits for a child of this process.
fn wait(pid: libc::pid_t) -> Result<Ended, Errno> {
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both are written to, and belong to this function.
        let ended = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
        if ended == pid {
            break;
        }
        match Errno::from(std::io::Error::last_os_error()) {
            Errno::EINTR => {}
            errno => return Err(errno),
        }
    }
    // SAFETY: all zeroes is a valid rusage, and the kernel has filled it in.
    let usage = unsafe { usage.assume_init() };
    let time = |time: libc::timeval| {
        let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
        Duration::from_secs(count(time.tv_sec)) + Duration::from_micros(count(time.tv_usec))
    };
    let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
    Ok(Ended {
        status,
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        kernel: time(usage.ru_stime),
        voluntary_switches: count(usage.ru_nvcsw),
        involuntary_switches: count(usage.ru_nivcsw),
        minor_faults: count(usage.ru_minflt),
        major_faults: count(usage.ru_majflt),
    })
}

#[cfg(test)]
mod tests;
