//! `recv_trunc`: recv(2) with `MSG_TRUNC`, which takes bytes out of the queue
//! and throws them away. No receive copy: a control, since no program gets
//! anything done this way.
//!
//! Path through the kernel: recv(2) → `tcp_recvmsg_locked`, which skips
//! `skb_copy_datagram_msg` and frees the socket buffers (tcp(7)).
//! Needs: TCP; other protocols mean something else by the flag.
//! Compared with: `recv`. The difference is the receive copy, and what it does
//! to the caches.
//! Does not show: a receiver. It counts bytes and never has them.

use std::borrow::Cow;
use std::os::fd::BorrowedFd;

use iolens_model::data_path::{End, Hop, Movement, Mover};
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::errno::Errno;
use iolens_sys::socket;
use iolens_sys::tcp::SetupError;

use super::entry::{Entry, everywhere};
use crate::receive::{Receiver, Setup, Take, Taken, Turn};

const DROP: Hop = Hop {
    from: Cow::Borrowed("socket buffer"),
    to: Cow::Borrowed("freed unread"),
    end: End::Receiver,
    mover: Mover::Kernel,
    function: Cow::Borrowed("tcp_recvmsg_locked"),
    movement: Movement::Discarded,
};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "recv_trunc",
    summary: "recv(2) with MSG_TRUNC: no receive copy, the bytes are thrown away",
    since: Some(KernelVersion::new(2, 4, 0)),
    hops: &[DROP],
    transports: &[Transport::Tcp],
    has_bytes: false,
    descriptors: 0,
    available: everywhere,
    open,
};

struct RecvTrunc<'a> {
    turn: Turn<'a>,
    receive_bytes: usize,
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Receiver + '_>, SetupError> {
    Ok(Box::new(RecvTrunc {
        turn: Turn::of(setup.links, setup.pipes),
        receive_bytes: setup.receive_bytes,
    }))
}

impl Take for RecvTrunc<'_> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.turn.fd
    }

    fn turn_to(&mut self, link: usize) {
        self.turn.pass_to(link);
    }

    #[inline]
    fn take(&mut self) -> Result<Taken, Errno> {
        let bytes = socket::discard(self.turn.fd, self.receive_bytes)?;
        Ok(Taken::by_one_call(bytes))
    }

    #[cfg(test)]
    fn show(&self, _bytes: usize, _see: &mut dyn FnMut(&[u8])) {}
}
