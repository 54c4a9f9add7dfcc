//! One group of a thread: opened, tested, read, and what it missed.

use arrayvec::ArrayVec;
use iolens_model::reading::NotMeasured;
use iolens_sys::errno::Errno;
use iolens_sys::perf_event::{Event, Group, Kind, Mode, Options, Refusal, Scope, Times};

use super::self_test;
use super::table::{self, COUNTERS_MAX, Counter, GroupPlan, Values};

/// Events that count together: the kernel's, or scripted ones in tests.
pub trait EventGroup: Sized {
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

/// The same events on several CPUs, summed: what everybody does there.
#[derive(Debug)]
pub struct Everywhere {
    cpus: Vec<Group>,
}

impl Everywhere {
    /// Errors: of the first CPU that refuses.
    pub(super) fn lead(cpus: &[u32], event: &Event, options: Options) -> Result<Self, Errno> {
        let on = |&cpu: &u32| Group::lead(event, Options { scope: Scope::Cpu(cpu), ..options });
        Ok(Everywhere { cpus: cpus.iter().map(on).collect::<Result<_, _>>()? })
    }
}

impl EventGroup for Everywhere {
    fn add(&mut self, event: &Event) -> Result<(), Errno> {
        self.cpus.iter_mut().try_for_each(|group| group.add(event))
    }

    fn enable(&self) -> Result<(), Errno> {
        self.cpus.iter().try_for_each(Group::enable)
    }

    fn read(&mut self, values: &mut [u64]) -> Result<Times, Errno> {
        let mut sum = Times::default();
        values.fill(0);
        for group in &mut self.cpus {
            let mut own = [0; COUNTERS_MAX];
            let times = group.read(&mut own[..values.len()])?;
            sum.enabled_ns += times.enabled_ns;
            sum.running_ns += times.running_ns;
            values.iter_mut().zip(own).for_each(|(value, own)| *value += own);
        }
        Ok(sum)
    }
}

/// Where groups come from.
pub(super) struct Source<'a, G> {
    /// The PMU of the thread's processor; `None` where there is only one.
    pub(super) pmu: Option<u32>,
    /// Opens a group with its first event.
    pub(super) lead: Lead<'a, G>,
    /// The number of a tracepoint.
    ///
    /// Errors: why it is not known.
    pub(super) tracepoint: &'a dyn Fn(&str) -> Result<u64, String>,
    /// Explains a refusal.
    pub(super) why: &'a dyn Fn(Event, Errno) -> String,
    /// Whose events they count.
    pub(super) reach: Reach,
}

/// Whose events a group counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Of one thread, or of one CPU.
    One,
    /// Of a thread with all that it starts.
    Family,
}

impl Reach {
    /// How a group is opened.
    ///
    /// A pinned group that has no room on the PMU is in error and reads as such; but of
    /// a child's nobody hears (`perf_event_update_time`, kernel/events/core.c, lets no
    /// time pass in that state), and its counts would be too small without a word. Those
    /// of a family are therefore not pinned: a child that had to wait for the PMU shows
    /// in the times. Without the PMU there is always room.
    fn options(self, plan: &GroupPlan) -> Options {
        let has_hardware = plan.counters.iter().any(|counter| counter.kind.is_hardware());
        let is_family = self == Reach::Family;
        Options {
            pinned: plan.pinned && !(is_family && has_hardware),
            inherit: is_family,
            ..Options::default()
        }
    }
}

/// Opens a group with its first event.
pub(super) type Lead<'a, G> = &'a dyn Fn(&Event, Options) -> Result<G, Errno>;

impl<G> Source<'_, G> {
    /// The event of a counter.
    ///
    /// Errors: it is a tracepoint whose number is not known.
    fn event(&self, counter: &Counter) -> Result<Event, String> {
        let kind = match counter.kind {
            Kind::Tracepoint { name, .. } => {
                Kind::Tracepoint { name, id: (self.tracepoint)(name)? }
            }
            other => other,
        };
        Ok(Event { kind, mode: counter.mode, pmu: self.pmu })
    }
}

/// A group that counts, or would if it were not closed for a while.
#[derive(Debug)]
pub(super) struct Open<G> {
    group: Option<G>,
    pub(super) plan: GroupPlan,
    options: Options,
    /// The counters that could be opened, in the order of their values.
    pub(super) slots: ArrayVec<Slot, COUNTERS_MAX>,
    loss: Loss,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) counter: Counter,
    /// What was opened for it.
    event: Event,
    /// Position of its metric.
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

/// Adds a counter to a group, which begins with the first that is given.
/// `task-clock` may be had in user mode where the kernel may not be counted,
/// and counts the same there: the kernel does not look at the mode.
///
/// Errors: why there is no such counter, one clause.
fn open<G: EventGroup>(
    source: &Source<'_, G>,
    group: &mut Option<G>,
    options: Options,
    counter: &Counter,
) -> Result<Event, String> {
    let mut open = |event: Event| {
        let opened = match &mut *group {
            None => (source.lead)(&event, options).map(|led| *group = Some(led)),
            Some(group) => group.add(&event),
        };
        opened.map(|()| event)
    };
    let event = source.event(counter)?;
    let opened = open(event).or_else(|errno| {
        let denied = Refusal::from(errno) == Refusal::NotPermitted;
        if denied && event.kind == Kind::TaskClock {
            return open(Event { mode: Mode::User, ..event }).map_err(|_| errno);
        }
        Err(errno)
    });
    opened.map_err(|errno| (source.why)(event, errno))
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
        missing: &mut Vec<NotMeasured>,
    ) -> Option<Open<G>> {
        let mut group: Option<G> = None;
        let mut slots = ArrayVec::new();
        let options = source.reach.options(plan);
        for &counter in plan.counters {
            match open(source, &mut group, options, &counter) {
                Ok(event) => {
                    let at = table::place(counter.metric);
                    slots.push(Slot { counter, event, at, believed: true });
                }
                Err(why) => missing.push(note(&counter, &why)),
            }
        }
        let open = Open { group: Some(group?), plan: *plan, options, slots, loss: Loss::default() };
        match open.group.as_ref()?.enable() {
            Ok(()) => Some(open),
            Err(errno) => {
                open.note_all(&format!("cannot enable the {}: {errno}", plan.name), missing);
                None
            }
        }
    }

    /// Closes the group; [`Self::reopen`] opens the same events again.
    pub(super) fn close(&mut self) {
        self.group = None;
    }

    /// Opens what was closed, without a test: it has passed one. What fails
    /// now is missing from here on.
    pub(super) fn reopen(&mut self, lead: Lead<'_, G>) {
        let Some((first, others)) = self.slots.split_first() else { return };
        let again = || {
            let mut group = lead(&first.event, self.options)?;
            others.iter().try_for_each(|slot| group.add(&slot.event))?;
            group.enable()?;
            Ok(group)
        };
        match again() {
            Ok(group) => self.group = Some(group),
            Err(errno) => self.loss.errno = Some(errno),
        }
    }

    /// Whether it may have to leave the PMU to others.
    pub(super) fn shares(&self) -> bool {
        !self.options.pinned
    }

    /// What is open.
    #[cfg(test)]
    pub(super) fn group(&self) -> Option<&G> {
        self.group.as_ref()
    }

    pub(super) fn is_open(&self) -> bool {
        self.group.is_some()
    }

    /// `None` while it is closed.
    pub(super) fn read(&mut self) -> Option<Result<GroupReading, Errno>> {
        let group = self.group.as_mut()?;
        let mut reading = GroupReading::default();
        Some(match group.read(&mut reading.values[..self.slots.len()]) {
            Ok(times) => {
                reading.times = times;
                Ok(reading)
            }
            Err(errno) => Err(errno),
        })
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
    pub(super) fn publish(&mut self, slice: &Result<GroupReading, Errno>, counts: &mut Values) {
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
        0..5 => "ran less than 5% of the time".to_owned(),
        95.. => "ran more than 95% of the time".to_owned(),
        _ => format!("ran about {}% of the time", (percent + 5) / 10 * 10),
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
        check(1, "ran less than 5% of the time");
        check(50, "ran about 10% of the time");
        check(480, "ran about 50% of the time");
        check(949, "ran about 90% of the time");
        check(999, "ran more than 95% of the time");
    }
}
