//! Primitives that only show what a part costs: other ways between two processes, the gather
//! alone, and the loop itself.

use std::borrow::Cow;

use iolens_model::data_path::{CallsPerMessage, End, Hop, Movement};
use iolens_model::family::{Condition, Family};
use iolens_model::host::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::errno::Errno;
use iolens_sys::memory::touch;
use iolens_sys::ring::{Field, Layout};
use iolens_sys::{pipe, socket};

use super::copying::gather;
use crate::entry::{Ends, Entry, Open};
use crate::hops::{COPY_IN, COPY_OUT, GATHER, HAND_OVER};
use crate::one_call;
use iolens_harness::op::Op;
use iolens_harness::stream::Stream;

/// A message in one piece, by one call, over something else than TCP.
const fn over(
    transport: Transport,
    id: &'static str,
    summary: &'static str,
    hops: &'static [Hop],
    open: Open,
) -> Entry {
    let condition = Some(Condition::Contiguous);
    Entry {
        transport,
        control: true,
        ..Entry::tcp(id, Family::Controls, condition, summary, hops, open)
    }
}

/// `mptcp`: send(2) of a contiguous message over MPTCP with one path.
///
/// Path through the kernel: send(2) → `mptcp_sendmsg` → copy into the connection's
/// own send queue → `mptcp_push_pending` hands references to a subflow, which is
/// TCP; at the other end the subflow's segments are put in order a second time.
/// Needs: `CONFIG_MPTCP` and `net.mptcp.enabled`; no second path: what is measured
/// is the layer, not what several paths gain. The subflow has the same congestion
/// control and buffers.
/// Compared with: `send`, which is the same without the layer.
/// Does not show: aggregation or failover. There is no zero-copy send with it
/// (`mptcp_sendmsg` takes no `MSG_ZEROCOPY`).
pub(crate) static MPTCP: Entry = Entry {
    since: Some(KernelVersion::new(5, 6, 0)),
    ..over(
        Transport::Mptcp,
        "mptcp",
        "send(2) of a contiguous message over MPTCP with one path",
        &[INTO_CONNECTION, PUSH, HAND_OVER, COPY_OUT],
        |setup| Ok(one_call::contiguous(&setup, socket::send)),
    )
};

const INTO_CONNECTION: Hop = Hop {
    to: Cow::Borrowed("connection's queue"),
    function: Cow::Borrowed("copy_page_from_iter"),
    ..COPY_IN
};

const PUSH: Hop = Hop {
    from: Cow::Borrowed("connection's queue"),
    to: Cow::Borrowed("send queue"),
    function: Cow::Borrowed("mptcp_sendmsg_frag"),
    movement: Movement::Reference,
    ..COPY_IN
};

/// `unix_stream`: send(2) of a contiguous message over a stream socket of
/// `AF_UNIX`.
///
/// Path through the kernel: send(2) → `unix_stream_sendmsg` → copy into socket
/// buffers, which go straight into the peer's queue: no TCP, no device, no softirq.
/// Needs: both ends on one machine. The network namespaces that they stand in do
/// not matter: nothing passes a device.
/// Compared with: `send`: what TCP and the device cost beyond the two copies;
/// `memcpy`: what the kernel costs beyond them.
/// Does not show: anything about a network.
pub(crate) static UNIX_STREAM: Entry = over(
    Transport::UnixStream,
    "unix_stream",
    "send(2) of a contiguous message over a Unix stream socket: no network",
    &[INTO_UNIX_SOCKET, QUEUE, COPY_OUT],
    |setup| Ok(one_call::contiguous(&setup, socket::send)),
);

const INTO_UNIX_SOCKET: Hop =
    Hop { function: Cow::Borrowed("skb_copy_datagram_from_iter"), ..COPY_IN };

const QUEUE: Hop = Hop {
    from: Cow::Borrowed("socket buffer"),
    to: Cow::Borrowed("receive queue"),
    function: Cow::Borrowed("unix_stream_sendmsg"),
    movement: Movement::Reference,
    ..COPY_IN
};

/// `pipe`: write(2) of a contiguous message into a pipe.
///
/// Path through the kernel: write(2) → `anon_pipe_write` → copy into pages of the
/// pipe, a page at a time; the reader copies them out again. Not even sockets.
/// Needs: both ends on one machine. The pipe is made as large as the socket's
/// buffer would be, where the user may (`fs.pipe-max-size`, 1 MiB).
/// Compared with: `unix_stream`: what a socket costs beyond the two copies;
/// `memcpy`.
/// Does not show: anything about a network. It is received with read(2), as it has
/// to be, and requests of mode `rr` go over a Unix socket beside it.
pub(crate) static PIPE: Entry = Entry {
    descriptors: 1,
    ..over(
        Transport::Pipe,
        "pipe",
        "write(2) of a contiguous message into a pipe: no socket",
        &[INTO_PIPE, OUT_OF_PIPE],
        |setup| {
            let size = pipe::size_bytes(setup.link.socket());
            let facts = size.map(|bytes| ("pipe size, bytes", bytes.to_string()));
            Ok(one_call::contiguous_with(&setup, socket::write, facts.into_iter().collect()))
        },
    )
};

const INTO_PIPE: Hop = Hop { to: Cow::Borrowed("pipe"), ..INTO_CONNECTION };

const OUT_OF_PIPE: Hop = Hop {
    from: Cow::Borrowed("pipe"),
    to: Cow::Borrowed("receiver's buffer"),
    end: End::Receiver,
    function: Cow::Borrowed("copy_page_to_iter"),
    ..COPY_IN
};

/// What calls nobody and has no other end.
const fn alone(id: &'static str, summary: &'static str, hops: &'static [Hop], open: Open) -> Entry {
    Entry {
        ends: Ends::SenderOnly,
        control: true,
        since: None,
        calls: CallsPerMessage::Fixed(0),
        ..Entry::tcp(id, Family::Controls, None, summary, hops, open)
    }
}

/// `memcpy`: the gather of `send_staged` and nothing else.
///
/// Path through the kernel: none.
/// Needs: nothing.
/// Compared with: a control; it bounds what `sendmsg_iov` can save over
/// `send_staged`, in ns per byte.
/// Does not show: the cache misses that a gather causes in the calls after it.
pub(crate) static MEMCPY: Entry = alone(
    "memcpy",
    "gather the fields into a staging buffer and send nothing",
    &[GATHER],
    |setup| {
        Ok(Box::new(Memcpy {
            stream: Stream::new(&setup.shape, Layout::Separate),
            staging: Field::filled(setup.shape.message_bytes, 1),
        }))
    },
);

struct Memcpy {
    stream: Stream,
    staging: Field,
}

impl Op for Memcpy {
    #[inline(always)]
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

/// `null`: the loop of every primitive around a message that does nothing.
///
/// Path through the kernel: none.
/// Needs: nothing.
/// Compared with: nothing; it is what the harness itself costs per message.
/// Does not show: the fixed cost of a slice's receipt, which every arm with a
/// receiver pays alike.
pub(crate) static NULL: Entry = Entry {
    hidden: true,
    ..alone("null", "the measuring loop around nothing: what iolens itself costs", &[], |setup| {
        Ok(Box::new(Null { stream: Stream::new(&setup.shape, Layout::Contiguous) }))
    })
};

struct Null {
    stream: Stream,
}

impl Op for Null {
    #[inline(always)]
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
