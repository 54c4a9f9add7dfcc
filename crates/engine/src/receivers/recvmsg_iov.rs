//! `recvmsg_iov`: recvmsg(2) into an iovec of separate buffers, as many as a
//! message has fields, together as large as the one buffer of `recv`.
//!
//! Path through the kernel: recvmsg(2) → `import_iovec` → `tcp_recvmsg_locked`
//! → `skb_copy_datagram_msg` → copy into one buffer after the other. One copy,
//! the same as `recv`: what the iovec saves a program is to take its fields
//! apart afterwards.
//! Needs: nothing beyond TCP; at most 64 buffers here, 1024 in the kernel.
//! The iovec is built for every call, as a program does that has just made its
//! buffers.
//! Does not show: a program that knows its fields' lengths. A stream has no
//! borders of messages, so bytes fill the buffers as they come.

use std::io::IoSliceMut;
use std::os::fd::BorrowedFd;

use arrayvec::ArrayVec;
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::errno::Errno;
use iolens_sys::socket;
use iolens_sys::tcp::SetupError;

use super::entry::{Entry, everywhere};
use crate::primitives::COPY_OUT;
use crate::receive::{Receiver, Setup, Take, Taken, Turn};
use crate::transmit::FIELDS_MAX;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "recvmsg_iov",
    summary: "recvmsg(2) into an iovec of as many buffers as a message has fields",
    since: Some(KernelVersion::new(2, 0, 0)),
    hops: &[COPY_OUT],
    transports: &Transport::ALL,
    has_bytes: true,
    descriptors: 0,
    available: everywhere,
    open,
};

/// One set of buffers for all connections of the thread.
struct RecvmsgIov<'a> {
    turn: Turn<'a>,
    buffers: Vec<Box<[u8]>>,
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Receiver + '_>, SetupError> {
    let count = setup.fields.clamp(1, FIELDS_MAX).min(setup.receive_bytes.max(1));
    let (each, more) = (setup.receive_bytes / count, setup.receive_bytes % count);
    // Written to, so that every page is there before a clock runs.
    let buffer = |i: usize| vec![1; each + usize::from(i < more)].into_boxed_slice();
    let buffers = (0..count).map(buffer).collect();
    Ok(Box::new(RecvmsgIov { turn: Turn::of(setup.links, setup.pipes), buffers }))
}

impl Take for RecvmsgIov<'_> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.turn.fd
    }

    fn turn_to(&mut self, link: usize) {
        self.turn.pass_to(link);
    }

    #[inline]
    fn take(&mut self) -> Result<Taken, Errno> {
        // In place: collecting moves room for 64 buffers, whatever their number.
        let mut iovec = ArrayVec::<IoSliceMut<'_>, FIELDS_MAX>::new();
        iovec.extend(self.buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)));
        let bytes = match self.turn.is_pipe {
            false => socket::recvmsg(self.turn.fd, &mut iovec)?,
            true => socket::readv(self.turn.fd, &mut iovec)?,
        };
        Ok(Taken::by_one_call(bytes))
    }

    #[cfg(test)]
    fn show(&self, mut bytes: usize, see: &mut dyn FnMut(&[u8])) {
        for buffer in &self.buffers {
            let here = bytes.min(buffer.len());
            see(&buffer[..here]);
            bytes -= here;
        }
    }
}
