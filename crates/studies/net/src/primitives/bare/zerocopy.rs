//! The bare loop around sendmsg(2) with `MSG_ZEROCOPY`: the error queue is read
//! when a message's turn has come again and it has not completed, and at the
//! end.

use std::io::IoSlice;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use iolens_model::outcome::ZerocopyCounts;
use iolens_sys::errno::Errno;
use iolens_sys::ring::{Layout, MessageRing};
use iolens_sys::zerocopy;

use super::calls::{pieces, ring_of};
use super::{Bare, Loop, may_try_again};
use crate::entry::{Setup, SetupError};
use iolens_harness::op::Sender;

/// Ids that may be under way.
const IDS: usize = 4096;

struct Zerocopy<'a> {
    ring: MessageRing,
    /// For each message the first id behind its own.
    ids_end: Box<[u64]>,
    queue: Queue<'a>,
}

/// What is under way on a socket.
struct Queue<'a> {
    fd: BorrowedFd<'a>,
    stall_limit: Duration,
    /// The id that the next call will have, and the first that has not
    /// completed; the kernel's are the low 32 bits.
    next: u64,
    first: u64,
    /// Which ids from `first` on have completed, by id modulo its length.
    done: Box<[bool; IDS]>,
    counts: ZerocopyCounts,
}

/// sendmsg(2) with `MSG_ZEROCOPY` for each message.
///
/// Errors: the socket does not do it.
pub(super) fn open<'a>(setup: &Setup<'a>) -> Result<Box<dyn Sender + 'a>, SetupError> {
    let fd = setup.link.socket();
    let refused = |errno| SetupError { tried: "set SO_ZEROCOPY".to_owned(), errno };
    zerocopy::enable(fd).map_err(refused)?;
    let ring = ring_of(setup, Layout::Separate);
    let counts = ZerocopyCounts::none(Some(0));
    let done = Box::new([false; IDS]);
    let queue = Queue { fd, stall_limit: setup.stall_limit, next: 0, first: 0, done, counts };
    let ids_end = vec![0; ring.messages()].into_boxed_slice();
    Ok(Loop::boxed(&ring.clone(), Zerocopy { ring, ids_end, queue }))
}

impl Queue<'_> {
    /// Reads one entry of the error queue, and waits for it.
    fn await_one(&mut self) -> Result<(), Errno> {
        let limit_ns = u64::try_from(self.stall_limit.as_nanos()).unwrap_or(u64::MAX);
        let range = loop {
            if let Some(range) = zerocopy::completion(self.fd)? {
                break range;
            }
            match zerocopy::wait(self.fd, limit_ns) {
                Ok(true) | Err(Errno::EINTR) => {}
                Ok(false) => return Err(Errno::ETIMEDOUT),
                Err(errno) => return Err(errno),
            }
        };
        #[expect(clippy::cast_possible_truncation, reason = "the low 32 bits are meant")]
        let behind = u64::from(range.first.wrapping_sub(self.first as u32));
        let begin = self.first + behind;
        let end = begin + u64::from(range.last.wrapping_sub(range.first)) + 1;
        if end > self.next {
            return Err(Errno::EBADMSG);
        }
        for id in begin..end {
            self.done[place(id)] = true;
        }
        while self.done[place(self.first)] {
            self.done[place(self.first)] = false;
            self.first += 1;
        }
        self.counts.completions += end - begin;
        self.counts.notifications += 1;
        self.counts.copied = match (self.counts.copied, range.copied) {
            (Some(copied), Some(true)) => Some(copied + end - begin),
            (copied, _) => copied,
        };
        Ok(())
    }
}

#[inline]
fn place(id: u64) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "less than the number of ids")]
    let place = (id % IDS as u64) as usize;
    place
}

impl Bare for Zerocopy<'_> {
    #[inline]
    fn message(&mut self, index: usize, calls: &mut u64) -> Result<(), Errno> {
        let Zerocopy { ring, ids_end, queue } = self;
        while queue.first < ids_end[index] {
            queue.await_one()?;
        }
        let mut pieces = pieces(ring, index);
        let mut left = &mut pieces[..];
        let (mut to_come, mut refused_ns) = (ring.message_bytes(), None);
        while to_come > 0 {
            if queue.next - queue.first == IDS as u64 {
                queue.await_one()?;
            }
            *calls += 1;
            match zerocopy::sendmsg(queue.fd, left) {
                Ok(sent) => {
                    queue.next += 1;
                    queue.counts.sends += 1;
                    to_come -= sent;
                    if to_come > 0 {
                        IoSlice::advance_slices(&mut left, sent);
                    }
                }
                Err(Errno::EINTR) => {}
                Err(Errno::ENOBUFS) => {
                    queue.counts.enobufs += 1;
                    if queue.first < queue.next {
                        queue.await_one()?;
                    } else if !may_try_again(&mut refused_ns) {
                        return Err(Errno::ENOBUFS);
                    }
                }
                Err(errno) => return Err(errno),
            }
        }
        ids_end[index] = queue.next;
        Ok(())
    }

    fn touch(&self) {
        let _ = self.ring.touch();
    }

    fn finish(&mut self) -> Result<(), Errno> {
        while self.queue.first < self.queue.next {
            self.queue.await_one()?;
        }
        Ok(())
    }

    fn zerocopy(&self) -> Option<ZerocopyCounts> {
        Some(self.queue.counts)
    }
}
