//! What is counted and in which groups, as data.

use iolens_sys::perf_event::{Kind, Mode};

use super::self_test::{CALLS, LINES, STEPS};

/// One counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counter {
    /// The metric that it fills.
    pub(crate) metric: &'static str,
    pub(crate) kind: Kind,
    pub(crate) mode: Mode,
    /// The least that the loop of the self-test makes it count.
    pub(crate) least: u64,
}

/// Counters that count together or not at all, at most [`COUNTERS_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupPlan {
    /// What messages call it.
    pub(crate) name: &'static str,
    /// Whether it is on the PMU whenever its thread runs. The others get what
    /// is left, and take turns where that is not enough for all of them.
    pub(crate) pinned: bool,
    pub(crate) counters: &'static [Counter],
}

/// Counters of one group.
pub(crate) const COUNTERS_MAX: usize = 4;
/// Groups of one table.
pub(crate) const GROUPS_MAX: usize = 3;
/// Counters of one table, as many as `PmuCounts` has fields.
pub(crate) const METRICS_MAX: usize = 8;

/// Instructions of one empty system call in the kernel, at the very least.
const CALL_INSTRUCTIONS: u64 = 20;
/// Instructions that no core retires in one cycle.
const INSTRUCTIONS_PER_CYCLE: u64 = 16;

/// The table for this processor. Its counters are `PmuCounts`, in its order.
///
/// Cycles and instructions of both modes are one group, so that their ratios
/// come from the same work, and pinned, because a slice is shorter than the
/// kernel's turn of 4 ms: groups that took turns with them would leave gaps in
/// all counters. The kernel's share is the point of it; see the module.
pub(crate) fn table(llc: Llc) -> [GroupPlan; GROUPS_MAX] {
    let llc = match llc {
        Llc::Architectural => LLC_ARCHITECTURAL,
        Llc::Loads => LLC_LOADS,
    };
    [
        GroupPlan { name: "cycles and instructions", pinned: true, counters: CORE },
        GroupPlan { name: "first-level data cache", pinned: false, counters: L1D },
        GroupPlan { name: "last-level cache", pinned: false, counters: llc },
    ]
}

const CORE: &[Counter] = &[
    counter("cycles_user", Kind::Cycles, Mode::User, STEPS / INSTRUCTIONS_PER_CYCLE),
    counter(
        "cycles_kernel",
        Kind::Cycles,
        Mode::Kernel,
        CALLS * CALL_INSTRUCTIONS / INSTRUCTIONS_PER_CYCLE,
    ),
    counter("instructions_user", Kind::Instructions, Mode::User, STEPS),
    counter("instructions_kernel", Kind::Instructions, Mode::Kernel, CALLS * CALL_INSTRUCTIONS),
];

const L1D: &[Counter] = &[
    counter("l1d_loads", Kind::L1dLoads, Mode::Any, LINES),
    counter("l1d_misses", Kind::L1dLoadMisses, Mode::Any, 1),
];

/// Misses may honestly be none: the loop's memory fits this cache.
const LLC_ARCHITECTURAL: &[Counter] = &[
    counter("llc_references", Kind::CacheReferences, Mode::Any, 1),
    counter("llc_misses", Kind::CacheMisses, Mode::Any, 0),
];

const LLC_LOADS: &[Counter] = &[
    counter("llc_references", Kind::LlcLoads, Mode::Any, 1),
    counter("llc_misses", Kind::LlcLoadMisses, Mode::Any, 0),
];

const fn counter(metric: &'static str, kind: Kind, mode: Mode, least: u64) -> Counter {
    Counter { metric, kind, mode, least }
}

/// Which events mean the last-level cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Llc {
    /// `cache-references` and `cache-misses`. On Intel's processors these are
    /// architectural events of the last-level cache (arch/x86/events/intel/core.c,
    /// intel_perfmon_event_map), which virtual machines have too.
    Architectural,
    /// `LLC-loads` and `LLC-load-misses`. The kernel's `cache-references` is
    /// the L2 of AMD's processors (arch/x86/events/amd/core.c) and the L1d of
    /// ARM's (drivers/perf/arm_pmuv3.c). AMD's have no event of the last-level
    /// cache that a thread could count.
    Loads,
}

#[cfg(test)]
mod tests {
    use iolens_model::metrics::METRICS;
    use iolens_model::outcome::PmuCounts;

    use super::*;

    #[test]
    fn the_tables_are_the_counts_of_a_slice_in_their_order() {
        for llc in [Llc::Architectural, Llc::Loads] {
            let table = table(llc);
            let metrics: Vec<&str> =
                table.iter().flat_map(|plan| plan.counters).map(|c| c.metric).collect();
            assert_eq!(metrics, PmuCounts::NAMES);
            assert!(table.iter().all(|plan| plan.counters.len() <= COUNTERS_MAX));
        }
        const { assert!(PmuCounts::NAMES.len() == METRICS_MAX) };
        for name in PmuCounts::NAMES {
            assert!(METRICS.iter().any(|metric| metric.name == name), "{name} is no metric");
        }
    }
}
