//! `sendto`: sendto(2) of a contiguous message, one UDP datagram, with its
//! destination.
//!
//! Path through the kernel: sendto(2) → `udp_sendmsg` → route look-up, which a
//! connected socket is spared → `ip_make_skb` → copy into a socket buffer → device,
//! all within the call.
//! Needs: a message of at most 65 507 bytes (IPv4); above the MTU it travels in
//! fragments.
//! Compared with: `sendmmsg` and `udp_gso`, which make one call for several
//! datagrams; in the topology `sink` with all that send there.
//! Does not show: reliability. Nothing holds the sender back: what the receiver has
//! no room for is lost, the share is on the row, and the rate is what arrived.

use std::borrow::Cow;

use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::family::{Condition, Family};
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::udp::{self, Destination};

use crate::entry::{Ends, Entry, Setup, SetupError};
use crate::one_call;
use crate::op::Sender;
use crate::primitives::{COPY_IN_DATAGRAM, COPY_OUT, HAND_OVER};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "sendto",
    family: Family::Datagram,
    condition: Some(Condition::Datagram),
    summary: "sendto(2) of a contiguous message as one UDP datagram",
    ends: Ends::Pair,
    transport: Transport::Udp,
    control: false,
    hidden: false,
    datagrams: true,
    locks_memory: false,
    descriptors: 1,
    since: Some(KernelVersion::new(2, 0, 0)),
    data_path: DataPath {
        hops: Cow::Borrowed(&[COPY_IN_DATAGRAM, HAND_OVER, COPY_OUT]),
        calls: CallsPerMessage::Fixed(1),
    },
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    let to = Destination::of(setup.link.socket())?;
    Ok(one_call::contiguous(&setup, move |fd, bytes| udp::sendto(fd, bytes, &to)))
}
