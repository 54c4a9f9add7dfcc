//! `null`: the loop of every primitive around a message that does nothing.
//!
//! Path through the kernel: none.
//! Needs: nothing.
//! Compared with: nothing; it is what the harness itself costs per message.
//! Does not show: the fixed cost of a slice's receipt, which every arm with a
//! receiver pays alike.

use std::borrow::Cow;

use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::family::Family;
use iolens_model::transport::Transport;
use iolens_sys::errno::Errno;
use iolens_sys::ring::Layout;

use crate::entry::{Ends, Entry, Setup, SetupError};
use crate::op::{Op, Sender};
use crate::stream::Stream;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "null",
    family: Family::Controls,
    condition: None,
    summary: "the measuring loop around nothing: what iolens itself costs",
    ends: Ends::SenderOnly,
    transport: Transport::Tcp,
    control: true,
    hidden: true,
    datagrams: false,
    locks_memory: false,
    descriptors: 0,
    since: None,
    data_path: DataPath { hops: Cow::Borrowed(&[]), calls: CallsPerMessage::Fixed(0) },
    open,
};

struct Null {
    stream: Stream,
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    Ok(Box::new(Null { stream: Stream::new(&setup.shape, Layout::Contiguous) }))
}

impl Op for Null {
    #[inline]
    fn message(&mut self) -> Result<(), Errno> {
        // The bookkeeping of every other primitive, hidden from the optimiser.
        let index = self.stream.turn();
        let Stream { ring, tally, .. } = &mut self.stream;
        std::hint::black_box(&ring.fields(index)[0]);
        tally.messages += 1;
        tally.bytes += ring.message_bytes() as u64;
        Ok(())
    }

    fn stream(&self) -> &Stream {
        &self.stream
    }
}
