//! The books of one thread: which requests are due, which are in flight, and
//! how each of them ended. Plain functions of time in ns; whose clock it is
//! they do not know, so that a simulated one does.
//!
//! A request is *due* when the schedule, or the reply before it, says so. It is
//! *taken up* when the client has seen that, *sent* when a connection had room
//! for it, and it ends in exactly one way. What is measured from due has the
//! time in it for which a stalled server kept the client from sending; what is
//! measured from sent leaves it out, and is kept beside it to show that.
//!
//! The time between due and taken up is the client's own lag. No server has a
//! part in it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use iolens_model::load::Outcomes;

use super::schedule::Schedule;
use iolens_harness::stream::Times;

/// A closed loop waits so long after a request that failed, or it would do
/// nothing but fail.
const RETRY_NS: u64 = 10_000_000;

/// What makes a request due.
#[derive(Debug)]
pub(crate) enum Demand {
    /// The reply before it on its slot, and a time to think.
    Closed {
        /// Between the two.
        think_ns: u64,
        /// By how much the first requests of two slots are apart.
        stagger_ns: u64,
    },
    /// A schedule from the start.
    Open(Schedule),
}

/// When there are no more requests.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    /// After so many that count.
    Requests(u64),
    /// None is due then or later.
    Until(u64),
}

/// What one thread is to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// Requests that can be in flight at once.
    pub(crate) slots: u32,
    /// How many slots all threads have, and which is this one's first: requests
    /// of all threads have ids of their own.
    pub(crate) all_slots: u64,
    pub(crate) first_slot: u64,
    /// Requests that each slot may have had before, whose ids are not used again.
    pub(crate) rounds: u64,
    /// When the first request can be due.
    pub(crate) start_ns: u64,
    /// Requests that are due before are not counted.
    pub(crate) count_from_ns: u64,
    pub(crate) limit: Limit,
    /// From due to given up.
    pub(crate) timeout_ns: u64,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Ok,
    Refused,
    Reset,
    Invalid,
    /// The connection took too long to be made: the network's own time-out.
    Timeout,
    Abandoned,
}

/// A request to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) slot: u32,
    pub(crate) id: u64,
}

/// What an id of a reply stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    InFlight(u32),
    /// Its request has timed out.
    Late(u32),
    /// No request has it, or not any more.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No request.
    Free,
    InFlight,
    /// Timed out; the connection may still carry a reply.
    TimedOut,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    id: u64,
    due_ns: u64,
    sent_ns: u64,
    state: State,
}

/// What has come of it all.
pub(crate) struct Results {
    /// Requests that became due and count.
    pub(crate) scheduled: u64,
    pub(crate) outcomes: Outcomes,
    pub(crate) unsent: u64,
    pub(crate) warmup: u64,
    pub(crate) late_replies: u64,
    /// Right replies that came in the window; of a number of requests, all that count.
    pub(crate) replies_in_window: u64,
    /// When the last request that counts ended, however it did.
    last_end_ns: u64,
    /// When the first request was sent and the last right reply came, whether they
    /// count or not.
    pub(crate) first_sent_ns: Option<u64>,
    pub(crate) last_right_ns: Option<u64>,
    /// Requests that each slot may have had until now.
    pub(crate) rounds: u64,
    /// When the last request could be due; `None` where a number was asked for.
    until_ns: Option<u64>,
    pub(crate) per_second: Vec<u64>,
    pub(crate) from_due: Times,
    pub(crate) from_sent: Times,
    pub(crate) lag: Times,
}

/// The books.
pub(crate) struct Book {
    terms: Terms,
    demand: Demand,
    slots: Vec<Slot>,
    /// Open loop: the next arrival, those that were taken up and wait for a
    /// slot, and the slots that wait for one.
    next_arrival_ns: Option<u64>,
    backlog: VecDeque<u64>,
    free: VecDeque<u32>,
    /// Closed loop: slots whose request is due later, and those that have one.
    thinking: BinaryHeap<Reverse<(u64, u32)>>,
    ready: VecDeque<(u64, u32)>,
    in_flight: u32,
    results: Results,
}

impl Book {
    pub(crate) fn new(terms: Terms, demand: Demand) -> Book {
        let slot = Slot { id: 0, due_ns: 0, sent_ns: 0, state: State::Free };
        let mut book = Book {
            terms,
            demand,
            slots: vec![slot; terms.slots as usize],
            next_arrival_ns: None,
            backlog: VecDeque::new(),
            free: VecDeque::new(),
            thinking: BinaryHeap::new(),
            ready: VecDeque::new(),
            in_flight: 0,
            results: Results::new(),
        };
        match book.demand {
            Demand::Open(_) => {
                book.free.extend(0..terms.slots);
                book.plan_arrival();
            }
            Demand::Closed { stagger_ns, .. } => {
                for slot in 0..terms.slots {
                    book.think(slot, terms.start_ns + stagger_ns * u64::from(slot));
                }
            }
        }
        book
    }

    /// Takes up what has become due.
    pub(crate) fn advance(&mut self, now_ns: u64) {
        while let Some(due_ns) = self.next_arrival_ns.filter(|&due_ns| due_ns <= now_ns) {
            self.backlog.push_back(due_ns);
            self.take_up(due_ns, now_ns);
            self.plan_arrival();
        }
        while let Some(&Reverse((due_ns, slot))) = self.thinking.peek() {
            if due_ns > now_ns {
                break;
            }
            self.thinking.pop();
            // Meanwhile the others may have used up what there was.
            if self.may_begin(due_ns) {
                // Without a time to think a request is due when the client is ready.
                let due_ns = if self.has_schedule() { due_ns } else { now_ns };
                self.ready.push_back((due_ns, slot));
                self.take_up(due_ns, now_ns);
            }
        }
    }

    /// The oldest request that is taken up and has a slot.
    pub(crate) fn take(&mut self) -> Option<Request> {
        let (due_ns, slot) = match self.demand {
            Demand::Closed { .. } => self.ready.pop_front()?,
            Demand::Open(_) => {
                let due_ns = *self.backlog.front()?;
                let slot = self.free.pop_front()?;
                self.backlog.pop_front();
                (due_ns, slot)
            }
        };
        let id = match self.slots[slot as usize].id {
            0 => self.first_id(slot),
            before => before + self.terms.all_slots,
        };
        self.in_flight += 1;
        self.slots[slot as usize] = Slot { id, due_ns, sent_ns: due_ns, state: State::InFlight };
        Some(Request { slot, id })
    }

    /// The id of a slot's first request.
    fn first_id(&self, slot: u32) -> u64 {
        let Terms { rounds, all_slots, first_slot, .. } = self.terms;
        1 + rounds * all_slots + first_slot + u64::from(slot)
    }

    /// A request is sent now.
    pub(crate) fn sent(&mut self, slot: u32, now_ns: u64) {
        self.results.first_sent_ns.get_or_insert(now_ns);
        self.slots[slot as usize].sent_ns = now_ns;
    }

    /// When a request was due and sent.
    pub(crate) fn times_of(&self, slot: u32) -> (u64, u64) {
        let slot = &self.slots[slot as usize];
        (slot.due_ns, slot.sent_ns)
    }

    /// Which request has this id.
    pub(crate) fn find(&self, id: u64) -> Found {
        let number = id.wrapping_sub(1) % self.terms.all_slots;
        let Some(slot) = number.checked_sub(self.terms.first_slot) else { return Found::Unknown };
        let own = u32::try_from(slot).ok().filter(|&slot| slot < self.terms.slots);
        let Some(slot) = own else { return Found::Unknown };
        match self.slots[slot as usize] {
            Slot { id: own, .. } if own != id => Found::Unknown,
            Slot { state: State::InFlight, .. } => Found::InFlight(slot),
            Slot { state: State::TimedOut, .. } => Found::Late(slot),
            Slot { state: State::Free, .. } => Found::Unknown,
        }
    }

    /// The request of a slot, if it has one that has not ended.
    pub(crate) fn is_in_flight(&self, slot: u32) -> bool {
        self.slots[slot as usize].state == State::InFlight
    }

    /// Whether the request of a slot has timed out and holds it.
    pub(crate) fn has_timed_out(&self, slot: u32) -> bool {
        self.slots[slot as usize].state == State::TimedOut
    }

    /// The request in flight on a slot has ended, and the slot is free.
    pub(crate) fn end(&mut self, slot: u32, ending: Ending, now_ns: u64) {
        let Slot { due_ns, sent_ns, .. } = self.slots[slot as usize];
        if ending == Ending::Ok {
            self.results.last_right_ns = Some(now_ns);
            self.reply(due_ns, now_ns);
        }
        if self.counts(due_ns) {
            let outcomes = &mut self.results.outcomes;
            match ending {
                Ending::Ok => outcomes.ok += 1,
                Ending::Refused => outcomes.refused += 1,
                Ending::Reset => outcomes.reset += 1,
                Ending::Invalid => outcomes.invalid += 1,
                Ending::Timeout => outcomes.timeout += 1,
                Ending::Abandoned => outcomes.abandoned += 1,
            }
            self.results.ended(now_ns);
            if matches!(ending, Ending::Ok | Ending::Timeout) {
                self.results.from_due.record(now_ns.saturating_sub(due_ns));
                self.results.from_sent.record(now_ns.saturating_sub(sent_ns));
            }
        }
        self.in_flight -= 1;
        self.free_slot(slot, ending == Ending::Ok, now_ns);
    }

    /// A slot whose request timed out is free: its reply came after all, or its
    /// connection is no more.
    pub(crate) fn release(&mut self, slot: u32, now_ns: u64) {
        self.free_slot(slot, false, now_ns);
    }

    /// A reply came to a request that had timed out.
    pub(crate) fn late(&mut self, slot: u32, now_ns: u64) {
        self.results.late_replies += 1;
        self.release(slot, now_ns);
    }

    /// Ends what has waited too long, and names the slots that are held by such:
    /// [`Self::release`] frees them.
    pub(crate) fn expire(&mut self, now_ns: u64, held: &mut Vec<u32>) {
        let timeout_ns = self.terms.timeout_ns;
        while let Some(&due_ns) = self.backlog.front() {
            if due_ns + timeout_ns > now_ns {
                break;
            }
            self.backlog.pop_front();
            if self.counts(due_ns) {
                self.results.ended(now_ns);
                self.results.outcomes.timeout += 1;
                self.results.unsent += 1;
                self.results.from_due.record(now_ns - due_ns);
            }
        }
        for slot in 0..self.terms.slots {
            let Slot { due_ns, sent_ns, state, .. } = self.slots[slot as usize];
            if state != State::InFlight || due_ns + timeout_ns > now_ns {
                continue;
            }
            if self.counts(due_ns) {
                self.results.ended(now_ns);
                self.results.outcomes.timeout += 1;
                self.results.from_due.record(now_ns - due_ns);
                self.results.from_sent.record(now_ns.saturating_sub(sent_ns));
            }
            self.in_flight -= 1;
            self.slots[slot as usize].state = State::TimedOut;
            held.push(slot);
        }
    }

    /// When the next request is due; `None` where only a reply makes one so.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let thinking = self.thinking.peek().map(|Reverse((due_ns, _))| *due_ns);
        self.next_arrival_ns.into_iter().chain(thinking).min()
    }

    /// No more requests become due: as if this had been the end from the start.
    pub(crate) fn stop(&mut self, now_ns: u64) {
        self.terms.limit = match self.terms.limit {
            Limit::Until(end_ns) => Limit::Until(end_ns.min(now_ns)),
            Limit::Requests(_) => Limit::Requests(0),
        };
        self.next_arrival_ns = None;
        self.thinking.clear();
    }

    /// Ends whatever has not ended.
    pub(crate) fn abandon(&mut self, now_ns: u64) {
        self.stop(now_ns);
        let waiting: Vec<u64> =
            self.backlog.drain(..).chain(self.ready.drain(..).map(|(due_ns, _)| due_ns)).collect();
        for due_ns in waiting {
            if self.counts(due_ns) {
                self.results.ended(now_ns);
                self.results.outcomes.abandoned += 1;
            }
        }
        for slot in 0..self.terms.slots {
            if self.is_in_flight(slot) {
                self.end(slot, Ending::Abandoned, now_ns);
            }
        }
    }

    /// Whether every request has ended and none will become due.
    pub(crate) fn is_done(&self) -> bool {
        self.in_flight == 0
            && self.next_arrival_ns.is_none()
            && self.backlog.is_empty()
            && self.thinking.is_empty()
            && self.ready.is_empty()
    }

    /// What has come of it all, once it is done.
    pub(crate) fn results(mut self) -> Results {
        assert!(self.is_done(), "requests are left over");
        let ended = self.results.outcomes.total();
        assert_eq!(ended, self.results.scheduled, "every request ends exactly once");
        self.results.rounds = self.rounds();
        if let Limit::Until(end_ns) = self.terms.limit {
            self.results.until_ns = Some(end_ns);
        }
        self.results
    }

    /// Requests that each slot may have had, with those before.
    fn rounds(&self) -> u64 {
        let last = self.slots.iter().map(|slot| slot.id).max().unwrap_or(0);
        self.terms.rounds.max(last.div_ceil(self.terms.all_slots))
    }

    /// Whether a request that is due then counts.
    fn counts(&self, due_ns: u64) -> bool {
        due_ns >= self.terms.count_from_ns
    }

    /// When the last request could become due, where that is over by now.
    pub(super) fn closed_at(&self, now_ns: u64) -> Option<u64> {
        match self.terms.limit {
            Limit::Until(end_ns) => Some(end_ns).filter(|&end_ns| now_ns >= end_ns),
            Limit::Requests(_) => None,
        }
    }

    /// Whether a request may become due then.
    fn may_begin(&self, due_ns: u64) -> bool {
        match self.terms.limit {
            Limit::Until(end_ns) => due_ns < end_ns,
            Limit::Requests(most) => self.results.scheduled < most,
        }
    }

    /// A request became due and the client sees it now.
    fn take_up(&mut self, due_ns: u64, now_ns: u64) {
        self.schedule(due_ns);
        if self.has_schedule() && self.counts(due_ns) {
            self.results.lag.record(now_ns - due_ns);
        }
    }

    /// Whether anything but a reply makes requests due.
    fn has_schedule(&self) -> bool {
        !matches!(self.demand, Demand::Closed { think_ns: 0, .. })
    }

    fn schedule(&mut self, due_ns: u64) {
        match self.counts(due_ns) {
            true => self.results.scheduled += 1,
            false => self.results.warmup += 1,
        }
    }

    /// The next arrival of an open loop.
    fn plan_arrival(&mut self) {
        let Demand::Open(schedule) = &mut self.demand else { return };
        let due_ns = self.terms.start_ns + schedule.next_ns();
        self.next_arrival_ns = self.may_begin(due_ns).then_some(due_ns);
    }

    /// A slot of a closed loop has its next request at `due_ns`.
    fn think(&mut self, slot: u32, due_ns: u64) {
        if self.may_begin(due_ns) {
            self.thinking.push(Reverse((due_ns, slot)));
        }
    }

    /// A slot has no request any more.
    fn free_slot(&mut self, slot: u32, ok: bool, now_ns: u64) {
        self.slots[slot as usize].state = State::Free;
        let Demand::Closed { think_ns, .. } = self.demand else {
            return self.free.push_back(slot);
        };
        match (ok, think_ns) {
            (true, 0) if self.may_begin(now_ns) => {
                self.ready.push_back((now_ns, slot));
                self.schedule(now_ns);
            }
            (true, 0) => {}
            (true, _) => self.think(slot, now_ns + think_ns),
            (false, _) => self.think(slot, now_ns + think_ns.max(RETRY_NS)),
        }
    }

    /// A right reply. In a window of time those count that come in it, whenever they were
    /// due: what is under way at its end, and missing, is made up for by what was at its
    /// beginning.
    fn reply(&mut self, due_ns: u64, now_ns: u64) {
        let is_in_window = match self.terms.limit {
            Limit::Requests(_) => self.counts(due_ns),
            Limit::Until(end_ns) => self.counts(now_ns) && now_ns < end_ns,
        };
        if !is_in_window {
            return;
        }
        let results = &mut self.results;
        results.replies_in_window += 1;
        let second = now_ns.saturating_sub(self.terms.count_from_ns) / 1_000_000_000;
        let second = usize::try_from(second).unwrap_or(usize::MAX);
        if results.per_second.len() <= second {
            results.per_second.resize(second + 1, 0);
        }
        results.per_second[second] += 1;
    }
}

impl Results {
    /// When the time ended in which requests could be due, or the last one ended: one that
    /// nobody answers is waited for too, and is in the times.
    pub(crate) fn end_ns(&self) -> u64 {
        self.until_ns.unwrap_or(self.last_end_ns)
    }

    /// A request that counts has ended.
    fn ended(&mut self, now_ns: u64) {
        self.last_end_ns = self.last_end_ns.max(now_ns);
    }

    fn new() -> Results {
        Results {
            scheduled: 0,
            outcomes: Outcomes::default(),
            unsent: 0,
            warmup: 0,
            late_replies: 0,
            replies_in_window: 0,
            last_end_ns: 0,
            first_sent_ns: None,
            last_right_ns: None,
            rounds: 0,
            until_ns: None,
            per_second: Vec::new(),
            from_due: Times::default(),
            from_sent: Times::default(),
            lag: Times::default(),
        }
    }
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
