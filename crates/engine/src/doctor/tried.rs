//! What can only be known by trying: events, namespaces, sockets, rings. Each
//! attempt is undone before the next; none waits for anybody.

use std::path::Path;

use iolens_model::axes::Topology;
use iolens_model::reading::NotMeasured;
use iolens_model::run::Extent;
use iolens_model::units::Bytes;
use iolens_sys::errno::Errno;
use iolens_sys::perf_event::sampling::{Reach, Sampler, Trigger};
use iolens_sys::perf_event::{Event, Group, Kind, Mode, Options, Scope};
use iolens_sys::proc::Root;
use iolens_sys::{affinity, cpuid, io_uring, process, storage, zerocopy};

use crate::calibrate;
use crate::stage::{self, Refused};
use iolens_harness::journal::Journal;
use iolens_harness::lock;
use iolens_harness::locked_memory::Limits;
use iolens_harness::sysctl::{self, Leftover};
use iolens_harness::tracefs;
use iolens_harness::{counters, host};

/// What came of trying, as plain data.
#[derive(Debug, Clone)]
pub struct Tried {
    /// Effective user.
    pub(super) user: u32,
    /// Release of the kernel.
    pub(super) kernel: String,
    /// Where this program's file is.
    pub(super) program: String,
    /// Whether that is on a file system from which programs gain no rights.
    pub(super) program_is_nosuid: bool,
    /// What the processor says of its hypervisor.
    pub(super) hypervisor: Option<String>,
    /// Processors this process may run on; none where the kernel does not say.
    pub(super) cpus: Vec<u32>,
    pub(super) clock_read_ns: f64,
    /// An event of this thread in user mode, in any mode, and of a processor.
    pub(super) count_user: Result<(), Errno>,
    pub(super) count_kernel: Result<(), Errno>,
    pub(super) count_cpu: Result<(), Errno>,
    /// Samples of this thread in user mode, and in any mode.
    pub(super) sample_user: Result<(), Errno>,
    pub(super) sample_kernel: Result<(), Errno>,
    /// An event at a tracepoint; `None` where none has an id to read.
    pub(super) tracepoint: Option<Result<(), Errno>>,
    /// Metrics of the PMU that pass their self-test, and those that do not.
    pub(super) counters: (Vec<&'static str>, Vec<NotMeasured>),
    pub(super) veth: Result<(), Refused>,
    pub(super) sink: Result<(), Refused>,
    pub(super) zerocopy: Result<(), Errno>,
    pub(super) locked_memory: Limits,
    /// Congestion controls that there are, and whether a socket takes them.
    pub(super) congestion: Vec<(String, Result<(), Errno>)>,
    /// Descriptors at most, by the hard limit.
    pub(super) descriptors: u64,
    pub(super) io_uring: Result<(), Errno>,
    /// Where results go, or why nowhere.
    pub(super) storage: Result<Storage, String>,
    /// The file of the machine's lock, and who holds it.
    pub(super) lock: (String, Result<Option<String>, String>),
    /// The journal, and which sysctls a run has changed by what it says.
    pub(super) journal: (String, Result<Leftover, String>),
}

/// A place for results.
#[derive(Debug, Clone)]
pub struct Storage {
    /// The part of the path that exists.
    pub(super) place: String,
    pub(super) writable: Result<(), Errno>,
    pub(super) free: Result<Bytes, Errno>,
    /// The file itself.
    pub(super) database: String,
    /// What is in it, or why it cannot be read; nothing where there is none.
    pub(super) stored: Result<Option<Extent>, String>,
}

impl Storage {
    /// What the file system says of the place of a database, whether or not
    /// there is one yet, and what was found in it. Writes nothing.
    pub fn look(database: &Path, stored: Result<Option<Extent>, String>) -> Storage {
        let there = |path: &&Path| path.symlink_metadata().is_ok();
        // The empty path is the folder we are in.
        let place = database.ancestors().find(there).unwrap_or(Path::new("."));
        Storage {
            place: place.display().to_string(),
            writable: storage::may_write(place),
            free: storage::free_bytes(place).map(Bytes),
            database: database.display().to_string(),
            stored,
        }
    }
}

impl Tried {
    /// Tries everything, in well under a second.
    pub fn on(root: &Root, program: &Path, storage: Result<Storage, String>) -> Tried {
        let cpus = affinity::thread_cpus().unwrap_or_default();
        let [_, kernel, ..] = process::uname();
        let (path, seen) = lock::look(root);
        let journal = Journal::here();
        Tried {
            user: process::effective_uid(),
            kernel,
            program: program.display().to_string(),
            program_is_nosuid: storage::is_nosuid(program).unwrap_or(false),
            hypervisor: cpuid::hypervisor(),
            clock_read_ns: calibrate::clock_read_ns(CLOCK_READINGS, CLOCK_REPETITIONS),
            count_user: count(Kind::TaskClock, Mode::User, Scope::Thread),
            count_kernel: count(Kind::TaskClock, Mode::Any, Scope::Thread),
            count_cpu: count(Kind::TaskClock, Mode::Any, Scope::Cpu(0)),
            sample_user: sample(Reach::UserOnly),
            sample_kernel: sample(Reach::Everything),
            tracepoint: tracefs::first(root, counters::tracepoints())
                .map(|kind| count(kind, Mode::Any, Scope::Thread)),
            counters: host::counters_on(root, cpus.first().copied().unwrap_or(0)),
            veth: stage::try_out(Topology::Veth),
            sink: stage::try_out(Topology::Sink),
            zerocopy: zerocopy::try_enable(),
            locked_memory: Limits::here(),
            congestion: congestion(root),
            descriptors: host::descriptors_hard_max(),
            io_uring: io_uring::try_ring(),
            storage,
            lock: (path.display().to_string(), seen),
            journal: (journal.place(), sysctl::leftover(&journal)),
            cpus,
        }
    }
}

/// Opens an event as a trial's counters are, and closes it again before it
/// counts anything.
fn count(kind: Kind, mode: Mode, scope: Scope) -> Result<(), Errno> {
    let event = Event { kind, mode, pmu: None };
    Group::lead(&event, Options { scope, ..Options::default() }).map(drop)
}

/// The same of the samples that `explain` takes, with their ring.
fn sample(reach: Reach) -> Result<(), Errno> {
    Sampler::open(Trigger::CpuClock { period_ns: 1_000_000 }, reach).map(drop)
}

/// Enough to see what one costs, and no more than milliseconds on any clock.
const CLOCK_READINGS: u32 = 200;
const CLOCK_REPETITIONS: usize = 7;

fn congestion(root: &Root) -> Vec<(String, Result<(), Errno>)> {
    let list = root.read("proc/sys/net/ipv4/tcp_available_congestion_control");
    let names = list.unwrap_or_default();
    let names = names.split_whitespace().map(str::to_owned);
    names.map(|name| (name.clone(), host::try_congestion(&name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_is_not_there_yet_is_looked_for_above() {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage::look(&dir.path().join("a/b/c.db"), Ok(None));
        assert_eq!(storage.place, dir.path().display().to_string());
        assert_eq!(storage.writable, Ok(()));
        assert!(storage.free.unwrap().0 > 0);
        assert_eq!(Storage::look(Path::new("nothing-of-that-name.db"), Ok(None)).place, ".");
        assert!(!dir.path().join("a").exists(), "nothing was made");
    }

    #[test]
    fn who_may_watch_the_kernel_may_watch_the_program() {
        let of_kind = |kind, mode, scope| count(kind, mode, scope).is_ok();
        let (user, kernel, cpu) = (
            of_kind(Kind::TaskClock, Mode::User, Scope::Thread),
            of_kind(Kind::TaskClock, Mode::Any, Scope::Thread),
            of_kind(Kind::TaskClock, Mode::Any, Scope::Cpu(0)),
        );
        assert!(!kernel || user);
        assert!(!cpu || kernel);
        assert!(sample(Reach::Everything).is_err() || sample(Reach::UserOnly).is_ok());
        let nowhere = Kind::Tracepoint { name: "no:such", id: u64::MAX };
        assert!(!of_kind(nowhere, Mode::Any, Scope::Thread));
    }
}
