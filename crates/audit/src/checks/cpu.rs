//! Of a row: cycles, instructions and CPU time.

use iolens_stats::physics::{self, Rounded};

use super::{Case, however_rounded, impossible, short};
use crate::finding::{Checked, Found, Severity};
use crate::quantity::Quantity as Q;

/// Cycles over CPU time are a clock; a printed clock is one too; and cycles
/// over wall time are one for each CPU.
pub(super) fn clock(case: &Case<'_>) -> Checked {
    let range = case.bounds.clock();
    let possible = format!("possible: {:.2} to {:.2} GHz", range.low_ghz, range.high_ghz);
    let mut found = Vec::new();
    let mut judged = false;
    if let Some(hz) = case.above_zero(Q::Clock) {
        judged = true;
        let breach = however_rounded(hz, |hz| physics::clock_ghz(hz, 1e9, range));
        found.extend(impossible(breach, |breach| {
            format!("{} is {} GHz, {possible}", case.shown(Q::Clock), short(breach.value))
        }));
    }
    let cycles = case.above_zero(Q::Cycles);
    if let (Some(cycles), Some((cpu_ns, columns))) = (cycles, case.cpu_ns()) {
        judged = true;
        let ghz = cycles.over(cpu_ns);
        let breach = however_rounded(ghz, |ghz| physics::clock_ghz(ghz, 1.0, range));
        found.extend(impossible(breach, |breach| {
            format!(
                "{} in {} are a clock of {} GHz, {possible}",
                case.shown(Q::Cycles),
                case.shown_all(&columns),
                short(breach.value)
            )
        }));
    } else if let Some((hz, text)) = cycles_per_s(case)
        && let Some(cpus) = case.cpus_most()
    {
        judged = true;
        // All that these CPUs can count, without a lower end: they may wait.
        let above = physics::ClockRange { low_ghz: 0.0, ..range };
        let breach = however_rounded(hz, |hz| physics::clock_ghz(hz / cpus, 1e9, above));
        if let Some(breach) = breach {
            let known = case.knows_cpus();
            let on = if known { "on its CPUs" } else { "on two CPUs per thread" };
            let text = format!("{text}: {} GHz {on} ({cpus}), {possible}", short(breach.value));
            let text =
                if known { text } else { format!("{text}; or the whole system was counted") };
            let severity =
                if known || breach.value > 100.0 { Found::impossible } else { Found::suspicious };
            found.push(severity(text).with(breach));
        }
    }
    judged.then_some(found)
}

/// Cycles a second of wall time.
fn cycles_per_s(case: &Case<'_>) -> Option<(Rounded, String)> {
    if let Some((cycles, ns)) = case.above_zero(Q::Cycles).zip(case.above_zero(Q::Elapsed)) {
        let text = format!("{} in {}", case.shown(Q::Cycles), case.shown(Q::Elapsed));
        return Some((cycles.over(ns).scaled(1e9), text));
    }
    let per_byte = case.above_zero(Q::CyclesPerByte)?;
    let (rate, columns) = case.byte_rate()?;
    let text = format!("{} at {}", case.shown(Q::CyclesPerByte), case.shown_all(&columns));
    Some((per_byte.times(rate), text))
}

/// Instructions that the cycles can have retired.
pub(super) fn instructions(case: &Case<'_>) -> Checked {
    let printed = case.positive(Q::Ipc).map(|ipc| (ipc, 1.0, case.shown(Q::Ipc)));
    let pairs = [
        (Q::Instructions, Q::Cycles),
        (Q::InstructionsUser, Q::CyclesUser),
        (Q::InstructionsKernel, Q::CyclesKernel),
    ];
    let counted = pairs.into_iter().filter_map(|(instructions, cycles)| {
        let text = case.shown_all(&[instructions, cycles]);
        Some((case.positive(instructions)?, case.positive(cycles)?, text))
    });
    let all: Vec<(f64, f64, String)> = counted.chain(printed).collect();
    if all.is_empty() {
        return None;
    }
    let found = all.iter().flat_map(|(instructions, cycles, text)| {
        let breach = physics::instructions_per_cycle(*instructions, *cycles);
        impossible(breach, |breach| {
            format!(
                "{text}: {} instructions per cycle, possible: {} to {}",
                short(breach.value),
                breach.low,
                breach.high
            )
        })
    });
    Some(found.collect())
}

/// A copy takes a cycle for 64 bytes at least.
pub(super) fn cycles_per_byte(case: &Case<'_>) -> Checked {
    if case.moves_without_copy() {
        return None;
    }
    let printed = case.number(Q::CyclesPerByte).map(|n| (n, case.shown(Q::CyclesPerByte)));
    let counted = || {
        let cycles = case.above_zero(Q::Cycles)?;
        let (name, bytes) = case.bytes()?;
        Some((cycles.over(bytes), case.shown_all(&[Q::Cycles, name])))
    };
    let (per_byte, text) = printed.or_else(counted)?;
    // A message of one byte takes some ten thousand cycles, with its wake-up.
    const MOST: f64 = 1e6;
    if per_byte.low > MOST {
        let text = format!(
            "{text}: {} cycles per byte; are all cycles divided by the bytes of one message?",
            short(per_byte.value)
        );
        return Some(vec![Found::suspicious(text)]);
    }
    let breach = however_rounded(per_byte, |each| physics::cycles_per_byte(each, 1.0));
    Some(impossible(breach, |breach| {
        format!(
            "{text}: {} cycles per byte, and a copy takes {} at least; counted in user mode only, \
             or another process?",
            short(breach.value),
            breach.low
        )
    }))
}

/// CPU time against wall time and threads.
pub(super) fn cpu_time(case: &Case<'_>) -> Checked {
    let (wall_ns, share) = (case.above_zero(Q::Elapsed), case.above_zero(Q::CpuUse));
    let (cpu_ns, wall_ns, columns) = match (case.cpu_ns(), wall_ns, share) {
        (Some((cpu_ns, columns)), Some(wall_ns), _) => {
            (cpu_ns, wall_ns, [columns, vec![Q::Elapsed]].concat())
        }
        // A use is a ratio of times.
        (None, None, Some(share)) => (share.scaled(1e9), Rounded::exact(1e9), vec![Q::CpuUse]),
        _ => return None,
    };
    let most = case.cpus_most()?;
    let shown = case.shown_all(&columns);
    let busy = short(cpu_ns.value / wall_ns.value);
    let of = |cpus: f64| physics::cpu_time(cpu_ns.low, wall_ns.high, cpus);
    if let Some(breach) = of(most) {
        return Some(vec![
            Found::impossible(format!("{shown}: {busy} CPUs busy, possible: {most}")).with(breach),
        ]);
    }
    let (Some(threads), false) = (case.threads(), case.knows_cpus()) else {
        return Some(Vec::new());
    };
    // Possible where both ends were counted.
    let found = of(threads).map(|breach| {
        let text =
            format!("{shown}: {busy} CPUs busy on {threads} threads, so both ends are in it");
        Found::new(Severity::Remark, text).with(breach)
    });
    Some(found.into_iter().collect())
}

/// A counter that ran for the time of the work, not around it.
pub(super) fn window(case: &Case<'_>) -> Checked {
    let (cpu_ns, wall_ns) = (case.positive(Q::CpuTime)?, case.positive(Q::Elapsed)?);
    let breach = physics::mostly_waiting(cpu_ns, wall_ns);
    let found = breach.map(|breach| {
        let text = format!(
            "{}: {:.2}% of the time at work; was the counting longer than the traffic, or of \
             another process?",
            case.shown_all(&[Q::CpuTime, Q::Elapsed]),
            breach.value * 100.0
        );
        Found::suspicious(text).with(breach)
    });
    Some(found.into_iter().collect())
}

/// No work takes no cycles: a counter that says so did not run.
pub(super) fn ran(case: &Case<'_>) -> Checked {
    let counters = [Q::Cycles, Q::Instructions, Q::CpuTime, Q::Branches, Q::L1dLoads];
    let counted: Vec<Q> = counters.into_iter().filter(|q| case.number(*q).is_some()).collect();
    if counted.is_empty() {
        return None;
    }
    let still = counted.into_iter().filter(|q| case.number(*q).is_some_and(|n| n.high <= 0.0));
    Some(
        still
            .map(|q| {
                let shown = case.shown(q);
                Found::impossible(format!("{shown}: no work takes none; it was not counted"))
            })
            .collect(),
    )
}
