//! `uring_sendmsg`: an iovec that points at the fields, sent through a ring
//! (`IORING_OP_SENDMSG`).
//!
//! Path through the kernel: io_uring_enter(2) → `io_sendmsg_prep`, which reads
//! msghdr and iovec → `io_sendmsg` → `tcp_sendmsg_locked` → copy of each piece
//! into socket buffers.
//! Needs: as `uring_send`; at most 64 fields here, 1024 in the kernel.
//! Compared with: `sendmsg_iov`, which is the same without a ring;
//! `uring_sendmsg_zc`.
//! One send is under way at a time: that keeps a stream in order.
//! Does not show: as `uring_send`.

use std::borrow::Cow;

use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::family::Family;
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::io_uring::operation;

use crate::entry::{Ends, Entry, Setup, SetupError};
use crate::op::Sender;
use crate::primitives::{COPY_IN, COPY_OUT, HAND_OVER};
use crate::uring;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "uring_sendmsg",
    family: Family::IoUring,
    condition: None,
    summary: "an iovec straight over the fields through a ring, one send at a time",
    ends: Ends::Pair,
    transport: Transport::Tcp,
    control: false,
    hidden: false,
    locks_memory: false,
    datagrams: true,
    descriptors: 1,
    since: Some(KernelVersion::new(5, 3, 0)),
    data_path: DataPath {
        hops: Cow::Borrowed(&[COPY_IN, HAND_OVER, COPY_OUT]),
        calls: CallsPerMessage::Fixed(1),
    },
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    uring::open(setup, operation::Sendmsg)
}
