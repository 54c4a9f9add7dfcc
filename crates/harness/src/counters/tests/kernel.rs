//! The real kernel, with the events that it counts by itself.

use iolens_sys::{clock, usage};

use super::*;
use crate::skip;

const fn software(metric: &'static str, kind: Kind, least: u64) -> Counter {
    Counter { metric, kind, mode: Mode::User, least }
}

/// What the kernel counts by itself, in two groups of the same shape. The
/// metrics are only places here.
const REAL: [GroupPlan; 2] = [
    GroupPlan {
        name: "clock",
        pinned: true,
        counters: &[
            software("cycles_user", Kind::TaskClock, 1000),
            software("cycles_kernel", Kind::PageFaults, 0),
        ],
    },
    GroupPlan {
        name: "faults",
        pinned: false,
        counters: &[
            software("instructions_user", Kind::PageFaults, 0),
            software("instructions_kernel", Kind::TaskClock, 1000),
        ],
    },
];

/// The software groups of the calling thread; `None` where none may be opened.
fn real_counters() -> Option<Counters> {
    let refused = Cell::new(false);
    let why = |_, errno| {
        assert_eq!(Refusal::from(errno), Refusal::NotPermitted);
        refused.set(true);
        String::new()
    };
    let tracepoint = |_: &str| Err("none is asked for".to_owned());
    let (lead, reach) = (&Group::lead, Reach::One);
    let source = Source { pmu: None, lead, tracepoint: &tracepoint, why: &why, reach };
    let counters = Counters::with(&source, &REAL, 1);
    (!refused.get()).then_some(counters)
}

/// What 40 MiB of new pages cost the calling thread by these counters, against
/// its own clock and its own usage; `None` where nothing may be counted.
///
/// Errors: what does not agree.
fn agreement_with_the_kernels_own() -> Option<Result<(), String>> {
    let mut counters = real_counters()?;
    assert_eq!(counters.missing(), []);
    let wall_ns = clock::monotonic_ns();
    let mut before = Snapshot::default();
    let allocated = allocation_counter::measure(|| before = counters.read_before());
    assert_eq!(allocated.count_total, 0, "reading allocates");
    let (usage, cpu_ns) = (usage::thread_usage().unwrap(), clock::thread_cpu_ns());
    // Beyond what the C library ever keeps for the next one (`M_MMAP_THRESHOLD`).
    std::hint::black_box(vec![1u8; 40 << 20]);
    let cpu_ns = clock::thread_cpu_ns() - cpu_ns;
    let now = usage::thread_usage().unwrap();
    // The event counts those that wait for a device, too.
    let faults = now.minor_faults - usage.minor_faults + now.major_faults - usage.major_faults;
    let after = counters.read_after();
    let wall_ns = clock::monotonic_ns() - wall_ns;
    let mut counts = [None; METRICS_MAX];
    let allocated = allocation_counter::measure(|| counts = counters.between([&before, &after]));
    assert_eq!(allocated.count_total, 0, "subtracting allocates");
    let [Some(task_clock), Some(own), Some(again), Some(outer_clock), ..] = counts else {
        panic!("{counts:?}, {:?}", counters.missing())
    };
    let told = format!(
        "{task_clock} and {outer_clock} ns counted, {cpu_ns} of the thread's clock, {wall_ns} \
         passed; {own} and {again} faults counted, {faults} of its usage"
    );
    assert!(task_clock <= wall_ns, "{told}");
    assert!(faults >= 1 && own.abs_diff(faults) <= 4, "{told}");
    assert!(again.abs_diff(own) <= 4, "both groups cover the same work: {told}");
    // The scheduler leaves out what the hypervisor stole, the event does not; the event leaves
    // out a part of each context switch.
    let slack_ns = task_clock / 50 + 1_000_000;
    let agree = task_clock + slack_ns >= cpu_ns && outer_clock.abs_diff(task_clock) <= slack_ns;
    Some(agree.then_some(()).ok_or(told))
}

#[test]
fn the_same_path_counts_what_the_kernel_counts_by_itself() {
    // What the hypervisor steals between two readings of a clock is in one of them alone: what
    // is wrong is so each time.
    let attempts = || {
        let mut told = Vec::new();
        while told.len() < 10 {
            match agreement_with_the_kernels_own()? {
                Ok(()) => return Some(()),
                Err(why) => told.push(why),
            }
        }
        panic!("{}", told.join("\n"))
    };
    // Four threads at once: each reads its own counters and nobody else's.
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(attempts)).collect();
    let counted: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    if counted.contains(&None) {
        let test = "counters::tests::kernel::the_same_path_counts_what_the_kernel_counts_by_itself";
        skip::note(test, "may not count at all");
    }
}
