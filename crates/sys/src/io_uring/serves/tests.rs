//! A ring that serves, against the running kernel.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;

use super::*;
use crate::event::Event;
use crate::skip;
use crate::tcp_server::{self, Waiting, Wishes};

/// A ring that listens on a free port; a kernel that has none is a skip.
fn open(test: &str, stop: &Event, buffers: Buffers) -> Option<(ServerRing, TcpStream)> {
    let wishes = Wishes {
        congestion: "reno",
        backlog: 16,
        waiting: Waiting::Never,
        shared_port: false,
        stall_limit: None,
    };
    let listener = tcp_server::listen_on(&([127, 0, 0, 1], 0).into(), &wishes).unwrap();
    let address = tcp_server::address(listener.as_fd()).unwrap();
    match ServerRing::open(listener, stop.as_fd(), buffers) {
        Ok(ring) => Some((ring, TcpStream::connect(address).unwrap())),
        Err(why) => {
            skip::note(&format!("io_uring::serves::tests::{test}"), &format!("{why:?}"));
            None
        }
    }
}

/// What comes next.
fn next(ring: &mut ServerRing) -> Completion {
    loop {
        if let Some(completion) = ring.completed() {
            return completion;
        }
        match ring.wait() {
            Ok(()) | Err(Errno::EINTR) => {}
            Err(errno) => panic!("{errno}"),
        }
    }
}

fn accepted(ring: &mut ServerRing) -> u32 {
    match next(ring) {
        Completion::Accepted(slot) => slot,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bytes_come_and_go_and_the_end_is_told() {
    let stop = Event::new().unwrap();
    let buffers = Buffers { count: 8, bytes: 64 };
    let test = "bytes_come_and_go_and_the_end_is_told";
    let Some((mut ring, mut client)) = open(test, &stop, buffers) else { return };
    let slot = accepted(&mut ring);
    ring.receive(slot).unwrap();
    assert_eq!(ring.receive(slot), Err(Errno::ENOTCONN), "it does already");
    for _ in 0..20 {
        client.write_all(b"ping").unwrap();
        let Completion::Received { slot: from, filled } = next(&mut ring) else { panic!() };
        assert_eq!((from, ring.bytes(&filled)), (slot, &b"ping"[..]));
        ring.give_back(filled);
        ring.send(slot, b"pong!".to_vec()).unwrap();
        assert_eq!(ring.send(slot, Vec::new()), Err(Errno::EBUSY));
        let Completion::Sent { result, bytes, .. } = next(&mut ring) else { panic!() };
        assert_eq!((result, &bytes[..]), (Ok(5), &b"pong!"[..]));
        let mut reply = [0; 5];
        client.read_exact(&mut reply).unwrap();
        assert_eq!(&reply, b"pong!");
    }
    drop(client);
    let ended = next(&mut ring);
    assert!(matches!(ended, Completion::ReceiveEnded { result: Ok(()), .. }), "{ended:?}");
    ring.close(slot);
    assert!(ring.socket(slot).is_none());
    stop.set();
    assert!(matches!(next(&mut ring), Completion::Stop));
}

#[test]
fn used_up_buffers_end_the_request_and_nothing_is_lost() {
    let stop = Event::new().unwrap();
    let buffers = Buffers { count: 2, bytes: 16 };
    let test = "used_up_buffers_end_the_request_and_nothing_is_lost";
    let Some((mut ring, mut client)) = open(test, &stop, buffers) else { return };
    let slot = accepted(&mut ring);
    ring.receive(slot).unwrap();
    let sent: Vec<u8> = (0..200).collect();
    client.write_all(&sent).unwrap();
    let (mut got, mut used_up) = (Vec::new(), 0);
    while got.len() < sent.len() {
        match next(&mut ring) {
            Completion::Received { filled, .. } => {
                got.extend_from_slice(ring.bytes(&filled));
                ring.give_back(filled);
            }
            Completion::ReceiveEnded { result: Err(Errno::ENOBUFS), .. } => {
                used_up += 1;
                ring.receive(slot).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(got, sent);
    assert!(used_up > 0);
}

#[test]
fn a_connection_can_be_paused_and_closed_with_requests_under_way() {
    let stop = Event::new().unwrap();
    let buffers = Buffers { count: 2, bytes: 16 };
    let test = "a_connection_can_be_paused_and_closed_with_requests_under_way";
    let Some((mut ring, mut client)) = open(test, &stop, buffers) else { return };
    let slot = accepted(&mut ring);
    ring.receive(slot).unwrap();
    ring.stop_receiving(slot).unwrap();
    let ended = next(&mut ring);
    let canceled = Err(Errno::ECANCELED);
    assert!(
        matches!(ended, Completion::ReceiveEnded { result, .. } if result == canceled),
        "{ended:?}"
    );
    ring.receive(slot).unwrap();
    // More than the socket takes: it stays under way.
    ring.send(slot, vec![7; 64 << 20]).unwrap();
    ring.close(slot);
    let mut all = Vec::new();
    while ring.socket(slot).is_some() {
        ring.wait().unwrap();
        assert!(ring.completed().is_none());
    }
    let _ = client.read_to_end(&mut all);
    assert!(all.len() < 64 << 20);
}

#[test]
fn a_ring_that_is_dropped_closes_what_it_has() {
    let stop = Event::new().unwrap();
    let buffers = Buffers { count: 2, bytes: 16 };
    let test = "a_ring_that_is_dropped_closes_what_it_has";
    let Some((mut ring, mut client)) = open(test, &stop, buffers) else { return };
    let slot = accepted(&mut ring);
    ring.receive(slot).unwrap();
    ring.wait_for_nothing();
    drop(ring);
    assert!(matches!(client.read(&mut [0; 4]), Ok(0) | Err(_)));
}

/// What cannot be handed over is said, and may be asked for again.
#[test]
fn a_request_that_cannot_be_made_is_told_and_marks_nothing() {
    let stop = Event::new().unwrap();
    let buffers = Buffers { count: 2, bytes: 16 };
    let test = "a_request_that_cannot_be_made_is_told_and_marks_nothing";
    let Some((mut ring, mut client)) = open(test, &stop, buffers) else { return };
    let slot = accepted(&mut ring);
    let (other, _) = UnixStream::pair().unwrap();
    // The kernel takes requests of the ring's own thread alone (`EEXIST`).
    let refused = Some(Errno::from_raw(libc::EEXIST));
    ring.fill();
    elsewhere(&mut ring, move |ring| {
        assert_eq!(ring.receive(slot).err(), refused);
        assert_eq!(ring.send(slot, b"never".to_vec()).err(), refused);
        let taken = ring.accepted(OwnedFd::from(other).into_raw_fd(), true);
        assert!(matches!(taken, Some(Completion::Accepted(_))), "{taken:?}");
        let ended = ring.completed();
        assert!(
            matches!(ended, Some(Completion::AcceptEnded(errno)) if Some(errno) == refused),
            "{ended:?}"
        );
        let came = ring.received(slot, Ok(1), Some(0), true);
        assert!(matches!(came, Some(Completion::Received { .. })), "{came:?}");
        let ended = ring.completed();
        assert!(
            matches!(&ended, Some(Completion::ReceiveEnded { slot: of, result })
                if *of == slot && result.err() == refused),
            "{ended:?}"
        );
    });
    ring.receive(slot).unwrap();
    ring.send(slot, b"pong!".to_vec()).unwrap();
    let mut reply = [0; 5];
    ring.wait().unwrap();
    client.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"pong!");
    ring.close(slot);
    ring.later = Some(Completion::ReceiveEnded { slot, result: Err(Errno::EBUSY) });
    assert!(ring.told_later().is_none(), "it was closed");
}

/// Has another thread use the ring.
fn elsewhere(ring: &mut ServerRing, work: impl FnOnce(&mut ServerRing) + Send) {
    struct Lent<'a>(&'a mut ServerRing);
    // SAFETY: this thread waits until the other one has ended; nothing of the ring is tied to
    // a thread but the kernel's side, which refuses others with an error.
    unsafe impl Send for Lent<'_> {}
    let lent = Lent(ring);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let lent = lent;
            work(lent.0);
        });
    });
}

impl ServerRing {
    /// Queues as many requests as there is room for, which are about nothing.
    fn fill(&mut self) {
        while !self.ring.is_full() {
            self.stop_receiving(u32::MAX).unwrap();
        }
    }

    /// Hands over what was asked for.
    fn wait_for_nothing(&mut self) {
        self.ring.submit(0).unwrap();
    }
}
