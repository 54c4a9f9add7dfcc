//! `unix_stream`: send(2) of a contiguous message over a stream socket of
//! `AF_UNIX`.
//!
//! Path through the kernel: send(2) → `unix_stream_sendmsg` → copy into socket
//! buffers, which go straight into the peer's queue: no TCP, no device, no softirq.
//! Needs: both ends on one machine. The network namespaces that they stand in do
//! not matter: nothing passes a device.
//! Compared with: `send`: what TCP and the device cost beyond the two copies;
//! `memcpy`: what the kernel costs beyond them.
//! Does not show: anything about a network.

use std::borrow::Cow;

use iolens_model::data_path::{CallsPerMessage, DataPath, End, Hop, Movement, Mover};
use iolens_model::family::{Condition, Family};
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::socket;

use crate::entry::{Ends, Entry, Setup, SetupError};
use crate::one_call;
use crate::op::Sender;
use crate::primitives::COPY_OUT;

const COPY_IN: Hop = Hop {
    from: Cow::Borrowed("user memory"),
    to: Cow::Borrowed("socket buffer"),
    end: End::Sender,
    mover: Mover::Kernel,
    function: Cow::Borrowed("skb_copy_datagram_from_iter"),
    movement: Movement::Copy,
};

const QUEUE: Hop = Hop {
    from: Cow::Borrowed("socket buffer"),
    to: Cow::Borrowed("receive queue"),
    end: End::Sender,
    mover: Mover::Kernel,
    function: Cow::Borrowed("unix_stream_sendmsg"),
    movement: Movement::Reference,
};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "unix_stream",
    family: Family::Controls,
    condition: Some(Condition::Contiguous),
    summary: "send(2) of a contiguous message over a Unix stream socket: no network",
    ends: Ends::Pair,
    transport: Transport::UnixStream,
    control: true,
    hidden: false,
    datagrams: false,
    locks_memory: false,
    descriptors: 0,
    since: Some(KernelVersion::new(2, 0, 0)),
    data_path: DataPath {
        hops: Cow::Borrowed(&[COPY_IN, QUEUE, COPY_OUT]),
        calls: CallsPerMessage::Fixed(1),
    },
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    Ok(one_call::contiguous(&setup, socket::send))
}
