//! Whether what the PMU counted can be.

use iolens_model::outcome::{Counts, PmuCounts};

use super::case::{Case, Flag, Ruling, copies};
use crate::physics::{self, ClockRange};
use crate::remark::{Circumstance, Event};

/// The two ends of an arm that counted, by name.
fn ends<'a>(case: &'a Case<'_>) -> impl Iterator<Item = (&'static str, &'a Counts)> {
    let ends = [("sending", Some(&case.sums.tx)), ("receiving", case.sums.received())];
    ends.into_iter().filter_map(|(name, counts)| Some((name, counts?)))
}

/// CPU cycles of an end, user and kernel; `None` where one of the two counters
/// did not run.
pub(crate) fn cycles(counts: &Counts) -> Option<u64> {
    both(counts, counts.pmu.cycles_user, counts.pmu.cycles_kernel)
}

/// Instructions of an end, user and kernel; `None` as [`cycles`] are.
pub(crate) fn retired(counts: &Counts) -> Option<u64> {
    both(counts, counts.pmu.instructions_user, counts.pmu.instructions_kernel)
}

/// Whether an end is known to have called the kernel.
fn calls(counts: &Counts) -> bool {
    counts.calls.is_some_and(|calls| calls > 0)
}

/// User and kernel together. A counter that stood still while its end worked
/// did not run, so its zero is no count; in the kernel works only
/// an end that calls it.
fn both(counts: &Counts, user: Option<u64>, kernel: Option<u64>) -> Option<u64> {
    let user = user.filter(|&n| n > 0)?;
    let kernel = kernel.filter(|&n| n > 0 || !calls(counts))?;
    Some(user.saturating_add(kernel))
}

/// Cycles over CPU time is a clock that the processor can have.
/// What it is to catch (counts of two processors added, scaled counts, a
/// counter of something else) is off by factors.
pub(super) fn clock(case: &Case<'_>) -> Ruling {
    for (name, counts) in ends(case) {
        let (Some(cycles), Some(cpu_ns @ 1..)) = (cycles(counts), counts.task_clock_ns) else {
            continue;
        };
        let range = clock_range(case);
        if let Some(breach) = physics::clock_ghz(cycles as f64, cpu_ns as f64, range) {
            return Ruling::Invalid(format!(
                "{cycles} cycles in {cpu_ns} ns of CPU at the {name} end are a clock of {:.2} \
                 GHz, possible: {:.2} to {:.2} GHz",
                breach.value, breach.low, breach.high
            ));
        }
    }
    Ruling::Pass
}

fn clock_range(case: &Case<'_>) -> ClockRange {
    let fact = |name: &str| {
        let fact = case.header.host.facts.iter().find(|fact| fact.name == name)?;
        let khz: f64 = fact.value.value()?.trim_end_matches(" kHz").parse().ok()?;
        (khz > 0.0).then_some(khz / 1e6)
    };
    ClockRange::of(fact("lowest frequency"), fact("highest frequency"))
}

/// Instructions that the cycles can have retired.
pub(super) fn instructions(case: &Case<'_>) -> Ruling {
    for (name, counts) in ends(case) {
        let (user, kernel) = (counts.pmu.instructions_user, counts.pmu.instructions_kernel);
        let (Some(cycles), Some(instructions)) = (cycles(counts), both(counts, user, kernel))
        else {
            continue;
        };
        let breach = physics::instructions_per_cycle(instructions as f64, cycles as f64);
        if let Some(breach) = breach {
            return Ruling::Invalid(format!(
                "{instructions} instructions in {cycles} cycles at the {name} end are {:.3} per \
                 cycle",
                breach.value
            ));
        }
    }
    Ruling::Pass
}

/// Cycles of both ends over the bytes that a CPU copied.
pub(super) fn cycles_per_byte(case: &Case<'_>) -> Ruling {
    let bytes = case.sums.tx.bytes;
    let counted: Option<Vec<u64>> = ends(case).map(|(_, counts)| cycles(counts)).collect();
    let (true, 1.., Some(counted)) = (copies(case), bytes, counted) else { return Ruling::Pass };
    let cycles: u64 = counted.into_iter().fold(0, u64::saturating_add);
    match physics::cycles_per_byte(cycles as f64, bytes as f64) {
        Some(breach) => Ruling::Invalid(format!(
            "{cycles} cycles of all ends for {bytes} bytes are {:.4} per byte, and a copy takes \
             {:.4} at least",
            breach.value, breach.low
        )),
        None => Ruling::Pass,
    }
}

/// A counter that stood still while its end worked, or counted in
/// some slices only, did not run; its figures are `None`, and it is named.
///
/// Kernel counts may be zero where no call was made, misses and stalls anywhere. The calls
/// of servers are not counted, and they make some for every request.
pub(super) fn ran(case: &Case<'_>) -> Ruling {
    let mut still: Vec<&'static str> = Vec::new();
    for (_, counts) in ends(case).filter(|(_, counts)| counts.task_clock_ns != Some(0)) {
        let zero = |(_, value): &(&str, Option<u64>)| *value == Some(0);
        for (name, _) in PmuCounts::NAMES.into_iter().zip(counts.pmu.values()).filter(zero) {
            let exempt = ["llc_", "stalled_"].iter().any(|part| name.starts_with(part))
                || name.ends_with("_misses");
            let calls = calls(counts) || case.trial.cell.server().is_some();
            let idle = name.ends_with("_kernel") && !calls;
            if !exempt && !idle && !still.contains(&name) {
                still.push(name);
            }
        }
    }
    let partly = partly(case);
    match still.is_empty() && partly.is_empty() {
        true => Ruling::Pass,
        false => Ruling::once(Circumstance::CountersNotUsed { still, partly }),
    }
}

/// What two parts of the kernel count of the same thing agrees, but
/// for what falls between the two readings at the edges of a slice. The
/// accounts in getrusage are what figures are made of, so nothing is dropped.
pub(super) fn agree(case: &Case<'_>) -> Ruling {
    /// Switches or faults between the two readings at both edges.
    const BESIDES_PER_SLICE: u64 = 2;
    let tasks = case.outcome.server.as_ref().map_or(0, |server| server.tasks_max);
    let threads = u64::from(case.trial.cell.threads).max(tasks);
    let besides = BESIDES_PER_SLICE * u64::from(case.sums.slices) * threads;
    let mut count = 0u64;
    for (_, counts) in ends(case) {
        let switches = counts.voluntary_switches.zip(counts.involuntary_switches);
        let switches = switches.map(|(waited, lost)| waited.saturating_add(lost));
        for (account, event) in [
            (switches, counts.kernel.perf_context_switches),
            (counts.minor_faults, counts.kernel.perf_minor_faults),
            (counts.major_faults, counts.kernel.perf_major_faults),
        ] {
            let (Some(account), Some(event)) = (account, event) else { continue };
            let differ = account.abs_diff(event);
            if differ > besides + account.max(event) / 100 {
                count = count.saturating_add(differ);
            }
        }
    }
    if count == 0 {
        Ruling::Pass
    } else {
        Ruling::Flag(Flag::Events { what: Event::AccountsDisagree, count })
    }
}

/// Counters that some measured slices of the arm have and others lack.
fn partly(case: &Case<'_>) -> Vec<&'static str> {
    let trial = case.trial;
    let index = trial.arms.iter().position(|arm| std::ptr::eq(arm, case.outcome));
    let measured = crate::sums::measured(trial).filter(|slice| Some(slice.arm) == index);
    // At each end, in how many of the slices each counter is known.
    let mut known = [[0; PmuCounts::NAMES.len()]; 2];
    let mut slices = 0;
    for slice in measured {
        slices += 1;
        for (known, pmu) in known.iter_mut().zip([slice.tx.pmu, slice.rx.unwrap_or(slice.tx).pmu]) {
            let values = pmu.values().into_iter();
            known.iter_mut().zip(values).for_each(|(known, v)| *known += u32::from(v.is_some()));
        }
    }
    let partly = |counter: &usize| known.iter().any(|end| (1..slices).contains(&end[*counter]));
    (0..PmuCounts::NAMES.len()).filter(partly).map(|i| PmuCounts::NAMES[i]).collect()
}

#[cfg(test)]
mod tests {
    use iolens_model::host::Fact;
    use iolens_model::outcome::SliceOutcome;
    use iolens_model::reading::Reading;
    use iolens_model::run::Run;

    use super::*;
    use crate::analyse;
    use crate::fixture::{check_gate, check_gates, one_arm_trial};
    use crate::remark::Warning;
    use crate::sums;

    /// Both ends run at `ghz` in their CPU time, with `per_cycle` instructions.
    fn run(ghz: u64, per_cycle: u64) -> Run {
        one_arm_trial(|slice| {
            let cycles = slice.tx.task_clock_ns.unwrap() * ghz / 2;
            let pmu = PmuCounts {
                cycles_user: Some(cycles),
                cycles_kernel: Some(cycles),
                instructions_user: Some(cycles * per_cycle),
                instructions_kernel: Some(cycles * per_cycle),
                ..PmuCounts::default()
            };
            slice.tx.pmu = pmu;
            slice.rx.as_mut().unwrap().pmu = pmu;
        })
    }

    #[test]
    fn an_impossible_clock_is_invalid() {
        check_gates(&run(3, 1), None);
        check_gates(&run(18, 1), Some("clock: "));
        let mut known = run(6, 1);
        check_gates(&known, None);
        for (name, khz) in [("lowest frequency", 800_000), ("highest frequency", 3_500_000)] {
            let value = Reading::Exact(format!("{khz} kHz"));
            known.header.host.facts.push(Fact { group: "cpu".into(), name: name.into(), value });
        }
        check_gates(&known, Some("6.00 GHz, possible: 0.16 to 4.20 GHz"));
        known.trials = run(4, 1).trials;
        check_gates(&known, None);
    }

    #[test]
    fn an_impossible_number_of_instructions_is_invalid() {
        check_gates(&run(3, 5), None);
        check_gates(&run(3, 20), Some("instructions per cycle: "));
    }

    #[test]
    fn copies_that_take_no_cycles_are_invalid() {
        // 40 MB in 20 ms of CPU at each end at 3 GHz: 3 cycles per byte.
        check_gate(cycles_per_byte, &run(3, 1), None);
        let mut few = run(3, 1);
        for slice in &mut few.trials[0].slices {
            slice.tx.bytes *= 1000;
        }
        check_gate(cycles_per_byte, &few, Some("cycles of all ends for"));
        few.trials[0].arms[0].copies_end_to_end = Some(0.0);
        check_gate(cycles_per_byte, &few, None);
        let mut unknown = run(3, 1);
        unknown.trials[0].slices.iter_mut().for_each(|slice| slice.tx.pmu.cycles_user = None);
        check_gate(cycles_per_byte, &unknown, None);
    }

    /// Counters that stood still, and those that missed slices.
    fn unused(change: impl Fn(&mut SliceOutcome)) -> [Vec<&'static str>; 2] {
        let mut run = run(3, 1);
        run.trials[0].slices.iter_mut().for_each(change);
        let found = analyse(&run).warnings.into_iter().find_map(|warning| match warning {
            Warning::Circumstance(Circumstance::CountersNotUsed { still, partly }) => {
                Some([still, partly])
            }
            _ => None,
        });
        found.unwrap_or_default()
    }

    #[test]
    fn accounts_that_disagree_are_counted() {
        // The fixture has four slices with two switches in each, and no fault.
        let check = |switches, faults, expect: Option<u64>| {
            let run = one_arm_trial(|slice| {
                slice.tx.kernel.perf_context_switches = switches;
                slice.tx.kernel.perf_minor_faults = faults;
            });
            let what = Event::AccountsDisagree;
            let flag = expect.map(|count| Flag::Events { what, count });
            let trial = &run.trials[0];
            let sums = sums::sums(trial);
            let case = Case { header: &run.header, trial, outcome: &trial.arms[0], sums: &sums[0] };
            assert_eq!(agree(&case), flag.map_or(Ruling::Pass, Ruling::Flag));
        };
        check(None, None, None);
        check(Some(2), Some(0), None);
        // What may fall between the readings.
        check(Some(4), Some(2), None);
        check(Some(305), Some(0), Some(4 * 303));
        check(Some(0), Some(3), Some(4 * 3));
    }

    #[test]
    fn counters_that_did_not_run_are_named() {
        const NONE: [&str; 0] = [];
        assert_eq!(unused(|_| {}), [NONE, NONE]);
        let still = unused(|slice| slice.rx.as_mut().unwrap().pmu.cycles_kernel = Some(0));
        assert_eq!(still, [&["cycles_kernel"][..], &NONE]);
        let partly = unused(|slice| {
            slice.tx.pmu.llc_misses = (slice.round == 2).then_some(0);
        });
        assert_eq!(partly, [&NONE[..], &["llc_misses"]]);
        let no_calls = unused(|slice| {
            (slice.tx.calls, slice.tx.pmu.cycles_kernel) = (Some(0), Some(0));
            slice.tx.pmu.instructions_kernel = Some(0);
        });
        assert_eq!(no_calls, [NONE, NONE]);
    }
}
