//! The axes of a plan, of every study.

use iolens_model::axes::{Direction, Iovec, IpVersion, Mode, Topology, WorkingSet};
use iolens_model::plan::{Axes, BatchAxes, NetAxes, NetworkAxes, SocketAxes, SyscallAxes};
use proptest::collection::vec;
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
        (batches, socket, network) in (batches(), socket(), network()),
        (allow_sysctl, direction) in (any::<bool>(), select(Direction::ALL)),
    ) -> NetAxes {
        NetAxes {
            topologies,
            modes,
            working_sets,
            fields,
            iovec,
            receivers,
            socket,
            network,
            batches,
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
    fn network()(
        ip in vec(select(IpVersion::ALL), 0..2),
        mtu_bytes in vec(any::<u32>(), 0..3),
    ) -> NetworkAxes {
        NetworkAxes { ip, mtu_bytes }
    }
}

prop_compose! {
    fn batches()(
        reap_batch in vec(any::<Option<u32>>(), 0..3),
        uring_depth in vec(any::<u32>(), 0..3),
        uring_batch in vec(any::<u32>(), 0..3),
    ) -> BatchAxes {
        BatchAxes { reap_batch, uring_depth, uring_batch }
    }
}

prop_compose! {
    fn socket()(
        congestion in text(),
        buffer_bytes in vec(bytes(), 0..3),
        nodelay in any::<bool>(),
        receive_bytes in vec(bytes(), 0..3),
    ) -> SocketAxes {
        SocketAxes { congestion, buffer_bytes, nodelay, receive_bytes }
    }
}
