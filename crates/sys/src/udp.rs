//! UDP sockets: set up outside every clock; and the calls of udp(7) that are
//! measured, exactly as a program makes them.
//!
//! # Safety
//! Pointers and lengths come from live slices and from structs that outlive the
//! call.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvFlags, SocketAddrAny, SocketFlags, SocketType, bind, connect, getpeername,
    getsockname, recv, socket_with, sockopt,
};

use crate::errno::Errno;
use crate::socket::{self, count};
use crate::tcp::{SetupError, limit_waits, step};

/// Most datagrams that one segmented send can be cut into with every kernel that
/// has it (`UDP_MAX_SEGMENTS`, include/linux/udp.h; 128 since Linux 6.9).
pub const SEGMENTS_MAX: usize = 64;

/// A socket bound to a port of the kernel's choosing at `at` (udp(7)). A call
/// that finds no room, or nothing to receive, waits for as long as `stall_limit`.
///
/// Errors: the step that failed.
pub fn bound(
    at: SocketAddr,
    buffer_bytes: usize,
    stall_limit: Duration,
) -> Result<OwnedFd, SetupError> {
    let fd = unbound(at, buffer_bytes, stall_limit)?;
    step(format!("bind to {at}"), bind(&fd, &at))?;
    Ok(fd)
}

fn unbound(
    at: SocketAddr,
    buffer_bytes: usize,
    stall_limit: Duration,
) -> Result<OwnedFd, SetupError> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let opened = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let fd = step("open a UDP socket", opened)?;
    step(
        format!("set SO_SNDBUF to {buffer_bytes}"),
        sockopt::set_socket_send_buffer_size(&fd, buffer_bytes),
    )?;
    step(
        format!("set SO_RCVBUF to {buffer_bytes}"),
        sockopt::set_socket_recv_buffer_size(&fd, buffer_bytes),
    )?;
    limit_waits(fd.as_fd(), stall_limit)?;
    Ok(fd)
}

/// A port that is to have one peer, and that knows of others who come.
#[derive(Debug)]
pub struct Watched {
    /// The socket for the peer, yet to be connected to it.
    pub data: OwnedFd,
    /// Gets what comes to the port from anybody else, once the other one is connected: of the
    /// sockets that a datagram may belong to the kernel takes the one that names its sender
    /// (net/ipv4/udp.c, `compute_score`).
    pub watch: OwnedFd,
}

/// Such a socket as [`bound`] makes, with one beside it that hears of strangers.
///
/// Errors: the step that failed.
pub fn watched(
    at: SocketAddr,
    buffer_bytes: usize,
    stall_limit: Duration,
) -> Result<Watched, SetupError> {
    let share = |fd: &OwnedFd, on| step("set SO_REUSEADDR", sockopt::set_socket_reuseaddr(fd, on));
    // The kernel chooses a port that nobody else has; only then it is shared.
    let watch = bound(at, buffer_bytes, stall_limit)?;
    share(&watch, true)?;
    // The socket that was bound last is the first that is looked at for each datagram.
    let data = unbound(at, buffer_bytes, stall_limit)?;
    share(&data, true)?;
    let at = address(watch.as_fd())?;
    step(format!("bind to {at}"), bind(&data, &at))?;
    share(&watch, false)?;
    share(&data, false)?;
    Ok(Watched { data, watch })
}

/// Such a socket whose messages all go to `to`, and which hears of no other.
///
/// Errors: the step that failed.
pub fn connected(
    from: SocketAddr,
    to: SocketAddr,
    buffer_bytes: usize,
    stall_limit: Duration,
) -> Result<OwnedFd, SetupError> {
    let fd = bound(from, buffer_bytes, stall_limit)?;
    connect_to(fd.as_fd(), to)?;
    Ok(fd)
}

/// From now on all messages of the socket go to `to`.
///
/// Errors: the step that failed.
pub fn connect_to(fd: BorrowedFd<'_>, to: SocketAddr) -> Result<(), SetupError> {
    step(format!("connect to {to}"), connect(fd, &to))
}

/// The port that the kernel chose.
///
/// Errors: of getsockname(2).
pub fn port(fd: BorrowedFd<'_>) -> Result<u16, SetupError> {
    Ok(address(fd)?.port())
}

/// Where a socket's messages come from.
///
/// Errors: of getsockname(2).
pub fn address(fd: BorrowedFd<'_>) -> Result<SocketAddr, SetupError> {
    let tried = "read the address of a UDP socket";
    step(tried, getsockname(fd).and_then(SocketAddr::try_from))
}

/// Memory that the kernel charges for a datagram, at least: the headers of its buffer
/// (`SKB_TRUESIZE`, include/linux/skbuff.h) are more than that on every machine.
const CHARGED_MIN: usize = 512;

/// Throws away what has arrived; how many datagrams it was. A flood does not keep it: what its
/// queue could hold at once is the most that it takes, and what comes meanwhile is for the next
/// call.
///
/// Errors: see recv(2).
pub fn drain(fd: BorrowedFd<'_>) -> Result<usize, Errno> {
    // A datagram that does not fit is cut, and gone all the same.
    let next = || recv(fd, &mut [0u8; 1][..], RecvFlags::DONTWAIT).map(drop);
    counted(waiting_max(fd)?, || next().map_err(Errno::from))
}

/// How often there was one more.
fn counted(most: usize, mut next: impl FnMut() -> Result<(), Errno>) -> Result<usize, Errno> {
    let mut datagrams = 0;
    while datagrams < most {
        match next() {
            Ok(()) => datagrams += 1,
            Err(Errno::EAGAIN) => break,
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(datagrams)
}

/// Datagrams that a socket's queue can hold, at most: the last one may go beyond its limit.
fn waiting_max(fd: BorrowedFd<'_>) -> Result<usize, Errno> {
    Ok(sockopt::socket_recv_buffer_size(fd)? / CHARGED_MIN + 1)
}

/// Where messages go that name it themselves.
#[derive(Debug, Clone)]
pub struct Destination(SocketAddrAny);

impl Destination {
    /// Where the messages of a connected socket go.
    ///
    /// Errors: `ENOTCONN` where it is not connected.
    pub fn of(fd: BorrowedFd<'_>) -> Result<Destination, SetupError> {
        let peer = step("read where a UDP socket is connected to", getpeername(fd))?;
        peer.map(Destination).ok_or_else(|| SetupError {
            tried: "read where a UDP socket is connected to".into(),
            errno: Errno::ENOTCONN,
        })
    }
}

/// Sends one message with sendto(2) and its destination, for which the kernel
/// looks the route up each time; otherwise as [`crate::socket::send`].
///
/// Errors: see sendto(2); `EMSGSIZE` for what is no datagram.
#[inline]
pub fn sendto(fd: BorrowedFd<'_>, bytes: &[u8], to: &Destination) -> Result<usize, Errno> {
    // SAFETY: pointer and length are those of `bytes` and of the address, which
    // the kernel only reads.
    let n = unsafe {
        libc::sendto(
            fd.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_NOSIGNAL,
            to.0.as_ptr().cast(),
            to.0.addr_len(),
        )
    };
    count(n)
}

/// The largest message that travels in one piece to where a connected socket sends:
/// the MTU of the way (`IP_MTU`, `IPV6_MTU`) less the headers of IP (RFC 791, RFC
/// 8200) and UDP (RFC 768).
///
/// Errors: `ENOTCONN` where it is not connected.
pub fn unfragmented_bytes(fd: BorrowedFd<'_>) -> Result<usize, SetupError> {
    let tried = "read the MTU of the way";
    let domain = step(tried, sockopt::socket_domain(fd))?;
    let (level, name, headers_bytes) = match domain {
        AddressFamily::INET6 => (libc::IPPROTO_IPV6, libc::IPV6_MTU, 40 + 8),
        _ => (libc::IPPROTO_IP, libc::IP_MTU, 20 + 8),
    };
    let (mut value, mut length): (libc::c_int, _) = (0, INT_BYTES);
    // SAFETY: the kernel writes one int, which lives on this stack.
    let result = unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length)
    };
    match result {
        0 => Ok(usize::try_from(value).unwrap_or(0).saturating_sub(headers_bytes)),
        _ => Err(SetupError { tried: tried.into(), errno: Errno::last() }),
    }
}

/// Has the kernel cut what one call sends into datagrams of `bytes`
/// (`UDP_SEGMENT`, Linux 4.18; udp(7)).
///
/// Errors: `ENOPROTOOPT` where the kernel has no such option.
pub fn segment(fd: BorrowedFd<'_>, bytes: u16) -> Result<(), SetupError> {
    let value = libc::c_int::from(bytes);
    socket::set_option(fd, libc::SOL_UDP, libc::UDP_SEGMENT, &value.to_ne_bytes())
        .map_err(|errno| SetupError { tried: format!("set UDP_SEGMENT to {bytes}"), errno })
}

/// The size of an int as the kernel's interface counts it.
const INT_BYTES: libc::socklen_t = 4;
const _: () = assert!(size_of::<libc::c_int>() == INT_BYTES as usize);

/// Room for the headers of messages that go with one sendmmsg(2).
pub struct Batch {
    headers: Box<[libc::mmsghdr]>,
}

// SAFETY: the pointers in the headers are set and used within one call of
// `send`, and mean nothing between calls.
unsafe impl Send for Batch {}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Batch({})", self.headers.len())
    }
}

impl Batch {
    /// Room for `messages` messages.
    pub fn of(messages: usize) -> Batch {
        // SAFETY: an all-zero header is valid: no name, no iovec, no control data.
        let header = || unsafe { std::mem::zeroed::<libc::mmsghdr>() };
        Batch { headers: std::iter::repeat_with(header).take(messages).collect() }
    }

    /// Sends each of `messages` as a datagram of its own with one sendmmsg(2); how
    /// many the kernel accepted, which may be fewer. What there is no room for is
    /// left out.
    ///
    /// Errors: see sendmmsg(2): what became of the first one.
    #[inline]
    pub fn send(&mut self, fd: BorrowedFd<'_>, messages: &[IoSlice<'_>]) -> Result<usize, Errno> {
        let many = messages.len().min(self.headers.len());
        for (header, message) in self.headers.iter_mut().zip(messages) {
            // IoSlice is guaranteed to have the layout of iovec; sendmmsg only
            // reads it.
            header.msg_hdr.msg_iov = std::ptr::from_ref(message).cast::<libc::iovec>().cast_mut();
            header.msg_hdr.msg_iovlen = 1;
        }
        #[expect(clippy::cast_possible_truncation, reason = "a kernel takes 1024 (UIO_MAXIOV)")]
        let length = many.min(1024) as libc::c_uint;
        // SAFETY: the first `length` headers point at `messages`, which live for
        // this call; the kernel reads through them and writes `msg_len`.
        let n = unsafe {
            libc::sendmmsg(fd.as_raw_fd(), self.headers.as_mut_ptr(), length, libc::MSG_NOSIGNAL)
        };
        usize::try_from(n).map_err(|_| Errno::last())
    }
}

/// `SO_SNDBUF` as the kernel set it, after its doubling; `None` where it does
/// not say.
pub fn send_buffer_bytes(fd: impl AsFd) -> Option<usize> {
    sockopt::socket_send_buffer_size(fd).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket;

    fn any() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    #[test]
    fn a_message_is_one_datagram() {
        let receiver = std::net::UdpSocket::bind(any()).unwrap();
        let to = receiver.local_addr().unwrap();
        let sender = connected(any(), to, 65_536, Duration::from_secs(5)).unwrap();
        assert_eq!(send_buffer_bytes(&sender), Some(131_072));
        for length in [1, 900, 65_507] {
            assert_eq!(socket::send(sender.as_fd(), &vec![7; length]), Ok(length));
            let mut got = vec![0; 70_000];
            assert_eq!(receiver.recv(&mut got).unwrap(), length);
        }
        let too_long = socket::send(sender.as_fd(), &[7; 65_508]);
        assert_eq!(too_long, Err(Errno::EMSGSIZE));
    }

    #[test]
    fn a_step_that_fails_is_named() {
        // TEST-NET-1 (RFC 5737): nobody's address.
        let from = SocketAddr::from(([192, 0, 2, 1], 0));
        let error = connected(from, any(), 65_536, Duration::from_secs(5)).unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with("cannot bind to 192.0.2.1:0: EADDRNOTAVAIL"), "{said}");
    }

    #[test]
    fn one_call_sends_several_datagrams_of_their_own() {
        let receiver = std::net::UdpSocket::bind(any()).unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let to = receiver.local_addr().unwrap();
        let sender = connected(any(), to, 65_536, Duration::from_secs(5)).unwrap();
        let mut got = [0; 64];
        let messages = [&b"one"[..], b"three", b"", b"no room"].map(IoSlice::new);
        assert_eq!(Batch::of(3).send(sender.as_fd(), &messages), Ok(3));
        for length in [3, 5, 0] {
            assert_eq!(receiver.recv(&mut got).unwrap(), length);
        }
        let to = Destination::of(sender.as_fd()).unwrap();
        assert_eq!(sendto(sender.as_fd(), b"once", &to), Ok(4));
        assert_eq!(receiver.recv(&mut got).unwrap(), 4);
    }

    #[test]
    fn one_send_is_cut_into_datagrams() {
        let receiver = bound(any(), 65_536, Duration::from_secs(20)).unwrap();
        let to = SocketAddr::from(([127, 0, 0, 1], port(receiver.as_fd()).unwrap()));
        let sender = connected(any(), to, 65_536, Duration::from_secs(5)).unwrap();
        assert_eq!(unfragmented_bytes(sender.as_fd()), Ok(65_507));
        segment(sender.as_fd(), 100).unwrap();
        assert_eq!(socket::send(sender.as_fd(), &[7; 250]), Ok(250));
        let mut got = [0; 999];
        for length in [100, 100, 50] {
            assert_eq!(socket::recv(receiver.as_fd(), &mut got), Ok(length));
        }
        socket::send(sender.as_fd(), &[7; 250]).unwrap();
        assert_eq!(drain(receiver.as_fd()), Ok(3));
        assert_eq!(drain(receiver.as_fd()), Ok(0));
    }

    #[test]
    fn a_flood_keeps_nobody() {
        let mut came = 0;
        let flood = || {
            came += 1;
            if came <= 200 { Ok(()) } else { Err(Errno::EAGAIN) }
        };
        assert_eq!(counted(100, flood), Ok(100));
        // The kernel makes the smallest buffer of it that it has, and all of that is taken.
        let receiver = bound(any(), 1, Duration::from_secs(20)).unwrap();
        let to = SocketAddr::from(([127, 0, 0, 1], port(receiver.as_fd()).unwrap()));
        let sender = std::net::UdpSocket::bind(any()).unwrap();
        (0..1000).for_each(|_| drop(sender.send_to(&[], to)));
        let taken = drain(receiver.as_fd()).unwrap();
        assert!((1..=waiting_max(receiver.as_fd()).unwrap()).contains(&taken), "{taken}");
        assert_eq!(drain(receiver.as_fd()), Ok(0));
    }
}
