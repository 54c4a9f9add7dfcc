//! The settings that the axes of `net` make, each of them alone, and what tells them apart.

use super::{BatchAxes, NetAxes, NetworkAxes, SocketAxes, SocketOptions};
use crate::axes::{Topology, crossed};
use crate::cell::NetSetting;
use crate::tuning::Tuning;
use crate::units::Bytes;

impl NetAxes {
    /// Every setting, in the order of the axes.
    pub(super) fn settings(&self) -> Vec<NetSetting> {
        let of_topology = |&topology: &Topology| {
            let all = vec![NetSetting::blank(topology)];
            let all = crossed(all, &self.modes, |one, &mode| one.mode = mode);
            let all = crossed(all, &self.working_sets, |one, &set| one.working_set = set);
            let all = crossed(all, &self.fields, |one, &fields| one.fields = fields);
            let all = crossed(all, &self.iovec, |one, &iovec| one.iovec = iovec);
            // Where nobody receives, it does not matter how.
            let receivers = match topology.has_receiver() {
                true => &self.receivers[..],
                false => &self.receivers[..self.receivers.len().min(1)],
            };
            let all = crossed(all, receivers, |one, id| one.receiver.clone_from(id));
            let tunings = self.tunings(topology);
            crossed(all, &tunings, |one, &tuning| one.tuning = tuning)
        };
        self.topologies.iter().flat_map(of_topology).collect()
    }

    /// The settings that most plans leave alone, each once: what does not apply
    /// in a topology makes no cells.
    fn tunings(&self, topology: Topology) -> Vec<Tuning> {
        let (network, socket, batches) = (&self.network, &self.socket, &self.batches);
        let all = vec![Tuning::DEFAULT];
        let all = crossed(all, &network.ip, |one, &ip| one.ip = ip);
        let all = crossed(all, &network.mtu_bytes, |one, &mtu| one.mtu_bytes = Some(mtu));
        let all = crossed(all, &socket.buffer_bytes, |one, &bytes| one.socket_buffer = bytes);
        let all = crossed(all, &socket.receive_bytes, |one, &size| one.receive_size = Some(size));
        let all = crossed(all, &batches.reap_batch, |one, &reap| one.reap_batch = reap);
        let all = crossed(all, &batches.uring_batch, |one, &batch| {
            (one.uring_batch, one.uring_depth) = (batch, batch);
        });
        let all = match &batches.uring_depth[..] {
            [] => all,
            depths => crossed(all, depths, |one, &depth| one.uring_depth = depth),
        };
        let within = all.into_iter().map(|one| one.within(topology));
        within.fold(Vec::new(), |mut kept, one| {
            if !kept.contains(&one) {
                kept.push(one);
            }
            kept
        })
    }

    /// The same with one setting alone, which has to be one of these axes.
    #[must_use]
    pub fn at(&self, net: &NetSetting) -> NetAxes {
        let tuning = net.tuning;
        let first = |values: &[Bytes]| values.iter().take(1).copied().collect();
        NetAxes {
            topologies: vec![net.topology],
            modes: vec![net.mode],
            working_sets: vec![net.working_set],
            fields: vec![net.fields],
            iovec: vec![net.iovec],
            receivers: vec![net.receiver.clone()],
            socket: SocketAxes {
                buffer_bytes: vec![tuning.socket_buffer],
                // What does not apply in the topology is not in the setting.
                receive_bytes: tuning
                    .receive_size
                    .map_or_else(|| first(&self.socket.receive_bytes), |size| vec![size]),
                ..self.socket.clone()
            },
            network: NetworkAxes {
                ip: vec![tuning.ip],
                mtu_bytes: tuning.mtu_bytes.map_or_else(
                    || self.network.mtu_bytes.iter().take(1).copied().collect(),
                    |mtu| vec![mtu],
                ),
            },
            batches: BatchAxes {
                reap_batch: vec![tuning.reap_batch],
                uring_depth: match tuning.uring_depth == tuning.uring_batch {
                    true => Vec::new(),
                    false => vec![tuning.uring_depth],
                },
                uring_batch: vec![tuning.uring_batch],
            },
            allow_sysctl: self.allow_sysctl,
            direction: self.direction,
        }
    }

    /// The socket settings of a trial.
    #[must_use]
    pub fn socket_options(&self, tuning: &Tuning) -> SocketOptions {
        let receive_bytes = tuning.receive_size.or(Tuning::DEFAULT.receive_size);
        SocketOptions {
            congestion: self.socket.congestion.clone(),
            buffer_bytes: tuning.socket_buffer,
            nodelay: self.socket.nodelay,
            receive_bytes: receive_bytes.unwrap_or_default(),
        }
    }

    pub(super) fn told_apart(&self, net: &NetSetting) -> Vec<String> {
        let rows = [
            (self.topologies.len(), Some(net.topology.to_string())),
            (self.modes.len(), Some(net.mode.to_string())),
            (self.working_sets.len(), Some(net.working_set.to_string())),
            (self.fields.len(), Some(net.fields_in_words())),
            (self.receivers.len(), net.receiver_in_words()),
        ];
        let several = rows.into_iter().chain(self.further(net)).filter(|(values, _)| *values > 1);
        several.filter_map(|(_, word)| word).collect()
    }

    pub(super) fn told_further(&self, net: &NetSetting, unusual: &[String]) -> Vec<String> {
        let said = |(values, word): (usize, Option<String>)| {
            word.filter(|word| values > 1 || unusual.contains(word))
        };
        self.further(net).into_iter().filter_map(said).collect()
    }

    /// The axes that most plans leave alone: how many values the plan has, and
    /// that of the cell in words.
    fn further(&self, net: &NetSetting) -> [(usize, Option<String>); 8] {
        let [ip, mtu, buffer, receive, reap, depth, batch] = net.tuning.words();
        [
            (self.iovec.len(), Some(net.iovec_in_words())),
            (self.network.ip.len(), ip),
            (self.network.mtu_bytes.len(), mtu),
            (self.socket.buffer_bytes.len(), buffer),
            (self.socket.receive_bytes.len(), receive),
            (self.batches.reap_batch.len(), reap),
            (self.batches.uring_depth.len(), depth),
            (self.batches.uring_batch.len(), batch),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axes::{Direction, Iovec, Mode, WorkingSet};

    #[test]
    fn each_setting_of_a_plan_can_be_had_alone() {
        let net = NetAxes {
            topologies: Topology::ALL.to_vec(),
            modes: vec![Mode::Stream],
            working_sets: vec![WorkingSet::Hot],
            fields: vec![1, 8],
            iovec: vec![Iovec::PerMessage],
            receivers: vec!["recv".to_owned(), "recvmsg_iov".to_owned()],
            socket: SocketAxes {
                congestion: "reno".to_owned(),
                buffer_bytes: vec![Bytes(512 << 10)],
                nodelay: true,
                receive_bytes: vec![Bytes(4096), Bytes(65536)],
            },
            network: NetworkAxes { mtu_bytes: vec![1500, 9000], ..NetworkAxes::default() },
            batches: BatchAxes {
                uring_depth: vec![1, 4],
                uring_batch: vec![1, 2],
                ..BatchAxes::default()
            },
            allow_sysctl: false,
            direction: Direction::Rx,
        };
        let settings = net.settings();
        assert_eq!(settings.len(), 32 + 64 + 8 + 32);
        for setting in settings {
            assert_eq!(net.at(&setting).settings(), [setting]);
        }
    }
}
