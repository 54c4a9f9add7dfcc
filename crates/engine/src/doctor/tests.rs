//! The doctor on scripted machines: a folder of files, and what trying gave.

mod outcomes;
mod strange;

use iolens_model::doctor::{Diagnosis, Finding, Outlook, State};
use iolens_model::outcome::PmuCounts;
use iolens_model::reading::NotMeasured;
use iolens_model::units::Bytes;
use iolens_sys::errno::Errno;

use super::tried::{Storage, Tried};
use super::*;
use crate::scripted::Machine;
use iolens_harness::locked_memory::Limits;
use iolens_harness::sysctl::Leftover;

/// All capabilities, and none, as /proc/self/status shows them.
const ALL: &str = "000001ffffffffff";
const NO: &str = "0000000000000000";

const PARANOID: &str = "proc/sys/kernel/perf_event_paranoid";
const STATUS: &str = "proc/self/status";
const KALLSYMS: &str = "proc/kallsyms";

/// Files of a machine on which nothing is limited.
const HEALTHY: &[(&str, &str)] = &[
    ("proc/version", "Linux version 6.12.0 (gcc)"),
    ("proc/cpuinfo", "processor : 0\nvendor_id : GenuineIntel\nflags : fpu sse\n"),
    ("proc/stat", "cpu  10 0 0 90 0 0 5 0 0 0\n"),
    ("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"),
    ("proc/self/cgroup", "0::/user.slice\n"),
    ("proc/self/uid_map", "         0          0 4294967295\n"),
    ("proc/self/sched", "iolens (1, #threads: 1)\nse.nr_migrations : 4\n"),
    ("proc/net/packet", "sk       RefCnt Type Proto  Iface R Rmem   User   Inode\n"),
    ("proc/filesystems", "nodev\tproc\nnodev\ttracefs\n"),
    ("proc/sys/kernel/nmi_watchdog", "0"),
    ("proc/sys/kernel/kptr_restrict", "1"),
    ("proc/sys/kernel/yama/ptrace_scope", "1"),
    (KALLSYMS, "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\n"),
    ("sys/kernel/tracing/events/sched/sched_switch/id", "372"),
    ("sys/kernel/tracing/events/skb/skb_copy_datagram_iovec/id", "1400"),
    ("sys/bus/event_source/devices/cpu/type", "4"),
    ("sys/bus/event_source/devices/software/type", "1"),
    ("sys/fs/cgroup/cpu.max", "max 100000"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
    ("sys/devices/system/cpu/online", "0-3"),
    ("sys/devices/system/cpu/isolated", "\n"),
    ("sys/devices/system/cpu/smt/active", "0"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance"),
    ("sys/devices/system/cpu/cpufreq/boost", "0"),
    ("sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI"),
    ("sys/devices/system/cpu/vulnerabilities/mds", "Not affected"),
];

/// What trying gives on a machine on which nothing is limited.
fn healthy() -> Tried {
    Tried {
        user: 1000,
        kernel: "6.12.0".to_owned(),
        program: "/opt/iolens".to_owned(),
        program_is_nosuid: false,
        hypervisor: None,
        cpus: vec![0, 1, 2, 3],
        clock_read_ns: 20.0,
        count_user: Ok(()),
        count_kernel: Ok(()),
        count_cpu: Ok(()),
        sample_user: Ok(()),
        sample_kernel: Ok(()),
        tracepoint: Some(Ok(())),
        counters: (PmuCounts::NAMES.to_vec(), Vec::new()),
        veth: Ok(()),
        sink: Ok(()),
        zerocopy: Ok(()),
        locked_memory: Limits { locked: None, optmem: Some(Bytes(131_072)) },
        congestion: vec![("reno".to_owned(), Ok(())), ("cubic".to_owned(), Ok(()))],
        descriptors: 1 << 20,
        io_uring: Ok(()),
        storage: Ok(Storage {
            place: "/data".to_owned(),
            writable: Ok(()),
            free: Ok(Bytes(1 << 40)),
            database: "/data/iolens.db".to_owned(),
            stored: Ok(None),
        }),
        lock: ("/run/lock/iolens.lock".to_owned(), Ok(None)),
        journal: ("/run/iolens.journal".to_owned(), Ok(Leftover::Nothing)),
    }
}

/// A scripted machine.
struct Case {
    machine: Machine,
    tried: Tried,
}

impl Case {
    /// Nothing is limited; perf_event_paranoid is 2 and the rights are held.
    fn healthy() -> Case {
        let case = Case { machine: Machine::with(HEALTHY), tried: healthy() };
        case.rights(ALL, ALL, "0");
        case.machine.write(PARANOID, "2");
        for kind in ["user", "pid", "uts", "ipc", "cgroup"] {
            let number = match kind {
                "user" => 4_026_531_837_u32,
                "pid" => 4_026_531_836,
                "uts" => 4_026_531_838,
                "ipc" => 4_026_531_839,
                _ => 4_026_531_835,
            };
            case.machine.link(&format!("proc/self/ns/{kind}"), &format!("{kind}:[{number}]"));
        }
        case
    }

    fn with(self, path: &str, text: &str) -> Case {
        self.machine.write(path, text);
        self
    }

    fn without(self, path: &str) -> Case {
        self.machine.remove(path);
        self
    }

    fn tried(mut self, change: impl FnOnce(&mut Tried)) -> Case {
        change(&mut self.tried);
        self
    }

    /// A container's file system with a PID namespace of its own.
    fn in_docker(self) -> Case {
        self.machine.write(".dockerenv", "");
        self.machine.remove("proc/self/ns/pid");
        self.machine.link("proc/self/ns/pid", "pid:[4026532201]");
        self
    }

    fn rights(&self, effective: &str, bounding: &str, no_new: &str) {
        let text = format!(
            "Name:\tiolens\nCapEff:\t{effective}\nCapBnd:\t{bounding}\nNoNewPrivs:\t{no_new}\n\
             Seccomp:\t0\n"
        );
        self.machine.write(STATUS, text);
    }

    /// An ordinary user without rights, at a level of perf_event_paranoid:
    /// what trying gives follows (kernel/events/core.c, include/linux/perf_event.h).
    fn unprivileged(self, level: &str) -> Case {
        self.rights(NO, ALL, "0");
        self.machine.write(PARANOID, level);
        let level: i32 = level.parse().unwrap();
        let up_to = |most: i32| if level <= most { Ok(()) } else { Err(Errno::EACCES) };
        self.tried(|tried| {
            (tried.count_user, tried.sample_user) = (up_to(2), up_to(2));
            (tried.count_kernel, tried.sample_kernel) = (up_to(1), up_to(1));
            tried.count_cpu = up_to(0);
            tried.tracepoint = Some(up_to(1));
        })
    }

    /// A machine whose event sources count no cores.
    fn without_pmu(self) -> Case {
        let case = self.without("sys/bus/event_source/devices/cpu/type");
        let folder = case.machine.path().join("sys/bus/event_source/devices/cpu");
        std::fs::remove_dir(folder).unwrap();
        let missing = |metric: &str| NotMeasured { metric: metric.into(), why: "no PMU".into() };
        let missing = PmuCounts::NAMES.into_iter().map(missing).collect();
        case.tried(|tried| tried.counters = (Vec::new(), missing))
    }

    fn diagnose(&self) -> Diagnosis {
        diagnose(&self.machine.root(), &self.tried)
    }

    fn finding(&self, name: &str) -> Finding {
        let diagnosis = self.diagnose();
        let found = diagnosis.findings.into_iter().find(|finding| finding.name == name);
        found.unwrap_or_else(|| panic!("no finding `{name}`"))
    }

    fn outlook(&self, part: &str) -> Outlook {
        let studies = self.diagnose().studies;
        studies.into_iter().find(|outlook| outlook.part == part).unwrap()
    }

    /// One finding: its state, and words of what was found and of the remedy.
    #[track_caller]
    fn check(&self, name: &str, state: State, found: &str, remedy: &str) {
        let finding = self.finding(name);
        assert_eq!(finding.state, state, "{finding:?}");
        assert!(finding.found.contains(found), "{finding:?}");
        assert!(finding.remedy.contains(remedy), "{finding:?}");
        // Nobody is told to measure as root.
        assert!(!finding.remedy.contains("as root") || name == "namespaces", "{finding:?}");
    }

    #[track_caller]
    fn check_possible(&self, part: &str, state: State, possible: &str) {
        let outlook = self.outlook(part);
        assert_eq!(outlook.state, state, "{outlook:?}");
        assert!(outlook.possible.contains(possible), "{outlook:?}");
    }
}
