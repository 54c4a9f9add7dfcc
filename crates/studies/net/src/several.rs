//! Senders that make one call for several messages, each of which arrives by
//! itself: what differs from one to the next is the call.

use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use arrayvec::ArrayVec;
use iolens_sys::clock;
use iolens_sys::errno::Errno;
use iolens_sys::ring::Layout;
use iolens_sys::udp::SEGMENTS_MAX;

use crate::entry::Setup;
use iolens_harness::op::{Budget, Fact, Sender, Span, Tally, drive_answers};
use iolens_harness::stream::Stream;

/// Most messages of one call.
pub(crate) const MESSAGES_MAX: usize = SEGMENTS_MAX;

/// Sends messages that lie in one piece, `together` with one `call`, which says how
/// many of them the kernel took.
pub(crate) fn contiguous<'a>(
    setup: &Setup<'a>,
    together: usize,
    call: impl FnMut(BorrowedFd<'_>, &[IoSlice<'_>]) -> Result<usize, Errno> + Send + 'a,
) -> Box<dyn Sender + 'a> {
    let stream = Stream::new(&setup.shape, Layout::Contiguous);
    Box::new(Several { fd: setup.link.socket(), stream, together: together as u64, call })
}

/// The loop of such a sender: `send` is told how many messages are to go with one
/// call, at most `together`, and says how many went.
///
/// Errors: as [`Sender::run`].
#[inline(never)]
pub(crate) fn drive(
    together: u64,
    budget: &Budget,
    mut send: impl FnMut(u64) -> Result<u64, Errno>,
) -> Result<Span, Errno> {
    let first_call_ns = clock::monotonic_ns();
    budget.begin(first_call_ns);
    let mut left = 0;
    // What is taken from the budget at once may be fewer than go together.
    while let Some(messages) = budget.take() {
        left += messages;
        while left >= together {
            left -= send(together)?;
        }
    }
    while left > 0 {
        left -= send(left.min(together))?;
    }
    Ok(Span { first_call_ns, last_call_ns: clock::monotonic_ns() })
}

struct Several<'a, C> {
    fd: BorrowedFd<'a>,
    stream: Stream,
    together: u64,
    call: C,
}

impl<C: FnMut(BorrowedFd<'_>, &[IoSlice<'_>]) -> Result<usize, Errno> + Send> Several<'_, C> {
    /// Makes one call for the next `messages`, at most [`MESSAGES_MAX`]; how many
    /// went.
    #[inline]
    fn send(&mut self, messages: u64) -> Result<u64, Errno> {
        let Stream { ring, tally, next } = &mut self.stream;
        let mut iovec = ArrayVec::<IoSlice<'_>, MESSAGES_MAX>::new();
        let mut index = *next;
        for _ in 0..messages {
            iovec.push(IoSlice::new(&ring.fields(index)[0]));
            index = if index + 1 == ring.messages() { 0 } else { index + 1 };
        }
        let result = (self.call)(self.fd, &iovec);
        tally.calls += 1;
        let sent = match result {
            Ok(sent) => sent,
            Err(Errno::EINTR) => 0,
            Err(errno) => return Err(errno),
        };
        tally.messages += sent as u64;
        tally.bytes += (sent * ring.message_bytes()) as u64;
        *next = (*next + sent) % ring.messages();
        Ok(sent as u64)
    }
}

impl<C: FnMut(BorrowedFd<'_>, &[IoSlice<'_>]) -> Result<usize, Errno> + Send> Sender
    for Several<'_, C>
{
    fn run(&mut self, budget: &Budget) -> Result<Span, Errno> {
        drive(self.together, budget, |messages| self.send(messages))
    }

    fn answer(&mut self, requests: BorrowedFd<'_>) -> Result<Span, Errno> {
        let one = || {
            while self.send(1)? == 0 {}
            Ok(())
        };
        drive_answers(one, requests)
    }

    fn settle(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    fn touch(&mut self) {
        let _ = self.stream.ring.touch();
    }

    fn tally(&self) -> Tally {
        self.stream.tally
    }

    fn facts(&self) -> Vec<Fact> {
        vec![("messages of one call, at most", self.together.to_string())]
    }
}
