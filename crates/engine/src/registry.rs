//! What exists: every primitive as an entry. Help, lists, labels and the
//! conformance tests follow from this table; adding a primitive is one file
//! and one line here.

use iolens_model::family::Family;

pub use crate::entry::{Ends, Entry, Link, Setup, SetupError, Shape};

use crate::primitives::{
    bare, memcpy, mptcp, null, pipe, send, send_per_field, send_staged, sendfile, sendfile_file,
    sendmmsg, sendmsg_iov, sendmsg_zerocopy, sendto, splice, udp_gso, unix_stream, uring_send,
    uring_send_zc, uring_send_zc_fixed, uring_sendmsg, uring_sendmsg_zc, write, writev, xdp_tx,
};

/// Every primitive, sorted by id. [`all`] has their bare loops too.
pub const REGISTRY: &[&Entry] = &[
    &memcpy::ENTRY,
    &mptcp::ENTRY,
    &null::ENTRY,
    &pipe::ENTRY,
    &send::ENTRY,
    &send_per_field::ENTRY,
    &send_staged::ENTRY,
    &sendfile::ENTRY,
    &sendfile_file::ENTRY,
    &sendmmsg::ENTRY,
    &sendmsg_iov::ENTRY,
    &sendmsg_zerocopy::ENTRY,
    &sendto::ENTRY,
    &splice::ENTRY,
    &udp_gso::ENTRY,
    &unix_stream::ENTRY,
    &uring_send::ENTRY,
    &uring_send_zc::ENTRY,
    &uring_send_zc_fixed::ENTRY,
    &uring_sendmsg::ENTRY,
    &uring_sendmsg_zc::ENTRY,
    &write::ENTRY,
    &writev::ENTRY,
    &xdp_tx::ENTRY,
];

/// Every primitive, and the bare loop of each that makes system calls to send,
/// to check the primitive's loop with; all of these are hidden.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    REGISTRY.iter().copied().chain(bare::TWINS)
}

/// The entry of an id.
#[must_use]
pub fn find(id: &str) -> Option<&'static Entry> {
    all().find(|entry| entry.id == id)
}

/// The entries of a family that are shown, in the registry's order.
pub fn of_family(family: Family) -> impl Iterator<Item = &'static Entry> {
    REGISTRY.iter().copied().filter(move |entry| entry.family == family && !entry.hidden)
}
