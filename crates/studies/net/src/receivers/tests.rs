//! Every receiver through the same checks, with `send` at the other end: the
//! right bytes in the right order where it has them, counts that are true,
//! nothing allocated inside a slice, and an end to every failure. A new entry
//! is covered without a word here.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use iolens_model::axes::{Iovec, Topology};
use iolens_model::cell::NetSetting;
use iolens_model::data_path::{End, Movement};
use iolens_model::units::Nanos;
use iolens_sys::errno::Errno;
use iolens_sys::signal::Interrupts;
use iolens_sys::{ring, signal, socket, tcp};

use super::{Entry, RECEIVERS, Recv, needed_sysctls};
use crate::entry::{Link, Shape};
use crate::receive::{Quota, Receiver};
use crate::take::{Setup, Take, Taken};
use crate::{lane, registry, small};
use iolens_harness::op::{Budget, Sender};
use iolens_harness::stream::Times;

/// Nobody receives at a sink.
#[test]
fn only_a_receiver_that_maps_needs_a_sysctl() {
    let received_by = |receiver: &str, topology| {
        let receive = |net: &mut NetSetting| {
            (net.receiver, net.topology) = (receiver.into(), topology);
        };
        needed_sysctls(&[small::trial("send", Nanos::SECOND).cell.with_net(receive)])
    };
    let single_pages = [iolens_harness::sysctl::SINGLE_PAGES];
    assert_eq!(received_by("tcp_zerocopy_receive", Topology::Loopback), single_pages);
    assert_eq!(received_by("tcp_zerocopy_receive", Topology::Sink), []);
    assert_eq!(received_by("recv", Topology::Veth), []);
}

const MESSAGES: usize = 7;
const RING_MESSAGES: usize = 3;
const SIZES: [usize; 4] = [1, 4095, 64 << 10, (1 << 20) + 1];
const RECEIVE_BYTES: usize = 128 << 10;

/// Both ends of a TCP connection over loopback.
pub(super) fn connection(stall_limit: Duration) -> (OwnedFd, OwnedFd) {
    let options = tcp::Options {
        congestion: "reno".into(),
        buffer_bytes: 256 << 10,
        nodelay: true,
        stall_limit,
        multipath: false,
    };
    loop {
        match lane::over_loopback(&options) {
            Ok(both) => return both,
            // A ring that this thread has closed interrupts it some time later.
            Err(error) => assert_eq!(error.errno, Errno::EINTR, "{error}"),
        }
    }
}

pub(super) const LONG: Duration = Duration::from_secs(20);

pub(super) fn setup(fd: &OwnedFd, stall_limit: Duration) -> Setup<'_> {
    Setup {
        links: vec![fd.as_fd()],
        pipes: vec![false],
        receive_bytes: RECEIVE_BYTES,
        fields: 8,
        stall_limit,
    }
}

fn receiver<'a>(entry: &Entry, fd: &'a OwnedFd) -> Box<dyn Receiver + 'a> {
    (entry.open)(setup(fd, LONG)).unwrap()
}

/// Makes the sender of messages of this size, and gives it to `work`.
fn with_sender(
    primitive: &str,
    fd: &OwnedFd,
    message_bytes: usize,
    work: impl FnOnce(&mut dyn Sender),
) {
    let iovec = Iovec::PerMessage;
    let shape = Shape { messages: RING_MESSAGES, message_bytes, fields: 8, iovec };
    let setup = crate::entry::Setup {
        link: Link::Socket(fd.as_fd()),
        shape,
        tuning: iolens_model::tuning::Tuning::DEFAULT,
        stall_limit: LONG,
    };
    let entry = registry::find(primitive).unwrap();
    work((entry.open)(setup).unwrap().as_mut());
}

fn send(fd: &OwnedFd, message_bytes: usize) {
    send_with("send", fd, message_bytes);
}

/// Sends all messages with a primitive.
pub(super) fn send_with(primitive: &str, fd: &OwnedFd, message_bytes: usize) {
    with_sender(primitive, fd, message_bytes, |sender| {
        sender.run(&Budget::messages(MESSAGES as u64, 1)).unwrap();
        sender.settle().unwrap();
    });
}

/// The stream that the messages are.
fn expected(message_bytes: usize) -> Vec<u8> {
    let message = |index: usize| (0..message_bytes).map(move |at| ring::content(index, at));
    (0..MESSAGES).flat_map(|i| message(i % RING_MESSAGES)).collect()
}

/// Receivers that can be tried here.
fn available() -> impl Iterator<Item = &'static Entry> {
    RECEIVERS.iter().copied().filter(|entry| (entry.available)().is_ok())
}

/// Senders that fill pages in different ways: their copies lie in blocks of
/// pages, or alone.
const SENDERS: [&str; 2] = ["send", "sendmsg_zerocopy"];

#[test]
fn the_bytes_arrive_in_order() {
    let each = available().flat_map(|entry| SIZES.map(|size| (entry, size)));
    for (entry, size, primitive) in each.flat_map(|(entry, size)| SENDERS.map(|s| (entry, size, s)))
    {
        let (tx, rx) = connection(LONG);
        let total = size * MESSAGES;
        let (mut seen, mut counted) = (Vec::with_capacity(total), 0);
        std::thread::scope(|scope| {
            scope.spawn(|| send_with(primitive, &tx, size));
            let mut receiver = receiver(entry, &rx);
            while counted < total {
                let taken = receiver.take_one(&mut |piece| seen.extend_from_slice(piece)).unwrap();
                assert_ne!(taken.bytes, 0, "{}: the stream ended", entry.id);
                assert_ne!(taken.calls, 0, "{}: something was called", entry.id);
                counted += taken.bytes;
            }
        });
        assert_eq!(counted, total, "{} × {size}", entry.id);
        if entry.has_bytes {
            let sent = expected(size);
            let at = seen.iter().zip(&sent).position(|(a, b)| a != b);
            assert_eq!((seen.len(), at), (total, None), "{} × {size}", entry.id);
        } else {
            assert_eq!(seen.len(), 0, "{}: it has no bytes to show", entry.id);
        }
    }
}

#[test]
fn a_slice_ends_with_its_last_byte_and_its_release_and_allocates_nothing() {
    for (entry, size) in available().flat_map(|entry| SIZES.map(|size| (entry, size))) {
        let (tx, rx) = connection(LONG);
        let target = (size * MESSAGES) as u64;
        let mut receiver = receiver(entry, &rx);
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| {
                for _ in 0..2 {
                    // `ready`, then the receipt, and then the release.
                    assert_eq!(socket::recv(tx.as_fd(), &mut [0]), Ok(1));
                    send(&tx, size);
                    assert_eq!(socket::recv(tx.as_fd(), &mut [0]), Ok(1));
                    socket::send(tx.as_fd(), &[0]).unwrap();
                }
            });
            for _ in 0..2 {
                socket::send(rx.as_fd(), &[0]).unwrap();
                let total = AtomicU64::new(0);
                let complete = || socket::send(rx.as_fd(), &[0]).map(|_| ());
                let quota = Quota { total: &total, target, complete: &complete };
                let mut received = None;
                let allocated = allocation_counter::measure(|| {
                    receiver.turn_to(0);
                    received = Some(receiver.receive(&quota));
                });
                assert_eq!(allocated.count_total, 0, "{} allocates inside a slice", entry.id);
                let received = received.unwrap().unwrap();
                assert_eq!(received.tally.bytes, target, "{} × {size}", entry.id);
                assert!(received.tally.calls > 0 && received.first_ns <= received.end_ns);
            }
            sending.join().unwrap();
        });
    }
}

#[test]
fn a_stream_is_received_to_its_end_and_more_than_the_quota_is_refused() {
    for entry in available() {
        let (tx, rx) = connection(LONG);
        send(&tx, 4095);
        tcp::finish_sending(tx.as_fd()).unwrap();
        let (mut whole, mut received) = (receiver(entry, &rx), None);
        let allocated = allocation_counter::measure(|| {
            received = Some(whole.receive_until_end());
        });
        assert_eq!(allocated.count_total, 0, "{} allocates while a window is open", entry.id);
        let received = received.unwrap().unwrap();
        assert_eq!(received.tally.bytes, 4095 * MESSAGES as u64, "{}", entry.id);
        let of_first = 1..=received.tally.bytes;
        assert!(of_first.contains(&received.first_bytes), "{}: {received:?}", entry.id);
        let (tx, rx) = connection(LONG);
        send(&tx, 4095);
        let quota = Quota { total: &AtomicU64::new(0), target: 1, complete: &|| Ok(()) };
        let refused = receiver(entry, &rx).receive(&quota).unwrap_err();
        assert_eq!(refused, Errno::EMSGSIZE, "{}", entry.id);
    }
}

#[test]
fn requests_are_answered_one_at_a_time() {
    for (entry, size) in available().flat_map(|entry| SIZES.map(|size| (entry, size))) {
        let (tx, rx) = connection(LONG);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                with_sender("send", &tx, size, |sender| {
                    sender.answer(tx.as_fd()).unwrap();
                });
            });
            let (mut receiver, mut times) = (receiver(entry, &rx), Times::default());
            let mut done = None;
            let budget = Budget::messages(MESSAGES as u64, 1);
            let allocated = allocation_counter::measure(|| {
                done = Some(receiver.exchange(rx.as_fd(), &budget, size, Some(&mut times)));
            });
            assert_eq!(allocated.count_total, 0, "{} allocates while it asks", entry.id);
            let done = done.unwrap().unwrap();
            let expect = (MESSAGES as u64, (MESSAGES * size) as u64);
            assert_eq!((done.tally.messages, done.tally.bytes), expect, "{}", entry.id);
            assert_eq!(times.histogram().total(), MESSAGES as u64);
        });
    }
}

#[test]
fn a_sender_that_stops_in_mid_message_is_an_error_and_no_hang() {
    for entry in available() {
        let quota = Quota { total: &AtomicU64::new(0), target: 1 << 20, complete: &|| Ok(()) };
        let (tx, rx) = connection(LONG);
        send(&tx, 4095);
        drop(tx);
        let gone = receiver(entry, &rx).receive(&quota).unwrap_err();
        assert_eq!(gone, Errno::ENODATA, "{}", entry.id);
        // One that has bytes of ours unread resets the connection.
        let (tx, rx) = connection(LONG);
        socket::send(rx.as_fd(), &[0]).unwrap();
        send(&tx, 4095);
        drop(tx);
        let gone = receiver(entry, &rx).receive(&quota).unwrap_err();
        assert!([Errno::ECONNRESET, Errno::ENODATA].contains(&gone), "{}: {gone}", entry.id);
        const SHORT: Duration = Duration::from_millis(20);
        let (_tx, rx) = connection(SHORT);
        let silent = (entry.open)(setup(&rx, SHORT)).unwrap().receive(&quota).unwrap_err();
        assert_eq!(silent, Errno::EAGAIN, "{}", entry.id);
    }
}

/// `recv` whose every other call is interrupted before anything moved.
struct Interrupted<'a> {
    recv: Recv<'a>,
    is_next: bool,
}

impl Take for Interrupted<'_> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.recv.fd()
    }

    fn turn_to(&mut self, link: usize) {
        Take::turn_to(&mut self.recv, link);
    }

    fn take(&mut self) -> Result<Taken, Errno> {
        self.is_next = !self.is_next;
        if self.is_next { Err(Errno::EINTR) } else { self.recv.take() }
    }

    fn show(&self, bytes: usize, see: &mut dyn FnMut(&[u8])) {
        self.recv.show(bytes, see);
    }
}

#[test]
fn an_interrupted_call_is_made_again_and_not_counted() {
    let interrupted = |fd| Interrupted { recv: Recv::one(fd, RECEIVE_BYTES), is_next: false };
    let bytes = 4095 * MESSAGES as u64;
    let (tx, rx) = connection(LONG);
    send(&tx, 4095);
    let mut receiver = interrupted(rx.as_fd());
    // The release follows the receipt: here it is sent in its place.
    let complete = || socket::send(tx.as_fd(), &[0]).map(|_| ());
    let quota = Quota { total: &AtomicU64::new(0), target: bytes, complete: &complete };
    let received = receiver.receive(&quota).unwrap();
    assert_eq!(received.tally.bytes, bytes);
    assert!(received.tally.calls <= bytes / 4095, "{:?}", received.tally);
    send(&tx, 4095);
    tcp::finish_sending(tx.as_fd()).unwrap();
    assert_eq!(receiver.receive_until_end().unwrap().tally.bytes, bytes);
    let (tx, rx) = connection(LONG);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            with_sender("send", &tx, 4095, |sender| {
                sender.answer(tx.as_fd()).unwrap();
            });
        });
        let budget = Budget::messages(MESSAGES as u64, 1);
        let done = interrupted(rx.as_fd()).exchange(rx.as_fd(), &budget, 4095, None).unwrap();
        assert_eq!(done.tally.messages, MESSAGES as u64);
    });
}

#[test]
fn signals_while_it_waits_lose_nothing() {
    let _caught = Interrupts::catch().unwrap();
    for entry in available() {
        let (tx, rx) = connection(LONG);
        let (say, hear) = std::sync::mpsc::channel();
        let target = 4095 * MESSAGES as u64;
        std::thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let mut receiver = receiver(entry, &rx);
                say.send(signal::this_thread()).unwrap();
                // The release follows the receipt: here it is sent in its place.
                let complete = || socket::send(tx.as_fd(), &[0]).map(|_| ());
                let total = AtomicU64::new(0);
                receiver.receive(&Quota { total: &total, target, complete: &complete })
            });
            let thread = hear.recv().unwrap();
            for _ in 0..MESSAGES {
                for _ in 0..20 {
                    signal::interrupt(thread).unwrap();
                    std::thread::yield_now();
                }
                assert_eq!(socket::send(tx.as_fd(), &[7; 4095]), Ok(4095));
            }
            let received = receiving.join().unwrap().unwrap();
            assert_eq!(received.tally.bytes, target, "{}", entry.id);
        });
    }
}

#[test]
fn every_receiver_says_what_it_is() {
    assert!(RECEIVERS.is_sorted_by(|a, b| a.id < b.id));
    for entry in RECEIVERS {
        assert!(!entry.summary.is_empty() && entry.since.is_some(), "{}", entry.id);
        assert!(entry.hops.iter().all(|hop| hop.end == End::Receiver), "{}", entry.id);
        let ends_unread = entry.hops.iter().any(|hop| hop.movement == Movement::Discarded);
        assert_eq!(entry.has_bytes, !ends_unread, "{}", entry.id);
    }
}
