//! A thread's counters of the PMU: opened by the thread itself before its
//! first slice, tested on a known loop, then read at the edges of slices.
//!
//! What is counted: the table, with the kernel's share, since moving bytes is
//! the kernel's work. A count is published only if its group was on the PMU
//! for all of the slice. Nothing is scaled: an extrapolated count looks like a
//! measured one and is none. Everything that is not counted has its reason.

mod group;
mod machine;
mod self_test;
mod table;

use iolens_model::outcome::PmuCounts;
use iolens_model::reading::NotMeasured;
use iolens_sys::errno::Errno;
use iolens_sys::perf_event::Group;
use iolens_sys::proc::Root;

use self::group::{EventGroup, GroupReading, Open, Source};
pub(crate) use self::machine::{core_pmus, not_permitted};
use self::table::{GROUPS_MAX, GroupPlan, METRICS_MAX};

/// The counters of one thread.
#[derive(Debug)]
pub(crate) struct Counters<G = Group> {
    groups: Vec<Open<G>>,
    missing: Vec<NotMeasured>,
}

/// All groups of a thread, read at one edge of a slice.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Snapshot([Option<Result<GroupReading, Errno>>; GROUPS_MAX]);

impl Counters {
    /// The counters of the calling thread, which stays on `cpu`; they count
    /// from now on. `turn` chooses between groups that do not fit the PMU
    /// together: the pass, so that each is counted in its share of the trials
    /// and never a part of a slice.
    pub(crate) fn open(root: &Root, cpu: u32, turn: u32) -> Counters {
        match core_pmus(root).and_then(|pmus| machine::pmu_of(&pmus, cpu)) {
            Err(why) => {
                let entry = |metric: &str| NotMeasured { metric: metric.into(), why: why.clone() };
                let missing = PmuCounts::NAMES.into_iter().map(entry).collect();
                Counters { groups: Vec::new(), missing }
            }
            Ok(pmu) => {
                let why = |event, errno| machine::refused(root, event, errno);
                let source = Source { pmu, lead: &Group::lead, why: &why };
                Counters::with(&source, &table::table(machine::llc(root)), turn)
            }
        }
    }
}

impl<G: EventGroup> Counters<G> {
    fn with(source: &Source<'_, G>, table: &[GroupPlan], turn: u32) -> Counters<G> {
        let mut counters = Counters { groups: Vec::new(), missing: Vec::new() };
        let mut first = 0;
        for plan in table {
            counters.groups.extend(Open::new(source, plan, first, &mut counters.missing));
            first += plan.counters.len();
        }
        let mut tested = counters.test();
        if counters.is_crowded(&tested) {
            counters.take_turns(source, turn);
            tested = counters.test();
        }
        counters.believe(&tested);
        counters
    }

    /// Whether there is nothing to read.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Reads at the beginning of a slice. The first group, the one that
    /// matters most, is read next to the slice at either edge.
    pub(crate) fn read_before(&mut self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (open, slot) in self.groups.iter_mut().zip(&mut snapshot.0).rev() {
            *slot = Some(open.read());
        }
        snapshot
    }

    /// Reads at the end of a slice.
    pub(crate) fn read_after(&mut self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (open, slot) in self.groups.iter_mut().zip(&mut snapshot.0) {
            *slot = Some(open.read());
        }
        snapshot
    }

    /// What was counted between two readings, in the order of the table; null
    /// where it was not counted the whole time.
    pub(crate) fn between(&mut self, edges: [&Snapshot; 2]) -> [Option<u64>; METRICS_MAX] {
        let mut counts = [None; METRICS_MAX];
        for (index, open) in self.groups.iter_mut().enumerate() {
            if let Some(slice) = difference(edges, index) {
                open.publish(&slice, &mut counts);
            }
        }
        counts
    }

    /// What is not counted, or was not in some slice, and why.
    pub(crate) fn missing(&self) -> Vec<NotMeasured> {
        let mut missing = self.missing.clone();
        self.groups.iter().for_each(|open| open.note_loss(&mut missing));
        missing
    }

    /// The metrics that are counted.
    pub(crate) fn counted(&self) -> Vec<&'static str> {
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
        let sharing = || self.groups.iter().zip(tested).filter(|(open, _)| !open.plan.pinned);
        sharing().count() > 1 && sharing().any(|(_, result)| partial(result))
    }

    /// Keeps one of the groups that are not pinned and closes the others. The
    /// one that stays is opened anew: enabled on a PMU with room, it is on it
    /// at once, and not when the kernel turns next.
    fn take_turns(&mut self, source: &Source<'_, G>, turn: u32) {
        let sharing: Vec<GroupPlan> =
            self.groups.iter().map(|open| open.plan).filter(|plan| !plan.pinned).collect();
        let keep = sharing[turn as usize % sharing.len()];
        let pinned = |open: &Open<G>| open.plan.pinned;
        let (pinned, sharing): (Vec<_>, Vec<_>) = self.groups.drain(..).partition(pinned);
        self.groups = pinned;
        let mut first = 0;
        for open in sharing {
            if open.plan == keep {
                first = open.first;
                continue;
            }
            let why = format!(
                "the {} and the {} do not fit the PMU together: they take turns by pass",
                keep.name, open.plan.name
            );
            open.note_all(&why, &mut self.missing);
        }
        let mut refused = Vec::new();
        self.groups.extend(Open::new(source, &keep, first, &mut refused));
        // The first opening has noted the same.
        refused.retain(|entry| !self.missing.contains(entry));
        self.missing.extend(refused);
    }

    /// Closes groups, and leaves out counters, that did not pass the test.
    fn believe(&mut self, tested: &[Result<GroupReading, Errno>]) {
        for (open, result) in self.groups.iter_mut().zip(tested) {
            open.judge(result, &mut self.missing);
        }
        self.groups.retain(|open| open.slots.iter().any(|slot| slot.believed));
    }
}

fn difference(edges: [&Snapshot; 2], index: usize) -> Option<Result<GroupReading, Errno>> {
    let [before, after] = edges.map(|snapshot| snapshot.0[index]);
    let after = after?;
    Some(before?.and_then(|before| Ok(after?.since(&before))))
}

#[cfg(test)]
mod tests;
