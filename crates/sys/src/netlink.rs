//! Route netlink, as much of it as a device of ours needs: make it, give it an
//! address, switch it on, ask for its state and for the way to an address, hear of
//! changes. See rtnetlink(7), linux/rtnetlink.h, linux/if_link.h and linux/veth.h.
//!
//! Written by hand because it is seven messages; the libraries that encode
//! them bring all of route netlink and a compile time beyond our own.

mod way;

use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};

pub use self::way::{Mac, Way};
use crate::errno::Errno;

/// `struct nlmsghdr`: length, type, flags, sequence, port.
const HEADER_BYTES: usize = 16;
/// `struct ifinfomsg`: family, type, index, flags, mask of flags.
const LINK_BYTES: usize = 16;
/// More than the kernel says about one device (`NLMSG_GOODSIZE` is a page).
const ANSWER_BYTES: usize = 32 << 10;
/// `VETH_INFO_PEER`, linux/veth.h.
const VETH_INFO_PEER: u16 = 1;
/// Queues of a new device, linux/if_link.h.
const IFLA_NUM_TX_QUEUES: u16 = 31;
const IFLA_NUM_RX_QUEUES: u16 = 32;
/// `TC_H_ROOT`, linux/pkt_sched.h.
const TC_H_ROOT: u32 = 0xffff_ffff;

/// Two devices, what one sends the other receives.
#[derive(Debug, Clone, Copy)]
pub struct VethPair<'a> {
    /// Name of the end in the namespace of the caller.
    pub near: &'a str,
    /// Name of the other end.
    pub far: &'a str,
    /// Process in whose network namespace the other end is made; the caller's
    /// own where there is none.
    pub far_process: Option<u32>,
    /// MTU of both ends.
    pub mtu_bytes: u32,
}

/// A device that stands alone, of a kind that needs nothing but a name.
#[derive(Debug, Clone, Copy)]
pub struct Device<'a> {
    /// Its name, in the namespace of the caller.
    pub name: &'a str,
    /// What makes it, such as `dummy` (`IFLA_INFO_KIND`).
    pub kind: &'a str,
    /// Its MTU.
    pub mtu_bytes: u32,
    /// Its queues, at least 1, in each direction.
    pub queues: u32,
}

/// The message that makes a device, ready to be sent.
#[derive(Debug, Clone)]
pub struct NewDevice(Vec<u8>);

/// A device as the kernel describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Number of the device in its namespace; never 0.
    pub index: u32,
    /// MTU.
    pub mtu_bytes: u32,
    /// Whether it is up and its other end too: what is sent now is not lost.
    /// True only once the queueing discipline stands (net/core/link_watch.c).
    pub operational: bool,
}

/// A socket to the network namespace in which it was opened.
#[derive(Debug)]
pub struct Route(OwnedFd);

impl Route {
    /// Opens a socket to the calling thread's network namespace.
    ///
    /// Errors: see socket(2).
    pub fn open() -> Result<Route, Errno> {
        // `NETLINK_ROUTE` is 0, the protocol one gets unasked.
        let flags = SocketFlags::CLOEXEC;
        Ok(Route(socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?))
    }

    /// The device of a name.
    ///
    /// Errors: `ENODEV` if there is none.
    pub fn link(&self, name: &str) -> Result<Link, Errno> {
        let mut request = Message::about_link(libc::RTM_GETLINK, 0, LinkHeader::default());
        request.attribute(libc::IFLA_IFNAME, &c_string(name));
        let mut answer = vec![0; ANSWER_BYTES];
        let length = self.exchange(&request.finish(), &mut answer)?;
        link_of(&answer[..length]).ok_or(Errno::EIO)
    }

    /// Makes a device, or a pair of them. Allocates nothing.
    ///
    /// Errors: `EPERM` without CAP_NET_ADMIN over the namespaces they are made
    /// in, `EOPNOTSUPP` where the kernel has none of that kind, `ESRCH` if the
    /// process of a pair has gone, `EINVAL` for an MTU out of range.
    pub fn add(&self, device: &NewDevice) -> Result<(), Errno> {
        self.acknowledged(&device.0)
    }

    /// Takes the queue from before a device: what is sent is given to it at
    /// once, by the thread that sends it (`noqueue`, net/sched/sch_generic.c).
    /// Only for devices that never say that they are busy.
    ///
    /// Errors: `ENODEV` if there is none of that index.
    pub fn remove_queue(&self, index: u32) -> Result<(), Errno> {
        self.acknowledged(&noqueue_request(index))
    }

    /// Switches a device on.
    ///
    /// Errors: `ENODEV` if there is none of that index.
    pub fn set_up(&self, index: u32) -> Result<(), Errno> {
        let up = libc::IFF_UP.cast_unsigned();
        let header = LinkHeader { index, flags: up, change: up };
        self.acknowledged(&Message::about_link(libc::RTM_NEWLINK, 0, header).finish())
    }

    /// Gives a device an address, usable at once: without the second in which
    /// IPv6 looks for a double (`IFA_F_NODAD`).
    ///
    /// Errors: `EEXIST` if it has it, `EOPNOTSUPP` or `EAFNOSUPPORT` where the
    /// protocol is switched off.
    pub fn add_address(&self, index: u32, address: IpAddr, prefix: u8) -> Result<(), Errno> {
        self.acknowledged(&address_request(index, address, prefix))
    }

    /// Whether what arrives for an address is taken in here. For IPv6 that
    /// begins some time after [`Self::add_address`], on a work queue
    /// (net/ipv6/addrconf.c, addrconf_dad_work).
    ///
    /// Errors: see rtnetlink(7); that there is no route at all is `false`.
    pub fn is_local(&self, address: IpAddr) -> Result<bool, Errno> {
        let mut answer = vec![0; ANSWER_BYTES];
        match self.exchange(&route_request(address), &mut answer) {
            // `struct rtmsg`: the type of the route is its eighth byte.
            Ok(_) => Ok(answer[HEADER_BYTES + 7] == libc::RTN_LOCAL),
            Err(Errno::ENETUNREACH) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Removes a device; a veth device takes its other end with it.
    ///
    /// Errors: `ENODEV` if there is none of that index.
    pub fn remove(&self, index: u32) -> Result<(), Errno> {
        let header = LinkHeader { index, ..LinkHeader::default() };
        self.acknowledged(&Message::about_link(libc::RTM_DELLINK, 0, header).finish())
    }

    fn acknowledged(&self, request: &[u8]) -> Result<(), Errno> {
        self.exchange(request, &mut [0; 512]).map(|_| ())
    }

    /// Sends a request and reads the answer, which the kernel has written by
    /// the time send(2) returns. Allocates nothing.
    fn exchange(&self, request: &[u8], answer: &mut [u8]) -> Result<usize, Errno> {
        send(&self.0, request, SendFlags::empty())?;
        let (length, _) = recv(&self.0, &mut *answer, RecvFlags::empty())?;
        match error_of(&answer[..length]) {
            Some(errno) if errno.raw() != 0 => Err(errno),
            _ => Ok(length),
        }
    }
}

/// News of the devices and local addresses in a network namespace: readable
/// when there are some.
#[derive(Debug)]
pub struct News(OwnedFd);

impl News {
    /// Hears from now on about the calling thread's network namespace.
    ///
    /// Errors: see socket(2) and bind(2).
    pub fn open() -> Result<News, Errno> {
        let Route(fd) = Route::open()?;
        let groups = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_ROUTE | libc::RTMGRP_IPV6_ROUTE;
        bind(&fd, &SocketAddrNetlink::new(0, groups.cast_unsigned()))?;
        Ok(News(fd))
    }

    /// Takes one piece of news, waiting for it. It says only that something
    /// has changed: ask for what matters.
    ///
    /// Errors: `ENOBUFS` if there was more than the socket could hold.
    pub fn take(&self) -> Result<(), Errno> {
        recv(&self.0, &mut [0; 512], RecvFlags::empty())?;
        Ok(())
    }
}

impl AsFd for News {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<&VethPair<'_>> for NewDevice {
    fn from(pair: &VethPair<'_>) -> NewDevice {
        let mtu = pair.mtu_bytes.to_ne_bytes();
        NewDevice::with(pair.near, b"veth", &mtu, 1, |info| {
            info.nest(libc::IFLA_INFO_DATA, |data| {
                data.nest(VETH_INFO_PEER, |far| {
                    far.put(&LinkHeader::default().bytes());
                    far.attribute(libc::IFLA_IFNAME, &c_string(pair.far));
                    far.attribute(libc::IFLA_MTU, &mtu);
                    if let Some(process) = pair.far_process {
                        far.attribute(libc::IFLA_NET_NS_PID, &process.to_ne_bytes());
                    }
                });
            });
        })
    }
}

impl From<&Device<'_>> for NewDevice {
    fn from(device: &Device<'_>) -> NewDevice {
        let mtu = device.mtu_bytes.to_ne_bytes();
        NewDevice::with(device.name, device.kind.as_bytes(), &mtu, device.queues, |_| {})
    }
}

impl NewDevice {
    /// The message for a device of this name, kind and MTU, and what else the
    /// kind wants to know.
    fn with(
        name: &str,
        kind: &[u8],
        mtu: &[u8],
        queues: u32,
        more: impl FnOnce(&mut Message),
    ) -> NewDevice {
        let create = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let mut request = Message::about_link(libc::RTM_NEWLINK, create, LinkHeader::default());
        request.attribute(libc::IFLA_IFNAME, &c_string(name));
        request.attribute(libc::IFLA_MTU, mtu);
        // Unasked, a device of ours has one.
        if queues > 1 {
            request.attribute(IFLA_NUM_TX_QUEUES, &queues.to_ne_bytes());
            request.attribute(IFLA_NUM_RX_QUEUES, &queues.to_ne_bytes());
        }
        request.nest(libc::IFLA_LINKINFO, |info| {
            info.attribute(libc::IFLA_INFO_KIND, kind);
            more(info);
        });
        NewDevice(request.finish())
    }
}

fn noqueue_request(index: u32) -> Vec<u8> {
    let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    let mut request = Message::new(libc::RTM_NEWQDISC, flags);
    // `struct tcmsg`: family, padding, device, handle, parent, info.
    request.put(&[0; 4]);
    request.put(&index.to_ne_bytes());
    request.put(&[0; 4]);
    request.put(&TC_H_ROOT.to_ne_bytes());
    request.put(&[0; 4]);
    request.attribute(libc::TCA_KIND, &c_string("noqueue"));
    request.finish()
}

/// Address family and bytes of an address.
fn family_and_octets(address: IpAddr) -> (u8, Vec<u8>) {
    let (family, octets) = match address {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    (u8::try_from(family).expect("the two families are below 256"), octets)
}

fn route_request(address: IpAddr) -> Vec<u8> {
    let (family, octets) = family_and_octets(address);
    let mut request = Message::new(libc::RTM_GETROUTE, 0);
    // `struct rtmsg`: family, length of the destination, ten bytes of nothing.
    let bits = if address.is_ipv4() { 32 } else { 128 };
    request.put(&[family, bits, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    request.attribute(libc::RTA_DST, &octets);
    request.finish()
}

fn address_request(index: u32, address: IpAddr, prefix: u8) -> Vec<u8> {
    let (family, octets) = family_and_octets(address);
    let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let mut request = Message::new(libc::RTM_NEWADDR, flags);
    let no_dad = u8::try_from(libc::IFA_F_NODAD).expect("the flag is 2");
    // `struct ifaddrmsg`: family, prefix length, flags, scope, device.
    request.put(&[family, prefix, no_dad, 0]);
    request.put(&index.to_ne_bytes());
    request.attribute(libc::IFA_LOCAL, &octets);
    request.attribute(libc::IFA_ADDRESS, &octets);
    request.finish()
}

/// A name with the zero byte that ends it.
fn c_string(name: &str) -> Vec<u8> {
    name.bytes().chain([0]).collect()
}

/// The part of `struct ifinfomsg` that is ours to say.
#[derive(Debug, Clone, Copy, Default)]
struct LinkHeader {
    index: u32,
    flags: u32,
    change: u32,
}

impl LinkHeader {
    fn bytes(self) -> [u8; LINK_BYTES] {
        let mut bytes = [0; LINK_BYTES];
        bytes[4..8].copy_from_slice(&self.index.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.flags.to_ne_bytes());
        bytes[12..].copy_from_slice(&self.change.to_ne_bytes());
        bytes
    }
}

/// A request in the making.
struct Message(Vec<u8>);

impl Message {
    /// Begins a request; one that only asks is answered, any other one is
    /// acknowledged.
    fn new(kind: u16, flags: i32) -> Message {
        let asks = [libc::RTM_GETLINK, libc::RTM_GETROUTE, libc::RTM_GETNEIGH].contains(&kind);
        let acknowledge = if asks { 0 } else { libc::NLM_F_ACK };
        let flags = flags | libc::NLM_F_REQUEST | acknowledge;
        let mut message = Message(vec![0; HEADER_BYTES]);
        message.0[4..6].copy_from_slice(&kind.to_ne_bytes());
        message.0[6..8].copy_from_slice(&flags.to_ne_bytes()[..2]);
        if cfg!(target_endian = "big") {
            message.0[6..8].copy_from_slice(&flags.to_ne_bytes()[2..]);
        }
        message
    }

    fn about_link(kind: u16, flags: i32, header: LinkHeader) -> Message {
        let mut message = Message::new(kind, flags);
        message.put(&header.bytes());
        message
    }

    fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// Adds an attribute: length, type, value, padding.
    fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.enclose(kind, |message| message.0.extend_from_slice(value));
    }

    /// Adds an attribute made of whatever `fill` adds.
    fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Message)) {
        self.enclose(kind, fill);
    }

    fn enclose(&mut self, kind: u16, fill: impl FnOnce(&mut Message)) {
        let begin = self.0.len();
        self.0.extend_from_slice(&[0, 0]);
        self.0.extend_from_slice(&kind.to_ne_bytes());
        fill(self);
        let length = u16::try_from(self.0.len() - begin).expect("requests have some 200 bytes");
        self.0[begin..begin + 2].copy_from_slice(&length.to_ne_bytes());
        self.put(&[]);
    }

    fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).expect("requests have some 200 bytes");
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

/// The error number in an answer that is an acknowledgement (0) or an error.
fn error_of(answer: &[u8]) -> Option<Errno> {
    if kind_of(answer)? != u16::try_from(libc::NLMSG_ERROR).ok()? {
        return None;
    }
    let negative = answer.get(HEADER_BYTES..HEADER_BYTES + 4)?.try_into().ok()?;
    Some(Errno::from_raw(i32::from_ne_bytes(negative).wrapping_neg()))
}

fn kind_of(answer: &[u8]) -> Option<u16> {
    Some(u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?))
}

/// What an answer to `RTM_GETLINK` says.
fn link_of(answer: &[u8]) -> Option<Link> {
    if kind_of(answer)? != libc::RTM_NEWLINK {
        return None;
    }
    let length = u32::from_ne_bytes(answer.get(..4)?.try_into().ok()?) as usize;
    let body = answer.get(HEADER_BYTES..length)?;
    let index = u32::from_ne_bytes(body.get(4..8)?.try_into().ok()?);
    let mut link = Link { index, mtu_bytes: 0, operational: false };
    let mut rest = body.get(LINK_BYTES..)?;
    while let Some(header) = rest.first_chunk::<4>() {
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let value = rest.get(4..length)?;
        match u16::from_ne_bytes([header[2], header[3]]) {
            libc::IFLA_MTU => link.mtu_bytes = u32::from_ne_bytes(value.try_into().ok()?),
            libc::IFLA_OPERSTATE => {
                link.operational = i32::from(*value.first()?) == libc::IF_OPER_UP;
            }
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_is_described() {
        let lo = Route::open().unwrap().link("lo").unwrap();
        // net/core/dev.c, LOOPBACK_IFINDEX.
        assert_eq!(lo.index, 1);
        assert!(lo.mtu_bytes > 0 && !lo.operational, "its state is `unknown`");
    }

    #[test]
    fn only_our_own_addresses_are_local() {
        let route = Route::open().unwrap();
        assert_eq!(route.is_local("127.0.0.1".parse().unwrap()), Ok(true));
        assert_eq!(route.is_local("192.0.2.1".parse().unwrap()), Ok(false));
    }

    #[test]
    fn a_device_that_is_not_there_is_an_error() {
        assert_eq!(Route::open().unwrap().link("not-there"), Err(Errno::ENODEV));
    }

    #[test]
    fn lengths_cover_what_they_enclose() {
        let pair = VethPair { near: "n", far: "far", far_process: Some(1), mtu_bytes: 1500 };
        let alone = Device { name: "alone", kind: "dummy", mtu_bytes: 1500, queues: 1 };
        for NewDevice(request) in [NewDevice::from(&pair), NewDevice::from(&alone)] {
            assert_eq!(request.len() % 4, 0);
            let length = u32::from_ne_bytes(request[..4].try_into().unwrap());
            assert_eq!(length as usize, request.len());
            // The attributes of the outermost level end where the message does.
            let mut rest = &request[HEADER_BYTES + LINK_BYTES..];
            let mut kinds = Vec::new();
            while !rest.is_empty() {
                let length = usize::from(u16::from_ne_bytes([rest[0], rest[1]]));
                kinds.push(u16::from_ne_bytes([rest[2], rest[3]]));
                rest = &rest[length.next_multiple_of(4)..];
            }
            assert_eq!(kinds, [libc::IFLA_IFNAME, libc::IFLA_MTU, libc::IFLA_LINKINFO]);
        }
    }

    #[test]
    fn no_answer_panics_its_reader() {
        let mut answer = [0u8; 64];
        answer[4..6].copy_from_slice(&libc::RTM_NEWLINK.to_ne_bytes());
        for length in 0..=64u8 {
            answer[0] = length;
            answer[HEADER_BYTES + LINK_BYTES] = length;
            link_of(&answer);
            error_of(&answer[..usize::from(length)]);
        }
    }
}
