//! What the topologies of our own namespaces have in common: how a worker gets
//! into one, the addresses there, and a device switched on. Nothing of it has a
//! name outside: it goes when the workers do, whatever ends them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::time::Duration;

use iolens_model::axes::IpVersion;
use iolens_sys::errno::Errno;
use iolens_sys::netlink::{News, Route};
use iolens_sys::netns::{self, Owner, Refusal, Setting, Step};
use iolens_sys::proc::Root;
use iolens_sys::{clock, poll, process};

use super::{refusal, sink, veth};
use crate::worker::protocol::{Failure, Side, StageStep};

/// Sysctls of our own namespaces; see ip-sysctl.rst of the kernel.
pub(super) const SETTINGS: &[Setting] = &[
    // An arm that waits while others run keeps its congestion window.
    ("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0"),
    // Connections whose workers were killed would otherwise retransmit for
    // minutes and hold the namespace.
    ("/proc/sys/net/ipv4/tcp_orphan_retries", "1"),
    // No link-local address, so no search for doubles and routers crosses the
    // pair while a trial runs.
    ("/proc/sys/net/ipv6/conf/default/addr_gen_mode", "1"),
];

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

/// Takes one step towards the topology; on the main thread of a worker, before
/// there is another one. Returns whether a user namespace had to be made.
///
/// Errors: what was tried, what the system said, what would change it.
pub(crate) fn take(step: &StageStep) -> Result<bool, Failure> {
    match *step {
        StageStep::Enter { beside } => enter(beside),
        StageStep::Join { pid, user_namespace } => join(pid, user_namespace),
        StageStep::Pair { far_pid, network } => veth::pair(far_pid, network).map(|()| false),
        StageStep::Open { side, network } => veth::open(side, network).map(|()| false),
        StageStep::Sink { network, queues } => sink::open(network, queues).map(|()| false),
    }
}

fn enter(beside: Option<u32>) -> Result<bool, Failure> {
    let owner = match beside {
        Some(pid) => netns::enter_beside(pid, SETTINGS).map(|()| Owner::Before),
        None => netns::enter(SETTINGS),
    };
    die_with_parent_again()?;
    owner.map(|owner| owner == Owner::Own).map_err(|refusal| refused(&refusal))
}

fn join(pid: u32, user_namespace: bool) -> Result<bool, Failure> {
    let joined = netns::join(pid, if user_namespace { Owner::Own } else { Owner::Before });
    die_with_parent_again()?;
    joined.map(|()| false).map_err(|refusal| refused(&refusal))
}

fn die_with_parent_again() -> Result<(), Failure> {
    // A security module that gave us other credentials has cleared it
    // (kernel/cred.c, commit_creds). Had the parent died since, the end of the
    // control pipe still ends us.
    process::die_with_parent()
        .map_err(|e| Failure::cause(format!("cannot set PR_SET_PDEATHSIG again: {e}")))
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
