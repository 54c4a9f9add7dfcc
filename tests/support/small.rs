//! A small trial over loopback, for tests to change what they are about. A test includes this
//! file, as it does `skip.rs`.

use iolens_model::arm::{Arm, Role};
use iolens_model::axes::{Iovec, Mode, Topology, WorkingSet};
use iolens_model::cell::{Cell, NetSetting, Setting};
use iolens_model::plan::{NetworkOptions, Probes, SocketOptions};
use iolens_model::trial::{Slice, SliceKind, Trial, Work};
use iolens_model::tuning::Tuning;
use iolens_model::units::{Bytes, Nanos};

/// One slice of four messages of 64 bytes that one thread sends this way; none of its waits is
/// longer than `limit`.
pub(crate) fn trial(primitive: &str, limit: Nanos) -> Trial {
    let net = NetSetting {
        topology: Topology::Loopback,
        mode: Mode::Stream,
        working_set: WorkingSet::Hot,
        fields: 8,
        iovec: Iovec::PerMessage,
        receiver: "recv".into(),
        tuning: Tuning::DEFAULT,
    };
    let arm = Arm { label: primitive.into(), primitive: primitive.into(), role: Role::Baseline };
    let work = Work::Messages(4);
    Trial {
        pass: 1,
        position: 0,
        isolated: false,
        cell: Cell { setting: Setting::Net(net), threads: 1, size: Bytes(64) },
        arms: vec![arm],
        slices: vec![Slice { arm: 0, round: 0, kind: SliceKind::Measured, work }],
        socket: SocketOptions {
            congestion: "reno".into(),
            buffer_bytes: Bytes(65_536),
            nodelay: true,
            receive_bytes: Bytes(65_536),
        },
        network: NetworkOptions::default(),
        hosts: None,
        probes: Probes::default(),
        tx_cpus: vec![0],
        rx_cpus: vec![0],
        ring_messages: 1,
        file: None,
        copies: None,
        programs: Vec::new(),
        programs_loop: false,
        servers: None,
        sampling: None,
        stall_limit: limit,
        trial_limit: limit,
    }
}
