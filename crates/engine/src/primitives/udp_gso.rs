//! `udp_gso`: up to 64 contiguous messages of one size with one sendmsg(2), which
//! the kernel cuts into UDP datagrams (`UDP_SEGMENT`; udp(7)).
//!
//! Path through the kernel: sendmsg(2) → `udp_sendmsg` → `ip_make_skb` → copy into
//! one socket buffer of up to 64 KiB → device. It is cut where it has to be: by the
//! device, before a device that cannot, or at a receiver on the same machine
//! (`udp_queue_rcv_skb` → `skb_segment`).
//! Needs: Linux 4.18, a message that fits the MTU with its headers, and a device
//! that computes checksums; as many messages go together as fit a datagram of
//! 64 KiB.
//! Compared with: `sendmmsg`, which saves the calls alone; `sendto`.
//! In mode `rr` a call has one message, as one is asked for.
//! Does not show: reliability; see `sendto`.

use std::borrow::Cow;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::family::{Condition, Family};
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::errno::Errno;
use iolens_sys::{socket, udp};

use crate::entry::{Ends, Entry, Setup, SetupError};
use crate::op::Sender;
use crate::primitives::{COPY_IN_DATAGRAM, COPY_OUT, HAND_OVER};
use crate::several::{self, MESSAGES_MAX};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "udp_gso",
    family: Family::Datagram,
    condition: Some(Condition::Datagram),
    summary: "sendmsg(2) of up to 64 contiguous messages that the kernel cuts into datagrams",
    ends: Ends::Pair,
    transport: Transport::Udp,
    control: false,
    hidden: false,
    datagrams: true,
    locks_memory: false,
    descriptors: 1,
    since: Some(KernelVersion::new(4, 18, 0)),
    data_path: DataPath {
        hops: Cow::Borrowed(&[COPY_IN_DATAGRAM, HAND_OVER, COPY_OUT]),
        calls: CallsPerMessage::Shared(64),
    },
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    let (size, together) = (setup.shape.message_bytes, prepare(&setup)?);
    let call = move |fd: BorrowedFd<'_>, messages: &[IoSlice<'_>]| {
        // All or nothing: a datagram is never cut short.
        socket::sendmsg(fd, messages).map(|bytes| bytes / size)
    };
    Ok(several::contiguous(&setup, together, call))
}

/// Has the kernel cut what is sent into messages; how many of them go together.
///
/// Errors: the kernel cannot, or a message is more than the MTU leaves room for.
pub(crate) fn prepare(setup: &Setup<'_>) -> Result<usize, SetupError> {
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
