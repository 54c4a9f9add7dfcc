//! Every registry entry and every bare loop through the same checks: the right bytes in the right
//! order, counts that are true, nothing allocated inside a slice, nothing left
//! behind. A new entry is covered without a word here.
//!
//! One test function, because it counts the descriptors of the process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../../tests/support/skip.rs"]
mod skip;

use std::time::{Duration, Instant};

use iolens_harness::op::{Budget, Sender, Tally};
use iolens_model::axes::Iovec;
use iolens_model::data_path::CallsPerMessage;
use iolens_model::family::Family;
use iolens_model::transport::Transport;
use iolens_model::tuning::Tuning;
use iolens_net::entry::{Ends, Entry, Link, Setup, Shape};
use iolens_net::lane::{self, Lane};
use iolens_net::registry::all;
use iolens_sys::errno::Errno;
use iolens_sys::signal::Interrupts;
use iolens_sys::{pipe, ring, signal, socket, tcp};

const MESSAGES: usize = 11;
const RING_MESSAGES: usize = 5;

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

fn expected_calls(entry: &Entry, shape: &Shape, tuning: Tuning, messages: u64) -> u64 {
    if entry.uses_a_ring() {
        // Each slice ends with what is left.
        let slices = messages / MESSAGES as u64;
        assert!(tuning.uring_batch as usize <= RING_MESSAGES);
        return slices * (MESSAGES as u64).div_ceil(tuning.uring_batch.into());
    }
    match entry.calls {
        CallsPerMessage::Fixed(calls) => u64::from(calls) * messages,
        CallsPerMessage::PerField => shape.fields.min(shape.message_bytes) as u64 * messages,
        // The messages of a slice go together.
        CallsPerMessage::Shared(_) => messages.div_ceil(MESSAGES as u64),
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

/// How long a call may wait in a test that does not try that.
const STALL_LIMIT: Duration = Duration::from_secs(20);

/// Both ends of a lane over loopback, of the entry's transport. The stall limit is
/// the sender's.
fn lane(entry: &Entry, way: Way, stall_limit: Duration) -> Result<[Lane; 2], tcp::SetupError> {
    let options = tcp::Options {
        congestion: "reno".into(),
        buffer_bytes: if way == Way::Wide { 256 << 10 } else { 32 << 10 },
        nodelay: true,
        stall_limit,
        multipath: false,
    };
    loop {
        match lane::pair(entry.transport, entry.loopback(), &options) {
            // The end of a ring is work that its thread is interrupted for, some
            // time later, and waits with a time limit do not go on by themselves.
            Err(error) if error.errno == Errno::EINTR => {}
            done => return done,
        }
    }
}

/// Receives from a lane, with no limit of time.
fn receive(lane: &Lane, piece: &mut [u8]) -> usize {
    let call = if lane.transport() == Transport::Pipe { socket::read } else { socket::recv };
    loop {
        match call(lane.data(), piece) {
            Ok(n) => return n,
            // The sender's stall limit is this end's too.
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(errno) => panic!("cannot receive: {errno}"),
        }
    }
}

/// Says that there is no more to come.
fn finish(lane: &Lane) {
    match lane.transport() {
        Transport::Pipe => pipe::finish_writing(lane.data()).unwrap(),
        Transport::Udp => assert_eq!(socket::send(lane.data(), &[]), Ok(0)),
        _ => tcp::finish_sending(lane.data()).unwrap(),
    }
}

/// Sends two slices through a fresh connection and returns what arrived.
fn through_a_connection(entry: &Entry, shape: Shape, tuning: Tuning, way: Way) -> Vec<u8> {
    let [tx, rx] = lane(entry, way, STALL_LIMIT).unwrap();
    let total = 2 * MESSAGES * shape.message_bytes;
    let interrupt = (way == Way::Narrow).then(signal::this_thread);
    let reader = std::thread::spawn(move || {
        let (mut all, mut piece) = (Vec::with_capacity(total), vec![0; 64 << 10]);
        loop {
            interrupt.map(signal::interrupt).transpose().unwrap();
            match receive(&rx, &mut piece) {
                0 => return all,
                n => all.extend_from_slice(&piece[..n]),
            }
        }
    });
    let setup = Setup { tuning, ..setup(Link::Socket(tx.data()), shape) };
    let mut sender = (entry.open)(setup).unwrap();
    two_slices(entry, &shape, tuning, way, sender.as_mut());
    finish(&tx);
    // Not before all was read: what is sent by reference is still the sender's.
    let arrived = reader.join().unwrap();
    drop(sender);
    arrived
}

fn setup(link: Link<'_>, shape: Shape) -> Setup<'_> {
    Setup { link, shape, tuning: Tuning::DEFAULT, stall_limit: STALL_LIMIT }
}

/// Runs two slices and checks every count.
fn two_slices(entry: &Entry, shape: &Shape, tuning: Tuning, way: Way, sender: &mut dyn Sender) {
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
        check_zerocopy(entry, &tally, tuning);
        assert_eq!(tally.messages, slice * MESSAGES as u64, "{}: messages", entry.id);
        assert_eq!(tally.bytes, tally.messages * shape.message_bytes as u64, "{}: bytes", entry.id);
        let calls = expected_calls(entry, shape, tuning, tally.messages);
        // A message larger than the socket's buffer may take more than one call.
        // So may one whose waiting a completion ends.
        let large = shape.message_bytes > 64 << 10;
        let woken = tally.zerocopy.map_or(0, |counts| counts.completions + counts.enobufs);
        let as_many = match way {
            Way::Wide if large => tally.calls >= calls,
            Way::Wide => (calls..=calls + woken).contains(&tally.calls),
            // In a ring the kernel goes on within one call, unless a signal comes.
            Way::Narrow if entry.family == Family::IoUring => tally.calls >= calls,
            Way::Narrow => tally.calls > calls || !large && tally.calls == calls,
        };
        assert!(as_many, "{}: {tally:?}", entry.id);
    }
}

/// After a slice nothing is in flight, and over loopback all was copied.
fn check_zerocopy(entry: &Entry, tally: &Tally, tuning: Tuning) {
    assert_eq!(tally.zerocopy.is_some(), entry.data_path().may_copy_late(), "{}", entry.id);
    if let Some(counts) = tally.zerocopy {
        assert_eq!(counts.completions, counts.sends, "{}: {counts:?}", entry.id);
        let some = u64::from(counts.sends > 0)..=counts.completions;
        assert!(some.contains(&counts.notifications), "{}: {counts:?}", entry.id);
        let all = counts.copied.is_none_or(|copied| copied == counts.completions);
        assert!(all, "{}: {counts:?}", entry.id);
        let sends = tally.calls * u64::from(tuning.uring_batch);
        assert!(counts.sends + counts.enobufs <= sends, "{}: {tally:?}", entry.id);
    }
}

/// Asks for messages one at a time and checks what comes.
fn by_request(entry: &Entry, shape: Shape) {
    const REQUESTS: usize = 5;
    let [tx, rx] = lane(entry, Way::Wide, STALL_LIMIT).unwrap();
    let asking = std::thread::spawn(move || {
        let (mut all, mut piece) = (Vec::new(), vec![0; 64 << 10]);
        for request in 1..=REQUESTS {
            socket::send(rx.requests(), &[1]).unwrap();
            while all.len() < request * shape.message_bytes {
                let n = receive(&rx, &mut piece);
                assert_ne!(n, 0, "the stream ended");
                all.extend_from_slice(&piece[..n]);
            }
        }
        socket::send(rx.requests(), &[0]).unwrap();
        all
    });
    let mut sender = (entry.open)(setup(Link::Socket(tx.data()), shape)).unwrap();
    let allocated = allocation_counter::measure(|| {
        sender.answer(tx.requests()).and_then(|_| sender.settle()).unwrap();
    });
    assert_eq!(allocated.count_total, 0, "{} allocates while it answers", entry.id);
    assert_eq!(sender.tally().messages, REQUESTS as u64, "{}", entry.id);
    check_zerocopy(entry, &sender.tally(), Tuning::DEFAULT);
    check_stream(entry, &asking.join().unwrap(), &shape, REQUESTS);
}

/// Sends for as long as a window is open, which allocates no more than a number
/// of messages does.
fn for_a_while(entry: &Entry, shape: Shape) {
    let [tx, rx] = lane(entry, Way::Wide, STALL_LIMIT).unwrap();
    let reader = std::thread::spawn(move || {
        let (mut all, mut piece) = (0, vec![0; 64 << 10]);
        loop {
            match receive(&rx, &mut piece) {
                // Not closed yet: the end may be said again.
                0 => return (rx, all),
                n => all += n as u64,
            }
        }
    });
    let mut sender = (entry.open)(setup(Link::Socket(tx.data()), shape)).unwrap();
    let budget = Budget::window(2_000_000, shape.message_bytes as u64);
    let allocated = allocation_counter::measure(|| {
        sender.run(&budget).and_then(|_| sender.settle()).unwrap();
    });
    assert_eq!(allocated.count_total, 0, "{} allocates while a window is open", entry.id);
    // Where something may be lost, the end may be too: it is said again.
    finish(&tx);
    while entry.transport.loses() && !reader.is_finished() {
        finish(&tx);
        std::thread::yield_now();
    }
    let ((_rx, arrived), tally) = (reader.join().unwrap(), sender.tally());
    assert_eq!(tally.bytes, tally.messages * shape.message_bytes as u64, "{}", entry.id);
    assert!(tally.messages > 0, "{}", entry.id);
    assert!(arrived == tally.bytes || entry.transport.loses(), "{}: {arrived}", entry.id);
}

/// The batches that concern an entry.
fn tunings(entry: &Entry) -> Vec<Tuning> {
    let mut all = vec![Tuning::DEFAULT];
    if entry.reads_completions() {
        all.push(Tuning { reap_batch: Some(1), ..Tuning::DEFAULT });
    }
    if entry.uses_a_ring() {
        all.push(Tuning { uring_batch: 4, ..Tuning::DEFAULT });
        for flags in ["none", "coop_taskrun", "sqpoll", "fixed_file+registered_ring"] {
            let ring_flags = flags.parse().unwrap();
            all.push(Tuning { ring_flags, ..Tuning::DEFAULT });
        }
        let ring_flags = "sqpoll".parse().unwrap();
        all.push(Tuning { ring_flags, uring_batch: 4, ..Tuning::DEFAULT });
    }
    all
}

/// Sends two slices and compares what arrived, byte by byte.
fn check_arrival(entry: &Entry, shape: Shape, tuning: Tuning, way: Way) {
    let arrived = through_a_connection(entry, shape, tuning, way);
    check_stream(entry, &arrived, &shape, 2 * MESSAGES);
}

/// What sending ends with when the receiver takes `taken` bytes of the first
/// message and then ends, or without an end to come takes nothing more.
fn broken_off(entry: &Entry, tuning: Tuning, taken: usize, ends: bool) -> Errno {
    let stall_limit = if ends { STALL_LIMIT } else { Duration::from_millis(20) };
    let [tx, rx] = lane(entry, Way::Narrow, stall_limit).unwrap();
    let held = std::thread::spawn(move || {
        let mut left = taken;
        while left > 0 {
            match receive(&rx, &mut vec![0; left.min(64 << 10)]) {
                // The sender gave up before this thread had its turn.
                0 => break,
                n => left -= n,
            }
        }
        (!ends).then_some(rx)
    });
    // More than both buffers hold, and no more than may be locked anywhere.
    let shape = shape(1 << 20, 8, Iovec::PerMessage);
    let setup = Setup { link: Link::Socket(tx.data()), shape, tuning, stall_limit };
    let mut sender = (entry.open)(setup).unwrap();
    let error = sender.run(&Budget::messages(MESSAGES as u64, 1)).unwrap_err();
    assert_eq!(sender.tally().messages, 0, "{}", entry.id);
    drop(sender);
    drop(tx);
    drop(held.join().unwrap());
    error
}

/// A receiver that ends in the middle of a message, and one that takes nothing.
fn ends_with_the_receiver(entry: &Entry) {
    for tuning in tunings(entry) {
        ends_with_it(entry, tuning);
    }
}

fn ends_with_it(entry: &Entry, tuning: Tuning) {
    let closed = broken_off(entry, tuning, 100_000, true);
    assert!([Errno::EPIPE, Errno::ECONNRESET].contains(&closed), "{}: {closed}", entry.id);
    // Nobody can limit how long a pipe waits; a trial has its own end.
    if entry.transport == Transport::Pipe {
        return;
    }
    let stalled = broken_off(entry, tuning, 100_000, false);
    assert!([Errno::EAGAIN, Errno::ETIMEDOUT].contains(&stalled), "{}: {stalled}", entry.id);
}

/// Whether this machine lets the entry be opened; a refusal is noted with its
/// reason.
fn is_there(entry: &Entry) -> bool {
    let small = shape(64, 8, Iovec::PerMessage);
    let opened = match entry.ends {
        Ends::Pair => lane(entry, Way::Wide, STALL_LIMIT)
            .and_then(|[tx, _rx]| (entry.open)(setup(Link::Socket(tx.data()), small)).map(drop)),
        Ends::SenderOnly => (entry.open)(setup(Link::None, small)).map(drop),
    };
    let Err(why) = opened else { return true };
    let refusals = [
        Errno::EOPNOTSUPP,
        Errno::ENOPROTOOPT,
        Errno::EAFNOSUPPORT,
        Errno::ENOSYS,
        Errno::EPERM,
        // Somebody else on this machine has it.
        Errno::EBUSY,
    ];
    assert!(refusals.contains(&why.errno), "{}: {why}", entry.id);
    skip::note("every_entry_conforms", &format!("{}: {why}", entry.id));
    false
}

/// Message sizes with their fields: what is a datagram is not larger than one, and
/// what is a frame fits a page with its headers.
fn sizes(entry: &Entry) -> Vec<(usize, usize)> {
    const DATAGRAM_MAX: usize = 65_507;
    let small = [(1, 8), (7, 8), (64, 1), (1000, 8)];
    if entry.makes_frames() {
        return small.into_iter().chain([(4034, 64)]).collect();
    }
    let small = small.into_iter().chain([(4095, 64)]);
    let large = match entry.transport.loses() {
        true => vec![(DATAGRAM_MAX, 8)],
        false => vec![(65_536, 8), ((1 << 20) + 1, 8)],
    };
    small.chain(large).collect()
}

/// One byte more than a datagram holds, or than a frame does.
fn a_datagram_that_is_too_large_is_refused(entry: &Entry) {
    let [tx, _rx] = lane(entry, Way::Wide, STALL_LIMIT).unwrap();
    let bytes = if entry.makes_frames() { 4035 } else { 65_508 };
    let too_large = shape(bytes, 1, Iovec::PerMessage);
    let sent = (entry.open)(setup(Link::Socket(tx.data()), too_large)).and_then(|mut sender| {
        let tried = || "send".to_owned();
        let sent = sender.run(&Budget::messages(1, 1));
        sent.map_err(|errno| tcp::SetupError { tried: tried(), errno })
    });
    assert_eq!(sent.unwrap_err().errno, Errno::EMSGSIZE, "{}", entry.id);
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Puts an entry through everything, on a thread of its own: the end of a ring
/// interrupts the calls of the threads that used it, some time later
/// (`io_tctx_exit_cb`, io_uring/io_uring.c), and cuts them short.
#[expect(clippy::disallowed_methods, reason = "a bound on the test itself, not a measurement")]
fn conforms(entry: &Entry) {
    let before = open_descriptors();
    for (message_bytes, fields) in sizes(entry) {
        for iovec in [Iovec::PerMessage, Iovec::Prepared] {
            let shape = shape(message_bytes, fields, iovec);
            match entry.ends {
                Ends::Pair => {
                    // What is on its way at once has to find room.
                    let fits = !entry.transport.loses() || message_bytes <= 4096;
                    for tuning in tunings(entry).into_iter().filter(|_| fits) {
                        check_arrival(entry, shape, tuning, Way::Wide);
                    }
                    by_request(entry, shape);
                }
                Ends::SenderOnly => {
                    let mut sender = (entry.open)(setup(Link::None, shape)).unwrap();
                    two_slices(entry, &shape, Tuning::DEFAULT, Way::Wide, sender.as_mut());
                }
            }
        }
    }
    if entry.ends == Ends::Pair {
        for_a_while(entry, shape(1000, 8, Iovec::PerMessage));
    }
    if entry.ends == Ends::Pair && !entry.transport.loses() {
        for message_bytes in [1, 4095, 65_536, (1 << 20) + 1] {
            let shape = shape(message_bytes, 8, Iovec::PerMessage);
            for tuning in tunings(entry) {
                check_arrival(entry, shape, tuning, Way::Narrow);
            }
        }
        ends_with_the_receiver(entry);
    }
    if entry.transport.loses() {
        a_datagram_that_is_too_large_is_refused(entry);
    }
    assert_eq!(open_descriptors(), before, "{} leaves descriptors behind", entry.id);
    let begin = Instant::now();
    let small = shape(64, 8, Iovec::PerMessage);
    if entry.ends == Ends::Pair {
        through_a_connection(entry, small, Tuning::DEFAULT, Way::Wide);
    }
    // Generous beyond 50 ms: the machine may be busy with other tests.
    assert!(begin.elapsed() < Duration::from_secs(2), "{} is slow at smoke size", entry.id);
}

#[test]
fn every_entry_conforms() {
    let _caught = Interrupts::catch().unwrap();
    for entry in all().filter(|entry| is_there(entry)) {
        let done = std::thread::spawn(move || conforms(entry)).join();
        assert!(done.is_ok(), "{}", entry.id);
    }
}
