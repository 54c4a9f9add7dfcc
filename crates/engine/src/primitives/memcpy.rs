//! `memcpy`: the gather of `send_staged` and nothing else.
//!
//! Path through the kernel: none.
//! Needs: nothing.
//! Compared with: a control; it bounds what `sendmsg_iov` can save over
//! `send_staged`, in ns per byte.
//! Does not show: the cache misses that a gather causes in the calls after it.

use std::borrow::Cow;

use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::family::Family;
use iolens_model::transport::Transport;
use iolens_sys::errno::Errno;
use iolens_sys::fault::touch;
use iolens_sys::ring::{Field, Layout};

use crate::entry::{Ends, Entry, Setup, SetupError};
use crate::op::{Op, Sender};
use crate::primitives::GATHER;
use crate::primitives::send_staged::gather;
use crate::stream::Stream;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "memcpy",
    family: Family::Controls,
    condition: None,
    summary: "gather the fields into a staging buffer and send nothing",
    ends: Ends::SenderOnly,
    transport: Transport::Tcp,
    control: true,
    hidden: false,
    datagrams: false,
    locks_memory: false,
    descriptors: 0,
    since: None,
    data_path: DataPath { hops: Cow::Borrowed(&[GATHER]), calls: CallsPerMessage::Fixed(0) },
    open,
};

struct Memcpy {
    stream: Stream,
    staging: Field,
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    Ok(Box::new(Memcpy {
        stream: Stream::new(&setup.shape, Layout::Separate),
        staging: Field::filled(setup.shape.message_bytes, 1),
    }))
}

impl Op for Memcpy {
    #[inline]
    fn message(&mut self) -> Result<(), Errno> {
        let index = self.stream.turn();
        let Stream { ring, tally, .. } = &mut self.stream;
        gather(ring.fields(index), &mut self.staging);
        // Somebody might read it: without this the copy could be dropped.
        std::hint::black_box(&mut self.staging);
        tally.messages += 1;
        tally.bytes += self.staging.len() as u64;
        Ok(())
    }

    fn stream(&self) -> &Stream {
        &self.stream
    }

    fn touch(&mut self) {
        let _ = self.stream.ring.touch().wrapping_add(touch(&self.staging));
    }
}
