//! A device that drops whatever is sent through it, in a network namespace of
//! our own. It takes references to the sender's pages and lets go of them at
//! once, so what is sent with `MSG_ZEROCOPY` is never copied: no device that
//! delivers within a machine can do that. There is no receiver behind it, no
//! driver and no DMA: what it shows is the way down to the device, and no more.
//!
//! `dummy` is made for it (drivers/net/dummy.c). `ifb` drops all that was not
//! redirected to it (drivers/net/ifb.c, `ifb_xmit`), as all here is not. Both
//! take scattered pages and leave the checksum to the device
//! (`NETIF_F_SG`, `NETIF_F_HW_CSUM`), without which the kernel would copy
//! (net/ipv4/ip_output.c, `__ip_append_data`), and neither asks for a
//! neighbour's address (`IFF_NOARP`).
//!
//! A module that the kernel loads for it stays loaded.

use std::net::SocketAddr;
use std::time::Duration;

use iolens_model::arm::Arm;
use iolens_model::axes::{IpVersion, Topology};
use iolens_model::cell::Cell;
use iolens_model::plan::NetworkOptions;
use iolens_model::trial::Trial;
use iolens_sys::errno::Errno;
use iolens_sys::netlink::{Device, NewDevice, Route};
use iolens_sys::netns::{self, Refusal, Step};

use super::device::{address, at, open_device, refused, wait_until};
use crate::worker::protocol::{Failure, Side};
use iolens_net::entry::Entry;
use iolens_net::registry;

/// The device, in its namespace.
pub const SINK_DEVICE: &str = "iolens-sink";

/// Kinds of devices that will do, the plainest first.
const KINDS: [&str; 2] = ["dummy", "ifb"];

/// The discard protocol's (RFC 863); no port matters behind the device.
const PORT: u16 = 9;

/// The device with its queues, of each kind that will do.
pub(super) fn devices(queues: u32) -> Vec<NewDevice> {
    let mtu_bytes = NetworkOptions::SINK_MTU_BYTES;
    let device = |kind| Device { name: SINK_DEVICE, kind, mtu_bytes, queues };
    KINDS.iter().map(|kind| NewDevice::from(&device(kind))).collect()
}

/// Makes the device, gives it its address and switches it on, and `lo` too,
/// over which the ends keep step.
pub(super) fn open(network: NetworkOptions, queues: u32) -> Result<(), Failure> {
    netns::add_first(&devices(queues))
        .map_err(|errno| refused(&Refusal { step: Step::SinkDevice, errno }))?;
    open_device(SINK_DEVICE, address(Side::Tx, network.ip), Side::Tx)?;
    // A message has then reached the device when its call returns, and no
    // thread sends what another one left in a queue. Neither kind is ever busy.
    let unqueued =
        Route::open().and_then(|route| route.remove_queue(route.link(SINK_DEVICE)?.index));
    unqueued.map_err(at(&format!("take the queue from the device {SINK_DEVICE}"), Side::Tx))
}

/// Waits until the address can be sent from.
pub(super) fn wait_until_usable(ip: IpVersion, limit: Duration) -> Result<(), Failure> {
    let address = address(Side::Tx, ip);
    wait_until(&format!("wait for the address {address}"), Side::Tx, limit, || {
        Route::open()?.is_local(address)
    })
}

/// Whence and whereto messages are sent, where a trial needs that to be said.
pub(crate) fn endpoints(trial: &Trial) -> Option<[SocketAddr; 2]> {
    let ip = trial.network.ip;
    let is_sink = trial.cell.topology() == Some(Topology::Sink);
    // The other end of a veth pair would have the address; here nobody has.
    let [from, to] = [(Side::Tx, 0), (Side::Rx, PORT)]
        .map(|(side, port)| SocketAddr::new(address(side, ip), port));
    is_sink.then_some([from, to])
}

/// Queues that the device has in a trial: one, or as many as AF_XDP sockets are
/// bound to it, each of which takes one for itself. Whatever else is sent in that
/// trial meets the same device.
pub(crate) fn queues(trial: &Trial) -> u32 {
    let makes_frames = |arm: &&Arm| registry::find(&arm.primitive).is_some_and(Entry::makes_frames);
    let arms = trial.arms.iter().filter(makes_frames).count();
    u32::try_from(arms).unwrap_or(u32::MAX).saturating_mul(trial.cell.threads).max(1)
}

/// Why a datagram that is not copied cannot be sent: it refers to each page it
/// lies on, or to each piece of one, and there is room for so many references
/// (`MAX_SKB_FRAGS`; net/core/datagram.c, `__zerocopy_sg_from_iter`).
pub(crate) fn too_scattered(cell: &Cell) -> String {
    let fields = cell.net().map_or(1, |net| net.fields);
    format!(
        "a message of {} in {fields} fields lies on more pages than one datagram can refer to \
         (EMSGSIZE; 17 with most kernels, see MAX_SKB_FRAGS): take fewer \
         fields, such as --fields 1, or smaller messages",
        cell.size
    )
}

/// The MTU of the device as the kernel reads it back.
pub(super) fn mtu_bytes() -> Option<u64> {
    Some(Route::open().ok()?.link(SINK_DEVICE).ok()?.mtu_bytes.into())
}

/// A failure for which the device has an explanation.
pub(super) fn explain(failure: Failure) -> Failure {
    let gone = Route::open().and_then(|route| route.link(SINK_DEVICE)) == Err(Errno::ENODEV);
    if !gone {
        return failure;
    }
    let what =
        format!("the device {SINK_DEVICE} was removed while the trial ran ({})", failure.what);
    Failure { what, ..failure }
}
