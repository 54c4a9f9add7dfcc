//! Packet sockets, with which programs like tcpdump(8) listen to a machine's
//! packets; see packet(7). Tests listen with one to see what that does.

use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with};

use crate::errno::Errno;

/// Gets a copy of every packet of every device of a network namespace, for as
/// long as it is there.
#[derive(Debug)]
pub struct Tap {
    _socket: OwnedFd,
}

impl Tap {
    /// Listens in the calling thread's network namespace from now on.
    ///
    /// Errors: `EPERM` without CAP_NET_RAW, `EAFNOSUPPORT` where the kernel has
    /// no packet sockets.
    pub fn open() -> Result<Tap, Errno> {
        // `ETH_P_ALL` of linux/if_ether.h, in the network's byte order.
        let everything = std::num::NonZeroU32::new(u32::from(3u16.to_be()));
        let (family, flags) = (AddressFamily::PACKET, SocketFlags::CLOEXEC);
        let protocol = everything.map(Protocol::from_raw);
        Ok(Tap { _socket: socket_with(family, SocketType::RAW, flags, protocol)? })
    }
}
