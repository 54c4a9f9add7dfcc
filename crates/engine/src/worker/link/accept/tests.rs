//! Who comes to the doors of a trial: its own connections and datagrams, and strangers.

use std::net::TcpStream;
use std::os::fd::AsRawFd;

use iolens_model::axes::Mode;
use iolens_model::cell::{Cell, Setting};
use iolens_model::units::Nanos;
use iolens_sys::udp;

use super::*;
use crate::small;
use crate::worker::link::connect;
use iolens_net::lane::{receive_byte, send_byte};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const TOKEN: u64 = 7;

/// One that ends only when everybody has come: what waits for a limit never does.
fn trial(primitive: &str) -> Trial {
    small::trial(primitive, Nanos(3600 * Nanos::SECOND.0))
}

/// Both ends of a trial, the sending one after `strangers` have been at the door.
fn met<T>(trial: &Trial, strangers: impl FnOnce(SocketAddr) -> T) -> (Links, Links, T) {
    let doors = Doors::open(trial, HERE).unwrap();
    let peer = doors.peer().unwrap();
    let came = strangers(peer.tcp);
    let (near, far) = unix::pair(4096, stall_limit(trial)).unwrap();
    std::thread::scope(|scope| {
        let tx = scope.spawn(|| connect(trial, &peer, TOKEN, HERE, Some(&near)).unwrap());
        let rx = accept(trial, doors, TOKEN, HERE, Some(&far)).unwrap();
        (tx.join().unwrap(), rx, came)
    })
}

/// The limit of an hour is for a slow link; a stranger does not have it.
#[test]
fn who_says_nothing_keeps_nobody_waiting() {
    let (_tx, rx, _silent) = met(&trial("send"), |door| TcpStream::connect(door).unwrap());
    assert_eq!(rx.strangers(), Some(1));
}

#[test]
fn who_says_a_part_of_a_greeting_or_goes_is_a_stranger() {
    use std::io::Write as _;
    let trial = Trial { cell: Cell { threads: 3, ..trial("send").cell }, ..trial("send") };
    let (_tx, rx, _kept) = met(&trial, |door| {
        drop(TcpStream::connect(door).unwrap());
        let mut half = TcpStream::connect(door).unwrap();
        half.write_all(&TOKEN.to_le_bytes()).unwrap();
        let mut other = TcpStream::connect(door).unwrap();
        other.write_all(&[0; GREETING_BYTES]).unwrap();
        [half, other]
    });
    assert_eq!(rx.strangers(), Some(3));
}

/// Whoever answers on a connection acknowledges late on it.
#[test]
fn nothing_comes_back_on_the_connection_of_a_stream() {
    let trial = Trial { cell: Cell { threads: 3, ..trial("send").cell }, ..trial("send") };
    let (tx, rx, ()) = met(&trial, |_| ());
    for (near, far) in tx.of_arm(0).iter().zip(rx.of_arm(0)) {
        let peer = tcp::peer_address(near.data()).unwrap();
        assert_eq!(peer, tcp::own_address(far.data()).unwrap());
        send_byte(far.back()).unwrap();
        assert_eq!(poll::is_readable(near.data(), 0), Ok(false));
        receive_byte(near.back()).unwrap();
        near.release(false).unwrap();
        receive_byte(far.data()).unwrap();
    }
    let mut of_requests = trial.clone();
    let Setting::Net(net) = &mut of_requests.cell.setting else { unreachable!() };
    net.mode = Mode::Rr;
    let (_tx, rx, ()) = met(&of_requests, |_| ());
    assert_eq!(rx.of_arm(0)[0].back().as_raw_fd(), rx.of_arm(0)[0].data().as_raw_fd());
}

#[test]
fn what_stays_on_this_machine_has_no_door() {
    for primitive in ["unix_stream", "pipe"] {
        let trial = trial(primitive);
        let (tx, rx, ()) = met(&trial, |_| ());
        assert_eq!((tx.of_arm(0).len(), rx.of_arm(0).len()), (1, 1), "{primitive}");
        let doors = Doors::open(&trial, HERE).unwrap();
        let why = accept(&trial, doors, TOKEN, HERE, None).unwrap_err();
        assert!(why.what.contains("without a socket to the other one"), "{}", why.what);
    }
}

/// Who had the other end has gone, or speaks of a trial that is not this one.
#[test]
fn a_sending_end_that_goes_or_errs_ends_the_trial() {
    let trial = trial("unix_stream");
    let said = |what: &[u8]| {
        let (near, far) = unix::pair(4096, stall_limit(&trial)).unwrap();
        if !what.is_empty() {
            unix::send_with(near.as_fd(), what, &[]).unwrap();
        }
        drop(near);
        let doors = Doors::open(&trial, HERE).unwrap();
        accept(&trial, doors, TOKEN, HERE, Some(&far)).unwrap_err()
    };
    assert!(said(b"").consequence, "whoever has gone is the cause");
    assert!(said(b"short").what.contains("EBADMSG"));
    assert!(said(&[0; GREETING_BYTES]).what.contains("has no place here"));
}

/// Datagrams of others move no byte, and are counted: before a port has its peer and after.
#[test]
fn strange_datagrams_are_counted_and_not_received() {
    let trial = trial("sendto");
    let (tx, rx, ()) = met(&trial, |_| ());
    assert_eq!((tx.strange_datagrams(), rx.strange_datagrams()), (Some(0), Some(0)));
    let stranger = std::net::UdpSocket::bind((HERE, 0)).unwrap();
    let to = |links: &Links| {
        let port = udp::port(links.data(0, 0)).unwrap();
        stranger.send_to(b"not of this trial", (HERE, port)).unwrap();
    };
    to(&rx);
    socket::send(tx.data(0, 0), b"ours").unwrap();
    to(&rx);
    to(&tx);
    let mut got = [0; 64];
    assert_eq!(socket::recv(rx.data(0, 0), &mut got), Ok(4));
    assert_eq!(udp::drain(rx.data(0, 0)), Ok(0));
    assert_eq!((tx.strange_datagrams(), rx.strange_datagrams()), (Some(1), Some(2)));

    let mut ports = Ports::default();
    let fd = ports.open(&trial, HERE).unwrap();
    stranger.send_to(b"early", (HERE, udp::port(fd.as_fd()).unwrap())).unwrap();
    ports.connect(fd.as_fd(), SocketAddr::new(HERE, 9)).unwrap();
    assert_eq!(udp::drain(fd.as_fd()), Ok(0));
    assert_eq!(ports.strangers(), Some(1));
}

/// Nobody else can listen in at a port of ours.
#[test]
fn a_watched_port_is_shared_with_nobody() {
    let mut ports = Ports::default();
    let fd = ports.open(&trial("sendto"), HERE).unwrap();
    let at = SocketAddr::new(HERE, udp::port(fd.as_fd()).unwrap());
    assert!(std::net::UdpSocket::bind(at).is_err());
}

/// Who floods a door does not keep the worker at it.
#[test]
fn a_flood_of_connections_ends() {
    let mut came = 0;
    let counted = counted(|| {
        came += 1;
        came <= 2 * TURNED_AWAY_MAX
    });
    assert_eq!(counted, TURNED_AWAY_MAX);
}
