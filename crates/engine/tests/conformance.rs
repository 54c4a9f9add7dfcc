//! Every registry entry through the same checks: the right bytes in the right
//! order, counts that are true, nothing allocated inside a slice, nothing left
//! behind. A new entry is covered without a word here.
//!
//! One test function, because it counts the descriptors of the process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use iolens_engine::Interrupts;
use iolens_engine::op::{Budget, Sender, Tally};
use iolens_engine::registry::{Ends, Entry, Link, REGISTRY, Setup, Shape};
use iolens_model::axes::Iovec;
use iolens_model::data_path::CallsPerMessage;
use iolens_sys::errno::Errno;
use iolens_sys::{ring, signal, socket, tcp};

const MESSAGES: usize = 11;
const RING_MESSAGES: usize = 3;

fn shape(message_bytes: usize, fields: usize, iovec: Iovec) -> Shape {
    Shape { messages: RING_MESSAGES, message_bytes, fields, iovec }
}

/// Compares a stream, byte by byte, with what `messages` messages from a ring of
/// this shape are.
fn check_stream(entry: &Entry, arrived: &[u8], shape: &Shape, messages: usize) {
    assert_eq!(arrived.len(), messages * shape.message_bytes, "{}: bytes", entry.id);
    let message = |index: usize| (0..shape.message_bytes).map(move |at| ring::content(index, at));
    let ring: Vec<Vec<u8>> = (0..shape.messages).map(|index| message(index).collect()).collect();
    for (index, message) in arrived.chunks(shape.message_bytes).enumerate() {
        let expected = &ring[index % shape.messages];
        let at = message.iter().zip(expected).position(|(a, b)| a != b);
        assert_eq!(at, None, "{}: message {index} of {} bytes", entry.id, shape.message_bytes);
    }
}

fn expected_calls(entry: &Entry, shape: &Shape, messages: u64) -> u64 {
    match entry.data_path.calls {
        CallsPerMessage::Fixed(calls) => u64::from(calls) * messages,
        CallsPerMessage::PerField => shape.fields.min(shape.message_bytes) as u64 * messages,
    }
}

/// What is in a message's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A socket buffer with room for most messages.
    Wide,
    /// One with room for few bytes, and a receiver that interrupts the sender,
    /// which waits for room, each time it is about to make some: calls end with
    /// a short count or with `EINTR`.
    /// A buffer that is smaller still drops segments, whose memory is more than
    /// their bytes, and then TCP waits for its timer.
    Narrow,
}

/// Both ends of a TCP connection over loopback.
fn connection(way: Way) -> (std::os::fd::OwnedFd, std::os::fd::OwnedFd) {
    let options = tcp::Options {
        congestion: "reno".into(),
        buffer_bytes: if way == Way::Wide { 256 << 10 } else { 32 << 10 },
        nodelay: true,
        stall_limit: Duration::from_secs(20),
    };
    let listener = tcp::Listener::open(&([127, 0, 0, 1], 0).into(), &options, 1).unwrap();
    let tx = tcp::connect_to(&listener.address().unwrap(), &options).unwrap();
    (tx, listener.accept().unwrap())
}

/// Sends two slices through a fresh connection and returns what arrived.
fn through_a_connection(entry: &Entry, shape: Shape, way: Way) -> Vec<u8> {
    let (tx, rx) = connection(way);
    let total = 2 * MESSAGES * shape.message_bytes;
    let interrupt = (way == Way::Narrow).then(signal::this_thread);
    let reader = std::thread::spawn(move || {
        let (mut all, mut piece) = (Vec::with_capacity(total), vec![0; 64 << 10]);
        loop {
            interrupt.map(signal::interrupt).transpose().unwrap();
            match socket::recv(rx.as_fd(), &mut piece).unwrap() {
                0 => return all,
                n => all.extend_from_slice(&piece[..n]),
            }
        }
    });
    let mut sender = (entry.open)(setup(Link::Socket(tx.as_fd()), shape)).unwrap();
    two_slices(entry, &shape, way, sender.as_mut());
    tcp::finish_sending(tx.as_fd()).unwrap();
    // Not before all was read: what is sent by reference is still the sender's.
    let arrived = reader.join().unwrap();
    drop(sender);
    arrived
}

fn setup(link: Link<'_>, shape: Shape) -> Setup<'_> {
    Setup { link, shape, stall_limit: Duration::from_secs(20) }
}

/// Runs two slices and checks every count.
fn two_slices(entry: &Entry, shape: &Shape, way: Way, sender: &mut dyn Sender) {
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
        // A message larger than the socket's buffer may take more than one call.
        let large = shape.message_bytes > 64 << 10;
        let as_many = match way {
            Way::Wide => tally.calls == calls || large && tally.calls > calls,
            Way::Narrow => tally.calls > calls || !large && tally.calls == calls,
        };
        assert!(as_many, "{}: {tally:?}", entry.id);
    }
}

/// After a slice nothing is in flight, and over loopback all was copied.
fn check_zerocopy(entry: &Entry, tally: &Tally) {
    assert_eq!(tally.zerocopy.is_some(), entry.data_path.may_copy_late(), "{}", entry.id);
    if let Some(counts) = tally.zerocopy {
        assert_eq!(counts.completions, counts.sends, "{}: {counts:?}", entry.id);
        assert_eq!(counts.copied_share(), Some(1.0), "{}: {counts:?}", entry.id);
        assert!(counts.sends + counts.enobufs <= tally.calls, "{}: {tally:?}", entry.id);
    }
}

/// Asks for messages one at a time and checks what comes.
fn by_request(entry: &Entry, shape: Shape) {
    const REQUESTS: usize = 5;
    let (tx, rx) = connection(Way::Wide);
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
    check_stream(entry, &asking.join().unwrap(), &shape, REQUESTS);
}

/// Sends two slices and compares what arrived, byte by byte.
fn check_arrival(entry: &Entry, shape: Shape, way: Way) {
    let arrived = through_a_connection(entry, shape, way);
    check_stream(entry, &arrived, &shape, 2 * MESSAGES);
}

/// A peer that reads nothing, and one that has gone: an error, in time.
fn fails_in_time(entry: &Entry) {
    let large = shape(1 << 20, 8, Iovec::PerMessage);
    let result = |fd: BorrowedFd<'_>| {
        let limit = Duration::from_millis(20);
        tcp::limit_waits(fd, limit).unwrap();
        let setup = Setup { stall_limit: limit, ..setup(Link::Socket(fd), large) };
        let mut sender = (entry.open)(setup).unwrap();
        sender.run(&Budget::messages(20, 1)).map(|_| ()).unwrap_err()
    };
    let (tx, rx) = connection(Way::Wide);
    let errno = result(tx.as_fd());
    assert!([Errno::EAGAIN, Errno::ETIMEDOUT].contains(&errno), "{}: {errno}", entry.id);
    drop(rx);
    let (tx, rx) = connection(Way::Wide);
    drop(rx);
    let errno = result(tx.as_fd());
    let of_the_peer = [Errno::EPIPE, Errno::ECONNRESET, Errno::ENOTCONN];
    assert!(of_the_peer.contains(&errno), "{}: {errno}", entry.id);
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a bound on the test itself, not a measurement")]
fn every_entry_conforms() {
    let _caught = Interrupts::catch().unwrap();
    for entry in REGISTRY {
        let before = open_descriptors();
        for (message_bytes, fields) in
            [(1, 8), (7, 8), (64, 1), (1000, 8), (4095, 64), (65_536, 8), ((1 << 20) + 1, 8)]
        {
            for iovec in [Iovec::PerMessage, Iovec::Prepared] {
                let shape = shape(message_bytes, fields, iovec);
                match entry.ends {
                    Ends::Pair => {
                        check_arrival(entry, shape, Way::Wide);
                        by_request(entry, shape);
                    }
                    Ends::SenderOnly => {
                        let mut sender = (entry.open)(setup(Link::None, shape)).unwrap();
                        two_slices(entry, &shape, Way::Wide, sender.as_mut());
                    }
                }
            }
        }
        if entry.ends == Ends::Pair {
            for message_bytes in [1, 4095, 65_536, (1 << 20) + 1] {
                check_arrival(entry, shape(message_bytes, 8, Iovec::PerMessage), Way::Narrow);
            }
            fails_in_time(entry);
        }
        assert_eq!(open_descriptors(), before, "{} leaves descriptors behind", entry.id);
        let begin = Instant::now();
        let small = shape(64, 8, Iovec::PerMessage);
        if entry.ends == Ends::Pair {
            through_a_connection(entry, small, Way::Wide);
        }
        // Generous beyond 50 ms: the machine may be busy with other tests.
        assert!(begin.elapsed() < Duration::from_secs(2), "{} is slow at smoke size", entry.id);
    }
}
