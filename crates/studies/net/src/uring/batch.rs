//! Several sends that one io_uring_enter(2) hands over.
//!
//! On a stream a batch is a chain (`IOSQE_IO_LINK`, with `MSG_WAITALL` in each
//! send): the kernel begins a send when the one before it has gone whole, so
//! the bytes are in the order of the messages, and the next chain is handed over
//! when this one has its results. A chain that breaks, since a send was cut
//! short or refused, is gone on with where it ended, one send at a time.
//! Datagrams have no order to keep: batches of them are under way until the
//! depth is reached.
//!
//! Every send has an id of its own from when it is queued, and its message is
//! held from then on: until the result, and of a zero-copy send until the
//! notification.

use iolens_sys::errno::Errno;
use iolens_sys::io_uring::{Completed, Operation, SendRing};

use super::{Exchange, Sent, Uring, one};
use iolens_harness::op::{Op, Tally};
use iolens_harness::stream::Stream;
use iolens_harness::watch::Deadline;

/// What takes several sends together.
pub(super) trait Queue: Exchange {
    /// As [`SendRing::queue`].
    fn queue(&mut self, place: usize, message: usize, id: u32, linked: bool) -> Result<(), Errno>;

    /// As [`SendRing::submit`].
    fn submit(&mut self, want: u32) -> Result<(), Errno>;
}

impl<O: Operation> Queue for SendRing<'_, O> {
    #[inline]
    fn queue(&mut self, place: usize, message: usize, id: u32, linked: bool) -> Result<(), Errno> {
        SendRing::queue(self, place, message, id, linked)
    }

    #[inline]
    fn submit(&mut self, want: u32) -> Result<(), Errno> {
        SendRing::submit(self, want)
    }
}

/// How many sends go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Together {
    /// Sends that one call hands over.
    pub(super) batch: u32,
    /// Sends under way at once; the batch where they are linked.
    pub(super) depth: u32,
    /// Whether a batch is a chain.
    pub(super) linked: bool,
}

/// A send that was queued, and what became of it.
#[derive(Debug, Clone, Copy)]
struct Queued {
    message: usize,
    result: Option<Sent>,
}

/// A thread's ring that sends messages in batches.
pub(super) struct Batched<E> {
    /// The same ring for one send at a time, with all that is counted.
    pub(super) single: Uring<E>,
    pub(super) together: Together,
    /// By id, modulo their number, a power of two and at least the depth.
    sends: Box<[Queued]>,
    /// The oldest id whose result was not taken.
    first: u32,
    /// Sends that were queued and not handed over.
    queued: u32,
    /// Ids of sends that failed and notify all the same.
    pub(super) spent: Vec<u32>,
}

impl<E: Queue> Op for Batched<E> {
    #[inline(always)]
    fn message(&mut self) -> Result<(), Errno> {
        if self.queued == 0 && !self.has_room() {
            self.make_room()?;
        }
        let message = self.single.stream.turn();
        let id = self.single.flight.next_id();
        self.single.flight.reserve(message);
        let place = self.place(id);
        self.sends[place] = Queued { message, result: None };
        self.queued += 1;
        let is_last = self.queued == self.together.batch;
        let linked = self.together.linked && !is_last;
        self.single.exchange.queue(place, message, id, linked)?;
        if is_last { self.hand_over(self.together.depth - self.together.batch) } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<bool, Errno> {
        let any = self.under_way() > 0;
        if any {
            self.hand_over(0)?;
        }
        Ok(any)
    }

    fn stream(&self) -> &Stream {
        &self.single.stream
    }

    fn settle(&mut self) -> Result<(), Errno> {
        self.await_until(|own| own.single.flight.outstanding() == 0)?;
        Op::settle(&mut self.single)
    }

    fn idle(&mut self) -> Result<bool, Errno> {
        Op::idle(&mut self.single)
    }

    fn tally(&self) -> Tally {
        Op::tally(&self.single)
    }
}

impl<E: Queue> Batched<E> {
    pub(super) fn new(single: Uring<E>, together: Together) -> Batched<E> {
        // A message is in a batch once.
        let messages = u32::try_from(single.stream.ring.messages()).unwrap_or(u32::MAX);
        let batch = together.batch.min(messages);
        let depth = together.depth.min(messages).max(batch);
        let sends = vec![Queued { message: 0, result: None }; depth.next_power_of_two() as usize];
        Batched {
            first: single.flight.next_id(),
            single,
            together: Together { batch, depth, ..together },
            sends: sends.into_boxed_slice(),
            queued: 0,
            spent: Vec::with_capacity(depth as usize),
        }
    }

    #[inline]
    fn place(&self, id: u32) -> usize {
        id as usize & (self.sends.len() - 1)
    }

    /// Sends whose result was not taken, those that are only queued among them.
    #[inline]
    fn under_way(&self) -> u32 {
        self.single.flight.next_id().wrapping_sub(self.first)
    }

    /// Whether the messages of the next batch may be used again.
    #[inline]
    fn has_room(&self) -> bool {
        let Uring { flight, stream, .. } = &self.single;
        let held = |others| flight.holds(stream.ahead(others as usize));
        flight.has_room_for(self.together.batch) && !(0..self.together.batch).any(held)
    }

    /// Hands over what is queued, and waits until no more than so many sends are
    /// under way.
    #[inline]
    fn hand_over(&mut self, at_most: u32) -> Result<(), Errno> {
        self.queued = 0;
        let want = self.under_way().saturating_sub(at_most);
        self.single.exchange.submit(want)?;
        self.single.stream.tally.calls += 1;
        self.reap()?;
        self.take_results()?;
        if self.under_way() > at_most {
            self.await_until(|own| own.under_way() <= at_most)?;
        }
        Ok(())
    }

    /// Takes everything that has completed.
    #[inline]
    fn reap(&mut self) -> Result<(), Errno> {
        while let Some(completed) = self.single.exchange.completion() {
            match completed {
                Completed::Sent { id, result, notifies } => self.answered(id, result, notifies)?,
                Completed::Released { id, copied } => self.released(id, copied)?,
            }
        }
        Ok(())
    }

    #[inline]
    fn answered(&mut self, id: u32, result: Sent, notifies: bool) -> Result<(), Errno> {
        let send = &mut self.sends[id as usize & (self.sends.len() - 1)];
        if id.wrapping_sub(self.first) >= self.single.flight.next_id().wrapping_sub(self.first)
            || send.result.is_some()
        {
            return Err(Errno::EBADMSG);
        }
        send.result = Some(result);
        match (notifies, result) {
            (true, Ok(_)) => self.single.flight.confirm(),
            (true, Err(_)) => self.spent.push(id),
            (false, _) => self.single.flight.withdraw(id)?,
        }
        Ok(())
    }

    #[inline]
    fn released(&mut self, id: u32, copied: Option<bool>) -> Result<(), Errno> {
        match self.spent.iter().position(|spent| *spent == id) {
            None => self.single.flight.completed(one(id, copied)),
            Some(at) => {
                self.spent.swap_remove(at);
                self.single.flight.withdraw(id)
            }
        }
    }

    /// Counts the sends that have gone, in their order, up to the first without
    /// a result; one that has not gone whole is gone on with.
    #[inline]
    fn take_results(&mut self) -> Result<(), Errno> {
        let total = self.single.stream.ring.message_bytes();
        while self.under_way() > 0 {
            match self.sends[self.place(self.first)].result {
                None => return Ok(()),
                Some(Ok(bytes)) if bytes == total => {
                    self.single.stream.tally.bytes += total as u64;
                    self.single.stream.tally.messages += 1;
                    self.first = self.first.wrapping_add(1);
                }
                Some(_) => return self.mend(),
            }
        }
        Ok(())
    }

    /// Goes on behind the first send that has not gone whole: when all that is
    /// under way has its result, what is left of each goes by itself.
    #[cold]
    #[inline(never)]
    fn mend(&mut self) -> Result<(), Errno> {
        let (first, sends) = (self.first, self.under_way());
        let ids = move || (0..sends).map(move |step| first.wrapping_add(step));
        while ids().any(|id| self.sends[self.place(id)].result.is_none()) || !self.spent.is_empty()
        {
            self.wait(Deadline::after(self.single.stall_limit))?;
            self.reap()?;
        }
        let total = self.single.stream.ring.message_bytes();
        for id in ids() {
            let Queued { message, result } = self.sends[self.place(id)];
            match result.unwrap_or(Err(Errno::EBADMSG)) {
                // Behind the break of a chain nothing has begun.
                Ok(_) if self.together.linked && id != first => return Err(Errno::EBADMSG),
                Ok(bytes) if bytes == total => self.single.stream.tally.bytes += total as u64,
                Err(Errno::ECANCELED) => self.single.send_rest(message, Ok(0))?,
                result => self.single.send_rest(message, result)?,
            }
            self.single.stream.tally.messages += 1;
        }
        self.first = self.single.flight.next_id();
        Ok(())
    }

    /// Waits until the kernel has released the messages of the next batch.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) -> Result<(), Errno> {
        self.await_until(Self::has_room)
    }

    /// Takes what completes until there is enough. Nothing is queued.
    fn await_until(&mut self, enough: impl Fn(&Self) -> bool) -> Result<(), Errno> {
        loop {
            self.reap()?;
            self.take_results()?;
            if enough(self) {
                return Ok(());
            }
            self.wait(Deadline::after(self.single.stall_limit))?;
        }
    }

    /// Waits until something has completed.
    ///
    /// Errors: `EAGAIN` when the receiver took nothing for as long as the stall
    /// limit, `ETIMEDOUT` when only notifications were to come.
    fn wait(&mut self, deadline: Deadline) -> Result<(), Errno> {
        let sends = self.under_way();
        // The kernel goes on with sends in here.
        self.single.stream.tally.calls += u64::from(sends > 0);
        loop {
            match Exchange::wait(&mut self.single.exchange, deadline.left()) {
                Ok(true) => return Ok(()),
                Ok(false) if sends > 0 => return Err(Errno::EAGAIN),
                Ok(false) => return Err(Errno::ETIMEDOUT),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}
