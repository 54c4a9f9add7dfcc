//! Counts that must add up, and what became of zero-copy sends.

use iolens_model::call::CallFacts;
use iolens_model::data_path::PrimitiveFacts;
use iolens_model::plan::Schedule;
use iolens_model::units::Bytes;

use super::case::{Case, Flag, Ruling, events, in_flight_bytes, invalid, once, parallel, remark};
use crate::physics;
use crate::remark::{Circumstance, Event, Share};

/// The receiver cannot have more than was sent, and has all of it where the
/// work was fixed: the slice ended with the receipt of the last byte. After a
/// window, at most what fits the socket buffers is missing.
pub(super) fn received_bytes(case: &Case<'_>) -> Option<Ruling> {
    let sums = case.sums;
    if sums.rx_slices == 0 {
        return None;
    }
    if sums.rx_slices != sums.slices {
        return invalid(format!(
            "the receiving end counted {} of {} measured slices",
            sums.rx_slices, sums.slices
        ));
    }
    let (sent, received) = (sums.tx.bytes, sums.rx.bytes);
    let windowed = matches!(case.header.plan.schedule, Schedule::Window { .. });
    if received > sent {
        invalid(format!("{received} bytes received, only {sent} sent"))
    } else if received < sent && loses(case) {
        let share = 1.0 - received as f64 / sent as f64;
        remark(Flag::Share { what: Share::Lost, share })
    } else if received < sent && !windowed {
        invalid(format!("{received} bytes received of {sent} sent, in slices of fixed work"))
    } else if let Some(most) = in_flight_bytes(case)
        && physics::received(sent, received, most.saturating_mul(u64::from(sums.slices))).is_some()
    {
        invalid(format!(
            "{received} bytes received of {sent} sent, and the socket buffers hold {most}"
        ))
    } else {
        None
    }
}

/// Whether the arm's messages may be lost although they were sent.
fn loses(case: &Case<'_>) -> bool {
    let own = |primitive: &&PrimitiveFacts| primitive.id == case.outcome.arm.primitive;
    case.header.primitives.iter().find(own).is_some_and(|found| found.transport.loses())
}

/// Messages and bytes are counted apart, so a short write that was taken for
/// a whole one, or a size that was not applied, shows here.
pub(super) fn bytes_sent(case: &Case<'_>) -> Option<Ruling> {
    let tx = &case.sums.tx;
    let size = bytes_of_a_unit(case)?;
    let expect = u128::from(tx.messages) * u128::from(size.0);
    if u128::from(tx.bytes) == expect {
        return None;
    }
    let unit = case.trial.cell.study().unit();
    invalid(format!(
        "{} {unit}s of {} B are {expect} bytes, but {} were counted",
        tx.messages, size.0, tx.bytes
    ))
}

/// Where calls are studied, each is as many system calls as its entry says.
pub(super) fn system_calls(case: &Case<'_>) -> Option<Ruling> {
    let call = call_of(case)?;
    let tx = &case.sums.tx;
    let expect = u128::from(tx.messages) * u128::from(call.calls);
    let counted = tx.calls.filter(|&calls| u128::from(calls) != expect)?;
    invalid(format!(
        "{} of `{}` are {expect} system calls, but {counted} were counted",
        tx.messages, call.id
    ))
}

/// What the run says of the arm's call; `None` in other studies.
fn call_of<'a>(case: &Case<'a>) -> Option<&'a CallFacts> {
    case.header.calls.iter().find(|call| call.id == case.outcome.arm.primitive)
}

/// Bytes that a message or a call has; `None` where the run does not say.
fn bytes_of_a_unit(case: &Case<'_>) -> Option<Bytes> {
    if super::file::moves_nothing(case) {
        return Some(Bytes(0));
    }
    if case.trial.cell.study().has_sizes() {
        return Some(case.trial.cell.size);
    }
    call_of(case).map(|call| Bytes(call.bytes_in(&case.trial.cell)))
}

/// Of what was received, at most all of it was mapped.
pub(super) fn mapped_bytes(case: &Case<'_>) -> Option<Ruling> {
    let rx = case.sums.received()?;
    let mapped = rx.mapped_bytes.filter(|&mapped| mapped > rx.bytes)?;
    invalid(format!("{mapped} bytes mapped of {} received", rx.bytes))
}

/// Threads cannot use more CPU than there was time. A server, and its client, may have
/// more threads than are asked for, and so may io_uring, whose threads the kernel starts;
/// they cannot use more than their processors have.
pub(super) fn cpu_time(case: &Case<'_>) -> Option<Ruling> {
    let wall_ns = case.sums.tx.time_ns.max(case.sums.rx.time_ns);
    let threads = case.trial.cell.threads.max(1);
    let (unit, [sender, receiver]) = match parallel(case) {
        Some(cpus) => ("processors", cpus),
        None if has_kernel_threads(case) => {
            let all = u32::try_from(case.header.host.cpus.len()).unwrap_or(u32::MAX);
            ("processors", [all.max(threads); 2])
        }
        None => ("threads", [threads; 2]),
    };
    let ends =
        [("sending", Some(&case.sums.tx), sender), ("receiving", case.sums.received(), receiver)];
    for (end, counts, at_once) in ends {
        let Some(cpu_ns) = counts.and_then(|counts| counts.task_clock_ns) else { continue };
        if physics::cpu_time(cpu_ns as f64, wall_ns as f64, f64::from(at_once)).is_some() {
            return invalid(format!(
                "{cpu_ns} ns of CPU at the {end} end in {wall_ns} ns with {at_once} {unit}"
            ));
        }
    }
    None
}

/// Whether the kernel has threads of its own for the arm, which run on any processor: that
/// is what a ring is for.
fn has_kernel_threads(case: &Case<'_>) -> bool {
    case.outcome.arm.primitive.starts_with("uring")
}

/// The slices of all arms follow one another inside the trial, and the time
/// in which all threads were at work lies inside the slice. Both are read by
/// other clocks calls than the sum they are compared with.
pub(super) fn time_within_trial(case: &Case<'_>) -> Option<Ruling> {
    let slices_ns =
        case.trial.slices.iter().map(|slice| u128::from(slice.tx.time_ns)).sum::<u128>();
    let trial_ns = case.trial.duration_ns;
    if slices_ns > u128::from(trial_ns) {
        return invalid(format!("slices of {slices_ns} ns together in a trial of {trial_ns} ns"));
    }
    let (active_ns, time_ns) = (case.sums.all_active_ns, case.sums.tx.time_ns);
    if active_ns > time_ns {
        return invalid(format!(
            "all threads at work for {active_ns} ns in slices of {time_ns} ns"
        ));
    }
    None
}

// What became of zero-copy sends.

/// Every zero-copy send of a slice has completed when the slice ends, and no
/// completion was counted twice: notifications are ranges of ids, and who
/// counts notifications counts wrong.
pub(super) fn completions(case: &Case<'_>) -> Option<Ruling> {
    let sent = case.sums.tx.zerocopy?;
    if physics::completed(sent.sends, sent.completions, sent.copied) {
        return None;
    }
    if sent.completions != sent.sends {
        return invalid(format!(
            "{} zero-copy sends and {} completions",
            sent.sends, sent.completions
        ));
    }
    invalid(format!(
        "{} of {} completions say that the kernel copied",
        sent.copied.unwrap_or_default(),
        sent.completions
    ))
}

/// Refused for want of locked memory, waited, and made again: the waiting is
/// in the arm's time.
pub(super) fn refused(case: &Case<'_>) -> Option<Ruling> {
    events(Event::ZeroCopyRefused, case.sums.tx.zerocopy?.enobufs)
}

/// Whoever listens on a packet socket gets every packet, so the kernel copies
/// what refers to user pages first (skb_orphan_frags_rx): the machine's
/// doing, not the primitive's.
pub(super) fn taps(case: &Case<'_>) -> Option<Ruling> {
    case.sums.tx.zerocopy?;
    let mut ends = [&case.trial.tx, &case.trial.rx].into_iter().flatten();
    ends.find(|end| end.packet_taps.is_some_and(|n| n > 0))?;
    once(Circumstance::PacketTap)
}

#[cfg(test)]
mod tests {
    use iolens_model::call::CallKind;
    use iolens_model::cell::{Setting, SyscallSetting};
    use iolens_model::data_path::{CallsPerMessage, DataPath};
    use iolens_model::outcome::ZerocopyCounts;
    use iolens_model::run::Run;
    use iolens_model::transport::Transport;
    use iolens_model::units::Nanos;

    use super::*;
    use crate::analyse;
    use crate::fixture::{check_gate, check_gates, one_arm_trial};
    use crate::remark::{Circumstance, Event, RemarkKind, Warning};

    #[test]
    fn receiving_more_than_was_sent_is_invalid() {
        check_gate(received_bytes, &one_arm_trial(|_| {}), None);
        let more = one_arm_trial(|slice| slice.rx.as_mut().unwrap().bytes += 1);
        check_gate(received_bytes, &more, Some("bytes received, only"));
    }

    #[test]
    fn mapping_more_than_was_received_is_invalid() {
        let mapped = |more: u64| {
            one_arm_trial(|slice| {
                let rx = slice.rx.as_mut().unwrap();
                rx.mapped_bytes = Some(rx.bytes + more);
            })
        };
        check_gate(mapped_bytes, &mapped(0), None);
        check_gate(mapped_bytes, &mapped(1), Some("bytes mapped of"));
    }

    #[test]
    fn fixed_work_arrives_whole_and_a_window_may_not() {
        let mut less = one_arm_trial(|slice| slice.rx.as_mut().unwrap().bytes -= 1);
        check_gate(received_bytes, &less, Some("in slices of fixed work"));
        less.header.plan.schedule = Schedule::Window { window: Nanos::SECOND };
        check_gate(received_bytes, &less, None);
        for slice in &mut less.trials[0].slices {
            slice.rx.as_mut().unwrap().bytes -= (4 << 20) + 1;
        }
        check_gate(received_bytes, &less, Some("the socket buffers hold 4194304"));
    }

    #[test]
    fn what_a_transport_may_lose_is_said_and_not_refused() {
        let mut less = one_arm_trial(|slice| {
            let rx = slice.rx.as_mut().unwrap();
            rx.bytes -= rx.bytes / 4;
        });
        check_gate(received_bytes, &less, Some("in slices of fixed work"));
        less.header.primitives = vec![PrimitiveFacts {
            id: "base".to_owned(),
            summary: String::new(),
            family: iolens_model::family::Family::Plain,
            condition: None,
            transport: Transport::Udp,
            data_path: DataPath { hops: Vec::new().into(), calls: CallsPerMessage::Fixed(1) },
        }];
        check_gate(received_bytes, &less, Some("flag"));
        let [whole, lossy] = [&one_arm_trial(|_| {}), &less].map(|run| {
            crate::quantity::Quantity::Time.of_trial(&crate::sums::sums(&run.trials[0])[0]).unwrap()
        });
        assert_eq!((whole.over, whole.under * 0.75), (lossy.over, lossy.under));
    }

    #[test]
    fn a_receiver_that_missed_slices_is_invalid_and_none_at_all_is_not() {
        let mut missed = one_arm_trial(|_| {});
        missed.trials[0].slices[1].rx = None;
        check_gate(received_bytes, &missed, Some("counted 3 of 4 measured slices"));
        check_gate(received_bytes, &one_arm_trial(|slice| slice.rx = None), None);
    }

    #[test]
    fn messages_times_size_are_the_bytes() {
        check_gate(bytes_sent, &one_arm_trial(|_| {}), None);
        let short = one_arm_trial(|slice| slice.tx.bytes -= 1);
        check_gate(bytes_sent, &short, Some("messages of 1024 B are"));
        let huge = one_arm_trial(|slice| slice.tx.messages = u64::MAX / 8);
        check_gate(bytes_sent, &huge, Some("were counted"));
    }

    #[test]
    fn a_call_has_the_bytes_and_the_system_calls_that_its_entry_says() {
        let run = |calls: u32, bytes: u32| {
            let mut run = one_arm_trial(|slice| slice.tx.calls = Some(2 * slice.tx.messages));
            run.trials[0].cell.setting = Setting::Syscall(SyscallSetting { in_a_row: None });
            run.trials[0].cell.size = Bytes(0);
            let id = run.trials[0].arms[0].arm.primitive.clone();
            let (kind, summary) = (CallKind::Bytes, String::new());
            run.header.calls = vec![CallFacts { id, kind, summary, calls, bytes, most: None }];
            run
        };
        check_gate(bytes_sent, &run(2, 1024), None);
        check_gate(system_calls, &run(2, 1024), None);
        check_gate(bytes_sent, &run(2, 1), Some("calls of 1 B are"));
        check_gate(system_calls, &run(1, 1024), Some("system calls, but"));
        let sized = |bytes: u32, size: u64| {
            let mut run = run(2, bytes);
            run.trials[0].cell.size = Bytes(size);
            run
        };
        check_gate(bytes_sent, &sized(1, 1024), None);
        check_gate(bytes_sent, &sized(1, 4096), Some("calls of 4096 B are"));
        check_gate(bytes_sent, &sized(0, 1024), Some("calls of 0 B are"));
    }

    #[test]
    fn more_cpu_than_time_is_invalid() {
        check_gate(cpu_time, &one_arm_trial(|_| {}), None);
        let twice = one_arm_trial(|slice| slice.tx.task_clock_ns = Some(slice.tx.time_ns * 2));
        check_gate(cpu_time, &twice, Some("ns of CPU at the sending end"));
        let receiver = one_arm_trial(|slice| {
            slice.rx.as_mut().unwrap().task_clock_ns = Some(slice.tx.time_ns * 2);
        });
        check_gate(cpu_time, &receiver, Some("ns of CPU at the receiving end"));
    }

    #[test]
    fn threads_of_the_kernels_may_use_other_processors() {
        let mut twice = one_arm_trial(|slice| slice.tx.task_clock_ns = Some(slice.tx.time_ns * 2));
        twice.trials[0].arms[0].arm.primitive = "uring_fixed".to_owned();
        twice.header.host.cpus = vec![0, 1];
        check_gate(cpu_time, &twice, None);
        twice.header.host.cpus = vec![0];
        check_gate(cpu_time, &twice, Some("with 1 processors"));
    }

    #[test]
    fn what_brackets_add_is_allowed() {
        let edges = one_arm_trial(|slice| {
            slice.tx.task_clock_ns = Some(slice.tx.time_ns + slice.tx.time_ns / 25);
        });
        check_gate(cpu_time, &edges, None);
    }

    #[test]
    fn parts_longer_than_the_whole_are_invalid() {
        check_gate(time_within_trial, &one_arm_trial(|_| {}), None);
        let mut short = one_arm_trial(|_| {});
        short.trials[0].duration_ns = 1000;
        check_gate(time_within_trial, &short, Some("in a trial of 1000 ns"));
        let active = one_arm_trial(|slice| slice.all_active_ns = slice.tx.time_ns + 1);
        check_gate(time_within_trial, &active, Some("all threads at work for"));
    }

    /// Four slices that count this each.
    fn run(
        sends: u64,
        completions: u64,
        copied: impl Into<Option<u64>> + Copy,
        enobufs: u64,
    ) -> Run {
        one_arm_trial(|slice| {
            let copied = copied.into();
            let counts = ZerocopyCounts::none(copied);
            slice.tx.zerocopy = Some(ZerocopyCounts { sends, completions, enobufs, ..counts });
        })
    }

    #[test]
    fn every_send_completes_once() {
        check_gates(&run(10, 10, 10, 0), None);
        check_gates(&run(10, 10, None, 0), None);
        let gate = |rest: &str| format!("zero-copy completions: {rest}");
        check_gates(&run(10, 9, 0, 0), Some(&gate("40 zero-copy sends and 36 completions")));
        check_gates(&run(10, 11, 0, 0), Some(&gate("40 zero-copy sends and 44 completions")));
        check_gates(&run(10, 10, 11, 0), Some(&gate("44 of 40 completions say")));
    }

    /// What is said of the arm.
    fn remarks(run: &Run) -> Vec<RemarkKind> {
        analyse(run).cells.remove(0).remarks.into_iter().map(|remark| remark.kind).collect()
    }

    #[test]
    fn refusals_and_late_copies_are_noted() {
        let (what, trials, of) = (Event::ZeroCopyRefused, 1, 1);
        let refused = RemarkKind::Events { what, count: 12, lasted_ns: None, trials, of };
        assert_eq!(remarks(&run(10, 10, 0, 3)), [refused]);
        let copied = RemarkKind::Copied { share: 1.0, tapped: false };
        assert_eq!(remarks(&run(10, 10, 10, 0)), [copied]);
        assert_eq!(remarks(&run(100, 100, 5, 0)), []);
    }

    #[test]
    fn a_packet_tap_is_said_once_and_only_beside_zero_copy() {
        let taps = |run: &Run| {
            let tap = Warning::Circumstance(Circumstance::PacketTap);
            let is_tap = |warning: &&Warning| **warning == tap;
            analyse(run).warnings.iter().filter(is_tap).count()
        };
        let tapped = |mut run: Run| {
            run.trials[0].rx.as_mut().unwrap().packet_taps = Some(1);
            taps(&run)
        };
        assert_eq!(tapped(run(10, 10, 10, 0)), 1);
        let mut beside = run(10, 10, 10, 0);
        beside.trials[0].tx.as_mut().unwrap().packet_taps = Some(1);
        assert_eq!(remarks(&beside), [RemarkKind::Copied { share: 1.0, tapped: true }]);
        assert_eq!(tapped(one_arm_trial(|_| {})), 0);
        assert_eq!(taps(&run(10, 10, 10, 0)), 0);
    }
}
