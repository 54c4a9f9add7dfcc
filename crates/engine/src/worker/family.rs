//! The readings at the edges of a slice that belong to a process as a whole: all its
//! threads, and the processes that it forks. Between slices nothing of it works, so
//! what is read is what the slice has spent.
//!
//! Children that live are asked one by one; those that have ended are in what their
//! parent was told when it waited for them. A child that ends between the two is asked
//! too: a zombie still tells.

use std::collections::BTreeMap;

use iolens_model::axes::Counting;
use iolens_model::load::NetworkCounts;
use iolens_model::outcome::Counts;
use iolens_model::plan::Probes;
use iolens_model::reading::NotMeasured;
use iolens_sys::proc::{self, Root};
use iolens_sys::usage::{self, ProcessUsage};
use iolens_sys::{clock, process};

use super::bracket::{Shared, with_cpus};
use crate::counters::{self, Counters, Snapshot, Wanted};
use crate::load::{network_between, network_counts};

/// The instruments of a process. Made before it starts any thread that counts.
#[derive(Debug)]
pub(super) struct Family {
    root: Root,
    counters: Counters,
    shared: Shared,
    missing: Vec<NotMeasured>,
    spent_ns: u64,
}

/// Everything at one edge.
#[derive(Debug, Clone, Default)]
pub(super) struct Edge {
    usage: Option<ProcessUsage>,
    /// Time for which each task was ready to run and had no CPU, by its id.
    delays: BTreeMap<u32, u64>,
    softirq_ticks: Option<u64>,
    own: Snapshot,
    everybody: Snapshot,
    /// What the kernel has counted in this network namespace.
    network: Option<NetworkCounts>,
}

impl Family {
    /// The instruments of this process, whose threads run on `cpus`.
    pub(super) fn open(cpus: &[u32], pass: u32, probes: Probes, counts: bool) -> Family {
        let root = Root::real();
        let mut missing = Vec::new();
        let mut note = |metric: &str, why: String| {
            missing.push(NotMeasured { metric: metric.to_owned(), why });
        };
        note("migrations", "of a whole process only --software-events counts them".to_owned());
        let probes = match counts {
            true => probes,
            false => Probes { counting: Counting::Off, ..probes },
        };
        let shared = Shared::open(cpus, probes, &mut note);
        let cpu = cpus.first().copied().unwrap_or(0);
        let counters = Counters::of_family(&root, Wanted { cpu, turn: pass, probes });
        Family { root, counters, shared, missing, spent_ns: 0 }
    }

    /// The readings before a slice, what is nearest to it last; `tasks` are the threads
    /// and processes that are known.
    pub(super) fn before(&mut self, tasks: &[u32]) -> Edge {
        let begin_ns = clock::monotonic_ns();
        let mut edge = Edge { softirq_ticks: self.shared.softirq_ticks(), ..Edge::default() };
        edge.network = network_counts();
        edge.delays = self.delays(tasks);
        edge.everybody = self.shared.counters.read_before();
        edge.usage = self.usage(tasks);
        edge.own = self.counters.read_before();
        self.spent_ns += clock::monotonic_ns() - begin_ns;
        edge
    }

    /// The readings after it, what is nearest to it first.
    pub(super) fn after(&mut self, tasks: &[u32]) -> Edge {
        let begin_ns = clock::monotonic_ns();
        let mut edge = Edge { own: self.counters.read_after(), ..Edge::default() };
        edge.usage = self.usage(tasks);
        edge.everybody = self.shared.counters.read_after();
        edge.delays = self.delays(tasks);
        edge.network = network_counts();
        edge.softirq_ticks = self.shared.softirq_ticks();
        self.spent_ns += clock::monotonic_ns() - begin_ns;
        edge
    }

    /// What was spent between two edges.
    pub(super) fn between(&mut self, edges: [&Edge; 2]) -> Counts {
        let own = self.counters.between([&edges[0].own, &edges[1].own]);
        let (pmu, kernel) = counters::split(&own);
        let everybody = [&edges[0].everybody, &edges[1].everybody];
        let (_, everybody) = counters::split(&self.shared.counters.between(everybody));
        let spent = |of: fn(&ProcessUsage) -> u64| {
            let (before, after) = (edges[0].usage.as_ref()?, edges[1].usage.as_ref()?);
            Some(of(after).saturating_sub(of(before)))
        };
        Counts {
            task_clock_ns: spent(|usage| usage.cpu_ns),
            voluntary_switches: spent(|usage| usage.counts.voluntary_switches),
            involuntary_switches: spent(|usage| usage.counts.involuntary_switches),
            minor_faults: spent(|usage| usage.counts.minor_faults),
            major_faults: spent(|usage| usage.counts.major_faults),
            run_delay_ns: delay_between(&edges[0].delays, &edges[1].delays),
            softirq_ticks: edges[0]
                .softirq_ticks
                .zip(edges[1].softirq_ticks)
                .map(|(before, after)| after.saturating_sub(before)),
            pmu,
            kernel: with_cpus(&kernel, &everybody),
            ..Counts::default()
        }
    }

    /// The process, its ended children, and those that live.
    fn usage(&self, tasks: &[u32]) -> Option<ProcessUsage> {
        let mut sum = usage::process_usage().ok()?;
        add(&mut sum, &usage::children_usage().ok()?);
        for &id in tasks.iter().filter(|&&id| self.is_child(id)) {
            // One that has gone was waited for, and is counted above from then on.
            let Some(charged) = proc::charged(&self.root, id) else { continue };
            sum.cpu_ns += charged.cpu_ns;
            sum.counts.voluntary_switches += charged.voluntary_switches;
            sum.counts.involuntary_switches += charged.involuntary_switches;
            sum.counts.minor_faults += charged.minor_faults;
            sum.counts.major_faults += charged.major_faults;
        }
        Some(sum)
    }

    /// Whether a task is a process of its own, and no thread of this one.
    fn is_child(&self, id: u32) -> bool {
        id != process::id() && !self.root.path(&format!("proc/self/task/{id}")).exists()
    }

    fn delays(&self, tasks: &[u32]) -> BTreeMap<u32, u64> {
        let delay = |&id: &u32| {
            let text = self.root.read(&format!("proc/{id}/schedstat")).ok()?;
            Some((id, proc::run_delay_ns(&text)?))
        };
        tasks.iter().filter_map(delay).collect()
    }

    /// Time spent with readings so far.
    pub(super) fn spent_ns(&self) -> u64 {
        self.spent_ns
    }

    /// The PMU that counts, on machines with several kinds of cores.
    pub(super) fn pmu(&self) -> Option<&str> {
        self.counters.pmu()
    }

    /// What cannot be read, or could not in some slice, and why.
    pub(super) fn missing(&self) -> Vec<NotMeasured> {
        let mut missing = self.missing.clone();
        missing.extend(self.counters.missing());
        missing.extend(self.shared.counters.missing());
        missing
    }
}

impl Edge {
    /// What the kernel counted in the network namespace since `earlier`.
    pub(super) fn network_since(&self, earlier: &Edge) -> Option<NetworkCounts> {
        Some(network_between(earlier.network?, self.network?))
    }
}

fn add(sum: &mut ProcessUsage, part: &ProcessUsage) {
    sum.cpu_ns += part.cpu_ns;
    sum.counts.voluntary_switches += part.counts.voluntary_switches;
    sum.counts.involuntary_switches += part.counts.involuntary_switches;
    sum.counts.minor_faults += part.counts.minor_faults;
    sum.counts.major_faults += part.counts.major_faults;
}

/// The delay of tasks that were there at both edges and have not changed; null where
/// any came or went, whose part is not known.
fn delay_between(before: &BTreeMap<u32, u64>, after: &BTreeMap<u32, u64>) -> Option<u64> {
    if before.is_empty() || !before.keys().eq(after.keys()) {
        return None;
    }
    Some(before.iter().map(|(id, delay)| after[id].saturating_sub(*delay)).sum())
}

#[cfg(test)]
mod tests {
    use iolens_sys::fork::{self, Patience};

    use super::*;

    /// Spends this much CPU time on the calling thread.
    fn spend(ns: u64) {
        let end_ns = clock::thread_cpu_ns() + ns;
        while clock::thread_cpu_ns() < end_ns {
            std::hint::black_box(0);
        }
    }

    #[test]
    fn children_count_while_they_live_and_once_they_have_ended() {
        const CHILD_NS: u64 = 20_000_000;
        let cpus = iolens_sys::affinity::thread_cpus().unwrap();
        let mut family = Family::open(&cpus, 1, Probes::default(), true);
        let before = family.before(&[]);
        let child = fork::start(|| {
            spend(CHILD_NS);
            loop {
                std::thread::park();
            }
        });
        let id = child.unwrap();
        while proc::charged(&Root::real(), id).is_some_and(|c| c.cpu_ns < CHILD_NS) {
            std::thread::yield_now();
        }
        let living = family.after(&[id]);
        let spent = family.between([&before, &living]).task_clock_ns.unwrap();
        assert!(spent >= CHILD_NS, "{spent} ns while it lives");
        fork::kill(id).unwrap();
        while !matches!(fork::ended(Patience::Waits), Ok(Some(_))) {}
        let ended = family.after(&[]);
        let all = family.between([&before, &ended]).task_clock_ns.unwrap();
        assert!(all >= spent - 4_000, "{all} ns once it has ended, {spent} ns before");
        assert!(family.between([&before, &ended]).run_delay_ns.is_none(), "tasks came and went");
    }
}
