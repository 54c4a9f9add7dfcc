//! The readings at the edges of a slice: one place that takes them, outside
//! the slice's clock, and one that subtracts them.

use std::os::fd::BorrowedFd;

use iolens_model::outcome::{Counts, PmuCounts};
use iolens_model::reading::NotMeasured;
use iolens_sys::proc::{ProcFile, Root, cpu_ticks, sched_number};
use iolens_sys::{clock, tcp, usage};

use crate::counters::{Counters, Snapshot};

/// Large enough for the part of these files that is read.
const SCHED_BYTES: usize = 4 << 10;
const STAT_BYTES_PER_CPU: usize = 128;

/// One thread's instruments.
#[derive(Debug)]
pub(crate) struct Bracket {
    sched: Option<ProcFile>,
    stat: Option<ProcFile>,
    /// The lines of /proc/stat that this end's threads run on.
    stat_cpus: Vec<String>,
    counters: Counters,
    missing: Vec<NotMeasured>,
    spent_ns: u64,
}

/// Readings that take microseconds: taken while no thread of the end is in the
/// slice.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outer {
    migrations: Option<u64>,
    retransmits: Option<u64>,
    softirq_ticks: Option<u64>,
}

/// Readings that take a system call each: taken next to the slice's clock, so
/// that waiting for other threads is not charged to the slice.
///
/// The PMU's counters are here, and not among the outer readings, because they
/// must cover the same work as CPU time: cycles over CPU time is a clock rate
/// that a gate checks. They enclose it, not the other way round, so that CPU
/// time is the same on machines with and without a PMU. On either side of a
/// slice a thread reads before its first call and after its receipt, hence
/// outside its own part of the slice; where threads share a CPU, a late one
/// still reads while the clock of the others runs, in all arms alike.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Inner {
    cpu_ns: u64,
    usage: Option<usage::ThreadUsage>,
    pmu: Snapshot,
}

impl Bracket {
    /// The instruments of the calling thread, which stays on its one of `cpus`.
    /// Only the first thread of an end reads the softirq ticks, which belong
    /// to CPUs, not to threads. Counters that do not fit the PMU together take
    /// turns by `pass`.
    pub(crate) fn open(thread: usize, cpus: &[u32], pass: u32) -> Bracket {
        let mut missing = Vec::new();
        let mut note = |metric: &str, why: String| {
            missing.push(NotMeasured { metric: metric.to_owned(), why });
        };
        let sched = ProcFile::open("/proc/thread-self/sched", SCHED_BYTES)
            .and_then(|mut file| match file.read().and_then(migrations) {
                Some(_) => Ok(file),
                None => Err("/proc/thread-self/sched has no se.nr_migrations".to_owned()),
            })
            .map_err(|why| note("migrations", why))
            .ok();
        let stat = if thread == 0 {
            let highest = cpus.iter().max().map_or(0, |&cpu| cpu as usize);
            ProcFile::open("/proc/stat", STAT_BYTES_PER_CPU * (highest + 2))
                .map_err(|why| note("softirq_ticks", why))
                .ok()
        } else {
            None
        };
        let mut stat_cpus: Vec<String> = cpus.iter().map(|cpu| format!("cpu{cpu}")).collect();
        stat_cpus.sort_unstable();
        stat_cpus.dedup();
        let counters = Counters::open(&Root::real(), cpus[thread % cpus.len()], pass);
        Bracket { sched, stat, stat_cpus, counters, missing, spent_ns: 0 }
    }

    /// The outer readings; `connection` is the arm's, where it has one.
    pub(crate) fn outer(&mut self, connection: Option<BorrowedFd<'_>>) -> Outer {
        let begin = clock::monotonic_ns();
        let softirq_ticks = self.stat.as_mut().and_then(ProcFile::read).and_then(|text| {
            let ticks = |cpu: &String| cpu_ticks(text, cpu).map(|t| t.softirq);
            self.stat_cpus.iter().map(ticks).sum()
        });
        let outer = Outer {
            softirq_ticks,
            migrations: self.sched.as_mut().and_then(ProcFile::read).and_then(migrations),
            retransmits: connection.and_then(|fd| tcp::info(fd).ok()).map(|info| info.retransmits),
        };
        self.spent_ns += clock::monotonic_ns() - begin;
        outer
    }

    /// The inner readings before a slice: CPU time last.
    pub(crate) fn inner_before(&mut self) -> Inner {
        let usage = usage::thread_usage().ok();
        let pmu = self.read_counters(Counters::read_before);
        Inner { usage, pmu, cpu_ns: clock::thread_cpu_ns() }
    }

    /// The inner readings after a slice: CPU time first.
    pub(crate) fn inner_after(&mut self) -> Inner {
        let cpu_ns = clock::thread_cpu_ns();
        let pmu = self.read_counters(Counters::read_after);
        Inner { cpu_ns, pmu, usage: usage::thread_usage().ok() }
    }

    fn read_counters(&mut self, read: fn(&mut Counters) -> Snapshot) -> Snapshot {
        if self.counters.is_empty() {
            return Snapshot::default();
        }
        let begin = clock::monotonic_ns();
        let snapshot = read(&mut self.counters);
        self.spent_ns += clock::monotonic_ns() - begin;
        snapshot
    }

    /// The counters between two inner readings of this thread and the two
    /// outer ones around them; what the loop counts itself is left at zero.
    pub(crate) fn between(&mut self, inner: [&Inner; 2], outer: [&Outer; 2]) -> Counts {
        let pmu = self.counters.between([&inner[0].pmu, &inner[1].pmu]);
        Counts { pmu: PmuCounts::from_values(pmu), ..between(inner, outer) }
    }

    /// Time spent in [`Self::outer`] and with the PMU's counters so far.
    pub(crate) fn spent_ns(&self) -> u64 {
        self.spent_ns
    }

    /// What cannot be read, or could not in some slice, and why.
    pub(crate) fn missing(&self) -> Vec<NotMeasured> {
        let mut missing = self.missing.clone();
        missing.extend(self.counters.missing());
        missing
    }
}

fn migrations(sched: &str) -> Option<u64> {
    sched_number(sched, "se.nr_migrations")
}

/// What the kernel's accounts say between the readings.
fn between(inner: [&Inner; 2], outer: [&Outer; 2]) -> Counts {
    let difference = |a: Option<u64>, b: Option<u64>| Some(b?.saturating_sub(a?));
    let used = |field: fn(&usage::ThreadUsage) -> u64| {
        difference(inner[0].usage.as_ref().map(field), inner[1].usage.as_ref().map(field))
    };
    Counts {
        task_clock_ns: Some(inner[1].cpu_ns - inner[0].cpu_ns),
        voluntary_switches: used(|u| u.voluntary_switches),
        involuntary_switches: used(|u| u.involuntary_switches),
        minor_faults: used(|u| u.minor_faults),
        major_faults: used(|u| u.major_faults),
        migrations: difference(outer[0].migrations, outer[1].migrations),
        retransmits: difference(outer[0].retransmits, outer[1].retransmits),
        softirq_ticks: difference(outer[0].softirq_ticks, outer[1].softirq_ticks),
        ..Counts::default()
    }
}

/// Adds one thread's counts to the end's. A sum with an unknown part is
/// unknown; `first` says that `sum` has no part yet. Softirq ticks come from
/// the first thread alone.
pub(crate) fn add(sum: &mut Counts, part: &Counts, first: bool) {
    if first {
        *sum = *part;
        return;
    }
    let both = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
    sum.messages += part.messages;
    sum.bytes += part.bytes;
    sum.calls += part.calls;
    sum.task_clock_ns = both(sum.task_clock_ns, part.task_clock_ns);
    sum.voluntary_switches = both(sum.voluntary_switches, part.voluntary_switches);
    sum.involuntary_switches = both(sum.involuntary_switches, part.involuntary_switches);
    sum.migrations = both(sum.migrations, part.migrations);
    sum.minor_faults = both(sum.minor_faults, part.minor_faults);
    sum.major_faults = both(sum.major_faults, part.major_faults);
    sum.retransmits = both(sum.retransmits, part.retransmits);
    sum.zerocopy = sum.zerocopy.zip(part.zerocopy).map(|(a, b)| a.plus(&b));
    sum.pmu = sum.pmu.plus(&part.pmu);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_part_makes_the_sum_unknown() {
        let known = Counts { bytes: 2, migrations: Some(1), ..Counts::default() };
        let unknown = Counts { bytes: 3, migrations: None, ..Counts::default() };
        let mut sum = Counts::default();
        add(&mut sum, &known, true);
        add(&mut sum, &known, false);
        assert_eq!((sum.bytes, sum.migrations), (4, Some(2)));
        add(&mut sum, &unknown, false);
        assert_eq!((sum.bytes, sum.migrations), (7, None));
    }

    #[test]
    fn work_shows_between_two_readings() {
        let cpus = iolens_sys::affinity::thread_cpus().unwrap();
        let mut bracket = Bracket::open(0, &cpus, 1);
        let (outer, inner) = (bracket.outer(None), bracket.inner_before());
        // Above what malloc(3) ever keeps for later (M_MMAP_THRESHOLD, 32 MiB at
        // most), so that it is fresh whatever other tests have freed.
        let fresh = vec![1u8; 40 << 20];
        std::hint::black_box(&fresh);
        let (inner_after, outer_after) = (bracket.inner_after(), bracket.outer(None));
        let counts = bracket.between([&inner, &inner_after], [&outer, &outer_after]);
        assert!(counts.task_clock_ns.unwrap() > 0);
        assert!(counts.minor_faults.unwrap() > 0);
        assert_eq!(counts.retransmits, None, "there is no connection");
        assert!(bracket.spent_ns() > 0);
        let missing = bracket.missing();
        for (name, value) in PmuCounts::NAMES.into_iter().zip(counts.pmu.values()) {
            let has_reason = missing.iter().any(|entry| entry.metric == name);
            assert_eq!(value.is_none(), has_reason, "{name}: a value or a reason");
        }
    }
}
