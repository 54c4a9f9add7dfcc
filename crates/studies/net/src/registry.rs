//! What exists: every primitive as an entry. Help, lists, labels and the
//! conformance tests follow from this table; adding a primitive is one entry in the file
//! of its mechanism and one line here.

use iolens_model::family::Family;

use crate::entry::Entry;
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
pub fn find(id: &str) -> Option<&'static Entry> {
    all().find(|entry| entry.id == id)
}

/// The entries of a family that are shown, in the registry's order.
pub fn of_family(family: Family) -> impl Iterator<Item = &'static Entry> {
    REGISTRY.iter().copied().filter(move |entry| entry.family == family && !entry.hidden)
}

#[cfg(test)]
mod tests {
    use iolens_model::data_path::{End, Hop};

    use super::*;
    use crate::hops::{DROP, HAND_OVER, HAND_OVER_FRAME, dropped};

    #[test]
    fn the_registry_is_sorted_by_id() {
        assert!(REGISTRY.is_sorted_by(|a, b| a.id < b.id));
    }

    #[test]
    fn what_is_dropped_is_copied_at_the_sender_alone() {
        for entry in REGISTRY.iter().filter(|entry| entry.datagrams) {
            let path = dropped(&entry.data_path());
            assert!(path.hops.iter().all(|hop| hop.end == End::Sender), "{}", entry.id);
            assert!(path.hops.iter().any(|hop| hop.to == DROP.to), "{}", entry.id);
            let handed_over = |hop: &Hop| [HAND_OVER, HAND_OVER_FRAME].contains(hop);
            assert!(!path.hops.iter().any(handed_over), "{}", entry.id);
            for share in [0.0, 1.0] {
                let before = entry.data_path().copies_sender(share);
                assert_eq!(path.copies_sender(share), before, "{}", entry.id);
                assert_eq!(path.copies_end_to_end(share, 0.0), before, "{}", entry.id);
            }
        }
    }
}
