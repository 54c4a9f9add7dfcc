//! Receivers that make a call or two for what is there.

use std::borrow::Cow;
use std::fs::File;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, BorrowedFd};

use arrayvec::ArrayVec;
use iolens_model::data_path::{Hop, Movement};
use iolens_model::host::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::errno::Errno;
use iolens_sys::socket;
use iolens_sys::splice::Pipe;
use iolens_sys::tcp::SetupError;

use super::{Entry, receiver};
use crate::hops::COPY_OUT;
use crate::receive::Receiver;
use crate::take::{Setup, Take, Taken, Turn};
use crate::transmit::FIELDS_MAX;

/// `recv`: recv(2) into one buffer, the same for all arms of a thread.
///
/// Path through the kernel: recv(2) → `tcp_recvmsg_locked` →
/// `skb_copy_datagram_msg` → copy into the buffer. One copy.
/// Needs: nothing beyond TCP. Other sockets have functions of their own, and a pipe,
/// which is no socket, read(2) in its place.
/// Does not show: what a program pays that looks at the bytes, since nothing
/// here does.
pub(super) static RECV: Entry = receiver(
    "recv",
    "recv(2) into one buffer",
    KernelVersion::new(2, 0, 0),
    &[COPY_OUT],
    |setup| Ok(Box::new(Recv::new(setup))),
);

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

/// `recvmsg_iov`: recvmsg(2) into an iovec of separate buffers, as many as a
/// message has fields, together as large as the one buffer of `recv`.
///
/// Path through the kernel: recvmsg(2) → `import_iovec` → `tcp_recvmsg_locked`
/// → `skb_copy_datagram_msg` → copy into one buffer after the other. One copy,
/// the same as `recv`: what the iovec saves a program is to take its fields
/// apart afterwards.
/// Needs: nothing beyond TCP; at most 64 buffers here, 1024 in the kernel.
/// The iovec is built for every call, as a program does that has just made its
/// buffers.
/// Does not show: a program that knows its fields' lengths. A stream has no
/// borders of messages, so bytes fill the buffers as they come.
pub(super) static RECVMSG_IOV: Entry = receiver(
    "recvmsg_iov",
    "recvmsg(2) into an iovec of as many buffers as a message has fields",
    KernelVersion::new(2, 0, 0),
    &[COPY_OUT],
    open_recvmsg,
);

/// One set of buffers for all connections of the thread.
struct RecvmsgIov<'a> {
    turn: Turn<'a>,
    buffers: Vec<Box<[u8]>>,
}

fn open_recvmsg(setup: Setup<'_>) -> Result<Box<dyn Receiver + '_>, SetupError> {
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

/// `recv_trunc`: recv(2) with `MSG_TRUNC`, which takes bytes out of the queue
/// and throws them away. No receive copy: a control, since no program gets
/// anything done this way.
///
/// Path through the kernel: recv(2) → `tcp_recvmsg_locked`, which skips
/// `skb_copy_datagram_msg` and frees the socket buffers (tcp(7)).
/// Needs: TCP; other protocols mean something else by the flag.
/// Compared with: `recv`. The difference is the receive copy, and what it does
/// to the caches.
/// Does not show: a receiver. It counts bytes and never has them.
pub(super) static RECV_TRUNC: Entry = Entry {
    transports: &[Transport::Tcp],
    has_bytes: false,
    ..receiver(
        "recv_trunc",
        "recv(2) with MSG_TRUNC: no receive copy, the bytes are thrown away",
        KernelVersion::new(2, 4, 0),
        &[DROP],
        |setup| {
            let (turn, receive_bytes) = (Turn::of(setup.links, setup.pipes), setup.receive_bytes);
            Ok(Box::new(RecvTrunc { turn, receive_bytes }))
        },
    )
};

const DROP: Hop = Hop {
    from: Cow::Borrowed("socket buffer"),
    to: Cow::Borrowed("freed unread"),
    function: Cow::Borrowed("tcp_recvmsg_locked"),
    movement: Movement::Discarded,
    ..COPY_OUT
};

struct RecvTrunc<'a> {
    turn: Turn<'a>,
    receive_bytes: usize,
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

/// `splice_rx`: splice(2) from the socket into a pipe, and from the pipe into
/// /dev/null: the bytes move by reference and are never in user space.
///
/// Path through the kernel: splice(2) → `tcp_splice_read` → `skb_splice_bits`,
/// which puts references to the socket buffer's pages into the pipe →
/// splice(2) → `splice_write_null` → `pipe_to_null`, which drops them. What
/// lies in the linear part of a socket buffer is copied to a page of its own;
/// over `lo` and veth TCP puts payload into pages.
/// Needs: a pipe. It is made as large as what `recv` would take at once, up to
/// `fs.pipe-max-size`; two calls for each chunk, both counted.
/// Compared with: `recv`, which copies; `recv_trunc`, which drops without
/// taking references first.
/// Does not show: a use of the bytes. A proxy splices into another socket, a
/// recorder into a file, and pays for that instead of /dev/null.
pub(super) static SPLICE_RX: Entry = Entry {
    transports: &[Transport::Tcp, Transport::UnixStream, Transport::Pipe],
    has_bytes: false,
    ..receiver(
        "splice_rx",
        "splice(2) into a pipe and on into /dev/null: no receive copy",
        KernelVersion::new(2, 6, 25),
        &[INTO_PIPE, INTO_NULL],
        open_splice,
    )
};

/// Where the bytes end.
const NULL: &str = "/dev/null";

const INTO_PIPE: Hop = Hop {
    from: Cow::Borrowed("socket buffer"),
    to: Cow::Borrowed("pipe"),
    function: Cow::Borrowed("skb_splice_bits"),
    movement: Movement::Reference,
    ..COPY_OUT
};

const INTO_NULL: Hop = Hop {
    from: Cow::Borrowed("pipe"),
    to: Cow::Borrowed(NULL),
    function: Cow::Borrowed("pipe_to_null"),
    movement: Movement::Discarded,
    ..COPY_OUT
};

struct SpliceRx<'a> {
    turn: Turn<'a>,
    pipe: Pipe,
    null: File,
    receive_bytes: usize,
}

fn open_splice(setup: Setup<'_>) -> Result<Box<dyn Receiver + '_>, SetupError> {
    let failed = |tried: &str| {
        let tried = tried.to_owned();
        move |errno| SetupError { tried, errno }
    };
    let pipe = Pipe::open().map_err(failed("make a pipe"))?;
    // Where the user has too much in pipes already, this one stays as it is,
    // and the same bytes take more calls, which are counted.
    let _ = pipe.resize(setup.receive_bytes);
    let null =
        File::options().write(true).open(NULL).map_err(|e| failed("open /dev/null")(e.into()))?;
    let receive_bytes = setup.receive_bytes;
    Ok(Box::new(SpliceRx { turn: Turn::of(setup.links, setup.pipes), pipe, null, receive_bytes }))
}

impl SpliceRx<'_> {
    /// Empties the pipe; how many calls it took.
    #[inline]
    fn empty(&self, mut bytes: usize) -> Result<u32, Errno> {
        let mut calls = 0;
        while bytes > 0 {
            match self.pipe.splice_into(self.null.as_fd(), bytes) {
                Ok(0) => return Err(Errno::EIO),
                Ok(moved) => bytes -= moved,
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
            calls += 1;
        }
        Ok(calls)
    }
}

impl Take for SpliceRx<'_> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.turn.fd
    }

    fn turn_to(&mut self, link: usize) {
        self.turn.pass_to(link);
    }

    #[inline]
    fn take(&mut self) -> Result<Taken, Errno> {
        let bytes = self.pipe.splice_from(self.turn.fd, self.receive_bytes)?;
        Ok(Taken { bytes, calls: 1 + self.empty(bytes)?, mapped: 0 })
    }

    #[cfg(test)]
    fn show(&self, _bytes: usize, _see: &mut dyn FnMut(&[u8])) {}
}
