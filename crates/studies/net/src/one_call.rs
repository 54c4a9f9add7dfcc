//! Senders that make one copying call for each message: what differs from one
//! to the next is the call, so all of them run in the same loop.

use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use iolens_model::axes::Iovec;
use iolens_sys::errno::Errno;
use iolens_sys::ring::Layout;

use crate::entry::Setup;
use crate::transmit::{Iovecs, whole, whole_iovec};
use iolens_harness::op::{Fact, Op, Sender};
use iolens_harness::stream::Stream;

/// Sends messages that lie in one piece with `call`.
pub(crate) fn contiguous<'a>(
    setup: &Setup<'a>,
    call: impl Fn(BorrowedFd<'_>, &[u8]) -> Result<usize, Errno> + Send + 'a,
) -> Box<dyn Sender + 'a> {
    contiguous_with(setup, call, Vec::new())
}

/// The same for who has something to say of what it was opened with.
pub(crate) fn contiguous_with<'a>(
    setup: &Setup<'a>,
    call: impl Fn(BorrowedFd<'_>, &[u8]) -> Result<usize, Errno> + Send + 'a,
    facts: Vec<Fact>,
) -> Box<dyn Sender + 'a> {
    let stream = Stream::new(&setup.shape, Layout::Contiguous);
    Box::new(Contiguous { fd: setup.link.socket(), stream, call, facts })
}

/// Sends messages that lie in fields with `call`, which takes an iovec.
pub(crate) fn fields<'a>(
    setup: &Setup<'a>,
    call: impl Fn(BorrowedFd<'_>, &[IoSlice<'_>]) -> Result<usize, Errno> + Send + 'a,
) -> Box<dyn Sender + 'a> {
    let (fd, stream) = (setup.link.socket(), Stream::new(&setup.shape, Layout::Separate));
    match setup.shape.iovec {
        Iovec::PerMessage => Box::new(PerMessage { fd, stream, call }),
        Iovec::Prepared => Box::new(Prepared { fd, stream, call }),
    }
}

struct Contiguous<'a, C> {
    fd: BorrowedFd<'a>,
    stream: Stream,
    call: C,
    facts: Vec<Fact>,
}

impl<C: Fn(BorrowedFd<'_>, &[u8]) -> Result<usize, Errno> + Send> Op for Contiguous<'_, C> {
    #[inline(always)]
    fn message(&mut self) -> Result<(), Errno> {
        let index = self.stream.turn();
        let Stream { ring, tally, .. } = &mut self.stream;
        let bytes = &ring.fields(index)[0];
        whole(bytes.len(), tally, |done| (self.call)(self.fd, &bytes[done..]))?;
        tally.messages += 1;
        Ok(())
    }

    fn stream(&self) -> &Stream {
        &self.stream
    }

    fn facts(&self) -> Vec<Fact> {
        self.facts.clone()
    }
}

/// Builds the iovec for every message.
struct PerMessage<'a, C> {
    fd: BorrowedFd<'a>,
    stream: Stream,
    call: C,
}

impl<C: Fn(BorrowedFd<'_>, &[IoSlice<'_>]) -> Result<usize, Errno> + Send> Op
    for PerMessage<'_, C>
{
    #[inline(always)]
    fn message(&mut self) -> Result<(), Errno> {
        let index = self.stream.turn();
        let Stream { ring, tally, .. } = &mut self.stream;
        let iovec: Iovecs<'_> =
            ring.fields(index).iter().map(|field| IoSlice::new(field)).collect();
        let call = |left: &[IoSlice<'_>]| (self.call)(self.fd, left);
        whole_iovec(&iovec, ring.message_bytes(), tally, call)?;
        tally.messages += 1;
        Ok(())
    }

    fn stream(&self) -> &Stream {
        &self.stream
    }
}

/// Uses the iovec that the ring was made with.
struct Prepared<'a, C> {
    fd: BorrowedFd<'a>,
    stream: Stream,
    call: C,
}

impl<C: Fn(BorrowedFd<'_>, &[IoSlice<'_>]) -> Result<usize, Errno> + Send> Op for Prepared<'_, C> {
    #[inline(always)]
    fn message(&mut self) -> Result<(), Errno> {
        let index = self.stream.turn();
        let Stream { ring, tally, .. } = &mut self.stream;
        let call = |left: &[IoSlice<'_>]| (self.call)(self.fd, left);
        whole_iovec(ring.prepared(index), ring.message_bytes(), tally, call)?;
        tally.messages += 1;
        Ok(())
    }

    fn stream(&self) -> &Stream {
        &self.stream
    }
}
