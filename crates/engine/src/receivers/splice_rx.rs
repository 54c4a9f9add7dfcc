//! `splice_rx`: splice(2) from the socket into a pipe, and from the pipe into
//! /dev/null: the bytes move by reference and are never in user space.
//!
//! Path through the kernel: splice(2) → `tcp_splice_read` → `skb_splice_bits`,
//! which puts references to the socket buffer's pages into the pipe →
//! splice(2) → `splice_write_null` → `pipe_to_null`, which drops them. What
//! lies in the linear part of a socket buffer is copied to a page of its own;
//! over `lo` and veth TCP puts payload into pages.
//! Needs: a pipe. It is made as large as what `recv` would take at once, up to
//! `fs.pipe-max-size`; two calls for each chunk, both counted.
//! Compared with: `recv`, which copies; `recv_trunc`, which drops without
//! taking references first.
//! Does not show: a use of the bytes. A proxy splices into another socket, a
//! recorder into a file, and pays for that instead of /dev/null.

use std::borrow::Cow;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use iolens_model::data_path::{End, Hop, Movement, Mover};
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::errno::Errno;
use iolens_sys::splice::Pipe;
use iolens_sys::tcp::SetupError;

use super::entry::{Entry, everywhere};
use crate::receive::{Receiver, Setup, Take, Taken, Turn};

/// Where the bytes end.
const NULL: &str = "/dev/null";

const INTO_PIPE: Hop = Hop {
    from: Cow::Borrowed("socket buffer"),
    to: Cow::Borrowed("pipe"),
    end: End::Receiver,
    mover: Mover::Kernel,
    function: Cow::Borrowed("skb_splice_bits"),
    movement: Movement::Reference,
};

const INTO_NULL: Hop = Hop {
    from: Cow::Borrowed("pipe"),
    to: Cow::Borrowed(NULL),
    end: End::Receiver,
    mover: Mover::Kernel,
    function: Cow::Borrowed("pipe_to_null"),
    movement: Movement::Discarded,
};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "splice_rx",
    summary: "splice(2) into a pipe and on into /dev/null: no receive copy",
    since: Some(KernelVersion::new(2, 6, 25)),
    hops: &[INTO_PIPE, INTO_NULL],
    transports: &[Transport::Tcp, Transport::UnixStream, Transport::Pipe],
    has_bytes: false,
    descriptors: 0,
    available: everywhere,
    open,
};

struct SpliceRx<'a> {
    turn: Turn<'a>,
    pipe: Pipe,
    null: File,
    receive_bytes: usize,
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Receiver + '_>, SetupError> {
    let failed = |tried: &str| {
        let tried = tried.to_owned();
        move |errno| SetupError { tried, errno }
    };
    let pipe = Pipe::open().map_err(failed("make a pipe"))?;
    // Where the user has too much in pipes already, this one stays as it is,
    // and the same bytes take more calls, which are counted.
    let _ = pipe.resize(setup.receive_bytes);
    let null = File::options().write(true).open(NULL).map_err(|e| {
        let errno = e.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
        failed("open /dev/null")(errno)
    })?;
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
