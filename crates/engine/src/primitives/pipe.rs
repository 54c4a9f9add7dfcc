//! `pipe`: write(2) of a contiguous message into a pipe.
//!
//! Path through the kernel: write(2) → `anon_pipe_write` → copy into pages of the
//! pipe, a page at a time; the reader copies them out again. Not even sockets.
//! Needs: both ends on one machine. The pipe is made as large as the socket's
//! buffer would be, where the user may (`fs.pipe-max-size`, 1 MiB).
//! Compared with: `unix_stream`: what a socket costs beyond the two copies;
//! `memcpy`.
//! Does not show: anything about a network. It is received with read(2), as it has
//! to be, and requests of mode `rr` go over a Unix socket beside it.

use std::borrow::Cow;

use iolens_model::data_path::{CallsPerMessage, DataPath, End, Hop, Movement, Mover};
use iolens_model::family::{Condition, Family};
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::{pipe, socket};

use crate::entry::{Ends, Entry, Setup, SetupError};
use crate::one_call;
use crate::op::Sender;

const COPY_IN: Hop = Hop {
    from: Cow::Borrowed("user memory"),
    to: Cow::Borrowed("pipe"),
    end: End::Sender,
    mover: Mover::Kernel,
    function: Cow::Borrowed("copy_page_from_iter"),
    movement: Movement::Copy,
};

const COPY_OUT: Hop = Hop {
    from: Cow::Borrowed("pipe"),
    to: Cow::Borrowed("receiver's buffer"),
    end: End::Receiver,
    mover: Mover::Kernel,
    function: Cow::Borrowed("copy_page_to_iter"),
    movement: Movement::Copy,
};

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "pipe",
    family: Family::Controls,
    condition: Some(Condition::Contiguous),
    summary: "write(2) of a contiguous message into a pipe: no socket",
    ends: Ends::Pair,
    transport: Transport::Pipe,
    control: true,
    hidden: false,
    datagrams: false,
    locks_memory: false,
    descriptors: 1,
    since: Some(KernelVersion::new(2, 0, 0)),
    data_path: DataPath {
        hops: Cow::Borrowed(&[COPY_IN, COPY_OUT]),
        calls: CallsPerMessage::Fixed(1),
    },
    open,
};

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    let size = pipe::size_bytes(setup.link.socket());
    let facts = size.map(|bytes| ("pipe size, bytes", bytes.to_string()));
    Ok(one_call::contiguous_with(&setup, socket::write, facts.into_iter().collect()))
}
