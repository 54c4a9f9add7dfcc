//! sendmsg(2) without a copy, and its completions from the error queue.

use std::io::IoSlice;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use iolens_model::axes::Iovec;
use iolens_model::family::Family;
use iolens_model::host::KernelVersion;
use iolens_sys::errno::Errno;
use iolens_sys::ring::Layout;
use iolens_sys::zerocopy::{self, Completion};

use crate::entry::{Entry, Setup, SetupError};
use crate::hops::PINNED;
use crate::inflight::{IDS_MAX, InFlight, Patience, Releases};
use crate::transmit::Iovecs;
use iolens_harness::op::{Op, Sender, Tally};
use iolens_harness::stream::Stream;

/// `sendmsg_zerocopy`: sendmsg(2) with `MSG_ZEROCOPY` and an iovec that points
/// at the fields.
///
/// Path through the kernel: sendmsg(2) → `tcp_sendmsg_locked` →
/// `skb_zerocopy_iter_stream`, which pins the pages of every field and puts
/// them into the socket buffer; when the bytes were acknowledged, a completion
/// comes over the error queue. Whatever is delivered on this machine is copied
/// on its way all the same (`skb_orphan_frags_rx` → `skb_copy_ubufs`), late
/// and with cold caches, and the completion says so.
/// Needs: `SO_ZEROCOPY`, locked memory (`RLIMIT_MEMLOCK`), notifications
/// (`net.core.optmem_max`).
/// Compared with: `send_staged` and `sendmsg_iov`, which copy at once.
/// Completions are read when a message of the ring is to be used again, with
/// `--reap-batch N` also after every N sends, as many as have come, and all of
/// them before a slice ends. There is no fallback to a copying send.
/// Does not show: what happens to a device that takes references: see the
/// topologies.
pub(crate) static SENDMSG_ZEROCOPY: Entry = Entry {
    datagrams: true,
    locks_memory: true,
    since: Some(KernelVersion::new(4, 14, 0)),
    ..Entry::tcp(
        "sendmsg_zerocopy",
        Family::Classic,
        None,
        "sendmsg(2) with MSG_ZEROCOPY straight over the fields, completions awaited",
        PINNED,
        open,
    )
};

struct SendmsgZerocopy<'a> {
    fd: BorrowedFd<'a>,
    stream: Stream,
    flight: InFlight,
    prepared: bool,
    /// Sends after which completions are read.
    reap_batch: u32,
    /// Sends since they were.
    unread: u32,
    stall_limit: Duration,
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    let fd = setup.link.socket();
    zerocopy::enable(fd)
        .map_err(|errno| SetupError { tried: "set SO_ZEROCOPY".to_owned(), errno })?;
    let stream = Stream::new(&setup.shape, Layout::Separate);
    Ok(Box::new(SendmsgZerocopy {
        fd,
        flight: InFlight::new(stream.ring.messages(), IDS_MAX),
        stream,
        prepared: setup.shape.iovec == Iovec::Prepared,
        reap_batch: setup.tuning.reap_batch.unwrap_or(u32::MAX),
        unread: 0,
        stall_limit: setup.stall_limit,
    }))
}

impl Op for SendmsgZerocopy<'_> {
    #[inline(always)]
    fn message(&mut self) -> Result<(), Errno> {
        let index = self.stream.turn();
        if self.flight.holds(index) || self.flight.is_full() {
            self.make_room(index)?;
        } else if self.unread >= self.reap_batch {
            self.reap()?;
        }
        self.unread += 1;
        let SendmsgZerocopy { fd, stream, flight, prepared, stall_limit, .. } = self;
        let Stream { ring, tally, .. } = stream;
        let mut line = Line { fd: *fd, flight, stall_limit: *stall_limit };
        if *prepared {
            line.send(index, ring.prepared(index), tally)?;
        } else {
            let iovec: Iovecs<'_> = ring.fields(index).iter().map(|f| IoSlice::new(f)).collect();
            line.send(index, &iovec, tally)?;
        }
        tally.messages += 1;
        Ok(())
    }

    fn stream(&self) -> &Stream {
        &self.stream
    }

    fn settle(&mut self) -> Result<(), Errno> {
        self.await_until(|flight| flight.outstanding() == 0)
    }

    fn tally(&self) -> Tally {
        Tally { zerocopy: Some(self.flight.counts()), ..self.stream.tally }
    }
}

impl SendmsgZerocopy<'_> {
    /// Waits until the kernel has released a message of the ring.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, index: usize) -> Result<(), Errno> {
        self.unread = 0;
        self.await_until(|flight| !flight.holds(index) && !flight.is_full())
    }

    /// Reads the completions that have come, and waits for none.
    #[inline(never)]
    fn reap(&mut self) -> Result<(), Errno> {
        self.unread = 0;
        let mut queue = ErrorQueue(self.fd);
        while let Some(range) = queue.next()? {
            self.flight.completed(range)?;
        }
        Ok(())
    }

    fn await_until(&mut self, enough: impl Fn(&InFlight) -> bool) -> Result<(), Errno> {
        let mut line =
            Line { fd: self.fd, flight: &mut self.flight, stall_limit: self.stall_limit };
        line.await_until(enough)
    }
}

/// The socket with what is in flight on it, apart from the ring that is sent
/// from.
struct Line<'a> {
    fd: BorrowedFd<'a>,
    flight: &'a mut InFlight,
    stall_limit: Duration,
}

impl Line<'_> {
    /// Sends message `index`, whose pieces are `iovec`, whole.
    #[inline(always)]
    fn send(
        &mut self,
        index: usize,
        iovec: &[IoSlice<'_>],
        tally: &mut Tally,
    ) -> Result<(), Errno> {
        let total: usize = iovec.iter().map(|piece| piece.len()).sum();
        let result = zerocopy::sendmsg(self.fd, iovec);
        tally.calls += 1;
        if result == Ok(total) {
            self.flight.sent(index);
            tally.bytes += total as u64;
            return Ok(());
        }
        self.send_rest(index, iovec, result, tally)
    }

    /// Goes on after a first call that did not send everything. Each further
    /// call has an id of its own.
    #[cold]
    #[inline(never)]
    fn send_rest(
        &mut self,
        index: usize,
        iovec: &[IoSlice<'_>],
        first: Result<usize, Errno>,
        tally: &mut Tally,
    ) -> Result<(), Errno> {
        let mut copy: Iovecs<'_> = iovec.iter().copied().collect();
        let mut rest = &mut copy[..];
        let mut result = first;
        let patience = Patience::begin();
        loop {
            match result {
                Ok(sent) => {
                    self.flight.sent(index);
                    tally.bytes += sent as u64;
                    IoSlice::advance_slices(&mut rest, sent);
                    if rest.is_empty() {
                        return Ok(());
                    }
                }
                Err(Errno::EINTR) => {}
                Err(Errno::ENOBUFS) => {
                    let mut queue = ErrorQueue(self.fd);
                    self.flight.yield_memory(&mut queue, self.stall_limit, patience)?;
                }
                Err(errno) => return Err(errno),
            }
            if self.flight.is_full() {
                self.await_until(|flight| !flight.is_full())?;
            }
            result = zerocopy::sendmsg(self.fd, rest);
            tally.calls += 1;
        }
    }

    fn await_until(&mut self, enough: impl Fn(&InFlight) -> bool) -> Result<(), Errno> {
        self.flight.await_until(&mut ErrorQueue(self.fd), self.stall_limit, enough)
    }
}

/// The error queue of a socket, where completions come.
struct ErrorQueue<'a>(BorrowedFd<'a>);

impl Releases for ErrorQueue<'_> {
    fn next(&mut self) -> Result<Option<Completion>, Errno> {
        zerocopy::completion(self.0)
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, Errno> {
        zerocopy::wait(self.0, u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX))
    }
}
