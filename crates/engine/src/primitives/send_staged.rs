//! `send_staged`: gather the fields into one staging buffer, then send it.
//!
//! Path through the kernel: memcpy of every field into the staging buffer (by
//! user code), then send(2) → `tcp_sendmsg_locked` → copy into socket buffers.
//! Needs: nothing beyond TCP.
//! Compared with: it is the baseline; `sendmsg_iov` leaves the gather out,
//! `memcpy` leaves the kernel out.
//! Does not show: a program whose message is contiguous already; see `send`.

use std::borrow::Cow;
use std::os::fd::BorrowedFd;

use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::family::Family;
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::errno::Errno;
use iolens_sys::fault::touch;
use iolens_sys::ring::{Field, Layout};

use crate::entry::{Ends, Entry, Setup, SetupError};
use crate::op::{Op, Sender};
use crate::primitives::{COPY_IN, COPY_OUT, GATHER, HAND_OVER};
use crate::stream::Stream;
use crate::transmit::send_all;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "send_staged",
    family: Family::Classic,
    condition: None,
    summary: "gather the fields into a staging buffer by memcpy, then send(2)",
    ends: Ends::Pair,
    transport: Transport::Tcp,
    control: false,
    hidden: false,
    datagrams: true,
    locks_memory: false,
    descriptors: 0,
    since: Some(KernelVersion::new(2, 0, 0)),
    data_path: DataPath {
        hops: Cow::Borrowed(&[GATHER, COPY_IN, HAND_OVER, COPY_OUT]),
        calls: CallsPerMessage::Fixed(1),
    },
    open,
};

struct SendStaged<'a> {
    fd: BorrowedFd<'a>,
    stream: Stream,
    staging: Field,
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    Ok(Box::new(SendStaged {
        fd: setup.link.socket(),
        stream: Stream::new(&setup.shape, Layout::Separate),
        staging: Field::filled(setup.shape.message_bytes, 1),
    }))
}

/// Copies the fields one behind the other into `staging`.
#[inline]
pub(crate) fn gather(fields: &[Field], staging: &mut [u8]) {
    let mut rest = staging;
    for field in fields {
        let (here, behind) = rest.split_at_mut(field.len());
        here.copy_from_slice(field);
        rest = behind;
    }
}

impl Op for SendStaged<'_> {
    #[inline]
    fn message(&mut self) -> Result<(), Errno> {
        let index = self.stream.turn();
        let Stream { ring, tally, .. } = &mut self.stream;
        gather(ring.fields(index), &mut self.staging);
        send_all(self.fd, &self.staging, tally)?;
        tally.messages += 1;
        Ok(())
    }

    fn stream(&self) -> &Stream {
        &self.stream
    }

    fn touch(&mut self) {
        let _ = self.stream.ring.touch().wrapping_add(touch(&self.staging));
    }
}
