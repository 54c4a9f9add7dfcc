//! `write`: write(2) of a message that lies in one piece already.
//!
//! Path through the kernel: write(2) → `vfs_write` → `sock_write_iter` →
//! `tcp_sendmsg_locked` → copy into socket buffers: the way of `send` behind
//! the file layer.
//! Needs: nothing beyond TCP.
//! Compared with: `send`, which names the socket and takes flags; between the
//! two lies the cost of the file layer and nothing else.
//! Does not show: what it cost to bring the message into one piece.

use std::borrow::Cow;

use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::family::{Condition, Family};
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::socket;

use crate::entry::{Ends, Entry, Setup, SetupError};
use crate::one_call;
use crate::op::Sender;
use crate::primitives::{COPY_IN, COPY_OUT, HAND_OVER};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "write",
    family: Family::Plain,
    condition: Some(Condition::Contiguous),
    summary: "write(2) of a message that is contiguous already",
    ends: Ends::Pair,
    transport: Transport::Tcp,
    control: false,
    hidden: false,
    datagrams: true,
    locks_memory: false,
    descriptors: 0,
    since: Some(KernelVersion::new(2, 0, 0)),
    data_path: DataPath {
        hops: Cow::Borrowed(&[COPY_IN, HAND_OVER, COPY_OUT]),
        calls: CallsPerMessage::Fixed(1),
    },
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    Ok(one_call::contiguous(&setup, socket::write))
}
