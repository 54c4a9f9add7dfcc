//! Settings of a cell that most plans leave alone: the network under the
//! connection, the sizes of buffers and batches.

use serde::{Deserialize, Serialize};

use crate::axes::{IpVersion, Topology};
use crate::plan::NetworkOptions;
use crate::units::Bytes;

/// What all arms of a cell have in common beyond what a plan is about. What
/// does not apply in a cell is null, so that it does not tell cells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tuning {
    /// The internet protocol.
    pub ip: IpVersion,
    /// MTU of the veth pair, headers of IP and TCP included; null where the
    /// device is not one.
    pub mtu_bytes: Option<u32>,
    /// `SO_SNDBUF` and `SO_RCVBUF`, before the kernel doubles it.
    pub socket_buffer: Bytes,
    /// Bytes asked of one receiving call, whatever the message size; null where
    /// nobody receives.
    pub receive_size: Option<Bytes>,
    /// Zero-copy sends after which completions are read, as many as have come;
    /// null to read them when a message is to be used again that is still held.
    pub reap_batch: Option<u32>,
    /// Sends through a ring that are under way at once, at most.
    pub uring_depth: u32,
    /// Sends through a ring that one io_uring_enter(2) hands over.
    pub uring_batch: u32,
}

impl Tuning {
    /// What a plan that states nothing has where all of it applies; see
    /// docs/journal for the measurements behind the sizes.
    pub const DEFAULT: Tuning = Tuning {
        ip: IpVersion::V4,
        mtu_bytes: Some(1500),
        socket_buffer: Bytes(512 << 10),
        receive_size: Some(Bytes(128 << 10)),
        reap_batch: None,
        uring_depth: 1,
        uring_batch: 1,
    };

    /// The same in a topology, where some of it may not apply.
    #[must_use]
    pub fn within(self, topology: Topology) -> Tuning {
        Tuning {
            mtu_bytes: self.mtu_bytes.filter(|_| topology == Topology::Veth),
            receive_size: self.receive_size.filter(|_| topology.has_receiver()),
            ..self
        }
    }

    /// The network that a trial makes.
    #[must_use]
    pub fn network(self) -> NetworkOptions {
        let default = NetworkOptions::default();
        NetworkOptions { ip: self.ip, mtu_bytes: self.mtu_bytes.unwrap_or(default.mtu_bytes) }
    }

    /// Each setting in words, in the order of the fields; null for one that
    /// does not apply, and for a depth that is just that of the batch.
    #[must_use]
    pub fn words(self) -> [Option<String>; 7] {
        let reap = self.reap_batch.map_or("when needed".to_owned(), |n| n.to_string());
        let (depth, batch) = (self.uring_depth, self.uring_batch);
        [
            Some(self.ip.to_string()),
            self.mtu_bytes.map(|bytes| format!("MTU {bytes}")),
            Some(format!("socket buffer {}", self.socket_buffer)),
            self.receive_size.map(|size| format!("receive size {size}")),
            Some(format!("reap batch {reap}")),
            (depth != batch).then(|| format!("io_uring depth {depth}")),
            Some(format!("io_uring batch {batch}")),
        ]
    }

    /// What is not as it is by default, in words.
    #[must_use]
    pub fn unusual(self) -> Vec<String> {
        let usual = Tuning::DEFAULT.words();
        let own = self.words().into_iter().zip(usual);
        own.filter_map(|(own, usual)| own.filter(|own| Some(own) != usual.as_ref())).collect()
    }
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_usual_or_does_not_apply_is_not_said() {
        for &topology in Topology::ALL {
            assert!(Tuning::DEFAULT.within(topology).unusual().is_empty(), "{topology}");
        }
        let tuning = Tuning { mtu_bytes: Some(9000), uring_depth: 8, ..Tuning::DEFAULT };
        assert_eq!(tuning.unusual(), ["MTU 9000", "io_uring depth 8"]);
        assert_eq!(tuning.within(Topology::Loopback).unusual(), ["io_uring depth 8"]);
        let chain = Tuning { uring_depth: 4, uring_batch: 4, reap_batch: Some(2), ..tuning };
        assert_eq!(chain.unusual(), ["MTU 9000", "reap batch 2", "io_uring batch 4"]);
    }
}
