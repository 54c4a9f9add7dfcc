//! One group of a thread: opened, tested, read, and what it missed.

use arrayvec::ArrayVec;
use iolens_model::reading::NotMeasured;
use iolens_sys::errno::Errno;
use iolens_sys::perf_event::{Event, Group, Options, Times};

use super::self_test;
use super::table::{COUNTERS_MAX, Counter, GroupPlan, METRICS_MAX};

/// Events that count together: the kernel's, or scripted ones in tests.
pub(crate) trait EventGroup: Sized {
    /// Adds an event, whose value comes after those of the earlier ones.
    fn add(&mut self, event: &Event) -> Result<(), Errno>;
    /// Lets all events count.
    fn enable(&self) -> Result<(), Errno>;
    /// Reads all of them at once, without allocating.
    fn read(&mut self, values: &mut [u64]) -> Result<Times, Errno>;
}

impl EventGroup for Group {
    fn add(&mut self, event: &Event) -> Result<(), Errno> {
        Group::add(self, event)
    }

    fn enable(&self) -> Result<(), Errno> {
        Group::enable(self)
    }

    fn read(&mut self, values: &mut [u64]) -> Result<Times, Errno> {
        Group::read(self, values)
    }
}

/// Where groups come from.
pub(super) struct Source<'a, G> {
    /// The PMU of the thread's processor; null where there is only one.
    pub(super) pmu: Option<u32>,
    /// Opens a group with its first event.
    pub(super) lead: &'a dyn Fn(&Event, Options) -> Result<G, Errno>,
    /// Explains a refusal.
    pub(super) why: &'a dyn Fn(Event, Errno) -> String,
}

/// A group that counts.
#[derive(Debug)]
pub(super) struct Open<G> {
    group: G,
    pub(super) plan: GroupPlan,
    /// Where the plan's first counter stands among those of the table.
    pub(super) first: usize,
    /// The counters that could be opened, in the order of their values.
    pub(super) slots: ArrayVec<Slot, COUNTERS_MAX>,
    loss: Loss,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) counter: Counter,
    /// Position among the counters of the table.
    at: usize,
    /// Whether it passed its self-test.
    pub(super) believed: bool,
}

/// What a group counted, and for how long, up to a moment or since another.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct GroupReading {
    times: Times,
    values: [u64; COUNTERS_MAX],
}

impl GroupReading {
    pub(super) fn since(&self, earlier: &GroupReading) -> GroupReading {
        let passed = |pick: fn(&Times) -> u64| pick(&self.times) - pick(&earlier.times);
        GroupReading {
            times: Times {
                enabled_ns: passed(|times| times.enabled_ns),
                running_ns: passed(|times| times.running_ns),
            },
            values: std::array::from_fn(|i| self.values[i] - earlier.values[i]),
        }
    }

    /// Whether the group was on the PMU all the time.
    pub(super) fn is_whole(&self) -> bool {
        self.times.enabled_ns > 0 && self.times.running_ns == self.times.enabled_ns
    }
}

/// Why a metric has no value.
fn note(counter: &Counter, why: &str) -> NotMeasured {
    NotMeasured { metric: counter.metric.to_owned(), why: why.to_owned() }
}

impl<G: EventGroup> Open<G> {
    /// Opens a plan's counters, those that the kernel gives, and lets them
    /// count. The others are left out, and noted.
    pub(super) fn new(
        source: &Source<'_, G>,
        plan: &GroupPlan,
        first: usize,
        missing: &mut Vec<NotMeasured>,
    ) -> Option<Open<G>> {
        let options = Options { pinned: plan.pinned, inherit: false };
        let mut group: Option<G> = None;
        let mut slots = ArrayVec::new();
        for (index, &counter) in plan.counters.iter().enumerate() {
            let event = Event { kind: counter.kind, mode: counter.mode, pmu: source.pmu };
            let opened = match &mut group {
                None => (source.lead)(&event, options).map(|led| group = Some(led)),
                Some(group) => group.add(&event),
            };
            match opened {
                Ok(()) => slots.push(Slot { counter, at: first + index, believed: true }),
                Err(errno) => missing.push(note(&counter, &(source.why)(event, errno))),
            }
        }
        let open = Open { group: group?, plan: *plan, first, slots, loss: Loss::default() };
        match open.group.enable() {
            Ok(()) => Some(open),
            Err(errno) => {
                open.note_all(&format!("cannot enable the {}: {errno}", plan.name), missing);
                None
            }
        }
    }

    pub(super) fn read(&mut self) -> Result<GroupReading, Errno> {
        let mut reading = GroupReading::default();
        reading.times = self.group.read(&mut reading.values[..self.slots.len()])?;
        Ok(reading)
    }

    /// Believes what passes the self-test, and notes what does not.
    pub(super) fn judge(
        &mut self,
        tested: &Result<GroupReading, Errno>,
        missing: &mut Vec<NotMeasured>,
    ) {
        let refused = match tested {
            Err(errno) => Some(failed(*errno)),
            Ok(reading) if !reading.is_whole() => Some(format!(
                "did not have the PMU to itself in its self-test: {}; other users, or \
                 kernel.nmi_watchdog, hold its counters",
                share(reading.times)
            )),
            Ok(_) => None,
        };
        if let Some(why) = refused {
            self.note_all(&why, missing);
            self.slots.iter_mut().for_each(|slot| slot.believed = false);
        } else if let Ok(reading) = tested {
            for (slot, &value) in self.slots.iter_mut().zip(&reading.values) {
                if let Err(why) = self_test::judge(&slot.counter, value, reading.times) {
                    missing.push(note(&slot.counter, &why));
                    slot.believed = false;
                }
            }
            self.judge_untested(missing);
        }
    }

    /// A counter that the loop may leave at zero is as good as its neighbours.
    fn judge_untested(&mut self, missing: &mut Vec<NotMeasured>) {
        if !self.slots.iter().any(|slot| slot.believed && slot.counter.least > 0) {
            let why = "may read 0 in its self-test, and no other counter of its group counts here";
            self.note_all(why, missing);
            self.slots.iter_mut().for_each(|slot| slot.believed = false);
        }
    }

    /// Puts a slice's counts in their places, if they cover all of it; what
    /// they miss is remembered.
    pub(super) fn publish(
        &mut self,
        slice: &Result<GroupReading, Errno>,
        counts: &mut [Option<u64>; METRICS_MAX],
    ) {
        self.loss.add(slice);
        let Ok(reading) = slice else { return };
        if reading.is_whole() {
            for (slot, &value) in self.slots.iter().zip(&reading.values) {
                counts[slot.at] = slot.believed.then_some(value);
            }
        }
    }

    /// Notes what slices so far have missed.
    pub(super) fn note_loss(&self, missing: &mut Vec<NotMeasured>) {
        if let Some(why) = self.loss.why() {
            self.note_all(&why, missing);
        }
    }

    /// Notes one reason for all counters that were believed up to now.
    pub(super) fn note_all(&self, why: &str, missing: &mut Vec<NotMeasured>) {
        let believed = self.slots.iter().filter(|slot| slot.believed);
        missing.extend(believed.map(|slot| note(&slot.counter, why)));
    }
}

/// What a group missed of the slices so far.
#[derive(Debug, Clone, Copy, Default)]
struct Loss {
    partial: bool,
    times: Times,
    errno: Option<Errno>,
}

impl Loss {
    fn add(&mut self, slice: &Result<GroupReading, Errno>) {
        match slice {
            Err(errno) => self.errno = Some(*errno),
            Ok(reading) => {
                self.partial |= !reading.is_whole();
                self.times.enabled_ns += reading.times.enabled_ns;
                self.times.running_ns += reading.times.running_ns;
            }
        }
    }

    fn why(&self) -> Option<String> {
        if let Some(errno) = self.errno {
            return Some(failed(errno));
        }
        let scaled = "a count of a part of a slice is not scaled up";
        self.partial.then(|| format!("shared the PMU: {}; {scaled}", share(self.times)))
    }
}

fn failed(errno: Errno) -> String {
    if errno == Errno::ENODATA {
        return "could not be kept on the PMU: other users, or kernel.nmi_watchdog, hold its \
                counters, or it has too few"
            .to_owned();
    }
    format!("cannot read the counters: {errno}")
}

/// `ran about 50 % of the time`. In steps of ten, so that a run of hundreds of
/// trials has a few reasons and not hundreds.
fn share(times: Times) -> String {
    let percent = times.running_ns.saturating_mul(100) / times.enabled_ns.max(1);
    match percent {
        0 if times.running_ns == 0 => "never ran".to_owned(),
        0..5 => "ran less than 5 % of the time".to_owned(),
        95.. => "ran more than 95 % of the time".to_owned(),
        _ => format!("ran about {} % of the time", (percent + 5) / 10 * 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_said_in_few_ways() {
        let check = |running_ns, expected: &str| {
            assert_eq!(share(Times { enabled_ns: 1000, running_ns }), expected);
        };
        check(0, "never ran");
        check(1, "ran less than 5 % of the time");
        check(50, "ran about 10 % of the time");
        check(480, "ran about 50 % of the time");
        check(949, "ran about 90 % of the time");
        check(999, "ran more than 95 % of the time");
    }
}
