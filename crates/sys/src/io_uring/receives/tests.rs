//! Rings that receive, against the running kernel.

use std::os::fd::{AsFd, OwnedFd};

use super::*;
use crate::{poll, ring, skip, socket, tcp};

const LIMIT: Duration = Duration::from_secs(20);
const ROOMY: Buffers = Buffers { count: 8, bytes: 4096 };

/// Rings for the second ends of these pairs; a kernel that has none is a skip.
fn open<'a>(
    test: &str,
    pairs: &'a [(OwnedFd, OwnedFd)],
    buffers: Buffers,
    stall_limit: Duration,
) -> Option<ReceiveRings<'a>> {
    let sockets: Vec<BorrowedFd<'a>> = pairs.iter().map(|(_, rx)| rx.as_fd()).collect();
    match ReceiveRings::open(&sockets, buffers, stall_limit) {
        Ok(rings) => Some(rings),
        Err(why @ OpenError::BufferRing { .. }) => panic!("{buffers:?}: {why:?}"),
        Err(why) => {
            skip::note(&format!("io_uring::receives::tests::{test}"), &format!("{why:?}"));
            None
        }
    }
}

fn pairs<const N: usize>() -> [(OwnedFd, OwnedFd); N] {
    std::array::from_fn(|_| tcp::loopback_pair(256 << 10))
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| ring::content(0, at)).collect()
}

/// Everything that one wait brings.
fn all(rings: &mut ReceiveRings<'_>) -> Vec<Arrived> {
    let mut found = Vec::new();
    while found.is_empty() {
        assert_eq!(rings.wait(), Ok(true));
        found.extend(std::iter::from_fn(|| rings.arrived()));
    }
    assert_eq!(rings.lost(), 0);
    found
}

/// Bytes until there are as many.
fn received(rings: &mut ReceiveRings<'_>, bytes: usize) -> Vec<u8> {
    let mut received = Vec::new();
    while received.len() < bytes {
        let shortage = |one: &Arrived| matches!(one, Arrived::Bytes(_) | Arrived::BuffersUsedUp);
        let found = all(rings);
        assert!(found.iter().all(shortage), "{found:?}");
        rings.bytes().for_each(|piece| received.extend_from_slice(piece));
    }
    received
}

#[test]
fn more_than_the_buffers_hold_stays_and_comes_with_the_next_request() {
    let test = "more_than_the_buffers_hold_stays_and_comes_with_the_next_request";
    let pairs = pairs::<1>();
    let Some(mut rings) = open(test, &pairs, Buffers { count: 2, bytes: 16 }, LIMIT) else {
        return;
    };
    socket::send(pairs[0].0.as_fd(), &content(100)).unwrap();
    let (mut seen, mut shortages) = (Vec::new(), 0);
    while seen.len() < 100 {
        let found = all(&mut rings);
        shortages += found.iter().filter(|one| **one == Arrived::BuffersUsedUp).count();
        rings.bytes().for_each(|piece| {
            assert!(piece.len() <= 16);
            seen.extend_from_slice(piece);
        });
    }
    assert_eq!(seen, content(100));
    // 32, 32, 32 and 4: each but the last finds no room for what follows.
    assert_eq!((shortages, rings.rearms()), (3, 3));
}

#[test]
fn between_waits_the_bytes_are_the_sockets() {
    let test = "between_waits_the_bytes_are_the_sockets";
    let pairs = pairs::<1>();
    let Some(mut rings) = open(test, &pairs, ROOMY, LIMIT) else { return };
    let (tx, rx) = (pairs[0].0.as_fd(), pairs[0].1.as_fd());
    socket::send(tx, b"first").unwrap();
    assert_eq!(received(&mut rings, 5), b"first");
    socket::send(tx, b"2").unwrap();
    assert_eq!(poll::is_readable(rx, u64::MAX), Ok(true), "poll(2) sees what came");
    let mut byte = [0];
    assert_eq!((socket::recv(rx, &mut byte), byte), (Ok(1), *b"2"));
    socket::send(tx, b"third").unwrap();
    assert_eq!(received(&mut rings, 5), b"third");
    assert_eq!(rings.rearms(), 0, "the first request does it all");
}

#[test]
fn a_connection_whose_turn_it_is_not_keeps_its_bytes() {
    let test = "a_connection_whose_turn_it_is_not_keeps_its_bytes";
    let pairs = pairs::<2>();
    let Some(mut rings) = open(test, &pairs, ROOMY, LIMIT) else { return };
    let [first, second] = [0, 1].map(|index| pairs[index].0.as_fd());
    for round in 0..3u8 {
        socket::send(second, &[round; 3]).unwrap();
        socket::send(first, &[100 + round; 5]).unwrap();
        rings.turn_to(0);
        assert_eq!(received(&mut rings, 5), [100 + round; 5]);
        assert_eq!(poll::is_readable(pairs[1].1.as_fd(), u64::MAX), Ok(true));
        rings.turn_to(1);
        assert_eq!(received(&mut rings, 3), [round; 3]);
    }
    assert_eq!(rings.rearms(), 0);
}

#[test]
fn a_ring_that_is_gone_takes_nothing_more() {
    let test = "a_ring_that_is_gone_takes_nothing_more";
    let pairs = pairs::<1>();
    let Some(mut rings) = open(test, &pairs, ROOMY, LIMIT) else { return };
    let (tx, rx) = (pairs[0].0.as_fd(), pairs[0].1.as_fd());
    socket::send(tx, b"first").unwrap();
    assert_eq!(received(&mut rings, 5), b"first");
    drop(rings);
    socket::send(tx, b"second").unwrap();
    let mut bytes = [0; 6];
    assert_eq!((socket::recv(rx, &mut bytes), bytes), (Ok(6), *b"second"));
}

#[test]
fn the_end_of_a_stream_follows_its_bytes() {
    let test = "the_end_of_a_stream_follows_its_bytes";
    let pairs = pairs::<1>();
    let Some(mut rings) = open(test, &pairs, ROOMY, LIMIT) else { return };
    socket::send(pairs[0].0.as_fd(), b"last").unwrap();
    tcp::finish_sending(pairs[0].0.as_fd()).unwrap();
    let mut found = Vec::new();
    while found.last() != Some(&Arrived::End) {
        found.extend(all(&mut rings));
    }
    assert_eq!(found, [Arrived::Bytes(4), Arrived::End]);
    // Whoever asks again hears it again.
    assert_eq!(all(&mut rings), [Arrived::End]);
    assert_eq!(rings.rearms(), 1);
}

#[test]
fn a_peer_that_resets_is_the_result() {
    let test = "a_peer_that_resets_is_the_result";
    let [(tx, rx)] = pairs::<1>();
    // Bytes that nobody read make an end a reset.
    socket::send(rx.as_fd(), b"unread").unwrap();
    let only = [(rx.try_clone().unwrap(), rx)];
    let Some(mut rings) = open(test, &only, ROOMY, LIMIT) else { return };
    assert_eq!(poll::is_readable(tx.as_fd(), u64::MAX), Ok(true));
    drop(tx);
    assert_eq!(all(&mut rings), [Arrived::Failed(Errno::ECONNRESET)]);
}

#[test]
fn a_silent_peer_is_waited_for_no_longer_than_the_limit() {
    let test = "a_silent_peer_is_waited_for_no_longer_than_the_limit";
    let pairs = pairs::<1>();
    let Some(mut rings) = open(test, &pairs, ROOMY, Duration::from_millis(5)) else { return };
    // The first call hands the request over, which is a success.
    assert_eq!((rings.wait(), rings.arrived()), (Ok(true), None));
    assert_eq!((rings.wait(), rings.arrived()), (Ok(false), None));
}

#[test]
fn another_thread_is_refused_by_the_kernel() {
    let test = "another_thread_is_refused_by_the_kernel";
    let pairs = pairs::<1>();
    let Some(mut rings) = open(test, &pairs, ROOMY, LIMIT) else { return };
    let refused = std::thread::scope(|scope| scope.spawn(|| rings.wait()).join().unwrap());
    assert_eq!(refused, Err(Errno::from_raw(libc::EEXIST)));
}

#[test]
fn buffers_that_are_no_power_of_two_are_refused() {
    let pairs = pairs::<1>();
    let sockets = [pairs[0].1.as_fd()];
    match ReceiveRings::open(&sockets, Buffers { count: 3, bytes: 16 }, LIMIT) {
        Err(OpenError::BufferRing { buffers: 3, errno: Errno::EINVAL }) => {}
        Err(why @ (OpenError::Setup(_) | OpenError::Flags(_))) => skip::note(
            "io_uring::receives::tests::buffers_that_are_no_power_of_two_are_refused",
            &format!("{why:?}"),
        ),
        other => panic!("{other:?}"),
    }
}
