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

use std::os::fd::BorrowedFd;
use std::time::Duration;

use iolens_model::data_path::CallsPerMessage;
use iolens_model::host::KernelVersion;
use iolens_sys::errno::Errno;
use iolens_sys::netlink::Route;
use iolens_sys::xdp::{BATCH_MAX, CHUNK_BYTES, FrameSocket};
use iolens_sys::{ring, tcp, udp};

use super::datagram::datagram;
use crate::entry::{Entry, Setup, SetupError, Shape};
use crate::frame::{Addresses, headers_bytes};
use crate::hops::{COPY_IN_FRAME, COPY_OUT, HAND_OVER_FRAME};
use crate::several;
use iolens_harness::op::{Budget, Fact, Sender, Span, Tally, drive_answers};
use iolens_harness::watch::Deadline;

/// The registry entry.
pub(crate) static XDP_TX: Entry = Entry {
    locks_memory: true,
    hops: &[COPY_IN_FRAME, HAND_OVER_FRAME, COPY_OUT],
    ..datagram(
        "xdp_tx",
        "sendto(2) for up to 32 UDP datagrams that lie as frames in an AF_XDP ring",
        KernelVersion::new(5, 4, 0),
        CallsPerMessage::Shared(32),
        open,
    )
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
        under_way: UnderWay::among(socket.frames()),
        socket,
        queue,
        size: setup.shape.message_bytes as u64,
        next: 0,
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
    under_way: UnderWay,
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
        let mut left = usize::try_from(messages).unwrap_or(usize::MAX);
        if self.under_way.room() < left {
            self.await_until(|under_way| under_way.room() >= left)?;
        }
        self.under_way.count += left;
        while left > 0 {
            // To the end of the ring, and from its begin.
            let end = self.socket.frames().min(self.next + left);
            left -= end - self.next;
            self.socket.post(self.next..end);
            self.next = if end == self.socket.frames() { 0 } else { end };
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
        let completed = self.socket.completed();
        let count = completed.len();
        self.under_way.complete(completed)?;
        self.socket.release(count);
        Ok(count)
    }

    /// Reads completions until it is so. Nothing wakes who waits for one
    /// (`xsk_poll` knows of room in the other ring alone).
    #[cold]
    #[inline(never)]
    fn await_until(&mut self, enough: impl Fn(&UnderWay) -> bool) -> Result<(), Errno> {
        let deadline = Deadline::after(self.stall_limit);
        while !enough(&self.under_way) {
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

/// The frames that the kernel may still read from. They are sent in the ring's order
/// and nearly always complete in it, which takes a number; what completes before
/// its turn is kept until then.
struct UnderWay {
    /// The first of them.
    oldest: usize,
    /// How many there are from there on, with those in `early`.
    count: usize,
    /// Whether a frame has completed, and one that was sent before it has not.
    early: Box<[bool]>,
    early_count: usize,
}

impl UnderWay {
    /// None of so many frames.
    fn among(frames: usize) -> UnderWay {
        let early = vec![false; frames].into_boxed_slice();
        UnderWay { oldest: 0, count: 0, early, early_count: 0 }
    }

    /// How many more may be.
    #[inline]
    fn room(&self) -> usize {
        self.early.len() - self.count
    }

    /// These frames have completed.
    ///
    /// Errors: `EBADMSG` for one that was not under way.
    #[inline]
    fn complete(&mut self, frames: impl ExactSizeIterator<Item = usize>) -> Result<(), Errno> {
        if frames.len() > self.count - self.early_count {
            return Err(Errno::EBADMSG);
        }
        let (mut oldest, mut count) = (self.oldest, self.count);
        for frame in frames {
            if frame == oldest && self.early_count == 0 {
                oldest = self.after(oldest);
                count -= 1;
            } else {
                (self.oldest, self.count) = (oldest, count);
                self.complete_early(frame)?;
                (oldest, count) = (self.oldest, self.count);
            }
        }
        (self.oldest, self.count) = (oldest, count);
        Ok(())
    }

    #[inline]
    fn after(&self, frame: usize) -> usize {
        if frame + 1 == self.early.len() { 0 } else { frame + 1 }
    }

    #[cold]
    #[inline(never)]
    fn complete_early(&mut self, frame: usize) -> Result<(), Errno> {
        let frames = self.early.len();
        if frame >= frames || self.early[frame] {
            return Err(Errno::EBADMSG);
        }
        if (frame + frames - self.oldest) % frames >= self.count {
            return Err(Errno::EBADMSG);
        }
        self.early[frame] = true;
        self.early_count += 1;
        while self.early[self.oldest] {
            self.early[self.oldest] = false;
            self.early_count -= 1;
            self.oldest = self.after(self.oldest);
            self.count -= 1;
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
        self.await_until(|under_way| under_way.count == 0)
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
            ("frames in the UMEM", self.socket.frames().to_string()),
            ("queue of the device", self.queue.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_complete_in_any_order_and_once() {
        let mut under_way = UnderWay::among(5);
        let refused = Err(Errno::EBADMSG);
        assert_eq!(under_way.complete([0].into_iter()), refused, "none is under way");
        under_way.count = 4;
        for (frame, room) in [(0, 2), (2, 2), (3, 2), (1, 5)] {
            assert_eq!(under_way.complete([frame].into_iter()), Ok(()), "{frame}");
            assert_eq!(under_way.room(), room, "{frame}");
            assert_eq!(under_way.complete([frame].into_iter()), refused, "{frame} again");
        }
        // Past the end of the ring: 4, 0 and 1.
        under_way.count = 3;
        for frame in [3, 2, 5, usize::MAX] {
            assert_eq!(under_way.complete([frame].into_iter()), refused, "{frame}");
        }
        assert_eq!(under_way.complete([4, 0, 1, 2].into_iter()), refused, "more than there are");
        assert_eq!(under_way.complete([1, 4].into_iter()), Ok(()));
        assert_eq!(under_way.room(), 3);
        assert_eq!(under_way.complete([0].into_iter()), Ok(()));
        assert_eq!(under_way.room(), 5);
        assert_eq!((under_way.oldest, under_way.early_count), (2, 0));
        assert!(under_way.early.iter().all(|early| !early));
    }
}
