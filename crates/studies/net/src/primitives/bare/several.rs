//! The bare loop around calls that take several messages at once, each of which
//! is a datagram.

use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use arrayvec::ArrayVec;
use iolens_sys::clock;
use iolens_sys::errno::Errno;
use iolens_sys::ring::{Layout, MessageRing};
use iolens_sys::udp::SEGMENTS_MAX;

use super::answer_each;
use super::calls::ring_of;
use crate::entry::Setup;
use iolens_harness::op::{Budget, Sender, Span, Tally};

struct Several<'a, C> {
    fd: BorrowedFd<'a>,
    ring: MessageRing,
    together: usize,
    call: C,
    next: usize,
    messages: u64,
    calls: u64,
}

/// `call` for up to `together` messages; it says how many were taken.
pub(super) fn open<'a>(
    setup: &Setup<'a>,
    together: usize,
    call: impl FnMut(BorrowedFd<'_>, &[IoSlice<'_>]) -> Result<usize, Errno> + Send + 'a,
) -> Box<dyn Sender + 'a> {
    let (fd, ring) = (setup.link.socket(), ring_of(setup, Layout::Contiguous));
    Box::new(Several { fd, ring, together, call, next: 0, messages: 0, calls: 0 })
}

/// The plainest loop that has up to `together` messages of a budget at once sent by
/// `send`, which says how many went.
///
/// Errors: of `send`.
pub(super) fn drive(
    together: usize,
    budget: &Budget,
    mut send: impl FnMut(usize) -> Result<usize, Errno>,
) -> Result<Span, Errno> {
    let first_call_ns = clock::monotonic_ns();
    budget.begin(first_call_ns);
    let mut left = 0;
    loop {
        let more = budget.take();
        left += more.map_or(0, |messages| usize::try_from(messages).unwrap_or(usize::MAX));
        while left >= together {
            left -= send(together)?;
        }
        if more.is_none() {
            break;
        }
    }
    while left > 0 {
        left -= send(left)?;
    }
    Ok(Span { first_call_ns, last_call_ns: clock::monotonic_ns() })
}

impl<C: FnMut(BorrowedFd<'_>, &[IoSlice<'_>]) -> Result<usize, Errno>> Several<'_, C> {
    /// Makes one call; how many messages went.
    #[inline]
    fn send(&mut self, messages: usize) -> Result<usize, Errno> {
        let mut pieces = ArrayVec::<IoSlice<'_>, SEGMENTS_MAX>::new();
        let mut index = self.next;
        for _ in 0..messages {
            pieces.push(IoSlice::new(&self.ring.fields(index)[0]));
            index += 1;
            if index == self.ring.messages() {
                index = 0;
            }
        }
        self.calls += 1;
        let sent = match (self.call)(self.fd, &pieces) {
            Ok(sent) => sent,
            Err(Errno::EINTR) => 0,
            Err(errno) => return Err(errno),
        };
        self.next = (self.next + sent) % self.ring.messages();
        self.messages += sent as u64;
        Ok(sent)
    }
}

impl<C: FnMut(BorrowedFd<'_>, &[IoSlice<'_>]) -> Result<usize, Errno> + Send> Sender
    for Several<'_, C>
{
    fn run(&mut self, budget: &Budget) -> Result<Span, Errno> {
        drive(self.together, budget, |messages| self.send(messages))
    }

    fn answer(&mut self, requests: BorrowedFd<'_>) -> Result<Span, Errno> {
        answer_each(requests, || {
            while self.send(1)? == 0 {}
            Ok(())
        })
    }

    fn settle(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    fn touch(&mut self) {
        let _ = self.ring.touch();
    }

    fn tally(&self) -> Tally {
        let bytes = self.messages * self.ring.message_bytes() as u64;
        Tally { messages: self.messages, bytes, calls: self.calls, ..Tally::default() }
    }
}
