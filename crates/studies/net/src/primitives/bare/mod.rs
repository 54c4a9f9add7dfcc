//! Bare loops: for every primitive that makes system calls to send, a second
//! sender `bare_<id>` that makes the same calls in the plainest loop a person
//! would write by hand.
//!
//! Path through the kernel: as the primitive.
//! Needs: as the primitive.
//! Compared with: the primitive, which must be EQUIVALENT to it: then the loop
//! that measures costs nothing that matters.
//! Does not show: anything about the kernel that the primitive does not. Iovecs
//! are built for every message, whatever the cell says.
//!
//! They share nothing with what they check but the messages in memory, the
//! system calls in `sys`, and what happens before a slice: each has its own
//! index into the ring, its own counters and its own way through what happens
//! seldom. What differs from one to the next is one line in [`TWINS`] and,
//! where there is no plain loop for its call yet, a loop.

mod calls;
mod several;
mod uring;
mod xdp;
mod zerocopy;

use std::os::fd::BorrowedFd;

use iolens_model::outcome::ZerocopyCounts;
use iolens_sys::errno::Errno;
use iolens_sys::io_uring::{Opcode, PlainRing};
use iolens_sys::ring::MessageRing;
use iolens_sys::udp::{self, Batch, Destination, SEGMENTS_MAX};
use iolens_sys::{clock, socket};

use crate::entry::{Entry, Open};
use crate::primitives::{copying, datagram, pages, ring, xdp_tx, zerocopy as zerocopies};
use iolens_harness::op::{Budget, REQUEST, Sender, Span, Tally};

/// The bare loops, sorted by id: [`registry`](crate::registry) finds them beside
/// its own entries.
pub(crate) static TWINS: &[Entry] = &[
    twin("bare_send", &copying::SEND, |s| Ok(calls::contiguous(&s, socket::send))),
    twin("bare_send_per_field", &copying::SEND_PER_FIELD, |s| Ok(calls::per_field(&s))),
    twin("bare_send_staged", &copying::SEND_STAGED, |s| Ok(calls::staged(&s))),
    twin("bare_sendfile", &pages::SENDFILE, |s| calls::file(&s, pages::in_memory()?)),
    twin("bare_sendfile_file", &pages::SENDFILE_FILE, |s| calls::file(&s, pages::in_folder()?)),
    twin("bare_sendmmsg", &datagram::SENDMMSG, |s| {
        let mut batch = Batch::of(SEGMENTS_MAX);
        Ok(several::open(&s, SEGMENTS_MAX, move |fd, messages| batch.send(fd, messages)))
    }),
    twin("bare_sendmsg_iov", &copying::SENDMSG_IOV, |s| Ok(calls::fields(&s, socket::sendmsg))),
    twin("bare_sendmsg_zerocopy", &zerocopies::SENDMSG_ZEROCOPY, |s| zerocopy::open(&s)),
    twin("bare_sendto", &datagram::SENDTO, |s| {
        let to = Destination::of(s.link.socket())?;
        Ok(calls::contiguous(&s, move |fd, bytes| udp::sendto(fd, bytes, &to)))
    }),
    twin("bare_splice", &pages::SPLICE, |s| calls::splice(&s)),
    twin("bare_udp_gso", &datagram::UDP_GSO, |s| {
        let (bytes, together) = (s.shape.message_bytes, datagram::segment(&s)?);
        Ok(several::open(&s, together, move |fd, messages| {
            socket::sendmsg(fd, messages).map(|sent| sent / bytes)
        }))
    }),
    twin("bare_uring_send", &ring::SEND, |s| uring::open(&s, Opcode::Send, PlainRing::send)),
    twin("bare_uring_send_zc", &ring::SEND_ZC, |s| {
        uring::open(&s, Opcode::SendZc, PlainRing::send_zc)
    }),
    twin("bare_uring_send_zc_fixed", &ring::SEND_ZC_FIXED, |s| {
        uring::open(&s, Opcode::SendZcFixed, PlainRing::send_zc_fixed)
    }),
    twin("bare_uring_sendmsg", &ring::SENDMSG, |s| {
        uring::open(&s, Opcode::Sendmsg, PlainRing::sendmsg)
    }),
    twin("bare_uring_sendmsg_zc", &ring::SENDMSG_ZC, |s| {
        uring::open(&s, Opcode::SendmsgZc, PlainRing::sendmsg_zc)
    }),
    twin("bare_write", &copying::WRITE, |s| Ok(calls::contiguous(&s, socket::write))),
    twin("bare_writev", &copying::WRITEV, |s| Ok(calls::fields(&s, socket::writev))),
    twin("bare_xdp_tx", &xdp_tx::XDP_TX, |s| xdp::open(&s)),
];

/// The entry of the bare loop of a primitive.
const fn twin(id: &'static str, of: &Entry, open: Open) -> Entry {
    Entry {
        id,
        summary: "the calls of the primitive in a bare loop, to check the harness",
        control: false,
        hidden: true,
        open,
        ..*of
    }
}

/// The plainest loop that makes a call of `message` for each request, until the byte
/// comes that ends the slice.
///
/// Errors: `ENODATA` when the requesting end has gone; of recv(2) and of `message`.
fn answer_each(
    requests: BorrowedFd<'_>,
    mut message: impl FnMut() -> Result<(), Errno>,
) -> Result<Span, Errno> {
    let mut span = Span::none();
    let mut byte = [0];
    loop {
        match socket::recv(requests, &mut byte) {
            Ok(0) => return Err(Errno::ENODATA),
            Ok(_) if byte != [REQUEST] => return Ok(span.end()),
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(errno),
        }
        span.begin();
        message()?;
    }
}

/// One message in a bare loop.
trait Bare: Send {
    /// Sends message `index`, whole; counts the system calls that it takes.
    fn message(&mut self, index: usize, calls: &mut u64) -> Result<(), Errno>;

    /// What is sent from.
    fn touch(&self);

    /// Waits for the end of everything that was sent.
    fn finish(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// As [`Sender::idle`].
    fn idle(&mut self) -> Result<bool, Errno> {
        Ok(false)
    }

    /// What was sent without a copy; `None` where everything is copied.
    fn zerocopy(&self) -> Option<ZerocopyCounts> {
        None
    }
}

/// A bare loop: the messages of a ring one after the other.
struct Loop<B> {
    ring_messages: usize,
    message_bytes: usize,
    next: usize,
    messages: u64,
    calls: u64,
    bare: B,
}

impl<B: Bare> Loop<B> {
    fn over(ring_messages: usize, message_bytes: usize, bare: B) -> Loop<B> {
        Loop { ring_messages, message_bytes, next: 0, messages: 0, calls: 0, bare }
    }

    fn boxed<'a>(ring: &MessageRing, bare: B) -> Box<dyn Sender + 'a>
    where
        B: 'a,
    {
        Box::new(Loop::over(ring.messages(), ring.message_bytes(), bare))
    }
}

impl<B: Bare> Sender for Loop<B> {
    fn run(&mut self, budget: &Budget) -> Result<Span, Errno> {
        let first_call_ns = clock::monotonic_ns();
        budget.begin(first_call_ns);
        while let Some(messages) = budget.take() {
            for _ in 0..messages {
                self.bare.message(self.next, &mut self.calls)?;
                self.next += 1;
                if self.next == self.ring_messages {
                    self.next = 0;
                }
            }
            self.messages += messages;
        }
        Ok(Span { first_call_ns, last_call_ns: clock::monotonic_ns() })
    }

    fn answer(&mut self, requests: BorrowedFd<'_>) -> Result<Span, Errno> {
        answer_each(requests, || self.run(&Budget::messages(1, 1)).map(|_| ()))
    }

    fn settle(&mut self) -> Result<(), Errno> {
        self.bare.finish()
    }

    fn idle(&mut self) -> Result<bool, Errno> {
        self.bare.idle()
    }

    fn touch(&mut self) {
        self.bare.touch();
    }

    fn tally(&self) -> Tally {
        Tally {
            messages: self.messages,
            bytes: self.messages * self.message_bytes as u64,
            calls: self.calls,
            zerocopy: self.bare.zerocopy(),
            children: None,
            file: None,
        }
    }
}

/// How long something is tried again for which there is no memory now.
const PATIENCE_NS: u64 = 1_000_000_000;

/// Whether to try again what was refused first at this time, `None` for now;
/// lets others run before.
#[cold]
fn may_try_again(refused_ns: &mut Option<u64>) -> bool {
    let now_ns = clock::monotonic_ns();
    std::thread::yield_now();
    now_ns - *refused_ns.get_or_insert(now_ns) < PATIENCE_NS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Ends;
    use crate::registry::REGISTRY;

    #[test]
    fn every_primitive_that_sends_has_a_bare_loop() {
        assert!(TWINS.is_sorted_by(|a, b| a.id < b.id));
        let calls = |e: &&&Entry| e.ends == Ends::Pair && !e.control;
        let sending = REGISTRY.iter().filter(calls);
        let expected: Vec<String> = sending.map(|entry| format!("bare_{}", entry.id)).collect();
        let found: Vec<&str> = TWINS.iter().map(|twin| twin.id).collect();
        assert_eq!(found, expected, "add the line of what is missing to TWINS");
    }
}
