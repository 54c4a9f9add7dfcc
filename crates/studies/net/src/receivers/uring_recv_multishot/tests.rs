//! What only this receiver has: buffers that run out, requests that end, and
//! connections that each have one.

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;

use iolens_sys::{poll, tcp};

use super::*;
use crate::receive::Quota;
use crate::receivers::tests::{LONG, connection, send_with};
use crate::skip;
use iolens_harness::op::Budget;

/// So few and small that they run out all the time.
const TINY: Buffers = Buffers { count: 2, bytes: 16 };

/// A receiver of these connections; `None` and a note where there is none.
fn open<'a>(
    test: &str,
    links: Vec<BorrowedFd<'a>>,
    buffers: Buffers,
) -> Option<UringRecvMultishot<'a>> {
    if let Err(why) = try_here() {
        skip::note(&format!("receivers::uring_recv_multishot::tests::{test}"), &why);
        return None;
    }
    let pipes = vec![false; links.len()];
    let setup = Setup { links, pipes, receive_bytes: 0, fields: 8, stall_limit: LONG };
    Some(UringRecvMultishot::new(&setup, buffers).unwrap())
}

fn counts(receiver: &UringRecvMultishot<'_>) -> (u64, u64) {
    let MultishotCounts { rearms, enobufs } = Take::multishot(receiver).unwrap();
    (rearms, enobufs)
}

#[test]
fn buffers_that_run_out_are_counted_and_lose_nothing() {
    let test = "buffers_that_run_out_are_counted_and_lose_nothing";
    const BYTES: u64 = 7 * 4095;
    let (tx, rx) = connection(LONG);
    let Some(mut receiver) = open(test, vec![rx.as_fd()], TINY) else { return };
    send_with("send", &tx, 4095);
    // The release follows the receipt: here it is sent in its place.
    let complete = || socket::send(tx.as_fd(), &[0]).map(|_| ());
    let quota = Quota { total: &AtomicU64::new(0), target: BYTES, complete: &complete };
    let received = receiver.receive(&quota).unwrap();
    assert_eq!(received.tally.bytes, BYTES);
    assert!(received.tally.calls >= BYTES.div_ceil(32), "{:?}", received.tally);
    // Each shortage ends a request; nothing else does.
    let (rearms, enobufs) = counts(&receiver);
    assert!(enobufs > 0 && rearms == enobufs, "{rearms} re-arms, {enobufs} shortages");
}

#[test]
fn buffers_with_room_need_one_request() {
    let test = "buffers_with_room_need_one_request";
    let (tx, rx) = connection(LONG);
    let Some(mut receiver) = open(test, vec![rx.as_fd()], buffers(128 << 10)) else { return };
    for round in 1..=50u64 {
        socket::send(tx.as_fd(), &[7; 1000]).unwrap();
        let mut bytes = 0;
        while bytes < 1000 {
            bytes += receiver.take().unwrap().bytes;
        }
        assert_eq!((bytes, counts(&receiver)), (1000, (0, 0)), "message {round}");
    }
}

#[test]
fn a_peer_that_closes_in_mid_message_is_heard_behind_its_bytes() {
    let test = "a_peer_that_closes_in_mid_message_is_heard_behind_its_bytes";
    for buffers in [TINY, buffers(128 << 10)] {
        let (tx, rx) = connection(LONG);
        let Some(mut receiver) = open(test, vec![rx.as_fd()], buffers) else { return };
        socket::send(tx.as_fd(), &[7; 100]).unwrap();
        tcp::finish_sending(tx.as_fd()).unwrap();
        let mut bytes = 0;
        while bytes < 100 {
            bytes += receiver.take().unwrap().bytes;
        }
        let end = receiver.take().unwrap();
        assert_eq!((bytes, end.bytes), (100, 0));
    }
    let (tx, rx) = connection(LONG);
    let Some(mut receiver) = open(test, vec![rx.as_fd()], TINY) else { return };
    socket::send(tx.as_fd(), &[7; 100]).unwrap();
    drop(tx);
    let budget = Budget::messages(1, 1);
    let gone = receiver.exchange(rx.as_fd(), &budget, 4095, None).map(|_| ()).unwrap_err();
    assert!([Errno::ENODATA, Errno::ECONNRESET, Errno::EPIPE].contains(&gone), "{gone}");
}

#[test]
fn a_connection_keeps_its_bytes_until_its_turn() {
    let test = "a_connection_keeps_its_bytes_until_its_turn";
    let pairs: [(OwnedFd, OwnedFd); 3] = std::array::from_fn(|_| connection(LONG));
    let links = pairs.iter().map(|(_, rx)| rx.as_fd()).collect();
    let Some(mut receiver) = open(test, links, TINY) else { return };
    for round in 0..4 {
        // What all three have to say is there before anybody listens.
        pairs.iter().for_each(|(tx, _)| send_with("send", tx, 1000));
        for link in [round % 3, (round + 1) % 3, (round + 2) % 3] {
            Take::turn_to(&mut receiver, link);
            let (tx, rx) = &pairs[link];
            let complete = || socket::send(tx.as_fd(), &[0]).map(|_| ());
            let quota = Quota { total: &AtomicU64::new(0), target: 7000, complete: &complete };
            assert_eq!(receiver.receive(&quota).unwrap().tally.bytes, 7000);
            assert_eq!(poll::readable(&[rx.as_fd()], 0), Ok(vec![false]), "nothing is left");
        }
    }
}

#[test]
fn a_lead_is_followed_to_its_last_byte() {
    let test = "a_lead_is_followed_to_its_last_byte";
    for buffers in [TINY, buffers(4096)] {
        let (tx, rx) = connection(LONG);
        let (say, hear) = connection(LONG);
        let Some(mut receiver) = open(test, vec![rx.as_fd()], buffers) else { return };
        let sender = std::thread::spawn(move || {
            for _ in 0..100 {
                socket::send(tx.as_fd(), &[1; 500]).unwrap();
            }
            crate::lead::announce(say.as_fd(), 50_000).unwrap();
            (tx, say)
        });
        receiver.follow(hear.as_fd(), LONG).unwrap();
        let (tx, _say) = sender.join().unwrap();
        // A byte that is not payload, as between slices, is recv(2)'s to take.
        socket::send(tx.as_fd(), &[9]).unwrap();
        let mut byte = [0];
        assert_eq!((socket::recv(rx.as_fd(), &mut byte), byte), (Ok(1), [9]));
    }
}

#[test]
fn the_buffers_are_as_large_as_the_receive_size() {
    for (receive_bytes, count, bytes) in
        [(1, 1, 1), (7, 1, 7), (8, 8, 1), (1000, 8, 125), (128 << 10, 8, 16 << 10)]
    {
        assert_eq!(buffers(receive_bytes), Buffers { count, bytes }, "{receive_bytes}");
    }
    // What cannot be divided is rounded up, a byte for each buffer at most.
    assert_eq!(buffers(1001), Buffers { count: 8, bytes: 126 });
}
