//! What a device may do by itself, by the old interface of ethtool(8). It is
//! set of devices of our own alone; see linux/ethtool.h, netdevice(7).
//!
//! # Safety
//! The request and the value it points to live on this stack for as long as the
//! kernel uses them, and are as large as it takes them to be.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::errno::Errno;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// `ETHTOOL_SSG` of linux/ethtool.h.
const SET_SCATTER_GATHER: u32 = 0x19;
/// `ETHTOOL_STSO`.
const SET_TCP_SEGMENTATION: u32 = 0x1f;
/// `ETHTOOL_SGRO`.
const SET_RECEIVE_OFFLOAD: u32 = 0x2c;
/// `SIOCETHTOOL` of linux/sockios.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// Makes a device of this network namespace take whole packets only
/// (`NETIF_F_SG` off), so that the kernel has to copy what lies on other pages.
///
/// Errors: `ENODEV`, `EPERM` without CAP_NET_ADMIN, `EOPNOTSUPP` where the
/// device cannot change, `ENAMETOOLONG`.
pub fn switch_off_scatter_gather(device: &str) -> Result<(), Errno> {
    set(device, SET_SCATTER_GATHER, 0)
}

/// Makes a veth device receive in a NAPI instance, which calls can poll: it has one with generic
/// receive offload, and takes packets there that its peer did not leave unsegmented
/// (drivers/net/veth.c, `veth_set_features`, `veth_skb_is_eligible_for_gro`). Both devices need it.
///
/// Errors: as above.
pub fn make_pollable(device: &str) -> Result<(), Errno> {
    set(device, SET_TCP_SEGMENTATION, 0)?;
    set(device, SET_RECEIVE_OFFLOAD, 1)
}

fn set(device: &str, command: u32, data: u32) -> Result<(), Errno> {
    let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
    let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
    let mut value = Value { command, data };
    // SAFETY: all zero is a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if device.len() >= request.ifr_name.len() {
        return Err(Errno::from_raw(libc::ENAMETOOLONG));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        // Signed on x86_64, unsigned on aarch64.
        *to = libc::c_char::from_ne_bytes([from]);
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request names a value, both live on this stack, and the
    // command reads no more than that.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    if result == 0 { Ok(()) } else { Err(Errno::last()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_there_is_an_error() {
        assert_eq!(switch_off_scatter_gather("not-there"), Err(Errno::ENODEV));
        assert_eq!(make_pollable("not-there"), Err(Errno::ENODEV));
        let long = switch_off_scatter_gather("a-name-that-is-too-long");
        assert_eq!(long.unwrap_err().raw(), libc::ENAMETOOLONG);
    }
}
