//! `sendmmsg`: up to 64 contiguous messages with one sendmmsg(2), each a UDP
//! datagram of its own.
//!
//! Path through the kernel: sendmmsg(2) → for each message `udp_sendmsg` →
//! `ip_make_skb` → copy into a socket buffer → device. The datagrams go down one by
//! one: what is saved is the system call, not the way.
//! Needs: as `sendto`. The socket is connected, so no route is looked up.
//! Compared with: `sendto`, one call for each; `udp_gso`, one way down for all.
//! In mode `rr` a call has one message, as one is asked for.
//! Does not show: reliability; see `sendto`.

use std::borrow::Cow;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::family::{Condition, Family};
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::udp::Batch;

use crate::entry::{Ends, Entry, Setup, SetupError};
use crate::op::Sender;
use crate::primitives::{COPY_IN_DATAGRAM, COPY_OUT, HAND_OVER};
use crate::several::{self, MESSAGES_MAX};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "sendmmsg",
    family: Family::Datagram,
    condition: Some(Condition::Datagram),
    summary: "sendmmsg(2) of up to 64 contiguous messages, each a UDP datagram",
    ends: Ends::Pair,
    transport: Transport::Udp,
    control: false,
    hidden: false,
    datagrams: true,
    locks_memory: false,
    descriptors: 1,
    since: Some(KernelVersion::new(3, 0, 0)),
    data_path: DataPath {
        hops: Cow::Borrowed(&[COPY_IN_DATAGRAM, HAND_OVER, COPY_OUT]),
        calls: CallsPerMessage::Shared(64),
    },
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    let mut batch = Batch::of(MESSAGES_MAX);
    let call = move |fd: BorrowedFd<'_>, messages: &[IoSlice<'_>]| batch.send(fd, messages);
    Ok(several::contiguous(&setup, MESSAGES_MAX, call))
}
