//! Two network namespaces, one for each worker, and a veth pair between them.
//! Nothing of it has a name outside: it goes when the workers do, whatever
//! ends them.

use std::time::Duration;

use iolens_model::axes::IpVersion;
use iolens_model::plan::NetworkOptions;
use iolens_sys::errno::Errno;
use iolens_sys::netlink::{Link, NewDevice, Route, VethPair};
use iolens_sys::netns::{Refusal, Step};

use super::device::{address, open_device, refused, wait_until};
use crate::worker::protocol::{Failure, Side};

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
