//! Counters on a scripted PMU, for what hardware does, and on the real kernel
//! with the events that it counts by itself.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use iolens_sys::perf_event::{Event, Kind, Mode, Options, Refusal, Times};
use iolens_sys::{clock, usage};

use super::table::{Counter, Llc, table};
use super::*;

#[path = "../../../../tests/support/skip.rs"]
mod skip;

/// What every event counts from one reading to the next, and in what time.
const COUNT: u64 = 500_000;
const STEP_NS: u64 = 1_000_000;

// errno(3), on every architecture.
const ENOENT: i32 = 2;
const EIO: i32 = 5;
const EACCES: i32 = 13;

/// A PMU that does what a test says.
struct Pmu {
    /// Counters that it has.
    room: usize,
    /// The error of opening an event.
    refuses: fn(&Event) -> Option<i32>,
    /// Whether an event counts nothing.
    is_dead: fn(&Event) -> bool,
    /// The part of the time, in percent, in which it is somebody else's.
    stolen_percent: Cell<u64>,
    /// The error of every reading from now on.
    broken: Cell<Option<i32>>,
    /// The open groups: number, whether pinned, events.
    groups: RefCell<Vec<(usize, bool, usize)>>,
    opened: Cell<usize>,
}

impl Pmu {
    fn with_room_for(room: usize) -> Pmu {
        Pmu {
            room,
            refuses: |_| None,
            is_dead: |_| false,
            stolen_percent: Cell::new(0),
            broken: Cell::new(None),
            groups: RefCell::default(),
            opened: Cell::new(0),
        }
    }

    /// Pinned groups come first, then the others in their order.
    fn is_on(&self, number: usize) -> bool {
        let groups = self.groups.borrow();
        let mut room = self.room;
        for wanted in [true, false] {
            for &(other, _, events) in groups.iter().filter(|(_, pinned, _)| *pinned == wanted) {
                let fits = events <= room;
                room -= if fits { events } else { 0 };
                if other == number {
                    return fits;
                }
            }
        }
        unreachable!("the group is open")
    }

    fn counters(self, turn: u32) -> (Rc<Pmu>, Counters<Scripted>) {
        let pmu = Rc::new(self);
        let lead = |event: &Event, options: Options| Scripted::lead(&pmu, event, options);
        let why = |event: Event, errno: Errno| format!("{event}: {errno}");
        let source = Source { pmu: None, lead: &lead, why: &why };
        let counters = Counters::with(&source, &table(Llc::Architectural), turn);
        (pmu, counters)
    }
}

/// A group on it.
struct Scripted {
    pmu: Rc<Pmu>,
    number: usize,
    events: Vec<Event>,
    times: Times,
    values: Vec<u64>,
    enabled: Cell<bool>,
}

impl Scripted {
    fn lead(pmu: &Rc<Pmu>, event: &Event, options: Options) -> Result<Scripted, Errno> {
        let number = pmu.opened.replace(pmu.opened.get() + 1);
        pmu.groups.borrow_mut().push((number, options.pinned, 0));
        let mut group = Scripted {
            pmu: Rc::clone(pmu),
            number,
            events: Vec::new(),
            times: Times::default(),
            values: Vec::new(),
            enabled: Cell::new(false),
        };
        group.add(event)?;
        Ok(group)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.pmu.groups.borrow_mut().retain(|(number, _, _)| *number != self.number);
    }
}

impl EventGroup for Scripted {
    fn add(&mut self, event: &Event) -> Result<(), Errno> {
        if let Some(raw) = (self.pmu.refuses)(event) {
            return Err(Errno::from_raw(raw));
        }
        self.events.push(*event);
        self.values.push(0);
        let mut groups = self.pmu.groups.borrow_mut();
        groups.iter_mut().filter(|group| group.0 == self.number).for_each(|group| group.2 += 1);
        Ok(())
    }

    fn enable(&self) -> Result<(), Errno> {
        self.enabled.set(true);
        Ok(())
    }

    fn read(&mut self, values: &mut [u64]) -> Result<Times, Errno> {
        assert!(self.enabled.get());
        let is_on = self.pmu.is_on(self.number);
        let (_, pinned, _) =
            *self.pmu.groups.borrow().iter().find(|group| group.0 == self.number).unwrap();
        match self.pmu.broken.get() {
            Some(raw) => return Err(Errno::from_raw(raw)),
            None if pinned && !is_on => return Err(Errno::ENODATA),
            None => {}
        }
        let percent = if is_on { 100 - self.pmu.stolen_percent.get() } else { 0 };
        self.times.enabled_ns += STEP_NS;
        self.times.running_ns += STEP_NS / 100 * percent;
        for (value, event) in self.values.iter_mut().zip(&self.events) {
            *value += if (self.pmu.is_dead)(event) { 0 } else { COUNT / 100 * percent };
        }
        values.copy_from_slice(&self.values);
        Ok(self.times)
    }
}

/// One slice.
fn slice<G: EventGroup>(counters: &mut Counters<G>) -> [Option<u64>; METRICS_MAX] {
    let before = counters.read_before();
    let after = counters.read_after();
    counters.between([&before, &after])
}

/// The metrics without a value, each of which must have exactly one reason,
/// which holds `reason`.
fn check_missing<G: EventGroup>(counters: &mut Counters<G>, metrics: &[&str], reason: &str) {
    let counts = slice(counters);
    let missing = counters.missing();
    for (name, count) in PmuCounts::NAMES.into_iter().zip(counts) {
        let reasons: Vec<&str> =
            missing.iter().filter(|m| m.metric == name).map(|m| m.why.as_str()).collect();
        if metrics.contains(&name) {
            assert_eq!(count, None, "{name}");
            assert!(reasons.len() == 1 && reasons[0].contains(reason), "{name}: {reasons:?}");
        } else {
            assert_eq!((count, reasons), (Some(COUNT), vec![]), "{name}");
        }
    }
    let counted: Vec<&str> =
        PmuCounts::NAMES.into_iter().filter(|name| !metrics.contains(name)).collect();
    assert_eq!(counters.counted(), counted);
}

const CORE: [&str; 4] =
    ["cycles_user", "cycles_kernel", "instructions_user", "instructions_kernel"];
const L1D: [&str; 2] = ["l1d_loads", "l1d_misses"];
const LLC: [&str; 2] = ["llc_references", "llc_misses"];

#[test]
fn a_pmu_with_room_counts_everything() {
    let (_pmu, mut counters) = Pmu::with_room_for(8).counters(1);
    check_missing(&mut counters, &[], "");
    assert!(!counters.is_empty());
}

#[test]
fn groups_that_do_not_fit_together_take_turns_by_pass() {
    for (turn, absent) in [(1, L1D), (2, LLC), (3, L1D)] {
        let (pmu, mut counters) = Pmu::with_room_for(6).counters(turn);
        check_missing(&mut counters, &absent, "do not fit the PMU together: they take turns");
        assert_eq!(pmu.groups.borrow().len(), 2, "the absent group is closed");
    }
}

#[test]
fn a_refusal_is_noted_once_though_its_group_is_opened_twice() {
    let refuses = |event: &Event| (event.kind == Kind::CacheMisses).then_some(ENOENT);
    let (_pmu, counters) = Pmu { refuses, ..Pmu::with_room_for(6) }.counters(1);
    assert_eq!(counters.counted(), [&CORE[..], &["llc_references"]].concat());
    let metrics: Vec<String> = counters.missing().into_iter().map(|entry| entry.metric).collect();
    assert_eq!(metrics, ["llc_misses", "l1d_loads", "l1d_misses"]);
}

#[test]
fn a_group_for_which_there_is_no_room_at_all_never_counts() {
    let (_pmu, mut counters) = Pmu::with_room_for(5).counters(1);
    let missing = slice(&mut counters);
    assert_eq!(missing[..4], [Some(COUNT); 4]);
    assert_eq!(missing[4..], [None; 4]);
    let why = |name: &str| counters.missing().into_iter().find(|m| m.metric == name).unwrap().why;
    assert!(why("l1d_loads").contains("take turns"));
    assert!(why("llc_misses").contains("in its self-test: never ran; other users, or"));
}

#[test]
fn a_pinned_group_without_room_is_null_and_says_so() {
    let pmu = Pmu { refuses: |event| (event.mode == Mode::Any).then_some(ENOENT), ..small() };
    let (_pmu, counters) = pmu.counters(1);
    assert!(counters.is_empty());
    let missing = counters.missing();
    assert_eq!(missing.len(), METRICS_MAX);
    for entry in missing.iter().filter(|entry| CORE.contains(&entry.metric.as_str())) {
        assert!(entry.why.starts_with("could not be kept on the PMU"), "{}", entry.why);
    }
}

fn small() -> Pmu {
    Pmu::with_room_for(3)
}

#[test]
fn a_slice_in_which_the_pmu_was_shared_is_null_and_the_next_one_is_not() {
    let (pmu, mut counters) = Pmu::with_room_for(8).counters(1);
    pmu.stolen_percent.set(52);
    assert_eq!(slice(&mut counters), [None; METRICS_MAX], "nothing is scaled");
    let missing = counters.missing();
    assert_eq!(missing.len(), METRICS_MAX);
    for entry in &missing {
        let expected = "shared the PMU: ran about 50 % of the time; a count of a part of a slice \
                        is not scaled up";
        assert_eq!(entry.why, expected);
    }
    pmu.stolen_percent.set(0);
    assert_eq!(slice(&mut counters), [Some(COUNT); METRICS_MAX]);
    assert_eq!(counters.missing().len(), METRICS_MAX, "the lost slice stays known");
}

#[test]
fn a_pmu_that_is_shared_during_the_self_test_is_not_believed() {
    let pmu = Pmu { stolen_percent: Cell::new(52), ..Pmu::with_room_for(8) };
    let (_pmu, counters) = pmu.counters(1);
    assert!(counters.is_empty());
    let missing = counters.missing();
    assert_eq!(missing.len(), METRICS_MAX);
    let core = missing.iter().find(|entry| entry.metric == CORE[0]).unwrap();
    assert!(core.why.contains("ran about 50 % of the time"), "{}", core.why);
}

#[test]
fn a_counter_that_reads_zero_is_null_and_its_neighbours_are_not() {
    let dead = |event: &Event| event.kind == Kind::Instructions && event.mode == Mode::Kernel;
    let (_pmu, mut counters) = Pmu { is_dead: dead, ..Pmu::with_room_for(8) }.counters(1);
    check_missing(&mut counters, &["instructions_kernel"], "read 0 in its self-test");
}

#[test]
fn a_pmu_that_reads_zero_everywhere_is_closed() {
    let (pmu, counters) = Pmu { is_dead: |_| true, ..Pmu::with_room_for(8) }.counters(1);
    assert!(counters.is_empty());
    assert_eq!(pmu.groups.borrow().len(), 0);
    let missing = counters.missing();
    let why = |name: &str| &missing.iter().find(|entry| entry.metric == name).unwrap().why;
    assert!(why("llc_references").starts_with("read 0 in its self-test"));
    // The loop need not miss there, so zero is no proof by itself.
    assert!(why("llc_misses").contains("no other counter of its group counts"));
}

#[test]
fn what_may_not_be_counted_is_left_out_of_its_group() {
    let refuses = |event: &Event| (event.mode != Mode::User).then_some(EACCES);
    let (_pmu, mut counters) = Pmu { refuses, ..Pmu::with_room_for(8) }.counters(1);
    let absent = [&["cycles_kernel", "instructions_kernel"][..], &L1D, &LLC].concat();
    check_missing(&mut counters, &absent, "EACCES");
}

#[test]
fn a_group_whose_first_event_is_refused_is_led_by_the_next() {
    let refuses = |event: &Event| (event.kind == Kind::L1dLoads).then_some(ENOENT);
    let (_pmu, mut counters) = Pmu { refuses, ..Pmu::with_room_for(8) }.counters(1);
    check_missing(&mut counters, &["l1d_loads"], "L1-dcache-loads: ENOENT");
}

#[test]
fn a_reading_that_fails_publishes_nothing() {
    let (pmu, mut counters) = Pmu::with_room_for(8).counters(1);
    pmu.broken.set(Some(EIO));
    assert_eq!(slice(&mut counters), [None; METRICS_MAX]);
    assert!(counters.missing()[0].why.starts_with("cannot read the counters: EIO"));
}

const fn software(metric: &'static str, kind: Kind, least: u64) -> Counter {
    Counter { metric, kind, mode: Mode::User, least }
}

/// What the kernel counts by itself, in two groups of the same shape.
const SOFTWARE: [GroupPlan; 2] = [
    GroupPlan {
        name: "clock",
        pinned: true,
        counters: &[
            software("task_clock", Kind::TaskClock, 1000),
            software("page_faults", Kind::PageFaults, 0),
        ],
    },
    GroupPlan {
        name: "faults",
        pinned: false,
        counters: &[
            software("page_faults", Kind::PageFaults, 0),
            software("task_clock", Kind::TaskClock, 1000),
        ],
    },
];

/// The software groups of the calling thread; null where none may be opened.
fn real_counters() -> Option<Counters> {
    let refused = Cell::new(false);
    let why = |_, errno| {
        assert_eq!(Refusal::from(errno), Refusal::NotPermitted);
        refused.set(true);
        String::new()
    };
    let source = Source { pmu: None, lead: &Group::lead, why: &why };
    let counters = Counters::with(&source, &SOFTWARE, 1);
    (!refused.get()).then_some(counters)
}

#[test]
fn the_same_path_counts_what_the_kernel_counts_by_itself() {
    let count = || {
        let mut counters = real_counters()?;
        assert_eq!(counters.missing(), []);
        let wall_ns = clock::monotonic_ns();
        let mut before = Snapshot::default();
        let allocated = allocation_counter::measure(|| before = counters.read_before());
        assert_eq!(allocated.count_total, 0, "reading allocates");
        let (faults, cpu_ns) =
            (usage::thread_usage().unwrap().minor_faults, clock::thread_cpu_ns());
        let fresh = vec![1u8; 16 << 20];
        std::hint::black_box(&fresh);
        let cpu_ns = clock::thread_cpu_ns() - cpu_ns;
        let faults = usage::thread_usage().unwrap().minor_faults - faults;
        let after = counters.read_after();
        let wall_ns = clock::monotonic_ns() - wall_ns;
        let mut counts = [None; METRICS_MAX];
        let allocated =
            allocation_counter::measure(|| counts = counters.between([&before, &after]));
        assert_eq!(allocated.count_total, 0, "subtracting allocates");
        let [Some(task_clock), Some(own), Some(again), Some(outer_clock), ..] = counts else {
            panic!("{counts:?}, {:?}", counters.missing())
        };
        // The scheduler leaves out what the hypervisor stole, the event does
        // not; the event leaves out a part of each context switch.
        assert!(task_clock + cpu_ns / 50 + 1_000_000 >= cpu_ns, "{task_clock} {cpu_ns}");
        assert!(task_clock <= wall_ns, "{task_clock} {wall_ns}");
        assert!(faults >= 1 && own.abs_diff(faults) <= 4, "{own} {faults}");
        assert!(again.abs_diff(own) <= 4, "both groups cover the same work");
        assert!(outer_clock.abs_diff(task_clock) <= task_clock / 50 + 1_000_000);
        Some(())
    };
    // Four threads at once: each reads its own counters and nobody else's.
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(count)).collect();
    let counted: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    if counted.contains(&None) {
        let test = "counters::tests::the_same_path_counts_what_the_kernel_counts_by_itself";
        skip::note(test, "may not count at all");
    }
}
