//! What ends the clock of a sending end, on connections whose other end does
//! what people's programs do; and how connections become one result.

use std::os::fd::{AsFd, OwnedFd};

use iolens_net::lane;
use iolens_sys::socket;

use super::send::Last;
use super::*;

const LONG: Duration = Duration::from_secs(20);

/// A connection over loopback on which `bytes` were sent, and the stream ended.
fn ended_stream(bytes: usize) -> (OwnedFd, OwnedFd) {
    let (tx, rx) = lane::connected_pair().unwrap();
    let mut left = vec![1; bytes];
    while !left.is_empty() {
        let sent = socket::send(tx.as_fd(), &left).unwrap();
        left.drain(..sent);
    }
    tcp::finish_sending(tx.as_fd()).unwrap();
    (tx, rx)
}

fn await_receipt(tx: &OwnedFd, has_ended: bool, limit: Duration) -> Result<Until, Errno> {
    Last { fd: tx.as_fd(), has_ended }.await_receipt(limit).map(|(until, _)| until)
}

fn read_all(rx: &OwnedFd) {
    while socket::recv(rx.as_fd(), &mut [0; 4096]).unwrap() > 0 {}
}

#[test]
fn a_receiver_that_closes_gives_a_receipt_whatever_it_said_before() {
    let (tx, rx) = ended_stream(1000);
    let begin_ns = clock::monotonic_ns();
    socket::send(rx.as_fd(), b"a line that somebody typed\n").unwrap();
    read_all(&rx);
    tcp::finish_sending(rx.as_fd()).unwrap();
    let last = Last { fd: tx.as_fd(), has_ended: false };
    let (until, end_ns) = last.await_receipt(LONG).unwrap();
    assert_eq!(until, Until::Receipt);
    assert!((begin_ns..=clock::monotonic_ns()).contains(&end_ns));
}

#[test]
fn a_receiver_that_never_closes_is_not_waited_for() {
    let (tx, rx) = ended_stream(1000);
    read_all(&rx);
    assert_eq!(await_receipt(&tx, false, LONG), Ok(Until::Acknowledgement));
}

#[test]
fn an_end_from_before_the_last_byte_is_no_receipt() {
    let (tx, rx) = lane::connected_pair().unwrap();
    tcp::finish_sending(rx.as_fd()).unwrap();
    socket::send(tx.as_fd(), &[1; 1000]).unwrap();
    assert!(tcp::info(tx.as_fd()).unwrap().peer_has_ended);
    tcp::finish_sending(tx.as_fd()).unwrap();
    assert_eq!(await_receipt(&tx, true, LONG), Ok(Until::Acknowledgement));
}

#[test]
fn a_receiver_that_goes_without_reading_gives_none() {
    for has_ended in [false, true] {
        let (tx, rx) = ended_stream(1000);
        tcp::set_closing(rx.as_fd(), Closing::Resets).unwrap();
        drop(rx);
        let ended = await_receipt(&tx, has_ended, LONG);
        // All of it may have been acknowledged before.
        let gone = ended.is_err_and(lane::tells_of_the_peer);
        assert!(gone || has_ended && ended == Ok(Until::Acknowledgement), "{ended:?}");
    }
}

#[test]
fn a_receiver_that_takes_nothing_is_given_up() {
    let (tx, rx) = lane::connected_pair().unwrap();
    tcp::limit_waits(tx.as_fd(), Duration::from_millis(5)).unwrap();
    while socket::send(tx.as_fd(), &[1; 64 << 10]).is_ok() {}
    tcp::finish_sending(tx.as_fd()).unwrap();
    let limit = Duration::from_millis(20);
    assert_eq!(await_receipt(&tx, false, limit), Err(Errno::EAGAIN));
    drop(rx);
}

fn served(messages: u64, [first, last]: [u64; 2]) -> Served {
    Served {
        tally: Tally { messages, bytes: 10 * messages, calls: messages, ..Tally::default() },
        mapped_bytes: None,
        untimed_bytes: 0,
        span: Span { first_call_ns: first, last_call_ns: last },
        until: Until::Receipt,
        failure: None,
        facts: Vec::new(),
    }
}

fn transfer(served: Vec<Served>, interrupted: bool) -> Transfer {
    let connection = |port| {
        let (fd, _) = lane::connected_pair().unwrap();
        Connection { fd, peer: ([127, 0, 0, 1], port).into() }
    };
    let connections: Vec<Connection> = (1..).take(served.len()).map(connection).collect();
    let name = Name {
        end: End::Sender,
        primitive: "send",
        address: ([127, 0, 0, 1], 9).into(),
        message_bytes: Some(Bytes(10)),
    };
    Done { served, cpu: None, interrupted }.transfer(&name, &connections)
}

#[test]
fn connections_add_up_from_the_first_call_to_the_last_receipt() {
    let sum = transfer(vec![served(3, [200, 700]), served(4, [100, 600])], false);
    assert_eq!((sum.messages, sum.bytes, sum.calls), (Some(7), 70, 7));
    assert_eq!((sum.time, sum.until, sum.status), (Nanos(600), Until::Receipt, Status::Ok));
    let each: Vec<_> =
        sum.each.iter().map(|one| (one.peer.as_str(), one.bytes, one.time)).collect();
    assert_eq!(each, [("127.0.0.1:1", 30, Nanos(500)), ("127.0.0.1:2", 40, Nanos(500))]);
    let unsure = Served { until: Until::Acknowledgement, ..served(4, [100, 600]) };
    assert_eq!(transfer(vec![served(3, [1, 2]), unsure], false).until, Until::Acknowledgement);
}

/// The time of a receiving end begins when its first receive has returned.
#[test]
fn what_the_first_receives_brought_is_not_within_the_time() {
    let of = |messages| Served { untimed_bytes: 10, ..served(messages, [100, 600]) };
    let sum = transfer(vec![of(3), of(1)], false);
    assert_eq!((sum.bytes, sum.timed_bytes), (40, 20));
    let each: Vec<_> = sum.each.iter().map(|one| (one.bytes, one.timed_bytes)).collect();
    assert_eq!(each, [(30, 20), (10, 0)]);
}

#[test]
fn what_went_wrong_names_its_client() {
    let broken = Served { failure: Some("it broke".to_owned()), ..served(1, [100, 200]) };
    let alone = transfer(vec![broken.clone()], false);
    assert_eq!((alone.status, alone.reason.as_deref()), (Status::Failed, Some("it broke")));
    let idle = Served::nothing(ANOTHER.to_owned());
    let one_of_two = transfer(vec![idle, broken.clone()], false);
    assert_eq!(one_of_two.reason.as_deref(), Some("client 2 (127.0.0.1:2): it broke"));
    assert_eq!((one_of_two.time, one_of_two.until), (Nanos(100), Until::LastCall));
    assert_eq!(transfer(vec![broken], true).status, Status::Interrupted);
}

#[test]
fn the_other_end_is_told_from_the_rest() {
    let of = |errno| of_the_peer(errno, "receiver", Duration::from_secs(2), "1 KiB");
    let stalled = of(Errno::EAGAIN).unwrap();
    assert_eq!(stalled, "the receiver did not move for 2.00 s (--stall-limit) after 1 KiB");
    let gone = of(Errno::EPIPE).unwrap();
    assert_eq!(gone, "the receiver went away after 1 KiB: EPIPE (broken pipe)");
    assert_eq!(of(Errno::ENOBUFS), None);
    assert_eq!([amount(999), amount(2048)], ["999 B", "2 KiB (2048 bytes)"]);
}
