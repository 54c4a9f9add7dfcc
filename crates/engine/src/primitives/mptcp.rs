//! `mptcp`: send(2) of a contiguous message over MPTCP with one path.
//!
//! Path through the kernel: send(2) → `mptcp_sendmsg` → copy into the connection's
//! own send queue → `mptcp_push_pending` hands references to a subflow, which is
//! TCP; at the other end the subflow's segments are put in order a second time.
//! Needs: `CONFIG_MPTCP` and `net.mptcp.enabled`; no second path: what is measured
//! is the layer, not what several paths gain. The subflow has the same congestion
//! control and buffers.
//! Compared with: `send`, which is the same without the layer.
//! Does not show: aggregation or failover. There is no zero-copy send with it
//! (`mptcp_sendmsg` takes no `MSG_ZEROCOPY`).

use std::borrow::Cow;

use iolens_model::data_path::{CallsPerMessage, DataPath, End, Hop, Movement, Mover};
use iolens_model::family::{Condition, Family};
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::socket;

use crate::entry::{Ends, Entry, Setup, SetupError};
use crate::one_call;
use crate::op::Sender;
use crate::primitives::{COPY_OUT, HAND_OVER};

const COPY_IN: Hop = Hop {
    from: Cow::Borrowed("user memory"),
    to: Cow::Borrowed("connection's queue"),
    end: End::Sender,
    mover: Mover::Kernel,
    function: Cow::Borrowed("copy_page_from_iter"),
    movement: Movement::Copy,
};

const PUSH: Hop = Hop {
    from: Cow::Borrowed("connection's queue"),
    to: Cow::Borrowed("send queue"),
    end: End::Sender,
    mover: Mover::Kernel,
    function: Cow::Borrowed("mptcp_sendmsg_frag"),
    movement: Movement::Reference,
};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "mptcp",
    family: Family::Controls,
    condition: Some(Condition::Contiguous),
    summary: "send(2) of a contiguous message over MPTCP with one path",
    ends: Ends::Pair,
    transport: Transport::Mptcp,
    control: true,
    hidden: false,
    datagrams: false,
    locks_memory: false,
    descriptors: 0,
    since: Some(KernelVersion::new(5, 6, 0)),
    data_path: DataPath {
        hops: Cow::Borrowed(&[COPY_IN, PUSH, HAND_OVER, COPY_OUT]),
        calls: CallsPerMessage::Fixed(1),
    },
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    Ok(one_call::contiguous(&setup, socket::send))
}
