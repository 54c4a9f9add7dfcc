//! `write`: write(2) of a message that lies in one piece already.
//!
//! Path through the kernel: write(2) → `vfs_write` → `sock_write_iter` →
//! `tcp_sendmsg_locked` → copy into socket buffers: the way of `send` behind
//! the file layer.
//! Needs: nothing beyond TCP.
//! Compared with: `send`, which names the socket and takes flags; between the
//! two lies the cost of the file layer and nothing else.
//! Does not show: what it cost to bring the message into one piece.

use std::borrow::Cow;
use std::os::fd::BorrowedFd;

use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::kernel::KernelVersion;
use iolens_sys::errno::Errno;
use iolens_sys::ring::Layout;
use iolens_sys::socket;

use crate::op::{Op, Sender};
use crate::primitives::{COPY_IN, COPY_OUT, HAND_OVER};
use crate::registry::{Ends, Entry, Setup, SetupError};
use crate::stream::Stream;
use crate::transmit::whole;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "write",
    family: "plain",
    summary: "write(2) of a message that is contiguous already",
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

struct Write<'a> {
    fd: BorrowedFd<'a>,
    stream: Stream,
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    let stream = Stream::new(&setup.shape, Layout::Contiguous);
    Ok(Box::new(Write { fd: setup.link.socket(), stream }))
}

impl Op for Write<'_> {
    #[inline]
    fn message(&mut self) -> Result<(), Errno> {
        let index = self.stream.turn();
        let Stream { ring, tally, .. } = &mut self.stream;
        let bytes = &ring.fields(index)[0];
        whole(bytes.len(), tally, |done| socket::write(self.fd, &bytes[done..]))?;
        tally.messages += 1;
        Ok(())
    }

    fn stream(&self) -> &Stream {
        &self.stream
    }
}
