//! The gates of servers, each with what it lets pass and what it finds.

use iolens_model::arm::ArmOutcome;
use iolens_model::load::NetworkCounts;
use iolens_model::outcome::SliceOutcome;
use iolens_model::plan::Axes;
use iolens_model::run::Run;
use iolens_model::server::{LoadLevel, Throttled};
use iolens_model::units::Nanos;

use super::*;
use crate::fixture::servers::{CONNECTIONS, one};
use crate::fixture::{MESSAGES, asked, check_gate, check_gates};
use crate::gates::{counts, physical, scope};

const OPEN: LoadLevel = LoadLevel::Percent(50);
const CLOSED: LoadLevel = LoadLevel::Closed;

/// Four slices of 10 000 requests, 10 µs each, over 16 connections.
fn closed(change: impl Fn(&mut ServerArm)) -> Run {
    one(CLOSED, change)
}

fn slices(mut run: Run, change: impl Fn(&mut SliceOutcome)) -> Run {
    run.trials[0].slices.iter_mut().for_each(change);
    run
}

fn arm(mut run: Run, change: impl Fn(&mut ArmOutcome)) -> Run {
    change(&mut run.trials[0].arms[0]);
    run
}

#[test]
fn servers_as_they_should_be_pass() {
    for load in [CLOSED, OPEN] {
        check_gates(&one(load, |_| {}), None);
        let run = one(load, |_| {});
        for gate in [replies, outcomes, times, little, connections, client_busy, client_late] {
            check_gate(gate, &run, None);
        }
        for gate in [rate, wrong, timeouts, resets, refused, abandoned, listen_overflows] {
            check_gate(gate, &run, None);
        }
    }
}

#[test]
fn a_client_has_the_replies_that_the_server_gave() {
    let gate = "replies: the server answered";
    let more = slices(closed(|_| {}), |slice| slice.rx.as_mut().unwrap().messages += 1);
    check_gates(&more, Some(&format!("{gate} 40000 requests, and the client has 40004 right")));
    let fewer = slices(closed(|_| {}), |slice| slice.tx.messages += 2);
    check_gates(&fewer, Some(&format!("{gate} 40008 requests")));
    // Two of each slice timed out: on which side they were lost nobody knows.
    let lost = closed(|arm| {
        for slice in &mut arm.offered {
            (slice.outcomes.ok, slice.outcomes.timeout) = (MESSAGES - 2, 2);
        }
    });
    check_gate(replies, &slices(lost, |slice| slice.tx.messages += 2), None);
}

#[test]
fn requests_end_in_one_way_and_are_timed_once() {
    let odd = closed(|arm| arm.offered[1].scheduled += 1);
    check_gates(&odd, Some("requests due: 40001 requests were due, and 40000"));
    let untimed = arm(closed(|_| {}), |arm| {
        arm.latency.as_mut().unwrap().buckets[0].1 -= 1;
    });
    check_gates(&untimed, Some("times taken: 39999 times from due"));
    let early = closed(|arm| arm.from_sent.buckets[0].0 += 10_000);
    check_gate(times, &early, Some("ns from when they were due, which is earlier"));
}

/// 16 × 10 µs is what a request takes from sent in a closed loop.
#[test]
fn mean_time_times_rate_is_the_requests_in_flight() {
    let taking = |load, ns: u64| one(load, |arm| arm.from_sent.buckets[0].0 = ns);
    check_gate(little, &taking(CLOSED, 160_000), None);
    check_gate(little, &taking(CLOSED, 167_000), None);
    check_gate(little, &taking(CLOSED, 170_000), Some("17.00 requests in flight, and 16 can be"));
    check_gate(little, &taking(CLOSED, 120_000), Some("flag"));
    check_gate(little, &taking(CLOSED, 70_000), Some("7.00 requests in flight"));
    check_gates(&taking(CLOSED, 70_000), Some("requests in flight: "));
    // By a schedule there may be as few as there like, and no more than 16.
    check_gate(little, &taking(OPEN, 1000), None);
    check_gate(little, &taking(OPEN, 170_000), Some("requests in flight, and 16 can be"));
    let mut deep = taking(CLOSED, 320_000);
    let Axes::Server(axes) = &mut deep.header.plan.axes else { panic!("a plan of servers") };
    axes.in_flight = 2;
    check_gate(little, &deep, None);
}

/// With one request for each connection nobody waits long, and the last one for all.
#[test]
fn the_edges_of_a_slice_are_not_idle_time() {
    let mut run = closed(|arm| {
        let all = u64::from(CONNECTIONS) * 4;
        arm.from_sent.buckets = (1..=16).map(|nth| (nth * 10_000, all / 16)).collect();
    });
    for slice in &mut run.trials[0].slices {
        slice.tx.time_ns = 160_000;
    }
    check_gate(little, &run, None);
}

#[test]
fn connections_are_as_many_as_were_asked_for() {
    let gate = "connections as asked: 15 connections were made instead of 16";
    check_gates(&closed(|arm| arm.connects.made = 15), Some(gate));
    let part = closed(|arm| arm.requests_by_task = vec![MESSAGES, MESSAGES]);
    check_gate(connections, &part, Some("answered 20000 requests in the trial, and 40000 in"));
}

#[test]
fn a_wrong_reply_spoils_the_arm() {
    let run = closed(|arm| {
        (arm.offered[0].outcomes.ok, arm.offered[0].outcomes.invalid) = (MESSAGES - 1, 1);
    });
    check_gates(&run, Some("right replies: 1 replies were wrong"));
}

#[test]
fn what_a_load_shows_besides_the_server_is_flagged() {
    let busy = |percent: u64| {
        closed(move |arm| {
            for slice in &mut arm.offered {
                slice.threads[0].cpu = Nanos(slice.window.0 / 100 * percent);
            }
        })
    };
    check_gate(client_busy, &busy(89), None);
    check_gate(client_busy, &busy(91), Some("flag"));
    let spinning = closed(|arm| {
        for slice in &mut arm.offered {
            slice.threads[0].cpu = slice.window;
            slice.threads[0].spinning = Nanos(slice.window.0 / 2);
        }
    });
    check_gate(client_busy, &spinning, None);
    // p99 of the times from due is 8 µs by a schedule: make it 2 ms, and the lag more
    // or less than a tenth of it.
    let late = |lag_ns: u64| {
        let run = one(OPEN, |arm| arm.lag.buckets = vec![(1000, 39_000), (lag_ns, 1000)]);
        arm(run, |arm| arm.latency.as_mut().unwrap().buckets = vec![(2_000_000, 40_000)])
    };
    check_gate(client_late, &late(150_000), None);
    check_gate(client_late, &late(250_000), Some("flag"));
    let share = |replies: u64| {
        one(OPEN, move |arm| arm.offered.iter_mut().for_each(|s| s.replies_in_window = replies))
    };
    check_gate(rate, &share(MESSAGES / 100 * 98), None);
    check_gate(rate, &share(MESSAGES / 100 * 97), Some("flag"));
    let closed_loop = closed(|arm| arm.offered.iter_mut().for_each(|s| s.replies_in_window = 1));
    check_gate(rate, &closed_loop, None);
}

#[test]
fn how_requests_ended_otherwise_and_what_the_kernel_dropped_is_flagged() {
    let with = |change: fn(&mut ServerArm)| closed(change);
    check_gate(timeouts, &with(|arm| arm.offered[0].outcomes.timeout = 1), Some("flag"));
    check_gate(resets, &with(|arm| arm.offered[0].outcomes.reset = 1), Some("flag"));
    check_gate(refused, &with(|arm| arm.offered[0].outcomes.refused = 1), Some("flag"));
    check_gate(abandoned, &with(|arm| arm.offered[0].outcomes.abandoned = 1), Some("flag"));
    let network = |listen_overflows, listen_drops| {
        let counts = NetworkCounts { listen_overflows, listen_drops, retransmits: 0 };
        closed(move |arm| arm.offered[0].network = Some(counts))
    };
    check_gate(listen_overflows, &network(1, 1), Some("flag"));
    check_gate(listen_drops, &network(1, 1), None);
    check_gate(listen_drops, &network(0, 1), Some("flag"));
    // In two namespaces the server's is asked.
    let apart = closed(|arm| {
        let lost = NetworkCounts { listen_overflows: 1, ..NetworkCounts::default() };
        arm.offered[0].network = Some(lost);
        arm.offered.iter_mut().for_each(|s| s.server_network = Some(NetworkCounts::default()));
    });
    check_gate(listen_overflows, &apart, None);
}

/// Both ends read the counters of the one namespace that they are in.
#[test]
fn retransmits_of_one_namespace_count_once() {
    let mut run = closed(|arm| arm.offered[2].network.as_mut().unwrap().retransmits = 3);
    for slice in &mut run.trials[0].slices {
        slice.tx.retransmits = Some(3);
        slice.rx.as_mut().unwrap().retransmits = Some(3);
    }
    let expect = Flag::Events { what: Event::Retransmits, count: 3 };
    assert_eq!(asked(scope::retransmits, &run), remark(expect));
}

/// A server has as many threads as its model makes, and no more than its CPUs.
#[test]
fn cpu_time_is_bounded_by_the_processors_of_the_end() {
    let two = |run: &mut Run| {
        run.trials[0].tx.as_mut().unwrap().thread_cpus = vec![vec![0, 1]];
    };
    let working = |share: u64| {
        let double = |slice: &mut SliceOutcome| {
            slice.tx.task_clock_ns = Some(slice.tx.time_ns / 100 * share);
        };
        slices(closed(|_| {}), double)
    };
    check_gate(counts::cpu_time, &working(190), Some("with 1 processors"));
    let mut both = working(190);
    two(&mut both);
    check_gate(counts::cpu_time, &both, None);
    let mut more = working(220);
    two(&mut more);
    check_gate(counts::cpu_time, &more, Some("at the sending end in"));
}

/// Nobody counts a server's calls, and it makes some for every request.
#[test]
fn a_counter_of_the_kernel_that_stood_still_at_a_server_did_not_run() {
    let counted = |kernel: u64| {
        slices(closed(|_| {}), move |slice| {
            slice.tx.pmu.cycles_user = Some(1_000_000);
            slice.tx.pmu.cycles_kernel = Some(kernel);
        })
    };
    check_gate(physical::ran, &counted(9_000_000), None);
    check_gate(physical::ran, &counted(0), Some("flag"));
}

#[test]
fn pinned_servers_do_not_migrate() {
    let moved = slices(closed(|_| {}), |slice| slice.tx.kernel.perf_migrations = Some(1));
    check_gate(scope::migrations, &moved, Some("4 migrations at the pinned sending end"));
}

#[test]
fn a_median_is_no_less_than_a_copy_of_the_reply() {
    // 1 MiB at 10.5 GB/s takes 100 µs.
    let large = |ns: u64| {
        let run = closed(move |arm| arm.from_sent.buckets[0].0 = ns);
        slices(run, |slice| slice.tx.bytes = MESSAGES << 20)
    };
    check_gate(crate::gates::round_trips::median, &large(160_000), None);
    check_gate(crate::gates::round_trips::median, &large(60_000), Some("memcpy of a message"));
}

#[test]
fn a_server_has_the_threads_that_it_was_asked_for() {
    let tasks = |seen: u64, asked| {
        closed(move |arm| (arm.tasks_max, arm.tasks_asked) = (seen, Some(asked)))
    };
    check_gate(workers, &tasks(3, (3, Some(3))), None);
    check_gate(workers, &tasks(40, (16, None)), None);
    check_gate(workers, &tasks(2, (3, Some(3))), Some("2 threads or processes served"));
    check_gate(workers, &tasks(4, (3, Some(3))), Some("has at most 3"));
    check_gates(&tasks(15, (16, None)), Some("workers as asked: 15 threads"));
    check_gate(workers, &closed(|arm| arm.tasks_asked = None), None);
}

/// Both ends are in one cgroup, or in two: what held back either is in the times of both.
#[test]
fn what_a_cgroup_held_back_is_flagged_once() {
    let held = |server: u64, client: u64| {
        closed(move |arm| {
            let periods = |periods| Some(Throttled { periods, time: Nanos(1000) });
            arm.offered[1].throttled = [periods(server), periods(client)];
        })
    };
    check_gate(throttled, &held(0, 0), None);
    for run in [held(2, 3), held(3, 0)] {
        let expect = Flag::Events { what: Event::Throttled, count: 3 };
        assert_eq!(asked(throttled, &run), remark(expect));
    }
}
