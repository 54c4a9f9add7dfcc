//! The readings at the edges of a slice: one place that takes them, outside
//! the slice's clock, and one that subtracts them.

use std::os::fd::BorrowedFd;

use iolens_model::outcome::{Counts, KernelCounts, PmuCounts};
use iolens_model::plan::Probes;
use iolens_model::reading::NotMeasured;
use iolens_sys::proc::{ProcFile, Root, cpu_ticks, run_delay_ns, sched_number};
use iolens_sys::{clock, tcp, usage};

use super::helpers::{self, Helpers};
use iolens_harness::counters::{self, Counters, Everywhere, Snapshot, Wanted};
use iolens_harness::op::Children;

/// Large enough for the part of these files that is read.
const SCHED_BYTES: usize = 4 << 10;
const SCHEDSTAT_BYTES: usize = 128;
const STAT_BYTES_PER_CPU: usize = 128;

/// One thread's instruments.
#[derive(Debug)]
pub(crate) struct Bracket {
    sched: Option<ProcFile>,
    schedstat: Option<ProcFile>,
    /// What belongs to CPUs and not to threads: the end's first thread has it.
    shared: Option<Shared>,
    /// The kernel's threads that work for the end: its first thread counts them as its own.
    helpers: Option<Helpers>,
    /// What is not known of slices in which they worked, or ended.
    unknown: Unknown,
    counters: Counters,
    /// Whether the counters are open.
    counts: bool,
    missing: Vec<NotMeasured>,
    spent_ns: u64,
}

/// What a kernel's thread that worked for an arm has left unknown in some slice.
#[derive(Debug, Clone, Copy, Default)]
struct Unknown {
    counters: bool,
    cpu: bool,
}

/// Instruments of the CPUs of an end.
#[derive(Debug)]
pub(super) struct Shared {
    stat: Option<ProcFile>,
    /// The CPUs that the end's threads run on, each once.
    cpus: Vec<u32>,
    /// Their lines of /proc/stat.
    lines: Vec<String>,
    pub(super) counters: Counters<Everywhere>,
}

/// Readings that take microseconds: taken while no thread of the end is in the
/// slice.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outer {
    migrations: Option<u64>,
    run_delay_ns: Option<u64>,
    connection: Option<tcp::Info>,
    softirq_ticks: Option<u64>,
    everybody: Snapshot,
    helpers: Option<helpers::Spent>,
}

/// Readings that take a system call each: taken next to the slice's clock, so
/// that waiting for other threads is not charged to the slice.
///
/// The thread's counters are here, and not among the outer readings, because
/// they must cover the same work as CPU time: cycles over CPU time is a clock
/// rate that a gate checks. They enclose it, not the other way round, so that
/// CPU time is the same on machines with and without a PMU. On either side of a
/// slice a thread reads before its first call and after its receipt, hence
/// outside its own part of the slice; where threads share a CPU, a late one
/// still reads while the clock of the others runs, in all arms alike.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Inner {
    cpu_ns: u64,
    usage: Option<usage::ThreadUsage>,
    counted: Snapshot,
}

impl Inner {
    /// CPU time of the thread alone since `before`.
    pub(crate) fn own_cpu_ns(&self, before: &Inner) -> u64 {
        self.cpu_ns - before.cpu_ns
    }
}

/// Counts the processes that a thread has started as its own. What only a thread is
/// asked for is unknown then: a zero would be a claim.
pub(crate) fn with_children(counts: &mut Counts, children: &Children) {
    let plus = |own: Option<u64>, theirs: Option<u64>| Some(own?.saturating_add(theirs?));
    counts.task_clock_ns = plus(counts.task_clock_ns, children.cpu_ns);
    counts.voluntary_switches = plus(counts.voluntary_switches, children.voluntary_switches);
    counts.involuntary_switches = plus(counts.involuntary_switches, children.involuntary_switches);
    counts.minor_faults = plus(counts.minor_faults, children.minor_faults);
    counts.major_faults = plus(counts.major_faults, children.major_faults);
    (counts.calls, counts.migrations, counts.run_delay_ns) = (None, None, None);
    (counts.pmu, counts.kernel) = (PmuCounts::default(), KernelCounts::default());
}

/// Opens a file of the calling thread whose number is read at each edge.
fn number_file(
    path: &str,
    bytes: usize,
    number: fn(&str) -> Option<u64>,
    lacks: &str,
) -> Result<ProcFile, String> {
    let mut file = ProcFile::open(path, bytes)?;
    match file.read().and_then(number) {
        Some(_) => Ok(file),
        None => Err(format!("{path} {lacks}")),
    }
}

impl Shared {
    pub(super) fn open(
        cpus: &[u32],
        probes: Probes,
        note: &mut impl FnMut(&str, String),
    ) -> Shared {
        let mut cpus = cpus.to_vec();
        cpus.sort_unstable();
        cpus.dedup();
        let highest = cpus.last().map_or(0, |&cpu| cpu as usize);
        let stat = ProcFile::open("/proc/stat", STAT_BYTES_PER_CPU * (highest + 2))
            .map_err(|why| note("softirq_ticks", why))
            .ok();
        let lines = cpus.iter().map(|cpu| format!("cpu{cpu}")).collect();
        let counters = Counters::of_cpus(&Root::real(), &cpus, probes);
        Shared { stat, cpus, lines, counters }
    }

    /// Opens or closes the counters.
    pub(super) fn count(&mut self, open: bool) {
        match open {
            true => self.counters.reopen(&self.cpus),
            false => self.counters.close(),
        }
    }

    pub(super) fn softirq_ticks(&mut self) -> Option<u64> {
        let text = self.stat.as_mut()?.read()?;
        let ticks = |cpu: &String| cpu_ticks(text, cpu).map(|ticks| ticks.softirq);
        self.lines.iter().map(ticks).sum()
    }
}

impl Bracket {
    /// The instruments of the calling thread, which stays on its one of `cpus`.
    /// Only the first thread of an end reads what belongs to CPUs. Counters
    /// that do not fit the PMU together take turns by `pass`.
    pub(crate) fn open(thread: usize, cpus: &[u32], pass: u32, probes: Probes) -> Bracket {
        let mut missing = Vec::new();
        let mut note = |metric: &str, why: String| {
            missing.push(NotMeasured { metric: metric.to_owned(), why });
        };
        let path = "/proc/thread-self/sched";
        let sched = number_file(path, SCHED_BYTES, migrations, "has no se.nr_migrations")
            .map_err(|why| note("migrations", why))
            .ok();
        let path = "/proc/thread-self/schedstat";
        let schedstat = number_file(path, SCHEDSTAT_BYTES, run_delay_ns, "counts nothing here")
            .map_err(|why| note("run_delay_ns", why))
            .ok();
        let shared = (thread == 0).then(|| Shared::open(cpus, probes, &mut note));
        let helpers = (thread == 0).then(Helpers::open).transpose();
        let helpers = helpers.map_err(|why| note("task_clock_ns", why)).unwrap_or_default();
        let wanted = Wanted { cpu: cpus[thread % cpus.len()], turn: pass, probes };
        let counters = Counters::of_thread(&Root::real(), wanted);
        Bracket {
            sched,
            schedstat,
            shared,
            helpers,
            unknown: Unknown::default(),
            counters,
            counts: true,
            missing,
            spent_ns: 0,
        }
    }

    /// Opens or closes the counters, outside of everything that is timed.
    pub(crate) fn count(&mut self, open: bool) {
        if std::mem::replace(&mut self.counts, open) == open {
            return;
        }
        if let Some(shared) = &mut self.shared {
            shared.count(open);
        }
        match open {
            true => self.counters.reopen(),
            false => self.counters.close(),
        }
    }

    /// The outer readings before a slice; `connection` is the arm's, where it
    /// has one.
    pub(crate) fn outer_before(&mut self, connection: Option<BorrowedFd<'_>>) -> Outer {
        self.outer(connection, Counters::read_before)
    }

    /// The outer readings after a slice.
    pub(crate) fn outer_after(&mut self, connection: Option<BorrowedFd<'_>>) -> Outer {
        self.outer(connection, Counters::read_after)
    }

    fn outer(
        &mut self,
        connection: Option<BorrowedFd<'_>>,
        read: fn(&mut Counters<Everywhere>) -> Snapshot,
    ) -> Outer {
        let begin = clock::monotonic_ns();
        let number = |file: &mut Option<ProcFile>, number: fn(&str) -> Option<u64>| {
            file.as_mut().and_then(ProcFile::read).and_then(number)
        };
        let outer = Outer {
            // First: one that looks for more work goes on spending.
            helpers: self.helpers.as_mut().and_then(Helpers::read),
            softirq_ticks: self.shared.as_mut().and_then(Shared::softirq_ticks),
            migrations: number(&mut self.sched, migrations),
            run_delay_ns: number(&mut self.schedstat, run_delay_ns),
            connection: connection.and_then(|fd| tcp::info(fd).ok()),
            everybody: self.shared.as_mut().map(|s| read(&mut s.counters)).unwrap_or_default(),
        };
        self.spent_ns += clock::monotonic_ns() - begin;
        outer
    }

    /// The inner readings before a slice: CPU time last.
    pub(crate) fn inner_before(&mut self) -> Inner {
        let usage = usage::thread_usage().ok();
        let counted = self.read_counters(Counters::read_before);
        Inner { usage, counted, cpu_ns: clock::thread_cpu_ns() }
    }

    /// The inner readings after a slice: CPU time first.
    pub(crate) fn inner_after(&mut self) -> Inner {
        let cpu_ns = clock::thread_cpu_ns();
        let counted = self.read_counters(Counters::read_after);
        Inner { cpu_ns, counted, usage: usage::thread_usage().ok() }
    }

    fn read_counters(&mut self, read: fn(&mut Counters) -> Snapshot) -> Snapshot {
        if !self.counters.is_open() {
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
        let own = self.counters.between([&inner[0].counted, &inner[1].counted]);
        let (pmu, mut kernel) = counters::split(&own);
        if let Some(shared) = &mut self.shared {
            let edges = [&outer[0].everybody, &outer[1].everybody];
            let (_, everybody) = counters::split(&shared.counters.between(edges));
            kernel = with_cpus(&kernel, &everybody);
        }
        let mut counts = Counts { pmu, kernel, ..between(inner, outer) };
        if self.shared.is_some() {
            self.add_helpers(&mut counts, outer);
        }
        counts
    }

    /// Adds what the kernel's threads have spent on the slice. What counts a thread alone
    /// has not counted them: with a part of the work unknown, the sum is.
    fn add_helpers(&mut self, counts: &mut Counts, outer: [&Outer; 2]) {
        let edges = outer[0].helpers.zip(outer[1].helpers);
        match edges.and_then(|(before, after)| after.since(&before)) {
            Some(0) => return,
            Some(cpu_ns) => counts.task_clock_ns = counts.task_clock_ns.map(|own| own + cpu_ns),
            None => {
                counts.task_clock_ns = None;
                self.unknown.cpu |= self.helpers.is_some();
            }
        }
        let had = PmuCounts::default() != counts.pmu || KernelCounts::default() != counts.kernel;
        self.unknown.counters |= had;
        counts.pmu = PmuCounts::default();
        counts.kernel = with_cpus(&KernelCounts::default(), &counts.kernel);
    }

    /// The PMU that counts, on machines with several kinds of cores.
    pub(crate) fn pmu(&self) -> Option<&str> {
        self.counters.pmu()
    }

    /// Groups of counters that are read at each edge.
    pub(crate) fn groups(&self) -> usize {
        self.counters.groups() + self.shared.as_ref().map_or(0, |s| s.counters.groups())
    }

    /// Time spent with the outer readings and with the counters so far.
    pub(crate) fn spent_ns(&self) -> u64 {
        self.spent_ns
    }

    /// What cannot be read, or could not in some slice, and why.
    pub(crate) fn missing(&self) -> Vec<NotMeasured> {
        let mut missing = self.missing.clone();
        missing.extend(self.counters.missing());
        missing.extend(self.shared.iter().flat_map(|shared| shared.counters.missing()));
        missing.extend(self.unknown.told());
        missing
    }
}

impl Unknown {
    fn told(self) -> Vec<NotMeasured> {
        let note = |metric: &str, why: &str| NotMeasured {
            metric: metric.to_owned(),
            why: why.to_owned(),
        };
        let cpu = self.cpu.then(|| {
            note(
                "task_clock_ns",
                "a thread of the kernel's that worked for the arm ended in a slice",
            )
        });
        let why = "threads of the kernel's (io_uring) worked for the arm in a slice, which a \
                   thread's counters do not count";
        let names = PmuCounts::NAMES.iter().chain(&KernelCounts::NAMES).filter(|_| self.counters);
        let of_cpus = |name: &&&str| !name.starts_with("cpu_");
        cpu.into_iter().chain(names.filter(of_cpus).map(|name| note(name, why))).collect()
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
    let of_connection = |count: fn(&tcp::Info) -> Option<u64>| {
        difference(
            outer[0].connection.as_ref().and_then(count),
            outer[1].connection.as_ref().and_then(count),
        )
    };
    Counts {
        task_clock_ns: Some(inner[1].own_cpu_ns(inner[0])),
        voluntary_switches: used(|u| u.voluntary_switches),
        involuntary_switches: used(|u| u.involuntary_switches),
        minor_faults: used(|u| u.minor_faults),
        major_faults: used(|u| u.major_faults),
        migrations: difference(outer[0].migrations, outer[1].migrations),
        run_delay_ns: difference(outer[0].run_delay_ns, outer[1].run_delay_ns),
        retransmits: of_connection(|info| Some(info.retransmits)),
        segments_out: of_connection(|info| info.segments_out),
        softirq_ticks: difference(outer[0].softirq_ticks, outer[1].softirq_ticks),
        ..Counts::default()
    }
}

/// A thread's counts with those of CPUs, which are nobody's and everybody's.
pub(super) fn with_cpus(own: &KernelCounts, cpus: &KernelCounts) -> KernelCounts {
    KernelCounts {
        cpu_clock_ns: cpus.cpu_clock_ns,
        cpu_context_switches: cpus.cpu_context_switches,
        ..*own
    }
}

/// Adds one thread's counts to the end's. A sum with an unknown part is
/// unknown; `first` says that `sum` has no part yet. What belongs to CPUs comes
/// from the first thread alone.
pub(crate) fn add(sum: &mut Counts, part: &Counts, first: bool) {
    if first {
        *sum = *part;
        return;
    }
    let together = sum.plus(part);
    *sum = Counts {
        softirq_ticks: sum.softirq_ticks,
        file: sum.file.zip(part.file).map(|(a, b)| a.plus(&b)),
        kernel: with_cpus(&together.kernel, &sum.kernel),
        ..together
    };
}

#[cfg(test)]
mod tests {
    use iolens_model::axes::Counting;
    use iolens_model::outcome::PmuCounts;

    use super::*;

    /// Everything that can be asked for.
    const ALL: Probes = Probes { counting: Counting::On, software: true, tracepoints: true };

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
    fn what_belongs_to_cpus_is_counted_by_one_thread() {
        let kernel = |sys_enter, cpu| KernelCounts {
            sys_enter: Some(sys_enter),
            cpu_context_switches: cpu,
            ..KernelCounts::default()
        };
        let counts = |kernel| Counts { kernel, ..Counts::default() };
        let mut sum = Counts::default();
        add(&mut sum, &counts(kernel(2, Some(9))), true);
        add(&mut sum, &counts(kernel(3, None)), false);
        assert_eq!(sum.kernel, kernel(5, Some(9)));
    }

    /// A slice in which fresh memory is written and a thread is waited for.
    fn slice(bracket: &mut Bracket) -> Counts {
        let (outer, inner) = (bracket.outer_before(None), bracket.inner_before());
        iolens_sys::memory::touch_fresh_pages(64).unwrap();
        std::thread::spawn(|| ()).join().unwrap();
        let (inner_after, outer_after) = (bracket.inner_after(), bracket.outer_after(None));
        bracket.between([&inner, &inner_after], [&outer, &outer_after])
    }

    fn values(counts: &Counts) -> impl Iterator<Item = (&'static str, Option<u64>)> {
        let pmu = PmuCounts::NAMES.into_iter().zip(counts.pmu.values());
        pmu.chain(KernelCounts::NAMES.into_iter().zip(counts.kernel.values()))
    }

    #[test]
    fn work_shows_between_two_readings() {
        let cpus = iolens_sys::affinity::thread_cpus().unwrap();
        let mut bracket = Bracket::open(0, &cpus, 1, ALL);
        let counts = slice(&mut bracket);
        assert!(counts.task_clock_ns.unwrap() > 0);
        assert!(counts.minor_faults.unwrap() > 0);
        let of_connections = (counts.retransmits, counts.segments_out);
        assert_eq!(of_connections, (None, None), "there is no connection");
        assert!(bracket.spent_ns() > 0);
        let missing = bracket.missing();
        let has_reason = |name: &str| missing.iter().any(|entry| entry.metric == name);
        for (name, value) in values(&counts) {
            assert_eq!(value.is_none(), has_reason(name), "{name}: a value or a reason");
        }
        assert_eq!(counts.run_delay_ns.is_none(), has_reason("run_delay_ns"));
        // Where both count, they agree but for what falls between the readings.
        let near = |a: Option<u64>, b: Option<u64>| {
            a.zip(b).is_none_or(|(a, b)| a.abs_diff(b) <= 4 + a.max(b) / 100)
        };
        let kernel = &counts.kernel;
        assert!(near(kernel.perf_minor_faults, counts.minor_faults), "{counts:?}");
        let switches = counts.voluntary_switches.zip(counts.involuntary_switches);
        assert!(near(kernel.perf_context_switches, switches.map(|(v, i)| v + i)), "{counts:?}");
    }

    #[test]
    fn counters_close_and_open_again() {
        let cpus = iolens_sys::affinity::thread_cpus().unwrap();
        let probes = Probes { counting: Counting::Alternate, ..ALL };
        let mut bracket = Bracket::open(0, &cpus, 1, probes);
        let counted = |counts: &Counts| values(counts).filter(|(_, value)| value.is_some()).count();
        let open = counted(&slice(&mut bracket));
        for _ in 0..3 {
            bracket.count(false);
            assert_eq!(counted(&slice(&mut bracket)), 0);
            bracket.count(true);
            assert_eq!(counted(&slice(&mut bracket)), open);
        }
    }

    #[test]
    fn a_plan_may_leave_counters_closed() {
        let cpus = iolens_sys::affinity::thread_cpus().unwrap();
        let probes = Probes { counting: Counting::Off, ..ALL };
        let mut bracket = Bracket::open(0, &cpus, 1, probes);
        bracket.count(false);
        let counts = slice(&mut bracket);
        assert!(values(&counts).all(|(_, value)| value.is_none()) && bracket.groups() == 0);
        let missing = bracket.missing();
        let told = |name| missing.iter().any(|m| m.metric == name && m.why.contains("off"));
        assert!(values(&counts).all(|(name, _)| told(name)));
        assert!(counts.task_clock_ns.is_some() && counts.voluntary_switches.is_some());
    }
}
