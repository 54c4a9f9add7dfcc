//! Readings of a process, of its children and of a program, on the real kernel.

use std::sync::atomic::Ordering;

use iolens_sys::fork::{self, Patience};
use iolens_sys::shared::SharedNumbers;
use iolens_sys::usage::ThreadUsage;
use iolens_sys::{affinity, memory, poll};

use super::*;
use crate::skip;

/// Spends this much CPU time on the calling thread.
fn spend(ns: u64) {
    let end_ns = clock::thread_cpu_ns() + ns;
    while clock::thread_cpu_ns() < end_ns {
        std::hint::black_box(0);
    }
}

#[test]
fn children_count_while_they_live_and_once_they_have_ended() {
    const CHILD_NS: u64 = 20_000_000;
    let cpus = iolens_sys::affinity::thread_cpus().unwrap();
    let mut family = Family::open(&cpus, 1, Probes::default(), true);
    let before = family.before(&[]);
    let child = fork::start(|| {
        spend(CHILD_NS);
        loop {
            std::thread::park();
        }
    });
    let id = child.unwrap();
    while proc::charged(&Root::real(), id).is_some_and(|c| c.cpu_ns < CHILD_NS) {
        std::thread::yield_now();
    }
    let living = family.after(&[id]);
    let spent = family.between([&before, &living]).task_clock_ns.unwrap();
    assert!(spent >= CHILD_NS, "{spent} ns while it lives");
    fork::kill(id).unwrap();
    while !matches!(fork::ended(Patience::Waits), Ok(Some(_))) {}
    let ended = family.after(&[]);
    let all = family.between([&before, &ended]).task_clock_ns.unwrap();
    assert!(all >= spent - 4_000, "{all} ns once it has ended, {spent} ns before");
    assert!(family.between([&before, &ended]).run_delay_ns.is_none(), "tasks came and went");
}

#[test]
fn the_time_of_children_that_nobody_waits_for_is_not_known() {
    const READY: usize = 0;
    const GO: usize = 1;
    const DONE: usize = 2;
    let cpus = affinity::thread_cpus().unwrap();
    for ignores in [false, true] {
        let mut family = Family::open(&cpus, 1, Probes::default(), true);
        let told = SharedNumbers::new(3).unwrap();
        let tell = |what: usize| told.rows()[what][0].store(1, Ordering::SeqCst);
        let hear = |what: usize| {
            while told.rows()[what][0].load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
        };
        let program = fork::start(|| {
            if ignores {
                iolens_sys::signal::ignore_children().unwrap();
            }
            tell(READY);
            hear(GO);
            // User and kernel time of it are each told in whole ticks of 10 ms.
            let spends = || {
                spend(40_000_000);
                0
            };
            fork::start(spends).unwrap();
            while fork::ended(Patience::Waits).is_ok_and(|ended| ended.is_some()) {}
            tell(DONE);
            loop {
                std::thread::park();
            }
        });
        let id = program.unwrap();
        family.is_program(id);
        hear(READY);
        let before = family.before(&[id]);
        tell(GO);
        hear(DONE);
        let after = family.after(&[id]);
        let spent = family.between([&before, &after]).task_clock_ns;
        fork::kill(id).unwrap();
        while !matches!(fork::ended(Patience::Waits), Ok(Some(_))) {}
        assert_eq!(spent.is_none(), ignores, "{spent:?}");
        assert!(ignores || spent >= Some(20_000_000), "{spent:?}");
        let says = |missing: &NotMeasured| missing.why == NOT_WAITED_FOR;
        assert_eq!(family.missing().iter().any(says), ignores);
    }
}

#[test]
fn what_messengers_spend_is_left_out() {
    const EACH_NS: u64 = 20_000_000;
    let cpus = affinity::thread_cpus().unwrap();
    let mut family = Family::open(&cpus, 1, Probes::default(), true);
    family.leave_out(vec![process::thread_id()]);
    let before = family.before(&[]);
    spend(EACH_NS);
    std::thread::spawn(|| spend(EACH_NS)).join().unwrap();
    let after = family.after(&[]);
    let counts = family.between([&before, &after]);
    let spent_ns = counts.task_clock_ns.unwrap();
    // Other tests are threads of this process, too.
    assert!(spent_ns >= EACH_NS, "{spent_ns}");
    family.leave_out(Vec::new());
    let all = family.after(&[]).usage.unwrap().cpu_ns;
    let left_out = all - after.usage.unwrap().cpu_ns;
    assert!(left_out >= EACH_NS, "{left_out}");
}

/// Turns of a task that has no rest: in each it moves, waits, and touches fresh memory.
const TURNS: usize = 8;
const PAGES: usize = 16;

/// What the calling thread, or process of one thread, was charged when it has ended.
fn rests_nowhere(cpus: &[u32]) -> ThreadUsage {
    for turn in 0..TURNS {
        affinity::pin_thread(cpus[turn % cpus.len()]).unwrap();
        memory::touch_fresh_pages(PAGES).unwrap();
        poll::readable(&[], 1).unwrap();
    }
    usage::thread_usage().unwrap()
}

fn near(counted: Option<u64>, charged: u64, what: &str) {
    // Each task ends behind its last reading.
    let slack = 40 + charged / 50;
    let counted = counted.unwrap();
    assert!(counted.abs_diff(charged) <= slack, "{what}: counted {counted}, {charged} charged");
}

#[test]
fn events_of_later_threads_and_of_children_are_counted() {
    const THREADS: usize = 3;
    let cpus = affinity::thread_cpus().unwrap();
    let probes = Probes { software: true, ..Probes::default() };
    let mut family = Family::open(&cpus, 1, probes, true);
    if !family.counts_moves {
        let test = "worker::family::tests::events_of_later_threads_and_of_children_are_counted";
        return skip::note(test, "may not count at all");
    }
    let before = family.before(&[]);
    let own = usage::thread_usage().unwrap();
    let threads = [(); THREADS].map(|()| {
        let cpus = cpus.clone();
        std::thread::spawn(move || rests_nowhere(&cpus))
    });
    let mut charged = threads.map(|thread| thread.join().unwrap()).to_vec();
    let told = SharedNumbers::new(1).unwrap();
    let child = fork::start(|| {
        let usage = rests_nowhere(&cpus);
        let fields = [usage.minor_faults, usage.voluntary_switches, usage.involuntary_switches];
        let places = told.rows()[0].iter().zip(fields);
        places.for_each(|(place, field)| place.store(field, Ordering::SeqCst));
        0
    });
    child.unwrap();
    while !matches!(fork::ended(Patience::Waits), Ok(Some(_))) {}
    let field = |place: usize| told.rows()[0][place].load(Ordering::SeqCst);
    let [minor_faults, voluntary_switches, involuntary_switches] = [0, 1, 2].map(field);
    let child = ThreadUsage { minor_faults, voluntary_switches, involuntary_switches, ..own };
    let now = usage::thread_usage().unwrap();
    let after = family.after(&[]);
    let counts = family.between([&before, &after]);
    charged.push(child);
    let sum =
        |of: fn(&ThreadUsage) -> u64| charged.iter().map(of).sum::<u64>() + of(&now) - of(&own);
    let faults = sum(|usage| usage.minor_faults);
    let switches = sum(|usage| usage.voluntary_switches + usage.involuntary_switches);
    let tasks = THREADS as u64 + 1;
    assert!(faults >= tasks * (TURNS * PAGES) as u64 && switches >= tasks * TURNS as u64);
    near(counts.kernel.perf_minor_faults, faults, "faults");
    near(counts.kernel.perf_context_switches, switches, "switches");
    let moves = if cpus.len() > 1 { tasks * (TURNS as u64 - 1) } else { 0 };
    assert!(counts.migrations >= Some(moves), "{:?} of {moves}", counts.migrations);
    assert!(family.missing().iter().all(|missing| missing.metric != "migrations"));
}

#[test]
fn counters_that_are_closed_for_the_comparison_leave_the_reason_to_the_others() {
    let cpus = affinity::thread_cpus().unwrap();
    let probes = Probes { counting: Counting::Alternate, software: true, tracepoints: false };
    let mut closed = Family::open(&cpus, 1, probes, false);
    let edges = [closed.before(&[]), closed.after(&[])];
    let counts = closed.between([&edges[0], &edges[1]]);
    assert_eq!(counts.kernel, Default::default());
    assert!(counts.task_clock_ns.is_some());
    let reasons = closed.missing();
    assert!(reasons.iter().all(|missing| !missing.why.contains("off")), "{reasons:?}");
}
