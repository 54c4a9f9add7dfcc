//! `xdp_tx`: up to 32 Ethernet frames with one sendto(2) through the TX ring of an
//! AF_XDP socket, in copy mode. Each frame is one contiguous message as a UDP
//! datagram, with headers that were written beside it once.
//!
//! Path through the kernel: descriptors in the ring → sendto(2) →
//! `__xsk_generic_xmit` → for each frame `xsk_build_skb` → copy into a socket buffer
//! (`skb_store_bits`) → `__dev_direct_xmit` → device. There is no protocol, no route
//! look-up, no queueing discipline, and no count of UDP's (net/xdp/xsk.c).
//! A frame is written to the ring again only when its completion was read, which
//! comes with the end of the socket buffer.
//! Needs: Linux 5.4, CAP_NET_RAW over the network namespace, a device with frames
//! of Ethernet's, and a queue of it for each thread that no other AF_XDP socket has;
//! a message that fits a page and the MTU with its headers; memory that may be
//! locked.
//! Compared with: `sendmmsg`, which makes one call for several datagrams too, but
//! has each go the whole way down.
//! Over `lo` this is IPv6 alone: a frame comes in as from a wire, and with addresses
//! of 127.0.0.0/8 it is a Martian (`ip_route_input_slow`, net/ipv4/route.c).
//! In mode `rr` a call has one message, as one is asked for.
//! Does not show: zero-copy, which takes a driver that has it; reliability: what the
//! device drops or the receiver has no room for is lost.

use std::borrow::Cow;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::family::{Condition, Family};
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::errno::Errno;
use iolens_sys::netlink::Route;
use iolens_sys::xdp::{BATCH_MAX, CHUNK_BYTES, FrameSocket};
use iolens_sys::{ring, tcp, udp};

use crate::frame::{Addresses, headers_bytes};
use crate::inflight::Deadline;
use crate::op::{Budget, Fact, Sender, Span, Tally, drive_answers};
use crate::primitives::{COPY_IN_FRAME, COPY_OUT, HAND_OVER_FRAME};
use crate::registry::{Ends, Entry, Setup, SetupError, Shape};
use crate::several;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "xdp_tx",
    family: Family::Datagram,
    condition: Some(Condition::Datagram),
    summary: "sendto(2) for up to 32 UDP datagrams that lie as frames in an AF_XDP ring",
    ends: Ends::Pair,
    transport: Transport::Udp,
    control: false,
    hidden: false,
    datagrams: true,
    locks_memory: true,
    descriptors: 1,
    since: Some(KernelVersion::new(5, 4, 0)),
    data_path: DataPath {
        hops: Cow::Borrowed(&[COPY_IN_FRAME, HAND_OVER_FRAME, COPY_OUT]),
        calls: CallsPerMessage::Shared(32),
    },
    open,
};

/// How long a queue is waited for that another socket has: one that was closed
/// gives it back a while later (`xp_release_deferred`, net/xdp/xsk_buff_pool.c).
const PATIENCE: Duration = Duration::from_secs(1);

/// What a call ends with where something is in the way for now: the frames that the
/// kernel has not taken stay in the ring.
pub(super) const FOR_NOW: [Errno; 5] =
    [Errno::EAGAIN, Errno::EBUSY, Errno::EINTR, Errno::ENOBUFS, Errno::ENOMEM];

/// The largest message over a protocol.
pub(crate) const fn message_bytes_max(is_ipv4: bool) -> usize {
    CHUNK_BYTES - headers_bytes(is_ipv4)
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    let (socket, queue) = prepare(&setup)?;
    Ok(Box::new(Frames {
        held: vec![false; socket.frames()].into_boxed_slice(),
        socket,
        queue,
        size: setup.shape.message_bytes as u64,
        next: 0,
        outstanding: 0,
        tally: Tally::default(),
        stall_limit: setup.stall_limit,
    }))
}

/// A socket with what is to be sent, bound to a queue of the device on the way to
/// the receiver, and which queue that is.
///
/// Errors: the messages are no frames, or none would arrive.
pub(super) fn prepare(setup: &Setup<'_>) -> Result<(FrameSocket, u32), SetupError> {
    let fd = setup.link.socket();
    let (from, to) = (udp::address(fd)?, tcp::peer_address(fd)?);
    let size = setup.shape.message_bytes;
    let most = message_bytes_max(to.is_ipv4()).min(udp::unfragmented_bytes(fd)?);
    if size > most {
        let tried = format!(
            "send messages of {size} B as frames, of which a page and the MTU hold {most} B"
        );
        return Err(SetupError { tried, errno: Errno::EMSGSIZE });
    }
    let way = Route::open().and_then(|route| route.way(to.ip())).map_err(|errno| {
        let tried = format!("find the device and the neighbour on the way to {}", to.ip());
        SetupError { tried, errno }
    })?;
    if way.is_loopback && to.is_ipv4() {
        let tried = "send frames over `lo` with IPv4, which the kernel would drop as Martians \
                     (take IPv6)";
        return Err(SetupError { tried: tried.to_owned(), errno: Errno::EOPNOTSUPP });
    }
    let addresses = Addresses { link: [way.from, way.to], from, to };
    let socket = framed(&setup.shape, &addresses)?;
    let queue = bind(&socket, way.device)?;
    Ok((socket, queue))
}

/// A socket with the messages of a ring as frames: the ring over and over until
/// there are as many as go together, so that none has to go twice at once.
fn framed(shape: &Shape, addresses: &Addresses) -> Result<FrameSocket, SetupError> {
    let headers = headers_bytes(addresses.to.is_ipv4());
    let frames = shape.messages * BATCH_MAX.div_ceil(shape.messages);
    FrameSocket::open(frames, headers + shape.message_bytes, |frame, bytes| {
        for (offset, byte) in bytes[headers..].iter_mut().enumerate() {
            *byte = ring::content(frame % shape.messages, offset);
        }
        addresses.head(bytes);
    })
}

/// Binds the socket to the first queue of a device that is free; which one it is.
fn bind(socket: &FrameSocket, device: u32) -> Result<u32, SetupError> {
    let patience = Deadline::after(PATIENCE);
    let mut queue = 0;
    loop {
        let errno = match socket.bind(device, queue) {
            Ok(()) => return Ok(queue),
            Err(Errno::EBUSY) => {
                queue += 1;
                continue;
            }
            // There are no more.
            Err(Errno::EINVAL) if queue > 0 && !patience.left().is_zero() => {
                queue = 0;
                std::thread::yield_now();
                continue;
            }
            Err(Errno::EINVAL) if queue > 0 => Errno::EBUSY,
            Err(errno) => errno,
        };
        let tried = format!(
            "bind an AF_XDP socket to a queue of device {device} (each thread of an arm needs \
             one that no other such socket has; there are {queue})"
        );
        return Err(SetupError { tried, errno });
    }
}

/// A thread's socket with what it sends.
struct Frames {
    socket: FrameSocket,
    /// Frames that the kernel may still read from.
    held: Box<[bool]>,
    outstanding: usize,
    /// The frame whose turn it is.
    next: usize,
    /// Bytes of a message.
    size: u64,
    queue: u32,
    tally: Tally,
    stall_limit: Duration,
}

impl Frames {
    /// Hands over the next `messages` frames, at most [`BATCH_MAX`], with one call
    /// where nothing is in the way.
    #[inline]
    fn send(&mut self, messages: u64) -> Result<u64, Errno> {
        for _ in 0..messages {
            let frame = self.next;
            if self.held[frame] {
                self.await_until(|frames| !frames.held[frame])?;
            }
            self.socket.post(frame);
            self.held[frame] = true;
            self.outstanding += 1;
            self.next = if frame + 1 == self.held.len() { 0 } else { frame + 1 };
        }
        self.socket.publish();
        self.kick()?;
        if !self.socket.is_taken() {
            self.hand_over_rest()?;
        }
        self.reap()?;
        self.tally.messages += messages;
        self.tally.bytes += messages * self.size;
        Ok(messages)
    }

    /// Tells the kernel that there is something, where it has to be told. What is
    /// for now in the way is seen by what the kernel has not taken.
    #[inline]
    fn kick(&mut self) -> Result<(), Errno> {
        if !self.socket.needs_wakeup() {
            return Ok(());
        }
        self.tally.calls += 1;
        match self.socket.kick() {
            Err(errno) if !FOR_NOW.contains(&errno) => Err(errno),
            _ => Ok(()),
        }
    }

    /// Goes on until the kernel has taken all; `EAGAIN` when it does not.
    #[cold]
    #[inline(never)]
    fn hand_over_rest(&mut self) -> Result<(), Errno> {
        let deadline = Deadline::after(self.stall_limit);
        while !self.socket.is_taken() {
            if deadline.left().is_zero() {
                return Err(Errno::EAGAIN);
            }
            // Completions make room for more.
            if self.reap()? == 0 {
                std::thread::yield_now();
            }
            self.kick()?;
        }
        Ok(())
    }

    /// Reads the completions that are there; how many.
    ///
    /// Errors: `EBADMSG` for a frame that is not under way.
    #[inline]
    fn reap(&mut self) -> Result<usize, Errno> {
        let mut completed = 0;
        while let Some(frame) = self.socket.completed() {
            match self.held.get_mut(frame) {
                Some(held) if *held => *held = false,
                _ => return Err(Errno::EBADMSG),
            }
            completed += 1;
        }
        self.outstanding -= completed;
        Ok(completed)
    }

    /// Reads completions until it is so. Nothing wakes who waits for one
    /// (`xsk_poll` knows of room in the other ring alone).
    #[cold]
    #[inline(never)]
    fn await_until(&mut self, enough: impl Fn(&Frames) -> bool) -> Result<(), Errno> {
        let deadline = Deadline::after(self.stall_limit);
        while !enough(self) {
            if self.reap()? == 0 {
                if deadline.left().is_zero() {
                    return Err(Errno::ETIMEDOUT);
                }
                std::thread::yield_now();
            }
        }
        Ok(())
    }
}

impl Sender for Frames {
    fn run(&mut self, budget: &Budget) -> Result<Span, Errno> {
        several::drive(BATCH_MAX as u64, budget, |messages| self.send(messages))
    }

    fn answer(&mut self, requests: BorrowedFd<'_>) -> Result<Span, Errno> {
        drive_answers(|| self.send(1).map(|_| ()), requests)
    }

    fn settle(&mut self) -> Result<(), Errno> {
        self.await_until(|frames| frames.outstanding == 0)
    }

    fn touch(&mut self) {
        let _ = self.socket.touch();
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn facts(&self) -> Vec<Fact> {
        vec![
            ("messages of one call, at most", BATCH_MAX.to_string()),
            ("frames in the UMEM", self.held.len().to_string()),
            ("queue of the device", self.queue.to_string()),
        ]
    }
}
