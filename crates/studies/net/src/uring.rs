//! Sending through io_uring: what the primitives `uring_*` share.
//!
//! Each thread of an arm has a ring of its own, with the same flags for every
//! opcode (`IORING_SETUP_SINGLE_ISSUER`, `IORING_SETUP_DEFER_TASKRUN`) and the
//! same flags for every send (`MSG_WAITALL`, `MSG_NOSIGNAL`). One
//! io_uring_enter(2) hands a send over and waits for its result, or, where a
//! plan asks for batches, several sends and their results: see `batch`.
//!
//! Order: the next send is handed over when the one before has its result, so
//! the bytes are in the socket's queue in the order of the messages. Two sends
//! of one TCP socket that are under way at once may overtake each other where
//! one of them has to wait for room. The notification of a zero-copy send is
//! not waited for: it says that the bytes may change again, and it is read when
//! it comes along, or when the message's turn has come again, or at the end of
//! the slice. `IORING_CQE_F_MORE` alone decides whether one follows.

mod batch;
#[cfg(test)]
mod tests;

use std::time::Duration;

use iolens_harness::ring_refusal;
use iolens_model::axes::Iovec;
use iolens_model::tuning::Tuning;
use iolens_sys::errno::Errno;
use iolens_sys::io_uring::{Completed, Opcode, Operation, SendRing, SetupFlags, Wishes};
use iolens_sys::ring::Layout;
use iolens_sys::socket;
use iolens_sys::zerocopy::Completion;

use self::batch::{Batched, Together};
use crate::entry::{Setup, SetupError};
use crate::inflight::{IDS_MAX, InFlight, Patience, Releases};
use iolens_harness::op::{Op, Sender, Tally};
use iolens_harness::stream::Stream;
use iolens_harness::watch::Deadline;

/// Notifications that may be outstanding beyond one for each message of the
/// ring: a message that is sent in several pieces has several.
const IDS_MIN: usize = 8;

/// One thread's end of an arm that sends with `operation`.
///
/// Errors: why there is no such ring here, and what to do.
pub(crate) fn open<'a, O: Operation>(
    setup: Setup<'a>,
    operation: O,
) -> Result<Box<dyn Sender + 'a>, SetupError> {
    let opcode = operation.opcode();
    let layout = if opcode.takes_iovec() { Layout::Separate } else { Layout::Contiguous };
    let stream = Stream::new(&setup.shape, layout);
    let ids = (2 * stream.ring.messages()).next_power_of_two().clamp(IDS_MIN, IDS_MAX);
    let together = together(&setup)?;
    let wishes = Wishes {
        operation,
        flags: setup_flags(setup.tuning),
        depth: together.depth.next_power_of_two(),
        prepared: setup.shape.iovec == Iovec::Prepared,
        notifications_max: u32::try_from(ids).unwrap_or(u32::MAX),
        stall_limit: setup.stall_limit,
    };
    let mut ring = SendRing::open(setup.link.socket(), stream.ring.clone(), wishes)
        .map_err(ring_refusal::setup_error)?;
    if opcode == Opcode::SendZcFixed {
        ring_refusal::patiently(|| ring.register()).map_err(ring_refusal::setup_error)?;
    }
    let uring = Uring::new(ring, stream, ids, setup.stall_limit);
    Ok(match together.depth {
        1 => Box::new(uring),
        _ => Box::new(Batched::new(uring, together)),
    })
}

/// The flags of a thread's ring.
pub(crate) fn setup_flags(tuning: Tuning) -> SetupFlags {
    SetupFlags::from_bits(tuning.ring_flags.bits())
}

/// How many sends go together over this socket.
///
/// Errors: a depth that its order does not allow.
fn together(setup: &Setup<'_>) -> Result<Together, SetupError> {
    let (depth, batch) = (setup.tuning.ring_depth(), setup.tuning.uring_batch);
    let tried = || format!("keep {depth} sends under way that are handed over {batch} at a time");
    let linked = socket::is_stream(setup.link.socket())
        .map_err(|errno| SetupError { tried: "read SO_TYPE".to_owned(), errno })?;
    let allowed = if linked { depth == batch } else { depth >= batch };
    match allowed && batch > 0 {
        true => Ok(Together { batch, depth, linked }),
        false => Err(SetupError { tried: tried(), errno: Errno::EINVAL }),
    }
}

/// What sends and says what has completed: a ring, or a script in a test.
pub(crate) trait Exchange: Send {
    /// Whether its sends are zero-copy.
    fn is_zerocopy(&self) -> bool;

    /// As [`SendRing::send`].
    fn send(&mut self, message: usize, from: usize, id: u32) -> Result<(), Errno>;

    /// As [`SendRing::completion`].
    fn completion(&mut self) -> Option<Completed>;

    /// As [`SendRing::wait`].
    fn wait(&mut self, timeout: Duration) -> Result<bool, Errno>;

    /// As [`SendRing::lost`].
    fn lost(&mut self) -> u32;

    /// As [`SendRing::idle`].
    fn idle(&mut self) -> Result<bool, Errno>;
}

impl<O: Operation> Exchange for SendRing<'_, O> {
    #[inline]
    fn is_zerocopy(&self) -> bool {
        self.opcode().is_zerocopy()
    }

    #[inline]
    fn send(&mut self, message: usize, from: usize, id: u32) -> Result<(), Errno> {
        SendRing::send(self, message, from, id)
    }

    #[inline]
    fn completion(&mut self) -> Option<Completed> {
        SendRing::completion(self)
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, Errno> {
        SendRing::wait(self, timeout)
    }

    fn lost(&mut self) -> u32 {
        SendRing::lost(self)
    }

    fn idle(&mut self) -> Result<bool, Errno> {
        SendRing::idle(self)
    }
}

/// Notifications of a ring, while no send is under way.
impl<E: Exchange> Releases for E {
    fn next(&mut self) -> Result<Option<Completion>, Errno> {
        match self.completion() {
            None => Ok(None),
            Some(Completed::Released { id, copied }) => Ok(Some(one(id, copied))),
            Some(Completed::Sent { .. }) => Err(Errno::EBADMSG),
        }
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, Errno> {
        Exchange::wait(self, timeout)
    }
}

fn one(id: u32, copied: Option<bool>) -> Completion {
    Completion { first: id, last: id, copied }
}

/// A thread's ring with what it sends.
struct Uring<E> {
    exchange: E,
    stream: Stream,
    /// Notifications that are awaited; none where the sends copy.
    flight: InFlight,
    /// The id of a send that failed and notifies all the same.
    spent: Option<u32>,
    stall_limit: Duration,
}

/// What became of a send that was handed over.
type Sent = Result<usize, Errno>;

impl<E: Exchange> Op for Uring<E> {
    #[inline(always)]
    fn message(&mut self) -> Result<(), Errno> {
        let index = self.stream.turn();
        if self.exchange.is_zerocopy() && (self.flight.holds(index) || self.flight.is_full()) {
            self.make_room(index)?;
        }
        self.exchange.send(index, 0, self.flight.next_id())?;
        self.stream.tally.calls += 1;
        let total = self.stream.ring.message_bytes();
        // Notifications of earlier sends come along; what came behind the result
        // is read with the next one.
        loop {
            match self.exchange.completion() {
                Some(Completed::Sent { result: Ok(bytes), notifies, .. }) if bytes == total => {
                    if notifies {
                        self.flight.sent(index);
                    }
                    self.stream.tally.bytes += total as u64;
                    break;
                }
                Some(Completed::Released { id, copied }) => self.released(id, copied)?,
                other => {
                    self.go_on(index, other)?;
                    break;
                }
            }
        }
        self.stream.tally.messages += 1;
        Ok(())
    }

    fn stream(&self) -> &Stream {
        &self.stream
    }

    fn settle(&mut self) -> Result<(), Errno> {
        self.await_until(|flight| flight.outstanding() == 0)?;
        // The queue has room for all of them, so none can have been lost.
        if self.exchange.lost() > 0 { Err(Errno::EBADMSG) } else { Ok(()) }
    }

    fn idle(&mut self) -> Result<bool, Errno> {
        self.exchange.idle()
    }

    fn tally(&self) -> Tally {
        let zerocopy = self.exchange.is_zerocopy().then(|| self.flight.counts());
        Tally { zerocopy, ..self.stream.tally }
    }
}

impl<E: Exchange> Uring<E> {
    fn new(exchange: E, stream: Stream, ids: usize, stall_limit: Duration) -> Uring<E> {
        let flight = InFlight::new(stream.ring.messages(), ids);
        Uring { exchange, stream, flight, spent: None, stall_limit }
    }

    /// The kernel has released the bytes of a send.
    #[inline]
    fn released(&mut self, id: u32, copied: Option<bool>) -> Result<(), Errno> {
        if self.spent == Some(id) {
            self.spent = None;
            return Ok(());
        }
        self.flight.completed(one(id, copied))
    }

    /// The send of message `index` has its result.
    #[inline]
    fn answered(&mut self, index: usize, id: u32, result: Sent, notifies: bool) -> Sent {
        match (notifies, result) {
            (true, Ok(_)) => self.flight.sent(index),
            (true, Err(_)) => self.spent = Some(id),
            (false, _) => {}
        }
        result
    }

    /// Goes on with message `index`, whose send has not gone whole: it was cut
    /// short or refused, or its result is still to come.
    #[cold]
    #[inline(never)]
    fn go_on(&mut self, index: usize, completed: Option<Completed>) -> Result<(), Errno> {
        let sent = match completed {
            Some(Completed::Sent { id, result, notifies }) => {
                self.answered(index, id, result, notifies)
            }
            Some(Completed::Released { .. }) | None => self.await_result(index)?,
        };
        self.send_rest(index, sent)
    }

    /// Waits for the result that the call did not bring which handed the send of
    /// message `index` over: a notification ended the wait, or a signal.
    ///
    /// Errors: `EAGAIN` when the receiver took nothing for as long as the stall
    /// limit.
    fn await_result(&mut self, index: usize) -> Result<Sent, Errno> {
        let deadline = Deadline::after(self.stall_limit);
        loop {
            while let Some(completed) = self.exchange.completion() {
                match completed {
                    Completed::Sent { id, result, notifies } => {
                        return Ok(self.answered(index, id, result, notifies));
                    }
                    Completed::Released { id, copied } => self.released(id, copied)?,
                }
            }
            match self.exchange.wait(deadline.left()) {
                Ok(true) | Err(Errno::EINTR) => {}
                Ok(false) => return Err(Errno::EAGAIN),
                Err(errno) => return Err(errno),
            }
            // The kernel goes on with the send in here.
            self.stream.tally.calls += 1;
        }
    }

    /// Goes on after a first send that did not take everything: each further
    /// one has a notification of its own.
    #[cold]
    #[inline(never)]
    fn send_rest(&mut self, index: usize, first: Sent) -> Result<(), Errno> {
        let total = self.stream.ring.message_bytes();
        let patience = Patience::begin();
        let (mut from, mut sent) = (0, first);
        loop {
            match sent {
                Ok(bytes) => {
                    from += bytes;
                    self.stream.tally.bytes += bytes as u64;
                    if from == total {
                        return Ok(());
                    }
                }
                Err(Errno::EINTR) => {}
                Err(Errno::ENOBUFS | Errno::ENOMEM) if self.exchange.is_zerocopy() => {
                    self.make_memory(patience)?
                }
                Err(errno) => return Err(errno),
            }
            self.await_spent()?;
            if self.flight.is_full() {
                self.await_until(|flight| !flight.is_full())?;
            }
            self.exchange.send(index, from, self.flight.next_id())?;
            self.stream.tally.calls += 1;
            sent = self.await_result(index)?;
        }
    }

    /// Waits until there may be memory to lock for another send.
    fn make_memory(&mut self, patience: Patience) -> Result<(), Errno> {
        self.await_spent()?;
        self.flight.yield_memory(&mut self.exchange, self.stall_limit, patience)
    }

    /// Waits for the notification of a send that failed: it is none of those
    /// that are counted, and its id is free again.
    fn await_spent(&mut self) -> Result<(), Errno> {
        let deadline = Deadline::after(self.stall_limit);
        while self.spent.is_some() {
            match self.exchange.completion() {
                Some(Completed::Released { id, copied }) => self.released(id, copied)?,
                Some(Completed::Sent { .. }) => return Err(Errno::EBADMSG),
                None => match Exchange::wait(&mut self.exchange, deadline.left()) {
                    Ok(true) | Err(Errno::EINTR) => {}
                    Ok(false) => return Err(Errno::ETIMEDOUT),
                    Err(errno) => return Err(errno),
                },
            }
        }
        Ok(())
    }

    /// Waits until the kernel has released a message of the ring.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, index: usize) -> Result<(), Errno> {
        self.await_until(|flight| !flight.holds(index) && !flight.is_full())
    }

    fn await_until(&mut self, enough: impl Fn(&InFlight) -> bool) -> Result<(), Errno> {
        self.flight.await_until(&mut self.exchange, self.stall_limit, enough)
    }
}
