//! What a trial's messages travel over: a lane for each arm and thread, of the
//! arm's transport, and the bytes with which the ends keep step.

mod accept;
mod connect;
mod ports;

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use iolens_model::transport::Transport;
use iolens_model::trial::Trial;
use iolens_sys::errno::Errno;
use iolens_sys::{socket, tcp, udp};
use serde::{Deserialize, Serialize};

use super::protocol::Failure;
use iolens_net::lane::Lane;
use iolens_net::lane::{receive_exactly, tells_of_the_peer};
use iolens_net::registry;

pub(crate) use self::accept::{Doors, accept, turn_away};
pub(crate) use self::connect::connect;
use self::ports::Ports;

/// Where the receiving end can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// By TCP.
    pub tcp: SocketAddr,
    /// By MPTCP; `None` where no arm needs it.
    pub mptcp: Option<SocketAddr>,
    /// By programs of the user's, each with the index of its arm.
    pub programs: Vec<(usize, SocketAddr)>,
}

/// Lanes by arm and thread. Arms that send nothing have them too: the receiving
/// end waits on them until the slice is over.
#[derive(Debug, Default)]
pub(crate) struct Links {
    by_arm: Vec<Vec<Lane>>,
    /// By thread; empty without leads.
    signals: Vec<OwnedFd>,
    /// What the receiving end is reached through; open as long as the lanes are, so that who
    /// comes without being one of ours is noticed.
    doors: Vec<tcp::Listener>,
    /// Those that came while the lanes were made.
    strangers: u64,
    ports: Ports,
    /// What programs connect to, with the index of their arm: the listener at the receiving end,
    /// its address at the sending one.
    program_doors: Vec<(usize, tcp::Listener)>,
    program_addresses: Vec<(usize, SocketAddr)>,
}

/// token, arm, thread.
const GREETING_BYTES: usize = 16;

impl Links {
    /// None at all: of a study in which nobody receives.
    pub(crate) fn none() -> Links {
        Links::default()
    }

    /// Connections to this end's ports so far that were not ours, at least: more than a queue
    /// holds the kernel turns away by itself. `None` at an end that has no port.
    pub(crate) fn strangers(&self) -> Option<u64> {
        let waiting = self.doors.iter().map(accept::turn_away).sum::<u64>();
        (!self.doors.is_empty()).then_some(self.strangers + waiting)
    }

    /// Datagrams to this end's ports that are not of the other end's, as above. `None` at an end
    /// that has no such port.
    pub(crate) fn strange_datagrams(&self) -> Option<u64> {
        self.ports.strangers()
    }

    /// What the program of an arm connects to; `None` at the sending end, and of arms that are
    /// no programs.
    pub(crate) fn program_door(&self, arm: usize) -> Option<&tcp::Listener> {
        self.program_doors.iter().find(|(of, _)| *of == arm).map(|(_, door)| door)
    }

    /// Where that is; `None` at the receiving end, and of arms that are no programs.
    pub(crate) fn program_address(&self, arm: usize) -> Option<SocketAddr> {
        self.program_addresses.iter().find(|(of, _)| *of == arm).map(|&(_, address)| address)
    }

    /// The lane of an arm's thread; `None` in studies without a network.
    pub(crate) fn lane(&self, arm: usize, thread: usize) -> Option<&Lane> {
        self.by_arm.get(arm)?.get(thread)
    }

    /// What an arm's thread sends its messages over, or receives them from.
    pub(crate) fn data(&self, arm: usize, thread: usize) -> BorrowedFd<'_> {
        self.by_arm[arm][thread].data()
    }

    /// All lanes of an arm.
    pub(crate) fn of_arm(&self, arm: usize) -> &[Lane] {
        &self.by_arm[arm]
    }

    /// The lanes that messages go over a network with.
    pub(crate) fn over_network(&self) -> impl Iterator<Item = &Lane> {
        self.by_arm.iter().flatten().filter(|lane| !is_local(lane.transport()))
    }

    /// The connection on which a thread says how long its lead was. Only in
    /// trials that have leads.
    pub(crate) fn signal(&self, thread: usize) -> Option<BorrowedFd<'_>> {
        self.signals.get(thread).map(AsFd::as_fd)
    }

    /// Any lane at all of a transport, to read options back from.
    pub(crate) fn any(&self, transport: Transport) -> Option<&Lane> {
        self.by_arm.iter().flatten().find(|lane| lane.transport() == transport)
    }

    /// Ends every connection, which wakes whoever waits on one.
    pub(crate) fn hang_up(&self) {
        self.by_arm.iter().flatten().for_each(Lane::hang_up);
        for fd in &self.signals {
            // The peer may have gone already, which is as good.
            let _ = tcp::hang_up(fd.as_fd());
        }
    }
}

/// The socket options of a trial.
fn options(trial: &Trial) -> tcp::Options {
    tcp::Options {
        congestion: trial.socket.congestion.clone(),
        buffer_bytes: usize::try_from(trial.socket.buffer_bytes.0).unwrap_or(usize::MAX),
        nodelay: trial.socket.nodelay,
        stall_limit: stall_limit(trial),
        multipath: false,
    }
}

/// How long a blocking call may wait in this trial.
pub(crate) fn stall_limit(trial: &Trial) -> Duration {
    trial.stall_limit.as_duration()
}

impl From<tcp::SetupError> for Failure {
    fn from(error: tcp::SetupError) -> Failure {
        let consequence = tells_of_the_peer(error.errno);
        Failure { consequence, ..Failure::cause(error.to_string()) }
    }
}

/// A failure of what was tried with the other end.
fn failed(what: &str, errno: Errno) -> Failure {
    let consequence = tells_of_the_peer(errno);
    Failure { consequence, ..Failure::cause(format!("cannot {what}: {errno}")) }
}

/// What an arm's messages travel over in this trial.
pub(crate) fn transport(trial: &Trial, arm: usize) -> Transport {
    let entry = registry::find(&trial.arms[arm].primitive);
    entry.map_or(Transport::Tcp, |entry| entry.transport)
}

/// Connections of each thread, as greetings number them: one per arm, then one for signals if
/// needed, then one back for each arm that has one.
fn places(trial: &Trial) -> impl Iterator<Item = usize> {
    let arms = trial.arms.len();
    let backs = (0..arms).filter(|&arm| has_back(trial, arm));
    let first_back = first_back(trial);
    (0..first_back).chain(backs.map(move |arm| first_back + arm))
}

fn first_back(trial: &Trial) -> usize {
    trial.arms.len() + usize::from(trial.has_lead())
}

/// An empty list for each place that there can be.
fn lists<T>(trial: &Trial) -> Vec<Vec<T>> {
    (0..first_back(trial) + trial.arms.len()).map(|_| Vec::new()).collect()
}

/// Whether the ends of an arm keep step on a connection beside that of its messages. Were receipts
/// to come back on that one, the kernel would take it for a conversation, and its receiver
/// would no longer acknowledge what it reads (net/ipv4/tcp.c, __tcp_cleanup_rbuf: pingpong mode).
fn has_back(trial: &Trial, arm: usize) -> bool {
    let is_tcp = matches!(transport(trial, arm), Transport::Tcp | Transport::Mptcp);
    is_tcp && !trial.cell.is_rr() && trial.cell.has_receiver()
}

/// The transport of a place: an arm's own, and TCP for what lies beside.
fn transport_of_place(trial: &Trial, place: usize) -> Transport {
    if place < trial.arms.len() { transport(trial, place) } else { Transport::Tcp }
}

/// The lanes of each arm, with what lies beside them, and the signals.
fn by_arm(trial: &Trial, mut by_place: Vec<Vec<Lane>>) -> (Vec<Vec<Lane>>, Vec<OwnedFd>) {
    let backs = by_place.split_off(first_back(trial));
    let signals = by_place.split_off(trial.arms.len()).into_iter().flatten();
    let signals = signals.map(Lane::into_connection).collect();
    let whole = by_place.into_iter().zip(backs).map(|(lanes, backs)| {
        let backs = backs.into_iter().map(|back| Some(back.into_connection()));
        let backs = backs.chain(std::iter::repeat_with(|| None));
        lanes.into_iter().zip(backs).map(|(lane, back)| lane.with_back(back)).collect()
    });
    (whole.collect(), signals)
}

/// Whether the sending end makes both ends of such a lane and hands one of them over.
fn is_local(transport: Transport) -> bool {
    matches!(transport, Transport::UnixStream | Transport::Pipe)
}

/// Whether a trial has lanes that are handed over: its ends then inherit a pair of sockets,
/// which no stranger can reach.
pub(crate) fn is_handed_over(trial: &Trial) -> bool {
    (0..trial.arms.len()).any(|arm| is_local(transport(trial, arm)))
}

/// This end of the inherited pair.
fn own_end(inherited: Option<&OwnedFd>) -> Result<BorrowedFd<'_>, Failure> {
    let missing = || Failure::cause("this end was started without a socket to the other one");
    inherited.map(AsFd::as_fd).ok_or_else(missing)
}

/// What a connection says first: that it is one of ours, and its place.
fn greeting(token: u64, place: usize, thread: u32) -> [u8; GREETING_BYTES] {
    let mut greeting = [0; GREETING_BYTES];
    greeting[..8].copy_from_slice(&token.to_le_bytes());
    greeting[8..12].copy_from_slice(&(place as u64).to_le_bytes()[..4]);
    greeting[12..].copy_from_slice(&thread.to_le_bytes());
    greeting
}

/// The place and the thread in a greeting, if it is ours.
fn place_in(greeting: &[u8; GREETING_BYTES], token: u64) -> Option<(usize, usize)> {
    let (sent, place) = greeting.split_at(8);
    if sent != token.to_le_bytes() {
        return None;
    }
    let number = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes).ok();
    Some((number(&place[..4])? as usize, number(&place[4..])? as usize))
}

/// The address of this end for what goes beside a connection: to another machine that of the
/// connection itself, as `address` may be another one on the way.
fn own_address(
    trial: &Trial,
    connection: BorrowedFd<'_>,
    address: IpAddr,
) -> Result<IpAddr, Failure> {
    match trial.hosts {
        None => Ok(address),
        Some(_) => Ok(tcp::own_address(connection)?.ip()),
    }
}

/// Says over a connection which port a UDP socket has.
fn say_port(connection: BorrowedFd<'_>, fd: BorrowedFd<'_>) -> Result<(), Failure> {
    const SAY: &str = "say a UDP port to the other end";
    match socket::send(connection, &udp::port(fd)?.to_le_bytes()) {
        Ok(2) => Ok(()),
        Ok(_) => Err(Failure::cause(format!("cannot {SAY}: half of it was sent"))),
        Err(errno) => Err(failed(SAY, errno)),
    }
}

/// Hears over a connection which port the other end's UDP socket has.
fn hear_port(connection: BorrowedFd<'_>) -> Result<u16, Failure> {
    let mut port = [0; 2];
    receive_exactly(connection, &mut port)
        .map_err(|errno| failed("hear of the UDP port of the other end", errno))?;
    Ok(u16::from_le_bytes(port))
}
