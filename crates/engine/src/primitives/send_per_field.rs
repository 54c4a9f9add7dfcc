//! `send_per_field`: one send(2) for every field of the message.
//!
//! Path through the kernel: as `send`, once per field; small pieces may be
//! merged into one segment while the previous one is in flight
//! (`net.ipv4.tcp_autocorking`), so this shows calls, not segments.
//! Needs: nothing beyond TCP.
//! Compared with: `sendmsg_iov`, which hands the same fields over in one call.
//! Does not show: what the same pieces cost as packets of their own.

use std::borrow::Cow;
use std::os::fd::BorrowedFd;

use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::family::Family;
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::errno::Errno;
use iolens_sys::ring::Layout;

use crate::entry::{Ends, Entry, Setup, SetupError};
use crate::op::{Op, Sender};
use crate::primitives::{COPY_IN, COPY_OUT, HAND_OVER};
use crate::stream::Stream;
use crate::transmit::send_all;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "send_per_field",
    family: Family::Plain,
    condition: None,
    summary: "one send(2) per field",
    ends: Ends::Pair,
    transport: Transport::Tcp,
    control: false,
    hidden: false,
    datagrams: false,
    locks_memory: false,
    descriptors: 0,
    since: Some(KernelVersion::new(2, 0, 0)),
    data_path: DataPath {
        hops: Cow::Borrowed(&[COPY_IN, HAND_OVER, COPY_OUT]),
        calls: CallsPerMessage::PerField,
    },
    open,
};

struct SendPerField<'a> {
    fd: BorrowedFd<'a>,
    stream: Stream,
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    let stream = Stream::new(&setup.shape, Layout::Separate);
    Ok(Box::new(SendPerField { fd: setup.link.socket(), stream }))
}

impl Op for SendPerField<'_> {
    #[inline]
    fn message(&mut self) -> Result<(), Errno> {
        let index = self.stream.turn();
        let Stream { ring, tally, .. } = &mut self.stream;
        for field in ring.fields(index) {
            send_all(self.fd, field, tally)?;
        }
        tally.messages += 1;
        Ok(())
    }

    fn stream(&self) -> &Stream {
        &self.stream
    }
}
