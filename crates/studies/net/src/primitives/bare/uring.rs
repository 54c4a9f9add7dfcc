//! The bare loop around io_uring: one entry, one io_uring_enter(2) that waits
//! for its result. A notification is read when it comes along, when the
//! message's turn has come again, and at the end.

use iolens_model::outcome::ZerocopyCounts;
use iolens_sys::errno::Errno;
use iolens_sys::io_uring::{Opcode, OpenError, PlainRing, Wishes};
use iolens_sys::ring::{Layout, MessageRing};

use super::calls::ring_of;
use super::{Bare, Loop, may_try_again};
use crate::entry::{Setup, SetupError};
use iolens_harness::op::Sender;
use iolens_harness::ring_refusal;

use crate::uring;

struct Uring<'a, S> {
    ring: PlainRing<'a>,
    send: S,
    messages: MessageRing,
    /// Notifications that are due for each message, for all of them, and the
    /// most that may be.
    due: Box<[u32]>,
    all_due: u32,
    due_max: u32,
    /// A message whose send was refused: the notification of that one is none.
    refused: Option<u64>,
    /// `None` where nothing is sent without a copy.
    counts: Option<ZerocopyCounts>,
}

/// `send` for each message.
///
/// Errors: there is no such ring here.
pub(super) fn open<'a>(
    setup: &Setup<'a>,
    opcode: Opcode,
    send: impl Fn(&mut PlainRing<'a>, usize, usize) -> Result<(), Errno> + Send + 'a,
) -> Result<Box<dyn Sender + 'a>, SetupError> {
    let layout = if opcode.takes_iovec() { Layout::Separate } else { Layout::Contiguous };
    let messages = ring_of(setup, layout);
    let notifications_max = u32::try_from(4 * messages.messages()).unwrap_or(u32::MAX).min(4096);
    let stall_limit = setup.stall_limit;
    let wishes = Wishes {
        operation: opcode,
        flags: uring::setup_flags(setup.tuning),
        prepared: false,
        depth: 1,
        notifications_max,
        stall_limit,
    };
    let ring = PlainRing::open(setup.link.socket(), messages.clone(), wishes);
    let mut ring = ring.map_err(ring_refusal::setup_error)?;
    if opcode == Opcode::SendZcFixed {
        register(&mut ring).map_err(ring_refusal::setup_error)?;
    }
    let copied = ring.reports_copies().then_some(0);
    let counts = ZerocopyCounts::none(copied);
    let uring = Uring {
        ring,
        send,
        due: vec![0; messages.messages()].into_boxed_slice(),
        all_due: 0,
        due_max: notifications_max,
        refused: None,
        counts: opcode.is_zerocopy().then_some(counts),
        messages,
    };
    Ok(Loop::boxed(&uring.messages.clone(), uring))
}

/// Registers the messages; memory that another ring had locked comes back a
/// while after its end.
fn register(ring: &mut PlainRing<'_>) -> Result<(), OpenError> {
    let mut refused_ns = None;
    loop {
        match ring.register() {
            Err(OpenError::Register { errno: Errno::ENOMEM, .. })
                if may_try_again(&mut refused_ns) => {}
            done => return done,
        }
    }
}

impl<S> Uring<'_, S> {
    /// Takes a completion: the result of the send under way, or null for a
    /// notification.
    ///
    /// Errors: none came within the stall limit.
    fn next(&mut self, calls: &mut u64) -> Result<Option<i32>, Errno> {
        let cqe = loop {
            if let Some(cqe) = self.ring.cqe() {
                break cqe;
            }
            *calls += 1;
            match self.ring.wait() {
                Ok(true) | Err(Errno::EINTR) => {}
                Ok(false) => return Err(Errno::ETIMEDOUT),
                Err(errno) => return Err(errno),
            }
        };
        let Some(counts) = &mut self.counts else { return Ok(Some(cqe.result)) };
        #[expect(clippy::cast_possible_truncation, reason = "it was an index")]
        let message = cqe.user_data as usize;
        if !cqe.notification {
            self.due[message] += u32::from(cqe.more);
            self.all_due += u32::from(cqe.more);
            if cqe.result >= 0 {
                counts.sends += u64::from(cqe.more);
            } else if cqe.more {
                self.refused = Some(cqe.user_data);
            }
            return Ok(Some(cqe.result));
        }
        self.due[message] -= 1;
        self.all_due -= 1;
        if self.refused == Some(cqe.user_data) {
            self.refused = None;
            return Ok(None);
        }
        counts.completions += 1;
        counts.notifications += 1;
        counts.copied = counts.copied.map(|copied| copied + u64::from(cqe.copied()));
        Ok(None)
    }

    /// Reads notifications until this message has none due.
    fn await_released(&mut self, index: usize) -> Result<(), Errno> {
        while self.due[index] > 0 {
            self.next(&mut 0)?;
        }
        Ok(())
    }

    /// After a send for which there was no memory: something of ours has to
    /// complete, or of others.
    #[cold]
    fn make_memory(&mut self, errno: Errno, refused_ns: &mut Option<u64>) -> Result<(), Errno> {
        let Some(counts) = &mut self.counts else { return Err(errno) };
        counts.enobufs += 1;
        while self.refused.is_some() {
            self.next(&mut 0)?;
        }
        if self.all_due > 0 {
            return self.next(&mut 0).map(|_| ());
        }
        if may_try_again(refused_ns) { Ok(()) } else { Err(errno) }
    }
}

impl<'a, S> Bare for Uring<'a, S>
where
    S: Fn(&mut PlainRing<'a>, usize, usize) -> Result<(), Errno> + Send,
{
    #[inline]
    fn message(&mut self, index: usize, calls: &mut u64) -> Result<(), Errno> {
        self.await_released(index)?;
        let (mut from, mut refused_ns) = (0, None);
        while from < self.messages.message_bytes() {
            // Pieces of a message have a notification each.
            while self.all_due >= self.due_max {
                self.next(&mut 0)?;
            }
            (self.send)(&mut self.ring, index, from)?;
            *calls += 1;
            let result = loop {
                if let Some(result) = self.next(calls)? {
                    break result;
                }
            };
            match usize::try_from(result) {
                Ok(sent) => from += sent,
                Err(_) => match Errno::from_raw(-result) {
                    Errno::EINTR => {}
                    errno @ (Errno::ENOMEM | Errno::ENOBUFS) => {
                        self.make_memory(errno, &mut refused_ns)?;
                    }
                    errno => return Err(errno),
                },
            }
        }
        Ok(())
    }

    fn touch(&self) {
        let _ = self.messages.touch();
    }

    fn finish(&mut self) -> Result<(), Errno> {
        while self.all_due > 0 {
            self.next(&mut 0)?;
        }
        Ok(())
    }

    fn idle(&mut self) -> Result<bool, Errno> {
        self.ring.idle()
    }

    fn zerocopy(&self) -> Option<ZerocopyCounts> {
        self.counts
    }
}
