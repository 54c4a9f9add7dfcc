//! Who comes to the doors of a trial: its own connections and datagrams, and strangers.

use std::net::TcpStream;

use iolens_model::arm::{Arm, Role};
use iolens_model::axes::{Iovec, Mode, Topology, WorkingSet};
use iolens_model::cell::{Cell, NetSetting, Setting};
use iolens_model::plan::{NetworkOptions, Probes, SocketOptions};
use iolens_model::trial::{Slice, SliceKind, Work};
use iolens_model::tuning::Tuning;
use iolens_model::units::{Bytes, Nanos};

use super::*;
use crate::worker::link::connect;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const TOKEN: u64 = 7;

/// One that ends only when everybody has come: what waits for a limit never does.
fn trial(primitive: &str) -> Trial {
    let net = NetSetting {
        topology: Topology::Loopback,
        mode: Mode::Stream,
        working_set: WorkingSet::Hot,
        fields: 1,
        iovec: Iovec::PerMessage,
        receiver: "recv".into(),
        tuning: Tuning::DEFAULT,
    };
    let arm = Arm { label: primitive.into(), primitive: primitive.into(), role: Role::Baseline };
    Trial {
        pass: 1,
        position: 0,
        isolated: false,
        cell: Cell { setting: Setting::Net(net), threads: 1, size: Bytes(64) },
        arms: vec![arm],
        slices: vec![Slice {
            arm: 0,
            round: 0,
            kind: SliceKind::Measured,
            work: Work::Messages(4),
        }],
        socket: SocketOptions {
            congestion: "reno".into(),
            buffer_bytes: Bytes(65_536),
            nodelay: true,
            receive_bytes: Bytes(65_536),
        },
        network: NetworkOptions::default(),
        hosts: None,
        probes: Probes::default(),
        tx_cpus: vec![0],
        rx_cpus: vec![0],
        ring_messages: 1,
        file: None,
        copies: None,
        servers: None,
        sampling: None,
        stall_limit: Nanos(3_600_000_000_000),
        trial_limit: Nanos(3_600_000_000_000),
    }
}

/// Both ends of a trial, the sending one after `strangers` have been at the door.
fn met<T>(trial: &Trial, strangers: impl FnOnce(SocketAddr) -> T) -> (Links, Links, T) {
    let doors = Doors::open(trial, HERE, None).unwrap();
    let peer = doors.peer().unwrap();
    let came = strangers(peer.tcp);
    std::thread::scope(|scope| {
        let tx = scope.spawn(|| connect(trial, &peer, TOKEN, HERE, None).unwrap());
        let rx = accept(trial, doors, TOKEN, HERE).unwrap();
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
