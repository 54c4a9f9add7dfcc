//! `uring_recv_multishot`: `IORING_OP_RECV` with `IORING_RECV_MULTISHOT`: one
//! request stays and fills buffers that were provided to the ring
//! (`IORING_REGISTER_PBUF_RING`), with one completion for each.
//!
//! Path through the kernel: io_uring_enter(2) → `io_recv` → `sock_recvmsg` →
//! `tcp_recvmsg_locked` → `skb_copy_datagram_msg` → copy into a buffer, again
//! and again until nothing is left or no buffer is. One copy, as with `recv`.
//! Needs: Linux 6.1 for the flags of the ring (`IORING_SETUP_SINGLE_ISSUER`,
//! `IORING_SETUP_DEFER_TASKRUN`), which senders through io_uring have too; the
//! request itself is in 6.0. Each thread has a ring for each of its connections.
//! The buffers: [`COUNT`] of equal size, together as large as the receive size
//! (rounded up), the same memory for all connections of a thread. So a take
//! brings no more than one of `recv` and touches no more memory. A take is one
//! io_uring_enter(2), whose completions are all read before the next: it gives
//! the filled buffers back, hands the request over again if it has ended, and
//! waits. Where more has come than the buffers hold the request ends with
//! `ENOBUFS`; what is left stays with the socket. That and every request but the
//! first are counted.
//! Compared with: `recv`, one call and one copy for each take as well.
//! Does not show: a server with many connections on one ring, whose requests
//! share calls; and buffers so many that the kernel never runs out of them.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use iolens_model::host::KernelVersion;
use iolens_model::outcome::MultishotCounts;
use iolens_model::transport::Transport;
use iolens_sys::errno::Errno;
use iolens_sys::io_uring::{Arrived, Buffers, ReceiveRings};
use iolens_sys::socket;
use iolens_sys::tcp::SetupError;

use super::{Entry, receiver};
use crate::hops::COPY_OUT;
use crate::lane::connected_pair;
use crate::receive::Receiver;
use crate::take::{Setup, Take, Taken};
use iolens_harness::ring_refusal;

/// Buffers that the receive size is divided into. Few enough that a completion
/// is worth its while, and so many that the kernel goes on while the first are
/// read.
const COUNT: u16 = 8;

/// The registry entry.
pub(super) static ENTRY: Entry = Entry {
    // A datagram that is larger than a buffer would be cut, and a pipe is no
    // socket.
    transports: &[Transport::Tcp, Transport::Mptcp, Transport::UnixStream],
    descriptors: 1,
    available: try_here,
    ..receiver(
        "uring_recv_multishot",
        "io_uring, IORING_OP_RECV with IORING_RECV_MULTISHOT into provided buffers",
        KernelVersion::new(6, 1, 0),
        &[COPY_OUT],
        open,
    )
};

/// The rule for the buffers; of a size less than [`COUNT`] there are fewer.
fn buffers(receive_bytes: usize) -> Buffers {
    let count = if receive_bytes < usize::from(COUNT) { 1 } else { COUNT };
    let bytes = receive_bytes.max(1).div_ceil(usize::from(count));
    // No receive size comes near: it is memory that has to be there.
    Buffers { count, bytes: u32::try_from(bytes).unwrap_or(u32::MAX) }
}

/// Rings for all connections of the thread.
struct UringRecvMultishot<'a> {
    rings: ReceiveRings<'a>,
    /// What has yet to be said of each connection, behind the bytes that came
    /// with it: its end, or an error.
    due: Vec<Option<Result<(), Errno>>>,
    turn: usize,
    enobufs: u64,
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Receiver + '_>, SetupError> {
    Ok(Box::new(UringRecvMultishot::new(&setup, buffers(setup.receive_bytes))?))
}

impl<'a> UringRecvMultishot<'a> {
    fn new(setup: &Setup<'a>, buffers: Buffers) -> Result<UringRecvMultishot<'a>, SetupError> {
        let rings = ReceiveRings::open(&setup.links, buffers, setup.stall_limit)
            .map_err(ring_refusal::setup_error)?;
        Ok(UringRecvMultishot { rings, due: vec![None; setup.links.len()], turn: 0, enobufs: 0 })
    }

    /// Reads all completions that have come; how many bytes they brought.
    #[inline]
    fn reap(&mut self) -> Result<usize, Errno> {
        let mut bytes = 0;
        while let Some(arrived) = self.rings.arrived() {
            match arrived {
                Arrived::Bytes(more) => bytes += more,
                Arrived::BuffersUsedUp => self.enobufs += 1,
                Arrived::End => self.due[self.turn] = Some(Ok(())),
                Arrived::Failed(errno) => self.due[self.turn] = Some(Err(errno)),
            }
        }
        // The queue has room for all of them, so none can have been lost.
        if self.rings.lost() > 0 { Err(Errno::EBADMSG) } else { Ok(bytes) }
    }
}

impl Take for UringRecvMultishot<'_> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.rings.socket()
    }

    fn turn_to(&mut self, link: usize) {
        self.rings.turn_to(link);
        self.turn = link;
    }

    /// One call as a rule. One that hands a request over and then waits in vain
    /// is a success of the kernel, and another one waits again: so the stall
    /// limit is up to twice as long there.
    #[inline]
    fn take(&mut self) -> Result<Taken, Errno> {
        let mut calls = 0;
        loop {
            if let Some(due) = self.due[self.turn].take() {
                return due.map(|()| Taken { bytes: 0, calls, mapped: 0 });
            }
            if !self.rings.wait()? {
                return Err(Errno::EAGAIN);
            }
            calls += 1;
            let bytes = self.reap()?;
            if bytes > 0 {
                return Ok(Taken { bytes, calls, mapped: 0 });
            }
        }
    }

    fn multishot(&self) -> Option<MultishotCounts> {
        Some(MultishotCounts { rearms: self.rings.rearms(), enobufs: self.enobufs })
    }

    #[cfg(test)]
    fn show(&self, bytes: usize, see: &mut dyn FnMut(&[u8])) {
        assert_eq!(self.rings.bytes().map(<[u8]>::len).sum::<usize>(), bytes);
        self.rings.bytes().for_each(see);
    }
}

/// How long the message of a trial may take over loopback.
const TRIED_LIMIT: Duration = Duration::from_secs(1);

/// Receives a short message in this process.
fn try_here() -> Result<(), String> {
    const MESSAGE: &[u8] = b"one short message";
    let (near, far) = connected_pair().map_err(|error| format!("over loopback: {error}"))?;
    let setup = Setup {
        links: vec![far.as_fd()],
        pipes: vec![false],
        receive_bytes: MESSAGE.len(),
        fields: 1,
        stall_limit: TRIED_LIMIT,
    };
    let mut receiver = UringRecvMultishot::new(&setup, buffers(setup.receive_bytes))
        .map_err(|error| error.to_string())?;
    let failed = |what| move |errno: Errno| format!("cannot {what}: {errno}");
    socket::send(near.as_fd(), MESSAGE).map_err(failed("send a message"))?;
    let mut received = Vec::new();
    while received.len() < MESSAGE.len() {
        let taken = receiver.take().map_err(failed("receive with IORING_RECV_MULTISHOT"))?;
        if taken.bytes == 0 {
            return Err("the message was cut off".to_owned());
        }
        receiver.rings.bytes().for_each(|piece| received.extend_from_slice(piece));
    }
    let is_right = received == MESSAGE;
    if is_right { Ok(()) } else { Err("the message arrived with other bytes".to_owned()) }
}

#[cfg(test)]
mod tests;
