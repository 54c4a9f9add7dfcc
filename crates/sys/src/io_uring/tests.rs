//! Rings against the running kernel.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use super::*;
use crate::ring::{self, Layout, MessageRing};
use crate::{clock, skip, socket, tcp};

const ALL: [Opcode; 5] =
    [Opcode::Send, Opcode::Sendmsg, Opcode::SendZc, Opcode::SendZcFixed, Opcode::SendmsgZc];

const LIMIT: Duration = Duration::from_secs(20);

/// Every set of flags that the kernel takes, and how each sends.
fn ways() -> impl Iterator<Item = (SetupFlags, Opcode)> {
    let none = SetupFlags::from_bits(0);
    let sets = [
        none,
        SetupFlags::COOP_TASKRUN,
        SetupFlags::SINGLE_ISSUER,
        SetupFlags::COOP_TASKRUN | SetupFlags::SINGLE_ISSUER,
        SetupFlags::ONE_THREAD,
        SetupFlags::ONE_THREAD | SetupFlags::COOP_TASKRUN,
        SetupFlags::SQPOLL,
        SetupFlags::SQPOLL | SetupFlags::SINGLE_ISSUER,
        SetupFlags::FIXED_FILE,
        SetupFlags::REGISTERED_RING,
        SetupFlags::ONE_THREAD | SetupFlags::FIXED_FILE | SetupFlags::REGISTERED_RING,
        SetupFlags::SQPOLL | SetupFlags::FIXED_FILE | SetupFlags::REGISTERED_RING,
    ];
    sets.into_iter().flat_map(|flags| ALL.map(|opcode| (flags, opcode)))
}

#[test]
fn a_ring_is_made_or_its_refusal_has_a_name() {
    match try_ring() {
        Ok(()) => {}
        Err(errno) => {
            let refusals = [libc::EPERM, libc::ENOSYS, libc::ENOMEM, libc::EACCES];
            assert!(refusals.contains(&errno.raw()), "{errno}");
        }
    }
}

fn messages(opcode: Opcode, bytes: usize) -> MessageRing {
    let layout = if opcode.takes_iovec() { Layout::Separate } else { Layout::Contiguous };
    MessageRing::new(3, bytes, 8, layout)
}

/// A ring on one end of `pair`; a kernel that has none is a skip.
fn open<'a>(
    flags: SetupFlags,
    test: &str,
    opcode: Opcode,
    socket: &'a OwnedFd,
    bytes: usize,
    stall_limit: Duration,
) -> Option<SendRing<'a>> {
    let (prepared, depth, notifications_max) = (false, 4, 8);
    let wishes =
        Wishes { operation: opcode, flags, prepared, depth, notifications_max, stall_limit };
    let opened = SendRing::open(socket.as_fd(), messages(opcode, bytes), wishes);
    let registered = opened.and_then(|mut ring| {
        let fixed = opcode == Opcode::SendZcFixed;
        if fixed { register(&mut ring).map(|()| ring) } else { Ok(ring) }
    });
    match registered {
        Ok(ring) => Some(ring),
        Err(OpenError::Register { errno, .. }) => panic!("three buffers were refused: {errno}"),
        Err(why) => {
            skip::note(&format!("io_uring::tests::{test}"), &format!("{opcode:?}: {why:?}"));
            None
        }
    }
}

/// Registers the messages; memory that a closed ring had locked comes back a while later.
fn register(ring: &mut SendRing<'_>) -> Result<(), OpenError> {
    let deadline_ns = clock::monotonic_ns() + 1_000_000_000 * LIMIT.as_secs();
    loop {
        match ring.register() {
            Err(OpenError::Register { errno: Errno::ENOMEM, .. })
                if clock::monotonic_ns() < deadline_ns =>
            {
                std::thread::yield_now();
            }
            done => return done,
        }
    }
}

/// Everything that completes until the send's result and its notification.
fn all(ring: &mut SendRing<'_>) -> Vec<Completed> {
    let mut found = Vec::new();
    let (mut answered, mut due) = (false, 0);
    while !answered || due > 0 {
        match ring.completion() {
            Some(one) => {
                match one {
                    Completed::Sent { notifies, .. } => {
                        (answered, due) = (true, due + i32::from(notifies));
                    }
                    Completed::Released { .. } => due -= 1,
                }
                found.push(one);
            }
            None => assert!(ring.wait(LIMIT).unwrap(), "only {found:?}"),
        }
    }
    found
}

fn received(rx: &OwnedFd, bytes: usize) -> Vec<u8> {
    let (mut all, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    while all.len() < bytes {
        let n = socket::recv(rx.as_fd(), &mut piece).unwrap();
        assert_ne!(n, 0, "the stream ended");
        all.extend_from_slice(&piece[..n]);
    }
    all
}

/// A thread may have registered 16 rings (`IO_RINGFD_REG_MAX`, io_uring/tctx.h).
#[test]
fn a_ring_that_was_registered_makes_room_for_the_next() {
    let flags = SetupFlags::ONE_THREAD | SetupFlags::FIXED_FILE | SetupFlags::REGISTERED_RING;
    let test = "a_ring_that_was_registered_makes_room_for_the_next";
    for before in 0..=16 {
        let (tx, rx) = tcp::loopback_pair(256 << 10);
        let Some(mut ring) = open(flags, test, Opcode::Send, &tx, 64, LIMIT) else {
            assert_eq!(before, 0, "there is no room for one more");
            return;
        };
        ring.send(0, 0, 0).unwrap();
        assert_eq!(received(&rx, 64).len(), 64);
        all(&mut ring);
    }
}

#[test]
fn the_rest_of_a_message_is_sent_from_any_byte() {
    const BYTES: usize = 4095;
    for (flags, opcode) in ways() {
        let (tx, rx) = tcp::loopback_pair(256 << 10);
        let test = "the_rest_of_a_message_is_sent_from_any_byte";
        let ring = open(flags, test, opcode, &tx, BYTES, LIMIT);
        let Some(mut ring) = ring else { continue };
        for (message, from, id) in [(0, 0, 7), (2, 1, 8), (1, 511, 9), (0, 512, 10), (1, 4094, 11)]
        {
            ring.send(message, from, id).unwrap();
            let expected: Vec<u8> = (from..BYTES).map(|at| ring::content(message, at)).collect();
            let arrived = received(&rx, expected.len());
            assert_eq!(arrived, expected, "{flags} {opcode:?} from {from}");
            let sent =
                Completed::Sent { id, result: Ok(BYTES - from), notifies: opcode.is_zerocopy() };
            let done = all(&mut ring);
            assert_eq!(done[0], sent, "{opcode:?}");
            assert_eq!(done.len(), if opcode.is_zerocopy() { 2 } else { 1 });
            for released in &done[1..] {
                let Completed::Released { id: of, copied } = *released else { panic!("{done:?}") };
                assert_eq!((of, copied != Some(false)), (id, true), "loopback copies: {done:?}");
            }
        }
        assert_eq!((ring.completion(), ring.lost()), (None, 0));
        assert_eq!(ring.idle(), Ok(flags.contains(SetupFlags::SQPOLL)));
    }
}

#[test]
fn a_send_that_nobody_takes_is_cancelled_with_its_ring() {
    /// Closing the ring before this one may interrupt a send, which then ends short.
    const ATTEMPTS: usize = 20;
    for (flags, opcode) in ways() {
        let waits = |attempt: usize| {
            let (tx, _rx) = tcp::loopback_pair(4096);
            let test = "a_send_that_nobody_takes_is_cancelled_with_its_ring";
            let patience = Duration::from_millis(5);
            // More than both buffers hold, also of large pages that are not copied, and less than
            // an ordinary user may lock.
            let Some(mut ring) = open(flags, test, opcode, &tx, 1 << 20, patience) else {
                return true;
            };
            ring.send(0, 0, 0).unwrap();
            let at_once = ring.completion();
            let mut waits = std::iter::repeat_with(|| ring.wait(patience));
            // The interruption is seen by whoever waits too.
            let waited = waits.find(|&done| done != Err(Errno::EINTR));
            let is_last = attempt + 1 == ATTEMPTS;
            let is_as_expected = at_once.is_none() && waited == Some(Ok(false));
            assert!(is_as_expected || !is_last, "{flags} {opcode:?}: {at_once:?}, {waited:?}");
            is_as_expected
        };
        assert!((0..ATTEMPTS).any(waits));
    }
}

/// Everything that completes until so many sends have their results and their
/// notifications.
fn all_of(ring: &mut SendRing<'_>, sends: usize) -> Vec<Completed> {
    let mut found: Vec<Completed> = Vec::new();
    let is_sent = |one: &&Completed| matches!(one, Completed::Sent { .. });
    let notifies = |one: &&Completed| matches!(one, Completed::Sent { notifies: true, .. });
    loop {
        while let Some(one) = ring.completion() {
            found.push(one);
        }
        let sent = found.iter().filter(is_sent).count();
        if sent == sends && found.len() - sent == found.iter().filter(notifies).count() {
            return found;
        }
        assert!(ring.wait(LIMIT).unwrap(), "only {found:?}");
    }
}

/// The result of each send, by its id.
fn results(found: &[Completed]) -> Vec<(u32, Result<usize, Errno>)> {
    let result = |one: &Completed| match *one {
        Completed::Sent { id, result, .. } => Some((id, result)),
        Completed::Released { .. } => None,
    };
    found.iter().filter_map(result).collect()
}

#[test]
fn a_chain_is_sent_in_order_by_one_call() {
    const BYTES: usize = 100_000;
    for opcode in ALL {
        // Less room than a message has bytes: the kernel waits within a chain.
        let (tx, rx) = tcp::loopback_pair(32 << 10);
        let test = "a_chain_is_sent_in_order_by_one_call";
        let Some(mut ring) = open(SetupFlags::ONE_THREAD, test, opcode, &tx, BYTES, LIMIT) else {
            continue;
        };
        let reader = std::thread::spawn(move || received(&rx, 4 * BYTES));
        for (id, (place, message)) in (20..).zip([2, 0, 1, 2].into_iter().enumerate()) {
            ring.queue(place, message, id, place < 3).unwrap();
        }
        ring.submit(4).unwrap();
        let found = all_of(&mut ring, 4);
        let whole: Vec<_> = (20..24).map(|id| (id, Ok(BYTES))).collect();
        assert_eq!(results(&found), whole, "{opcode:?}");
        let content = |message| (0..BYTES).map(move |at| ring::content(message, at));
        let expected: Vec<u8> = [2, 0, 1, 2].into_iter().flat_map(content).collect();
        assert!(reader.join().unwrap() == expected, "{opcode:?}");
        assert_eq!((ring.completion(), ring.lost()), (None, 0));
    }
}

#[test]
fn behind_a_send_that_fails_a_chain_is_cancelled() {
    for opcode in ALL {
        let (tx, rx) = tcp::loopback_pair(4096);
        let test = "behind_a_send_that_fails_a_chain_is_cancelled";
        let Some(mut ring) = open(SetupFlags::ONE_THREAD, test, opcode, &tx, 64, LIMIT) else {
            continue;
        };
        drop(rx);
        let mut last = Vec::new();
        for _ in 0..1000 {
            (0..).zip(0..3).for_each(|(id, at)| ring.queue(at, at, id, at < 2).unwrap());
            ring.submit(3).unwrap();
            last = results(&all_of(&mut ring, 3));
            if last[0].1.is_err() {
                break;
            }
        }
        let ids: Vec<u32> = last.iter().map(|(id, _)| *id).collect();
        let cancelled = Err(Errno::ECANCELED);
        assert!(matches!(last[0].1, Err(Errno::EPIPE | Errno::ECONNRESET)), "{opcode:?}: {last:?}");
        assert_eq!(
            (ids, last[1].1, last[2].1),
            (vec![0, 1, 2], cancelled, cancelled),
            "{opcode:?}"
        );
    }
}

#[test]
fn a_peer_that_is_gone_is_the_result_of_a_send() {
    for opcode in ALL {
        let (tx, rx) = tcp::loopback_pair(4096);
        let test = "a_peer_that_is_gone_is_the_result_of_a_send";
        let Some(mut ring) = open(SetupFlags::ONE_THREAD, test, opcode, &tx, 64, LIMIT) else {
            continue;
        };
        drop(rx);
        let mut last = None;
        for id in 0..1000 {
            ring.send(0, 0, id).unwrap();
            let done = all(&mut ring);
            last = done.iter().find_map(|one| match one {
                Completed::Sent { result, .. } => result.err(),
                Completed::Released { .. } => None,
            });
            if last.is_some() {
                break;
            }
        }
        assert!(matches!(last, Some(Errno::EPIPE | Errno::ECONNRESET)), "{opcode:?}: {last:?}");
    }
}

#[test]
fn another_thread_is_refused_by_the_kernel() {
    let (tx, _rx) = tcp::loopback_pair(4096);
    let test = "another_thread_is_refused_by_the_kernel";
    let Some(mut ring) = open(SetupFlags::ONE_THREAD, test, Opcode::Send, &tx, 64, LIMIT) else {
        return;
    };
    let refused = std::thread::scope(|scope| scope.spawn(|| ring.send(0, 0, 0)).join().unwrap());
    assert_eq!(refused, Err(Errno::from_raw(libc::EEXIST)));
}

#[test]
fn more_messages_than_buffers_can_be_registered_are_refused() {
    let (tx, _rx) = tcp::loopback_pair(4096);
    let messages = MessageRing::new(REGISTERED_MAX + 1, 1, 1, Layout::Contiguous);
    let wishes = Wishes {
        operation: Opcode::SendZcFixed,
        flags: SetupFlags::ONE_THREAD,
        prepared: false,
        depth: 1,
        notifications_max: 8,
        stall_limit: LIMIT,
    };
    match SendRing::open(tx.as_fd(), messages, wishes).and_then(|mut ring| ring.register()) {
        Err(OpenError::TooMany(buffers)) => assert_eq!(buffers, REGISTERED_MAX + 1),
        Err(why @ (OpenError::Setup(_) | OpenError::Flags(_) | OpenError::Opcode(_))) => {
            skip::note(
                "io_uring::tests::more_messages_than_buffers_can_be_registered_are_refused",
                &format!("{why:?}"),
            )
        }
        other => panic!("{other:?}"),
    }
}
