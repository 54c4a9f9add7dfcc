//! Listening sockets and the connections they take, for servers that say
//! themselves how long their queue is and who waits.
//!
//! # Safety
//! accept4(2) is called without a place for the peer's address; the descriptor
//! that it returns is new and nobody else's.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with};

use crate::errno::Errno;
use crate::tcp::{SetupError, limit_waits, step};

/// Whether a call waits for what it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// It waits.
    Blocking,
    /// It fails with `EAGAIN` instead (`SOCK_NONBLOCK`).
    Never,
}

/// What a listening socket is to be like. Connections inherit all of it but
/// `waiting` and `shared_port` (`sk_clone_lock`, net/core/sock.c), so nothing has
/// to be set on each of them.
#[derive(Debug, Clone)]
pub struct Wishes<'a> {
    /// `TCP_CONGESTION`.
    pub congestion: &'a str,
    /// Connections that wait to be taken at most; the kernel takes no more than
    /// net.core.somaxconn.
    pub backlog: u32,
    /// Whether accept(2) waits.
    pub waiting: Waiting,
    /// Whether other sockets of this user may listen on the same port
    /// (`SO_REUSEPORT`), which then gets the connections by their hash.
    pub shared_port: bool,
    /// How long a call on a connection, and accept(2), may wait.
    pub stall_limit: Option<Duration>,
}

/// Seconds without a sign of the peer until it is asked for one
/// (`TCP_KEEPIDLE`), between two such questions, and how many are asked. Who has
/// vanished without a word is given up after a minute.
const KEEP_IDLE: Duration = Duration::from_secs(30);
const KEEP_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_COUNT: u32 = 3;

/// Binds a socket and listens: from the return on, clients can connect.
///
/// Errors: the step that failed; `EADDRINUSE` where somebody listens already.
pub fn listen_on(address: &SocketAddr, wishes: &Wishes<'_>) -> Result<OwnedFd, SetupError> {
    let flags = match wishes.waiting {
        Waiting::Blocking => SocketFlags::CLOEXEC,
        Waiting::Never => SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
    };
    let fd = open(address, flags)?;
    let congestion = wishes.congestion;
    step(
        format!("set TCP_CONGESTION to `{congestion}`"),
        sockopt::set_tcp_congestion(&fd, congestion),
    )?;
    step("set TCP_NODELAY", sockopt::set_tcp_nodelay(&fd, true))?;
    step("set SO_KEEPALIVE", sockopt::set_socket_keepalive(&fd, true))?;
    step("set TCP_KEEPIDLE", sockopt::set_tcp_keepidle(&fd, KEEP_IDLE))?;
    step("set TCP_KEEPINTVL", sockopt::set_tcp_keepintvl(&fd, KEEP_INTERVAL))?;
    step("set TCP_KEEPCNT", sockopt::set_tcp_keepcnt(&fd, KEEP_COUNT))?;
    // Or what is left of the last connections has the port for a minute. Two
    // that listen are refused all the same (socket(7)).
    step("set SO_REUSEADDR", sockopt::set_socket_reuseaddr(&fd, true))?;
    if wishes.shared_port {
        step("set SO_REUSEPORT", sockopt::set_socket_reuseport(&fd, true))?;
    }
    step(format!("bind to {address}"), bind(&fd, address))?;
    if let Some(limit) = wishes.stall_limit {
        limit_waits(fd.as_fd(), limit)?;
    }
    let backlog = i32::try_from(wishes.backlog).unwrap_or(i32::MAX);
    step(format!("listen on {address}"), listen(&fd, backlog))?;
    Ok(fd)
}

/// Whether nobody listens on an address, also nobody who shares its port.
///
/// Errors: the step that failed; `EADDRINUSE` where somebody does.
pub fn try_bind(address: &SocketAddr) -> Result<(), SetupError> {
    let fd = open(address, SocketFlags::CLOEXEC)?;
    step("set SO_REUSEADDR", sockopt::set_socket_reuseaddr(&fd, true))?;
    step(format!("bind to {address}"), bind(&fd, address))
}

fn open(address: &SocketAddr, flags: SocketFlags) -> Result<OwnedFd, SetupError> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    step("open a TCP socket", socket_with(family, SocketType::STREAM, flags, None))
}

/// The address that a socket has, with the port that the kernel chose.
///
/// Errors: of getsockname(2).
pub fn address(fd: BorrowedFd<'_>) -> Result<SocketAddr, SetupError> {
    let tried = "read the listening address";
    step(tried, getsockname(fd).and_then(SocketAddr::try_from))
}

/// Takes the next connection with accept4(2), which waits or not as the listening
/// socket does; the connection itself as `waiting` says.
///
/// Errors: `EAGAIN` when nobody came; `EINVAL` after the end of listening;
/// `EMFILE`, `ENFILE` where there is no descriptor for it, and it stays in the
/// queue; `ECONNABORTED` for one that has gone; see accept(2).
#[inline]
pub fn accept(listener: BorrowedFd<'_>, waiting: Waiting) -> Result<OwnedFd, Errno> {
    let flags = match waiting {
        Waiting::Blocking => libc::SOCK_CLOEXEC,
        Waiting::Never => libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
    };
    let nowhere = std::ptr::null_mut();
    // SAFETY: without a place for the address the kernel writes none.
    let fd = unsafe { libc::accept4(listener.as_raw_fd(), nowhere, nowhere.cast(), flags) };
    if fd < 0 {
        return Err(Errno::last());
    }
    // SAFETY: the kernel has just made this descriptor, for nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpStream;

    use super::*;
    use crate::{socket, tcp};

    fn any() -> SocketAddr {
        ([127, 0, 0, 1], 0).into()
    }

    const WISHES: Wishes<'_> = Wishes {
        congestion: "reno",
        backlog: 16,
        waiting: Waiting::Blocking,
        shared_port: false,
        stall_limit: None,
    };

    #[test]
    fn connections_inherit_what_the_listener_was_told() {
        let limit = Duration::from_millis(1);
        let wishes = Wishes { stall_limit: Some(limit), ..WISHES };
        let listener = listen_on(&any(), &wishes).unwrap();
        let _client = TcpStream::connect(address(listener.as_fd()).unwrap()).unwrap();
        let served = accept(listener.as_fd(), Waiting::Blocking).unwrap();
        let accepted = tcp::read_back(served.as_fd()).unwrap();
        assert_eq!((accepted.nodelay, accepted.congestion.as_str()), (true, "reno"));
        assert!(sockopt::socket_keepalive(&served).unwrap());
        assert_eq!(socket::recv(served.as_fd(), &mut [0; 4]), Err(Errno::EAGAIN));
        assert_eq!(accept(listener.as_fd(), Waiting::Blocking).unwrap_err(), Errno::EAGAIN);
    }

    #[test]
    fn a_socket_that_never_waits_says_so() {
        let wishes = Wishes { waiting: Waiting::Never, ..WISHES };
        let listener = listen_on(&any(), &wishes).unwrap();
        assert_eq!(accept(listener.as_fd(), Waiting::Never).unwrap_err(), Errno::EAGAIN);
    }

    #[test]
    fn the_end_of_listening_wakes_who_accepts_and_refuses_who_comes() {
        let listener = listen_on(&any(), &WISHES).unwrap();
        let address = address(listener.as_fd()).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| accept(listener.as_fd(), Waiting::Blocking).map(drop));
            tcp::hang_up(listener.as_fd()).unwrap();
            assert_eq!(waiting.join().unwrap(), Err(Errno::EINVAL));
        });
        assert!(TcpStream::connect(address).is_err());
    }

    #[test]
    fn a_port_is_taken_by_one_or_shared_by_all() {
        let first = listen_on(&any(), &WISHES).unwrap();
        let taken = address(first.as_fd()).unwrap();
        let shared = Wishes { shared_port: true, ..WISHES };
        for wishes in [&WISHES, &shared] {
            let refused = listen_on(&taken, wishes).unwrap_err();
            assert_eq!(refused.errno, Errno::EADDRINUSE, "{refused}");
        }
        let one = listen_on(&any(), &shared).unwrap();
        let other = listen_on(&address(one.as_fd()).unwrap(), &shared).unwrap();
        let address_of_both = address(one.as_fd()).unwrap();
        assert_eq!(try_bind(&address_of_both).unwrap_err().errno, Errno::EADDRINUSE);
        assert_eq!(try_bind(&any()), Ok(()));
        drop(one);
        let mut client = TcpStream::connect(address(other.as_fd()).unwrap()).unwrap();
        drop(accept(other.as_fd(), Waiting::Blocking).unwrap());
        assert_eq!(client.read(&mut [0; 4]).unwrap(), 0);
    }
}
