//! The connections of a trial: one per arm and thread, each of which says at
//! its start to which arm and thread it belongs and that it is one of ours.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use iolens_model::trial::Trial;
use iolens_sys::errno::Errno;
use iolens_sys::{socket, tcp, udp};

use super::protocol::Failure;
use crate::stage::sink;

/// Connections by arm and thread. Arms that send nothing have them too: the
/// receiving end waits on them until the slice is over.
#[derive(Debug)]
pub(crate) struct Links {
    by_arm: Vec<Vec<OwnedFd>>,
    /// By thread; empty without leads.
    signals: Vec<OwnedFd>,
    /// By arm and thread, where messages do not go over the connections:
    /// sockets towards a device that drops them.
    sinks: Vec<Vec<OwnedFd>>,
}

/// token, arm, thread.
const GREETING_BYTES: usize = 16;

impl Links {
    /// From connections by place.
    fn of(trial: &Trial, mut by_arm: Vec<Vec<OwnedFd>>) -> Links {
        let signals = by_arm.split_off(trial.arms.len()).pop().unwrap_or_default();
        Links { by_arm, signals, sinks: Vec::new() }
    }

    /// What an arm's thread sends its messages over.
    pub(crate) fn data(&self, arm: usize, thread: usize) -> BorrowedFd<'_> {
        let sink = self.sinks.get(arm).and_then(|threads| threads.get(thread));
        sink.map_or_else(|| self.get(arm, thread), AsFd::as_fd)
    }

    /// The connection of an arm's thread.
    pub(crate) fn get(&self, arm: usize, thread: usize) -> BorrowedFd<'_> {
        self.by_arm[arm][thread].as_fd()
    }

    /// All connections of an arm.
    pub(crate) fn of_arm(&self, arm: usize) -> &[OwnedFd] {
        &self.by_arm[arm]
    }

    /// The connection on which a thread says how long its lead was. Only in
    /// trials that have leads.
    pub(crate) fn signal(&self, thread: usize) -> Option<BorrowedFd<'_>> {
        self.signals.get(thread).map(AsFd::as_fd)
    }

    /// Any connection at all, to read options back from.
    pub(crate) fn any(&self) -> Option<BorrowedFd<'_>> {
        self.by_arm.iter().flatten().next().map(AsFd::as_fd)
    }

    /// Any socket at all towards a device that drops what is sent.
    pub(crate) fn any_sink(&self) -> Option<BorrowedFd<'_>> {
        self.sinks.iter().flatten().next().map(AsFd::as_fd)
    }

    /// Ends every connection, which wakes whoever waits on one.
    pub(crate) fn hang_up(&self) {
        let sinks = self.sinks.iter().flatten();
        for fd in self.by_arm.iter().flatten().chain(&self.signals).chain(sinks) {
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
    }
}

/// How long a blocking call may wait in this trial.
pub(crate) fn stall_limit(trial: &Trial) -> Duration {
    trial.stall_limit.as_duration()
}

/// Both ends of a connection over loopback within this process, with short
/// waits: for calibration.
///
/// Errors: the step that failed.
pub(crate) fn connected_pair() -> Result<(OwnedFd, OwnedFd), tcp::SetupError> {
    let options = tcp::Options {
        congestion: "reno".to_owned(),
        buffer_bytes: 64 << 10,
        nodelay: true,
        stall_limit: Duration::from_secs(1),
    };
    let listener = tcp::Listener::open(&SocketAddr::from(([127, 0, 0, 1], 0)), &options, 1)?;
    let near = tcp::connect_to(&listener.address()?, &options)?;
    Ok((near, listener.accept()?))
}

/// Opens the listening socket of the receiving end at its address.
///
/// Errors: what was tried and what the system said.
pub(crate) fn listen(trial: &Trial, address: IpAddr) -> Result<tcp::Listener, Failure> {
    let address = SocketAddr::new(address, 0);
    let connections = places(trial) * trial.cell.threads as usize;
    Ok(tcp::Listener::open(&address, &options(trial), connections)?)
}

/// Whether an error only says that the process at the other end has gone,
/// which is then the reason.
pub(crate) fn tells_of_the_peer(errno: Errno) -> bool {
    const OF_THE_PEER: [Errno; 6] = [
        Errno::ENODATA,
        Errno::EPIPE,
        Errno::ECONNRESET,
        Errno::ECONNREFUSED,
        Errno::ECONNABORTED,
        Errno::ENOTCONN,
    ];
    OF_THE_PEER.contains(&errno)
}

impl From<tcp::SetupError> for Failure {
    fn from(error: tcp::SetupError) -> Failure {
        let consequence = tells_of_the_peer(error.errno);
        Failure { consequence, ..Failure::cause(error.to_string()) }
    }
}

/// Connections of each thread: one per arm, and one for signals if needed.
/// In greetings the signals come as one arm more.
fn places(trial: &Trial) -> usize {
    trial.arms.len() + usize::from(trial.has_lead())
}

/// Makes all connections of the sending end.
///
/// Errors: what was tried and what the system said.
pub(crate) fn connect(trial: &Trial, peer: SocketAddr, token: u64) -> Result<Links, Failure> {
    let options = options(trial);
    let mut by_arm: Vec<Vec<OwnedFd>> = (0..places(trial)).map(|_| Vec::new()).collect();
    for arm in trial.arms_as_they_run().into_iter().chain(trial.arms.len()..places(trial)) {
        for thread in 0..trial.cell.threads {
            let fd = tcp::connect_to(&peer, &options)?;
            let mut greeting = [0; GREETING_BYTES];
            greeting[..8].copy_from_slice(&token.to_le_bytes());
            greeting[8..12].copy_from_slice(&(arm as u64).to_le_bytes()[..4]);
            greeting[12..].copy_from_slice(&thread.to_le_bytes());
            // The first bytes of a connection always find room in its buffer.
            match socket::send(fd.as_fd(), &greeting) {
                Ok(GREETING_BYTES) => by_arm[arm].push(fd),
                Ok(n) => {
                    let what = format!("cannot greet the receiving end: sent {n} of 16 bytes");
                    return Err(Failure::cause(what));
                }
                Err(errno) => {
                    let what = format!("cannot greet the receiving end: {errno}");
                    let consequence = tells_of_the_peer(errno);
                    return Err(Failure { consequence, ..Failure::cause(what) });
                }
            }
        }
    }
    Ok(Links { sinks: sinks(trial)?, ..Links::of(trial, by_arm) })
}

/// A UDP socket for each arm and thread, where a trial sends over these.
fn sinks(trial: &Trial) -> Result<Vec<Vec<OwnedFd>>, Failure> {
    let Some([from, to]) = sink::endpoints(trial) else { return Ok(Vec::new()) };
    let tcp::Options { buffer_bytes, stall_limit, .. } = options(trial);
    let open = |_| udp::connected(from, to, buffer_bytes, stall_limit).map_err(Failure::from);
    trial.arms.iter().map(|_| (0..trial.cell.threads).map(open).collect()).collect()
}

/// Takes all connections at the receiving end; a stranger's is closed and
/// not counted.
///
/// Errors: as [`connect`]; also when too many strangers came.
pub(crate) fn accept(
    trial: &Trial,
    listener: &tcp::Listener,
    token: u64,
) -> Result<Links, Failure> {
    const STRANGERS_MAX: usize = 64;
    let threads = trial.cell.threads as usize;
    let expected = places(trial) * threads;
    let slots = || std::iter::repeat_with(|| None).take(threads).collect();
    let mut by_arm: Vec<Vec<Option<OwnedFd>>> = (0..places(trial)).map(|_| slots()).collect();
    let (mut accepted, mut strangers) = (0, 0);
    while accepted < expected {
        let fd = listener.accept()?;
        let place = greeted(&fd, token).and_then(|(arm, thread)| {
            by_arm.get_mut(arm)?.get_mut(thread).filter(|slot| slot.is_none())
        });
        match place {
            Some(slot) => {
                *slot = Some(fd);
                accepted += 1;
            }
            None if strangers < STRANGERS_MAX => strangers += 1,
            None => return Err(Failure::cause("too many connections that are not ours")),
        }
    }
    let by_arm = by_arm.into_iter().map(|arm| arm.into_iter().flatten().collect()).collect();
    Ok(Links::of(trial, by_arm))
}

/// Reads the greeting of a connection: its arm and thread, if it is ours.
fn greeted(fd: &OwnedFd, token: u64) -> Option<(usize, usize)> {
    let mut greeting = [0; GREETING_BYTES];
    let mut filled = 0;
    while filled < GREETING_BYTES {
        match socket::recv(fd.as_fd(), &mut greeting[filled..]) {
            Ok(0) => return None,
            Ok(n) => filled += n,
            Err(Errno::EINTR) => {}
            Err(_) => return None,
        }
    }
    let (sent, place) = greeting.split_at(8);
    if sent != token.to_le_bytes() {
        return None;
    }
    let number = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes).ok();
    Some((number(&place[..4])? as usize, number(&place[4..])? as usize))
}

/// Receives one byte: a `ready`, a receipt or a release.
///
/// Errors: `ENODATA` when the peer ended the stream, else of recv(2).
pub(crate) fn receive_byte(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    loop {
        match socket::recv(fd, &mut [0]) {
            Ok(0) => return Err(Errno::ENODATA),
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Sends one such byte.
///
/// Errors: of send(2).
pub(crate) fn send_byte(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    send(fd, 0)
}

/// Sends one byte that says something.
///
/// Errors: of send(2).
#[inline]
pub(crate) fn send(fd: BorrowedFd<'_>, byte: u8) -> Result<(), Errno> {
    loop {
        match socket::send(fd, &[byte]) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}
