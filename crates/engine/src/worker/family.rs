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
use iolens_model::server::Throttled;
use iolens_sys::kin::{self, Tree};
use iolens_sys::proc::{self, Root};
use iolens_sys::usage::{self, ProcessUsage};
use iolens_sys::{clock, process};

use super::bracket::{Shared, with_cpus};
use iolens_harness::cgroup;
use iolens_harness::counters::{self, Counters, Snapshot, Wanted};
use iolens_server::load::{network_between, network_counts};

/// Why what is known only of tasks that live as long as a slice is not known.
const CAME_AND_WENT: &str = "threads or processes began or ended in a slice, and nobody keeps an \
                             account of them; --software-events counts migrations";

const OF_CLIENT: &str = "the client's threads last for a slice: each says its own run delay, and \
                         only --software-events counts migrations";

const TOO_MANY: &str = "of more than 1024 threads or processes only --software-events counts them";

const NOT_WAITED_FOR: &str = "the program ignores SIGCHLD: Linux charges nobody for children that \
                              nobody waits for, so what it spent is not known; let it wait for them";

/// Tasks whose migrations are read, at most: each file of them takes the kernel long.
const MOVES_MAX: usize = 1024;

/// The instruments of a process. Made before it starts any thread that counts.
#[derive(Debug)]
pub(super) struct Family {
    root: Root,
    counters: Counters,
    shared: Shared,
    missing: Vec<NotMeasured>,
    /// Whether events count migrations.
    counts_moves: bool,
    /// Metrics that are not known of some slice, and why.
    lost: BTreeMap<&'static str, &'static str>,
    /// A program that serves in place of this process.
    program: Option<u32>,
    /// Threads of this process that only take turns and report them.
    messengers: Vec<u32>,
    spent_ns: u64,
}

/// Everything at one edge.
#[derive(Debug, Clone, Default)]
pub(super) struct Edge {
    usage: Option<ProcessUsage>,
    /// Time for which each task was ready to run and had no CPU, by its id.
    delays: BTreeMap<u32, u64>,
    /// How often each moved to another CPU, likewise.
    moves: BTreeMap<u32, u64>,
    /// Switches of each thread of a program, because it waited and because it had to go.
    switches: [BTreeMap<u32, u64>; 2],
    softirq_ticks: Option<u64>,
    own: Snapshot,
    everybody: Snapshot,
    /// What the kernel has counted in this network namespace.
    network: Option<NetworkCounts>,
    /// How its cgroups have held it back so far.
    throttled: Option<Throttled>,
    /// Whether a program lets the kernel forget its children.
    forgets: bool,
}

/// On which side of a slice is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Before,
    After,
}

impl Family {
    /// The instruments of this process, whose threads run on `cpus`; `counts` says whether
    /// events are open, where the plan has them open in some arms and closed in others.
    pub(super) fn open(cpus: &[u32], pass: u32, probes: Probes, counts: bool) -> Family {
        let root = Root::real();
        let mut missing = Vec::new();
        let mut note = |metric: &str, why: String| {
            missing.push(NotMeasured { metric: metric.to_owned(), why });
        };
        let closed = !counts && probes.counting == Counting::Alternate;
        let mut shared = Shared::open(cpus, probes, &mut note);
        let cpu = cpus.first().copied().unwrap_or(0);
        let counters = match closed {
            true => Counters::closed(),
            false => Counters::of_family(&root, Wanted { cpu, turn: pass, probes }),
        };
        if closed {
            shared.count(false);
        }
        let counts_moves = counters.counted().contains(&"perf_migrations");
        Family {
            root,
            counters,
            shared,
            missing,
            counts_moves,
            lost: BTreeMap::new(),
            program: None,
            messengers: Vec::new(),
            spent_ns: 0,
        }
    }

    /// The readings before a slice, what is nearest to it last; `tasks` are the threads
    /// and processes that are known.
    pub(super) fn before(&mut self, tasks: &[u32]) -> Edge {
        let begin_ns = clock::monotonic_ns();
        let mut edge = Edge { softirq_ticks: self.shared.softirq_ticks(), ..Edge::default() };
        edge.network = network_counts();
        edge.throttled = cgroup::throttled(&self.root);
        edge.delays = self.delays(tasks);
        edge.moves = self.moves(tasks);
        edge.switches = self.switches(tasks);
        edge.forgets = self.forgets();
        edge.everybody = self.shared.counters.read_before();
        edge.usage = self.usage(tasks, At::Before);
        edge.own = self.counters.read_before();
        self.spent_ns += clock::monotonic_ns() - begin_ns;
        edge
    }

    /// The readings after it, what is nearest to it first.
    pub(super) fn after(&mut self, tasks: &[u32]) -> Edge {
        let begin_ns = clock::monotonic_ns();
        let mut edge = Edge { own: self.counters.read_after(), ..Edge::default() };
        edge.usage = self.usage(tasks, At::After);
        edge.everybody = self.shared.counters.read_after();
        edge.forgets = self.forgets();
        edge.delays = self.delays(tasks);
        edge.moves = self.moves(tasks);
        edge.switches = self.switches(tasks);
        edge.network = network_counts();
        edge.throttled = cgroup::throttled(&self.root);
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
        let is_lost = edges.iter().any(|edge| edge.forgets);
        if is_lost {
            let metrics = ["task_clock_ns", "minor_faults", "major_faults"];
            self.lost.extend(metrics.map(|metric| (metric, NOT_WAITED_FOR)));
        }
        let spent = |of: fn(&ProcessUsage) -> u64| {
            let [before, after] = edges.map(|edge| edge.usage.as_ref().filter(|_| !is_lost));
            Some(of(after?).saturating_sub(of(before?)))
        };
        let run_delay_ns = of_the_same(&edges[0].delays, &edges[1].delays);
        let migrations =
            kernel.perf_migrations.or_else(|| of_the_same(&edges[0].moves, &edges[1].moves));
        let [voluntary_switches, involuntary_switches] = self.switches_between(edges);
        let is_client = edges.iter().all(|edge| edge.delays.is_empty());
        let too_many = edges.iter().any(|edge| edge.delays.len() > MOVES_MAX);
        for (metric, value) in [
            ("run_delay_ns", run_delay_ns),
            ("migrations", migrations),
            ("voluntary_switches", voluntary_switches),
            ("involuntary_switches", involuntary_switches),
        ] {
            if value.is_none() {
                let why = match metric {
                    "migrations" if too_many => TOO_MANY,
                    _ if is_client => OF_CLIENT,
                    _ => CAME_AND_WENT,
                };
                self.lost.insert(metric, why);
            }
        }
        Counts {
            task_clock_ns: spent(|usage| usage.cpu_ns),
            voluntary_switches,
            involuntary_switches,
            minor_faults: spent(|usage| usage.counts.minor_faults),
            major_faults: spent(|usage| usage.counts.major_faults),
            migrations,
            run_delay_ns,
            softirq_ticks: edges[0]
                .softirq_ticks
                .zip(edges[1].softirq_ticks)
                .map(|(before, after)| after.saturating_sub(before)),
            pmu,
            kernel: with_cpus(&kernel, &everybody),
            ..Counts::default()
        }
    }

    /// From now on it is a program that counts, with all that it starts, and not this
    /// process; the instruments were open when it was started.
    pub(super) fn is_program(&mut self, id: u32) {
        self.program = Some(id);
    }

    /// From now on time and switches of these threads of this process are not counted: they hear
    /// of a slice's end within it, which takes a tenth of a millisecond.
    pub(super) fn leave_out(&mut self, messengers: Vec<u32>) {
        self.messengers = messengers;
    }

    /// What a program was charged: its processes with all their threads, and the children
    /// that they have waited for. Switches are known of threads alone.
    fn usage_of_program(&self, id: u32) -> Option<ProcessUsage> {
        let tick_ns = 1_000_000_000 / process::ticks_per_second();
        let mut sum = ProcessUsage::default();
        for id in Tree::below(&self.root, id).processes {
            // One that has gone was waited for, and is with its parent from then on.
            let Ok(cpu_ns) = usage::cpu_ns_of(id) else { continue };
            let Some(whole) = kin::whole(&self.root, id) else { continue };
            sum.cpu_ns += cpu_ns + whole.children_ticks * tick_ns;
            sum.counts.minor_faults += whole.minor_faults;
            sum.counts.major_faults += whole.major_faults;
        }
        Some(sum)
    }

    /// Whether a process of a program ignores SIGCHLD. Whether it has had children that have ended
    /// meanwhile is known to nobody.
    fn forgets(&self) -> bool {
        let processes = self.program.map(|id| Tree::below(&self.root, id).processes);
        processes.iter().flatten().any(|&id| kin::ignores_children(&self.root, id))
    }

    /// Switches of each thread of a program; of this process the usage has them.
    fn switches(&self, tasks: &[u32]) -> [BTreeMap<u32, u64>; 2] {
        let tasks = if self.program.is_some() { tasks } else { &[] };
        let of_each = tasks.iter().filter_map(|&id| Some((id, kin::switches(&self.root, id)?)));
        let all: Vec<(u32, [u64; 2])> = of_each.collect();
        [0, 1].map(|kind| all.iter().map(|(id, both)| (*id, both[kind])).collect())
    }

    fn switches_between(&self, edges: [&Edge; 2]) -> [Option<u64>; 2] {
        if self.program.is_some() {
            let [before, after] = edges.map(|edge| &edge.switches);
            return [0, 1].map(|kind| of_the_same(&before[kind], &after[kind]));
        }
        let (Some(before), Some(after)) = (&edges[0].usage, &edges[1].usage) else {
            return [None; 2];
        };
        let spent = |of: fn(&ProcessUsage) -> u64| Some(of(after).saturating_sub(of(before)));
        [
            spent(|usage| usage.counts.voluntary_switches),
            spent(|usage| usage.counts.involuntary_switches),
        ]
    }

    /// The process, its ended children, and those that live. Asking ten thousand of those
    /// takes this process long: it is read on that side of them which is nearer to the
    /// slice, and what the asking costs is in none.
    fn usage(&self, tasks: &[u32], at: At) -> Option<ProcessUsage> {
        if let Some(id) = self.program {
            return self.usage_of_program(id);
        }
        let own = || {
            let mut sum = usage::process_usage().ok()?;
            less(&mut sum, &self.of_messengers());
            add(&mut sum, &usage::children_usage().ok()?);
            Some(sum)
        };
        let (mut sum, living) = match at {
            At::After => (own()?, self.living(tasks)),
            At::Before => {
                let living = self.living(tasks);
                (own()?, living)
            }
        };
        add(&mut sum, &living);
        Some(sum)
    }

    /// Time and switches of the threads that are left out. Their clocks first: what reading
    /// their switches costs is theirs.
    fn of_messengers(&self) -> ProcessUsage {
        let mut sum = ProcessUsage::default();
        let clocks = self.messengers.iter().filter_map(|&id| usage::cpu_ns_of_thread(id).ok());
        sum.cpu_ns = clocks.sum();
        for [waited, lost] in self.messengers.iter().filter_map(|&id| kin::switches(&self.root, id))
        {
            sum.counts.voluntary_switches += waited;
            sum.counts.involuntary_switches += lost;
        }
        sum
    }

    /// Children that have not ended.
    fn living(&self, tasks: &[u32]) -> ProcessUsage {
        let mut sum = ProcessUsage::default();
        for &id in tasks.iter().filter(|&&id| self.is_child(id)) {
            // One that has gone was waited for, and is in what its parent was told.
            let Some(charged) = proc::charged(&self.root, id) else { continue };
            sum.cpu_ns += charged.cpu_ns;
            sum.counts.voluntary_switches += charged.voluntary_switches;
            sum.counts.involuntary_switches += charged.involuntary_switches;
            sum.counts.minor_faults += charged.minor_faults;
            sum.counts.major_faults += charged.major_faults;
        }
        sum
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

    /// The migrations of each task, unless events count them: those cost where threads or
    /// processes begin and end, and this does not.
    fn moves(&self, tasks: &[u32]) -> BTreeMap<u32, u64> {
        if self.counts_moves || tasks.len() > MOVES_MAX {
            return BTreeMap::new();
        }
        let moves = |&id: &u32| {
            let text = self.root.read(&format!("proc/{id}/sched")).ok()?;
            Some((id, proc::sched_number(&text, "se.nr_migrations")?))
        };
        tasks.iter().filter_map(moves).collect()
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
        for (&metric, &why) in &self.lost {
            missing.push(NotMeasured { metric: metric.to_owned(), why: why.to_owned() });
        }
        missing
    }
}

impl Edge {
    /// What the kernel counted in the network namespace since `earlier`.
    pub(super) fn network_since(&self, earlier: &Edge) -> Option<NetworkCounts> {
        Some(network_between(earlier.network?, self.network?))
    }

    /// How its cgroups have held it back since `earlier`.
    pub(super) fn throttled_since(&self, earlier: &Edge) -> Option<Throttled> {
        Some(self.throttled?.since(earlier.throttled?))
    }
}

fn add(sum: &mut ProcessUsage, part: &ProcessUsage) {
    sum.cpu_ns += part.cpu_ns;
    sum.counts.voluntary_switches += part.counts.voluntary_switches;
    sum.counts.involuntary_switches += part.counts.involuntary_switches;
    sum.counts.minor_faults += part.counts.minor_faults;
    sum.counts.major_faults += part.counts.major_faults;
}

/// Takes a part out. It is read by other clocks, and may be more by as much as those differ.
fn less(sum: &mut ProcessUsage, part: &ProcessUsage) {
    let take = |all: &mut u64, part: u64| *all = all.saturating_sub(part);
    take(&mut sum.cpu_ns, part.cpu_ns);
    take(&mut sum.counts.voluntary_switches, part.counts.voluntary_switches);
    take(&mut sum.counts.involuntary_switches, part.counts.involuntary_switches);
}

/// What tasks were charged that were there at both edges and have not changed; `None` where
/// any came or went, whose part is not known.
fn of_the_same(before: &BTreeMap<u32, u64>, after: &BTreeMap<u32, u64>) -> Option<u64> {
    if before.is_empty() || !before.keys().eq(after.keys()) {
        return None;
    }
    Some(before.iter().map(|(id, charged)| after[id].saturating_sub(*charged)).sum())
}

#[cfg(test)]
mod tests;
