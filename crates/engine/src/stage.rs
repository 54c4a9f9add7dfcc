//! Where the two ends of a trial stand: which topologies this machine lets us
//! make, asked before a plan is made, and what each worker needs to know of
//! its place.

mod device;
mod refusal;
pub(crate) mod sink;
mod veth;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use iolens_model::axes::{IpVersion, Topology};
use iolens_model::outcome::EndFacts;
use iolens_model::trial::{Trial, TrialHosts};
use iolens_sys::netns::{self, Step};
use iolens_sys::proc::Root;

use crate::far::wire::NOT_NAMED;
use crate::worker::protocol::{Failure, Side};

pub(crate) use self::refusal::Refused;
use self::refusal::User;
pub use self::sink::SINK_DEVICE;
pub(crate) use self::veth::take;
pub use self::veth::{RX_DEVICE, TX_DEVICE};

/// Whether a topology can be made here: it is made and thrown away.
///
/// Errors: why not, one clause, and what would change it.
pub fn available(topology: Topology) -> Result<(), String> {
    if topology == Topology::Host {
        // It is tried when it is reached, by who has one.
        return Err(NOT_NAMED.to_owned());
    }
    try_out(topology).map_err(|refused| refused.to_string())
}

/// Makes a topology and throws it away.
///
/// Errors: why not, and what would change it, apart.
pub(crate) fn try_out(topology: Topology) -> Result<(), Refused> {
    let (step, devices) = match topology {
        Topology::Loopback | Topology::Host => return Ok(()),
        Topology::Veth => (Step::VethPair, vec![veth::trial_pair()]),
        Topology::Sink => (Step::SinkDevice, sink::devices(1)),
    };
    netns::try_in_child(veth::SETTINGS, step, devices)
        .map_err(|refusal| refusal::explain(&refusal, &Root::real(), User::here()))
}

/// Where one end of a trial stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    topology: Topology,
    ip: IpVersion,
    side: Side,
    hosts: Option<TrialHosts>,
}

impl Place {
    /// The place of an end; `None` in studies without a network.
    pub(crate) fn of(trial: &Trial, side: Side) -> Option<Place> {
        let topology = trial.cell.topology()?;
        Some(Place { topology, ip: trial.network.ip, side, hosts: trial.hosts })
    }

    /// The address of the end that stands here, at which it is connected to
    /// the other one.
    pub(crate) fn address(self) -> IpAddr {
        match (self.topology, self.hosts, self.ip) {
            (Topology::Veth, _, ip) => device::address(self.side, ip),
            (Topology::Host, Some(hosts), _) => match self.side {
                Side::Tx => hosts.tx,
                Side::Rx => hosts.rx,
            },
            (_, _, IpVersion::V4) => Ipv4Addr::LOCALHOST.into(),
            (_, _, IpVersion::V6) => Ipv6Addr::LOCALHOST.into(),
        }
    }

    /// Waits until what is sent from here arrives.
    ///
    /// Errors: what was waited for and what the system said.
    pub(crate) fn wait_until_usable(self, limit: Duration) -> Result<(), Failure> {
        match self.topology {
            Topology::Loopback | Topology::Host => Ok(()),
            Topology::Veth => veth::wait_until_usable(self.side, self.ip, limit),
            Topology::Sink => sink::wait_until_usable(self.ip, limit),
        }
    }

    /// Adds to an end's facts what the kernel says of its place.
    pub(crate) fn describe(self, facts: &mut EndFacts) {
        facts.packet_taps = packet_taps(&Root::real());
        facts.mtu_bytes = match self.topology {
            Topology::Loopback | Topology::Host => None,
            Topology::Veth => veth::mtu_bytes(self.side),
            Topology::Sink => sink::mtu_bytes(),
        };
    }

    /// A failure with what has happened to the place, if that is why.
    pub(crate) fn explain(self, failure: Failure) -> Failure {
        match self.topology {
            Topology::Loopback | Topology::Host => failure,
            Topology::Veth => veth::explain(self.side, failure),
            Topology::Sink => sink::explain(failure),
        }
    }
}

/// Packet sockets in the network namespace of this process: all lines but the
/// first of /proc/net/packet (net/packet/af_packet.c, `packet_seq_show`).
pub(crate) fn packet_taps(root: &Root) -> Option<u64> {
    let text = root.read("proc/net/packet").ok()?;
    Some(text.lines().skip(1).count() as u64)
}

#[cfg(test)]
mod tests {
    use iolens_model::axes::Direction;

    use super::*;

    fn place(topology: Topology, ip: IpVersion, side: Side) -> Place {
        Place { topology, ip, side, hosts: None }
    }

    #[test]
    fn each_end_of_a_veth_pair_has_its_own_address() {
        for &ip in IpVersion::ALL {
            let [tx, rx] =
                [Side::Tx, Side::Rx].map(|side| place(Topology::Veth, ip, side).address());
            assert_ne!(tx, rx);
            assert_eq!(tx.is_ipv6(), ip == IpVersion::V6);
            assert!(!tx.is_loopback() && !rx.is_loopback());
        }
        for topology in [Topology::Loopback, Topology::Sink] {
            let over_lo = place(topology, IpVersion::V6, Side::Rx);
            assert_eq!(over_lo.address().to_string(), "::1");
        }
    }

    #[test]
    fn on_two_machines_each_end_has_the_address_it_was_given() {
        let [tx, rx] = ["192.0.2.1", "192.0.2.2"].map(|ip| ip.parse().unwrap());
        let hosts = Some(TrialHosts { direction: Direction::Tx, tx, rx });
        let at = |side| Place { hosts, ..place(Topology::Host, IpVersion::V4, side) }.address();
        assert_eq!([at(Side::Tx), at(Side::Rx)], [tx, rx]);
    }

    #[test]
    fn taps_are_the_lines_below_the_heading() {
        let machine = tempfile::tempdir().unwrap();
        assert_eq!(packet_taps(&Root::at(machine.path())), None);
        std::fs::create_dir_all(machine.path().join("proc/net")).unwrap();
        let heading = "sk       RefCnt Type Proto  Iface R Rmem   User   Inode\n";
        let tap = "ffff0000 3      3    0003   2     1 0      0      12345\n";
        for (text, taps) in [(heading.to_owned(), 0), (format!("{heading}{tap}{tap}"), 2)] {
            std::fs::write(machine.path().join("proc/net/packet"), text).unwrap();
            assert_eq!(packet_taps(&Root::at(machine.path())), Some(taps));
        }
    }
}
