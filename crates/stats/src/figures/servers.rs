//! Figures of a server and its client: totals over totals of the used trials.

use std::collections::BTreeMap;

use iolens_model::load::Outcomes;
use iolens_model::outcome::Counts;
use iolens_model::reading::Histogram;
use iolens_model::server::{CpuTime, CpuUse, ServerArm};
use serde::{Serialize, Serializer};

use super::{misses, parts};
use crate::estimate::Estimate;
use crate::interval::{Parts, estimate_of};
use crate::latency::{self, LatencyFigures};
use crate::load::BUSY_SHARE;
use crate::offered::Offered;
use crate::quantity::Quantity;
use crate::remark::Limited;
use crate::student::StudentTable;
use crate::sums::Sums;
use crate::values::ArmValues;

/// What came of a server in a cell, over its used trials. Times from when requests were
/// due are the arm's [`latency`](crate::analysis::ArmAnalysis::latency).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerFigures {
    /// Right replies per second.
    pub requests_per_s: Estimate,
    /// Requests that were due per second; `None` in a closed loop.
    pub offered_per_s: Option<Estimate>,
    /// Requests per second that the schedule was to make, each rate once: the baseline
    /// has that of every group that it was measured in; empty in a closed loop.
    pub rates_asked: Vec<f64>,
    /// How requests ended.
    pub outcomes: Outcomes,
    /// The server: all its threads, and its children.
    pub server: EndFigures,
    /// The client's process.
    pub client: EndFigures,
    /// Times from when requests were sent; `None` without any.
    pub from_sent: Option<LatencyFigures>,
    /// How long after they were due the client took requests up; `None` in a closed loop.
    pub lag: Option<LatencyFigures>,
    /// Threads and processes that it had at the end of a slice, at most.
    pub tasks_max: u64,
    /// CPU time of the server over the time of its slices and the processors that it can
    /// use: those that it has, or fewer where fewer of its threads and processes have
    /// answered anything. 0 to about 1.
    pub server_busy: Option<Estimate>,
    /// The share of its time in which the client's busiest thread worked, 0 to 1. Looking
    /// whether something is to be done is no work.
    pub client_busy: Option<Estimate>,
    /// Who had no time left; `None` where either is not known.
    pub saturated: Option<Saturated>,
    /// What every processor did before the servers were started.
    pub cpus_before: Vec<CpuShares>,
    /// The same when they stood, connected, and nobody asked.
    pub cpus_idle: Vec<CpuShares>,
    /// The same in the slices of this one.
    pub cpus_in_slices: Vec<CpuShares>,
    /// What else than the server the load shows.
    pub limits: Limits,
}

/// What one processor did, in shares of its time, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CpuShares {
    /// Its number.
    pub cpu: u32,
    /// Whose threads may run on it.
    pub of: CpuOf,
    /// User mode.
    pub user: f64,
    /// The kernel for a thread.
    pub system: f64,
    /// Interrupts.
    pub irq: f64,
    /// Softirq, whoever it was for.
    pub softirq: f64,
    /// Taken by the hypervisor for somebody else.
    pub steal: f64,
    /// Nothing.
    pub idle: f64,
    /// Its time, in clock ticks of 10 ms: the shares are no finer.
    pub ticks: u64,
}

iolens_model::words! {
    /// One of the two, both or neither.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Ends {
        /// The server.
        Server = "server",
        /// The client.
        Client = "client",
        /// Both.
        Both = "both",
        /// None of ours.
        Neither = "neither",
    }
}

/// Whose threads may run on a processor.
pub type CpuOf = Ends;

/// Who had no time left. Of the client's the server's own bound is not known; where it is
/// neither, they wait for each other, or the schedule leaves them time.
pub type Saturated = Ends;

impl Ends {
    /// By whether it is so of either.
    fn of(server: bool, client: bool) -> Ends {
        match (server, client) {
            (true, true) => Ends::Both,
            (true, false) => Ends::Server,
            (false, true) => Ends::Client,
            (false, false) => Ends::Neither,
        }
    }
}

/// What else than the server a load shows: each where it was so in more than half of the
/// used trials.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Limits {
    /// The client had no time left: the rate is a floor, and not ranked. What a request
    /// costs the server stands.
    pub client_busy: Option<Limited>,
    /// The client was late: times from due, and their tail, are its own.
    pub client_late: Option<Limited>,
    /// The rate that was asked for was not kept, so that neither cost nor times are
    /// those at that rate.
    pub rate_not_kept: Option<Limited>,
}

impl Limits {
    /// The one that keeps a server from being ranked by a quantity.
    ///
    /// Where a client had no time left, the time of a request is the client's. Where a rate
    /// was not kept, the cost of a request is that of another rate than the others'.
    pub fn against(&self, quantity: Quantity) -> Option<Limited> {
        match quantity {
            Quantity::Time => self.client_busy,
            Quantity::ServerCpu => self.rate_not_kept,
            Quantity::Cpu => None,
        }
    }
}

/// One used trial of a server.
struct Visit<'a> {
    pass: u32,
    sums: Sums,
    arm: &'a ServerArm,
    offered: &'a Offered,
}

impl<'a> Visit<'a> {
    fn of(pass: u32, arm: &'a ArmValues) -> Option<Visit<'a>> {
        let server = arm.outcome.server.as_deref()?;
        Some(Visit { pass, sums: arm.sums(), arm: server, offered: arm.offered.as_deref()? })
    }
}

/// The figures of a server; `None` without a used trial, or where it is none.
pub(crate) fn of(
    arms: &[(u32, &ArmValues)],
    limits: Limits,
    table: &mut StudentTable,
) -> Option<ServerFigures> {
    let visits: Vec<Visit<'_>> =
        arms.iter().map(|(pass, arm)| Visit::of(*pass, arm)).collect::<Option<_>>()?;
    let per_s = |count: u64, v: &Visit<'_>| Some(parts(count, v.offered.window_ns as f64 / 1e9));
    let is_open = visits.iter().all(|v| v.arm.rate.is_some());
    let server_busy = some(&visits, table, server_busy);
    let client_busy = some(&visits, table, |v| v.offered.busiest());
    let is_full = |busy: Estimate| busy.value >= BUSY_SHARE;
    let busy = server_busy.zip(client_busy);
    Some(ServerFigures {
        requests_per_s: some(&visits, table, |v| per_s(v.offered.replies_in_window, v))?,
        offered_per_s: some(&visits, table, |v| per_s(v.offered.scheduled, v)).filter(|_| is_open),
        rates_asked: rates(&visits),
        outcomes: visits.iter().fold(Outcomes::default(), |sum, v| sum.plus(&v.offered.outcomes)),
        server: end(&visits, |v| Some((v.sums.tx, 0)), table),
        client: end(&visits, |v| Some((*v.sums.received()?, v.offered.polled_ns)), table),
        from_sent: times(&visits, |arm| &arm.from_sent, table),
        lag: times(&visits, |arm| &arm.lag, table).filter(|_| is_open),
        tasks_max: visits.iter().map(|v| v.arm.tasks_max).max().unwrap_or(0),
        saturated: busy.map(|(server, client)| Ends::of(is_full(server), is_full(client))),
        server_busy,
        client_busy,
        cpus_before: shares(&visits, |cpus| &cpus.before),
        cpus_idle: shares(&visits, |cpus| &cpus.idle),
        cpus_in_slices: shares(&visits, |cpus| &cpus.slices),
        limits,
    })
}

/// What every processor did over all trials.
fn shares(visits: &[Visit<'_>], of: fn(&CpuUse) -> &Vec<CpuTime>) -> Vec<CpuShares> {
    let mut sums: BTreeMap<u32, [u64; 6]> = BTreeMap::new();
    for time in visits.iter().flat_map(|visit| of(&visit.arm.cpus)) {
        let CpuTime { cpu, user, system, irq, softirq, steal, idle } = *time;
        let sum = sums.entry(cpu).or_default();
        let parts = [user, system, irq, softirq, steal, idle];
        sum.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
    }
    let whose = |cpu: u32| {
        let is_of = |end: usize| visits.iter().any(|v| v.offered.cpu_numbers[end].contains(&cpu));
        Ends::of(is_of(0), is_of(1))
    };
    let shares = |(cpu, sum): (u32, [u64; 6])| {
        let ticks: u64 = sum.iter().sum();
        let [user, system, irq, softirq, steal, idle] = sum.map(|part| part as f64 / ticks as f64);
        let of = whose(cpu);
        (ticks > 0).then_some(CpuShares { cpu, of, user, system, irq, softirq, steal, idle, ticks })
    };
    sums.into_iter().filter_map(shares).collect()
}

/// CPU time over that of the processors that the server can use.
fn server_busy(visit: &Visit<'_>) -> Option<Parts> {
    let [server, _] = visit.offered.cpus;
    let answering = match visit.arm.requests_by_task.len() {
        0 => server,
        tasks => crate::interval::count(tasks),
    };
    let cpus = f64::from(server.min(answering));
    let cpu_ns = visit.sums.tx.task_clock_ns?;
    (cpus > 0.0).then(|| parts(cpu_ns, visit.sums.tx.time_ns as f64 * cpus))
}

/// Rates of schedules, each once.
fn rates(visits: &[Visit<'_>]) -> Vec<f64> {
    let mut rates: Vec<f64> = visits.iter().filter_map(|v| v.arm.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    rates
}

fn times(
    visits: &[Visit<'_>],
    of: fn(&ServerArm) -> &Histogram,
    table: &mut StudentTable,
) -> Option<LatencyFigures> {
    latency::of(&visits.iter().map(|v| (v.pass, of(v.arm))).collect::<Vec<_>>(), table)
}

/// Of the trials that have it.
fn some(
    visits: &[Visit<'_>],
    table: &mut StudentTable,
    part: impl Fn(&Visit<'_>) -> Option<Parts>,
) -> Option<Estimate> {
    let measured = visits.iter().filter_map(|visit| Some((visit.pass, part(visit)?)));
    estimate_of(measured.collect(), table)
}

/// What one end spent, and of its CPU time that in which it only polled: no request asked for
/// that. What is over CPU time, and what hardware counts, has the polling in it.
fn end(
    visits: &[Visit<'_>],
    of: impl Fn(&Visit<'_>) -> Option<(Counts, u64)>,
    table: &mut StudentTable,
) -> EndFigures {
    let ends: Vec<(u32, Counts, u64)> = visits
        .iter()
        .filter_map(|visit| of(visit).map(|(counts, polled_ns)| (visit.pass, counts, polled_ns)))
        .collect();
    EndFigures(std::array::from_fn(|at| match EndMetric::ALL[at].of() {
        EndPart::PerRequest(count) => {
            let is_time = EndMetric::ALL[at] == EndMetric::TaskClock;
            let no_work = |polled_ns: u64| if is_time { polled_ns } else { 0 };
            let counted: Vec<(u32, u64, u64)> = ends
                .iter()
                .filter_map(|(pass, end, polled_ns)| {
                    let worked = count(end)?.saturating_sub(no_work(*polled_ns));
                    Some((*pass, worked, end.messages))
                })
                .collect();
            let of = counted.iter().map(|&(pass, count, of)| (pass, parts(count, of))).collect();
            let total = counted.iter().map(|(_, count, _)| count).sum();
            Some(EndFigure { total: Some(total), value: estimate_of(of, table)? })
        }
        EndPart::Over(over, under) => {
            let of = ends
                .iter()
                .filter_map(|(pass, end, _)| Some((*pass, parts(over(end)?, under(end)?))));
            Some(EndFigure { total: None, value: estimate_of(of.collect(), table)? })
        }
    }))
}

/// Makes the catalogue of what an end of a server spends, as perf-stat(1) lays it out. An entry is
/// ```text
/// Id "name in exports": what it is made of;
/// ```
macro_rules! end_metrics {
    ($($id:ident $name:literal: $of:expr;)+) => {
        /// Something that an end of a server spends on its requests.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum EndMetric {
            $(#[doc = $name] $id,)+
        }

        impl EndMetric {
            /// Each of them.
            pub const ALL: &'static [EndMetric] = &[$(EndMetric::$id),+];

            /// Its name in exports.
            pub fn name(self) -> &'static str {
                match self {
                    $(EndMetric::$id => $name,)+
                }
            }

            /// Whether it is a count over requests, with a total of its own.
            pub fn is_per_request(self) -> bool {
                matches!(self.of(), PerRequest(_))
            }

            /// What it is made of.
            fn of(self) -> EndPart {
                match self {
                    $(EndMetric::$id => $of,)+
                }
            }
        }
    };
}

/// A count of one end; `None` where it was not counted.
type EndCount = fn(&Counts) -> Option<u64>;

/// What a metric of an end is made of.
enum EndPart {
    /// A count, over the requests of the trials that have it.
    PerRequest(EndCount),
    /// A count over another.
    Over(EndCount, EndCount),
}

use EndPart::{Over, PerRequest};

end_metrics! {
    TaskClock "cpu_ns": PerRequest(|c| c.task_clock_ns);
    ContextSwitches "context_switches": PerRequest(|c| {
        Some(c.voluntary_switches?.saturating_add(c.involuntary_switches?))
    });
    VoluntarySwitches "voluntary_switches": PerRequest(|c| c.voluntary_switches);
    InvoluntarySwitches "involuntary_switches": PerRequest(|c| c.involuntary_switches);
    Migrations "migrations": PerRequest(|c| c.migrations.or(c.kernel.perf_migrations));
    MinorFaults "minor_faults": PerRequest(|c| c.minor_faults);
    MajorFaults "major_faults": PerRequest(|c| c.major_faults);
    RunDelay "run_delay_ns": PerRequest(|c| c.run_delay_ns);
    Cycles "cycles": PerRequest(cycles);
    Instructions "instructions": PerRequest(instructions);
    Branches "branches": PerRequest(branches);
    BranchMisses "branch_misses": PerRequest(branch_misses);
    StalledFrontend "stalled_cycles_frontend": PerRequest(|c| c.pmu.stalled_cycles_frontend);
    StalledBackend "stalled_cycles_backend": PerRequest(|c| c.pmu.stalled_cycles_backend);
    L1dLoads "l1d_loads": PerRequest(|c| above_zero(c.pmu.l1d_loads));
    L1dMisses "l1d_misses": PerRequest(|c| misses(c.pmu.l1d_misses, c.pmu.l1d_loads));
    LlcReferences "llc_references": PerRequest(|c| c.pmu.llc_references);
    LlcMisses "llc_misses": PerRequest(|c| misses(c.pmu.llc_misses, c.pmu.llc_references));
    DtlbLoads "dtlb_loads": PerRequest(|c| above_zero(c.pmu.dtlb_loads));
    DtlbMisses "dtlb_misses": PerRequest(|c| misses(c.pmu.dtlb_misses, c.pmu.dtlb_loads));
    SystemCalls "system_calls": PerRequest(|c| c.kernel.sys_enter);
    CyclesUser "cycles_user": PerRequest(|c| above_zero(c.pmu.cycles_user));
    CyclesKernel "cycles_kernel": PerRequest(|c| above_zero(c.pmu.cycles_kernel));
    CpusUtilized "cpus_utilized": Over(|c| c.task_clock_ns, |c| Some(c.time_ns));
    ClockGhz "clock_ghz": Over(cycles, |c| c.task_clock_ns);
    InstructionsPerCycle "instructions_per_cycle": Over(instructions, cycles);
    BranchMissRate "branch_miss_rate": Over(branch_misses, branches);
}

/// A server and its client work in user mode and in the kernel for every request, so that a
/// counter at zero did not run.
fn above_zero(count: Option<u64>) -> Option<u64> {
    count.filter(|&n| n > 0)
}

/// In user mode and in the kernel.
fn both(user: Option<u64>, kernel: Option<u64>) -> Option<u64> {
    Some(above_zero(user)?.saturating_add(above_zero(kernel)?))
}

fn cycles(counts: &Counts) -> Option<u64> {
    both(counts.pmu.cycles_user, counts.pmu.cycles_kernel)
}

fn instructions(counts: &Counts) -> Option<u64> {
    both(counts.pmu.instructions_user, counts.pmu.instructions_kernel)
}

fn branches(counts: &Counts) -> Option<u64> {
    above_zero(counts.pmu.branches)
}

fn branch_misses(counts: &Counts) -> Option<u64> {
    misses(counts.pmu.branch_misses, counts.pmu.branches)
}

/// What one end spent: its metrics, as far as they were counted.
#[derive(Debug, Clone, PartialEq)]
pub struct EndFigures(pub(crate) [Option<EndFigure>; EndMetric::ALL.len()]);

/// A metric over the used trials in which it was counted: counters that do not fit together take
/// turns, and n of the estimate says in how many trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EndFigure {
    /// The count in all these trials; `None` where one count is over another.
    pub total: Option<u64>,
    /// Over the requests of these trials (those that a server answered, or right replies at a
    /// client), or over the other count.
    pub value: Estimate,
}

impl EndFigures {
    /// This metric; `None` where it was not counted.
    pub fn get(&self, metric: EndMetric) -> Option<EndFigure> {
        self.0[metric as usize]
    }

    /// Its value.
    pub fn value(&self, metric: EndMetric) -> Option<Estimate> {
        Some(self.get(metric)?.value)
    }
}

impl Serialize for EndFigures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer
            .collect_map(EndMetric::ALL.iter().map(|&metric| (metric.name(), self.get(metric))))
    }
}
