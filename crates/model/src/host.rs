//! What the machine is: facts as data, so that every decision taken from them
//! can be tested on a machine that we do not have.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::reading::Reading;
use crate::units::Bytes;

/// Group of the facts about counters.
pub const COUNTERS: &str = "counters";

/// Whether what iolens reads from a PMU was ever compared with another tool on
/// hardware that has one. The evidence would stand in docs/journal, which also
/// says how to produce it.
pub const PMU_VERIFIED_ON_HARDWARE: bool = false;

/// The fact that says so as long as it was not.
pub const PMU_NOT_VERIFIED: &str = "PMU path not verified on hardware";

/// The machine iolens runs on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Processors iolens may run on, by number.
    pub cpus: Vec<u32>,
    /// The same by the cores that they are threads of; empty in runs that did not ask.
    #[serde(default)]
    pub cores: Vec<Vec<u32>>,
    /// Level-1 data cache of one core.
    pub l1d: Reading<Bytes>,
    /// Level-2 cache of one core.
    pub l2: Reading<Bytes>,
    /// Last-level cache.
    pub llc: Reading<Bytes>,
    /// Physical memory.
    pub memory: Reading<Bytes>,
    /// Soft limit of open descriptors.
    pub descriptors_max: Reading<u64>,
    /// Sysctls of the whole machine that were changed for the run, with the
    /// user's consent, and put back at its end.
    pub changed: Vec<SysctlChange>,
    /// Everything that a reader needs to judge the numbers, in the order in
    /// which it is shown.
    pub facts: Vec<Fact>,
}

/// CPUs by the cores that they are threads of, in the order of the first of each; one of which
/// nobody says with whom it shares its core has it alone.
pub fn by_core(cpus: &[u32], siblings: impl Fn(u32) -> Option<Vec<u32>>) -> Vec<Vec<u32>> {
    let mut cores: Vec<Vec<u32>> = Vec::new();
    for &cpu in cpus {
        let siblings = siblings(cpu).unwrap_or_default();
        match cores.iter_mut().find(|core| siblings.contains(&core[0])) {
            Some(core) => core.push(cpu),
            None => cores.push(vec![cpu]),
        }
    }
    cores
}

impl HostFacts {
    /// CPUs of this machine by their cores, as [`by_core`] has them.
    pub fn cores_of(&self, cpus: &[u32]) -> Vec<Vec<u32>> {
        by_core(cpus, |cpu| self.cores.iter().find(|core| core.contains(&cpu)).cloned())
    }

    /// A fact by its heading and name, or why it is unknown, in words.
    pub fn fact(&self, group: &str, name: &str) -> String {
        match self.reading(group, name) {
            Some(Reading::Exact(value)) => value.clone(),
            Some(Reading::NotMeasured { why }) => format!("unknown ({why})"),
            None => "unknown".to_owned(),
        }
    }

    /// A fact that is known.
    pub fn known(&self, group: &str, name: &str) -> Option<&str> {
        self.reading(group, name)?.value().map(String::as_str)
    }

    fn reading(&self, group: &str, name: &str) -> Option<&Reading<String>> {
        let mut facts = self.facts.iter();
        facts.find(|fact| fact.group == group && fact.name == name).map(|fact| &fact.value)
    }

    /// What to say beside counts of the PMU, if the build that took them was
    /// never verified; see [`PMU_VERIFIED_ON_HARDWARE`].
    pub fn pmu_caution(&self) -> Option<&str> {
        let values = self.facts.iter().filter(|fact| fact.group == COUNTERS);
        let mut values = values.filter_map(|fact| fact.value.value());
        values.find(|value| *value == PMU_NOT_VERIFIED).map(String::as_str)
    }
}

/// A sysctl that is changed for the time of a run. Prints as sysctl(8) takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SysctlChange {
    /// Its dotted name.
    pub name: String,
    /// What it was before.
    pub before: String,
    /// What it is until the run ends.
    pub value: String,
}

/// `net.core.high_order_alloc_disable=1`.
impl fmt::Display for SysctlChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

/// One line of the machine's description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// Heading it stands under, such as `cpu` or `network`.
    pub group: String,
    /// Name, in the kernel's words where it has some.
    pub name: String,
    /// Value with its unit, or why it is unknown.
    pub value: Reading<String>,
}

/// What the machine's own building blocks cost, measured before the first
/// trial. Shown as bounds and used by gates; never subtracted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// One system call that does nothing (`getppid`).
    pub empty_call_ns: f64,
    /// One reading of the clock.
    pub clock_read_ns: f64,
    /// The fixed arithmetic loop that is repeated around every trial.
    pub loop_ns: u64,
    /// One message of the `null` primitive: what the harness itself costs.
    pub harness_message_ns: f64,
    /// One slice of the `null` primitive of a single message, without a
    /// connection: the harness's fixed cost inside the clock.
    pub harness_slice_ns: f64,
    /// One byte to the other end and one byte back, over a connection of the
    /// kind that is measured: a slice's fixed cost inside the clock is at most
    /// this, because its receipt is one of the two ways. `None` where the
    /// connection could not be made.
    pub receipt_round_trip_ns: Option<f64>,
    /// Copy bandwidth in cache by one thread, bytes written per second.
    pub memcpy_hot_bytes_per_s: f64,
    /// Copy bandwidth out of cache by one thread.
    pub memcpy_cold_bytes_per_s: f64,
    /// Copy bandwidth in cache, all of [`Self::threads`] at once, sum.
    pub memcpy_hot_all_bytes_per_s: f64,
    /// Copy bandwidth out of cache, all threads at once, sum.
    pub memcpy_cold_all_bytes_per_s: f64,
    /// Threads of the two figures above.
    pub threads: u32,
    /// How long the calibration took.
    pub duration_ns: u64,
    /// What else costs something.
    pub costs: Costs,
    /// How much the pieces differ of which each bandwidth is the best.
    pub spread: Spreads,
}

/// How much the pieces of each bandwidth differ: by which share of the best one that in the
/// middle is slower.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Spreads {
    /// By one thread.
    pub one: Spread,
    /// By all of [`Calibration::threads`] at once.
    pub all: Spread,
}

/// The same of some threads.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Spread {
    /// Of the copy in cache.
    pub copy_hot: f64,
    /// Of the copy out of cache.
    pub copy_cold: f64,
    /// Of the reading in cache.
    pub scan_hot: f64,
    /// Of the reading out of cache.
    pub scan_cold: f64,
}

/// What further building blocks cost. Null is what could not be measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Costs {
    /// The readings next to a slice's clock, at one edge of a slice: CPU time,
    /// getrusage and the counters that are open here.
    pub inner_readings_ns: Option<f64>,
    /// The slower readings at one edge of a slice, on the thread that has the
    /// most of them; those of a connection are included.
    pub outer_readings_ns: Option<f64>,
    /// Groups of counters that are read at each edge.
    pub counter_groups: u32,
    /// Every byte read once and nothing else done, by one thread in cache,
    /// bytes per second.
    pub scan_hot_bytes_per_s: f64,
    /// The same out of cache.
    pub scan_cold_bytes_per_s: f64,
    /// In cache, all of [`Calibration::threads`] at once, sum.
    pub scan_hot_all_bytes_per_s: f64,
    /// Out of cache, all threads at once, sum.
    pub scan_cold_all_bytes_per_s: f64,
    /// Starting a thread that does nothing, and joining it.
    pub thread_start_ns: Option<f64>,
    /// A bare hand-over with the counters of a slice open, as in
    /// [`SwitchCost::handover_ns`]: what they cost at each context switch is
    /// the difference. `None` where none are open.
    pub counted_handover_ns: Option<f64>,
    /// Hand-overs of a CPU between two threads, by working set, smallest first;
    /// empty where they could not be measured.
    pub switches: Vec<SwitchCost>,
}

/// Two threads on one CPU that hand it to each other through pipes, each of
/// which reads a working set of its own whenever it runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SwitchCost {
    /// Bytes that each of the two reads; 0 for a bare switch.
    pub working_set: Bytes,
    /// From one thread's turn to the other's: one write and one read of a byte,
    /// the switch between them, and the working set read once.
    pub handover_ns: f64,
    /// The same calls and the same reading by one thread without a switch; the
    /// difference is the switch and the refilling of caches.
    pub alone_ns: f64,
}

// Versions of the kernel.

/// A version of Linux, as in `6.5` or `2.6.17`. Stable releases (`6.12.3`)
/// change nothing that matters here, so the third number is only of use before
/// 3.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelVersion {
    major: u16,
    minor: u16,
    patch: u16,
}

impl KernelVersion {
    /// A version by its numbers; 0 for a third one that it does not have.
    pub const fn new(major: u16, minor: u16, patch: u16) -> KernelVersion {
        KernelVersion { major, minor, patch }
    }

    /// The version in a release as uname(2) gives it, such as
    /// `6.18.44-fc-v669`; `None` where there is none.
    pub fn of_release(release: &str) -> Option<KernelVersion> {
        let mut numbers = release.split(['.', '-', '+', '_', ' ']);
        let major = numbers.next()?.parse().ok()?;
        let minor = numbers.next()?.parse().ok()?;
        let patch = numbers.next().and_then(|number| number.parse().ok()).unwrap_or(0);
        Some(KernelVersion { major, minor, patch })
    }
}

/// `6.5`, `2.6.17`.
impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        match self.patch {
            0 => Ok(()),
            patch => write!(f, ".{patch}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_caution_is_what_the_measuring_build_said() {
        let fact = |value: &str| Fact {
            group: COUNTERS.to_owned(),
            name: "PMU path".to_owned(),
            value: Reading::Exact(value.to_owned()),
        };
        let mut host = HostFacts {
            cores: Vec::new(),
            cpus: vec![0],
            l1d: Reading::not_measured("not here"),
            l2: Reading::not_measured("not here"),
            llc: Reading::not_measured("not here"),
            memory: Reading::not_measured("not here"),
            descriptors_max: Reading::Exact(1024),
            changed: Vec::new(),
            facts: vec![fact("verified on hardware")],
        };
        assert_eq!(host.pmu_caution(), None);
        host.facts.push(fact(PMU_NOT_VERIFIED));
        assert_eq!(host.pmu_caution(), Some(PMU_NOT_VERIFIED));
    }

    #[test]
    fn releases_have_versions_that_can_be_ordered() {
        let of = KernelVersion::of_release;
        let check = |release, major, minor, patch| {
            assert_eq!(of(release), Some(KernelVersion::new(major, minor, patch)), "{release}");
        };
        check("6.18.44-fc-v669", 6, 18, 44);
        check("6.1.0-13-amd64", 6, 1, 0);
        check("5.15-rc3", 5, 15, 0);
        check("4.14.336+", 4, 14, 336);
        assert!(of("6.5.0") > of("6.4.99") && of("2.6.17") < of("3.0"));
        assert_eq!([of("six"), of(""), of("6"), of("99999999.1")], [None; 4]);
    }

    proptest! {
        #[test]
        fn a_version_reads_back((major, minor, patch) in any::<(u16, u16, u16)>()) {
            let version = KernelVersion::new(major, minor, patch);
            prop_assert_eq!(KernelVersion::of_release(&version.to_string()), Some(version));
        }

        #[test]
        fn no_release_panics(release in ".{0,24}") {
            let _ = KernelVersion::of_release(&release);
        }
    }
}
