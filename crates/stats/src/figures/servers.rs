//! Figures of a server and its client: totals over totals of the used trials.

use std::collections::BTreeMap;

use iolens_model::latency::Histogram;
use iolens_model::load::Outcomes;
use iolens_model::outcome::Counts;
use iolens_model::server::{CpuTime, CpuUse, ServerArm};
use serde::{Serialize, Serializer};

use super::{estimate_of, misses, parts};
use crate::analysis::{CpuOf, CpuShares, Estimate, Limits, Saturated, ServerFigures};
use crate::interval::Parts;
use crate::latency;
use crate::offered::Offered;
use crate::student::StudentTable;
use crate::values::{ArmValues, Sums};

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

/// The figures of a server; null without a used trial, or where it is none.
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
    let busy = server_busy.zip(client_busy);
    Some(ServerFigures {
        requests_per_s: some(&visits, table, |v| per_s(v.offered.replies_in_window, v))?,
        offered_per_s: some(&visits, table, |v| per_s(v.offered.scheduled, v)).filter(|_| is_open),
        rates_asked: rates(&visits),
        outcomes: visits.iter().fold(Outcomes::default(), |sum, v| sum.plus(&v.offered.outcomes)),
        server: end(&visits, |sums| Some(&sums.tx), table),
        client: end(&visits, Sums::received, table),
        from_sent: times(&visits, |arm| &arm.from_sent, table),
        lag: times(&visits, |arm| &arm.lag, table).filter(|_| is_open),
        tasks_max: visits.iter().map(|v| v.arm.tasks_max).max().unwrap_or(0),
        saturated: busy.map(|(server, client)| Saturated::of(server.value, client.value)),
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
        match (is_of(0), is_of(1)) {
            (true, false) => CpuOf::Server,
            (false, true) => CpuOf::Client,
            (true, true) => CpuOf::Both,
            (false, false) => CpuOf::Neither,
        }
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
) -> Option<crate::analysis::LatencyFigures> {
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

/// What one end spent.
fn end(
    visits: &[Visit<'_>],
    of: fn(&Sums) -> Option<&Counts>,
    table: &mut StudentTable,
) -> EndFigures {
    let ends: Vec<(u32, &Counts)> =
        visits.iter().filter_map(|v| Some((v.pass, of(&v.sums)?))).collect();
    EndFigures(std::array::from_fn(|at| match EndMetric::ALL[at].of() {
        EndPart::PerRequest(count) => {
            let counted: Vec<(u32, u64, u64)> = ends
                .iter()
                .filter_map(|&(pass, end)| Some((pass, count(end)?, end.messages)))
                .collect();
            let of = counted.iter().map(|&(pass, count, of)| (pass, parts(count, of))).collect();
            let total = counted.iter().map(|(_, count, _)| count).sum();
            Some(EndFigure { total: Some(total), value: estimate_of(of, table)? })
        }
        EndPart::Over(over, under) => {
            let of =
                ends.iter().filter_map(|&(pass, end)| Some((pass, parts(over(end)?, under(end)?))));
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
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(EndMetric::$id => $name,)+
                }
            }

            /// Whether it is a count over requests, with a total of its own.
            #[must_use]
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
    #[must_use]
    pub fn get(&self, metric: EndMetric) -> Option<EndFigure> {
        self.0[metric as usize]
    }

    /// Its value.
    #[must_use]
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
