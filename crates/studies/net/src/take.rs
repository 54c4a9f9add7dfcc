//! One take of what came: what the ways to receive implement, and what each is made from.

use std::os::fd::BorrowedFd;
use std::time::Duration;

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

/// What a receiver is made from: it serves one thread, whose arms have a
/// connection each and take turns.
#[derive(Debug, Clone)]
pub struct Setup<'a> {
    /// The thread's connections; a slice names one by its index here.
    pub links: Vec<BorrowedFd<'a>>,
    /// Which of them are pipes, and no sockets.
    pub pipes: Vec<bool>,
    /// Bytes asked of one call.
    pub receive_bytes: usize,
    /// Fields of a message.
    pub fields: usize,
    /// How long it may wait for bytes; the sockets have the same limit.
    pub stall_limit: Duration,
}

/// The connections of a thread, and the one whose turn it is.
pub struct Turn<'a> {
    links: Vec<BorrowedFd<'a>>,
    pipes: Vec<bool>,
    pub fd: BorrowedFd<'a>,
    /// Whether it is a pipe, which the calls of sockets refuse.
    pub is_pipe: bool,
}

impl<'a> Turn<'a> {
    /// The first connection has its turn. There is one at least: every trial
    /// has an arm.
    pub fn of(links: Vec<BorrowedFd<'a>>, pipes: Vec<bool>) -> Turn<'a> {
        let is_pipe = pipes.first() == Some(&true);
        Turn { fd: links[0], is_pipe, links, pipes }
    }

    /// Gives the turn to another connection.
    pub fn pass_to(&mut self, link: usize) {
        self.fd = self.links[link];
        self.is_pipe = self.pipes.get(link) == Some(&true);
    }
}
