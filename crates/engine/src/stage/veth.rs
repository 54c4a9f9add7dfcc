//! Two network namespaces, one for each worker, and a veth pair between them.
//! Nothing of it has a name outside: it goes when the workers do, whatever
//! ends them.

use std::time::Duration;

use iolens_model::axes::IpVersion;
use iolens_model::plan::NetworkOptions;
use iolens_sys::errno::Errno;
use iolens_sys::netlink::{Link, NewDevice, Route, VethPair};
use iolens_sys::netns::{self, Owner, Refusal, Setting, Step};
use iolens_sys::process;

use super::device::{address, open_device, refused, wait_until};
use super::{sink, veth};
use crate::worker::protocol::{Failure, Side, StageStep};

/// The device of the sending end, in its namespace.
pub const TX_DEVICE: &str = "iolens-tx";

/// The device of the receiving end, in its namespace.
pub const RX_DEVICE: &str = "iolens-rx";

fn device(side: Side) -> &'static str {
    match side {
        Side::Tx => TX_DEVICE,
        Side::Rx => RX_DEVICE,
    }
}

/// A pair to try whether there are any.
pub(super) fn trial_pair() -> NewDevice {
    let pair = VethPair { near: "try-near", far: "try-far", far_process: None, mtu_bytes: 1500 };
    NewDevice::from(&pair)
}

/// Makes the pair: this end here, the other one where the process `far_pid` is.
pub(super) fn pair(far_pid: u32, network: NetworkOptions) -> Result<(), Failure> {
    let pair = VethPair {
        near: TX_DEVICE,
        far: RX_DEVICE,
        far_process: Some(far_pid),
        mtu_bytes: network.mtu_bytes,
    };
    let made = Route::open().and_then(|route| route.add(&NewDevice::from(&pair)));
    made.map_err(|errno| match errno {
        Errno::EINVAL => Failure::cause(format!(
            "cannot create a veth pair with an MTU of {} bytes: {errno}: ask for 68 to 65535, \
             for IPv6 at least 1280",
            network.mtu_bytes
        )),
        errno => refused(&Refusal { step: Step::VethPair, errno }),
    })
}

/// Gives this end's device its address and switches it on, and `lo` too.
pub(super) fn open(side: Side, network: NetworkOptions) -> Result<(), Failure> {
    open_device(device(side), address(side, network.ip), side)
}

/// Waits until both devices are on and this end takes in what is sent to it, as
/// the kernel says when it has noticed: what is sent before is dropped, and
/// sent again only after a second.
pub(super) fn wait_until_usable(side: Side, ip: IpVersion, limit: Duration) -> Result<(), Failure> {
    let what = format!("wait for the carrier of {}", device(side));
    wait_until(&what, side, limit, || is_usable(side, ip))
}

fn is_usable(side: Side, ip: IpVersion) -> Result<bool, Errno> {
    Ok(link(side)?.operational && Route::open()?.is_local(address(side, ip))?)
}

fn link(side: Side) -> Result<Link, Errno> {
    Route::open()?.link(device(side))
}

/// The MTU of this end's device as the kernel reads it back.
pub(super) fn mtu_bytes(side: Side) -> Option<u64> {
    Some(link(side).ok()?.mtu_bytes.into())
}

/// A failure for which the device has an explanation. It is the consequence of
/// something, if only of the other worker's end, which then says more.
pub(super) fn explain(side: Side, failure: Failure) -> Failure {
    let name = device(side);
    let happened = match link(side) {
        Err(Errno::ENODEV) => "was removed",
        Ok(link) if !link.operational => "was switched off, or its other end was",
        _ => return failure,
    };
    let what = format!("the veth device {name} {happened} while the trial ran ({})", failure.what);
    Failure { what, consequence: true, ..failure }
}

// What the topologies of our own namespaces have in common: how a worker gets
// into one, the addresses there, and a device switched on. Nothing of it has a
// name outside: it goes when the workers do, whatever ends them.

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
