//! The receivers. A receiver is an axis of the cell: every arm of a trial is received the
//! same way. The documentation of its entry says which path the bytes take, what it needs
//! and what it does not show.

mod called;
mod tcp_zerocopy_receive;
mod uring_recv_multishot;

use std::borrow::Cow;

use iolens_model::cell::Cell;
use iolens_model::data_path::{Hop, Movement, ReceiverFacts};
use iolens_model::host::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::tcp::SetupError;

use crate::receive::Receiver;
use crate::take::Setup;
use iolens_harness::host::with_version;
use iolens_harness::sysctl;

#[cfg(test)]
pub(crate) use self::called::Recv;

/// Every receiver, sorted by id.
pub const RECEIVERS: &[&Entry] = &[
    &called::RECV,
    &called::RECV_TRUNC,
    &called::RECVMSG_IOV,
    &called::SPLICE_RX,
    &tcp_zerocopy_receive::ENTRY,
    &uring_recv_multishot::ENTRY,
];

/// The receiver of an id.
pub fn find(id: &str) -> Option<&'static Entry> {
    RECEIVERS.iter().copied().find(|entry| entry.id == id)
}

/// The sysctls that these cells need, whether or not the user consents to their change: only pages
/// that stand alone can be mapped for a receiver.
pub fn needed_sysctls(cells: &[Cell]) -> Vec<sysctl::Setting> {
    let maps = |id: &str| {
        let hops = find(id).map_or(&[][..], |entry| entry.hops);
        hops.iter().any(|hop| hop.movement == Movement::Mapped)
    };
    let needs = cells.iter().any(|cell| cell.has_receiver() && cell.receiver().is_some_and(maps));
    if needs { vec![sysctl::SINGLE_PAGES] } else { Vec::new() }
}

/// One receiver.
#[derive(Debug)]
pub struct Entry {
    /// Its id: the kernel's own word where there is one.
    pub id: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// The first kernel that has what it needs; `None` where every one does.
    pub since: Option<KernelVersion>,
    /// Its hops, which take the place of those of `recv` in a cell's path.
    pub hops: &'static [Hop],
    /// What it can receive from.
    pub transports: &'static [Transport],
    /// Whether this process has the bytes in the end.
    pub has_bytes: bool,
    /// Descriptors that it opens for each connection.
    pub descriptors: u32,
    /// Tries whether it works here; why not.
    available: fn() -> Result<(), String>,
    /// Makes the receiving end of one thread.
    ///
    /// Errors: what it cannot do without was refused.
    pub open: Open,
}

/// How a receiver is made.
pub type Open = for<'a> fn(Setup<'a>) -> Result<Box<dyn Receiver + 'a>, SetupError>;

/// One that receives from everything and has the bytes, which every kernel can that iolens
/// runs on.
const fn receiver(
    id: &'static str,
    summary: &'static str,
    since: KernelVersion,
    hops: &'static [Hop],
    open: Open,
) -> Entry {
    Entry {
        id,
        summary,
        since: Some(since),
        hops,
        transports: Transport::ALL,
        has_bytes: true,
        descriptors: 0,
        available: || Ok(()),
        open,
    }
}

impl Entry {
    /// Tries it.
    ///
    /// Errors: why it does not work here, and the kernel that it needs where
    /// this one is older.
    pub fn try_here(&self) -> Result<(), String> {
        (self.available)().map_err(|why| with_version(why, self.since))
    }

    /// What a run keeps of the entry.
    pub fn facts(&self) -> ReceiverFacts {
        ReceiverFacts {
            id: self.id.to_owned(),
            summary: self.summary.to_owned(),
            hops: Cow::Borrowed(self.hops),
        }
    }
}

#[cfg(test)]
mod tests;
