//! TCP connections: set up outside every clock, options read back, and what
//! the kernel says about a connection afterwards.
//!
//! # Safety
//! The struct lives on the stack of the caller for the whole call.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrAny, SocketFlags, SocketType, acceptfrom_with, bind,
    connect, getpeername, getsockname, ipproto, listen, shutdown, socket_with,
};

use crate::errno::Errno;
use crate::socket;

/// Options that both ends of a connection are given before it exists, so that
/// the handshake already knows the buffer sizes (tcp(7)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `TCP_CONGESTION`.
    pub congestion: String,
    /// `SO_SNDBUF` and `SO_RCVBUF` as asked; the kernel doubles and caps them.
    pub buffer_bytes: usize,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// `SO_SNDTIMEO` and `SO_RCVTIMEO`: how long a blocking call may wait.
    pub stall_limit: Duration,
    /// Whether it may have several paths (`IPPROTO_MPTCP`, RFC 8684; Linux 5.6).
    pub multipath: bool,
}

/// What the kernel made of the options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// Congestion control in use.
    pub congestion: String,
    /// Send buffer, with the kernel's doubling.
    pub send_buffer_bytes: usize,
    /// Receive buffer, with the kernel's doubling.
    pub receive_buffer_bytes: usize,
    /// Whether Nagle's algorithm is off.
    pub nodelay: bool,
}

/// A step of setting up a connection that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupError {
    /// What was tried, in words.
    pub tried: String,
    /// What the system said.
    pub errno: Errno,
}

impl std::fmt::Display for SetupError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot {}: {}", self.tried, self.errno)
    }
}

impl std::error::Error for SetupError {}

/// Names the step in the error of a call.
pub(crate) fn step<T>(
    tried: impl Into<String>,
    result: Result<T, rustix::io::Errno>,
) -> Result<T, SetupError> {
    result.map_err(|e| SetupError { tried: tried.into(), errno: e.into() })
}

/// A TCP socket with the options, not yet connected.
fn socket(address: &SocketAddr, options: &Options) -> Result<OwnedFd, SetupError> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let (protocol, name) = match options.multipath {
        false => (None, "a TCP"),
        true => (Some(ipproto::MPTCP), "an MPTCP"),
    };
    let fd = step(
        format!("open {name} socket"),
        socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, protocol),
    )?;
    let congestion = options.congestion.as_str();
    step(
        format!("set TCP_CONGESTION to `{congestion}`"),
        sockopt::set_tcp_congestion(&fd, congestion),
    )?;
    step("set TCP_NODELAY", sockopt::set_tcp_nodelay(&fd, options.nodelay))?;
    let bytes = options.buffer_bytes;
    step(format!("set SO_SNDBUF to {bytes}"), sockopt::set_socket_send_buffer_size(&fd, bytes))?;
    step(format!("set SO_RCVBUF to {bytes}"), sockopt::set_socket_recv_buffer_size(&fd, bytes))?;
    Ok(fd)
}

/// Puts an upper-layer protocol of the kernel on a connection (`TCP_ULP`), such as
/// `tls`; root's attempt also loads its module.
///
/// Errors: `ENOENT` where there is no such one.
pub fn try_ulp(connection: &OwnedFd, name: &str) -> Result<(), SetupError> {
    let fd = connection.as_fd();
    socket::set_option(fd, libc::IPPROTO_TCP, libc::TCP_ULP, name.as_bytes())
        .map_err(|errno| SetupError { tried: format!("set TCP_ULP to `{name}`"), errno })
}

/// Whether a socket here may use a congestion control; root's attempt also
/// loads the module, as a run's would.
///
/// Errors: `ENOENT` where there is no such one, `EPERM` where only root may.
pub fn try_congestion(name: &str) -> Result<(), Errno> {
    let fd = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    Ok(sockopt::set_tcp_congestion(&fd, name)?)
}

/// Limits how long blocking calls on `fd` may wait; they then fail with
/// `EAGAIN`.
///
/// Errors: `EDOM` for a limit out of range.
pub fn limit_waits(fd: BorrowedFd<'_>, limit: Duration) -> Result<(), SetupError> {
    for (name, which) in [("SO_SNDTIMEO", Timeout::Send), ("SO_RCVTIMEO", Timeout::Recv)] {
        step(format!("set {name}"), sockopt::set_socket_timeout(fd, which, Some(limit)))?;
    }
    Ok(())
}

/// A socket that waits for connections on a port of the kernel's choosing.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    stall_limit: Duration,
}

impl Listener {
    /// Listens on `address` with a backlog for `connections`.
    ///
    /// Errors: the step that failed.
    pub fn open(
        address: &SocketAddr,
        options: &Options,
        connections: usize,
    ) -> Result<Listener, SetupError> {
        let fd = socket(address, options)?;
        // Or a port that somebody chooses is taken for a minute by what is left of
        // the last connection to it. Two that listen are refused all the same, and
        // a port of the kernel's choosing is a free one (socket(7)).
        step("set SO_REUSEADDR", sockopt::set_socket_reuseaddr(&fd, true))?;
        step(format!("bind to {address}"), bind(&fd, address))?;
        let backlog = i32::try_from(connections).unwrap_or(i32::MAX);
        step(format!("listen on {address}"), listen(&fd, backlog))?;
        limit_waits(fd.as_fd(), options.stall_limit)?;
        Ok(Listener { fd, stall_limit: options.stall_limit })
    }

    /// The address with the port that the kernel chose.
    ///
    /// Errors: of getsockname(2).
    pub fn address(&self) -> Result<SocketAddr, SetupError> {
        let any = step("read the listening address", getsockname(&self.fd))?;
        SocketAddr::try_from(any)
            .map_err(|e| SetupError { tried: "read the listening address".into(), errno: e.into() })
    }

    /// Takes the next connection, waiting no longer than the stall limit.
    ///
    /// Errors: `EAGAIN` when nobody came.
    pub fn accept(&self) -> Result<OwnedFd, SetupError> {
        let (fd, _): (OwnedFd, Option<SocketAddrAny>) =
            step("accept a connection", acceptfrom_with(&self.fd, SocketFlags::CLOEXEC))?;
        limit_waits(fd.as_fd(), self.stall_limit)?;
        Ok(fd)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Connects to `address`.
///
/// Errors: the step that failed.
pub fn connect_to(address: &SocketAddr, options: &Options) -> Result<OwnedFd, SetupError> {
    let fd = socket(address, options)?;
    limit_waits(fd.as_fd(), options.stall_limit)?;
    step(format!("connect to {address}"), connect(&fd, address))?;
    Ok(fd)
}

/// Whether the other end is at this address.
pub fn is_connected_to(fd: BorrowedFd<'_>, address: SocketAddr) -> bool {
    peer_address(fd).is_ok_and(|peer| peer == address)
}

/// The address of the other end.
///
/// Errors: `ENOTCONN` if the peer has gone.
pub fn peer_address(fd: BorrowedFd<'_>) -> Result<SocketAddr, SetupError> {
    let tried = "read the address of the other end";
    let any = step(tried, getpeername(fd))?.ok_or(rustix::io::Errno::NOTCONN);
    step(tried, any.and_then(SocketAddr::try_from))
}

/// The address of this end.
///
/// Errors: passed on from getsockname(2).
pub fn own_address(fd: BorrowedFd<'_>) -> Result<SocketAddr, SetupError> {
    let tried = "read the address of this end";
    step(tried, getsockname(fd).and_then(SocketAddr::try_from))
}

/// Reads the options of a connection back.
///
/// Errors: the option that could not be read.
pub fn read_back(fd: BorrowedFd<'_>) -> Result<Accepted, SetupError> {
    Ok(Accepted {
        congestion: step("read TCP_CONGESTION", sockopt::tcp_congestion(fd))?,
        send_buffer_bytes: step("read SO_SNDBUF", sockopt::socket_send_buffer_size(fd))?,
        receive_buffer_bytes: step("read SO_RCVBUF", sockopt::socket_recv_buffer_size(fd))?,
        nodelay: step("read TCP_NODELAY", sockopt::tcp_nodelay(fd))?,
    })
}

/// Ends the sending direction: the peer reads the rest and then the end.
///
/// Errors: `ENOTCONN` if the peer has gone.
pub fn finish_sending(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    Ok(shutdown(fd, Shutdown::Write)?)
}

/// Ends the receiving direction, which wakes every thread that waits for bytes.
/// Those that are there can still be received; the peer is not told.
///
/// Errors: `ENOTCONN` if the peer has gone.
pub fn finish_receiving(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    Ok(shutdown(fd, Shutdown::Read)?)
}

/// What closing a connection does to the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// It reads the rest and then the end.
    Ends,
    /// Its connection is reset (`SO_LINGER` with a time of 0; socket(7)): also
    /// where the kernel closes for a process that was killed.
    Resets,
}

/// Says what closing a connection is to do.
///
/// Errors: passed on from setsockopt(2).
pub fn set_closing(fd: BorrowedFd<'_>, closing: Closing) -> Result<(), SetupError> {
    let linger = match closing {
        Closing::Ends => None,
        Closing::Resets => Some(Duration::ZERO),
    };
    step("set SO_LINGER", sockopt::set_socket_linger(fd, linger))
}

/// Ends both directions, which wakes every thread that waits on the socket.
///
/// Errors: `ENOTCONN` if the peer has gone.
pub fn hang_up(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    Ok(shutdown(fd, Shutdown::Both)?)
}

/// Bytes that were given to the connection and that the peer's kernel has not
/// acknowledged (`SIOCOUTQ`, tcp(7)). The peer's program may not have read
/// those that were. After [`finish_sending`] the end counts as one.
///
/// Errors: `EINVAL` for a listening socket, `ENOTTY` where it is not TCP.
pub fn unacknowledged_bytes(fd: BorrowedFd<'_>) -> Result<u64, Errno> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one int, which lives on this stack. SIOCOUTQ has
    // the number of TIOCOUTQ (include/uapi/linux/sockios.h).
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    match result {
        0 => Ok(u64::try_from(bytes).unwrap_or(0)),
        _ => Err(Errno::last()),
    }
}

/// What the kernel knows of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// Segments sent again since the connection began.
    pub retransmits: u64,
    /// Segments sent since the connection began, those without payload and
    /// those sent again too (`tcpi_segs_out`); `None` before Linux 4.2.
    pub segments_out: Option<u64>,
    /// The shortest time from a segment to its acknowledgement that was seen
    /// (`tcpi_min_rtt`); `None` before Linux 4.6, and where none was.
    pub min_round_trip: Option<Duration>,
    /// Largest segment it sends, in bytes.
    pub send_mss_bytes: u64,
    /// Whether the peer has ended its sending direction, or the connection.
    pub peer_has_ended: bool,
}

/// States in which the peer has ended its sending direction
/// (include/net/tcp_states.h).
const PEER_HAS_ENDED: [libc::c_int; 5] =
    [TCP_TIME_WAIT, TCP_CLOSE, TCP_CLOSE_WAIT, TCP_LAST_ACK, TCP_CLOSING];
const TCP_TIME_WAIT: libc::c_int = 6;
const TCP_CLOSE: libc::c_int = 7;
const TCP_CLOSE_WAIT: libc::c_int = 8;
const TCP_LAST_ACK: libc::c_int = 9;
const TCP_CLOSING: libc::c_int = 11;

/// Where `tcpi_segs_out` ends in `struct tcp_info`, which grows with kernels.
const SEGS_OUT_END: usize = std::mem::offset_of!(libc::tcp_info, tcpi_segs_out) + 4;

/// The same of `tcpi_min_rtt`, which is all ones as long as none was seen (net/ipv4/tcp.c).
const MIN_RTT_END: usize = std::mem::offset_of!(libc::tcp_info, tcpi_min_rtt) + 4;

/// Reads `TCP_INFO`.
///
/// Errors: `EOPNOTSUPP` or `ENOPROTOOPT` where the socket is not TCP.
pub fn info(fd: BorrowedFd<'_>) -> Result<Info, Errno> {
    // SAFETY: an all-zero tcp_info is valid: plain numbers.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    #[expect(clippy::cast_possible_truncation, reason = "a few hundred bytes")]
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: pointer and length are those of `info`; the kernel writes at most
    // `length` bytes and says how many.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(Errno::last());
    }
    Ok(Info {
        retransmits: u64::from(info.tcpi_total_retrans),
        segments_out: (length as usize >= SEGS_OUT_END).then(|| u64::from(info.tcpi_segs_out)),
        min_round_trip: (length as usize >= MIN_RTT_END && info.tcpi_min_rtt < u32::MAX)
            .then(|| Duration::from_micros(info.tcpi_min_rtt.into())),
        send_mss_bytes: u64::from(info.tcpi_snd_mss),
        peer_has_ended: PEER_HAS_ENDED.contains(&info.tcpi_state.into()),
    })
}

/// Both ends of a connection over loopback, for tests.
#[cfg(test)]
pub(crate) fn loopback_pair(buffer_bytes: usize) -> (OwnedFd, OwnedFd) {
    let options = Options {
        congestion: "reno".into(),
        buffer_bytes,
        nodelay: true,
        stall_limit: Duration::from_secs(20),
        multipath: false,
    };
    loop {
        let listener = Listener::open(&([127, 0, 0, 1], 0).into(), &options, 1).unwrap();
        let tx = connect_to(&listener.address().unwrap(), &options);
        match tx.and_then(|tx| Ok((tx, listener.accept()?))) {
            Ok(both) => return both,
            // The end of a ring is work that its thread is interrupted for, some
            // time later, and waits with a time limit do not go on by themselves.
            Err(error) => assert_eq!(error.errno, Errno::EINTR, "{error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options {
            congestion: "reno".into(),
            buffer_bytes: 65_536,
            nodelay: true,
            stall_limit: Duration::from_secs(5),
            multipath: false,
        }
    }

    #[test]
    fn both_ends_have_what_was_asked() {
        let any = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::open(&any, &options(), 1).unwrap();
        let client = connect_to(&listener.address().unwrap(), &options()).unwrap();
        let server = listener.accept().unwrap();
        for end in [&client, &server] {
            let accepted = read_back(end.as_fd()).unwrap();
            assert_eq!(accepted.congestion, "reno");
            assert_eq!(accepted.send_buffer_bytes, 131_072);
            assert!(accepted.nodelay);
            assert_eq!(info(end.as_fd()).unwrap().retransmits, 0);
        }
    }

    #[test]
    fn what_is_sent_is_counted_and_acknowledged() {
        let any = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::open(&any, &options(), 1).unwrap();
        let client = connect_to(&listener.address().unwrap(), &options()).unwrap();
        let server = listener.accept().unwrap();
        let before = info(client.as_fd()).unwrap().segments_out.unwrap();
        for _ in 0..3 {
            assert_eq!(crate::socket::send(client.as_fd(), b"abc"), Ok(3));
        }
        let sent = info(client.as_fd()).unwrap().segments_out.unwrap() - before;
        assert!((1..=3).contains(&sent), "{sent}: small segments may have been merged");
        // The answer acknowledges what it answers.
        assert!(crate::socket::recv(server.as_fd(), &mut [0; 9]).unwrap() > 0);
        assert_eq!(crate::socket::send(server.as_fd(), b"d"), Ok(1));
        assert_eq!(crate::socket::recv(client.as_fd(), &mut [0]), Ok(1));
        assert_eq!(unacknowledged_bytes(client.as_fd()), Ok(0));
        assert!(unacknowledged_bytes(std::fs::File::open("/dev/null").unwrap().as_fd()).is_err());
    }

    #[test]
    fn an_unknown_congestion_control_is_named() {
        let any = "127.0.0.1:0".parse().unwrap();
        let asked = Options { congestion: "warp".into(), ..options() };
        let error = Listener::open(&any, &asked, 1).unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot set TCP_CONGESTION to `warp`: ENOENT (no such file or directory)"
        );
    }

    #[test]
    fn a_chosen_port_is_free_again_at_once_and_never_twice() {
        let any = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::open(&any, &options(), 1).unwrap();
        let chosen = listener.address().unwrap();
        let client = connect_to(&chosen, &options()).unwrap();
        let server = listener.accept().unwrap();
        assert_eq!(peer_address(client.as_fd()), Ok(chosen));
        let taken = Listener::open(&chosen, &options(), 1).unwrap_err();
        assert_eq!(taken.errno, Errno::EADDRINUSE);
        drop(listener);
        // The end that closes first keeps the port for a minute (TIME_WAIT).
        finish_sending(server.as_fd()).unwrap();
        assert_eq!(crate::socket::recv(client.as_fd(), &mut [0]), Ok(0));
        assert!(info(client.as_fd()).unwrap().peer_has_ended);
        assert!(!info(server.as_fd()).unwrap().peer_has_ended);
        drop(client);
        assert_eq!(crate::socket::recv(server.as_fd(), &mut [0]), Ok(0));
        drop(server);
        Listener::open(&chosen, &options(), 1).unwrap();
    }

    #[test]
    fn closing_ends_or_resets() {
        for (closing, expect) in [(Closing::Ends, Ok(0)), (Closing::Resets, Err(Errno::ECONNRESET))]
        {
            let (tx, rx) = loopback_pair(65_536);
            set_closing(tx.as_fd(), Closing::Resets).unwrap();
            set_closing(tx.as_fd(), closing).unwrap();
            crate::socket::send(tx.as_fd(), b"abc").unwrap();
            drop(tx);
            let mut buffer = [0; 9];
            assert_eq!(crate::socket::recv(rx.as_fd(), &mut buffer), Ok(3), "{closing:?}");
            assert_eq!(crate::socket::recv(rx.as_fd(), &mut buffer), expect);
        }
    }

    #[test]
    fn an_ended_receiving_direction_wakes_who_waits() {
        let (tx, rx) = loopback_pair(65_536);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| crate::socket::recv(rx.as_fd(), &mut [0]));
            finish_receiving(rx.as_fd()).unwrap();
            assert_eq!(waiting.join().unwrap(), Ok(0));
        });
        assert!(!info(tx.as_fd()).unwrap().peer_has_ended, "the peer is not told");
    }

    #[test]
    fn waiting_for_nobody_ends_at_the_limit() {
        let any = "127.0.0.1:0".parse().unwrap();
        let asked = Options { stall_limit: Duration::from_millis(10), ..options() };
        let listener = Listener::open(&any, &asked, 1).unwrap();
        assert_eq!(listener.accept().unwrap_err().errno, Errno::EAGAIN);
    }
}
