//! `sendmsg_iov`: sendmsg(2) with an iovec that points at the fields.
//!
//! Path through the kernel: sendmsg(2) → `import_iovec` → `tcp_sendmsg_locked`
//! → copy of each piece into socket buffers. One copy, the same as `send`:
//! what the iovec saves is the gather in user space, not a copy in the kernel.
//! Needs: nothing beyond TCP; at most 64 fields here, 1024 in the kernel.
//! Compared with: `send_staged`, which gathers first; with `--iovec prepared`
//! the iovec is built once instead of for every message.
//! Does not show: sends that copy nothing.

use std::borrow::Cow;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use iolens_model::axes::Iovec;
use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::kernel::KernelVersion;
use iolens_sys::errno::Errno;
use iolens_sys::ring::Layout;

use crate::op::{Op, Sender};
use crate::primitives::{COPY_IN, COPY_OUT, HAND_OVER};
use crate::registry::{Ends, Entry, Setup, SetupError};
use crate::stream::Stream;
use crate::transmit::{Iovecs, sendmsg_all};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "sendmsg_iov",
    family: "the classic three",
    summary: "sendmsg(2) with an iovec straight over the fields",
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

/// Builds the iovec for every message.
struct PerMessage<'a> {
    fd: BorrowedFd<'a>,
    stream: Stream,
}

/// Uses the iovec that the ring was made with.
struct Prepared<'a> {
    fd: BorrowedFd<'a>,
    stream: Stream,
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    let (fd, stream) = (setup.link.socket(), Stream::new(&setup.shape, Layout::Separate));
    match setup.shape.iovec {
        Iovec::PerMessage => Ok(Box::new(PerMessage { fd, stream })),
        Iovec::Prepared => Ok(Box::new(Prepared { fd, stream })),
    }
}

impl Op for PerMessage<'_> {
    #[inline]
    fn message(&mut self) -> Result<(), Errno> {
        let index = self.stream.turn();
        let Stream { ring, tally, .. } = &mut self.stream;
        let iovec: Iovecs<'_> =
            ring.fields(index).iter().map(|field| IoSlice::new(field)).collect();
        sendmsg_all(self.fd, &iovec, ring.message_bytes(), tally)?;
        tally.messages += 1;
        Ok(())
    }

    fn stream(&self) -> &Stream {
        &self.stream
    }
}

impl Op for Prepared<'_> {
    #[inline]
    fn message(&mut self) -> Result<(), Errno> {
        let index = self.stream.turn();
        let Stream { ring, tally, .. } = &mut self.stream;
        sendmsg_all(self.fd, ring.prepared(index), ring.message_bytes(), tally)?;
        tally.messages += 1;
        Ok(())
    }

    fn stream(&self) -> &Stream {
        &self.stream
    }
}
