//! The loop that sends. Dispatch is erased once per slice, at [`Sender::run`];
//! inside, [`drive_batch`] is monomorphic and allocates, locks and logs
//! nothing.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use iolens_model::copy::ProgramStart;
use iolens_model::trial::{Slice, Trial, Work};
use iolens_sys::errno::Errno;
use iolens_sys::{clock, socket};

use crate::stream::Stream;
pub use crate::stream::{Children, Tally};

/// The work of one slice, shared by the arm's threads: a budget of messages
/// taken in batches, so that a thread which lost its CPU does not hold up the
/// slice, or a point in time.
#[derive(Debug)]
pub struct Budget {
    remaining: AtomicU64,
    batch: u64,
    /// Set when the slice begins; `u64::MAX` for a budget of messages.
    deadline_ns: AtomicU64,
    window_ns: Option<u64>,
}

/// A slice's messages are taken in about this many pieces by each thread: few
/// enough to cost nothing, many enough that threads end together.
const BATCHES_PER_THREAD: u64 = 32;

/// No batch is longer, so that a long slice of few threads still ends
/// together and a window closes in time.
const BATCH_MESSAGES_MAX: u64 = 1024;

/// Messages that take long enough that reading the clock costs nothing.
fn piece(message_bytes: u64) -> u64 {
    const PIECE_BYTES: u64 = 256 << 10;
    (PIECE_BYTES / message_bytes.max(1)).max(1)
}

impl Budget {
    /// The work of a slice.
    pub fn of(trial: &Trial, slice: &Slice) -> Budget {
        match slice.work {
            Work::Messages(messages) => Budget::messages(messages, trial.cell.threads),
            Work::Window(window) => Budget::window(window.0, trial.cell.size.0),
        }
    }

    /// A budget of `messages` for `threads` threads.
    pub fn messages(messages: u64, threads: u32) -> Budget {
        let batches = match threads {
            // One thread shares with nobody: taking a batch would be in each call of a burst.
            0 | 1 => 1,
            several => u64::from(several) * BATCHES_PER_THREAD,
        };
        Budget {
            remaining: AtomicU64::new(messages),
            batch: (messages / batches).clamp(1, BATCH_MESSAGES_MAX),
            deadline_ns: AtomicU64::new(u64::MAX),
            window_ns: None,
        }
    }

    /// The same in batches that end soon enough for a user who wants it to stop.
    #[must_use]
    pub fn in_pieces(self, message_bytes: u64) -> Budget {
        Budget { batch: self.batch.min(piece(message_bytes)), ..self }
    }

    /// As many batches of messages of `message_bytes` as begin within
    /// `window_ns` of the first call of the first thread.
    pub fn window(window_ns: u64, message_bytes: u64) -> Budget {
        Budget {
            remaining: AtomicU64::new(u64::MAX),
            batch: piece(message_bytes).min(BATCH_MESSAGES_MAX / 4),
            deadline_ns: AtomicU64::new(u64::MAX),
            window_ns: Some(window_ns),
        }
    }

    /// Says that a thread makes its first call now; the first one to say so
    /// starts the window.
    pub fn begin(&self, now_ns: u64) {
        if let Some(window_ns) = self.window_ns {
            // Threads agree on the earliest start; no other memory hangs on it.
            self.deadline_ns.fetch_min(now_ns + window_ns, Ordering::Relaxed);
        }
    }

    /// Gives out nothing more.
    pub fn stop(&self) {
        // As above: threads see it with their next batch.
        self.remaining.store(0, Ordering::Relaxed);
        self.deadline_ns.store(0, Ordering::Relaxed);
    }

    /// The next batch, or `None` when the slice's work is given out.
    #[inline]
    pub fn take(&self) -> Option<u64> {
        if self.window_ns.is_some() {
            let open = clock::monotonic_ns() < self.deadline_ns.load(Ordering::Relaxed);
            return open.then_some(self.batch);
        }
        let batch = self.batch;
        // Relaxed: the number is all that threads exchange here.
        self.remaining
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                (left > 0).then(|| left.saturating_sub(batch))
            })
            .ok()
            .map(|left| left.min(batch))
    }
}

/// Why an arm cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What was tried, on what, and what the system said.
    pub what: String,
    /// Whether it cannot be had here at all: nothing has failed then.
    pub is_refused: bool,
}

impl Trouble {
    /// It was tried and failed.
    pub fn failed(what: impl Into<String>) -> Trouble {
        Trouble { what: what.into(), is_refused: false }
    }

    /// It cannot be had here.
    pub fn refused(what: impl Into<String>) -> Trouble {
        Trouble { what: what.into(), is_refused: true }
    }
}

/// When a thread's sending began and ended, on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Just before the first call.
    pub first_call_ns: u64,
    /// Just after the last one returned.
    pub last_call_ns: u64,
}

impl Span {
    /// Nothing was called yet.
    pub fn none() -> Span {
        Span { first_call_ns: 0, last_call_ns: 0 }
    }

    /// A call is about to be made.
    #[inline]
    pub fn begin(&mut self) {
        if self.first_call_ns == 0 {
            self.first_call_ns = clock::monotonic_ns();
        }
    }

    /// The last call has returned. Without any call the span is a point.
    pub fn end(mut self) -> Span {
        self.begin();
        Span { last_call_ns: clock::monotonic_ns(), ..self }
    }
}

/// What something is, with its unit, and its value.
pub type Fact = (&'static str, String);

/// One thread's end of one arm: erased, one virtual call per slice.
pub trait Sender: Send {
    /// Sends until the budget is used up.
    ///
    /// Errors: the first call that failed for good; `EAGAIN` when the
    /// receiver took nothing for as long as the stall limit.
    fn run(&mut self, budget: &Budget) -> Result<Span, Errno>;

    /// Answers every request that comes over `requests` with one message,
    /// until the byte comes that ends the slice.
    ///
    /// Errors: as [`Self::run`]; `ENODATA` when the requesting end has gone;
    /// `EOPNOTSUPP` from what nobody asks for anything.
    fn answer(&mut self, _requests: BorrowedFd<'_>) -> Result<Span, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Waits until the kernel has released everything that was sent, within
    /// the slice's clock; at once where nothing is kept.
    ///
    /// Errors: `ETIMEDOUT` when it did not within the stall limit.
    fn settle(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// Waits until nothing of the kernel's goes on for it, so that it spends no CPU time in
    /// the slices of others; after a slice and outside of its clock. Whether there is
    /// anything that could, which is the same for all threads of an arm.
    ///
    /// Errors: `ETIMEDOUT` when something still does.
    fn idle(&mut self) -> Result<bool, Errno> {
        Ok(false)
    }

    /// Brings the memory that is sent from into the cache, outside the clock; nothing
    /// where that is no ring of ours, as with files.
    fn touch(&mut self) {}

    /// What was done so far.
    fn tally(&self) -> Tally;

    /// Looks whether what the last slice moved is where it belongs, outside of every
    /// clock; for who can tell.
    ///
    /// Errors: what is not.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Gets ready for a slice of so many messages, outside of its clock.
    ///
    /// Errors: why there can be no such slice.
    fn prepare(&mut self, _messages: u64) -> Result<(), Trouble> {
        Ok(())
    }

    /// Looks at what a slice has left, and takes it away, outside of its clock; the
    /// tally is right only afterwards.
    ///
    /// Errors: what it left is not what it should be.
    fn conclude(&mut self) -> Result<(), Trouble> {
        Ok(())
    }

    /// What the error of [`Self::run`] was, in words; `None` where the number says it all.
    fn explain(&mut self) -> Option<Trouble> {
        None
    }

    /// What was found or arranged when it was opened and a reader of its
    /// numbers should know.
    fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }

    /// What starting its program took; `None` for arms that start none.
    fn start(&self) -> Option<ProgramStart> {
        None
    }
}

/// One message of one primitive; what a file in `primitives` implements.
pub trait Op: Send {
    /// Sends the next message of the stream, whole, and counts it; or keeps it
    /// for [`Self::flush`] to send.
    ///
    /// Implementations are inlined by force: two loops use them, so the compiler would call them,
    /// which took 15 to 50 ns per message (Xeon, sink).
    fn message(&mut self) -> Result<(), Errno>;

    /// Sends what was put off until there is more of it; returns whether there
    /// was anything.
    #[inline]
    fn flush(&mut self) -> Result<bool, Errno> {
        Ok(false)
    }

    /// What is sent.
    fn stream(&self) -> &Stream;

    /// As [`Sender::settle`]; sends that copy have nothing to wait for.
    fn settle(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    /// As [`Sender::idle`].
    fn idle(&mut self) -> Result<bool, Errno> {
        Ok(false)
    }

    /// As [`Sender::tally`].
    fn tally(&self) -> Tally {
        self.stream().tally
    }

    /// As [`Sender::facts`].
    fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }

    /// As [`Sender::touch`]; more than the ring for who keeps a copy.
    fn touch(&mut self) {
        let _ = self.stream().ring.touch();
    }
}

impl<O: Op> Sender for O {
    fn run(&mut self, budget: &Budget) -> Result<Span, Errno> {
        let span = drive_batch(|| self.message(), budget)?;
        Ok(if self.flush()? { span.end() } else { span })
    }

    fn answer(&mut self, requests: BorrowedFd<'_>) -> Result<Span, Errno> {
        drive_answers(|| self.message().and_then(|()| self.flush().map(drop)), requests)
    }

    fn settle(&mut self) -> Result<(), Errno> {
        Op::settle(self)
    }

    fn idle(&mut self) -> Result<bool, Errno> {
        Op::idle(self)
    }

    fn touch(&mut self) {
        Op::touch(self);
    }

    fn tally(&self) -> Tally {
        Op::tally(self)
    }

    fn facts(&self) -> Vec<Fact> {
        Op::facts(self)
    }
}

/// The byte that asks for a message.
pub const REQUEST: u8 = 1;

/// The byte that ends a slice of requests.
pub const NO_MORE: u8 = 0;

/// The loop of the answering end: a byte comes, a message goes.
///
/// Errors: as [`Sender::answer`].
#[inline(never)]
pub fn drive_answers(
    mut message: impl FnMut() -> Result<(), Errno>,
    requests: BorrowedFd<'_>,
) -> Result<Span, Errno> {
    let mut span = Span::none();
    let mut byte = [0];
    loop {
        match socket::recv(requests, &mut byte) {
            Ok(0) => return Err(Errno::ENODATA),
            Ok(_) if byte == [REQUEST] => {}
            Ok(_) => return Ok(span.end()),
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(errno),
        }
        span.begin();
        message()?;
    }
}

/// The batch loop: two timestamps, and between them nothing but messages.
///
/// Errors: as [`Sender::run`].
#[inline(never)]
pub fn drive_batch(
    mut message: impl FnMut() -> Result<(), Errno>,
    budget: &Budget,
) -> Result<Span, Errno> {
    let first_call_ns = clock::monotonic_ns();
    budget.begin(first_call_ns);
    while let Some(messages) = budget.take() {
        for _ in 0..messages {
            message()?;
        }
    }
    Ok(Span { first_call_ns, last_call_ns: clock::monotonic_ns() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(budget: &Budget) -> u64 {
        std::iter::from_fn(|| budget.take()).sum()
    }

    #[test]
    fn a_budget_is_given_out_exactly_once() {
        for (messages, threads) in [(1, 1), (4, 8), (1000, 3), (12_345, 4)] {
            assert_eq!(drain(&Budget::messages(messages, threads)), messages);
            let shared = Budget::messages(messages, threads);
            let total: u64 = std::thread::scope(|scope| {
                let parts: Vec<_> = (0..threads).map(|_| scope.spawn(|| drain(&shared))).collect();
                parts.into_iter().map(|part| part.join().unwrap()).sum()
            });
            assert_eq!(total, messages);
        }
    }

    #[test]
    fn one_thread_takes_a_burst_at_once() {
        assert_eq!(Budget::messages(10, 1).take(), Some(10));
        assert_eq!(Budget::messages(5000, 1).take(), Some(BATCH_MESSAGES_MAX));
        assert_eq!(Budget::messages(640, 2).take(), Some(10));
        assert_eq!(Budget::messages(640, 1).in_pieces(64 << 10).take(), Some(4));
        assert_eq!(Budget::messages(640, 1).in_pieces(64 << 20).take(), Some(1));
    }

    #[test]
    fn a_window_closes() {
        let budget = Budget::window(1_000_000, 64 << 10);
        let start = clock::monotonic_ns();
        budget.begin(start);
        assert_eq!(budget.take(), Some(4));
        while budget.take().is_some() {}
        assert!(clock::monotonic_ns() >= start + 1_000_000);
    }

    #[test]
    fn what_is_stopped_gives_out_nothing_more() {
        for budget in [Budget::messages(1 << 20, 1), Budget::window(u64::MAX / 2, 1)] {
            assert!(budget.take().is_some());
            budget.stop();
            budget.begin(clock::monotonic_ns());
            assert_eq!(budget.take(), None);
        }
    }
}
