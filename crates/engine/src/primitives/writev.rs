//! `writev`: writev(2) with an iovec that points at the fields.
//!
//! Path through the kernel: writev(2) → `import_iovec` → `sock_write_iter` →
//! `tcp_sendmsg_locked` → copy of each piece into socket buffers: the way of
//! `sendmsg_iov` behind the file layer. One copy.
//! Needs: nothing beyond TCP; at most 64 fields here, 1024 in the kernel.
//! Compared with: `sendmsg_iov`, which hands over the same iovec in a message
//! header; with `--iovec prepared` the iovec is built once instead of for every
//! message.
//! Does not show: sends that copy nothing.

use std::borrow::Cow;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use iolens_model::axes::Iovec;
use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::kernel::KernelVersion;
use iolens_sys::errno::Errno;
use iolens_sys::ring::Layout;
use iolens_sys::socket;

use crate::op::{Op, Sender};
use crate::primitives::{COPY_IN, COPY_OUT, HAND_OVER};
use crate::registry::{Ends, Entry, Setup, SetupError};
use crate::stream::Stream;
use crate::transmit::{Iovecs, whole_iovec};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "writev",
    family: "plain",
    summary: "writev(2) with an iovec straight over the fields",
    ends: Ends::Pair,
    control: false,
    hidden: false,
    datagrams: true,
    locks_memory: false,
    descriptors: 0,
    since: Some(KernelVersion::new(2, 0, 0)),
    data_path: DataPath {
        hops: Cow::Borrowed(&[COPY_IN, HAND_OVER, COPY_OUT]),
        calls: CallsPerMessage::Fixed(1),
    },
    open,
};

struct Writev<'a> {
    fd: BorrowedFd<'a>,
    stream: Stream,
    prepared: bool,
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    Ok(Box::new(Writev {
        fd: setup.link.socket(),
        stream: Stream::new(&setup.shape, Layout::Separate),
        prepared: setup.shape.iovec == Iovec::Prepared,
    }))
}

impl Op for Writev<'_> {
    #[inline]
    fn message(&mut self) -> Result<(), Errno> {
        let index = self.stream.turn();
        let Stream { ring, tally, .. } = &mut self.stream;
        let call = |left: &[IoSlice<'_>]| socket::writev(self.fd, left);
        if self.prepared {
            whole_iovec(ring.prepared(index), ring.message_bytes(), tally, call)?;
        } else {
            let iovec: Iovecs<'_> = ring.fields(index).iter().map(|f| IoSlice::new(f)).collect();
            whole_iovec(&iovec, ring.message_bytes(), tally, call)?;
        }
        tally.messages += 1;
        Ok(())
    }

    fn stream(&self) -> &Stream {
        &self.stream
    }
}
