//! Primitives that send through a ring of io_uring. Each keeps one send under way at a time,
//! which keeps a stream in order.

use iolens_model::data_path::Hop;
use iolens_model::family::{Condition, Family};
use iolens_model::host::KernelVersion;
use iolens_sys::io_uring::operation;

use crate::entry::{Entry, Open};
use crate::hops::{COPIED, COPY_OUT, HAND_OVER, LATE_COPY, PINNED, REFER};
use crate::uring;

const fn uring(
    id: &'static str,
    condition: Option<Condition>,
    summary: &'static str,
    hops: &'static [Hop],
    since: KernelVersion,
    open: Open,
) -> Entry {
    Entry {
        datagrams: true,
        descriptors: 1,
        since: Some(since),
        ..Entry::tcp(id, Family::IoUring, condition, summary, hops, open)
    }
}

/// `uring_send`: a message that lies in one piece already, sent through a ring
/// (`IORING_OP_SEND`).
///
/// Path through the kernel: io_uring_enter(2) → `io_send` → `tcp_sendmsg_locked`
/// → copy into socket buffers: the copy of `send`, behind another door. A send
/// that finds no room waits on the socket (`io_arm_apoll`) and goes on when
/// there is some.
/// Needs: io_uring with deferred task work (Linux 6.1); nobody may have switched
/// it off (`kernel.io_uring_disabled`, seccomp).
/// Compared with: `send`, which is the same without a ring; `uring_send_zc`.
/// One send is under way at a time: that keeps a stream in order.
/// Does not show: what many requests of one call save, which is what a ring is
/// for: a stream has one order, and here one send at a time.
pub(crate) static SEND: Entry = uring(
    "uring_send",
    Some(Condition::Contiguous),
    "a contiguous message through a ring, one send at a time",
    COPIED,
    KernelVersion::new(5, 6, 0),
    |setup| uring::open(setup, operation::Send),
);

/// `uring_sendmsg`: an iovec that points at the fields, sent through a ring
/// (`IORING_OP_SENDMSG`).
///
/// Path through the kernel: io_uring_enter(2) → `io_sendmsg_prep`, which reads
/// msghdr and iovec → `io_sendmsg` → `tcp_sendmsg_locked` → copy of each piece
/// into socket buffers.
/// Needs: as `uring_send`; at most 64 fields here, 1024 in the kernel.
/// Compared with: `sendmsg_iov`, which is the same without a ring;
/// `uring_sendmsg_zc`.
/// One send is under way at a time: that keeps a stream in order.
/// Does not show: as `uring_send`.
pub(crate) static SENDMSG: Entry = uring(
    "uring_sendmsg",
    None,
    "an iovec straight over the fields through a ring, one send at a time",
    COPIED,
    KernelVersion::new(5, 3, 0),
    |setup| uring::open(setup, operation::Sendmsg),
);

/// `uring_send_zc`: a message that lies in one piece already, sent through a
/// ring without a copy (`IORING_OP_SEND_ZC`).
///
/// Path through the kernel: io_uring_enter(2) → `io_send_zc` →
/// `tcp_sendmsg_locked` → `skb_zerocopy_iter_stream` →
/// `io_sg_from_iter_iovec`, which pins the pages and puts them into the socket
/// buffer. The result comes at once, a notification when the bytes were
/// acknowledged. Whatever is delivered on this machine is copied on its way all
/// the same (`skb_orphan_frags_rx` → `skb_copy_ubufs`), late and with cold
/// caches, and the notification says so (`IORING_NOTIF_USAGE_ZC_COPIED`, from
/// Linux 6.2; before that it is not known).
/// Needs: as `uring_send`; locked memory (`RLIMIT_MEMLOCK`).
/// Compared with: `uring_send`, which copies at once; `uring_send_zc_fixed`,
/// which has the pages pinned beforehand.
/// The next send waits for the result of the one before, which keeps a stream in
/// order, and not for its notification: see `uring.rs`. There is no fallback to
/// a copying send.
/// Does not show: what happens to a device that takes references: see the
/// topologies.
pub(crate) static SEND_ZC: Entry = Entry {
    locks_memory: true,
    ..uring(
        "uring_send_zc",
        Some(Condition::Contiguous),
        "a contiguous message through a ring, zero-copy, notifications awaited",
        PINNED,
        KernelVersion::new(6, 0, 0),
        |setup| uring::open(setup, operation::SendZc),
    )
};

/// `uring_send_zc_fixed`: as `uring_send_zc`, from buffers that the kernel knows
/// (`IORING_REGISTER_BUFFERS`, `IORING_RECVSEND_FIXED_BUF`).
///
/// Path through the kernel: every message of the ring is registered, and so
/// pinned, before the first slice; then io_uring_enter(2) → `io_send_zc` →
/// `tcp_sendmsg_locked` → `skb_zerocopy_iter_stream` → `io_sg_from_iter`,
/// which puts the pages into the socket buffer without counting references.
/// The rest is as `uring_send_zc`, the late copy too.
/// Needs: as `uring_send`; locked memory for the whole ring of messages
/// (`RLIMIT_MEMLOCK`), and no more than 16384 of them.
/// Compared with: `uring_send_zc`, which pins pages for every message.
/// Does not show: what registering costs, which happens once.
pub(crate) static SEND_ZC_FIXED: Entry = Entry {
    locks_memory: true,
    ..uring(
        "uring_send_zc_fixed",
        Some(Condition::Contiguous),
        "a message in a registered buffer through a ring, zero-copy, notifications awaited",
        &[REFER, HAND_OVER, LATE_COPY, COPY_OUT],
        KernelVersion::new(6, 0, 0),
        |setup| uring::open(setup, operation::SendZcFixed),
    )
};

/// `uring_sendmsg_zc`: an iovec that points at the fields, sent through a ring
/// without a copy (`IORING_OP_SENDMSG_ZC`).
///
/// Path through the kernel: io_uring_enter(2) → `io_sendmsg_zc` →
/// `tcp_sendmsg_locked` → `skb_zerocopy_iter_stream` →
/// `io_sg_from_iter_iovec`, which pins the pages of every field and puts them
/// into the socket buffer; the rest is as `uring_send_zc`, the late copy too.
/// Needs: as `uring_send`; locked memory (`RLIMIT_MEMLOCK`).
/// Compared with: `uring_sendmsg`, which copies at once; `sendmsg_zerocopy`,
/// which does the same without a ring and reads completions from the socket's
/// error queue.
/// Does not show: as `uring_send_zc`.
pub(crate) static SENDMSG_ZC: Entry = Entry {
    locks_memory: true,
    ..uring(
        "uring_sendmsg_zc",
        None,
        "an iovec straight over the fields through a ring, zero-copy, notifications awaited",
        PINNED,
        KernelVersion::new(6, 1, 0),
        |setup| uring::open(setup, operation::SendmsgZc),
    )
};
