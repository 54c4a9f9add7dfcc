//! The machine of a run, arbitrarily.

use iolens_model::doctor::{Area, Finding, State};
use iolens_model::host::{Calibration, Costs, Fact, HostFacts, Spreads, SwitchCost, SysctlChange};
use iolens_model::units::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{bytes, number, reading, text};

prop_compose! {
    pub(super) fn host()(
        cpus in vec(any::<u32>(), 0..3),
        l1d in reading(bytes()),
        l2 in reading(bytes()),
        llc in reading(bytes()),
        memory in reading(bytes()),
        descriptors_max in reading(any::<u64>()),
        facts in vec((text(), text(), reading(text())), 0..3),
        changed in vec((text(), text(), text()), 0..2),
    ) -> HostFacts {
        let change = |(name, before, value)| SysctlChange { name, before, value };
        let changed = changed.into_iter().map(change).collect();
        let fact = |(group, name, value)| Fact { group, name, value };
        let facts = facts.into_iter().map(fact).collect();
        HostFacts { cpus, l1d, l2, llc, memory, descriptors_max, changed, facts }
    }
}

prop_compose! {
    pub(super) fn finding()(
        area in select(Area::ALL.to_vec()),
        state in select(vec![State::Ok, State::Limited, State::Missing]),
        [name, found, source, effect, remedy] in prop::array::uniform5(text()),
    ) -> Finding {
        Finding { area, name, state, found, source, effect, remedy }
    }
}

prop_compose! {
    pub(super) fn calibration()(
        numbers in prop::array::uniform8(number()),
        loop_ns in any::<u64>(),
        threads in any::<u32>(),
        duration_ns in any::<u64>(),
        costs in costs(),
    ) -> Calibration {
        let [empty, clock, message, slice, hot, cold, hot_all, cold_all] = numbers;
        Calibration {
            empty_call_ns: empty,
            clock_read_ns: clock,
            loop_ns,
            harness_message_ns: message,
            harness_slice_ns: slice,
            receipt_round_trip_ns: (slice > 1e4).then_some(slice),
            memcpy_hot_bytes_per_s: hot,
            spread: Spreads::default(),
            memcpy_cold_bytes_per_s: cold,
            memcpy_hot_all_bytes_per_s: hot_all,
            memcpy_cold_all_bytes_per_s: cold_all,
            threads,
            duration_ns,
            costs,
        }
    }
}

prop_compose! {
    fn costs()(
        [scan_hot, scan_cold, hot_all, cold_all] in prop::array::uniform4(number()),
        readings in prop::array::uniform3(option::of(number())),
        counter_groups in any::<u32>(),
        switches in vec((any::<u64>(), number(), number()), 0..4),
    ) -> Costs {
        let [inner_readings_ns, outer_readings_ns, thread_start_ns] = readings;
        let switch = |(bytes, handover_ns, alone_ns)| SwitchCost {
            working_set: Bytes(bytes),
            handover_ns,
            alone_ns,
        };
        Costs {
            inner_readings_ns,
            outer_readings_ns,
            counter_groups,
            scan_hot_bytes_per_s: scan_hot,
            scan_cold_bytes_per_s: scan_cold,
            scan_hot_all_bytes_per_s: hot_all,
            scan_cold_all_bytes_per_s: cold_all,
            thread_start_ns,
            counted_handover_ns: inner_readings_ns,
            switches: switches.into_iter().map(switch).collect(),
        }
    }
}
