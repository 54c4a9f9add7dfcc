//! Busy polling: a call that receives asks the device for packets itself before it sleeps.

use iolens_model::axes::Topology;
use iolens_model::outcome::EndFacts;
use iolens_model::trial::Trial;
use iolens_sys::proc::{self, Root};
use iolens_sys::{ethtool, socket};

use super::link::Links;
use super::protocol::{Failure, Side};
use crate::stage::{RX_DEVICE, TX_DEVICE};

/// Polling of an end, from the moment when it was arranged.
pub(super) struct BusyPolling {
    packets_before: Option<u64>,
}

impl BusyPolling {
    /// Arranges what a trial asks for; `None` where that is nothing.
    ///
    /// Errors: what was tried and what the system said.
    pub(super) fn arrange(
        trial: &Trial,
        side: Side,
        links: &Links,
    ) -> Result<Option<BusyPolling>, Failure> {
        let Some(us) = trial.cell.net().and_then(|net| net.tuning.busy_poll_us.0) else {
            return Ok(None);
        };
        if trial.cell.topology() == Some(Topology::Veth) {
            let device = if side == Side::Tx { TX_DEVICE } else { RX_DEVICE };
            ethtool::make_pollable(device).map_err(|errno| {
                Failure::cause(format!(
                    "cannot switch on GRO of {device}, for --busy-poll: {errno}"
                ))
            })?;
        }
        // The sending end waits for its receipts, too.
        for fd in links.over_network().flat_map(|lane| [lane.data(), lane.back()]) {
            socket::poll_busily(fd, us).map_err(|errno| {
                Failure::cause(format!("cannot set SO_BUSY_POLL to {us} µs: {errno}"))
            })?;
        }
        Ok(Some(BusyPolling { packets_before: packets() }))
    }

    /// Adds to an end's facts what came of it.
    pub(super) fn describe(&self, facts: &mut EndFacts) {
        let packets = packets().zip(self.packets_before);
        facts.busy_polled_packets = packets.map(|(now, before)| now.saturating_sub(before));
    }
}

/// Packets of this network namespace that were found by polling (net/ipv4/proc.c).
fn packets() -> Option<u64> {
    let netstat = Root::real().read("proc/thread-self/net/netstat").ok()?;
    proc::net_counter(&netstat, "TcpExt", "BusyPollRxPackets")
}
