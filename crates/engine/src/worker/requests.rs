//! The requesting end of mode `rr`: a byte goes out, a message comes back,
//! and the time between is recorded; one request in flight per connection.
//! This end holds the clock of the slice, and the budget of its threads.

use std::os::fd::BorrowedFd;

use hdrhistogram::Histogram as Recorder;
use iolens_model::latency::Histogram;
use iolens_sys::errno::Errno;
use iolens_sys::{clock, socket};

use super::link;
use crate::op::{Budget, NO_MORE, REQUEST, Span, Tally};

/// Longest time that is told apart from longer ones: any stall limit is
/// shorter, or the trial has failed.
const LONGEST_NS: u64 = 60_000_000_000;

/// Times of one arm and thread. All of its memory is there before the first
/// slice.
pub(crate) struct Times(Recorder<u64>);

impl Times {
    /// Room for times from 1 ns to a minute with three significant digits.
    pub(crate) fn new() -> Times {
        // The bounds are constants that the recorder accepts.
        Times(Recorder::new_with_bounds(1, LONGEST_NS, 3).unwrap_or_else(|_| unreachable!()))
    }

    /// What was recorded, bucket by bucket.
    pub(crate) fn histogram(&self) -> Histogram {
        let buckets = self.0.iter_recorded();
        Histogram {
            buckets: buckets
                .map(|b| (b.value_iterated_to(), b.count_since_last_iteration()))
                .collect(),
        }
    }
}

/// What one thread did in a slice.
pub(crate) struct Exchanged {
    pub(crate) tally: Tally,
    pub(crate) span: Span,
}

/// Asks for messages until the budget is used up, then says that there will
/// be no more. `times` is null in slices that do not count.
///
/// Errors: of send(2) and recv(2); `ENODATA` when the answering end has gone.
pub(crate) fn exchange(
    fd: BorrowedFd<'_>,
    budget: &Budget,
    message_bytes: usize,
    buffer: &mut [u8],
    mut times: Option<&mut Times>,
) -> Result<Exchanged, Errno> {
    let mut tally = Tally::default();
    let mut span = Span::none();
    while let Some(messages) = budget.take() {
        for _ in 0..messages {
            let begin_ns = clock::monotonic_ns();
            if span.first_call_ns == 0 {
                span.first_call_ns = begin_ns;
                budget.begin(begin_ns);
            }
            link::send(fd, REQUEST)?;
            receive_message(fd, message_bytes, buffer, &mut tally)?;
            span.last_call_ns = clock::monotonic_ns();
            if let Some(Times(times)) = times.as_deref_mut() {
                times.saturating_record(span.last_call_ns - begin_ns);
            }
        }
    }
    link::send(fd, NO_MORE)?;
    Ok(Exchanged { tally, span })
}

/// Receives one message whole. No byte of another one can be there: it has
/// not been asked for.
fn receive_message(
    fd: BorrowedFd<'_>,
    message_bytes: usize,
    buffer: &mut [u8],
    tally: &mut Tally,
) -> Result<(), Errno> {
    let mut missing = message_bytes;
    while missing > 0 {
        match socket::recv(fd, buffer) {
            Ok(0) => return Err(Errno::ENODATA),
            Ok(n) if n > missing => return Err(Errno::EMSGSIZE),
            Ok(n) => {
                missing -= n;
                tally.calls += 1;
                tally.bytes += n as u64;
            }
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    tally.messages += 1;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn each_request_is_one_recorded_time() {
        let (near, far) = UnixStream::pair().unwrap();
        let answering = std::thread::spawn(move || {
            let mut answered = 0;
            let mut byte = [0];
            while socket::recv(far.as_fd(), &mut byte) == Ok(1) && byte == [REQUEST] {
                // In two pieces, as a large message may come.
                socket::send(far.as_fd(), &[7; 600]).unwrap();
                socket::send(far.as_fd(), &[7; 400]).unwrap();
                answered += 1;
            }
            answered
        });
        let mut times = Times::new();
        let budget = Budget::messages(50, 1);
        let mut buffer = [0; 4096];
        let done = exchange(near.as_fd(), &budget, 1000, &mut buffer, Some(&mut times)).unwrap();
        assert_eq!(answering.join().unwrap(), 50);
        assert_eq!((done.tally.messages, done.tally.bytes), (50, 50_000));
        let histogram = times.histogram();
        assert_eq!(histogram.total(), 50);
        let sum = histogram.mean_ns().unwrap() * 50.0;
        let span = done.span.last_call_ns - done.span.first_call_ns;
        assert!(sum <= span as f64 * 1.002, "{sum} ns of round trips in {span} ns");
    }

    #[test]
    fn an_injected_delay_reads_as_itself() {
        // Answers come 2 ms after their request: no time may be shorter, and
        // the median is that, give or take what a busy machine adds.
        const DELAY_NS: u64 = 2_000_000;
        let (near, far) = UnixStream::pair().unwrap();
        let answering = std::thread::spawn(move || {
            let mut byte = [0];
            while socket::recv(far.as_fd(), &mut byte) == Ok(1) && byte == [REQUEST] {
                let due_ns = clock::monotonic_ns() + DELAY_NS;
                while clock::monotonic_ns() < due_ns {}
                socket::send(far.as_fd(), &[7; 10]).unwrap();
            }
        });
        let mut times = Times::new();
        let budget = Budget::messages(40, 1);
        exchange(near.as_fd(), &budget, 10, &mut [0; 64], Some(&mut times)).unwrap();
        answering.join().unwrap();
        let histogram = times.histogram();
        assert!(histogram.buckets[0].0 >= DELAY_NS, "{histogram:?}");
    }
}
