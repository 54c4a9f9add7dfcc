//! `uring_send_zc`: a message that lies in one piece already, sent through a
//! ring without a copy (`IORING_OP_SEND_ZC`).
//!
//! Path through the kernel: io_uring_enter(2) → `io_send_zc` →
//! `tcp_sendmsg_locked` → `skb_zerocopy_iter_stream` →
//! `io_sg_from_iter_iovec`, which pins the pages and puts them into the socket
//! buffer. The result comes at once, a notification when the bytes were
//! acknowledged. Whatever is delivered on this machine is copied on its way all
//! the same (`skb_orphan_frags_rx` → `skb_copy_ubufs`), late and with cold
//! caches, and the notification says so (`IORING_NOTIF_USAGE_ZC_COPIED`, from
//! Linux 6.2; before that it is not known).
//! Needs: as `uring_send`; locked memory (`RLIMIT_MEMLOCK`).
//! Compared with: `uring_send`, which copies at once; `uring_send_zc_fixed`,
//! which has the pages pinned beforehand.
//! The next send waits for the result of the one before, which keeps a stream in
//! order, and not for its notification: see `uring.rs`. There is no fallback to
//! a copying send.
//! Does not show: what happens to a device that takes references: see the
//! topologies.

use std::borrow::Cow;

use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::family::{Condition, Family};
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::io_uring::operation;

use crate::entry::{Ends, Entry, Setup, SetupError};
use crate::op::Sender;
use crate::primitives::{COPY_OUT, HAND_OVER, LATE_COPY, PIN};
use crate::uring;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "uring_send_zc",
    family: Family::IoUring,
    condition: Some(Condition::Contiguous),
    summary: "a contiguous message through a ring, zero-copy, notifications awaited",
    ends: Ends::Pair,
    transport: Transport::Tcp,
    control: false,
    hidden: false,
    locks_memory: true,
    datagrams: true,
    descriptors: 1,
    since: Some(KernelVersion::new(6, 0, 0)),
    data_path: DataPath {
        hops: Cow::Borrowed(&[PIN, HAND_OVER, LATE_COPY, COPY_OUT]),
        calls: CallsPerMessage::Fixed(1),
    },
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    uring::open(setup, operation::SendZc)
}
