//! Addresses of this machine.
//!
//! # Safety
//! getifaddrs(3) makes a list that is read here and freed before its owner is dropped; an
//! address is read as what its family says it is.

#![expect(unsafe_code, reason = "see the safety note above")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::errno::Errno;

/// What getifaddrs(3) made.
struct List(*mut libc::ifaddrs);

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: it is the list of getifaddrs(3), and nothing of it is kept.
        unsafe { libc::freeifaddrs(self.0) };
    }
}

/// Those of the devices that are switched on, in this network namespace, but for the
/// loopback device's and for those that only hold on one link.
///
/// Errors: of getifaddrs(3).
pub fn of_this_machine() -> Result<Vec<IpAddr>, Errno> {
    let mut first = std::ptr::null_mut();
    // SAFETY: it writes the list's first entry there, or fails.
    if unsafe { libc::getifaddrs(&raw mut first) } < 0 {
        return Err(Errno::last());
    }
    let list = List(first);
    let mut found = Vec::new();
    let mut at = list.0;
    while !at.is_null() {
        // SAFETY: an entry of the list, which is freed after the loop.
        let entry = unsafe { &*at };
        if let Some(address) = address(entry)
            && is_of_use(entry.ifa_flags, address)
            && !found.contains(&address)
        {
            found.push(address);
        }
        at = entry.ifa_next;
    }
    Ok(found)
}

/// The address of an entry, if it has one of the Internet.
fn address(entry: &libc::ifaddrs) -> Option<IpAddr> {
    let any = entry.ifa_addr;
    if any.is_null() {
        return None;
    }
    // SAFETY: every address begins with its family, which says what the whole of it is.
    match i32::from(unsafe { (*any).sa_family }) {
        libc::AF_INET => {
            // SAFETY: as its family says; the list may not be aligned for it.
            let v4 = unsafe { any.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { any.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// Whether others can reach it.
fn is_of_use(flags: u32, address: IpAddr) -> bool {
    let is_up = flags & libc::IFF_UP.cast_unsigned() != 0;
    let of_link = match address {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    is_up && !address.is_loopback() && !of_link
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_reach_nobody_are_left_out() {
        let up = libc::IFF_UP.cast_unsigned();
        let of_use = |flags, address: &str| is_of_use(flags, address.parse().unwrap());
        assert!(of_use(up, "192.0.2.1") && of_use(up, "2001:db8::1"));
        for address in ["127.0.0.1", "::1", "169.254.1.1", "fe80::1"] {
            assert!(!of_use(up, address), "{address}");
        }
        assert!(!of_use(0, "192.0.2.1"));
    }

    #[test]
    fn each_is_named_once() {
        let mut found = of_this_machine().unwrap();
        let count = found.len();
        found.sort();
        found.dedup();
        assert_eq!(found.len(), count);
    }
}
