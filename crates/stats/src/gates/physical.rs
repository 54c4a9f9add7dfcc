//! What the machine, or its PMU, cannot do.

use iolens_model::axes::Direction;
use iolens_model::outcome::{Counts, PmuCounts};

use super::case::{
    Case, Flag, Ruling, copies, end_here, events, invalid, once, parallel, remark, speedup,
};
use crate::physics::{self, ClockRange};
use crate::remark::{Circumstance, Event, Excess};

/// A CPU that copies every byte cannot move bytes faster than the machine's
/// own `memcpy`.
///
/// Generous on purpose: the bound is that of copies inside the cache, the
/// larger of one thread's bandwidth times the threads and all threads' sum.
/// What it is to catch (bytes
/// counted twice, a size that was not applied, a receiver that truncates) is
/// off by factors. An arm that makes no call is itself a `memcpy`; comparing
/// the yardstick with itself only shows how steady the machine was, so it is
/// flagged.
pub(super) fn copy_bandwidth(case: &Case<'_>) -> Option<Ruling> {
    let tx = &case.sums.tx;
    let calibration = case.header.calibration.as_ref()?;
    // Where files are copied, somebody copies each byte at least once.
    let is_of_files = case.trial.cell.copy().is_some();
    if !(is_of_files || copies(case)) || tx.time_ns == 0 {
        return None;
    }
    let at_once = parallel(case).map_or(case.trial.cell.threads, |[server, _]| server);
    let threads = at_once.min(calibration.threads).max(1);
    let one = calibration.memcpy_hot_bytes_per_s;
    let all = (one * f64::from(threads)).max(calibration.memcpy_hot_all_bytes_per_s);
    let together = if threads > 1 { all } else { one };
    let rate = tx.bytes as f64 / (tx.time_ns as f64 / 1e9);
    let breach = physics::copy_rate(rate, together * speedup(case))?;
    if tx.calls == Some(0) && !is_of_files {
        let what = Excess::CopyBandwidth;
        return remark(Flag::Excess { what, ratio: rate / breach.high });
    }
    invalid(format!(
        "{:.2} GB/s is above the {:.2} GB/s that memcpy reaches with {threads} thread{}",
        breach.value / 1e9,
        breach.high / 1e9,
        if threads == 1 { "" } else { "s" }
    ))
}

/// A system call cannot cost less CPU than one that does nothing.
///
/// CPU time where it was measured, since a thread that waits pays nothing
/// meanwhile; else wall time of all threads, which is never less. Ends without
/// calls are exempt, and so are servers, whose calls nobody counts. Where calls are
/// what is studied, an empty call is the yardstick itself: comparing it with itself
/// only shows how steady the machine was, so it is flagged.
pub(super) fn call_cost(case: &Case<'_>) -> Option<Ruling> {
    let calibration = case.header.calibration.as_ref()?;
    let empty_call_ns = calibration.empty_call_ns / speedup(case);
    let threads = f64::from(case.trial.cell.threads.max(1));
    let wall_ns = case.sums.tx.time_ns.max(case.sums.rx.time_ns) as f64 * threads;
    let too_cheap = |counts: &Counts| {
        let calls = counts.calls.filter(|&calls| calls > 0 && wall_ns > 0.0)?;
        let spent_ns = counts.task_clock_ns.map_or(wall_ns, |cpu| cpu as f64);
        physics::cost_of_a_call(spent_ns, calls as f64, empty_call_ns)
    };
    let here = |end| end_here(case).is_none_or(|here| here == end);
    let ends = [
        ("sent", Some(&case.sums.tx).filter(|_| here(Direction::Tx))),
        ("received", case.sums.received().filter(|_| here(Direction::Rx))),
    ];
    for (word, counts) in ends {
        if let Some(breach) = counts.and_then(too_cheap) {
            if case.trial.cell.syscall().is_some() {
                let what = Excess::EmptyCalls;
                return remark(Flag::Excess { what, ratio: empty_call_ns / breach.value });
            }
            return invalid(format!(
                "{:.1} ns per call that {word} is under {:.1} ns, the least that an empty call of \
                 {empty_call_ns:.1} ns allows",
                breach.value, breach.low
            ));
        }
    }
    None
}

// Whether what the PMU counted can be.

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
pub(super) fn clock(case: &Case<'_>) -> Option<Ruling> {
    for (name, counts) in ends(case) {
        let (Some(cycles), Some(cpu_ns @ 1..)) = (cycles(counts), counts.task_clock_ns) else {
            continue;
        };
        let range = clock_range(case);
        if let Some(breach) = physics::clock_ghz(cycles as f64, cpu_ns as f64, range) {
            return invalid(format!(
                "{cycles} cycles in {cpu_ns} ns of CPU at the {name} end are a clock of {:.2} \
                 GHz, possible: {:.2} to {:.2} GHz",
                breach.value, breach.low, breach.high
            ));
        }
    }
    None
}

fn clock_range(case: &Case<'_>) -> ClockRange {
    let fact = |name: &str| {
        let fact = case.header.host.facts.iter().find(|fact| fact.name == name)?;
        fact.value.value().map(String::as_str)
    };
    let ghz = |name: &str| {
        let khz: f64 = fact(name)?.trim_end_matches(" kHz").parse().ok()?;
        (khz > 0.0).then_some(khz / 1e6)
    };
    // What acpi-cpufreq names is the clock without boost, which may be half as much again.
    let boosts = fact("boost") == Some("1") && fact("frequency driver") == Some("acpi-cpufreq");
    ClockRange::of(ghz("lowest frequency"), ghz("highest frequency").filter(|_| !boosts))
}

/// Instructions that the cycles can have retired.
pub(super) fn instructions(case: &Case<'_>) -> Option<Ruling> {
    for (name, counts) in ends(case) {
        let (user, kernel) = (counts.pmu.instructions_user, counts.pmu.instructions_kernel);
        let (Some(cycles), Some(instructions)) = (cycles(counts), both(counts, user, kernel))
        else {
            continue;
        };
        let breach = physics::instructions_per_cycle(instructions as f64, cycles as f64);
        if let Some(breach) = breach {
            return invalid(format!(
                "{instructions} instructions in {cycles} cycles at the {name} end are {:.3} per \
                 cycle",
                breach.value
            ));
        }
    }
    None
}

/// Cycles of both ends over the bytes that a CPU copied.
pub(super) fn cycles_per_byte(case: &Case<'_>) -> Option<Ruling> {
    let bytes = case.sums.tx.bytes;
    let counted: Option<Vec<u64>> = ends(case).map(|(_, counts)| cycles(counts)).collect();
    let (true, 1.., Some(counted)) = (copies(case), bytes, counted) else { return None };
    let cycles: u64 = counted.into_iter().fold(0, u64::saturating_add);
    let breach = physics::cycles_per_byte(cycles as f64, bytes as f64)?;
    invalid(format!(
        "{cycles} cycles of all ends for {bytes} bytes are {:.4} per byte, and a copy takes \
         {:.4} at least",
        breach.value, breach.low
    ))
}

/// A counter that stood still while its end worked, or counted in
/// some slices only, did not run; its figures are `None`, and it is named.
///
/// Kernel counts may be zero where no call was made, misses and stalls anywhere. The calls
/// of servers are not counted, and they make some for every request.
pub(super) fn ran(case: &Case<'_>) -> Option<Ruling> {
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
    if still.is_empty() && partly.is_empty() {
        return None;
    }
    once(Circumstance::CountersNotUsed { still, partly })
}

/// What two parts of the kernel count of the same thing agrees, but
/// for what falls between the two readings at the edges of a slice. The
/// accounts in getrusage are what figures are made of, so nothing is dropped.
pub(super) fn agree(case: &Case<'_>) -> Option<Ruling> {
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
    events(Event::AccountsDisagree, count)
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
    use iolens_model::cell::{Setting, SyscallSetting};
    use iolens_model::host::Fact;
    use iolens_model::outcome::SliceOutcome;
    use iolens_model::reading::Reading;
    use iolens_model::run::Run;

    use super::*;
    use crate::analyse;
    use crate::fixture::{ArmTime, asked, check_gate, check_gates, one_arm_trial};
    use crate::remark::Warning;

    #[test]
    fn copying_faster_than_memcpy_is_invalid() {
        // 10 GB/s hot, one thread: 1 KiB in 512 ns is 2 GB/s, in 64 ns 16 GB/s.
        check_gate(super::copy_bandwidth, &one_arm_trial(|_| {}), None);
        let fast = one_arm_trial(|slice| slice.tx.time_ns /= 8);
        check_gate(super::copy_bandwidth, &fast, Some("16.00 GB/s is above the 10.50 GB/s"));
    }

    #[test]
    fn without_a_copy_there_is_no_copy_bandwidth() {
        let mut fast = one_arm_trial(|slice| slice.tx.time_ns /= 8);
        fast.trials[0].arms[0].copies_end_to_end = Some(0.0);
        check_gate(super::copy_bandwidth, &fast, None);
        fast.trials[0].arms[0].copies_end_to_end = None;
        check_gate(super::copy_bandwidth, &fast, None);
    }

    #[test]
    fn the_yardstick_itself_is_only_flagged() {
        let memcpy = one_arm_trial(|slice| {
            slice.tx.time_ns /= 8;
            slice.tx.calls = Some(0);
        });
        check_gate(super::copy_bandwidth, &memcpy, Some("flag"));
    }

    #[test]
    fn a_machine_that_got_faster_moves_the_bound() {
        let mut fast = one_arm_trial(|slice| slice.tx.time_ns /= 8);
        fast.trials[0].environment.loop_before_ns =
            iolens_model::reading::Reading::Exact(ArmTime::LOOP_NS / 2);
        check_gate(super::copy_bandwidth, &fast, None);
    }

    #[test]
    fn a_call_cheaper_than_an_empty_one_is_invalid() {
        // The empty call costs 100 ns; 70 ns are let through.
        check_gate(super::call_cost, &one_arm_trial(|_| {}), None);
        let cheap = one_arm_trial(|slice| slice.tx.calls = slice.tx.calls.map(|calls| 10 * calls));
        check_gate(super::call_cost, &cheap, Some("ns per call that sent is under 70.0 ns"));
        let receiver = one_arm_trial(|slice| {
            let rx = slice.rx.as_mut().unwrap();
            rx.calls = rx.calls.map(|calls| 10 * calls);
        });
        check_gate(super::call_cost, &receiver, Some("ns per call that received is under"));
    }

    #[test]
    fn where_calls_are_studied_the_empty_one_is_no_bound() {
        let mut cheap =
            one_arm_trial(|slice| slice.tx.calls = slice.tx.calls.map(|calls| 10 * calls));
        cheap.trials[0].cell.setting = Setting::Syscall(SyscallSetting { in_a_row: None });
        check_gate(super::call_cost, &cheap, Some("flag"));
    }

    #[test]
    fn cpu_time_decides_where_it_was_measured_and_wall_time_elsewhere() {
        let idle =
            one_arm_trial(|slice| slice.tx.task_clock_ns = slice.tx.calls.map(|calls| 50 * calls));
        check_gate(super::call_cost, &idle, Some("50.0 ns per call"));
        let unknown = one_arm_trial(|slice| slice.tx.task_clock_ns = None);
        check_gate(super::call_cost, &unknown, None);
    }

    #[test]
    fn no_call_costs_nothing() {
        let ring = one_arm_trial(|slice| {
            slice.tx.calls = Some(0);
            slice.tx.task_clock_ns = Some(1);
        });
        check_gate(super::call_cost, &ring, None);
    }

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
        known.trials = run(5, 1).trials;
        check_gates(&known, Some("5.00 GHz, possible: 0.16 to 4.20 GHz"));
        for (name, value) in [("boost", "1"), ("frequency driver", "acpi-cpufreq")] {
            let value = Reading::Exact(value.to_owned());
            known.header.host.facts.push(Fact { group: "cpu".into(), name: name.into(), value });
        }
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
            assert_eq!(asked(agree, &run), flag.map(Ruling::Flag));
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
