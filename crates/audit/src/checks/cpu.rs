//! Of a row: cycles, instructions and CPU time.

use iolens_stats::physics::{self, Rounded};

use super::{Case, however_rounded, impossible, one, short, suspicious, together, too_many};
use crate::finding::{Checked, Found, Severity};
use crate::quantity::Quantity as Q;

/// Cycles over CPU time are a clock; a printed clock is one too; and cycles
/// over wall time are one for each CPU.
pub(super) fn clock(case: &Case<'_>) -> Checked {
    let range = case.bounds.clock();
    let possible = format!("possible: {:.2} to {:.2} GHz", range.low_ghz, range.high_ghz);
    let printed = || {
        let hz = case.above_zero(Q::Clock)?;
        let breach = however_rounded(hz, |hz| physics::clock_ghz(hz, 1e9, range));
        one(impossible(breach, |breach| {
            format!("{} is {} GHz, {possible}", case.shown(Q::Clock), short(breach.value))
        }))
    };
    let over_cpu_time = || {
        let (cycles, (cpu_ns, columns)) = (case.above_zero(Q::Cycles)?, case.cpu_ns()?);
        let ghz = cycles.over(cpu_ns);
        let breach = however_rounded(ghz, |ghz| physics::clock_ghz(ghz, 1.0, range));
        one(impossible(breach, |breach| {
            format!(
                "{} in {} are a clock of {} GHz, {possible}",
                case.shown(Q::Cycles),
                case.shown_all(&columns),
                short(breach.value)
            )
        }))
    };
    let over_wall_time = || {
        let ((hz, text), cpus) = (cycles_per_s(case)?, case.cpus_most()?);
        // All that these CPUs can count, without a lower end: they may wait.
        let above = physics::ClockRange { low_ghz: 0.0, ..range };
        let breach = however_rounded(hz, |hz| physics::clock_ghz(hz / cpus, 1e9, above));
        let known = case.knows_cpus();
        let sure = known || breach.is_some_and(|breach| breach.value > 100.0);
        one(Severity::impossible_if(sure).of(breach, |breach| {
            let on = if known { "on its CPUs" } else { "on two CPUs per thread" };
            let or = if known { "" } else { "; or the whole system was counted" };
            format!("{text}: {} GHz {on} ({cpus}), {possible}{or}", short(breach.value))
        }))
    };
    together([printed(), over_cpu_time().or_else(over_wall_time)])
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
    let printed = || Some((case.positive(Q::Ipc)?, 1.0, case.shown(Q::Ipc)));
    let counted = [
        (Q::Instructions, Q::Cycles),
        (Q::InstructionsUser, Q::CyclesUser),
        (Q::InstructionsKernel, Q::CyclesKernel),
    ]
    .map(|(instructions, cycles)| {
        let shown = case.shown_all(&[instructions, cycles]);
        Some((case.positive(instructions)?, case.positive(cycles)?, shown))
    });
    together(counted.into_iter().chain([printed()]).map(|counts| {
        let (instructions, cycles, text) = counts?;
        one(too_many(&text, instructions, cycles))
    }))
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
        return one(Some(Found::suspicious(text)));
    }
    let breach = however_rounded(per_byte, |each| physics::cycles_per_byte(each, 1.0));
    one(impossible(breach, |breach| {
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
    let beyond = impossible(of(most), |_| format!("{shown}: {busy} CPUs busy, possible: {most}"));
    // Possible where both ends were counted.
    let both_ends = || {
        let threads = case.threads().filter(|_| !case.knows_cpus())?;
        Severity::Remark.of(of(threads), |_| {
            format!("{shown}: {busy} CPUs busy on {threads} threads, so both ends are in it")
        })
    };
    one(beyond.or_else(both_ends))
}

/// A counter that ran for the time of the work, not around it.
pub(super) fn window(case: &Case<'_>) -> Checked {
    let (cpu_ns, wall_ns) = (case.positive(Q::CpuTime)?, case.positive(Q::Elapsed)?);
    one(suspicious(physics::mostly_waiting(cpu_ns, wall_ns), |breach| {
        format!(
            "{}: {:.2}% of the time at work; was the counting longer than the traffic, or of \
             another process?",
            case.shown_all(&[Q::CpuTime, Q::Elapsed]),
            breach.value * 100.0
        )
    }))
}

/// No work takes no cycles: a counter that says so did not run.
pub(super) fn ran(case: &Case<'_>) -> Checked {
    let counters = [Q::Cycles, Q::Instructions, Q::CpuTime, Q::Branches, Q::L1dLoads];
    together(counters.map(|q| {
        let stood_still = case.number(q)?.high <= 0.0;
        one(stood_still.then(|| {
            let shown = case.shown(q);
            Found::impossible(format!("{shown}: no work takes none; it was not counted"))
        }))
    }))
}
