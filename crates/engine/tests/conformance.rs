//! Every registry entry through the same checks: the right bytes in the right
//! order, counts that are true, nothing allocated inside a slice, nothing left
//! behind, and an end when the receiver ends, or takes nothing. A new entry is
//! covered without a word here; one that this kernel refuses is a skip with the
//! kernel's reason.
//!
//! One test function, because it counts the descriptors of the process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/support/skip.rs"]
mod skip;

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use iolens_engine::op::{Budget, Sender, Tally};
use iolens_engine::registry::{Ends, Entry, Link, REGISTRY, Setup, Shape};
use iolens_model::axes::Iovec;
use iolens_model::data_path::CallsPerMessage;
use iolens_sys::errno::Errno;
use iolens_sys::{ring, socket, tcp};

const MESSAGES: usize = 11;
const RING_MESSAGES: usize = 3;

/// Socket buffers: those that hold messages, and those in which only a part of
/// a large one finds room.
const BUFFER_BYTES: [usize; 2] = [256 << 10, 64 << 10];

/// How long nothing may move.
const STALL_LIMIT: Duration = Duration::from_secs(20);

fn shape(message_bytes: usize, fields: usize, iovec: Iovec) -> Shape {
    Shape { messages: RING_MESSAGES, message_bytes, fields, iovec }
}

/// The stream that `messages` messages from a ring of this shape are.
fn expected(shape: &Shape, messages: usize) -> Vec<u8> {
    let message = |index: usize| (0..shape.message_bytes).map(move |at| ring::content(index, at));
    (0..messages).flat_map(|i| message(i % shape.messages)).collect()
}

fn expected_calls(entry: &Entry, shape: &Shape, messages: u64) -> u64 {
    match entry.data_path.calls {
        CallsPerMessage::Fixed(calls) => u64::from(calls) * messages,
        CallsPerMessage::PerField => shape.fields.min(shape.message_bytes) as u64 * messages,
    }
}

/// Both ends of a TCP connection over loopback with buffers of this size. The
/// stall limit is the sender's.
fn connection(buffer_bytes: usize, stall_limit: Duration) -> (OwnedFd, OwnedFd) {
    let options = |stall_limit| tcp::Options {
        congestion: "reno".into(),
        buffer_bytes,
        nodelay: true,
        stall_limit,
    };
    let any = ([127, 0, 0, 1], 0).into();
    loop {
        let listener = tcp::Listener::open(&any, &options(STALL_LIMIT), 1).unwrap();
        let tx = tcp::connect_to(&listener.address().unwrap(), &options(stall_limit));
        match tx.and_then(|tx| Ok((tx, listener.accept()?))) {
            Ok(both) => return both,
            // The end of a ring is work that its thread is interrupted for, some
            // time later, and waits with a time limit do not go on by themselves.
            Err(error) => assert_eq!(error.errno, Errno::EINTR, "{error}"),
        }
    }
}

/// Sends two slices through a fresh connection and returns what arrived.
fn through_a_connection(entry: &Entry, shape: Shape, buffer_bytes: usize) -> Vec<u8> {
    let (tx, rx) = connection(buffer_bytes, STALL_LIMIT);
    let total = 2 * MESSAGES * shape.message_bytes;
    let reader = std::thread::spawn(move || {
        let (mut all, mut piece) = (Vec::with_capacity(total), vec![0; 64 << 10]);
        while let Ok(n @ 1..) = socket::recv(rx.as_fd(), &mut piece) {
            all.extend_from_slice(&piece[..n]);
        }
        all
    });
    let mut sender = (entry.open)(setup(Link::Socket(tx.as_fd()), shape)).unwrap();
    two_slices(entry, &shape, sender.as_mut(), buffer_bytes);
    drop(sender);
    drop(tx);
    reader.join().unwrap()
}

fn setup(link: Link<'_>, shape: Shape) -> Setup<'_> {
    Setup { link, shape, stall_limit: STALL_LIMIT }
}

/// Runs two slices and checks every count.
fn two_slices(entry: &Entry, shape: &Shape, sender: &mut dyn Sender, buffer_bytes: usize) {
    for slice in 1..=2u64 {
        sender.touch();
        let budget = Budget::messages(MESSAGES as u64, 1);
        let mut span = None;
        let allocated = allocation_counter::measure(|| {
            span = Some(sender.run(&budget).and_then(|span| sender.settle().map(|()| span)));
        });
        assert_eq!(allocated.count_total, 0, "{} allocates inside a slice", entry.id);
        let span = span.unwrap().unwrap();
        assert!(span.first_call_ns <= span.last_call_ns);
        let tally = sender.tally();
        check_zerocopy(entry, &tally);
        assert_eq!(tally.messages, slice * MESSAGES as u64, "{}: messages", entry.id);
        assert_eq!(tally.bytes, tally.messages * shape.message_bytes as u64, "{}: bytes", entry.id);
        let calls = expected_calls(entry, shape, tally.messages);
        // A message larger than the socket's buffer may take more than one, and
        // so may one whose waiting a completion ends.
        let large = 4 * shape.message_bytes > buffer_bytes;
        let woken = tally.zerocopy.map_or(0, |counts| counts.completions + counts.enobufs);
        let most = if large { u64::MAX } else { calls + woken };
        assert!((calls..=most).contains(&tally.calls), "{}: {tally:?}", entry.id);
    }
}

/// After a slice nothing is in flight, and over loopback all was copied.
fn check_zerocopy(entry: &Entry, tally: &Tally) {
    assert_eq!(tally.zerocopy.is_some(), entry.data_path.may_copy_late(), "{}", entry.id);
    if let Some(counts) = tally.zerocopy {
        assert_eq!(counts.completions, counts.sends, "{}: {counts:?}", entry.id);
        let all = counts.copied.is_none_or(|copied| copied == counts.completions);
        assert!(all, "{}: {counts:?}", entry.id);
        assert!(counts.sends + counts.enobufs <= tally.calls, "{}: {tally:?}", entry.id);
    }
}

/// Asks for messages one at a time and checks what comes.
fn by_request(entry: &Entry, shape: Shape) {
    const REQUESTS: usize = 5;
    let (tx, rx) = connection(BUFFER_BYTES[0], STALL_LIMIT);
    let asking = std::thread::spawn(move || {
        let (mut all, mut piece) = (Vec::new(), vec![0; 64 << 10]);
        for request in 1..=REQUESTS {
            socket::send(rx.as_fd(), &[1]).unwrap();
            while all.len() < request * shape.message_bytes {
                let n = socket::recv(rx.as_fd(), &mut piece).unwrap();
                assert_ne!(n, 0, "the stream ended");
                all.extend_from_slice(&piece[..n]);
            }
        }
        socket::send(rx.as_fd(), &[0]).unwrap();
        all
    });
    let mut sender = (entry.open)(setup(Link::Socket(tx.as_fd()), shape)).unwrap();
    let allocated = allocation_counter::measure(|| {
        sender.answer(tx.as_fd()).and_then(|_| sender.settle()).unwrap();
    });
    assert_eq!(allocated.count_total, 0, "{} allocates while it answers", entry.id);
    assert_eq!(sender.tally().messages, REQUESTS as u64, "{}", entry.id);
    check_zerocopy(entry, &sender.tally());
    assert_eq!(asking.join().unwrap(), expected(&shape, REQUESTS), "{}", entry.id);
}

/// What sending ends with when the receiver takes `taken` bytes of the first
/// message and then ends, or without an end to come takes nothing more.
fn broken_off(entry: &Entry, taken: usize, ends: bool) -> Errno {
    let stall_limit = if ends { STALL_LIMIT } else { Duration::from_millis(20) };
    let (tx, rx) = connection(BUFFER_BYTES[1], stall_limit);
    let held = std::thread::spawn(move || {
        let mut left = taken;
        while left > 0 {
            left -= socket::recv(rx.as_fd(), &mut vec![0; left.min(64 << 10)]).unwrap();
        }
        (!ends).then_some(rx)
    });
    // More than both buffers hold, and no more than may be locked anywhere.
    let shape = shape(1 << 20, 8, Iovec::PerMessage);
    let setup = Setup { link: Link::Socket(tx.as_fd()), shape, stall_limit };
    let mut sender = (entry.open)(setup).unwrap();
    let error = sender.run(&Budget::messages(MESSAGES as u64, 1)).unwrap_err();
    assert_eq!(sender.tally().messages, 0, "{}", entry.id);
    drop(sender);
    drop(held.join().unwrap());
    error
}

/// A receiver that ends in the middle of a message, and one that takes nothing.
fn ends_with_the_receiver(entry: &Entry) {
    let closed = broken_off(entry, 100_000, true);
    assert!([Errno::EPIPE, Errno::ECONNRESET].contains(&closed), "{}: {closed}", entry.id);
    let stalled = broken_off(entry, 100_000, false);
    assert!([Errno::EAGAIN, Errno::ETIMEDOUT].contains(&stalled), "{}: {stalled}", entry.id);
}

/// Whether this machine lets the entry be opened; a refusal is noted with its
/// reason.
fn is_there(entry: &Entry) -> bool {
    let (tx, _rx) = connection(BUFFER_BYTES[0], STALL_LIMIT);
    let link = match entry.ends {
        Ends::Pair => Link::Socket(tx.as_fd()),
        Ends::SenderOnly => Link::None,
    };
    let opened = (entry.open)(setup(link, shape(64, 8, Iovec::PerMessage)));
    let Err(why) = opened.map(drop) else { return true };
    let refusals = [Errno::EOPNOTSUPP, Errno::ENOPROTOOPT, Errno::ENOSYS, Errno::EPERM];
    assert!(refusals.contains(&why.errno), "{}: {why}", entry.id);
    skip::note("every_entry_conforms", &format!("{}: {why}", entry.id));
    false
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a bound on the test itself, not a measurement")]
fn every_entry_conforms() {
    for entry in REGISTRY.iter().filter(|entry| is_there(entry)) {
        let before = open_descriptors();
        for (message_bytes, fields) in
            [(1, 8), (7, 8), (64, 1), (1000, 8), (4095, 64), (65_536, 8), ((1 << 20) + 1, 8)]
        {
            for iovec in [Iovec::PerMessage, Iovec::Prepared] {
                let shape = shape(message_bytes, fields, iovec);
                match entry.ends {
                    Ends::Pair => {
                        for buffer_bytes in BUFFER_BYTES {
                            let arrived = through_a_connection(entry, shape, buffer_bytes);
                            let sent = expected(&shape, 2 * MESSAGES);
                            let at = arrived.iter().zip(&sent).position(|(a, b)| a != b);
                            assert_eq!((arrived.len(), at), (sent.len(), None), "{}", entry.id);
                        }
                        by_request(entry, shape);
                    }
                    Ends::SenderOnly => {
                        let mut sender = (entry.open)(setup(Link::None, shape)).unwrap();
                        two_slices(entry, &shape, sender.as_mut(), BUFFER_BYTES[0]);
                    }
                }
            }
        }
        if entry.ends == Ends::Pair {
            ends_with_the_receiver(entry);
        }
        assert_eq!(open_descriptors(), before, "{} leaves descriptors behind", entry.id);
        let begin = Instant::now();
        let small = shape(64, 8, Iovec::PerMessage);
        if entry.ends == Ends::Pair {
            through_a_connection(entry, small, BUFFER_BYTES[0]);
        }
        // Generous beyond 50 ms: the machine may be busy with other tests.
        assert!(begin.elapsed() < Duration::from_secs(2), "{} is slow at smoke size", entry.id);
    }
}
