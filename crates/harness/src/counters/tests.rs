//! Counters on a scripted PMU, for what hardware does.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use iolens_sys::perf_event::{Event, Kind, Mode, Options, Refusal, Scope, Times};

use super::table::{self, CPU_WIDE, Counter, Llc, SOFTWARE, TRACEPOINTS};
use super::*;

mod kernel;

/// What every event counts from one reading to the next, and in what time.
const COUNT: u64 = 500_000;
const STEP_NS: u64 = 1_000_000;

// errno(3), on every architecture.
const ENOENT: i32 = 2;
const EIO: i32 = 5;
const EACCES: i32 = 13;
const EMFILE: i32 = 24;

/// What is counted for a thread, tracepoints among it.
fn all() -> Vec<GroupPlan> {
    let mut table = table::hardware(Llc::Architectural);
    table.extend([SOFTWARE, TRACEPOINTS]);
    table
}

/// The metrics of [`all`], which stand first among all there are.
fn names() -> impl Iterator<Item = &'static str> {
    all().into_iter().flat_map(|plan| plan.counters).map(|counter| counter.metric)
}

/// The error of opening an event.
type Refuses = dyn Fn(&Event, Scope) -> Option<i32>;

/// A kernel and a PMU that do what a test says.
struct Pmu {
    /// Counters that it has.
    room: usize,
    /// The error of opening an event.
    refuses: Box<Refuses>,
    /// Whether an event counts nothing.
    is_dead: fn(&Event) -> bool,
    /// Whether tracepoints have numbers.
    has_tracefs: bool,
    /// Whether groups that are not pinned take turns, as the kernel has them do.
    rotates: bool,
    /// The machine that explains refusals.
    root: Root,
    /// The part of the time, in percent, in which it is somebody else's.
    stolen_percent: Cell<u64>,
    /// The error of every reading from now on.
    broken: Cell<Option<i32>>,
    /// The open groups: number, whether pinned, hardware events.
    groups: RefCell<Vec<(usize, bool, usize)>>,
    opened: Cell<usize>,
    /// Every event that was asked for.
    asked: RefCell<Vec<Event>>,
}

impl Pmu {
    fn with_room_for(room: usize) -> Pmu {
        Pmu {
            room,
            refuses: Box::new(|_, _| None),
            is_dead: |_| false,
            has_tracefs: true,
            rotates: false,
            root: Root::at(std::path::Path::new("/nowhere")),
            stolen_percent: Cell::new(0),
            broken: Cell::new(None),
            groups: RefCell::default(),
            opened: Cell::new(0),
            asked: RefCell::default(),
        }
    }

    /// With room for everything, and an event refused where `refuses` says so.
    fn that_refuses(refuses: impl Fn(&Event, Scope) -> Option<i32> + 'static) -> Pmu {
        Pmu { refuses: Box::new(refuses), ..Pmu::with_room_for(PmuCounts::COUNT) }
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

    fn has_room_for_all(&self) -> bool {
        self.groups.borrow().iter().map(|(_, _, events)| events).sum::<usize>() <= self.room
    }

    fn counters(self, turn: u32) -> (Rc<Pmu>, Counters<Scripted>) {
        self.counters_of(&all(), Scope::Thread, None, turn)
    }

    fn counters_of(
        self,
        table: &[GroupPlan],
        scope: Scope,
        number: Option<u32>,
        turn: u32,
    ) -> (Rc<Pmu>, Counters<Scripted>) {
        self.reaching(Reach::One, table, scope, number, turn)
    }

    fn reaching(
        self,
        reach: Reach,
        table: &[GroupPlan],
        scope: Scope,
        number: Option<u32>,
        turn: u32,
    ) -> (Rc<Pmu>, Counters<Scripted>) {
        let pmu = Rc::new(self);
        let lead =
            |event: &Event, options| Scripted::lead(&pmu, event, Options { scope, ..options });
        let why = |event, errno| machine::refused(&pmu.root, event, scope, errno);
        let tracepoint = |name: &str| match pmu.has_tracefs {
            true => Ok(name.len() as u64),
            false => tracefs::number(&pmu.root, name),
        };
        let source = Source { pmu: number, lead: &lead, tracepoint: &tracepoint, why: &why, reach };
        let counters = Counters::with(&source, table, turn);
        (pmu, counters)
    }
}

/// A group on it.
struct Scripted {
    pmu: Rc<Pmu>,
    number: usize,
    options: Options,
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
            options,
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
        self.pmu.asked.borrow_mut().push(*event);
        if let Some(raw) = (self.pmu.refuses)(event, self.options.scope) {
            return Err(Errno::from_raw(raw));
        }
        self.events.push(*event);
        self.values.push(0);
        let mut groups = self.pmu.groups.borrow_mut();
        let own = groups.iter_mut().filter(|group| group.0 == self.number);
        own.for_each(|group| group.2 += usize::from(event.kind.is_hardware()));
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
        let on_pmu = self.events.iter().any(|event| event.kind.is_hardware());
        let stolen = if on_pmu { self.pmu.stolen_percent.get() } else { 0 };
        let turns = self.pmu.rotates && !pinned && on_pmu && !self.pmu.has_room_for_all();
        let percent = if turns {
            50
        } else if is_on {
            100 - stolen
        } else {
            0
        };
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
fn slice<G: EventGroup>(counters: &mut Counters<G>) -> Values {
    let before = counters.read_before();
    let after = counters.read_after();
    counters.between([&before, &after])
}

/// The metrics without a value, each of which must have exactly one reason,
/// which holds `reason`.
fn check_missing<G: EventGroup>(counters: &mut Counters<G>, metrics: &[&str], reason: &str) {
    let counts = slice(counters);
    let missing = counters.missing();
    for (name, count) in names().zip(counts) {
        let reasons: Vec<&str> =
            missing.iter().filter(|m| m.metric == name).map(|m| m.why.as_str()).collect();
        if metrics.contains(&name) {
            assert_eq!(count, None, "{name}");
            assert!(reasons.len() == 1 && reasons[0].contains(reason), "{name}: {reasons:?}");
        } else {
            assert_eq!((count, reasons), (Some(COUNT), vec![]), "{name}");
        }
    }
    let mut counted = counters.counted();
    counted.sort_unstable_by_key(|name| table::place(name));
    let expected: Vec<&str> = names().filter(|name| !metrics.contains(name)).collect();
    assert_eq!(counted, expected);
}

const CORE: [&str; 4] =
    ["cycles_user", "cycles_kernel", "instructions_user", "instructions_kernel"];

/// The groups that share what the pinned one leaves, in the order of turns.
fn sharing() -> Vec<Vec<&'static str>> {
    all().iter().filter(|plan| !plan.pinned).map(|plan| metrics_of(plan).collect()).collect()
}

/// All metrics but those of the pinned group and of the groups named.
fn absent(kept: &[usize]) -> Vec<&'static str> {
    let others = sharing().into_iter().enumerate().filter(|(group, _)| !kept.contains(group));
    others.flat_map(|(_, metrics)| metrics).collect()
}

#[test]
fn a_pmu_with_room_counts_everything() {
    let (_pmu, mut counters) = Pmu::with_room_for(PmuCounts::COUNT).counters(1);
    check_missing(&mut counters, &[], "");
    assert!(counters.is_open());
}

#[test]
fn groups_that_do_not_fit_together_take_turns_by_pass() {
    let groups = sharing().len();
    for turn in 0..2 * groups {
        // Room for one of them, and for two.
        for (room, kept) in
            [(6, vec![turn % groups]), (9, vec![turn % groups, (turn + 1) % groups])]
        {
            let pmu = Pmu::with_room_for(room);
            let (pmu, mut counters) = pmu.counters(u32::try_from(turn).unwrap());
            check_missing(&mut counters, &absent(&kept), "they take turns by pass");
            // The pinned ones are those of cycles, software and tracepoints.
            assert_eq!(pmu.groups.borrow().len(), 3 + kept.len(), "the others are closed");
        }
    }
}

#[test]
fn a_refusal_is_noted_once_though_its_group_is_opened_twice() {
    let refuses = |event: &Event, _| (event.kind == Kind::CacheMisses).then_some(ENOENT);
    let pmu = Pmu { room: 6, ..Pmu::that_refuses(refuses) };
    let (_pmu, counters) = pmu.counters(1);
    assert_eq!(counters.counted().last(), Some(&"llc_references"));
    let metrics: Vec<String> = counters.missing().into_iter().map(|entry| entry.metric).collect();
    assert_eq!(metrics, [vec!["llc_misses"], absent(&[1])].concat());
}

#[test]
fn a_group_for_which_there_is_no_room_at_all_never_counts() {
    let (_pmu, mut counters) = Pmu::with_room_for(5).counters(1);
    let counts = slice(&mut counters);
    assert_eq!(counts[..4], [Some(COUNT); 4]);
    assert_eq!(counts[4..PmuCounts::COUNT], [None; PmuCounts::COUNT - 4]);
    let why = |name: &str| counters.missing().into_iter().find(|m| m.metric == name).unwrap().why;
    assert!(why("l1d_loads").contains("take turns"));
    assert!(why("llc_misses").contains("in its self-test: never ran; other users, or"));
    assert!(why("llc_misses").contains("kernel.nmi_watchdog"));
}

#[test]
fn a_pmu_of_which_the_nmi_watchdog_holds_a_counter_loses_a_group_by_turns() {
    let (_pmu, mut counters) = Pmu::with_room_for(PmuCounts::COUNT - 1).counters(0);
    let last = sharing().len() - 1;
    let kept: Vec<usize> = (0..last).collect();
    check_missing(&mut counters, &absent(&kept), "do not fit the PMU together");
}

#[test]
fn a_pinned_group_without_room_is_null_and_says_so() {
    let refuses = |event: &Event, _| (event.mode == Mode::Any).then_some(ENOENT);
    let pmu = Pmu { room: 3, ..Pmu::that_refuses(refuses) };
    let (_pmu, counters) = pmu.counters(1);
    assert!(!counters.is_open());
    let missing = counters.missing();
    assert_eq!(missing.len(), names().count());
    for entry in missing.iter().filter(|entry| CORE.contains(&entry.metric.as_str())) {
        assert!(entry.why.starts_with("could not be kept on the PMU"), "{}", entry.why);
        assert!(entry.why.contains("kernel.nmi_watchdog"), "{}", entry.why);
    }
}

#[test]
fn a_slice_in_which_the_pmu_was_shared_is_null_and_the_next_one_is_not() {
    let (pmu, mut counters) = Pmu::with_room_for(PmuCounts::COUNT).counters(1);
    pmu.stolen_percent.set(52);
    let expected = "shared the PMU: ran about 50% of the time; a count of a part of a slice is \
                    not scaled up";
    let counts = slice(&mut counters);
    assert_eq!(counts[..PmuCounts::COUNT], [None; PmuCounts::COUNT], "nothing is scaled");
    let kernel = names().count() - PmuCounts::COUNT;
    assert_eq!(counts.iter().flatten().count(), kernel, "the kernel needs no PMU");
    let missing = counters.missing();
    assert_eq!(missing.len(), PmuCounts::COUNT);
    assert!(missing.iter().all(|entry| entry.why == expected), "{missing:?}");
    pmu.stolen_percent.set(0);
    assert_eq!(slice(&mut counters).iter().flatten().count(), names().count());
    assert_eq!(counters.missing().len(), PmuCounts::COUNT, "the lost slice stays known");
}

#[test]
fn a_pmu_that_is_shared_during_the_self_test_is_not_believed() {
    let pmu = Pmu { stolen_percent: Cell::new(52), ..Pmu::with_room_for(PmuCounts::COUNT) };
    let (_pmu, counters) = pmu.counters(1);
    let missing = counters.missing();
    assert_eq!(missing.len(), PmuCounts::COUNT);
    let core = missing.iter().find(|entry| entry.metric == CORE[0]).unwrap();
    assert!(core.why.contains("ran about 50% of the time"), "{}", core.why);
}

#[test]
fn a_counter_that_reads_zero_is_null_and_its_neighbours_are_not() {
    let dead = |event: &Event| event.kind == Kind::Instructions && event.mode == Mode::Kernel;
    let pmu = Pmu { is_dead: dead, ..Pmu::with_room_for(PmuCounts::COUNT) };
    let (_pmu, mut counters) = pmu.counters(1);
    check_missing(&mut counters, &["instructions_kernel"], "read 0 in its self-test");
    // Of a guest: the kernel's own switches in user mode, and a tracepoint.
    let dead = |event: &Event| {
        event.kind == Kind::ContextSwitches || event.to_string() == "raw_syscalls:sys_enter"
    };
    let pmu = Pmu { is_dead: dead, ..Pmu::with_room_for(PmuCounts::COUNT) };
    let (_pmu, mut counters) = pmu.counters(1);
    let metrics = ["perf_context_switches", "sys_enter"];
    check_missing(&mut counters, &metrics, "read 0 in its self-test");
}

#[test]
fn a_pmu_that_reads_zero_everywhere_is_closed() {
    let pmu = Pmu { is_dead: |_| true, ..Pmu::with_room_for(PmuCounts::COUNT) };
    let (pmu, counters) = pmu.counters(1);
    assert!(!counters.is_open());
    assert_eq!(pmu.groups.borrow().len(), 0);
    let missing = counters.missing();
    assert_eq!(missing.len(), names().count());
    let why = |name: &str| &missing.iter().find(|entry| entry.metric == name).unwrap().why;
    assert!(why("llc_references").starts_with("read 0 in its self-test"));
    // The loop need not miss there, so zero is no proof by itself.
    assert!(why("llc_misses").contains("no other counter of its group counts"));
    assert!(why("tcp_retransmit_skb").contains("no other counter of its group counts"));
}

#[test]
fn a_group_whose_first_event_is_refused_is_led_by_the_next() {
    let refuses = |event: &Event, _| (event.kind == Kind::L1dLoads).then_some(ENOENT);
    let (_pmu, mut counters) = Pmu::that_refuses(refuses).counters(1);
    check_missing(&mut counters, &["l1d_loads"], "L1-dcache-loads`: ENOENT");
}

#[test]
fn a_reading_that_fails_publishes_nothing() {
    let (pmu, mut counters) = Pmu::with_room_for(PmuCounts::COUNT).counters(1);
    pmu.broken.set(Some(EIO));
    assert_eq!(slice(&mut counters), [None; METRICS_MAX]);
    assert!(counters.missing()[0].why.starts_with("cannot read the counters: EIO"));
}

/// A kernel with kernel.perf_event_paranoid at `level` for a user who has no
/// `CAP_PERFMON`, unless `perfmon`: kernel/events/core.c, and what
/// distributions add beyond 2.
fn paranoid(level: i32, perfmon: bool) -> (tempfile::TempDir, Pmu) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("proc/sys/kernel/perf_event_paranoid");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("{level}\n")).unwrap();
    let refuses = move |event: &Event, scope| {
        let allowed = match (scope, event.mode) {
            (Scope::Cpu(_), _) => level <= 0,
            (Scope::Thread, Mode::User) => level <= 2,
            (Scope::Thread, Mode::Kernel | Mode::Any) => level <= 1,
        };
        (!allowed && !perfmon).then_some(EACCES)
    };
    let pmu = Pmu { root: Root::at(dir.path()), ..Pmu::that_refuses(refuses) };
    (dir, pmu)
}

#[test]
fn every_level_of_paranoia_has_an_outcome() {
    for level in -1..=4 {
        // What may be counted in user mode alone: the program's own cycles and
        // instructions, and task-clock, which does not look at the mode.
        let user = ["cycles_user", "instructions_user", "perf_task_clock_ns"];
        let absent: Vec<&str> = match level {
            ..=1 => Vec::new(),
            2 => names().filter(|name| !user.contains(name)).collect(),
            _ => names().collect(),
        };
        let (_dir, pmu) = paranoid(level, false);
        let (pmu, mut counters) = pmu.counters(0);
        check_missing(&mut counters, &absent, &format!("kernel.perf_event_paranoid is {level}"));
        let clock = pmu.asked.borrow().iter().rfind(|e| e.kind == Kind::TaskClock).copied();
        let expected = if level < 2 { Mode::Any } else { Mode::User };
        assert_eq!(clock.unwrap().mode, expected, "the kernel is excluded where it must be");

        let (_dir, pmu) = paranoid(level, false);
        let (_pmu, counters) = pmu.counters_of(&[CPU_WIDE], Scope::Cpu(0), None, 0);
        assert_eq!(counters.is_open(), level <= 0);
        let told = counters.missing();
        assert_eq!(told.len(), if level <= 0 { 0 } else { CPU_WIDE.counters.len() });
        assert!(told.iter().all(|m| m.why.contains("needs 0 or less; run `sudo setcap")));

        let (_dir, pmu) = paranoid(level, true);
        check_missing(&mut pmu.counters(0).1, &[], "");
    }
}

#[test]
fn without_tracefs_only_tracepoints_are_missing() {
    let pmu = Pmu { has_tracefs: false, ..Pmu::with_room_for(PmuCounts::COUNT) };
    let (_pmu, mut counters) = pmu.counters(0);
    let reason = "without tracefs, which is not mounted; run `sudo mount -t tracefs";
    let absent: Vec<&str> = metrics_of(&TRACEPOINTS).collect();
    check_missing(&mut counters, &absent, reason);
}

#[test]
fn events_beyond_the_limit_of_descriptors_are_missing() {
    const DESCRIPTORS: usize = 7;
    let open = Cell::new(0);
    let refuses = move |_: &Event, _| {
        open.set(open.get() + 1);
        (open.get() > DESCRIPTORS).then_some(EMFILE)
    };
    let (_pmu, mut counters) = Pmu::that_refuses(refuses).counters(0);
    let beyond: Vec<&str> = names().skip(DESCRIPTORS).collect();
    check_missing(&mut counters, &beyond, "no descriptor left, raise `ulimit -n`");
}

#[test]
fn each_pmu_of_a_hybrid_processor_is_asked_by_its_number() {
    for number in [4, 10] {
        let pmu = Pmu::with_room_for(PmuCounts::COUNT);
        let (pmu, mut counters) = pmu.counters_of(&all(), Scope::Thread, Some(number), 0);
        check_missing(&mut counters, &[], "");
        let asked = pmu.asked.borrow();
        let hardware = asked.iter().filter(|event| event.kind.is_hardware());
        assert_eq!(hardware.clone().count(), PmuCounts::COUNT);
        assert!(hardware.clone().all(|event| event.pmu == Some(number)));
    }
}

#[test]
fn what_was_closed_opens_again_or_says_why_not() {
    let refusing = Rc::new(Cell::new(false));
    let denied = Rc::clone(&refusing);
    let refuses = move |_: &Event, _| denied.get().then_some(EMFILE);
    let (pmu, mut counters) = Pmu::that_refuses(refuses).counters(0);
    let lead = |event: &Event, options| Scripted::lead(&pmu, event, options);
    let tested = pmu.asked.borrow().len();
    counters.close();
    assert!(!counters.is_open() && pmu.groups.borrow().is_empty());
    assert_eq!(slice(&mut counters), [None; METRICS_MAX]);
    counters.open_again(&lead);
    check_missing(&mut counters, &[], "");
    assert_eq!(pmu.asked.borrow().len(), 2 * tested, "the same events");
    counters.close();
    refusing.set(true);
    counters.open_again(&lead);
    assert_eq!(slice(&mut counters), [None; METRICS_MAX]);
    let missing = counters.missing();
    assert_eq!(missing.len(), names().count());
    assert!(missing[0].why.contains("EMFILE"), "{}", missing[0].why);
}

impl Pmu {
    /// Where not all that is not pinned has room, each has it for a part of the time.
    fn rotating(self) -> Pmu {
        Pmu { rotates: true, ..self }
    }

    /// Those of a thread with all that it starts.
    fn family(self) -> (Rc<Pmu>, Counters<Scripted>) {
        self.reaching(Reach::Family, &all(), Scope::Thread, None, 1)
    }
}

#[test]
fn a_family_inherits_every_group_and_pins_none_that_needs_the_pmu() {
    let (pmu, mut counters) = Pmu::with_room_for(PmuCounts::COUNT).family();
    check_missing(&mut counters, &[], "");
    let options = |open: &Open<Scripted>| open.group().unwrap().options;
    assert!(counters.groups.iter().all(|open| options(open).inherit));
    let pinned = counters.groups.iter().filter(|open| options(open).pinned);
    let pinned: Vec<&str> = pinned.map(|open| open.plan.name).collect();
    assert_eq!(pinned, [SOFTWARE.name, TRACEPOINTS.name], "a child has always room for them");
    // A child that had to wait for the PMU shows in the times.
    pmu.stolen_percent.set(10);
    assert_eq!(slice(&mut counters)[..PmuCounts::COUNT], [None; PmuCounts::COUNT]);
}

#[test]
fn a_family_keeps_its_cycles_where_the_pmu_has_room_for_nothing_else() {
    for room in [4, 5] {
        let (pmu, mut counters) = Pmu::with_room_for(room).rotating().family();
        check_missing(&mut counters, &absent(&[]), "no room for it beside cycles");
        assert_eq!(pmu.groups.borrow().len(), 3, "the others are closed");
    }
    let (_pmu, mut counters) = Pmu::with_room_for(6).rotating().family();
    check_missing(&mut counters, &absent(&[1]), "they take turns by pass");
}
