//! `writev`: writev(2) with an iovec that points at the fields.
//!
//! Path through the kernel: writev(2) → `import_iovec` → `sock_write_iter` →
//! `tcp_sendmsg_locked` → copy of each piece into socket buffers: the way of
//! `sendmsg_iov` behind the file layer. One copy.
//! Needs: nothing beyond TCP; at most 64 fields here, 1024 in the kernel.
//! Compared with: `sendmsg_iov`, which hands over the same iovec in a message
//! header; with `--iovec prebuilt` the iovec is built once instead of for every
//! message.
//! Does not show: sends that copy nothing.

use std::borrow::Cow;

use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::family::Family;
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::socket;

use crate::entry::{Ends, Entry, Setup, SetupError};
use crate::one_call;
use crate::op::Sender;
use crate::primitives::{COPY_IN, COPY_OUT, HAND_OVER};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "writev",
    family: Family::Plain,
    condition: None,
    summary: "writev(2) with an iovec straight over the fields",
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
    Ok(one_call::fields(&setup, socket::writev))
}
