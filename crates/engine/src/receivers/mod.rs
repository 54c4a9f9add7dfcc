//! The receivers: one file each, named after its id, and one line in
//! [`RECEIVERS`]. A receiver is an axis of the cell: every arm of a trial is
//! received the same way. The file's own documentation says which path the
//! bytes take, what it needs and what it does not show.

mod entry;
pub(crate) mod recv;
mod recv_trunc;
mod recvmsg_iov;
mod splice_rx;
mod tcp_zerocopy_receive;
mod uring_recv_multishot;

pub use self::entry::Entry;

/// Every receiver, sorted by id.
pub const RECEIVERS: &[&Entry] = &[
    &recv::ENTRY,
    &recv_trunc::ENTRY,
    &recvmsg_iov::ENTRY,
    &splice_rx::ENTRY,
    &tcp_zerocopy_receive::ENTRY,
    &uring_recv_multishot::ENTRY,
];

/// The receiver of an id.
#[must_use]
pub fn find(id: &str) -> Option<&'static Entry> {
    RECEIVERS.iter().copied().find(|entry| entry.id == id)
}

#[cfg(test)]
mod tests;
