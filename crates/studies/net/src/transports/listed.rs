//! What can carry messages, whether a primitive of ours sends over it or not, and
//! whether this kernel has it: each is tried.

use std::net::Ipv4Addr;
use std::time::Duration;

use iolens_model::transport::Transport;
use iolens_sys::proc::Root;
use iolens_sys::{io_uring, tcp, vsock};

use crate::entry::{Ends, Entry};
use crate::registry::REGISTRY;
use crate::{availability, lane};

/// One thing that can carry messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The kernel's word for it.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Primitives of this build that send over it, the hidden ones left out.
    pub primitives: Vec<&'static str>,
    /// Why it cannot be used here, with what the system said.
    pub refused: Option<String>,
}

/// How long something may take that does not answer.
const PATIENCE: Duration = Duration::from_millis(200);

/// Everything, those with primitives first.
pub fn all() -> Vec<Listing> {
    let ours = Transport::ALL.iter().copied().map(of_transport);
    let others = [
        ("vsock", "stream sockets between a guest and its host", vsock()),
        ("ktls", "TLS records made by the kernel under a TCP socket", ktls()),
        ("zcrx", "TCP payload put into user memory by the NIC, for io_uring", zcrx(&Root::real())),
    ];
    let others = others.into_iter().map(|(name, summary, tried)| Listing {
        name,
        summary,
        primitives: Vec::new(),
        refused: tried.err(),
    });
    ours.chain([frames()]).chain(others).collect()
}

fn frames() -> Listing {
    let sends = REGISTRY.iter().filter(|entry| entry.makes_frames() && !entry.hidden);
    let tried = REGISTRY.iter().filter(|entry| entry.makes_frames());
    Listing {
        name: "af_xdp",
        summary: "Ethernet frames from user memory to a queue of a device, in copy mode",
        primitives: sends.map(|entry| entry.id).collect(),
        refused: tried.map(|entry| availability::try_here(entry)).find_map(Result::err),
    }
}

fn of_transport(transport: Transport) -> Listing {
    let sends = |entry: &&&Entry| entry.ends == Ends::Pair && !entry.hidden;
    let own = REGISTRY.iter().filter(sends).filter(|entry| entry.transport == transport);
    let tried = lane::pair(transport, Ipv4Addr::LOCALHOST.into(), &lane::short_options(PATIENCE));
    Listing {
        name: transport.word(),
        summary: match transport {
            Transport::Tcp => "a TCP connection",
            Transport::Mptcp => "a TCP connection that may have several paths; one here",
            Transport::Udp => "UDP datagrams, which may be lost; all there is on the network sink",
            Transport::UnixStream => "a Unix stream socket: no network",
            Transport::Pipe => "a pipe: no socket",
        },
        primitives: own.map(|entry| entry.id).collect(),
        refused: tried.err().map(|error| error.to_string()),
    }
}

fn vsock() -> Result<(), String> {
    vsock::try_loopback(PATIENCE).map_err(|error| {
        format!("{error}: nothing carries vsock within this machine (CONFIG_VSOCKETS_LOOPBACK)")
    })
}

fn ktls() -> Result<(), String> {
    let (near, _far) = lane::connected_pair().map_err(|error| error.to_string())?;
    tcp::try_ulp(&near, "tls")
        .map_err(|error| format!("{error}: the kernel has no such module (CONFIG_TLS)"))
}

/// The operation of Linux 6.15; the crate that makes our rings does not name it yet
/// (include/uapi/linux/io_uring.h, `IORING_OP_RECV_ZC`).
const RECV_ZC: u8 = 58;

fn zcrx(root: &Root) -> Result<(), String> {
    match io_uring::has_operation(RECV_ZC) {
        Err(errno) => return Err(format!("cannot create a ring: {errno}")),
        Ok(false) => return Err("this kernel has no IORING_OP_RECV_ZC (Linux 6.15)".to_owned()),
        Ok(true) => {}
    }
    let drivers = drivers(root);
    let there = match drivers.is_empty() {
        true => "this machine has no network device with hardware behind it".to_owned(),
        false => format!("here there is {}", drivers.join(", ")),
    };
    Err(format!(
        "the kernel has the operation, but it needs a NIC that splits headers from data into \
         queues of its own (ethtool -g: tcp-data-split); {there}, and this build has no receiver \
         for it"
    ))
}

/// Network devices with hardware behind them, each with its driver.
fn drivers(root: &Root) -> Vec<String> {
    let mut drivers: Vec<String> = root
        .names("sys/class/net")
        .into_iter()
        .filter_map(|device| {
            let driver = root.link(&format!("sys/class/net/{device}/device/driver"))?;
            let (_, driver) = driver.rsplit_once('/')?;
            Some(format!("{device} ({driver})"))
        })
        .collect();
    drivers.sort();
    drivers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_transport_is_listed_with_what_sends_over_it() {
        let all = all();
        for &transport in Transport::ALL {
            let found = all.iter().find(|listing| listing.name == transport.word()).unwrap();
            assert!(!found.primitives.is_empty(), "{transport}");
        }
        // What this build cannot use is refused, or was found to be there.
        assert_eq!(all.len(), Transport::ALL.len() + 4);
        let tcp = all.iter().find(|listing| listing.name == "tcp").unwrap();
        assert_eq!(tcp.refused, None);
    }

    #[test]
    fn hardware_is_named_with_its_driver() {
        let machine = tempfile::tempdir().unwrap();
        let at = |path: &str| machine.path().join(path);
        std::fs::create_dir_all(at("sys/bus/drivers/bnxt_en")).unwrap();
        std::fs::create_dir_all(at("sys/class/net/eth7/device")).unwrap();
        std::fs::create_dir_all(at("sys/class/net/lo")).unwrap();
        let link = at("sys/class/net/eth7/device/driver");
        std::os::unix::fs::symlink(at("sys/bus/drivers/bnxt_en"), link).unwrap();
        assert_eq!(drivers(&Root::at(machine.path())), ["eth7 (bnxt_en)"]);
    }
}
