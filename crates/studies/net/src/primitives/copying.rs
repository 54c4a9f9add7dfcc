//! Primitives that make one copying call for each message over TCP, or one for each field.

use std::os::fd::BorrowedFd;

use iolens_model::data_path::CallsPerMessage;
use iolens_model::family::{Condition, Family};
use iolens_sys::errno::Errno;
use iolens_sys::memory::touch;
use iolens_sys::ring::{Field, Layout};
use iolens_sys::socket;

use crate::entry::{Entry, Open};
use crate::hops::{COPIED, COPY_IN, COPY_OUT, GATHER, HAND_OVER};
use crate::one_call;
use crate::transmit::send_all;
use iolens_harness::op::Op;
use iolens_harness::stream::Stream;

/// A call that takes a message in one piece, or an iovec; over UDP each is one datagram.
const fn copying(
    id: &'static str,
    family: Family,
    condition: Option<Condition>,
    summary: &'static str,
    open: Open,
) -> Entry {
    Entry { datagrams: true, ..Entry::tcp(id, family, condition, summary, COPIED, open) }
}

/// `send`: send(2) of a message that lies in one piece already.
///
/// Path through the kernel: send(2) → `tcp_sendmsg_locked` → copy into socket
/// buffers.
/// Needs: nothing beyond TCP.
/// Compared with: `send_staged`, which must gather first; `sendmsg_iov`, which
/// hands the same bytes over in pieces.
/// Does not show: what it cost to bring the message into one piece.
pub(crate) static SEND: Entry = copying(
    "send",
    Family::Plain,
    Some(Condition::Contiguous),
    "send(2) of a message that is contiguous already",
    |setup| Ok(one_call::contiguous(&setup, socket::send)),
);

/// `write`: write(2) of a message that lies in one piece already.
///
/// Path through the kernel: write(2) → `vfs_write` → `sock_write_iter` →
/// `tcp_sendmsg_locked` → copy into socket buffers: the way of `send` behind
/// the file layer.
/// Needs: nothing beyond TCP.
/// Compared with: `send`, which names the socket and takes flags; between the
/// two lies the cost of the file layer and nothing else.
/// Does not show: what it cost to bring the message into one piece.
pub(crate) static WRITE: Entry = copying(
    "write",
    Family::Plain,
    Some(Condition::Contiguous),
    "write(2) of a message that is contiguous already",
    |setup| Ok(one_call::contiguous(&setup, socket::write)),
);

/// `sendmsg_iov`: sendmsg(2) with an iovec that points at the fields.
///
/// Path through the kernel: sendmsg(2) → `import_iovec` → `tcp_sendmsg_locked`
/// → copy of each piece into socket buffers. One copy, the same as `send`:
/// what the iovec saves is the gather in user space, not a copy in the kernel.
/// Needs: nothing beyond TCP; at most 64 fields here, 1024 in the kernel.
/// Compared with: `send_staged`, which gathers first; with `--iovec prebuilt`
/// the iovec is built once instead of for every message.
/// Does not show: sends that copy nothing.
pub(crate) static SENDMSG_IOV: Entry = copying(
    "sendmsg_iov",
    Family::Classic,
    None,
    "sendmsg(2) with an iovec straight over the fields",
    |setup| Ok(one_call::fields(&setup, socket::sendmsg)),
);

/// `writev`: writev(2) with an iovec that points at the fields.
///
/// Path through the kernel: writev(2) → `import_iovec` → `sock_write_iter` →
/// `tcp_sendmsg_locked` → copy of each piece into socket buffers: the way of
/// `sendmsg_iov` behind the file layer. One copy.
/// Needs: nothing beyond TCP; at most 64 fields here, 1024 in the kernel.
/// Compared with: `sendmsg_iov`, which hands over the same iovec in a message
/// header; with `--iovec prebuilt` the iovec is built once instead of for every
/// message.
/// Does not show: sends that copy nothing.
pub(crate) static WRITEV: Entry = copying(
    "writev",
    Family::Plain,
    None,
    "writev(2) with an iovec straight over the fields",
    |setup| Ok(one_call::fields(&setup, socket::writev)),
);

/// `send_per_field`: one send(2) for every field of the message.
///
/// Path through the kernel: as `send`, once per field; small pieces may be
/// merged into one segment while the previous one is in flight
/// (`net.ipv4.tcp_autocorking`), so this shows calls, not segments.
/// Needs: nothing beyond TCP.
/// Compared with: `sendmsg_iov`, which hands the same fields over in one call.
/// Does not show: what the same pieces cost as packets of their own.
pub(crate) static SEND_PER_FIELD: Entry = Entry {
    calls: CallsPerMessage::PerField,
    ..Entry::tcp("send_per_field", Family::Plain, None, "one send(2) per field", COPIED, |setup| {
        let stream = Stream::new(&setup.shape, Layout::Separate);
        Ok(Box::new(SendPerField { fd: setup.link.socket(), stream }))
    })
};

struct SendPerField<'a> {
    fd: BorrowedFd<'a>,
    stream: Stream,
}

impl Op for SendPerField<'_> {
    #[inline(always)]
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

/// `send_staged`: gather the fields into one staging buffer, then send it.
///
/// Path through the kernel: memcpy of every field into the staging buffer (by
/// user code), then send(2) → `tcp_sendmsg_locked` → copy into socket buffers.
/// Needs: nothing beyond TCP.
/// Compared with: it is the baseline; `sendmsg_iov` leaves the gather out,
/// `memcpy` leaves the kernel out.
/// Does not show: a program whose message is contiguous already; see `send`.
pub(crate) static SEND_STAGED: Entry = Entry {
    hops: &[GATHER, COPY_IN, HAND_OVER, COPY_OUT],
    ..copying(
        "send_staged",
        Family::Classic,
        None,
        "gather the fields into a staging buffer by memcpy, then send(2)",
        |setup| {
            Ok(Box::new(SendStaged {
                fd: setup.link.socket(),
                stream: Stream::new(&setup.shape, Layout::Separate),
                staging: Field::filled(setup.shape.message_bytes, 1),
            }))
        },
    )
};

struct SendStaged<'a> {
    fd: BorrowedFd<'a>,
    stream: Stream,
    staging: Field,
}

/// Copies the fields one behind the other into `staging`.
#[inline]
pub(super) fn gather(fields: &[Field], staging: &mut [u8]) {
    let mut rest = staging;
    for field in fields {
        let (here, behind) = rest.split_at_mut(field.len());
        here.copy_from_slice(field);
        rest = behind;
    }
}

impl Op for SendStaged<'_> {
    #[inline(always)]
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
