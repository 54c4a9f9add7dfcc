//! A thread's counters: opened by the thread itself before its first slice,
//! tested on a known loop, then read at the edges of slices.
//!
//! What is counted: the tables, those of the PMU and those of the kernel, with
//! the kernel's share, since moving bytes is the kernel's work. A count is
//! published only if its group counted for all of the slice. Nothing is scaled:
//! an extrapolated count looks like a measured one and is none. Everything that
//! is not counted has its reason.

mod group;
mod machine;
mod self_test;
mod table;

use iolens_model::axes::Counting;
use iolens_model::outcome::PmuCounts;
use iolens_model::plan::Probes;
use iolens_model::reading::NotMeasured;
use iolens_sys::errno::Errno;
use iolens_sys::perf_event::{Group, Kind, Scope};
use iolens_sys::proc::Root;

pub use self::group::Everywhere;
use self::group::{EventGroup, GroupReading, Lead, Open, Reach, Source};
pub use self::machine::{CorePmu, core_pmus, not_permitted, pmu_of};
use self::table::{GROUPS_MAX, GroupPlan, METRICS_MAX};
pub use self::table::{Values, split};
use crate::tracefs;

/// The counters of one thread, or of the CPUs of an end.
#[derive(Debug)]
pub struct Counters<G = Group> {
    /// The PMU that counts, on machines with several kinds of cores.
    pmu: Option<String>,
    groups: Vec<Open<G>>,
    missing: Vec<NotMeasured>,
}

/// All groups, read at one edge of a slice.
#[derive(Debug, Clone, Copy, Default)]
pub struct Snapshot([Option<Result<GroupReading, Errno>>; GROUPS_MAX]);

/// Whose counters are opened, and which.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The CPU that the thread stays on.
    pub cpu: u32,
    /// Chooses between groups that do not fit the PMU together: the pass, so
    /// that each is counted in its share of the trials and never a part of a
    /// slice.
    pub turn: u32,
    /// What is asked for.
    pub probes: Probes,
}

impl Counters {
    /// The counters of the calling thread; they count from now on.
    pub fn of_thread(root: &Root, wanted: Wanted) -> Counters {
        Counters::reaching(Reach::One, root, wanted)
    }

    /// The same of the calling thread with all threads and processes that it starts from
    /// now on, and those that they start. They cannot be closed for a while: those who
    /// live by then would not be counted again.
    pub fn of_family(root: &Root, wanted: Wanted) -> Counters {
        Counters::reaching(Reach::Family, root, wanted)
    }

    /// None, of an arm whose counters are closed while others count: they say why.
    pub fn closed() -> Counters {
        Counters::none([], ALTERNATING)
    }

    fn reaching(reach: Reach, root: &Root, wanted: Wanted) -> Counters {
        if wanted.probes.counting == Counting::Off {
            return Counters::none(table::metrics(), OFF);
        }
        let mut missing = Vec::new();
        let mut table = Vec::new();
        let mut pmu = None;
        match core_pmus(root).and_then(|pmus| pmu_of(&pmus, wanted.cpu).map(Option::<&_>::cloned)) {
            Err(why) => missing = notes(PmuCounts::NAMES, &why),
            Ok(found) => {
                pmu = found;
                table = table::hardware(machine::llc(root));
            }
        }
        let Probes { software, tracepoints, .. } = wanted.probes;
        for (plan, asked, why) in [
            (table::SOFTWARE, software, NO_SOFTWARE),
            (table::TRACEPOINTS, tracepoints, NO_TRACEPOINTS),
        ] {
            match asked {
                true => table.push(plan),
                false => missing.extend(notes(metrics_of(&plan), why)),
            }
        }
        let source = Source {
            pmu: pmu.as_ref().and_then(|pmu| pmu.number),
            lead: &Group::lead,
            reach,
            tracepoint: &|name| tracefs::number(root, name),
            why: &|event, errno| machine::refused(root, event, Scope::Thread, errno),
        };
        let mut counters = Counters::with(&source, &table, wanted.turn);
        counters.missing.splice(0..0, missing);
        counters.say_when_closed(wanted.probes);
        counters.pmu = pmu.map(|pmu| pmu.name);
        counters
    }
}

impl Counters {
    /// Opens what was closed.
    pub fn reopen(&mut self) {
        self.open_again(&Group::lead);
    }
}

impl Counters<Everywhere> {
    /// Counters of everybody on these CPUs.
    pub fn of_cpus(root: &Root, cpus: &[u32], probes: Probes) -> Counters<Everywhere> {
        let plan = table::CPU_WIDE;
        if probes.counting == Counting::Off {
            return Counters::none(metrics_of(&plan), OFF);
        }
        let source = Source {
            pmu: None,
            lead: &|event, options| Everywhere::lead(cpus, event, options),
            reach: Reach::One,
            tracepoint: &|name| tracefs::number(root, name),
            why: &|event, errno| machine::refused(root, event, Scope::Cpu(0), errno),
        };
        let mut counters = Counters::with(&source, &[plan], 0);
        counters.say_when_closed(probes);
        counters
    }

    /// Opens what was closed.
    pub fn reopen(&mut self, cpus: &[u32]) {
        self.open_again(&|event, options| Everywhere::lead(cpus, event, options));
    }
}

const OFF: &str = "the plan says `counters = off`";
const ALTERNATING: &str = "the plan says `counters = alternate`: closed while the A/A arm runs";

const NO_SOFTWARE: &str =
    "not asked for: --software-events counts them; getrusage(2) and /proc have the same";
const NO_TRACEPOINTS: &str = "not asked for: --tracepoints counts them";

/// Names of the tracepoints that can be counted, `system:name`.
pub fn tracepoints() -> impl Iterator<Item = &'static str> {
    let name = |counter: &table::Counter| match counter.kind {
        Kind::Tracepoint { name, .. } => Some(name),
        _ => None,
    };
    table::TRACEPOINTS.counters.iter().filter_map(name)
}

fn metrics_of(plan: &GroupPlan) -> impl Iterator<Item = &'static str> + use<> {
    plan.counters.iter().map(|counter| counter.metric)
}

fn notes(metrics: impl IntoIterator<Item = &'static str>, why: &str) -> Vec<NotMeasured> {
    let note = |metric: &str| NotMeasured { metric: metric.to_owned(), why: why.to_owned() };
    metrics.into_iter().map(note).collect()
}

impl<G: EventGroup> Counters<G> {
    /// No counters, for one reason.
    fn none(metrics: impl IntoIterator<Item = &'static str>, why: &str) -> Counters<G> {
        Counters { pmu: None, groups: Vec::new(), missing: notes(metrics, why) }
    }

    fn with(source: &Source<'_, G>, table: &[GroupPlan], turn: u32) -> Counters<G> {
        let mut counters = Counters { pmu: None, groups: Vec::new(), missing: Vec::new() };
        for plan in table {
            counters.groups.extend(Open::new(source, plan, &mut counters.missing));
        }
        if counters.groups.is_empty() {
            return counters;
        }
        let mut tested = counters.test();
        if counters.is_crowded(&tested) {
            tested = counters.take_turns(source, turn);
        }
        counters.believe(&tested);
        counters
    }

    /// Closes all of them until [`Self::reopen`]: what is not open costs
    /// nothing.
    pub fn close(&mut self) {
        self.groups.iter_mut().for_each(Open::close);
    }

    fn open_again(&mut self, lead: Lead<'_, G>) {
        self.groups.iter_mut().for_each(|open| open.reopen(lead));
    }

    fn say_when_closed(&mut self, probes: Probes) {
        if probes.counting == Counting::Alternate {
            self.groups.iter().for_each(|open| open.note_all(ALTERNATING, &mut self.missing));
        }
    }

    /// The PMU that counts, on machines with several kinds of cores.
    pub fn pmu(&self) -> Option<&str> {
        self.pmu.as_deref()
    }

    /// Groups that are read at each edge.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is anything to read.
    pub fn is_open(&self) -> bool {
        self.groups.iter().any(Open::is_open)
    }

    /// Reads at the beginning of a slice. The first group, the one that
    /// matters most, is read next to the slice at either edge.
    pub fn read_before(&mut self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (open, slot) in self.groups.iter_mut().zip(&mut snapshot.0).rev() {
            *slot = open.read();
        }
        snapshot
    }

    /// Reads at the end of a slice.
    pub fn read_after(&mut self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (open, slot) in self.groups.iter_mut().zip(&mut snapshot.0) {
            *slot = open.read();
        }
        snapshot
    }

    /// What was counted between two readings, in the order of the table; `None`
    /// where it was not counted the whole time.
    pub fn between(&mut self, edges: [&Snapshot; 2]) -> Values {
        let mut counts: Values = [None; METRICS_MAX];
        for (index, open) in self.groups.iter_mut().enumerate() {
            if let Some(slice) = difference(edges, index) {
                open.publish(&slice, &mut counts);
            }
        }
        counts
    }

    /// What is not counted, or was not in some slice, and why.
    pub fn missing(&self) -> Vec<NotMeasured> {
        let mut missing = self.missing.clone();
        self.groups.iter().for_each(|open| open.note_loss(&mut missing));
        missing
    }

    /// The metrics that are counted.
    pub fn counted(&self) -> Vec<&'static str> {
        let slots = self.groups.iter().flat_map(|open| &open.slots);
        slots.filter(|slot| slot.believed).map(|slot| slot.counter.metric).collect()
    }

    /// What every group reads over the loop of the self-test.
    fn test(&mut self) -> Vec<Result<GroupReading, Errno>> {
        let before = self.read_before();
        self_test::run();
        let after = self.read_after();
        (0..self.groups.len()).filter_map(|index| difference([&before, &after], index)).collect()
    }

    /// Whether groups that are not pinned were in each other's way.
    fn is_crowded(&self, tested: &[Result<GroupReading, Errno>]) -> bool {
        let partial = |result: &Result<GroupReading, Errno>| {
            result.as_ref().is_ok_and(|reading| !reading.is_whole())
        };
        let sharing = || self.groups.iter().zip(tested).filter(|(open, _)| open.shares());
        sharing().count() > 1 && sharing().any(|(_, result)| partial(result))
    }

    /// Keeps as many of the groups that are not pinned as the PMU has room
    /// for, the one whose turn it is first, and closes the others. Those that
    /// stay are opened anew: enabled on a PMU with room, they are on it at
    /// once, and not when the kernel turns next. Returns their test.
    fn take_turns(
        &mut self,
        source: &Source<'_, G>,
        turn: u32,
    ) -> Vec<Result<GroupReading, Errno>> {
        let pinned = |open: &Open<G>| open.plan.pinned;
        let groups = self.groups.drain(..);
        let (pinned, sharing): (Vec<_>, Vec<_>) = groups.partition(pinned);
        let mut plans: Vec<GroupPlan> = sharing.iter().map(|open| open.plan).collect();
        plans.rotate_left(turn as usize % sharing.len());
        let mut sharing = sharing;
        sharing.iter_mut().for_each(Open::close);
        let always = pinned.len();
        self.groups = pinned;
        // Nothing keeps the groups of a family on the PMU that come before the others.
        let least = if source.reach == Reach::Family { 0 } else { 1 };
        for room in (least..plans.len()).rev() {
            let mut refused = Vec::new();
            let opened = plans[..room].iter().filter_map(|p| Open::new(source, p, &mut refused));
            self.groups.extend(opened);
            let tested = self.test();
            if room > least && self.is_crowded(&tested) {
                self.groups.truncate(always);
                continue;
            }
            // The first opening has noted the same.
            refused.retain(|entry| !self.missing.contains(entry));
            self.missing.extend(refused);
            let why = if room == 0 { NO_ROOM } else { TURNS };
            for open in sharing.iter().filter(|open| plans[room..].contains(&open.plan)) {
                open.note_all(why, &mut self.missing);
            }
            return tested;
        }
        Vec::new()
    }

    /// Closes groups, and leaves out counters, that did not pass the test.
    fn believe(&mut self, tested: &[Result<GroupReading, Errno>]) {
        for (open, result) in self.groups.iter_mut().zip(tested) {
            open.judge(result, &mut self.missing);
        }
        self.groups.retain(|open| open.slots.iter().any(|slot| slot.believed));
    }
}

const TURNS: &str = "groups of counters do not fit the PMU together: they take turns by pass, and in this one it \
     was not its turn";

const NO_ROOM: &str = "the PMU has no room for it beside cycles and instructions";

fn difference(edges: [&Snapshot; 2], index: usize) -> Option<Result<GroupReading, Errno>> {
    let [before, after] = edges.map(|snapshot| snapshot.0[index]);
    let after = after?;
    Some(before?.and_then(|before| Ok(after?.since(&before))))
}

#[cfg(test)]
mod tests;
