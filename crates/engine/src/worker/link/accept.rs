//! The receiving end takes all lanes of a trial. A stranger's connection is
//! closed and not counted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use iolens_model::transport::Transport;
use iolens_model::trial::Trial;
use iolens_sys::errno::Errno;
use iolens_sys::{poll, socket, tcp, unix};

use super::{
    GREETING_BYTES, Links, Peer, Ports, by_arm, failed, hear_port, is_local, lists, options,
    own_address, own_end, place_in, places, say_port, stall_limit, transport_of_place,
};
use crate::worker::protocol::Failure;
use iolens_harness::watch::Deadline;
use iolens_net::lane::Lane;

const STRANGERS_MAX: usize = 64;

/// What the receiving end is reached through.
pub(crate) struct Doors {
    tcp: tcp::Listener,
    mptcp: Option<tcp::Listener>,
    /// Of programs of the user's, each with the index of its arm: of a port of its own, or one
    /// could be taken for another.
    programs: Vec<(usize, tcp::Listener)>,
}

impl Doors {
    /// Opens those that the trial needs.
    ///
    /// Errors: what was tried and what the system said.
    pub(crate) fn open(trial: &Trial, address: IpAddr) -> Result<Doors, Failure> {
        let connections = places(trial).count() * trial.cell.threads as usize;
        let options = options(trial);
        let needs = |wanted: fn(Transport) -> bool| {
            places(trial).any(|place| wanted(transport_of_place(trial, place)))
        };
        let open = |multipath| {
            let options = tcp::Options { multipath, ..options.clone() };
            listen(trial, address, &options, connections)
        };
        let mptcp = needs(|transport| transport == Transport::Mptcp).then(|| open(true));
        let arms = (0..trial.arms.len()).filter(|&arm| trial.program(arm).is_some());
        let programs = arms.map(|arm| Ok((arm, open(false)?))).collect::<Result<_, Failure>>()?;
        Ok(Doors { tcp: open(false)?, mptcp: mptcp.transpose()?, programs })
    }

    /// Where they are.
    ///
    /// Errors: of getsockname(2).
    pub(crate) fn peer(&self) -> Result<Peer, Failure> {
        Ok(Peer {
            tcp: self.tcp.address()?,
            mptcp: self.mptcp.as_ref().map(tcp::Listener::address).transpose()?,
            programs: self
                .programs
                .iter()
                .map(|(arm, door)| Ok((*arm, door.address()?)))
                .collect::<Result<_, tcp::SetupError>>()?,
        })
    }
}

/// Listens at an address. The one by which another machine reaches this one need not be its
/// own: it may be translated on the way (RFC 3022).
fn listen(
    trial: &Trial,
    address: IpAddr,
    options: &tcp::Options,
    connections: usize,
) -> Result<tcp::Listener, tcp::SetupError> {
    let open = |ip| tcp::Listener::open(&SocketAddr::new(ip, 0), options, connections);
    match open(address) {
        Err(error) if error.errno == Errno::EADDRNOTAVAIL && trial.hosts.is_some() => {
            open(if address.is_ipv4() {
                Ipv4Addr::UNSPECIFIED.into()
            } else {
                Ipv6Addr::UNSPECIFIED.into()
            })
        }
        result => result,
    }
}

/// Takes all lanes of the receiving end, which stands at `address`. `inherited` is its end of a
/// pair of sockets whose other end the sending one has.
///
/// Errors: what was tried and what the system said; also when too many strangers
/// came.
pub(crate) fn accept(
    trial: &Trial,
    doors: Doors,
    token: u64,
    address: IpAddr,
    inherited: Option<&OwnedFd>,
) -> Result<Links, Failure> {
    let mut taken = Taken::none(trial, token);
    taken.connections(&doors.tcp, |t| !is_local(t) && t != Transport::Mptcp)?;
    if let Some(mptcp) = &doors.mptcp {
        taken.connections(mptcp, |t| t == Transport::Mptcp)?;
    }
    taken.handed_over(inherited)?;
    let strangers = taken.strangers as u64;
    let by_place = taken.by_place.into_iter().map(|lanes| lanes.into_iter().flatten().collect());
    let (by_arm, signals) = by_arm(trial, by_place.collect());
    let mut ports = Ports::default();
    let mut whole = |lane| with_datagrams(trial, lane, address, &mut ports);
    let by_arm = by_arm.into_iter().map(|lanes| lanes.into_iter().map(&mut whole).collect());
    let by_arm = by_arm.collect::<Result<_, Failure>>()?;
    let program_doors = doors.programs;
    let doors = [Some(doors.tcp), doors.mptcp].into_iter().flatten().collect();
    Ok(Links { by_arm, signals, doors, strangers, ports, program_doors, ..Links::none() })
}

/// What has come so far, by place and thread.
struct Taken<'a> {
    trial: &'a Trial,
    token: u64,
    by_place: Vec<Vec<Option<Lane>>>,
    strangers: usize,
}

impl<'a> Taken<'a> {
    fn none(trial: &'a Trial, token: u64) -> Taken<'a> {
        let mut by_place: Vec<Vec<_>> = lists(trial);
        for place in places(trial) {
            by_place[place].resize_with(trial.cell.threads as usize, || None);
        }
        Taken { trial, token, by_place, strangers: 0 }
    }

    /// How many lanes there will be of such transports.
    fn expected(&self, of: impl Fn(Transport) -> bool) -> usize {
        let places = places(self.trial).filter(|&p| of(transport_of_place(self.trial, p)));
        places.count() * self.trial.cell.threads as usize
    }

    /// The free slot that a greeting names, if it is one of ours.
    fn slot(&mut self, greeting: &[u8; GREETING_BYTES]) -> Option<(usize, &mut Option<Lane>)> {
        let (place, thread) = place_in(greeting, self.token)?;
        let slot = self.by_place.get_mut(place)?.get_mut(thread)?;
        slot.is_none().then_some((place, slot))
    }

    fn note_stranger(&mut self) -> Result<(), Failure> {
        self.strangers += 1;
        self.check_strangers(0)
    }

    /// Gives up where there are too many, with `silent` ones that have not shown what they are.
    fn check_strangers(&self, silent: usize) -> Result<(), Failure> {
        if self.strangers + silent <= STRANGERS_MAX {
            return Ok(());
        }
        Err(Failure::cause("too many connections that are not ours"))
    }

    /// Takes those that come over the network, in the order of their greetings: who connects
    /// and says nothing keeps nobody waiting, however long a greeting may be on its way.
    fn connections(
        &mut self,
        listener: &tcp::Listener,
        of: impl Fn(Transport) -> bool,
    ) -> Result<(), Failure> {
        let trial = self.trial;
        let mut missing = self.expected(of);
        let mut callers: Vec<Caller> = Vec::new();
        // Who dials has so long for each connection, and knows more of why none is made: it is
        // to be heard first.
        let patience = stall_limit(trial) * 2;
        let mut deadline = Deadline::after(patience);
        while missing > 0 {
            if next_to_speak(listener, &mut callers, deadline)
                .map_err(|error| nobody_came(trial, error))?
            {
                callers.push(Caller::of(listener.accept()?));
            }
            let (done, waiting) = callers.into_iter().partition(|caller| caller.is_done);
            callers = waiting;
            for Caller { fd, greeting, filled, .. } in done {
                let slot = (filled == GREETING_BYTES).then(|| self.slot(&greeting)).flatten();
                if let Some((place, slot)) = slot {
                    *slot = Some(Lane::connection(transport_of_place(trial, place), fd));
                    missing -= 1;
                    deadline = Deadline::after(patience);
                } else {
                    self.note_stranger()?;
                }
            }
            // Of ours there are no more than are missing.
            self.check_strangers(callers.len().saturating_sub(missing))?;
        }
        self.strangers += callers.len();
        Ok(())
    }

    /// Takes what the sending end has made and hands over.
    fn handed_over(&mut self, inherited: Option<&OwnedFd>) -> Result<(), Failure> {
        let trial = self.trial;
        for _ in 0..self.expected(is_local) {
            let (greeting, fds) = received(own_end(inherited)?)?;
            let nonsense = || Failure::cause("the sending end hands over what has no place here");
            let (place, slot) = self.slot(&greeting).ok_or_else(nonsense)?;
            let mut fds = fds.into_iter();
            let transport = transport_of_place(trial, place);
            *slot = match (transport, fds.next(), fds.next()) {
                (Transport::Pipe, Some(back), Some(read)) => {
                    Some(Lane::beside(transport, read, back))
                }
                (_, Some(fd), None) => Some(Lane::connection(transport, fd)),
                _ => return Err(Failure::cause("the sending end handed over too little")),
            };
        }
        Ok(())
    }
}

/// From another machine nobody comes because of something that the sending end knows more of.
fn nobody_came(trial: &Trial, error: tcp::SetupError) -> Failure {
    let is_told_there = trial.hosts.is_some() && error.errno == Errno::EAGAIN;
    let failure = Failure::from(error);
    Failure { consequence: failure.consequence || is_told_there, ..failure }
}

/// Connections that are closed in one go. A queue holds no more where nobody has raised
/// net.core.somaxconn, and a flood refills it as fast as it is emptied.
const TURNED_AWAY_MAX: u64 = 4096;

/// Closes the connections that wait at a door; how many they were.
pub(crate) fn turn_away(door: &tcp::Listener) -> u64 {
    counted(|| poll::is_readable(door.as_fd(), 0) == Ok(true) && door.accept().is_ok())
}

/// How often there was one more.
fn counted(mut one_more: impl FnMut() -> bool) -> u64 {
    let mut strangers = 0;
    while strangers < TURNED_AWAY_MAX && one_more() {
        strangers += 1;
    }
    strangers
}

/// Who has connected and not yet said who it is.
struct Caller {
    fd: OwnedFd,
    greeting: [u8; GREETING_BYTES],
    filled: usize,
    /// Whether it has said all of it, or will say no more.
    is_done: bool,
}

impl Caller {
    fn of(fd: OwnedFd) -> Caller {
        Caller { fd, greeting: [0; GREETING_BYTES], filled: 0, is_done: false }
    }

    /// Reads on; something is there, or the end.
    fn listen(&mut self) {
        match socket::recv(self.fd.as_fd(), &mut self.greeting[self.filled..]) {
            Ok(n @ 1..) => {
                self.filled += n;
                self.is_done = self.filled == GREETING_BYTES;
            }
            Err(Errno::EINTR) => {}
            Ok(0) | Err(_) => self.is_done = true,
        }
    }
}

/// Waits for the next caller, which is whether one is at the door, and for what those say that
/// have come in.
///
/// Errors: `EAGAIN` at the deadline; see poll(2).
fn next_to_speak(
    listener: &tcp::Listener,
    callers: &mut [Caller],
    deadline: Deadline,
) -> Result<bool, tcp::SetupError> {
    let tried = |errno| tcp::SetupError { tried: "accept a connection".to_owned(), errno };
    let left_ns = u64::try_from(deadline.left().as_nanos()).unwrap_or(u64::MAX);
    let inside = callers.iter().map(|caller| caller.fd.as_fd());
    let fds: Vec<BorrowedFd<'_>> = inside.chain([listener.as_fd()]).collect();
    let ready = match poll::readable(&fds, left_ns) {
        Ok(ready) if left_ns == 0 && !ready.contains(&true) => return Err(tried(Errno::EAGAIN)),
        Ok(ready) => ready,
        Err(Errno::EINTR) => return Ok(false),
        Err(errno) => return Err(tried(errno)),
    };
    for (caller, _) in callers.iter_mut().zip(&ready).filter(|(_, ready)| **ready) {
        caller.listen();
    }
    Ok(ready.last() == Some(&true))
}

/// A greeting with what came along.
type HandedOver = ([u8; GREETING_BYTES], Vec<OwnedFd>);

/// Receives one greeting with its descriptors.
fn received(fd: BorrowedFd<'_>) -> Result<HandedOver, Failure> {
    let mut greeting = [0; GREETING_BYTES];
    loop {
        // Bytes with descriptors are never merged with others (unix(7)).
        let errno = match unix::receive_with(fd, &mut greeting) {
            Ok((GREETING_BYTES, fds)) => return Ok((greeting, fds)),
            Ok((0, _)) => Errno::ECONNRESET,
            Ok(_) => Errno::EBADMSG,
            Err(Errno::EINTR) => continue,
            Err(errno) => errno,
        };
        return Err(failed("take what the sending end hands over", errno));
    }
}

/// Puts a UDP socket beside a connection whose messages are datagrams.
fn with_datagrams(
    trial: &Trial,
    lane: Lane,
    address: IpAddr,
    ports: &mut Ports,
) -> Result<Lane, Failure> {
    if lane.transport() != Transport::Udp || !trial.cell.has_receiver() {
        return Ok(lane);
    }
    let fd = ports.open(trial, own_address(trial, lane.back(), address)?)?;
    say_port(lane.back(), fd.as_fd())?;
    let port = hear_port(lane.back())?;
    let peer = tcp::peer_address(lane.back())?;
    ports.connect(fd.as_fd(), SocketAddr::new(peer.ip(), port))?;
    Ok(Lane::beside(Transport::Udp, fd, lane.into_connection()))
}

#[cfg(test)]
mod tests;
