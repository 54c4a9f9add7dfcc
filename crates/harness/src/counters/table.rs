//! What is counted and in which groups, as data.

use iolens_model::outcome::{KernelCounts, PmuCounts};
use iolens_sys::perf_event::{Kind, Mode};

/// Dependent multiplications of the loop of the [self test](super::self_test): at least as many
/// instructions and, at three cycles each, about 0.1 ms.
pub(super) const STEPS: u64 = 100_000;
/// Empty system calls of the loop.
pub(super) const CALLS: u64 = 64;
/// Cache lines of the loop's memory, each of them loaded: more than any
/// first-level data cache has (192 KiB at most so far).
pub(super) const LINES: u64 = MEMORY_BYTES as u64 / 64;
pub(super) const MEMORY_BYTES: usize = 512 << 10;
/// Times that the loop waits for a byte that nobody sends, each for as short
/// as a timer can: it gives up the CPU, unless the timer is faster.
pub(super) const WAITS: u64 = 4;
/// Bytes that it receives, one by one, from a socket.
pub(super) const RECEIPTS: u64 = 4;

/// One counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counter {
    /// The metric that it fills.
    pub metric: &'static str,
    pub kind: Kind,
    pub mode: Mode,
    /// The least that the loop of the self-test makes it count.
    pub least: u64,
}

/// Counters that count together or not at all, at most [`COUNTERS_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupPlan {
    /// What messages call it.
    pub name: &'static str,
    /// Whether it counts whenever its thread runs. The others get what is
    /// left of the PMU, and take turns where that is not enough for all of
    /// them.
    pub pinned: bool,
    pub counters: &'static [Counter],
}

/// Counters of one group.
pub(crate) const COUNTERS_MAX: usize = 5;
/// Groups of one thread.
pub(crate) const GROUPS_MAX: usize = 8;
/// Everything that is counted by perf_event_open(2): what the PMU counts, and
/// then what the kernel does.
pub(crate) const METRICS_MAX: usize = PmuCounts::COUNT + KernelCounts::COUNT;

/// A value for each metric; `None` where it was not counted.
pub type Values = [Option<u64>; METRICS_MAX];

/// The metrics in the order of [`Values`].
pub(crate) fn metrics() -> impl Iterator<Item = &'static str> {
    PmuCounts::NAMES.into_iter().chain(KernelCounts::NAMES)
}

/// Where a metric stands among [`Values`].
pub(crate) fn place(metric: &str) -> usize {
    // A test reads every table.
    metrics().position(|name| name == metric).expect("a table has no counter without a metric")
}

/// The values as the counts of a slice have them.
pub fn split(values: &Values) -> (PmuCounts, KernelCounts) {
    let pmu = std::array::from_fn(|i| values[i]);
    let kernel = std::array::from_fn(|i| values[PmuCounts::COUNT + i]);
    (PmuCounts::from_values(pmu), KernelCounts::from_values(kernel))
}

/// Instructions of one empty system call in the kernel, at the very least.
const CALL_INSTRUCTIONS: u64 = 20;
/// Instructions that no core retires in one cycle.
const INSTRUCTIONS_PER_CYCLE: u64 = 16;

/// What the PMU of this processor counts for a thread.
///
/// Cycles and instructions of both modes are one group, so that their ratios
/// come from the same work, and pinned, because a slice is shorter than the
/// kernel's turn of 4 ms: groups that took turns with them would leave gaps in
/// all counters. The kernel's share is the point of it; see the module.
pub(crate) fn hardware(llc: Llc) -> Vec<GroupPlan> {
    let llc = match llc {
        Llc::Architectural => LLC_ARCHITECTURAL,
        Llc::Loads => LLC_LOADS,
    };
    vec![
        GroupPlan { name: "cycles and instructions", pinned: true, counters: CORE },
        GroupPlan { name: "first-level data cache", pinned: false, counters: L1D },
        GroupPlan { name: "last-level cache", pinned: false, counters: llc },
        GroupPlan { name: "branches", pinned: false, counters: BRANCHES },
        GroupPlan { name: "data TLB", pinned: false, counters: DTLB },
        GroupPlan { name: "stalled cycles", pinned: false, counters: STALLS },
    ]
}

/// What the kernel counts of a thread by itself, beside its accounts in
/// getrusage(2) and /proc: the same things, counted by another part of it.
/// They take no counter of the PMU, but time at every wake-up.
pub(crate) const SOFTWARE: GroupPlan =
    GroupPlan { name: "software events", pinned: true, counters: KERNEL };

/// Tracepoints that a thread passes.
pub(crate) const TRACEPOINTS: GroupPlan =
    GroupPlan { name: "tracepoints", pinned: true, counters: PASSAGES };

/// What everybody does on a CPU.
pub(crate) const CPU_WIDE: GroupPlan =
    GroupPlan { name: "CPUs as a whole", pinned: true, counters: CPU };

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

/// A branch after some steps at most, of which the last is not foreseen.
const BRANCHES: &[Counter] = &[
    counter("branches", Kind::Branches, Mode::Any, STEPS / UNROLLED),
    counter("branch_misses", Kind::BranchMisses, Mode::Any, 1),
];

/// Misses may honestly be none: the loop's memory fits a large TLB.
const DTLB: &[Counter] = &[
    counter("dtlb_loads", Kind::DtlbLoads, Mode::Any, LINES),
    counter("dtlb_misses", Kind::DtlbLoadMisses, Mode::Any, 0),
];

/// A mispredicted branch stalls the front end, a chain of multiplications the
/// back end.
const STALLS: &[Counter] = &[
    counter("stalled_cycles_frontend", Kind::StalledCyclesFrontend, Mode::Any, 1),
    counter("stalled_cycles_backend", Kind::StalledCyclesBackend, Mode::Any, 1),
];

/// A thread that stays on its CPU is not moved, and faults on no file.
const KERNEL: &[Counter] = &[
    counter("perf_task_clock_ns", Kind::TaskClock, Mode::Any, 1000),
    counter("perf_context_switches", Kind::ContextSwitches, Mode::Any, 1),
    counter("perf_migrations", Kind::CpuMigrations, Mode::Any, 0),
    counter("perf_minor_faults", Kind::MinorFaults, Mode::Any, 1),
    counter("perf_major_faults", Kind::MajorFaults, Mode::Any, 0),
];

const PASSAGES: &[Counter] = &[
    tracepoint("sys_enter", "raw_syscalls:sys_enter", CALLS),
    tracepoint("skb_copy_datagram_iovec", "skb:skb_copy_datagram_iovec", RECEIPTS),
    tracepoint("tcp_retransmit_skb", "tcp:tcp_retransmit_skb", 0),
    tracepoint("sched_switch", "sched:sched_switch", 1),
];

/// The thread that tests itself waits on one of these CPUs.
const CPU: &[Counter] = &[
    counter("cpu_clock_ns", Kind::CpuClock, Mode::Any, 1000),
    counter("cpu_context_switches", Kind::ContextSwitches, Mode::Any, 1),
];

const _: () = assert!(WAITS > 1, "a wait may be over before the thread has slept");

const LLC_LOADS: &[Counter] = &[
    counter("llc_references", Kind::LlcLoads, Mode::Any, 1),
    counter("llc_misses", Kind::LlcLoadMisses, Mode::Any, 0),
];

const fn counter(metric: &'static str, kind: Kind, mode: Mode, least: u64) -> Counter {
    Counter { metric, kind, mode, least }
}

/// Its number is looked up when it is opened.
const fn tracepoint(metric: &'static str, name: &'static str, least: u64) -> Counter {
    counter(metric, Kind::Tracepoint { name, id: 0 }, Mode::Any, least)
}

/// Steps that a compiler may put behind each other without a branch.
const UNROLLED: u64 = 16;

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
    use super::*;

    #[test]
    fn every_metric_is_counted_once() {
        for llc in [Llc::Architectural, Llc::Loads] {
            let mut table = hardware(llc);
            table.extend([SOFTWARE, TRACEPOINTS]);
            assert!(table.len() <= GROUPS_MAX);
            table.push(CPU_WIDE);
            assert!(table.iter().all(|plan| plan.counters.len() <= COUNTERS_MAX));
            let counted = table.iter().flat_map(|plan| plan.counters).map(|c| c.metric);
            assert!(counted.eq(metrics()));
        }
    }

    #[test]
    fn values_find_their_names() {
        let values = std::array::from_fn(|i| Some(i as u64));
        let (pmu, kernel) = split(&values);
        assert_eq!(pmu.cycles_user, Some(place("cycles_user") as u64));
        assert_eq!(kernel.cpu_clock_ns, Some(place("cpu_clock_ns") as u64));
    }
}
