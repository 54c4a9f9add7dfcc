//! Primitives whose messages are UDP datagrams. Frames are in [`xdp_tx`](super::xdp_tx).

use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use iolens_model::data_path::{CallsPerMessage, Hop};
use iolens_model::family::{Condition, Family};
use iolens_model::host::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::errno::Errno;
use iolens_sys::udp::{Batch, Destination};
use iolens_sys::{socket, udp};

use crate::entry::{Entry, Open, Setup, SetupError};
use crate::hops::{COPY_IN_DATAGRAM, COPY_OUT, HAND_OVER};
use crate::one_call;
use crate::several::{self, MESSAGES_MAX};

pub(super) const fn datagram(
    id: &'static str,
    summary: &'static str,
    since: KernelVersion,
    calls: CallsPerMessage,
    open: Open,
) -> Entry {
    const HOPS: &[Hop] = &[COPY_IN_DATAGRAM, HAND_OVER, COPY_OUT];
    Entry {
        transport: Transport::Udp,
        datagrams: true,
        descriptors: 1,
        since: Some(since),
        calls,
        ..Entry::tcp(id, Family::Datagram, Some(Condition::Datagram), summary, HOPS, open)
    }
}

/// `sendto`: sendto(2) of a contiguous message, one UDP datagram, with its
/// destination.
///
/// Path through the kernel: sendto(2) → `udp_sendmsg` → route look-up, which a
/// connected socket is spared → `ip_make_skb` → copy into a socket buffer → device,
/// all within the call.
/// Needs: a message of at most 65 507 bytes (IPv4); above the MTU it travels in
/// fragments.
/// Compared with: `sendmmsg` and `udp_gso`, which make one call for several
/// datagrams; in the topology `sink` with all that send there.
/// Does not show: reliability. Nothing holds the sender back: what the receiver has
/// no room for is lost, the share is on the row, and the rate is what arrived.
pub(crate) static SENDTO: Entry = datagram(
    "sendto",
    "sendto(2) of a contiguous message as one UDP datagram",
    KernelVersion::new(2, 0, 0),
    CallsPerMessage::Fixed(1),
    |setup| {
        let to = Destination::of(setup.link.socket())?;
        Ok(one_call::contiguous(&setup, move |fd, bytes| udp::sendto(fd, bytes, &to)))
    },
);

/// `sendmmsg`: up to 64 contiguous messages with one sendmmsg(2), each a UDP
/// datagram of its own.
///
/// Path through the kernel: sendmmsg(2) → for each message `udp_sendmsg` →
/// `ip_make_skb` → copy into a socket buffer → device. The datagrams go down one by
/// one: what is saved is the system call, not the way.
/// Needs: as `sendto`. The socket is connected, so no route is looked up.
/// Compared with: `sendto`, one call for each; `udp_gso`, one way down for all.
/// In mode `rr` a call has one message, as one is asked for.
/// Does not show: reliability; see `sendto`.
pub(crate) static SENDMMSG: Entry = datagram(
    "sendmmsg",
    "sendmmsg(2) of up to 64 contiguous messages, each a UDP datagram",
    KernelVersion::new(3, 0, 0),
    CallsPerMessage::Shared(64),
    |setup| {
        let mut batch = Batch::of(MESSAGES_MAX);
        let call = move |fd: BorrowedFd<'_>, messages: &[IoSlice<'_>]| batch.send(fd, messages);
        Ok(several::contiguous(&setup, MESSAGES_MAX, call))
    },
);

/// `udp_gso`: up to 64 contiguous messages of one size with one sendmsg(2), which
/// the kernel cuts into UDP datagrams (`UDP_SEGMENT`; udp(7)).
///
/// Path through the kernel: sendmsg(2) → `udp_sendmsg` → `ip_make_skb` → copy into
/// one socket buffer of up to 64 KiB → device. It is cut where it has to be: by the
/// device, before a device that cannot, or at a receiver on the same machine
/// (`udp_queue_rcv_skb` → `skb_segment`).
/// Needs: Linux 4.18, a message that fits the MTU with its headers, and a device
/// that computes checksums; as many messages go together as fit a datagram of
/// 64 KiB.
/// Compared with: `sendmmsg`, which saves the calls alone; `sendto`.
/// In mode `rr` a call has one message, as one is asked for.
/// Does not show: reliability; see `sendto`.
pub(crate) static UDP_GSO: Entry = datagram(
    "udp_gso",
    "sendmsg(2) of up to 64 contiguous messages that the kernel cuts into datagrams",
    KernelVersion::new(4, 18, 0),
    CallsPerMessage::Shared(64),
    |setup| {
        let (size, together) = (setup.shape.message_bytes, segment(&setup)?);
        let call = move |fd: BorrowedFd<'_>, messages: &[IoSlice<'_>]| {
            // All or nothing: a datagram is never cut short.
            socket::sendmsg(fd, messages).map(|bytes| bytes / size)
        };
        Ok(several::contiguous(&setup, together, call))
    },
);

/// Has the kernel cut what is sent into messages; how many of them go together.
///
/// Errors: the kernel cannot, or a message is more than the MTU leaves room for.
pub(super) fn segment(setup: &Setup<'_>) -> Result<usize, SetupError> {
    let (fd, size) = (setup.link.socket(), setup.shape.message_bytes);
    let most = udp::unfragmented_bytes(fd)?;
    let too_large = || SetupError {
        tried: format!("send segments of {size} B where the MTU leaves room for {most}"),
        errno: Errno::EMSGSIZE,
    };
    // The kernel says EINVAL to each send (net/ipv4/udp.c, `udp_send_skb`).
    if size > most {
        return Err(too_large());
    }
    udp::segment(fd, u16::try_from(size).map_err(|_| too_large())?)?;
    Ok((SEND_BYTES_MAX / size.max(1)).clamp(1, MESSAGES_MAX))
}

/// What one call may send, before it is cut: as much as a datagram over IPv6, whose
/// headers are the larger ones (RFC 8200, RFC 768).
const SEND_BYTES_MAX: usize = 65_535 - 40 - 8;
