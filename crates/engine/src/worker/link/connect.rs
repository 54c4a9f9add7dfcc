//! The sending end makes all lanes of a trial. Every connection says at its
//! start to which arm and thread it belongs and that it is one of ours.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use iolens_model::transport::Transport;
use iolens_model::trial::Trial;
use iolens_sys::errno::Errno;
use iolens_sys::{socket, tcp, udp, unix};

use super::{
    GREETING_BYTES, Links, Peer, Ports, by_arm, failed, greeting, hear_port, is_local, lists,
    options, own_address, own_end, places, say_port, transport_of_place,
};
use crate::stage::sink;
use crate::worker::protocol::Failure;
use iolens_net::lane::{Lane, open_pipe};

const GREET: &str = "greet the receiving end";

/// Makes all lanes of the sending end, which stands at `address`. `inherited` is its end of a
/// pair of sockets whose other end the receiving one has.
///
/// Errors: what was tried and what the system said.
pub(crate) fn connect(
    trial: &Trial,
    peer: &Peer,
    token: u64,
    address: IpAddr,
    inherited: Option<&OwnedFd>,
) -> Result<Links, Failure> {
    let connector = Connector { trial, peer, token, options: options(trial) };
    let arms = trial.arms.len();
    let mut by_place: Vec<Vec<Lane>> = lists(trial);
    let beside = places(trial).filter(|&place| place >= arms);
    for place in trial.arms_as_they_run().into_iter().chain(beside) {
        for thread in 0..trial.cell.threads {
            by_place[place].push(connector.lane(place, thread, inherited)?);
        }
    }
    let (by_arm, signals) = by_arm(trial, by_place);
    // The other end has every connection before it is asked for more.
    let mut ports = Ports::default();
    let mut whole = |lane| connector.with_datagrams(lane, address, &mut ports);
    let by_arm = by_arm.into_iter().map(|lanes| lanes.into_iter().map(&mut whole).collect());
    let by_arm = by_arm.collect::<Result<_, Failure>>()?;
    let program_addresses = peer.programs.clone();
    Ok(Links { by_arm, signals, ports, program_addresses, ..Links::none() })
}

/// A connection to another machine that is not made, while that machine hears our orders.
fn not_let_through(trial: &Trial, error: tcp::SetupError) -> Failure {
    // What connect(2) says when its time is up is EINPROGRESS (socket(7), SO_SNDTIMEO).
    const OF_THE_WAY: [Errno; 6] = [
        Errno::EINPROGRESS,
        Errno::ETIMEDOUT,
        Errno::EHOSTUNREACH,
        Errno::ENETUNREACH,
        Errno::ECONNREFUSED,
        Errno::EPERM,
    ];
    if trial.hosts.is_none() || !OF_THE_WAY.contains(&error.errno) {
        return Failure::from(error);
    }
    let what = format!(
        "{error}, though orders get there: a firewall lets the launcher through and data not, or \
         the address is not the one for data: open the ports of \
         net.ipv4.ip_local_port_range of the receiving end to the sending one, or name another \
         address with --peer-address"
    );
    // Where the other end has gone meanwhile, that is why.
    Failure { consequence: true, ..Failure::cause(what) }
}

struct Connector<'a> {
    trial: &'a Trial,
    peer: &'a Peer,
    token: u64,
    options: tcp::Options,
}

impl Connector<'_> {
    fn lane(
        &self,
        place: usize,
        thread: u32,
        inherited: Option<&OwnedFd>,
    ) -> Result<Lane, Failure> {
        let transport = transport_of_place(self.trial, place);
        let greeting = greeting(self.token, place, thread);
        match is_local(transport) {
            true => self.hand_over(transport, &greeting, own_end(inherited)?),
            false => self.dial(transport, &greeting),
        }
    }

    /// Connects over the network.
    fn dial(&self, transport: Transport, greeting: &[u8; GREETING_BYTES]) -> Result<Lane, Failure> {
        let multipath = self.peer.mptcp.filter(|_| transport == Transport::Mptcp);
        let options = tcp::Options { multipath: multipath.is_some(), ..self.options.clone() };
        let fd = tcp::connect_to(&multipath.unwrap_or(self.peer.tcp), &options)
            .map_err(|error| not_let_through(self.trial, error))?;
        // The first bytes of a connection always find room in its buffer.
        match socket::send(fd.as_fd(), greeting) {
            Ok(GREETING_BYTES) => Ok(Lane::connection(transport, fd)),
            Ok(n) => Err(Failure::cause(format!("cannot {GREET}: sent {n} of 16 bytes"))),
            Err(errno) => Err(failed(GREET, errno)),
        }
    }

    /// Makes what stays on this machine, and hands the other end of it over.
    fn hand_over(
        &self,
        transport: Transport,
        greeting: &[u8; GREETING_BYTES],
        own_end: BorrowedFd<'_>,
    ) -> Result<Lane, Failure> {
        let tcp::Options { buffer_bytes, stall_limit, .. } = self.options;
        let (near, far) = unix::pair(buffer_bytes, stall_limit)?;
        let sent = |fds: &[BorrowedFd<'_>]| {
            unix::send_with(own_end, greeting, fds).map_err(|errno| failed(GREET, errno))
        };
        if transport == Transport::Pipe {
            let (read, write) = open_pipe(buffer_bytes)?;
            sent(&[far.as_fd(), read.as_fd()])?;
            return Ok(Lane::beside(transport, write, near));
        }
        sent(&[far.as_fd()])?;
        Ok(Lane::connection(transport, near))
    }

    /// Puts a UDP socket beside a connection whose messages are datagrams: towards
    /// a device that drops them, or towards that of the other end, which says its
    /// port and hears ours.
    fn with_datagrams(
        &self,
        lane: Lane,
        address: IpAddr,
        ports: &mut Ports,
    ) -> Result<Lane, Failure> {
        let tcp::Options { buffer_bytes, stall_limit, .. } = self.options;
        let fd = if let Some([from, to]) = sink::endpoints(self.trial) {
            udp::connected(from, to, buffer_bytes, stall_limit)?
        } else if lane.transport() == Transport::Udp {
            let fd = ports.open(self.trial, own_address(self.trial, lane.back(), address)?)?;
            let port = hear_port(lane.back())?;
            ports.connect(fd.as_fd(), SocketAddr::new(self.peer.tcp.ip(), port))?;
            say_port(lane.back(), fd.as_fd())?;
            fd
        } else {
            return Ok(lane);
        };
        Ok(Lane::beside(Transport::Udp, fd, lane.into_connection()))
    }
}
