//! The loops that receive. As with senders, dispatch is erased once per slice,
//! at [`Receiver`]; inside, each loop is compiled for its receiver and
//! allocates, locks and logs nothing.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use iolens_model::outcome::MultishotCounts;
use iolens_sys::clock;
use iolens_sys::errno::Errno;

pub use crate::requests::Exchanged;
use crate::take::{Take, Taken};
use crate::{lead, requests};
use iolens_harness::op::{Budget, Tally};
use iolens_harness::stream::Times;

/// What a thread received in a slice.
#[derive(Debug, Default)]
pub struct Received {
    pub tally: Tally,
    /// Bytes that were mapped; `None` for a receiver that maps none.
    pub mapped_bytes: Option<u64>,
    /// When the first bytes were here; 0 for none.
    pub first_ns: u64,
    /// How many those were, which came before that moment.
    pub first_bytes: u64,
    /// When the slice was over for this thread.
    pub end_ns: u64,
}

impl Received {
    fn by<T: Take>() -> Received {
        Received { mapped_bytes: T::MAPS.then_some(0), ..Received::default() }
    }

    #[inline]
    fn note(&mut self, taken: Taken) {
        if self.tally.calls == 0 {
            self.first_ns = clock::monotonic_ns();
            self.first_bytes = taken.bytes as u64;
        }
        self.tally.calls += u64::from(taken.calls);
        self.tally.bytes += taken.bytes as u64;
        if let Some(mapped) = &mut self.mapped_bytes {
            *mapped += taken.mapped as u64;
        }
    }
}

/// How much the threads of an arm are to receive together in a slice.
pub struct Quota<'a> {
    /// What they have so far.
    pub total: &'a AtomicU64,
    /// What makes the slice complete.
    pub target: u64,
    /// What the thread does whose bytes complete it.
    pub complete: &'a dyn Fn() -> Result<(), Errno>,
}

/// One thread's end of the receiving side: erased, one virtual call per slice.
pub trait Receiver: Send {
    /// Gives the turn to the connection with this index in the links of its
    /// [`Setup`](crate::take::Setup).
    fn turn_to(&mut self, link: usize);

    /// Receives until all threads have their quota and this connection was
    /// released.
    ///
    /// Errors: `ENODATA` when the sender has gone, `EMSGSIZE` when more came
    /// than the quota, `EAGAIN` when nothing came within the stall limit.
    fn receive(&mut self, quota: &Quota<'_>) -> Result<Received, Errno>;

    /// Receives until the sender ends the stream; the end is the caller's to
    /// note.
    ///
    /// Errors: as [`Self::receive`].
    fn receive_until_end(&mut self) -> Result<Received, Errno> {
        let mut received = Received::default();
        self.receive_into(&mut received)?;
        Ok(received)
    }

    /// The same; after an error `received` has what came before it.
    ///
    /// Errors: as [`Self::receive`].
    fn receive_into(&mut self, received: &mut Received) -> Result<(), Errno>;

    /// Receives a lead; see [`lead::follow`].
    fn follow(&mut self, signal: BorrowedFd<'_>, limit: Duration) -> Result<(), Errno>;

    /// Asks over `requests` for messages and receives them; see
    /// [`requests::exchange`].
    fn exchange(
        &mut self,
        requests: BorrowedFd<'_>,
        budget: &Budget,
        message_bytes: usize,
        times: Option<&mut Times>,
    ) -> Result<Exchanged, Errno>;

    /// As [`Take::multishot`].
    fn multishot(&self) -> Option<MultishotCounts>;

    /// Takes once and shows what came.
    #[cfg(test)]
    fn take_one(&mut self, see: &mut dyn FnMut(&[u8])) -> Result<Taken, Errno>;
}

impl<T: Take> Receiver for T {
    fn turn_to(&mut self, link: usize) {
        Take::turn_to(self, link);
    }

    fn receive(&mut self, quota: &Quota<'_>) -> Result<Received, Errno> {
        drive(self, quota)
    }

    fn receive_into(&mut self, received: &mut Received) -> Result<(), Errno> {
        drive_until_end(self, received)
    }

    fn follow(&mut self, signal: BorrowedFd<'_>, limit: Duration) -> Result<(), Errno> {
        lead::follow(self, signal, limit)
    }

    fn exchange(
        &mut self,
        requests: BorrowedFd<'_>,
        budget: &Budget,
        message_bytes: usize,
        times: Option<&mut Times>,
    ) -> Result<Exchanged, Errno> {
        requests::exchange(self, requests, budget, message_bytes, times)
    }

    fn multishot(&self) -> Option<MultishotCounts> {
        Take::multishot(self)
    }

    #[cfg(test)]
    fn take_one(&mut self, see: &mut dyn FnMut(&[u8])) -> Result<Taken, Errno> {
        let taken = self.take()?;
        self.show(taken.bytes, see);
        Ok(taken)
    }
}

#[inline(never)]
fn drive<T: Take>(receiver: &mut T, quota: &Quota<'_>) -> Result<Received, Errno> {
    let mut received = Received::by::<T>();
    loop {
        let taken = match receiver.take() {
            Ok(Taken { bytes: 0, .. }) => return Err(Errno::ENODATA),
            Ok(taken) => taken,
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(errno),
        };
        let n = taken.bytes as u64;
        // Relaxed: the number is all that threads exchange here.
        let before = quota.total.fetch_add(n, Ordering::Relaxed);
        let after = before + n;
        if after <= quota.target {
            received.note(taken);
            if after == quota.target {
                (quota.complete)()?;
                received.end_ns = clock::monotonic_ns();
            }
        } else if before >= quota.target && n == 1 {
            // The release: it is sent only after the receipt, hence alone.
            received.end_ns = received.end_ns.max(received.first_ns);
            return Ok(received);
        } else {
            return Err(Errno::EMSGSIZE);
        }
    }
}

#[inline(never)]
fn drive_until_end<T: Take>(receiver: &mut T, received: &mut Received) -> Result<(), Errno> {
    *received = Received::by::<T>();
    loop {
        match receiver.take() {
            Ok(Taken { bytes: 0, .. }) => return Ok(()),
            Ok(taken) => received.note(taken),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}
