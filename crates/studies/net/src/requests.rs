//! The requesting end of mode `rr`: a byte goes out, a message comes back,
//! and the time between is recorded; one request in flight per connection.
//! This end holds the clock of the slice, and the budget of its threads.

use std::os::fd::BorrowedFd;

use iolens_sys::clock;
use iolens_sys::errno::Errno;

use crate::lane;
use crate::take::{Take, Taken};
use iolens_harness::op::{Budget, NO_MORE, REQUEST, Span, Tally};
use iolens_harness::stream::Times;

/// What one thread did in a slice.
pub struct Exchanged {
    pub tally: Tally,
    /// Bytes that were mapped; `None` for a receiver that maps none.
    pub mapped_bytes: Option<u64>,
    pub span: Span,
}

/// Asks over `requests` for messages until the budget is used up, then says that there will
/// be no more. `times` is `None` in slices that do not count.
///
/// Errors: of send(2) and of the receiver; `ENODATA` when the answering end has gone.
pub(crate) fn exchange<T: Take>(
    receiver: &mut T,
    requests: BorrowedFd<'_>,
    budget: &Budget,
    message_bytes: usize,
    mut times: Option<&mut Times>,
) -> Result<Exchanged, Errno> {
    let (mut tally, mut mapped) = (Tally::default(), 0);
    let mut span = Span::none();
    while let Some(messages) = budget.take() {
        for _ in 0..messages {
            let begin_ns = clock::monotonic_ns();
            if span.first_call_ns == 0 {
                span.first_call_ns = begin_ns;
                budget.begin(begin_ns);
            }
            lane::send(requests, REQUEST)?;
            mapped += receive_message(receiver, message_bytes, &mut tally)?;
            span.last_call_ns = clock::monotonic_ns();
            if let Some(times) = times.as_deref_mut() {
                times.record(span.last_call_ns - begin_ns);
            }
        }
    }
    lane::send(requests, NO_MORE)?;
    Ok(Exchanged { tally, mapped_bytes: T::MAPS.then_some(mapped), span })
}

/// Receives one message whole; how many bytes of it were mapped. No byte of
/// another one can be there: it has not been asked for.
fn receive_message(
    receiver: &mut impl Take,
    message_bytes: usize,
    tally: &mut Tally,
) -> Result<u64, Errno> {
    let (mut missing, mut mapped) = (message_bytes, 0);
    while missing > 0 {
        match receiver.take() {
            Ok(Taken { bytes: 0, .. }) => return Err(Errno::ENODATA),
            Ok(taken) if taken.bytes > missing => return Err(Errno::EMSGSIZE),
            Ok(taken) => {
                missing -= taken.bytes;
                tally.calls += u64::from(taken.calls);
                tally.bytes += taken.bytes as u64;
                mapped += taken.mapped as u64;
            }
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    tally.messages += 1;
    Ok(mapped)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use iolens_sys::socket;

    use super::*;
    use crate::receivers::Recv;

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
        let mut times = Times::default();
        let budget = Budget::messages(50, 1);
        let mut recv = Recv::one(near.as_fd(), 4096);
        let done = exchange(&mut recv, near.as_fd(), &budget, 1000, Some(&mut times)).unwrap();
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
        let mut times = Times::default();
        let budget = Budget::messages(40, 1);
        let mut recv = Recv::one(near.as_fd(), 64);
        exchange(&mut recv, near.as_fd(), &budget, 10, Some(&mut times)).unwrap();
        answering.join().unwrap();
        let histogram = times.histogram();
        assert!(histogram.buckets[0].0 >= DELAY_NS, "{histogram:?}");
    }
}
