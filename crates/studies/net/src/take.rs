//! One message or part of a stream taken from a socket.

use std::os::fd::BorrowedFd;

use iolens_model::outcome::MultishotCounts;
use iolens_sys::errno::Errno;

/// What one take brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Payload bytes, out of the socket's queue; 0 is the end of the stream.
    pub bytes: usize,
    /// System calls that it took.
    pub calls: u32,
    /// Of the bytes, those that were mapped instead of copied.
    pub mapped: usize,
}

impl Taken {
    /// What one call brought that maps nothing.
    #[inline]
    pub fn by_one_call(bytes: usize) -> Taken {
        Taken { bytes, calls: 1, mapped: 0 }
    }
}

/// One way of receiving; what those in `receivers` implement.
pub trait Take: Send {
    /// Whether it maps bytes, so that how many is counted.
    const MAPS: bool = false;

    /// The connection whose turn it is.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Gives the turn to the connection with this index in the receiver's links.
    fn turn_to(&mut self, link: usize);

    /// Takes what is there, and waits for it if need be.
    ///
    /// Errors: `EINTR` with nothing taken; `EAGAIN` when nothing came for as
    /// long as the stall limit; what else the call says.
    fn take(&mut self) -> Result<Taken, Errno>;

    /// What became of its multishot requests since it was made; `None` for one
    /// that makes none.
    fn multishot(&self) -> Option<MultishotCounts> {
        None
    }

    /// Shows the `bytes` of the last take, in order and in pieces; nothing
    /// where this process never had them.
    #[cfg(test)]
    fn show(&self, bytes: usize, see: &mut dyn FnMut(&[u8]));
}
