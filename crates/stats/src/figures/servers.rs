//! Figures of a server and its client: totals over totals of the used trials.

use std::collections::BTreeMap;

use iolens_model::latency::Histogram;
use iolens_model::load::Outcomes;
use iolens_model::outcome::Counts;
use iolens_model::server::{CpuTime, CpuUse, ServerArm};

use super::{Counted, estimate_of, misses, parts};
use crate::analysis::{
    CpuOf, CpuShares, EndFigures, Estimate, Limits, Saturated, ServerFigures, Spent,
};
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
    let mut spent = |count: fn(&Counts) -> Option<u64>| {
        let counted =
            ends.iter().filter_map(|&(pass, end)| Some((pass, count(end)?, end.messages)));
        let counted: Vec<(u32, u64, u64)> = counted.collect();
        let of = counted.iter().map(|&(pass, count, of)| (pass, parts(count, of))).collect();
        let total = counted.iter().map(|(_, count, _)| count).sum();
        Some(Spent { total, per_request: estimate_of(of, table)? })
    };
    let mut figures = EndFigures {
        task_clock_ns: spent(|c| c.task_clock_ns),
        context_switches: spent(|c| {
            Some(c.voluntary_switches?.saturating_add(c.involuntary_switches?))
        }),
        voluntary_switches: spent(|c| c.voluntary_switches),
        involuntary_switches: spent(|c| c.involuntary_switches),
        migrations: spent(|c| c.migrations.or(c.kernel.perf_migrations)),
        minor_faults: spent(|c| c.minor_faults),
        major_faults: spent(|c| c.major_faults),
        run_delay_ns: spent(|c| c.run_delay_ns),
        system_calls: spent(|c| c.kernel.sys_enter),
        cycles: spent(cycles),
        cycles_user: spent(|c| c.pmu.cycles_user.filter(|&n| n > 0)),
        cycles_kernel: spent(|c| c.pmu.cycles_kernel.filter(|&n| n > 0)),
        instructions: spent(instructions),
        branches: spent(|c| c.pmu.branches.filter(|&n| n > 0)),
        branch_misses: spent(|c| misses(c.pmu.branch_misses, c.pmu.branches)),
        l1d_loads: spent(|c| c.pmu.l1d_loads.filter(|&n| n > 0)),
        l1d_misses: spent(|c| misses(c.pmu.l1d_misses, c.pmu.l1d_loads)),
        llc_references: spent(|c| c.pmu.llc_references),
        llc_misses: spent(|c| misses(c.pmu.llc_misses, c.pmu.llc_references)),
        dtlb_loads: spent(|c| c.pmu.dtlb_loads.filter(|&n| n > 0)),
        dtlb_misses: spent(|c| misses(c.pmu.dtlb_misses, c.pmu.dtlb_loads)),
        stalled_cycles_frontend: spent(|c| c.pmu.stalled_cycles_frontend),
        stalled_cycles_backend: spent(|c| c.pmu.stalled_cycles_backend),
        ..EndFigures::default()
    };
    let mut ratio = |over: fn(&Counts) -> Option<u64>, under: &dyn Fn(&Counts) -> Option<u64>| {
        let of = ends
            .iter()
            .filter_map(|&(pass, end)| Some((pass, parts(over(end)?, under(end)?.number()))));
        estimate_of(of.collect(), table)
    };
    figures.cpus_utilized = ratio(|c| c.task_clock_ns, &|c| Some(c.time_ns));
    figures.clock_ghz = ratio(cycles, &|c| c.task_clock_ns);
    figures.instructions_per_cycle = ratio(instructions, &cycles);
    figures.branch_miss_rate = ratio(|c| misses(c.pmu.branch_misses, c.pmu.branches), &|c| {
        c.pmu.branches.filter(|&n| n > 0)
    });
    figures
}

/// Cycles in user mode and the kernel. A server and its client work in both for every
/// request, so that a counter at zero did not run.
fn cycles(counts: &Counts) -> Option<u64> {
    both(counts.pmu.cycles_user, counts.pmu.cycles_kernel)
}

/// Instructions likewise.
fn instructions(counts: &Counts) -> Option<u64> {
    both(counts.pmu.instructions_user, counts.pmu.instructions_kernel)
}

fn both(user: Option<u64>, kernel: Option<u64>) -> Option<u64> {
    Some(user.filter(|&n| n > 0)?.saturating_add(kernel.filter(|&n| n > 0)?))
}
