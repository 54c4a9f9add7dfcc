//! What the transports of arms ask of a cell: the same rules before a run, in its
//! plan, as a worker would find by failing.

mod listed;

use iolens_model::axes::{IpVersion, Topology};

use iolens_model::cell::Cell;
use iolens_model::plan::NetworkOptions;
use iolens_model::transport::Transport;

use crate::entry::{Ends, Entry};
use crate::primitives::xdp_tx;
use crate::receivers;

pub use self::listed::{Listing, all};

/// Whether what an entry sends can be sent and received in a cell, where one call
/// receives at most `receive_bytes`.
///
/// Errors: why not, one clause.
pub fn allow(
    entry: &Entry,
    cell: &Cell,
    network: NetworkOptions,
    receive_bytes: u64,
) -> Result<(), String> {
    if entry.ends == Ends::SenderOnly {
        return Ok(());
    }
    received(entry, cell)?;
    if entry.makes_frames() {
        framed(cell, network)?;
    }
    if entry.transport == Transport::Udp {
        datagram(cell, network, receive_bytes)?;
    }
    Ok(())
}

/// Whether the cell's receiver can take it.
fn received(entry: &Entry, cell: &Cell) -> Result<(), String> {
    let Some(receiver) = cell.receiver().and_then(receivers::find) else { return Ok(()) };
    if !cell.has_receiver() || receiver.transports.contains(&entry.transport) {
        return Ok(());
    }
    let words: Vec<&str> = receiver.transports.iter().map(|t| t.word()).collect();
    Err(format!(
        "{} goes over {}, and {} receives from {} alone",
        entry.id,
        entry.transport,
        receiver.id,
        words.join(", ")
    ))
}

/// Whether a message is one frame, the device has a queue for each thread, and what
/// comes from it is taken in.
fn framed(cell: &Cell, network: NetworkOptions) -> Result<(), String> {
    let most = xdp_tx::message_bytes_max(network.ip == IpVersion::V4);
    if cell.size.0 > most as u64 {
        return Err(format!(
            "a message of {} is no frame in a page: over {} it has room for {most} B",
            cell.size, network.ip
        ));
    }
    if cell.topology() == Some(Topology::Loopback) && network.ip == IpVersion::V4 {
        return Err(
            "the kernel drops IPv4 frames on loopback: use --ip ipv6 or --network veth".to_owned()
        );
    }
    if cell.threads > 1 && cell.topology() != Some(Topology::Sink) {
        return Err(format!(
            "each of {} threads needs a queue of the device for itself, and the device has one",
            cell.threads
        ));
    }
    Ok(())
}

/// Whether a message is one datagram that arrives whole.
fn datagram(cell: &Cell, network: NetworkOptions, receive_bytes: u64) -> Result<(), String> {
    let (size, most) = (cell.size, network.datagram_max());
    if size > most {
        return Err(format!(
            "a message of {size} is no datagram: the largest over {} has {} B",
            network.ip, most.0
        ));
    }
    if cell.has_receiver() && size.0 > receive_bytes {
        return Err(format!(
            "a datagram of {size} does not fit what is received at once, {receive_bytes} B, and \
             its rest would be lost"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use iolens_model::axes::{Iovec, Mode, WorkingSet};
    use iolens_model::cell::{NetSetting, Setting};
    use iolens_model::tuning::Tuning;
    use iolens_model::units::Bytes;

    use super::*;
    use crate::registry::{REGISTRY, find};

    fn cell(topology: Topology, receiver: &str, message_bytes: u64) -> Cell {
        Cell {
            setting: Setting::Net(NetSetting {
                topology,
                mode: Mode::Stream,
                working_set: WorkingSet::Hot,
                fields: 1,
                iovec: Iovec::PerMessage,
                receiver: receiver.to_owned(),
                tuning: Tuning::DEFAULT,
            }),
            threads: 1,
            size: Bytes(message_bytes),
        }
    }

    fn allowed(id: &str, cell: &Cell) -> Result<(), String> {
        allow(find(id).unwrap(), cell, NetworkOptions::default(), 256 << 10)
    }

    #[test]
    fn every_arm_can_be_received_with_recv() {
        for entry in REGISTRY {
            let cell = cell(Topology::Veth, "recv", 1024);
            assert_eq!(allow(entry, &cell, NetworkOptions::default(), 1 << 20), Ok(()));
        }
    }

    #[test]
    fn what_a_receiver_cannot_take_is_said() {
        let said = allowed("pipe", &cell(Topology::Veth, "recv_trunc", 64)).unwrap_err();
        assert_eq!(said, "pipe goes over pipe, and recv_trunc receives from tcp alone");
        // Nobody receives there.
        assert_eq!(allowed("sendto", &cell(Topology::Sink, "recv_trunc", 64)), Ok(()));
    }

    #[test]
    fn a_message_that_is_no_datagram_is_refused_with_the_arithmetic() {
        let large = cell(Topology::Loopback, "recv", 65_508);
        let said = allowed("sendto", &large).unwrap_err();
        assert!(said.ends_with("the largest over ipv4 has 65507 B"), "{said}");
        assert_eq!(allowed("send", &large), Ok(()));
        let fits = cell(Topology::Loopback, "recv", 65_507);
        assert_eq!(allowed("sendto", &fits), Ok(()));
        let said = allow(find("sendto").unwrap(), &fits, NetworkOptions::default(), 4096);
        assert!(said.unwrap_err().contains("received at once, 4096 B"));
    }

    #[test]
    fn frames_need_a_page_a_queue_and_a_way_in() {
        let entry = find("xdp_tx").unwrap();
        let said = |cell: &Cell, ip| {
            let network = NetworkOptions { ip, ..NetworkOptions::default() };
            allow(entry, cell, network, 256 << 10).err().unwrap_or_default()
        };
        let (v4, v6) = (IpVersion::V4, IpVersion::V6);
        let sink = |bytes| cell(Topology::Sink, "recv", bytes);
        assert_eq!(said(&sink(4054), v4), "");
        assert!(said(&sink(4055), v4).ends_with("over ipv4 it has room for 4054 B"));
        assert!(said(&sink(4054), v6).ends_with("over ipv6 it has room for 4034 B"));
        let lo = cell(Topology::Loopback, "recv", 64);
        assert!(said(&lo, v4).starts_with("the kernel drops IPv4 frames on loopback"));
        assert_eq!(said(&lo, v6), "");
        for (topology, is_allowed) in [(Topology::Veth, false), (Topology::Sink, true)] {
            let two = Cell { threads: 2, ..cell(topology, "recv", 64) };
            assert_eq!(said(&two, v4).is_empty(), is_allowed);
        }
    }
}
