//! The settings that the axes of `net` make, each of them alone, and what tells them apart.

use super::{NetAxes, SocketOptions};
use crate::axes::{Topology, crossed};
use crate::cell::NetSetting;
use crate::tuning::Tuning;

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
            crossed(all, &self.tuning.within(topology), |one, &tuning| one.tuning = tuning)
        };
        self.topologies.iter().flat_map(of_topology).collect()
    }

    /// The same with one setting alone, which has to be one of these axes.
    #[must_use]
    pub fn at(&self, net: &NetSetting) -> NetAxes {
        NetAxes {
            topologies: vec![net.topology],
            modes: vec![net.mode],
            working_sets: vec![net.working_set],
            fields: vec![net.fields],
            iovec: vec![net.iovec],
            receivers: vec![net.receiver.clone()],
            congestion: self.congestion.clone(),
            tuning: self.tuning.at(net.tuning),
            allow_sysctl: self.allow_sysctl,
            direction: self.direction,
            external: self.external.clone(),
            external_loop: self.external_loop,
        }
    }

    /// The socket settings of a trial.
    #[must_use]
    pub fn socket_options(&self, tuning: &Tuning) -> SocketOptions {
        let receive_bytes = tuning.receive_size_bytes.or(Tuning::DEFAULT.receive_size_bytes);
        SocketOptions {
            congestion: self.congestion.clone(),
            buffer_bytes: tuning.socket_buffer_bytes,
            nodelay: true,
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
    fn further(&self, net: &NetSetting) -> Vec<(usize, Option<String>)> {
        let tuning = self.tuning.lengths().into_iter().zip(net.tuning.words());
        [(self.iovec.len(), Some(net.iovec_in_words()))].into_iter().chain(tuning).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axes::{Direction, Iovec, Mode, WorkingSet};
    use crate::tuning::{RingDepth, TuningAxes};
    use crate::units::Bytes;

    #[test]
    fn each_setting_of_a_plan_can_be_had_alone() {
        let net = NetAxes {
            topologies: Topology::ALL.to_vec(),
            modes: vec![Mode::Stream],
            working_sets: vec![WorkingSet::Hot],
            fields: vec![1, 8],
            iovec: vec![Iovec::PerMessage],
            receivers: vec!["recv".to_owned(), "recvmsg_iov".to_owned()],
            congestion: "reno".to_owned(),
            tuning: TuningAxes {
                mtu_bytes: vec![Some(1500), Some(9000)],
                receive_size_bytes: vec![Some(Bytes(4096)), Some(Bytes(65536))],
                uring_depth: vec![RingDepth::Batch, RingDepth::Sends(4)],
                uring_batch: vec![1, 2],
                ..TuningAxes::default()
            },
            allow_sysctl: false,
            direction: Direction::Rx,
            external: Vec::new(),
            external_loop: false,
        };
        let settings = net.settings();
        assert_eq!(settings.len(), 32 + 64 + 8 + 32);
        for setting in settings {
            assert_eq!(net.at(&setting).settings(), [setting]);
        }
    }
}
