//! Which messages of a ring the kernel may still read from: every zero-copy
//! call has an id, ids complete in ranges and in any order, and a message may
//! be used again when all its ids have completed.

use std::time::Duration;

use iolens_harness::watch::Deadline;
use iolens_model::outcome::ZerocopyCounts;
use iolens_sys::clock;
use iolens_sys::errno::Errno;
use iolens_sys::zerocopy::Completion;

/// Ids that can be in flight at once; a power of two. A sender that has so
/// many waits for the oldest.
pub(crate) const IDS_MAX: usize = 4096;

/// How long a send without anything in flight is tried again: other threads
/// of the arm release what they hold within a fraction of this.
const PATIENCE_NS: u64 = 100_000_000;

/// Stands for a completed id.
const DONE: usize = usize::MAX;

/// Ids in flight and the messages they belong to.
#[derive(Debug)]
pub(crate) struct InFlight {
    /// Message of each id, by id modulo its length, a power of two.
    message_of: Box<[usize]>,
    /// Ids of each message that have not completed.
    pending: Box<[u32]>,
    /// The oldest id that has not completed.
    oldest: u32,
    /// The id that the next call will have.
    next: u32,
    counts: ZerocopyCounts,
}

impl InFlight {
    /// Nothing in flight from a ring of `messages`, and room for `ids`, a power
    /// of two.
    pub(crate) fn new(messages: usize, ids: usize) -> InFlight {
        assert!(ids.is_power_of_two(), "ids wrap");
        InFlight {
            message_of: vec![DONE; ids].into_boxed_slice(),
            pending: vec![0; messages].into_boxed_slice(),
            oldest: 0,
            next: 0,
            counts: ZerocopyCounts::none(Some(0)),
        }
    }

    /// What was sent and completed so far.
    pub(crate) fn counts(&self) -> ZerocopyCounts {
        self.counts
    }

    /// Whether the kernel may still read from a message.
    #[inline]
    pub(crate) fn holds(&self, message: usize) -> bool {
        self.pending[message] > 0
    }

    /// Whether there is no id left to give to a call.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.outstanding() as usize >= self.message_of.len()
    }

    /// Ids from the oldest one that has not completed on.
    #[inline]
    pub(crate) fn outstanding(&self) -> u32 {
        self.next.wrapping_sub(self.oldest)
    }

    /// The id that the next send will have.
    #[inline]
    pub(crate) fn next_id(&self) -> u32 {
        self.next
    }

    /// Whether there are ids left to give to so many calls.
    #[inline]
    pub(crate) fn has_room_for(&self, calls: u32) -> bool {
        (self.outstanding() + calls) as usize <= self.message_of.len()
    }

    /// A call for this message has succeeded.
    #[inline]
    pub(crate) fn sent(&mut self, message: usize) {
        self.reserve(message);
        self.confirm();
    }

    /// Gives the next id to a call for this message that is still to be made:
    /// the kernel may read from it until the id has completed or is withdrawn.
    #[inline]
    pub(crate) fn reserve(&mut self, message: usize) {
        self.message_of[self.place(self.next)] = message;
        self.pending[message] += 1;
        self.next = self.next.wrapping_add(1);
    }

    /// A call whose id was reserved has succeeded.
    #[inline]
    pub(crate) fn confirm(&mut self) {
        self.counts.sends += 1;
    }

    /// Takes an id off whose call was none that completes.
    ///
    /// Errors: `EBADMSG` for an id that is not in flight.
    #[inline]
    pub(crate) fn withdraw(&mut self, id: u32) -> Result<(), Errno> {
        if id.wrapping_sub(self.oldest) >= self.outstanding() {
            return Err(Errno::EBADMSG);
        }
        self.release(id)?;
        self.forget_done();
        Ok(())
    }

    /// Takes a range off.
    ///
    /// Errors: `EBADMSG` for an id that is not in flight: the kernel and we
    /// do not agree on what was sent, and nothing we count is worth anything.
    #[inline]
    pub(crate) fn completed(&mut self, range: Completion) -> Result<(), Errno> {
        let ids = range.last.wrapping_sub(range.first);
        if range.first.wrapping_sub(self.oldest) >= self.outstanding()
            || range.last.wrapping_sub(self.oldest) >= self.outstanding()
            || ids >= self.outstanding()
        {
            return Err(Errno::EBADMSG);
        }
        for step in 0..=ids {
            self.release(range.first.wrapping_add(step))?;
        }
        let ids = u64::from(ids) + 1;
        self.counts.completions += ids;
        self.counts.notifications += 1;
        // With one unknown the sum is not known.
        self.counts.copied =
            self.counts.copied.zip(range.copied).map(|(sum, copied)| match copied {
                true => sum + ids,
                false => sum,
            });
        self.forget_done();
        Ok(())
    }

    /// Lets go of the message of an id that is in flight, once.
    #[inline]
    fn release(&mut self, id: u32) -> Result<(), Errno> {
        let place = self.place(id);
        let message = &mut self.message_of[place];
        if *message == DONE {
            return Err(Errno::EBADMSG);
        }
        self.pending[*message] -= 1;
        *message = DONE;
        Ok(())
    }

    /// The oldest id is one that has not completed.
    #[inline]
    fn forget_done(&mut self) {
        while self.oldest != self.next && self.message_of[self.place(self.oldest)] == DONE {
            self.oldest = self.oldest.wrapping_add(1);
        }
    }

    #[inline]
    fn place(&self, id: u32) -> usize {
        id as usize & (self.message_of.len() - 1)
    }

    /// Takes completions off until there are `enough`.
    ///
    /// Errors: `ETIMEDOUT` when none came for as long as the stall limit.
    pub(crate) fn await_until(
        &mut self,
        releases: &mut impl Releases,
        stall_limit: Duration,
        enough: impl Fn(&InFlight) -> bool,
    ) -> Result<(), Errno> {
        while !enough(self) {
            match releases.next()? {
                Some(range) => self.completed(range)?,
                None => await_one(releases, stall_limit)?,
            }
        }
        Ok(())
    }

    /// After a send was refused for want of memory: waits until something that
    /// is in flight has completed. With nothing in flight on this connection,
    /// others of the same user may hold what there is: it is tried again until
    /// the patience ends, and then never.
    ///
    /// Errors: `ENOBUFS` when it has ended; as [`Self::await_until`].
    pub(crate) fn yield_memory(
        &mut self,
        releases: &mut impl Releases,
        stall_limit: Duration,
        patience: Patience,
    ) -> Result<(), Errno> {
        self.counts.enobufs += 1;
        let completed = self.counts.completions;
        if self.outstanding() > 0 {
            let more = |flight: &InFlight| flight.counts.completions > completed;
            return self.await_until(releases, stall_limit, more);
        }
        if clock::monotonic_ns() >= patience.ends_ns {
            return Err(Errno::ENOBUFS);
        }
        std::thread::yield_now();
        Ok(())
    }
}

/// Until when a send is tried again that finds no memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    ends_ns: u64,
}

impl Patience {
    /// From now on.
    pub(crate) fn begin() -> Patience {
        Patience { ends_ns: clock::monotonic_ns() + PATIENCE_NS }
    }
}

/// Where the kernel says what it has released.
pub(crate) trait Releases {
    /// What it said next; never waits.
    fn next(&mut self) -> Result<Option<Completion>, Errno>;

    /// Waits until it has said something; `false` when the time is over.
    fn wait(&mut self, timeout: Duration) -> Result<bool, Errno>;
}

/// Waits for the next completion.
fn await_one(releases: &mut impl Releases, stall_limit: Duration) -> Result<(), Errno> {
    let deadline = Deadline::after(stall_limit);
    loop {
        match releases.wait(deadline.left()) {
            Ok(true) => return Ok(()),
            Ok(false) => return Err(Errno::ETIMEDOUT),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(first: u32, last: u32, copied: bool) -> Completion {
        Completion { first, last, copied: Some(copied) }
    }

    #[test]
    fn a_message_is_held_until_its_last_id_has_completed() {
        let mut flight = InFlight::new(2, IDS_MAX);
        // Message 0 took two calls.
        for message in [0, 0, 1] {
            flight.sent(message);
        }
        flight.completed(range(1, 2, true)).unwrap();
        assert_eq!((flight.holds(0), flight.holds(1), flight.outstanding()), (true, false, 3));
        flight.completed(range(0, 0, false)).unwrap();
        assert_eq!((flight.holds(0), flight.outstanding()), (false, 0));
        let counts = flight.counts();
        assert_eq!((counts.sends, counts.completions, counts.copied), (3, 3, Some(2)));
        assert_eq!(counts.notifications, 2, "one of them was about two ids");
    }

    #[test]
    fn one_share_that_is_unknown_makes_the_sum_unknown() {
        let mut flight = InFlight::new(1, 2);
        flight.sent(0);
        flight.sent(0);
        assert!(flight.is_full());
        flight.completed(range(0, 0, true)).unwrap();
        flight.completed(Completion { copied: None, ..range(1, 1, true) }).unwrap();
        let counts = flight.counts();
        assert_eq!((counts.completions, counts.copied, counts.copied_share()), (2, None, None));
    }

    #[test]
    fn ids_that_are_not_in_flight_are_an_error() {
        let mut flight = InFlight::new(1, IDS_MAX);
        assert_eq!(flight.completed(range(0, 0, false)), Err(Errno::EBADMSG));
        flight.sent(0);
        flight.sent(0);
        assert_eq!(flight.completed(range(0, 2, false)), Err(Errno::EBADMSG));
        assert_eq!(flight.completed(range(1, 0, false)), Err(Errno::EBADMSG));
        flight.completed(range(1, 1, false)).unwrap();
        assert_eq!(flight.completed(range(1, 1, false)), Err(Errno::EBADMSG), "twice");
    }

    #[test]
    fn what_was_withdrawn_is_not_counted() {
        let mut flight = InFlight::new(2, 4);
        flight.reserve(0);
        flight.reserve(1);
        assert!(flight.holds(0) && flight.has_room_for(2) && !flight.has_room_for(3));
        flight.withdraw(1).unwrap();
        assert_eq!((flight.holds(1), flight.outstanding()), (false, 2));
        assert_eq!(flight.withdraw(1), Err(Errno::EBADMSG), "twice");
        flight.confirm();
        flight.completed(range(0, 0, true)).unwrap();
        assert_eq!((flight.outstanding(), flight.counts().sends), (0, 1));
        assert_eq!(flight.counts().completions, 1);
    }

    #[test]
    fn ids_wrap() {
        let mut flight = InFlight::new(1, IDS_MAX);
        (flight.oldest, flight.next) = (u32::MAX, u32::MAX);
        for _ in 0..3 {
            flight.sent(0);
        }
        flight.completed(range(u32::MAX, 1, true)).unwrap();
        assert_eq!(
            (flight.holds(0), flight.outstanding(), flight.counts().copied),
            (false, 0, Some(3))
        );
    }

    #[test]
    fn there_is_an_end_to_what_can_be_in_flight() {
        let mut flight = InFlight::new(3, IDS_MAX);
        while !flight.is_full() {
            flight.sent(flight.outstanding() as usize % 3);
        }
        assert_eq!(flight.outstanding() as usize, IDS_MAX);
        flight.completed(range(0, flight.outstanding() - 1, true)).unwrap();
        assert!(!flight.is_full() && !flight.holds(0));
    }

    proptest! {
        #[test]
        fn any_order_of_ranges_completes_all(
            calls in 1u32..200,
            cuts in prop::collection::btree_set(1u32..200, 0..20),
            order in any::<usize>(),
        ) {
            let mut flight = InFlight::new(7, IDS_MAX);
            for call in 0..calls {
                flight.sent(call as usize % 7);
            }
            let mut edges: Vec<u32> = cuts.into_iter().filter(|&cut| cut < calls).collect();
            edges.insert(0, 0);
            edges.push(calls);
            let between = |edge: &[u32]| range(edge[0], edge[1] - 1, edge[0].is_multiple_of(2));
            let mut ranges: Vec<Completion> = edges.windows(2).map(between).collect();
            let mut order = order;
            while !ranges.is_empty() {
                let one = ranges.swap_remove(order % ranges.len());
                order = order.rotate_right(7);
                flight.completed(one).unwrap();
            }
            prop_assert_eq!(flight.outstanding(), 0);
            prop_assert_eq!(flight.counts().completions, u64::from(calls));
            prop_assert!((0..7).all(|message| !flight.holds(message)));
        }
    }
}
