//! `uring_sendmsg_zc`: an iovec that points at the fields, sent through a ring
//! without a copy (`IORING_OP_SENDMSG_ZC`).
//!
//! Path through the kernel: io_uring_enter(2) → `io_sendmsg_zc` →
//! `tcp_sendmsg_locked` → `skb_zerocopy_iter_stream` →
//! `io_sg_from_iter_iovec`, which pins the pages of every field and puts them
//! into the socket buffer; the rest is as `uring_send_zc`, the late copy too.
//! Needs: as `uring_send`; locked memory (`RLIMIT_MEMLOCK`).
//! Compared with: `uring_sendmsg`, which copies at once; `sendmsg_zerocopy`,
//! which does the same without a ring and reads completions from the socket's
//! error queue.
//! Does not show: as `uring_send_zc`.

use std::borrow::Cow;

use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::family::Family;
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::io_uring::operation;

use crate::entry::{Ends, Entry, Setup, SetupError};
use crate::op::Sender;
use crate::primitives::{COPY_OUT, HAND_OVER, LATE_COPY, PIN};
use crate::uring;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "uring_sendmsg_zc",
    family: Family::IoUring,
    condition: None,
    summary: "an iovec straight over the fields through a ring, zero-copy, notifications awaited",
    ends: Ends::Pair,
    transport: Transport::Tcp,
    control: false,
    hidden: false,
    locks_memory: true,
    datagrams: true,
    descriptors: 1,
    since: Some(KernelVersion::new(6, 1, 0)),
    data_path: DataPath {
        hops: Cow::Borrowed(&[PIN, HAND_OVER, LATE_COPY, COPY_OUT]),
        calls: CallsPerMessage::Fixed(1),
    },
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    uring::open(setup, operation::SendmsgZc)
}
