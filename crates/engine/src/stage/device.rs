//! A device of a stage: its addresses, and how one waits until it is up.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::time::Duration;

use iolens_model::axes::IpVersion;
use iolens_sys::errno::Errno;
use iolens_sys::netlink::{News, Route};
use iolens_sys::netns::{Refusal, Step};
use iolens_sys::proc::Root;
use iolens_sys::{clock, poll};

use super::refusal;
use crate::worker::protocol::{Failure, Side};

/// Addresses for measuring between devices, from 198.18.0.0/15 (RFC 2544);
/// the last byte is the end's.
const IPV4: [u8; 4] = [198, 18, 0, 0];

const IPV4_PREFIX: u8 = 24;

/// A unique local prefix (RFC 4193); the last segment is the end's. The 40
/// bits that are to be random need not be: nothing routes out of here.
const IPV6: [u16; 8] = [0xfd49, 0x4f4c, 0x454e, 0, 0, 0, 0, 0];

const IPV6_PREFIX: u8 = 64;

/// The address of an end.
pub(super) fn address(side: Side, ip: IpVersion) -> IpAddr {
    let host: u8 = match side {
        Side::Tx => 1,
        Side::Rx => 2,
    };
    match ip {
        IpVersion::V4 => Ipv4Addr::from([IPV4[0], IPV4[1], IPV4[2], host]).into(),
        IpVersion::V6 => {
            let mut segments = IPV6;
            segments[7] = u16::from(host);
            Ipv6Addr::from(segments).into()
        }
    }
}

/// A refusal in words; that another process is not there has a reason which
/// is told by how that one ended.
pub(super) fn refused(refusal: &Refusal) -> Failure {
    let gone = match refusal.step {
        Step::Join => matches!(refusal.errno, Errno::ENOENT | Errno::ESRCH),
        _ => refusal.errno == Errno::ESRCH,
    };
    let what = refusal::explain(refusal, &Root::real(), refusal::User::here()).to_string();
    Failure { consequence: gone, ..Failure::cause(what) }
}

/// Gives a device its address and switches it on, and `lo` too.
///
/// Errors: what was tried and what the system said.
pub(super) fn open_device(name: &str, address: IpAddr, side: Side) -> Result<(), Failure> {
    let prefix = if address.is_ipv4() { IPV4_PREFIX } else { IPV6_PREFIX };
    let route = Route::open().map_err(at("open a netlink socket", side))?;
    let lo = route.link("lo").map_err(at("find `lo`", side))?;
    route.set_up(lo.index).map_err(at("switch on `lo`", side))?;
    let link = route.link(name).map_err(at(&format!("find the device {name}"), side))?;
    route
        .add_address(link.index, address, prefix)
        .map_err(at(&format!("add the address {address}"), side))?;
    route.set_up(link.index).map_err(at(&format!("switch on the device {name}"), side))
}

/// Names what was tried at an end. That the device has gone follows from the
/// end of the worker at the other side.
pub(super) fn at(tried: &str, side: Side) -> impl Fn(Errno) -> Failure + use<> {
    let tried = format!("cannot {tried} at the {} end", side.word());
    move |errno| Failure {
        consequence: errno == Errno::ENODEV,
        ..Failure::cause(format!("{tried}: {errno}"))
    }
}

/// Waits until something is so of the devices and addresses here, as the kernel
/// says when it has changed; `what` follows "cannot".
///
/// Errors: `ETIMEDOUT` after `limit`, or what the system said.
pub(super) fn wait_until(
    what: &str,
    side: Side,
    limit: Duration,
    is_so: impl Fn() -> Result<bool, Errno>,
) -> Result<(), Failure> {
    let waiting = at(what, side);
    // Before the first look, so that no change falls between look and wait.
    let news = News::open().map_err(&waiting)?;
    let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    let deadline_ns = clock::monotonic_ns().saturating_add(limit_ns);
    while !is_so().map_err(&waiting)? {
        let left_ns = deadline_ns.saturating_sub(clock::monotonic_ns());
        match poll::readable(&[news.as_fd()], left_ns) {
            Ok(ready) if ready == [true] => match news.take() {
                // More news than could be kept is news as well.
                Ok(()) | Err(Errno::ENOBUFS) => {}
                Err(errno) => return Err(waiting(errno)),
            },
            Ok(_) => return Err(waiting(Errno::ETIMEDOUT)),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(waiting(errno)),
        }
    }
    Ok(())
}
