//! Counters of the kernel and of the processor's performance monitoring unit
//! (PMU), in groups that count together or not at all; see perf_event_open(2).
//! Samples of where the CPU is are in [`sampling`], records of system calls in
//! [`calls`].
//!
//! The layout of `perf_event_attr`, with its bit fields that the C compiler
//! places, comes from bindings that are generated from the kernel's header.
//!
//! # Safety
//! The attributes live on the stack of the caller for the whole call. An event
//! here only counts: it has no sampling, no mapping and no signal, so the
//! kernel writes to our memory nowhere but in the read(2) of the descriptor.
//! What maps a ring is in modules with a note of their own.

#![expect(unsafe_code, reason = "see the safety note above")]

pub mod calls;
mod ring;
pub mod sampling;

use std::fmt;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use perf_event_open_sys::{self as perf, bindings as abi};

use crate::errno::Errno;

/// What is counted, under the name that perf-list(1) gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Cycles while the CPU is not halted.
    Cycles,
    /// Instructions retired.
    Instructions,
    /// The processor's own generic cache event; which cache that is depends
    /// on the processor.
    CacheReferences,
    /// Those of them that missed.
    CacheMisses,
    /// Loads that looked into the first-level data cache.
    L1dLoads,
    /// Those of them that missed.
    L1dLoadMisses,
    /// Loads that looked into the last-level cache.
    LlcLoads,
    /// Those of them that missed.
    LlcLoadMisses,
    /// Branches retired.
    Branches,
    /// Those of them that were predicted wrong.
    BranchMisses,
    /// Loads that looked into the first-level data TLB.
    DtlbLoads,
    /// Those of them that missed.
    DtlbLoadMisses,
    /// Cycles in which the front end issued nothing.
    StalledCyclesFrontend,
    /// Cycles in which the back end retired or took nothing.
    StalledCyclesBackend,
    /// CPU time in ns, by software; counts user and kernel time in any mode.
    TaskClock,
    /// Time in ns on a CPU's own clock, by software: wall time, busy or not.
    CpuClock,
    /// Page faults, by software.
    PageFaults,
    /// Those that were served without I/O.
    MinorFaults,
    /// Those that waited for I/O.
    MajorFaults,
    /// Context switches, by software; they happen in the kernel.
    ContextSwitches,
    /// Moves to another CPU, by software; they happen in the kernel.
    CpuMigrations,
    /// Passes of a tracepoint; all of them are in the kernel.
    Tracepoint {
        /// `system:name`.
        name: &'static str,
        /// Its number, in events/SYSTEM/NAME/id of tracefs.
        id: u64,
    },
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Cycles => "cycles",
            Kind::Instructions => "instructions",
            Kind::CacheReferences => "cache-references",
            Kind::CacheMisses => "cache-misses",
            Kind::L1dLoads => "L1-dcache-loads",
            Kind::L1dLoadMisses => "L1-dcache-load-misses",
            Kind::LlcLoads => "LLC-loads",
            Kind::LlcLoadMisses => "LLC-load-misses",
            Kind::Branches => "branches",
            Kind::BranchMisses => "branch-misses",
            Kind::DtlbLoads => "dTLB-loads",
            Kind::DtlbLoadMisses => "dTLB-load-misses",
            Kind::StalledCyclesFrontend => "stalled-cycles-frontend",
            Kind::StalledCyclesBackend => "stalled-cycles-backend",
            Kind::TaskClock => "task-clock",
            Kind::CpuClock => "cpu-clock",
            Kind::PageFaults => "page-faults",
            Kind::MinorFaults => "minor-faults",
            Kind::MajorFaults => "major-faults",
            Kind::ContextSwitches => "context-switches",
            Kind::CpuMigrations => "cpu-migrations",
            Kind::Tracepoint { name, .. } => name,
        }
    }

    /// `type` and `config` of the attributes.
    fn code(self) -> (u32, u64) {
        let hardware = |id| (abi::PERF_TYPE_HARDWARE, u64::from(id));
        let software = |id| (abi::PERF_TYPE_SOFTWARE, u64::from(id));
        // Cache, operation and result, a byte each; only reads here.
        let cache_read = |cache: u32, result: u32| {
            let operation = abi::PERF_COUNT_HW_CACHE_OP_READ;
            (abi::PERF_TYPE_HW_CACHE, u64::from(cache | operation << 8 | result << 16))
        };
        let (access, miss) =
            (abi::PERF_COUNT_HW_CACHE_RESULT_ACCESS, abi::PERF_COUNT_HW_CACHE_RESULT_MISS);
        match self {
            Kind::Cycles => hardware(abi::PERF_COUNT_HW_CPU_CYCLES),
            Kind::Instructions => hardware(abi::PERF_COUNT_HW_INSTRUCTIONS),
            Kind::CacheReferences => hardware(abi::PERF_COUNT_HW_CACHE_REFERENCES),
            Kind::CacheMisses => hardware(abi::PERF_COUNT_HW_CACHE_MISSES),
            Kind::L1dLoads => cache_read(abi::PERF_COUNT_HW_CACHE_L1D, access),
            Kind::L1dLoadMisses => cache_read(abi::PERF_COUNT_HW_CACHE_L1D, miss),
            Kind::LlcLoads => cache_read(abi::PERF_COUNT_HW_CACHE_LL, access),
            Kind::LlcLoadMisses => cache_read(abi::PERF_COUNT_HW_CACHE_LL, miss),
            Kind::Branches => hardware(abi::PERF_COUNT_HW_BRANCH_INSTRUCTIONS),
            Kind::BranchMisses => hardware(abi::PERF_COUNT_HW_BRANCH_MISSES),
            Kind::DtlbLoads => cache_read(abi::PERF_COUNT_HW_CACHE_DTLB, access),
            Kind::DtlbLoadMisses => cache_read(abi::PERF_COUNT_HW_CACHE_DTLB, miss),
            Kind::StalledCyclesFrontend => hardware(abi::PERF_COUNT_HW_STALLED_CYCLES_FRONTEND),
            Kind::StalledCyclesBackend => hardware(abi::PERF_COUNT_HW_STALLED_CYCLES_BACKEND),
            Kind::TaskClock => software(abi::PERF_COUNT_SW_TASK_CLOCK),
            Kind::CpuClock => software(abi::PERF_COUNT_SW_CPU_CLOCK),
            Kind::PageFaults => software(abi::PERF_COUNT_SW_PAGE_FAULTS),
            Kind::MinorFaults => software(abi::PERF_COUNT_SW_PAGE_FAULTS_MIN),
            Kind::MajorFaults => software(abi::PERF_COUNT_SW_PAGE_FAULTS_MAJ),
            Kind::ContextSwitches => software(abi::PERF_COUNT_SW_CONTEXT_SWITCHES),
            Kind::CpuMigrations => software(abi::PERF_COUNT_SW_CPU_MIGRATIONS),
            Kind::Tracepoint { id, .. } => (abi::PERF_TYPE_TRACEPOINT, id),
        }
    }

    /// Whether a PMU counts it, and not the kernel by itself.
    pub fn is_hardware(self) -> bool {
        matches!(self.code().0, abi::PERF_TYPE_HARDWARE | abi::PERF_TYPE_HW_CACHE)
    }
}

/// Where the CPU is while an event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// In the program.
    User,
    /// In the kernel, on the program's behalf or in an interrupt.
    Kernel,
    /// Anywhere.
    Any,
}

/// One thing to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Event {
    /// What is counted.
    pub kind: Kind,
    /// Where.
    pub mode: Mode,
    /// The PMU that counts a hardware event, by its number in
    /// /sys/bus/event_source/devices/NAME/type, on machines that have several
    /// kinds of cores; `None` lets the kernel choose. Of no meaning to others.
    pub pmu: Option<u32>,
}

/// `cycles:u`, as perf(1) writes it.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.mode {
            Mode::User => ":u",
            Mode::Kernel => ":k",
            Mode::Any => "",
        };
        write!(f, "{}{mode}", self.kind.name())
    }
}

/// Whose events a group counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// The calling thread's, on any CPU.
    #[default]
    Thread,
    /// Everybody's on this CPU; takes kernel.perf_event_paranoid 0 or less,
    /// or `CAP_PERFMON`.
    Cpu(u32),
}

/// How a group counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Whose events it counts.
    pub scope: Scope,
    /// Whether the group is on the PMU whenever its thread runs, before those
    /// that share it. Where that cannot be, it reads `ENODATA`.
    pub pinned: bool,
    /// Whether threads and processes that the thread starts from now on are
    /// counted too.
    pub inherit: bool,
}

/// For how long a group was meant to count and did, in ns. Less than all of it
/// means that it shared the PMU, and that its values are too small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// `time_enabled`: the thread ran and the group was enabled.
    pub enabled_ns: u64,
    /// `time_running`: the group was on the PMU.
    pub running_ns: u64,
}

/// Events of a thread or a CPU that count together or not at all.
#[derive(Debug)]
pub struct Group {
    /// The leader first. A member is closed before its leader would matter:
    /// descriptors of a group may close in any order.
    fds: Vec<OwnedFd>,
    /// The kernel's number of each event, by which values are told apart.
    ids: Vec<u64>,
    options: Options,
    buffer: Vec<u8>,
}

/// Events that a group can have; more than any PMU has counters.
pub const GROUP_EVENTS_MAX: usize = 64;

/// Words before the values of a group that is read: `nr`, `time_enabled`,
/// `time_running`.
const HEAD_WORDS: usize = 3;
const WORD_BYTES: usize = size_of::<u64>();

impl Group {
    /// A group with its first event. It counts from [`Self::enable`] on.
    ///
    /// Errors: see [`Refusal`].
    pub fn lead(event: &Event, options: Options) -> Result<Group, Errno> {
        let mut group = Group { fds: Vec::new(), ids: Vec::new(), options, buffer: Vec::new() };
        group.open(event)?;
        Ok(group)
    }

    /// Adds an event; its value comes after those of the earlier ones.
    ///
    /// Errors: see [`Refusal`]; `E2BIG` beyond [`GROUP_EVENTS_MAX`]. The group
    /// is then what it was.
    pub fn add(&mut self, event: &Event) -> Result<(), Errno> {
        if self.fds.len() == GROUP_EVENTS_MAX {
            return Err(Errno::from_raw(libc::E2BIG));
        }
        self.open(event)
    }

    fn open(&mut self, event: &Event) -> Result<(), Errno> {
        let leader = self.fds.first().map_or(-1, AsRawFd::as_raw_fd);
        let fd = open(attributes(event, self.options, leader < 0), self.options.scope, leader)?;
        let mut id = 0u64;
        // SAFETY: the kernel writes one u64, which lives on this stack.
        if unsafe { perf::ioctls::ID(fd.as_raw_fd(), &raw mut id) } != 0 {
            return Err(Errno::last());
        }
        self.fds.push(fd);
        self.ids.push(id);
        self.buffer.resize((HEAD_WORDS + 2 * self.ids.len()) * WORD_BYTES, 0);
        Ok(())
    }

    /// Number of events.
    pub fn events(&self) -> usize {
        self.ids.len()
    }

    /// Lets all events count from now on.
    ///
    /// Errors: none that are documented; passed on if there is one.
    pub fn enable(&self) -> Result<(), Errno> {
        let leader = self.fds[0].as_raw_fd();
        // SAFETY: the argument is a plain number.
        let result = unsafe { perf::ioctls::ENABLE(leader, abi::PERF_IOC_FLAG_GROUP) };
        if result == 0 { Ok(()) } else { Err(Errno::last()) }
    }

    /// Reads what all events have counted since they were enabled, in the
    /// order in which they were added, and for how long they did. One system
    /// call; allocates nothing. Values beyond the length of `values` are left
    /// out.
    ///
    /// Errors: `ENODATA` if the group is pinned and could not be kept on the
    /// PMU; `EPROTO` if the answer is not what was asked for.
    pub fn read(&mut self, values: &mut [u64]) -> Result<Times, Errno> {
        let bytes = rustix::io::read(&self.fds[0], &mut self.buffer[..])?;
        match bytes {
            0 => Err(Errno::ENODATA),
            n if n == self.buffer.len() => self.parse(values),
            _ => Err(Errno::from_raw(libc::EPROTO)),
        }
    }

    fn parse(&self, values: &mut [u64]) -> Result<Times, Errno> {
        let (words, _) = self.buffer.as_chunks::<WORD_BYTES>();
        let word = |at: usize| u64::from_ne_bytes(words[at]);
        let value_of = |id: u64| {
            let pairs = (HEAD_WORDS..words.len()).step_by(2);
            pairs.into_iter().find(|&at| word(at + 1) == id).map(word)
        };
        for (value, &id) in values.iter_mut().zip(&self.ids) {
            *value = value_of(id).ok_or(Errno::from_raw(libc::EPROTO))?;
        }
        Ok(Times { enabled_ns: word(1), running_ns: word(2) })
    }
}

/// Opens an event as a member of `leader`'s group, or with -1 as a leader.
///
/// Errors: see [`Refusal`].
fn open(attributes: abi::perf_event_attr, scope: Scope, leader: RawFd) -> Result<OwnedFd, Errno> {
    // Pid 0 and CPU -1 mean this thread wherever it runs, pid -1 whoever runs
    // on the CPU.
    match scope {
        Scope::Thread => open_on(attributes, 0, None, leader),
        Scope::Cpu(cpu) => open_on(attributes, -1, Some(cpu), leader),
    }
}

/// Opens an event of a process on one CPU or on all.
///
/// Errors: see [`Refusal`]; `ENODEV` or `EINVAL` for a CPU that is not there.
fn open_on(
    mut attributes: abi::perf_event_attr,
    pid: libc::pid_t,
    cpu: Option<u32>,
    leader: RawFd,
) -> Result<OwnedFd, Errno> {
    let flags = libc::c_ulong::from(abi::PERF_FLAG_FD_CLOEXEC);
    // A CPU beyond every number there is has no events.
    let cpu = cpu.map_or(-1, |cpu| libc::c_int::try_from(cpu).unwrap_or(libc::c_int::MAX));
    // SAFETY: the attributes are a live, complete struct of the size that they
    // state; the other arguments are plain numbers.
    let fd = unsafe { perf::perf_event_open(&raw mut attributes, pid, cpu, leader, flags) };
    if fd < 0 {
        return Err(Errno::last());
    }
    // SAFETY: the kernel has just made this descriptor, for nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn attributes(event: &Event, options: Options, leads: bool) -> abi::perf_event_attr {
    let (kind, config) = event.kind.code();
    // PERF_PMU_TYPE_SHIFT, for PERF_TYPE_HARDWARE and PERF_TYPE_HW_CACHE alone.
    let pmu = event.pmu.filter(|_| event.kind.is_hardware()).map_or(0, |pmu| u64::from(pmu) << 32);
    let mut attributes = abi::perf_event_attr {
        type_: kind,
        size: u32::try_from(size_of::<abi::perf_event_attr>()).unwrap_or(u32::MAX),
        config: config | pmu,
        read_format: u64::from(
            abi::PERF_FORMAT_GROUP
                | abi::PERF_FORMAT_ID
                | abi::PERF_FORMAT_TOTAL_TIME_ENABLED
                | abi::PERF_FORMAT_TOTAL_TIME_RUNNING,
        ),
        ..abi::perf_event_attr::default()
    };
    // A member waits for its leader, and only a leader can be pinned.
    attributes.set_disabled(u64::from(leads));
    attributes.set_pinned(u64::from(leads && options.pinned));
    attributes.set_inherit(u64::from(options.inherit));
    attributes.set_exclude_user(u64::from(event.mode == Mode::Kernel));
    attributes.set_exclude_kernel(u64::from(event.mode == Mode::User));
    attributes.set_exclude_hv(1);
    attributes
}

/// What an error of [`Group::lead`] or [`Group::add`] means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// `EACCES`, `EPERM`: kernel.perf_event_paranoid, a seccomp filter, or a
    /// security module.
    NotPermitted,
    /// `ENOENT`, `ENODEV`, `ENXIO`, `EOPNOTSUPP`: no such event, or no PMU.
    NoSuchEvent,
    /// `EINVAL`: not supported in this combination; also one event more than
    /// the PMU can count at once. `E2BIG`: more than a group may have.
    NotTogether,
    /// `EMFILE`, `ENFILE`: no descriptor left.
    NoDescriptor,
    /// `ENOSYS`: a kernel without perf events.
    NoKernelSupport,
    /// Anything else.
    Other,
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Refusal {
        match errno.raw() {
            libc::EACCES | libc::EPERM => Refusal::NotPermitted,
            libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::EOPNOTSUPP => Refusal::NoSuchEvent,
            libc::EINVAL | libc::E2BIG => Refusal::NotTogether,
            libc::EMFILE | libc::ENFILE => Refusal::NoDescriptor,
            libc::ENOSYS => Refusal::NoKernelSupport,
            _ => Refusal::Other,
        }
    }
}

#[cfg(test)]
mod tests;
