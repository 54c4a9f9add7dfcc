//! Taking connections, the same way in every model, also when there is no
//! descriptor for one: it stays in the kernel's queue then, where a loop would
//! find it again and again. So descriptors are kept in reserve, with one of which it
//! is taken and closed, and its client knows.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iolens_model::server::Mishap;
use iolens_sys::errno::Errno;
use iolens_sys::tcp_server::{self, Waiting};

use super::Context;
use super::tally::Tally;

/// Connections that are taken in a row by who waits for other things too.
pub(super) const BURST: usize = 64;

/// A listening socket, and descriptors in reserve.
#[derive(Debug)]
pub(super) struct Acceptor {
    listener: OwnedFd,
    waiting: Waiting,
    reserve: Arc<Reserve>,
}

/// Descriptors in reserve, of all threads of a process that take connections. More
/// than one: while one of them is free, a thread that knows of nothing may get it
/// for a connection, or a service for a file.
#[derive(Debug)]
pub(super) struct Reserve {
    files: Mutex<Vec<File>>,
    /// Whether one of them is free or gone: what is taken meanwhile by another thread may
    /// have its place, and has to give it back. Else the reserve dwindles, and without one
    /// a connection stays in the queue, where every turn of a loop finds it.
    is_short: AtomicBool,
}

/// How many are kept.
const RESERVED: usize = 8;

/// What came of a connection that could not be taken.
#[derive(Debug)]
pub(super) enum After {
    /// It could be taken after all.
    Connection(OwnedFd),
    /// It was closed, or has gone; there may be another one.
    Next,
    /// There was none.
    None,
}

/// What came of taking a connection.
#[derive(Debug)]
pub(super) enum Taken {
    /// One.
    Connection(OwnedFd),
    /// There is none, or there was one that had to be closed.
    None,
    /// Nobody listens any more.
    Over,
}

impl Acceptor {
    /// Takes connections from a listener; they wait, or not, as it does.
    pub(super) fn new(context: &Context, listener: OwnedFd, waiting: Waiting) -> Acceptor {
        Acceptor { listener, waiting, reserve: Arc::clone(&context.reserve) }
    }

    /// Takes a connection, and counts it.
    ///
    /// Errors: what the system said that is not about one connection.
    #[inline]
    pub(super) fn take(&mut self, tally: &Tally) -> Result<Taken, Errno> {
        loop {
            match tcp_server::accept(self.listener.as_fd(), self.waiting) {
                Ok(socket) => {
                    tally.connection();
                    match self.reserve.admit(socket, tally) {
                        Some(socket) => return Ok(Taken::Connection(socket)),
                        None => continue,
                    }
                }
                Err(Errno::EAGAIN) => return Ok(Taken::None),
                Err(Errno::EINVAL) if tally.tallies().is_stopping() => return Ok(Taken::Over),
                Err(errno) => {
                    let listener = self.listener.as_fd();
                    let after = self.reserve.after(errno, listener, self.waiting, tally)?;
                    match after {
                        After::Connection(socket) => return Ok(Taken::Connection(socket)),
                        _ if tally.tallies().is_stopping() => return Ok(Taken::Over),
                        After::None => return Ok(Taken::None),
                        After::Next => {}
                    }
                }
            }
        }
    }
}

impl Reserve {
    pub(super) fn new() -> Reserve {
        let mut files = Vec::with_capacity(RESERVED);
        fill(&mut files);
        Reserve { files: Mutex::new(files), is_short: AtomicBool::new(false) }
    }

    /// A connection that was taken, unless its descriptor belongs into the reserve.
    #[inline]
    fn admit(&self, socket: OwnedFd, tally: &Tally) -> Option<OwnedFd> {
        match self.is_short.load(Ordering::SeqCst) {
            false => Some(socket),
            true => self.admit_if_full(socket, tally),
        }
    }

    #[cold]
    fn admit_if_full(&self, socket: OwnedFd, tally: &Tally) -> Option<OwnedFd> {
        let has_room = match self.files.try_lock() {
            Ok(mut files) => {
                fill(&mut files);
                self.note(&files);
                files.len() >= RESERVED
            }
            // Its owner may wait for a connection, and will fill the reserve up.
            Err(_) => File::open("/dev/null").is_ok(),
        };
        if has_room {
            return Some(socket);
        }
        tally.mishap(Mishap::NoDescriptor);
        drop(socket);
        if let Ok(mut files) = self.files.try_lock() {
            fill(&mut files);
            self.note(&files);
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Vec<File>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, files: &[File]) {
        self.is_short.store(files.len() < RESERVED, Ordering::SeqCst);
    }

    /// What is left to do when a connection could not be taken: perhaps it can be
    /// taken after all, or it is closed.
    ///
    /// Errors: as [`Acceptor::take`].
    #[cold]
    pub(super) fn after(
        &self,
        errno: Errno,
        listener: BorrowedFd<'_>,
        waiting: Waiting,
        tally: &Tally,
    ) -> Result<After, Errno> {
        match errno {
            // A descriptor needs memory too.
            Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS => {
                Ok(self.close_one(listener, waiting, tally))
            }
            errno if is_of_one_connection(errno) => Ok(After::Next),
            errno => Err(errno),
        }
    }

    /// Takes a connection with a reserved descriptor, and closes it unless there is
    /// one for the reserve again.
    fn close_one(&self, listener: BorrowedFd<'_>, waiting: Waiting, tally: &Tally) -> After {
        let mut files = self.lock();
        fill(&mut files);
        let reserved = files.len();
        // Before one is free: who gets it for a connection sees that.
        self.is_short.store(true, Ordering::SeqCst);
        let after = Self::close_with(&mut files, reserved, listener, waiting, tally);
        self.note(&files);
        after
    }

    fn close_with(
        files: &mut Vec<File>,
        reserved: usize,
        listener: BorrowedFd<'_>,
        waiting: Waiting,
        tally: &Tally,
    ) -> After {
        // Without one it is tried all the same: a descriptor may be free by now.
        drop(files.pop());
        let taken = tcp_server::accept(listener, waiting);
        fill(files);
        let socket = match taken {
            Ok(socket) => socket,
            // Somebody else has got the descriptor, and there is another one.
            Err(Errno::EMFILE | Errno::ENFILE) if !files.is_empty() => return After::Next,
            // accept4(2) asks for a descriptor before it looks for a connection.
            Err(_) => {
                std::thread::yield_now();
                return After::None;
            }
        };
        tally.connection();
        if files.len() >= reserved {
            return After::Connection(socket);
        }
        tally.mishap(Mishap::NoDescriptor);
        drop(socket);
        fill(files);
        After::Next
    }
}

/// Whether an error of accept(2) is about the connection that was to be taken: also those that
/// its network passes on.
pub(super) fn is_of_one_connection(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::EINTR
            | Errno::ECONNABORTED
            | Errno::ENETUNREACH
            | Errno::ENOPROTOOPT
            | Errno::EOPNOTSUPP
            | Errno::EPERM
            | Errno::ETIMEDOUT
    )
}

/// Takes descriptors until there are enough, or no more.
fn fill(files: &mut Vec<File>) {
    while files.len() < RESERVED
        && let Ok(file) = File::open("/dev/null")
    {
        files.push(file);
    }
}

impl AsFd for Acceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
