//! TCP connections that are opened and used without waiting, by clients that
//! have very many of them.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

use crate::errno::Errno;
use crate::socket;
use crate::tcp::{SetupError, step};

/// How far a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It stands.
    Connected,
    /// It will be writable when it stands or has failed.
    Connecting,
}

/// A socket for a connection to `address`, from `source` where one is given, that
/// never blocks and does not delay small messages (`TCP_NODELAY`).
///
/// The port is chosen when it connects and not when it is bound
/// (`IP_BIND_ADDRESS_NO_PORT`, Linux 4.2): otherwise the ports of all sources
/// together are as many as those of one.
///
/// Errors: the step that failed; `EADDRNOTAVAIL` for a source that is no address of
/// this machine.
#[inline]
pub fn open(address: &SocketAddr, source: Option<IpAddr>) -> Result<OwnedFd, SetupError> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = step("open a TCP socket", socket_with(family, SocketType::STREAM, flags, None))?;
    step("set TCP_NODELAY", sockopt::set_tcp_nodelay(&fd, true))?;
    if let Some(source) = source {
        choose_port_late(&fd)?;
        let from = SocketAddr::new(source, 0);
        bind(&fd, &from)
            .map_err(|e| SetupError { tried: format!("bind to {source}"), errno: e.into() })?;
    }
    Ok(fd)
}

/// Begins to connect a socket.
///
/// Errors: of connect(2); `EADDRNOTAVAIL` where its source has no port left.
#[inline]
pub fn begin(fd: BorrowedFd<'_>, address: &SocketAddr) -> Result<Progress, Errno> {
    match connect(fd, address) {
        Ok(()) => Ok(Progress::Connected),
        Err(rustix::io::Errno::INPROGRESS) => Ok(Progress::Connecting),
        Err(errno) => Err(errno.into()),
    }
}

/// Leaves the port of a bound address open until the socket connects.
fn choose_port_late(fd: &OwnedFd) -> Result<(), SetupError> {
    let on: libc::c_int = 1;
    let option = libc::IP_BIND_ADDRESS_NO_PORT;
    socket::set_option(fd.as_fd(), libc::IPPROTO_IP, option, &on.to_ne_bytes())
        .map_err(|errno| SetupError { tried: "set IP_BIND_ADDRESS_NO_PORT".into(), errno })
}

/// What became of a connection that was begun: `None` while it has not failed.
///
/// Errors: of getsockopt(2) itself.
pub fn failure(fd: BorrowedFd<'_>) -> Result<Option<Errno>, Errno> {
    Ok(sockopt::socket_error(fd)?.err().map(Errno::from))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::os::fd::AsFd;

    use super::*;
    use crate::epoll::{Epoll, Events, Trigger};
    use crate::socket;

    /// Waits until a connection stands or has failed.
    fn settle(fd: &OwnedFd) -> Option<Errno> {
        let epoll = Epoll::new().unwrap();
        epoll.add(fd.as_fd(), 0, Trigger::Edges).unwrap();
        let mut events = Events::with_room(1);
        while !events.get(0).is_some_and(|ready| ready.writable) {
            epoll.wait(&mut events, 1_000_000_000).unwrap();
        }
        failure(fd.as_fd()).unwrap()
    }

    #[test]
    fn it_connects_from_the_source_that_was_asked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let fd = open(&address, Some("127.0.0.77".parse().unwrap())).unwrap();
        begin(fd.as_fd(), &address).unwrap();
        assert_eq!(settle(&fd), None);
        let (mut served, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip().to_string(), "127.0.0.77");
        assert_eq!(socket::recv(fd.as_fd(), &mut [0; 8]), Err(Errno::EAGAIN));
        assert_eq!(socket::send(fd.as_fd(), b"ping"), Ok(4));
        let mut got = [0; 4];
        served.read_exact(&mut got).unwrap();
        served.write_all(&got).unwrap();
        assert_eq!(&got, b"ping");
    }

    #[test]
    fn where_nobody_listens_it_is_refused() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let fd = open(&address, None).unwrap();
        let refused = begin(fd.as_fd(), &address).map_or_else(Some, |_| settle(&fd));
        assert_eq!(refused, Some(Errno::ECONNREFUSED));
    }

    #[test]
    fn a_source_that_this_machine_has_not_is_named() {
        let address = "127.0.0.1:1".parse().unwrap();
        let error = open(&address, Some("192.0.2.1".parse().unwrap())).unwrap_err();
        assert_eq!(error.errno, Errno::EADDRNOTAVAIL);
        assert!(error.to_string().contains("bind to 192.0.2.1"), "{error}");
    }
}
