//! `bare_send`: the calls of `send` in the plainest loop that makes them.
//!
//! Path through the kernel: as `send`.
//! Needs: nothing beyond TCP.
//! Compared with: `send`, which must be EQUIVALENT to it: then the harness
//! around every primitive costs nothing that matters.
//! Does not show: anything about the kernel that `send` does not.

use std::borrow::Cow;
use std::os::fd::BorrowedFd;

use iolens_model::data_path::{CallsPerMessage, DataPath};
use iolens_model::family::{Condition, Family};
use iolens_model::kernel::KernelVersion;
use iolens_model::transport::Transport;
use iolens_sys::errno::Errno;
use iolens_sys::ring::{Layout, MessageRing};
use iolens_sys::{clock, socket};

use crate::op::{Budget, REQUEST, Sender, Span, Tally};
use crate::primitives::{COPY_IN, COPY_OUT, HAND_OVER};
use crate::registry::{Ends, Entry, Setup, SetupError, Shape};
use crate::transmit::send_rest;

/// The registry entry.
pub(crate) static ENTRY: Entry = Entry {
    id: "bare_send",
    family: Family::Controls,
    condition: Some(Condition::Contiguous),
    summary: "the calls of `send` in a bare loop, to check the harness",
    ends: Ends::Pair,
    transport: Transport::Tcp,
    control: false,
    hidden: true,
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

struct BareSend<'a> {
    fd: BorrowedFd<'a>,
    ring: MessageRing,
    next: usize,
    tally: Tally,
}

fn ring(shape: &Shape) -> MessageRing {
    MessageRing::new(shape.messages, shape.message_bytes, shape.fields, Layout::Contiguous)
}

fn open(setup: Setup<'_>) -> Result<Box<dyn Sender + '_>, SetupError> {
    Ok(Box::new(BareSend {
        fd: setup.link.socket(),
        ring: ring(&setup.shape),
        next: 0,
        tally: Tally::default(),
    }))
}

impl Sender for BareSend<'_> {
    fn run(&mut self, budget: &Budget) -> Result<Span, Errno> {
        let first_call_ns = clock::monotonic_ns();
        budget.begin(first_call_ns);
        let bytes = self.ring.message_bytes();
        let (mut sent, mut cut_calls) = (0, Tally::default());
        while let Some(messages) = budget.take() {
            for _ in 0..messages {
                let message = &self.ring.fields(self.next)[0];
                self.next = if self.next + 1 == self.ring.messages() { 0 } else { self.next + 1 };
                let result = socket::send(self.fd, message);
                if result != Ok(bytes) {
                    send_rest(self.fd, message, result, &mut cut_calls)?;
                }
            }
            sent += messages;
        }
        self.tally.messages += sent;
        self.tally.bytes += sent * bytes as u64;
        self.tally.calls += sent + cut_calls.calls;
        Ok(Span { first_call_ns, last_call_ns: clock::monotonic_ns() })
    }

    fn answer(&mut self, requests: BorrowedFd<'_>) -> Result<Span, Errno> {
        let mut span = Span::none();
        let mut byte = [0];
        loop {
            match socket::recv(requests, &mut byte)? {
                0 => return Err(Errno::ENODATA),
                _ if byte != [REQUEST] => return Ok(span.end()),
                _ => span.begin(),
            }
            self.run(&Budget::messages(1, 1))?;
        }
    }

    fn settle(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    fn touch(&mut self) {
        let _ = self.ring.touch();
    }

    fn tally(&self) -> Tally {
        self.tally
    }
}
