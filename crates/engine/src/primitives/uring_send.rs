//! `uring_send`: a message that lies in one piece already, sent through a ring
//! (`IORING_OP_SEND`).
//!
//! Path through the kernel: io_uring_enter(2) → `io_send` → `tcp_sendmsg_locked`
//! → copy into socket buffers: the copy of `send`, behind another door. A send
//! that finds no room waits on the socket (`io_arm_apoll`) and goes on when
//! there is some.
//! Needs: io_uring with deferred task work (Linux 6.1); nobody may have switched
//! it off (`kernel.io_uring_disabled`, seccomp).
//! Compared with: `send`, which is the same without a ring; `uring_send_zc`.
//! One send is under way at a time: that keeps a stream in order.
//! Does not show: what many requests of one call save, which is what a ring is
//! for: a stream has one order, and here one send at a time.

use std::borrow::Cow;

use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::family::{Condition, Family};
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::io_uring::operation;

use crate::entry::{Ends, Entry, Setup, SetupError};
use crate::op::Sender;
use crate::primitives::{COPY_IN, COPY_OUT, HAND_OVER};
use crate::uring;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "uring_send",
    family: Family::IoUring,
    condition: Some(Condition::Contiguous),
    summary: "a contiguous message through a ring, one send at a time",
    ends: Ends::Pair,
    transport: Transport::Tcp,
    control: false,
    hidden: false,
    locks_memory: false,
    datagrams: true,
    descriptors: 1,
    since: Some(KernelVersion::new(5, 6, 0)),
    data_path: DataPath {
        hops: Cow::Borrowed(&[COPY_IN, HAND_OVER, COPY_OUT]),
        calls: CallsPerMessage::Fixed(1),
    },
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    uring::open(setup, operation::Send)
}
