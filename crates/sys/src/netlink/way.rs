//! Where what is sent to an address leaves, and to which neighbour: what a program
//! needs to know that writes its own link-layer headers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{
    ANSWER_BYTES, HEADER_BYTES, LINK_BYTES, LinkHeader, Message, Route, family_and_octets,
    route_request,
};
use crate::errno::Errno;

/// `struct rtmsg`, in the answer to `RTM_GETROUTE`.
const ROUTE_BYTES: usize = 12;
/// `struct ndmsg`, in the answer to `RTM_GETNEIGH`.
const NEIGHBOUR_BYTES: usize = 12;
/// Address of the device's own, linux/if_link.h.
const IFLA_ADDRESS: u16 = 1;
/// Kinds of devices whose frames are Ethernet's, linux/if_arp.h.
const ARPHRD_ETHER: u16 = 1;
const ARPHRD_LOOPBACK: u16 = 772;

/// An address of Ethernet.
pub type Mac = [u8; 6];

/// The way to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// Number of the device.
    pub device: u32,
    /// Whether that is `lo`.
    pub is_loopback: bool,
    /// The device's own address.
    pub from: Mac,
    /// The address of who is next on the way; of nobody where the device asks for
    /// none (`IFF_LOOPBACK`, `IFF_NOARP`).
    pub to: Mac,
}

impl Route {
    /// The way to an address, as the routes and neighbours are now.
    ///
    /// Errors: `ENETUNREACH` where no route leads there, `EOPNOTSUPP` where the
    /// device has no frames of Ethernet's, `ENOENT` where the neighbour is not
    /// known: nothing was sent there lately.
    pub fn way(&self, to: IpAddr) -> Result<Way, Errno> {
        let mut answer = vec![0; ANSWER_BYTES];
        let length = self.exchange(&route_request(to), &mut answer)?;
        let (device, next) = route_of(&answer[..length], to).ok_or(Errno::EIO)?;

        let header = LinkHeader { index: device, ..LinkHeader::default() };
        let request = Message::about_link(libc::RTM_GETLINK, 0, header).finish();
        let length = self.exchange(&request, &mut answer)?;
        let (kind, flags, from) = device_of(&answer[..length]).ok_or(Errno::EIO)?;
        if ![ARPHRD_ETHER, ARPHRD_LOOPBACK].contains(&kind) {
            return Err(Errno::EOPNOTSUPP);
        }
        let is = |flag: libc::c_int| flags & flag.cast_unsigned() != 0;
        let is_loopback = is(libc::IFF_LOOPBACK);
        if is_loopback || is(libc::IFF_NOARP) {
            return Ok(Way { device, is_loopback, from, to: [0; 6] });
        }
        let length = self.exchange(&neighbour_request(device, next), &mut answer)?;
        let to = neighbour_of(&answer[..length]).ok_or(Errno::ENOENT)?;
        Ok(Way { device, is_loopback, from, to })
    }
}

fn neighbour_request(device: u32, address: IpAddr) -> Vec<u8> {
    let (family, octets) = family_and_octets(address);
    let mut request = Message::new(libc::RTM_GETNEIGH, 0);
    // `struct ndmsg`: family, padding, device, state, flags, type.
    request.put(&[family, 0, 0, 0]);
    request.put(&device.to_ne_bytes());
    request.put(&[0; 4]);
    request.attribute(libc::NDA_DST, &octets);
    request.finish()
}

/// The attributes behind the first `fixed` bytes of an answer's body.
fn attributes(answer: &[u8], fixed: usize) -> impl Iterator<Item = (u16, &[u8])> {
    let length = answer.first_chunk::<4>().map_or(0, |bytes| u32::from_ne_bytes(*bytes) as usize);
    let mut rest = answer.get(HEADER_BYTES + fixed..length).unwrap_or_default();
    std::iter::from_fn(move || {
        let header = rest.first_chunk::<4>()?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]);
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The device of a route to an address, and who is next on it.
fn route_of(answer: &[u8], to: IpAddr) -> Option<(u32, IpAddr)> {
    let (mut device, mut next) = (None, to);
    for (kind, value) in attributes(answer, ROUTE_BYTES) {
        match kind {
            libc::RTA_OIF => device = Some(u32::from_ne_bytes(value.try_into().ok()?)),
            libc::RTA_GATEWAY => next = address_of(value)?,
            _ => {}
        }
    }
    Some((device?, next))
}

fn address_of(octets: &[u8]) -> Option<IpAddr> {
    let v4 = || <[u8; 4]>::try_from(octets).ok().map(|octets| Ipv4Addr::from(octets).into());
    let v6 = || <[u8; 16]>::try_from(octets).ok().map(|octets| Ipv6Addr::from(octets).into());
    v4().or_else(v6)
}

/// Kind, flags and address of a device.
fn device_of(answer: &[u8]) -> Option<(u16, u32, Mac)> {
    let fixed = answer.get(HEADER_BYTES..HEADER_BYTES + LINK_BYTES)?;
    let kind = u16::from_ne_bytes(fixed[2..4].try_into().ok()?);
    let flags = u32::from_ne_bytes(fixed[8..12].try_into().ok()?);
    let own = attributes(answer, LINK_BYTES).find(|&(kind, _)| kind == IFLA_ADDRESS);
    let address = own.and_then(|(_, value)| value.try_into().ok()).unwrap_or_default();
    Some((kind, flags, address))
}

fn neighbour_of(answer: &[u8]) -> Option<Mac> {
    let address = |(kind, _): &(u16, &[u8])| *kind == libc::NDA_LLADDR;
    attributes(answer, NEIGHBOUR_BYTES).find(address)?.1.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_addresses_are_behind_lo() {
        let way = Route::open().unwrap().way("127.0.0.1".parse().unwrap()).unwrap();
        assert_eq!(way, Way { device: 1, is_loopback: true, from: [0; 6], to: [0; 6] });
    }

    #[test]
    fn no_answer_panics_its_reader() {
        for length in 0..=64u8 {
            let mut answer = [length; 64];
            answer[1..4].fill(0);
            route_of(&answer, Ipv4Addr::LOCALHOST.into());
            device_of(&answer[..usize::from(length)]);
            neighbour_of(&answer[..usize::from(length)]);
        }
    }
}
