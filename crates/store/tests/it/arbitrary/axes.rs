//! The axes of a plan, of every study.

use iolens_model::axes::{Direction, Iovec, IpVersion, Mode, Topology, WorkingSet};
use iolens_model::plan::{Axes, NetAxes, SyscallAxes};
use iolens_model::tuning::{RingDepth, RingFlags, TuningAxes};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::files::{copy_axes, file_axes, write_axes};
use super::{bytes, text};

prop_compose! {
    fn net_axes()(
        receivers in vec(text(), 0..3),
        (topologies, modes, working_sets) in (
            vec(select(Topology::ALL), 0..2),
            vec(select(Mode::ALL), 0..2),
            vec(select(WorkingSet::ALL), 0..3),
        ),
        (fields, iovec) in (vec(any::<u32>(), 0..3), vec(select(Iovec::ALL), 0..2)),
        (congestion, tuning) in (text(), tuning_axes()),
        (allow_sysctl, direction) in (any::<bool>(), select(Direction::ALL)),
    ) -> NetAxes {
        NetAxes {
            topologies,
            modes,
            working_sets,
            fields,
            iovec,
            receivers,
            congestion,
            tuning,
            allow_sysctl,
            direction,
        }
    }
}

pub(super) fn axes() -> impl Strategy<Value = Axes> {
    let syscall = vec(any::<Option<u64>>(), 0..3)
        .prop_map(|in_a_row| Axes::Syscall(SyscallAxes { in_a_row }));
    // Boxed: strategies are as large as all that they hold, and live on the stack.
    prop_oneof![
        net_axes().prop_map(Axes::Net).boxed(),
        syscall.boxed(),
        file_axes().prop_map(Axes::File).boxed(),
        write_axes().prop_map(Axes::Write).boxed(),
        copy_axes().prop_map(Axes::Copy).boxed(),
    ]
}

prop_compose! {
    fn tuning_axes()(
        ip in vec(select(IpVersion::ALL), 0..2),
        mtu_bytes in vec(any::<Option<u32>>(), 0..3),
        socket_buffer_bytes in vec(bytes(), 0..3),
        receive_size_bytes in vec(option::of(bytes()), 0..3),
        reap_batch in vec(any::<Option<u32>>(), 0..3),
        uring_depth in vec(ring_depth(), 0..3),
        uring_batch in vec(any::<u32>(), 0..3),
        ring_flags in vec(ring_flags(), 0..3),
    ) -> TuningAxes {
        TuningAxes {
            ip,
            mtu_bytes,
            socket_buffer_bytes,
            receive_size_bytes,
            reap_batch,
            uring_depth,
            uring_batch,
            ring_flags,
        }
    }
}

pub(super) fn ring_flags() -> impl Strategy<Value = RingFlags> {
    select(&["none", "coop_taskrun", "single_issuer+defer_taskrun", "sqpoll"][..])
        .prop_map(|text| text.parse().expect("flags that the kernel takes"))
}

pub(super) fn ring_depth() -> impl Strategy<Value = RingDepth> {
    any::<Option<u32>>().prop_map(|sends| sends.map_or(RingDepth::Batch, RingDepth::Sends))
}
