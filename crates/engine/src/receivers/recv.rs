//! `recv`: recv(2) into one buffer, the same for all arms of a thread.
//!
//! Path through the kernel: recv(2) → `tcp_recvmsg_locked` →
//! `skb_copy_datagram_msg` → copy into the buffer. One copy.
//! Needs: nothing beyond TCP. Other sockets have functions of their own, and a pipe,
//! which is no socket, read(2) in its place.
//! Does not show: what a program pays that looks at the bytes, since nothing
//! here does.

use std::os::fd::BorrowedFd;

use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::errno::Errno;
use iolens_sys::socket;
use iolens_sys::tcp::SetupError;

use super::entry::{Entry, everywhere};
use crate::primitives::COPY_OUT;
use crate::receive::{Receiver, Setup, Take, Taken, Turn};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "recv",
    summary: "recv(2) into one buffer",
    since: Some(KernelVersion::new(2, 0, 0)),
    hops: &[COPY_OUT],
    transports: &Transport::ALL,
    has_bytes: true,
    descriptors: 0,
    available: everywhere,
    open,
};

/// One buffer for all connections of the thread.
pub(crate) struct Recv<'a> {
    turn: Turn<'a>,
    buffer: Vec<u8>,
}

impl<'a> Recv<'a> {
    pub(crate) fn new(setup: Setup<'a>) -> Recv<'a> {
        // Written to, so that every page is there before a clock runs.
        Recv { turn: Turn::of(setup.links, setup.pipes), buffer: vec![1; setup.receive_bytes] }
    }

    /// Of one connection.
    #[cfg(test)]
    pub(crate) fn one(fd: BorrowedFd<'a>, receive_bytes: usize) -> Recv<'a> {
        let stall_limit = std::time::Duration::from_secs(20);
        Recv::new(Setup {
            links: vec![fd],
            pipes: vec![false],
            receive_bytes,
            fields: 1,
            stall_limit,
        })
    }
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Receiver + '_>, SetupError> {
    Ok(Box::new(Recv::new(setup)))
}

impl Take for Recv<'_> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.turn.fd
    }

    fn turn_to(&mut self, link: usize) {
        self.turn.pass_to(link);
    }

    #[inline]
    fn take(&mut self) -> Result<Taken, Errno> {
        let bytes = match self.turn.is_pipe {
            false => socket::recv(self.turn.fd, &mut self.buffer)?,
            true => socket::read(self.turn.fd, &mut self.buffer)?,
        };
        Ok(Taken::by_one_call(bytes))
    }

    #[cfg(test)]
    fn show(&self, bytes: usize, see: &mut dyn FnMut(&[u8])) {
        see(&self.buffer[..bytes]);
    }
}
