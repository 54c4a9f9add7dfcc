//! Whether what was measured is what was asked for.

use iolens_model::arm::Role;
use iolens_model::axes::WorkingSet;
use iolens_model::outcome::{Counts, EndFacts, Environment};
use iolens_model::server::Throttled;

use super::case::{self, Case, Flag, Ruling, in_flight_bytes, invalid, once, remark};
use super::servers;
use crate::offered::Offered;
use crate::remark::{Circumstance, Event, Excess, Share, Whose};

/// From the last thread's first call to the first thread's last call is 90 %
/// of the slice, else the threads ran one after another for part of it.
///
/// The slice's time also holds the receipt: after the last call the receiver
/// still drains what is in flight, at most both socket buffers of each
/// connection. What that can explain is flagged; beyond it the arm is
/// invalid, except in oversubscribed cells (two threads per connection on
/// fewer CPUs), where threads cannot all run together.
pub(super) fn all_active(case: &Case<'_>) -> Option<Ruling> {
    const SHARE: f64 = 0.9;
    let sums = case.sums;
    let threads = case.trial.cell.threads;
    if threads <= 1 || sums.tx.time_ns == 0 {
        return None;
    }
    let share = sums.all_active_ns as f64 / sums.tx.time_ns as f64;
    if share >= SHARE {
        return None;
    }
    let plan = &case.header.plan;
    let cpus = plan.cpus.as_ref().unwrap_or(&case.header.host.cpus).len();
    let oversubscribed = u64::from(case.trial.cell.workers()) > cpus as u64;
    let drain = drain_share(case);
    if oversubscribed {
        return remark(Flag::Share { what: Share::TakingTurns, share });
    }
    if share + drain >= SHARE {
        return remark(Flag::Share { what: Share::AllAtWork, share });
    }
    let drained = match case.trial.cell.is_alone() {
        true => String::new(),
        false => {
            format!(", and draining the socket buffers explains at most {:.1}%", drain * 100.0)
        }
    };
    invalid(format!(
        "all {threads} threads were at work for {:.1}% of the slices' time{drained}",
        share * 100.0
    ))
}

/// The largest share of a slice that draining the socket buffers can take.
fn drain_share(case: &Case<'_>) -> f64 {
    let slice_bytes = case.sums.tx.bytes as f64 / f64::from(case.sums.slices.max(1));
    if slice_bytes == 0.0 {
        return 0.0;
    }
    (in_flight_bytes(case).unwrap_or(0) as f64 / slice_bytes).min(1.0)
}

/// Both ends saw what was asked for: size, threads, the socket settings as
/// the kernel reads them back, and the MTU of a device that we made.
pub(super) fn parameters(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    let ends = [("sending", &trial.tx, true), ("receiving", &trial.rx, case.sums.rx_slices > 0)];
    for (name, facts, needed) in ends {
        match facts {
            Some(facts) => {
                if let Some(difference) = difference(case, facts) {
                    return invalid(format!("the {name} end {difference}"));
                }
            }
            None if needed => return invalid(format!("the {name} end did not say what it ran")),
            None => {}
        }
    }
    None
}

fn difference(case: &Case<'_>, facts: &EndFacts) -> Option<String> {
    let cell = &case.trial.cell;
    if facts.message_bytes != cell.size.0 {
        let (ran, asked) = (facts.message_bytes, cell.size.0);
        return Some(format!("ran messages of {ran} B instead of {asked} B"));
    }
    if facts.threads != cell.threads {
        return Some(format!("ran {} threads instead of {}", facts.threads, cell.threads));
    }
    let (net, axes) = cell.net().zip(case.header.plan.net())?;
    let asked = axes.socket_options(&net.tuning);
    if let Some(congestion) = facts.congestion.as_ref().filter(|&name| *name != asked.congestion) {
        let asked = &asked.congestion;
        return Some(format!("used congestion control {congestion} instead of {asked}"));
    }
    if let Some(nodelay) = facts.nodelay.filter(|&nodelay| nodelay != asked.nodelay) {
        let asked = asked.nodelay;
        return Some(format!("reads TCP_NODELAY back as {nodelay} instead of {asked}"));
    }
    let asked = net.tuning.network().device_mtu_bytes(net.topology);
    if let Some((mtu, asked)) =
        facts.mtu_bytes.zip(asked).filter(|&(mtu, asked)| mtu != asked.into())
    {
        return Some(format!("has a device with an MTU of {mtu} B instead of {asked} B"));
    }
    None
}

/// Where calls are to poll the device, those of the receiving end found packets so.
pub(super) fn busy_polling(case: &Case<'_>) -> Option<Ruling> {
    let us = case.trial.cell.net()?.tuning.busy_poll_us.0.filter(|&us| us > 0)?;
    match case.trial.rx.as_ref().and_then(|facts| facts.busy_polled_packets) {
        Some(1..) => None,
        Some(0) => {
            invalid(format!("calls polled the device for up to {us} µs and found no packet"))
        }
        None => invalid("nothing says whether calls polled the device".to_owned()),
    }
}

/// The kernel grants a socket buffer of twice what was asked, up to twice
/// `net.core.wmem_max` or `rmem_max`: less is the same for all arms, and said.
pub(super) fn buffers(case: &Case<'_>) -> Option<Ruling> {
    let asked_bytes = case.trial.cell.net()?.tuning.socket_buffer_bytes.0;
    let mut granted = [&case.trial.tx, &case.trial.rx].into_iter().flatten().flat_map(|end| {
        [("SO_SNDBUF", end.send_buffer_bytes), ("SO_RCVBUF", end.receive_buffer_bytes)]
    });
    let (option, granted_bytes) = granted.find_map(|(option, bytes)| {
        Some((option, bytes.filter(|&bytes| bytes < asked_bytes.saturating_mul(2))? / 2))
    })?;
    once(Circumstance::SocketBuffer { option, granted_bytes, asked_bytes })
}

/// Rings that are called hot fit the L2 cache, or the cell says that they do
/// not; said once, beside the baseline.
pub(super) fn ring_size(case: &Case<'_>) -> Option<Ruling> {
    let hot = case.trial.cell.working_set() == Some(WorkingSet::Hot);
    let (true, Role::Baseline) = (hot, case.outcome.arm.role) else { return None };
    let (ring, l2) = (case.trial.tx.as_ref()?.ring_bytes?, case.header.host.l2.value()?);
    let ratio = ring as f64 / l2.0 as f64;
    remark(Flag::Excess { what: Excess::Rings, ratio }).filter(|_| ring > l2.0)
}

/// Ticks that the hypervisor gave to somebody else; of the trial, said beside
/// the baseline.
pub(super) fn steal(case: &Case<'_>) -> Option<Ruling> {
    stolen(case, Some(&case.trial.environment), Event::Stolen)
}

/// The same of the machine at the other end.
pub(super) fn steal_there(case: &Case<'_>) -> Option<Ruling> {
    let there = case.trial.far_environment.as_ref();
    stolen(case, there, Event::StolenThere)
}

fn stolen(case: &Case<'_>, environment: Option<&Environment>, what: Event) -> Option<Ruling> {
    let is_baseline = case.outcome.arm.role == Role::Baseline;
    case::events(what, *environment?.steal_ticks.value()?).filter(|_| is_baseline)
}

/// Periods in which cgroups held an end back, because the processor time that they allow was
/// spent: of servers in their slices, of others in the trial, said beside the baseline.
pub(super) fn throttled(case: &Case<'_>) -> Option<Ruling> {
    match case.trial.cell.server() {
        Some(_) => servers::throttled(case),
        None => held_back(case, Some(&case.trial.environment), Event::Throttled),
    }
}

/// The same of the machine at the other end.
pub(super) fn throttled_there(case: &Case<'_>) -> Option<Ruling> {
    let there = case.trial.far_environment.as_ref();
    held_back(case, there, Event::ThrottledThere)
}

fn held_back(case: &Case<'_>, of: Option<&Environment>, what: Event) -> Option<Ruling> {
    let is_baseline = case.outcome.arm.role == Role::Baseline;
    let &Throttled { periods, time } = of?.throttled.value().filter(|_| is_baseline)?;
    (periods > 0).then_some(Ruling::Flag(Flag::Lasting { what, count: periods, lasted_ns: time.0 }))
}

/// Who comes to a port for data without being one of ours moves no byte of a trial, but takes
/// time of the CPUs that are measured.
pub(super) fn strangers(case: &Case<'_>) -> Option<Ruling> {
    let ends = [&case.trial.tx, &case.trial.rx];
    let came = |of: fn(&EndFacts) -> Option<u64>, one: &str| match ends
        .into_iter()
        .flatten()
        .filter_map(of)
        .fold(0, u64::saturating_add)
    {
        0 => None,
        1 => Some(format!("a {one} that is not ours")),
        count => Some(format!("{count} {one}s that are not ours")),
    };
    let connections = came(|end| end.strangers, "connection");
    let datagrams = came(|end| end.strange_datagrams, "datagram");
    match [connections, datagrams].into_iter().flatten().collect::<Vec<_>>().join(" and ") {
        none if none.is_empty() => None,
        who => invalid(format!("{who} came to its port")),
    }
}

/// A thread that may run on one CPU only cannot move to another.
pub(super) fn migrations(case: &Case<'_>) -> Option<Ruling> {
    let trial = case.trial;
    let ends = [
        ("sending", &trial.tx, Some(&case.sums.tx)),
        ("receiving", &trial.rx, case.sums.received()),
    ];
    let mut unknown = Vec::new();
    let mut known = 0;
    for (name, facts, counts) in ends {
        let (Some(facts), Some(counts)) = (facts, counts) else { continue };
        let pinned = facts.is_pinned();
        // Of whole processes only perf counts them.
        match counts.migrations.or(counts.kernel.perf_migrations) {
            Some(moves) if pinned && moves > 0 => {
                return invalid(format!("{moves} migrations at the pinned {name} end"));
            }
            Some(_) => known += 1,
            None => unknown.push((name, why_not(facts, "migrations"))),
        }
    }
    let is_served = trial.cell.server().is_some();
    let whose = |name| match (known, is_served, name) {
        // Nobody's are known, and there is nothing to take it for.
        (0, ..) => None,
        (_, true, "sending") => Some(Whose::Server),
        (_, true, _) => Some(Whose::Client),
        (_, false, "sending") => Some(Whose::SendingEnd),
        (_, false, _) => Some(Whose::ReceivingEnd),
    };
    let (name, why) = unknown.first()?;
    let (whose, reason) = (whose(*name), why.map(str::to_owned));
    once(Circumstance::MigrationsNotMeasured { whose, reason })
}

fn why_not<'a>(facts: &'a EndFacts, metric: &str) -> Option<&'a str> {
    let entry = facts.not_measured.iter().find(|entry| entry.metric == metric);
    entry.map(|entry| entry.why.as_str())
}

/// Segments that were sent again cost time that no primitive is to blame for.
///
/// Those of servers are of the network namespace, and of one where both ends stand in it.
pub(super) fn retransmits(case: &Case<'_>) -> Option<Ruling> {
    const WHAT: Event = Event::Retransmits;
    let Some(offered) = Offered::of(case.trial, case.outcome) else {
        return events(case, WHAT, |counts| counts.retransmits);
    };
    let networks = [offered.client_network, offered.server_network];
    case::events(WHAT, networks.iter().flatten().map(|network| network.retransmits).sum())
}

/// A page fault that waited for a disk.
pub(super) fn major_faults(case: &Case<'_>) -> Option<Ruling> {
    let is_cold = case.trial.cell.cache().is_some_and(|cache| cache.is_cold());
    match is_cold {
        // What is mapped cold is read by such faults.
        true => None,
        false => events(case, Event::MajorFaults, |counts| counts.major_faults),
    }
}

fn events(case: &Case<'_>, what: Event, read: fn(&Counts) -> Option<u64>) -> Option<Ruling> {
    let sent = read(&case.sums.tx).unwrap_or(0);
    let received = case.sums.received().and_then(read).unwrap_or(0);
    case::events(what, sent.saturating_add(received))
}

#[cfg(test)]
mod tests {
    use iolens_model::axes::Topology;
    use iolens_model::cell::Setting;
    use iolens_model::load::Length;
    use iolens_model::outcome::SliceOutcome;
    use iolens_model::reading::{NotMeasured, Reading};
    use iolens_model::run::Run;
    use iolens_model::server::{LoadLevel, ServerSetting};
    use iolens_model::tuning::BusyPoll;
    use iolens_model::units::{Bytes, Nanos};

    use super::*;
    use crate::fixture::{check_gate, one_arm_trial, said_once};
    use crate::remark::RemarkKind;

    /// Two threads on eight CPUs, all at work for this share of each slice.
    fn two_threads(share_percent: u64) -> Run {
        let mut run = one_arm_trial(|_| {});
        run.header.host.cpus = (0..8).collect();
        let trial = &mut run.trials[0];
        trial.cell.threads = 2;
        for slice in &mut trial.slices {
            slice.all_active_ns = slice.tx.time_ns / 100 * share_percent;
        }
        for end in [&mut trial.tx, &mut trial.rx] {
            let end = end.as_mut().unwrap();
            (end.send_buffer_bytes, end.receive_buffer_bytes) = (Some(0), Some(0));
        }
        run
    }

    #[test]
    fn threads_that_did_not_run_together_are_invalid() {
        check_gate(all_active, &two_threads(95), None);
        check_gate(all_active, &two_threads(80), Some("all 2 threads were at work for 80.0%"));
    }

    #[test]
    fn oversubscribed_cells_and_receipts_are_flagged() {
        let mut crowded = two_threads(50);
        crowded.header.plan.cpus = Some(vec![0, 1]);
        check_gate(all_active, &crowded, Some("flag"));
        let mut draining = two_threads(80);
        let bytes = draining.trials[0].slices[0].tx.bytes;
        draining.trials[0].rx.as_mut().unwrap().receive_buffer_bytes = Some(bytes / 10);
        check_gate(all_active, &draining, Some("flag"));
    }

    #[test]
    fn buffers_that_were_capped_are_flagged() {
        let mut run = one_arm_trial(|_| {});
        check_gate(buffers, &run, None);
        run.trials[0].rx.as_mut().unwrap().receive_buffer_bytes = Some(425_984);
        check_gate(buffers, &run, Some("flag"));
    }

    #[test]
    fn periods_of_a_quota_are_flagged_with_their_time() {
        let held = |periods| Reading::Exact(Throttled { periods, time: Nanos(7 * periods) });
        let mut run = one_arm_trial(|_| {});
        run.trials[0].arms[0].arm.role = Role::Baseline;
        check_gate(throttled, &run, None);
        run.trials[0].environment.throttled = held(0);
        check_gate(throttled, &run, None);
        run.trials[0].environment.throttled = held(2);
        check_gate(throttled, &run, Some("flag"));
        check_gate(throttled_there, &run, None);
        let mut there = Environment::unknown("not in a fixture");
        there.throttled = held(3);
        run.trials[0].far_environment = Some(there);
        check_gate(throttled_there, &run, Some("flag"));
        let said = |what, count, lasted_ns| {
            let (trials, of) = (1, 1);
            RemarkKind::Events { what, count, lasted_ns: Some(lasted_ns), trials, of }
        };
        let remarks = crate::analyse(&run).cells.remove(0).remarks;
        let kinds: Vec<RemarkKind> = remarks.into_iter().map(|remark| remark.kind).collect();
        let expect = [said(Event::Throttled, 2, 14), said(Event::ThrottledThere, 3, 21)];
        assert_eq!(kinds, expect);
    }

    #[test]
    fn stolen_ticks_and_rings_beyond_l2_are_flagged() {
        let mut run = one_arm_trial(|_| {});
        run.trials[0].arms[0].arm.role = Role::Baseline;
        run.trials[0].environment.steal_ticks = Reading::Exact(0);
        check_gate(steal, &run, None);
        run.trials[0].environment.steal_ticks = Reading::Exact(2);
        check_gate(steal, &run, Some("flag"));
        check_gate(steal_there, &run, None);
        let mut there = Environment::unknown("not in a fixture");
        there.steal_ticks = Reading::Exact(3);
        run.trials[0].far_environment = Some(there);
        check_gate(steal_there, &run, Some("flag"));
        run.header.host.l2 = Reading::Exact(Bytes(1 << 20));
        run.trials[0].tx.as_mut().unwrap().ring_bytes = Some(1 << 20);
        check_gate(ring_size, &run, None);
        run.trials[0].tx.as_mut().unwrap().ring_bytes = Some(2 << 20);
        check_gate(ring_size, &run, Some("flag"));
    }

    #[test]
    fn strangers_at_the_port_make_a_trial_invalid() {
        let mut run = one_arm_trial(|_| {});
        for (count, expect) in [(None, None), (Some(0), None), (Some(3), Some("3 connections"))] {
            run.trials[0].rx.as_mut().unwrap().strangers = count;
            check_gate(strangers, &run, expect);
        }
        run.trials[0].tx.as_mut().unwrap().strange_datagrams = Some(1);
        let both = "3 connections that are not ours and a datagram that is not ours came to";
        check_gate(strangers, &run, Some(both));
        run.trials[0].rx.as_mut().unwrap().strangers = None;
        check_gate(strangers, &run, Some("a datagram that is not ours came to its port"));
    }

    #[test]
    fn one_thread_is_always_alone_at_work() {
        check_gate(all_active, &one_arm_trial(|slice| slice.all_active_ns = 0), None);
    }

    #[test]
    fn ends_that_ran_something_else_are_invalid() {
        check_gate(parameters, &one_arm_trial(|_| {}), None);
        let check = |change: fn(&mut EndFacts), expect: &str| {
            for end in ["sending", "receiving"] {
                let mut run = one_arm_trial(|_| {});
                let trial = &mut run.trials[0];
                let facts = if end == "sending" { &mut trial.tx } else { &mut trial.rx };
                change(facts.as_mut().unwrap());
                check_gate(parameters, &run, Some(&format!("the {end} end {expect}")));
            }
        };
        check(|end| end.message_bytes = 1, "ran messages of 1 B instead of 1024 B");
        check(|end| end.threads = 7, "ran 7 threads instead of 1");
        check(|end| end.congestion = Some("bbr".into()), "used congestion control bbr");
        check(|end| end.nodelay = Some(false), "reads TCP_NODELAY back as false");
    }

    #[test]
    fn the_mtu_is_checked_where_the_device_is_ours() {
        let mut run = one_arm_trial(|_| {});
        let device = |run: &mut Run, mtu| run.trials[0].rx.as_mut().unwrap().mtu_bytes = Some(mtu);
        device(&mut run, 65_536);
        check_gate(parameters, &run, None);
        run.trials[0].cell.net_mut().unwrap().topology = Topology::Veth;
        let reason = "the receiving end has a device with an MTU of 65536 B instead of 1500 B";
        check_gate(parameters, &run, Some(reason));
        device(&mut run, 1500);
        check_gate(parameters, &run, None);
    }

    #[test]
    fn polling_has_to_find_packets() {
        let mut run = one_arm_trial(|_| {});
        let mut check = |asked, found, expect| {
            run.trials[0].cell.net_mut().unwrap().tuning.busy_poll_us = BusyPoll(asked);
            run.trials[0].rx.as_mut().unwrap().busy_polled_packets = found;
            check_gate(busy_polling, &run, expect);
        };
        check(None, None, None);
        check(Some(0), Some(0), None);
        check(Some(50), Some(1), None);
        let none = "calls polled the device for up to 50 µs and found no packet";
        check(Some(50), Some(0), Some(none));
        check(Some(50), None, Some("nothing says whether calls polled the device"));
    }

    #[test]
    fn an_end_without_tcp_has_no_socket_settings_to_check() {
        let mut run = one_arm_trial(|_| {});
        let tx = run.trials[0].tx.as_mut().unwrap();
        (tx.congestion, tx.nodelay) = (None, None);
        check_gate(parameters, &run, None);
    }

    #[test]
    fn an_end_that_says_nothing_is_invalid_where_it_took_part() {
        let mut run = one_arm_trial(|_| {});
        run.trials[0].rx = None;
        check_gate(parameters, &run, Some("the receiving end did not say what it ran"));
        let mut control = one_arm_trial(|slice| slice.rx = None);
        control.trials[0].rx = None;
        check_gate(parameters, &control, None);
    }

    #[test]
    fn pinned_threads_that_moved_are_invalid() {
        check_gate(migrations, &one_arm_trial(|_| {}), None);
        let mut moved = one_arm_trial(|slice| slice.tx.migrations = Some(1));
        check_gate(migrations, &moved, Some("4 migrations at the pinned sending end"));
        moved.trials[0].tx.as_mut().unwrap().thread_cpus = vec![vec![0, 1]];
        check_gate(migrations, &moved, None);
    }

    #[test]
    fn unmeasured_migrations_are_said_with_their_reason() {
        let mut run = one_arm_trial(|slice| slice.tx.migrations = None);
        run.trials[0].tx.as_mut().unwrap().not_measured =
            vec![NotMeasured { metric: "migrations".into(), why: "no sched file".into() }];
        check_gate(migrations, &run, Some("flag"));
        let said = |run: &_| said_once(migrations, run);
        let end = Some(Whose::SendingEnd);
        assert_eq!(said(&run), missing(end, Some("no sched file")));
        let neither = one_arm_trial(|slice| {
            slice.tx.migrations = None;
            slice.rx.as_mut().unwrap().migrations = None;
        });
        assert_eq!(said(&neither), missing(None, None));
    }

    fn missing(whose: Option<Whose>, reason: Option<&str>) -> Circumstance {
        Circumstance::MigrationsNotMeasured { whose, reason: reason.map(str::to_owned) }
    }

    /// A server's processes end and a client's threads last for a slice: seldom both are known.
    #[test]
    fn unmeasured_migrations_of_a_server_or_its_client_are_named_as_theirs() {
        let served = |change: fn(&mut SliceOutcome)| {
            let mut run = one_arm_trial(change);
            let trial = &mut run.trials[0];
            trial.cell.setting = Setting::Server(ServerSetting {
                topology: Topology::Loopback,
                service: "echo".into(),
                length: Length::Long,
                load: LoadLevel::Closed,
                connections: 1,
            });
            for end in [&mut trial.tx, &mut trial.rx].into_iter().flatten() {
                let why = "they came and went".into();
                end.not_measured = vec![NotMeasured { metric: "migrations".into(), why }];
            }
            said_once(migrations, &run)
        };
        let server = served(|slice| slice.tx.migrations = None);
        let why = Some("they came and went");
        assert_eq!(server, missing(Some(Whose::Server), why));
        let client = served(|slice| slice.rx.as_mut().unwrap().migrations = None);
        assert_eq!(client, missing(Some(Whose::Client), why));
        let neither = served(|slice| {
            slice.tx.migrations = None;
            slice.rx.as_mut().unwrap().migrations = None;
        });
        assert_eq!(neither, missing(None, why));
    }

    #[test]
    fn retransmits_and_major_faults_are_flagged() {
        check_gate(retransmits, &one_arm_trial(|_| {}), None);
        check_gate(retransmits, &one_arm_trial(|s| s.tx.retransmits = Some(3)), Some("flag"));
        check_gate(major_faults, &one_arm_trial(|_| {}), None);
        let faults = one_arm_trial(|s| s.rx.as_mut().unwrap().major_faults = Some(1));
        check_gate(major_faults, &faults, Some("flag"));
    }
}
