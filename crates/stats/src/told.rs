//! What the trials of a run told besides what is compared: facts, what could not be read,
//! where the time went. Added up trial by trial, so that it grows with what differs between
//! trials and not with their number.

use std::collections::{BTreeMap, BTreeSet};

use iolens_model::cell::{Cell, Setting};
use iolens_model::copy::ProgramStart;
use iolens_model::outcome::{EndFacts, PmuCounts, SliceOutcome, Status, TrialOutcome};
use iolens_model::reading::NotMeasured;
use iolens_model::units::Bytes;

use crate::sums::measured;

/// What all trials told, also those whose numbers are not used.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Told {
    /// Where their time went.
    pub spent: TimeSpent,
    /// Whether the PMU counted anything in any slice.
    pub counted_by_pmu: bool,
    /// Why metrics are null, by metric: the reasons of both ends.
    pub not_measured: BTreeMap<String, BTreeSet<String>>,
    /// What arms found or arranged when they were opened, each once, in the order in which
    /// it came.
    pub arm_facts: Vec<ToldFact>,
    /// What starting each program took, by primitive: one for each trial of it.
    pub starts: BTreeMap<String, Vec<ProgramStart>>,
    /// CPU time in ns and counts by kind of core, where threads of an end ran on several.
    pub by_pmu: BTreeMap<PmuPlace, (Option<u64>, PmuCounts)>,
    /// Sizes and threads of the trials.
    pub settings: BTreeSet<(Bytes, u32)>,
    /// The same, with the bytes that one arm sent from.
    pub rings: BTreeSet<(Bytes, u32, u64)>,
    /// What was left in the page cache, by cell and label.
    dirty: BTreeMap<(Cell, String), Option<Dirty>>,
    /// What either end of the trial before could not read.
    missing: [Vec<NotMeasured>; 2],
}

/// Where the time of the trials went, over all of those in which an end said what it spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeSpent {
    /// Reading counters and accounts, by the end that spent more, threads added
    /// up, ns.
    pub reading_ns: u64,
    /// Clocks of all slices, discarded ones too, ns.
    pub slices_ns: u64,
    /// The trials, from the spawn of their workers to their end, ns.
    pub trials_ns: u64,
}

/// A fact of an arm in some trial of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldFact {
    /// Where.
    pub cell: Cell,
    /// Label of the arm.
    pub arm: String,
    /// What it is, with its unit.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Where a kind of cores counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PmuPlace {
    /// Cell.
    pub cell: Cell,
    /// Label of the arm.
    pub arm: String,
    /// `sender` or `receiver`.
    pub end: &'static str,
    /// The PMU, by its name in /sys/bus/event_source/devices.
    pub pmu: String,
}

/// Bytes that were not on the device when a slice had ended, over those it wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Dirty {
    dirty_bytes: u64,
    bytes: u64,
}

impl Told {
    /// What these trials told.
    pub fn of(trials: &[TrialOutcome]) -> Told {
        let mut told = Told::default();
        trials.iter().for_each(|trial| told.add(trial));
        told
    }

    /// Adds what one more trial told.
    pub fn add(&mut self, trial: &TrialOutcome) {
        self.spent.add(trial);
        self.counted_by_pmu = self.counted_by_pmu || trial.slices.iter().any(is_counted);
        let Cell { size, threads, .. } = trial.cell;
        self.settings.insert((size, threads));
        let ring = trial.tx.as_ref().and_then(|end| end.ring_bytes);
        self.rings.extend(ring.map(|ring| (size, threads, ring)));
        for (end, missing) in [&trial.tx, &trial.rx].into_iter().zip(&mut self.missing) {
            add_missing(&mut self.not_measured, missing, end.as_ref());
        }
        self.add_arm_facts(trial);
        self.add_starts(trial);
        self.add_by_pmu(trial);
        if matches!(trial.cell.setting, Setting::File(_) | Setting::Write(_) | Setting::Copy(_)) {
            self.add_dirty(trial);
        }
    }

    /// Adds what trials told that came after these.
    pub(crate) fn append(&mut self, later: &Told) {
        self.spent = self.spent.plus(&later.spent);
        self.counted_by_pmu |= later.counted_by_pmu;
        for (metric, whys) in &later.not_measured {
            self.not_measured.entry(metric.clone()).or_default().extend(whys.iter().cloned());
        }
        let new = later.arm_facts.iter().filter(|fact| !self.arm_facts.contains(fact));
        self.arm_facts.extend(new.cloned().collect::<Vec<_>>());
        for (primitive, starts) in &later.starts {
            self.starts.entry(primitive.clone()).or_default().extend(starts);
        }
        for (place, own) in &later.by_pmu {
            self.add_pmu(place.clone(), own);
        }
        self.settings.extend(&later.settings);
        self.rings.extend(&later.rings);
        for (place, own) in &later.dirty {
            let sum = self.dirty.entry(place.clone()).or_insert(Some(Dirty::default()));
            *sum = sum.zip(*own).map(|(a, b)| a.plus(&b));
        }
        if !later.settings.is_empty() {
            // Each trial has one: there was a last.
            self.missing.clone_from(&later.missing);
        }
    }

    fn add_arm_facts(&mut self, trial: &TrialOutcome) {
        for fact in trial.arm_facts() {
            let Some(outcome) = trial.arms.get(fact.arm) else { continue };
            let arm = &outcome.arm.label;
            let is_it = |known: &ToldFact| {
                (&known.value, &known.name, &known.arm) == (&fact.value, &fact.name, arm)
                    && known.cell == trial.cell
            };
            if !self.arm_facts.iter().any(is_it) {
                self.arm_facts.push(ToldFact {
                    cell: trial.cell.clone(),
                    arm: arm.clone(),
                    name: fact.name.clone(),
                    value: fact.value.clone(),
                });
            }
        }
    }

    fn add_starts(&mut self, trial: &TrialOutcome) {
        for start in trial.tx.iter().flat_map(|end| &end.starts) {
            let Some(outcome) = trial.arms.get(start.arm) else { continue };
            self.starts.entry(outcome.arm.primitive.clone()).or_default().push(*start);
        }
    }

    fn add_by_pmu(&mut self, trial: &TrialOutcome) {
        for (end, facts) in [("sender", &trial.tx), ("receiver", &trial.rx)] {
            for row in facts.iter().flat_map(|facts| &facts.by_pmu) {
                let Some(outcome) = trial.arms.get(row.arm) else { continue };
                let arm = outcome.arm.label.clone();
                let place = PmuPlace { cell: trial.cell.clone(), arm, end, pmu: row.pmu.clone() };
                self.add_pmu(place, &(row.task_clock_ns, row.counts));
            }
        }
    }

    fn add_pmu(&mut self, place: PmuPlace, own: &(Option<u64>, PmuCounts)) {
        let sum = |(ns, counts): &mut (Option<u64>, PmuCounts)| {
            *ns = ns.zip(own.0).map(|(a, b)| a.saturating_add(b));
            *counts = counts.plus(&own.1);
        };
        self.by_pmu.entry(place).and_modify(sum).or_insert(*own);
    }

    /// Of each label the first arm that ran.
    fn add_dirty(&mut self, trial: &TrialOutcome) {
        let mut labels = BTreeSet::new();
        let ran = |status| matches!(status, Status::Ok | Status::Invalid);
        for (index, outcome) in trial.arms.iter().enumerate() {
            let label = &outcome.arm.label;
            if trial.pass == 0 || !ran(outcome.status) || !labels.insert(label) {
                continue;
            }
            let sum = self.dirty.entry((trial.cell.clone(), label.clone()));
            let sum = sum.or_insert(Some(Dirty::default()));
            for slice in measured(trial).filter(|slice| slice.arm == index) {
                let left = slice.tx.file.and_then(|file| file.dirty_after_bytes);
                let own = left.map(|dirty_bytes| Dirty { dirty_bytes, bytes: slice.tx.bytes });
                *sum = sum.zip(own).map(|(sum, own)| sum.plus(&own));
            }
        }
    }

    /// What of its bytes an arm left in the page cache that was not on the device, 0 to 1,
    /// over all its measured slices; `None` where the kernel does not say.
    pub fn dirty_share(&self, cell: &Cell, label: &str) -> Option<f64> {
        let dirty = (*self.dirty.get(&(cell.clone(), label.to_owned()))?)?;
        (dirty.bytes > 0).then(|| dirty.dirty_bytes as f64 / dirty.bytes as f64)
    }
}

impl Dirty {
    fn plus(&self, other: &Dirty) -> Dirty {
        Dirty {
            dirty_bytes: self.dirty_bytes.saturating_add(other.dirty_bytes),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

impl TimeSpent {
    fn plus(&self, other: &TimeSpent) -> TimeSpent {
        TimeSpent {
            reading_ns: self.reading_ns.saturating_add(other.reading_ns),
            slices_ns: self.slices_ns.saturating_add(other.slices_ns),
            trials_ns: self.trials_ns.saturating_add(other.trials_ns),
        }
    }

    fn add(&mut self, trial: &TrialOutcome) {
        let ends = [&trial.tx, &trial.rx].into_iter().flatten();
        if let Some(most) = ends.map(|end| end.bracket_ns).max() {
            let slices = trial.slices.iter().map(|slice| slice.tx.time_ns);
            let slices_ns = slices.fold(0, u64::saturating_add);
            let own = TimeSpent { reading_ns: most, slices_ns, trials_ns: trial.duration_ns };
            *self = self.plus(&own);
        }
    }
}

fn is_counted(slice: &SliceOutcome) -> bool {
    [Some(&slice.tx), slice.rx.as_ref()]
        .into_iter()
        .flatten()
        .any(|counts| counts.pmu.values().iter().any(Option::is_some))
}

/// Adds what an end could not read. That is the same in most trials, and most of what an
/// end says.
fn add_missing(
    reasons: &mut BTreeMap<String, BTreeSet<String>>,
    before: &mut Vec<NotMeasured>,
    end: Option<&EndFacts>,
) {
    let Some(end) = end.filter(|end| end.not_measured != *before) else { return };
    before.clone_from(&end.not_measured);
    for NotMeasured { metric, why } in before {
        reasons.entry(metric.clone()).or_default().insert(why.clone());
    }
}
