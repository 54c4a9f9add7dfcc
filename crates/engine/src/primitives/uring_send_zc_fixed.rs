//! `uring_send_zc_fixed`: as `uring_send_zc`, from buffers that the kernel knows
//! (`IORING_REGISTER_BUFFERS`, `IORING_RECVSEND_FIXED_BUF`).
//!
//! Path through the kernel: every message of the ring is registered, and so
//! pinned, before the first slice; then io_uring_enter(2) → `io_send_zc` →
//! `tcp_sendmsg_locked` → `skb_zerocopy_iter_stream` → `io_sg_from_iter`,
//! which puts the pages into the socket buffer without counting references.
//! The rest is as `uring_send_zc`, the late copy too.
//! Needs: as `uring_send`; locked memory for the whole ring of messages
//! (`RLIMIT_MEMLOCK`), and no more than 16384 of them.
//! Compared with: `uring_send_zc`, which pins pages for every message.
//! Does not show: what registering costs, which happens once.

use std::borrow::Cow;

use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::family::{Condition, Family};
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::io_uring::operation;

use crate::entry::{Ends, Entry, Setup, SetupError};
use crate::op::Sender;
use crate::primitives::{COPY_OUT, HAND_OVER, LATE_COPY, REFER};
use crate::uring;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "uring_send_zc_fixed",
    family: Family::IoUring,
    condition: Some(Condition::Contiguous),
    summary: "a message in a registered buffer through a ring, zero-copy, notifications awaited",
    ends: Ends::Pair,
    transport: Transport::Tcp,
    control: false,
    hidden: false,
    locks_memory: true,
    datagrams: true,
    descriptors: 1,
    since: Some(KernelVersion::new(6, 0, 0)),
    data_path: DataPath {
        hops: Cow::Borrowed(&[REFER, HAND_OVER, LATE_COPY, COPY_OUT]),
        calls: CallsPerMessage::Fixed(1),
    },
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    uring::open(setup, operation::SendZcFixed)
}
