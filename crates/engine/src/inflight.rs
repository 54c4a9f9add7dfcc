//! Which messages of a ring the kernel may still read from: every zero-copy
//! call has an id, ids complete in ranges and in any order, and a message may
//! be used again when all its ids have completed.

use iolens_model::outcome::ZerocopyCounts;
use iolens_sys::errno::Errno;
use iolens_sys::zerocopy::Completion;

/// Ids that can be in flight at once; a power of two. A sender that has so
/// many waits for the oldest.
const IDS_MAX: usize = 4096;

/// Stands for a completed id.
const DONE: usize = usize::MAX;

/// Ids in flight and the messages they belong to.
#[derive(Debug)]
pub(crate) struct InFlight {
    /// Message of each id, by id modulo [`IDS_MAX`].
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
    /// Nothing in flight from a ring of `messages`.
    pub(crate) fn new(messages: usize) -> InFlight {
        InFlight {
            message_of: vec![DONE; IDS_MAX].into_boxed_slice(),
            pending: vec![0; messages].into_boxed_slice(),
            oldest: 0,
            next: 0,
            counts: ZerocopyCounts::default(),
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
        self.outstanding() as usize >= IDS_MAX
    }

    /// Ids from the oldest one that has not completed on.
    #[inline]
    pub(crate) fn outstanding(&self) -> u32 {
        self.next.wrapping_sub(self.oldest)
    }

    /// A call for this message has succeeded.
    #[inline]
    pub(crate) fn sent(&mut self, message: usize) {
        self.message_of[place(self.next)] = message;
        self.pending[message] += 1;
        self.next = self.next.wrapping_add(1);
        self.counts.sends += 1;
    }

    /// A call was refused with `ENOBUFS`.
    pub(crate) fn refused(&mut self) {
        self.counts.enobufs += 1;
    }

    /// Takes a range off.
    ///
    /// Errors: `EBADMSG` for an id that is not in flight: the kernel and we
    /// do not agree on what was sent, and nothing we count is worth anything.
    pub(crate) fn completed(&mut self, range: Completion) -> Result<(), Errno> {
        let ids = range.last.wrapping_sub(range.first);
        if range.first.wrapping_sub(self.oldest) >= self.outstanding()
            || range.last.wrapping_sub(self.oldest) >= self.outstanding()
            || ids >= self.outstanding()
        {
            return Err(Errno::EBADMSG);
        }
        for step in 0..=ids {
            let message = &mut self.message_of[place(range.first.wrapping_add(step))];
            if *message == DONE {
                return Err(Errno::EBADMSG);
            }
            self.pending[*message] -= 1;
            *message = DONE;
        }
        let ids = u64::from(ids) + 1;
        self.counts.completions += ids;
        self.counts.copied += if range.copied { ids } else { 0 };
        while self.oldest != self.next && self.message_of[place(self.oldest)] == DONE {
            self.oldest = self.oldest.wrapping_add(1);
        }
        Ok(())
    }
}

fn place(id: u32) -> usize {
    id as usize % IDS_MAX
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(first: u32, last: u32, copied: bool) -> Completion {
        Completion { first, last, copied }
    }

    #[test]
    fn a_message_is_held_until_its_last_id_has_completed() {
        let mut flight = InFlight::new(2);
        // Message 0 took two calls.
        for message in [0, 0, 1] {
            flight.sent(message);
        }
        flight.completed(range(1, 2, true)).unwrap();
        assert_eq!((flight.holds(0), flight.holds(1), flight.outstanding()), (true, false, 3));
        flight.completed(range(0, 0, false)).unwrap();
        assert_eq!((flight.holds(0), flight.outstanding()), (false, 0));
        let counts = flight.counts();
        assert_eq!((counts.sends, counts.completions, counts.copied), (3, 3, 2));
    }

    #[test]
    fn ids_that_are_not_in_flight_are_an_error() {
        let mut flight = InFlight::new(1);
        assert_eq!(flight.completed(range(0, 0, false)), Err(Errno::EBADMSG));
        flight.sent(0);
        flight.sent(0);
        assert_eq!(flight.completed(range(0, 2, false)), Err(Errno::EBADMSG));
        assert_eq!(flight.completed(range(1, 0, false)), Err(Errno::EBADMSG));
        flight.completed(range(1, 1, false)).unwrap();
        assert_eq!(flight.completed(range(1, 1, false)), Err(Errno::EBADMSG), "twice");
    }

    #[test]
    fn ids_wrap() {
        let mut flight = InFlight::new(1);
        (flight.oldest, flight.next) = (u32::MAX, u32::MAX);
        for _ in 0..3 {
            flight.sent(0);
        }
        flight.completed(range(u32::MAX, 1, true)).unwrap();
        assert_eq!((flight.holds(0), flight.outstanding(), flight.counts().copied), (false, 0, 3));
    }

    #[test]
    fn there_is_an_end_to_what_can_be_in_flight() {
        let mut flight = InFlight::new(3);
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
            let mut flight = InFlight::new(7);
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
