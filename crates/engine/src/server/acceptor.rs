//! Taking connections, the same way in every model, also when there is no
//! descriptor for one: it stays in the kernel's queue then, where a loop would
//! find it again and again. So one descriptor is kept in reserve, with which it is
//! taken and closed, and its client knows.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use iolens_model::served::Mishap;
use iolens_sys::errno::Errno;
use iolens_sys::tcp_server::{self, Waiting};

use super::tally::Tally;

/// Connections that are taken in a row by who waits for other things too.
pub(super) const BURST: usize = 64;

/// A listening socket, and a descriptor in reserve.
#[derive(Debug)]
pub(super) struct Acceptor {
    listener: OwnedFd,
    waiting: Waiting,
    reserve: Reserve,
}

/// A descriptor in reserve.
#[derive(Debug)]
pub(super) struct Reserve(Option<File>);

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
    pub(super) fn new(listener: OwnedFd, waiting: Waiting) -> Acceptor {
        Acceptor { listener, waiting, reserve: Reserve::new() }
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
                    return Ok(Taken::Connection(socket));
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
        // Anything that takes a descriptor.
        Reserve(File::open("/dev/null").ok())
    }

    /// What is left to do when a connection could not be taken: perhaps it can be
    /// taken after all, or it is closed.
    ///
    /// Errors: as [`Acceptor::take`].
    #[cold]
    pub(super) fn after(
        &mut self,
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
            // Of the connection that was to be taken, also those that its network
            // passes on (accept(2)).
            Errno::EINTR
            | Errno::ECONNABORTED
            | Errno::ENETUNREACH
            | Errno::ENOPROTOOPT
            | Errno::EOPNOTSUPP
            | Errno::EPERM
            | Errno::ETIMEDOUT => Ok(After::Next),
            errno => Err(errno),
        }
    }

    /// Takes a connection with the reserved descriptor, and closes it unless there
    /// is one for the reserve again.
    fn close_one(&mut self, listener: BorrowedFd<'_>, waiting: Waiting, tally: &Tally) -> After {
        drop(self.0.take());
        let taken = tcp_server::accept(listener, waiting);
        *self = Reserve::new();
        let socket = match taken {
            Ok(socket) => socket,
            // accept4(2) asks for a descriptor before it looks for a connection.
            Err(Errno::EAGAIN | Errno::EINVAL) => return After::None,
            Err(_) => {
                // Somebody else has got the descriptor.
                std::thread::yield_now();
                return After::Next;
            }
        };
        tally.connection();
        if self.0.is_some() {
            return After::Connection(socket);
        }
        tally.mishap(Mishap::NoDescriptor);
        drop(socket);
        *self = Reserve::new();
        After::Next
    }
}

impl AsFd for Acceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
