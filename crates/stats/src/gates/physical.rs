//! What the machine cannot do.

use iolens_model::axes::Direction;
use iolens_model::outcome::Counts;

use super::case::{Case, Flag, Ruling, copies, end_here, parallel, speedup};
use crate::physics;
use crate::remark::Excess;

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
pub(super) fn copy_bandwidth(case: &Case<'_>) -> Ruling {
    let tx = &case.sums.tx;
    let calibration = &case.header.calibration;
    // Where files are copied, somebody copies each byte at least once.
    let is_of_files = case.trial.cell.copy().is_some();
    if !(is_of_files || copies(case)) || tx.time_ns == 0 {
        return Ruling::Pass;
    }
    let at_once = parallel(case).map_or(case.trial.cell.threads, |[server, _]| server);
    let threads = at_once.min(calibration.threads).max(1);
    let one = calibration.memcpy_hot_bytes_per_s;
    let all = (one * f64::from(threads)).max(calibration.memcpy_hot_all_bytes_per_s);
    let together = if threads > 1 { all } else { one };
    let rate = tx.bytes as f64 / (tx.time_ns as f64 / 1e9);
    let Some(breach) = physics::copy_rate(rate, together * speedup(case)) else {
        return Ruling::Pass;
    };
    if tx.calls == Some(0) && !is_of_files {
        let what = Excess::CopyBandwidth;
        return Ruling::Flag(Flag::Excess { what, ratio: rate / breach.high });
    }
    Ruling::Invalid(format!(
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
pub(super) fn call_cost(case: &Case<'_>) -> Ruling {
    let empty_call_ns = case.header.calibration.empty_call_ns / speedup(case);
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
                return Ruling::Flag(Flag::Excess { what, ratio: empty_call_ns / breach.value });
            }
            return Ruling::Invalid(format!(
                "{:.1} ns per call that {word} is under {:.1} ns, the least that an empty call of \
                 {empty_call_ns:.1} ns allows",
                breach.value, breach.low
            ));
        }
    }
    Ruling::Pass
}

#[cfg(test)]
mod tests {
    use iolens_model::cell::{Setting, SyscallSetting};

    use crate::fixture::{ArmTime, check_gate, one_arm_trial};

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
}
