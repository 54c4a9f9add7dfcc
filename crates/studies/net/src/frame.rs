//! Ethernet frames with one UDP datagram each, as bytes: what the kernel writes
//! before a message for who sends through a UDP socket (RFC 894, RFC 2464; RFC 791,
//! RFC 8200; RFC 768).

use std::net::{IpAddr, SocketAddr};

use iolens_sys::netlink::Mac;

const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;

/// The number of UDP in a header of IP's.
const UDP: u8 = 17;
/// How many routers a datagram may pass; the kernel's own default.
const HOPS: u8 = 64;

/// Bytes of all headers before a message.
pub(crate) const fn headers_bytes(is_ipv4: bool) -> usize {
    ETHERNET_BYTES + if is_ipv4 { IPV4_BYTES } else { IPV6_BYTES } + UDP_BYTES
}

/// Whence and whereto datagrams go. Both addresses are of one protocol.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addresses {
    pub(crate) link: [Mac; 2],
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
}

impl Addresses {
    /// Writes the headers of a datagram before its message, which `frame` already
    /// ends with. Over IPv4 the datagram has no checksum of its own; over IPv6 it
    /// must have one.
    ///
    /// The frame is as long as the headers at least, and its datagram no longer
    /// than one can be.
    pub(crate) fn head(&self, frame: &mut [u8]) {
        let (ethernet, packet) = frame.split_at_mut(ETHERNET_BYTES);
        ethernet[..6].copy_from_slice(&self.link[1]);
        ethernet[6..12].copy_from_slice(&self.link[0]);
        let ip_bytes = if self.to.is_ipv4() { IPV4_BYTES } else { IPV6_BYTES };
        let (ip, datagram) = packet.split_at_mut(ip_bytes);
        let length = u16::try_from(datagram.len()).expect("a frame is a few KiB");
        let [from_port, to_port] = [self.from, self.to].map(|end| end.port().to_be_bytes());
        datagram[..2].copy_from_slice(&from_port);
        datagram[2..4].copy_from_slice(&to_port);
        datagram[4..6].copy_from_slice(&length.to_be_bytes());
        datagram[6..8].fill(0);
        match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                ethernet[12..].copy_from_slice(&[0x08, 0x00]);
                ip.fill(0);
                // Version and length, in words of 32 bits.
                ip[0] = 0x45;
                let total = u16::try_from(IPV4_BYTES).expect("it is 20") + length;
                ip[2..4].copy_from_slice(&total.to_be_bytes());
                // It is not to be cut (DF).
                ip[6] = 0x40;
                ip[8..10].copy_from_slice(&[HOPS, UDP]);
                ip[12..16].copy_from_slice(&from.octets());
                ip[16..].copy_from_slice(&to.octets());
                let checksum = checksum(&[ip]);
                ip[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                ethernet[12..].copy_from_slice(&[0x86, 0xdd]);
                ip[..4].copy_from_slice(&[0x60, 0, 0, 0]);
                ip[4..6].copy_from_slice(&length.to_be_bytes());
                ip[6..8].copy_from_slice(&[UDP, HOPS]);
                ip[8..24].copy_from_slice(&from.octets());
                ip[24..].copy_from_slice(&to.octets());
                let tail = [0, 0, 0, UDP];
                let length = u32::from(length).to_be_bytes();
                let sum = checksum(&[&ip[8..], &length, &tail, datagram]);
                // Zero stands for none.
                let sum = if sum == 0 { u16::MAX } else { sum };
                datagram[6..8].copy_from_slice(&sum.to_be_bytes());
            }
            _ => unreachable!("a socket and its peer have addresses of one protocol"),
        }
    }
}

/// The Internet checksum (RFC 1071) of parts one behind the other, all but the last
/// of an even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let word = |bytes: &[u8]| {
        u32::from(u16::from_be_bytes([bytes[0], bytes.get(1).copied().unwrap_or(0)]))
    };
    // A frame has a few thousand words, and the sum room for 65 537.
    let mut sum: u32 = words.map(word).sum();
    while sum > u32::from(u16::MAX) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).expect("folded to 16 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(from: &str, to: &str, message: &[u8]) -> Vec<u8> {
        let [from, to]: [SocketAddr; 2] = [from, to].map(|end| end.parse().unwrap());
        let mut frame = vec![0xaa; headers_bytes(to.is_ipv4())];
        frame.extend_from_slice(message);
        Addresses { link: [[1; 6], [2; 6]], from, to }.head(&mut frame);
        frame
    }

    #[test]
    fn a_checksum_is_that_of_the_rfc() {
        // The example of RFC 1071, section 3.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&[&bytes]), !0xddf2);
        assert_eq!(checksum(&[&bytes[..4], &bytes[4..]]), !0xddf2);
        assert_eq!(checksum(&[&[0x12]]), !0x1200);
    }

    #[test]
    fn headers_over_ipv4_are_these() {
        let frame = framed("192.0.2.1:4660", "192.0.2.2:9", b"abc");
        let (headers, message) = frame.split_at(42);
        assert_eq!(message, b"abc");
        assert_eq!(headers[..14], [2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 8, 0]);
        assert_eq!(headers[14..24], [0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17]);
        assert_eq!(headers[26..34], [192, 0, 2, 1, 192, 0, 2, 2]);
        assert_eq!(headers[34..], [0x12, 0x34, 0, 9, 0, 11, 0, 0]);
        // A header whose checksum is right sums up to nothing.
        assert_eq!(checksum(&[&headers[14..34]]), 0);
    }

    #[test]
    fn headers_over_ipv6_are_these() {
        let frame = framed("[2001:db8::1]:4660", "[2001:db8::2]:9", b"abc");
        let (headers, message) = frame.split_at(62);
        assert_eq!(message, b"abc");
        assert_eq!(headers[12..22], [0x86, 0xdd, 0x60, 0, 0, 0, 0, 11, 17, 64]);
        assert_eq!(headers[54..60], [0x12, 0x34, 0, 9, 0, 11]);
        let pseudo = [0, 0, 0, 11, 0, 0, 0, 17];
        assert_eq!(checksum(&[&headers[22..54], &pseudo, &frame[54..]]), 0);
    }

    #[test]
    fn a_checksum_of_zero_is_sent_as_all_ones() {
        // The message that makes up for the headers' sum.
        let rest = checksum(&[&framed("[::1]:1", "[::1]:2", &[0, 0])[60..62]]);
        let frame = framed("[::1]:1", "[::1]:2", &(!rest).to_be_bytes());
        assert_eq!(frame[60..62], [0xff, 0xff]);
    }
}
