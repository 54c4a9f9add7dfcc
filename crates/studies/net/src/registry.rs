//! What exists: every primitive as an entry. Help, lists, labels and the
//! conformance tests follow from this table; adding a primitive is one entry in the file
//! of its mechanism and one line here.

use iolens_model::family::Family;

pub use crate::entry::{Ends, Entry, Link, Setup, SetupError, Shape};

use crate::primitives::{bare, controls, copying, datagram, pages, ring, xdp_tx, zerocopy};

/// Every primitive, sorted by id. [`all`] has their bare loops too.
pub const REGISTRY: &[&Entry] = &[
    &controls::MEMCPY,
    &controls::MPTCP,
    &controls::NULL,
    &controls::PIPE,
    &copying::SEND,
    &copying::SEND_PER_FIELD,
    &copying::SEND_STAGED,
    &pages::SENDFILE,
    &pages::SENDFILE_FILE,
    &datagram::SENDMMSG,
    &copying::SENDMSG_IOV,
    &zerocopy::SENDMSG_ZEROCOPY,
    &datagram::SENDTO,
    &pages::SPLICE,
    &datagram::UDP_GSO,
    &controls::UNIX_STREAM,
    &ring::SEND,
    &ring::SEND_ZC,
    &ring::SEND_ZC_FIXED,
    &ring::SENDMSG,
    &ring::SENDMSG_ZC,
    &copying::WRITE,
    &copying::WRITEV,
    &xdp_tx::XDP_TX,
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
