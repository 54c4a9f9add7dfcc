//! UDP sockets: set up outside every clock.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};

use crate::tcp::{SetupError, limit_waits, step};

/// A socket bound to a port of the kernel's choosing at `from`, whose messages
/// all go to `to` (udp(7)). A call that finds no room waits for as long as
/// `stall_limit`.
///
/// Errors: the step that failed.
pub fn connected(
    from: SocketAddr,
    to: SocketAddr,
    buffer_bytes: usize,
    stall_limit: Duration,
) -> Result<OwnedFd, SetupError> {
    let family = if from.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let opened = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let fd = step("open a UDP socket", opened)?;
    step(
        format!("set SO_SNDBUF to {buffer_bytes}"),
        sockopt::set_socket_send_buffer_size(&fd, buffer_bytes),
    )?;
    limit_waits(fd.as_fd(), stall_limit)?;
    step(format!("bind to {from}"), bind(&fd, &from))?;
    step(format!("connect to {to}"), connect(&fd, &to))?;
    Ok(fd)
}

/// `SO_SNDBUF` as the kernel set it, after its doubling; null where it does
/// not say.
#[must_use]
pub fn send_buffer_bytes(fd: impl AsFd) -> Option<usize> {
    sockopt::socket_send_buffer_size(fd).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errno::Errno;
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
}
