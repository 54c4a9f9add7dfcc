//! The machine's PMUs, as /sys and /proc show them.

use iolens_model::parse;
use iolens_sys::errno::Errno;
use iolens_sys::perf_event::{Event, Kind, Mode, Refusal, Scope};
use iolens_sys::proc::Root;

use super::table::Llc;

const SOURCES: &str = "sys/bus/event_source/devices";

/// The first processor's entry of /proc/cpuinfo is shorter; all of it takes
/// milliseconds to make on a machine with hundreds.
const CPUINFO_BYTES: usize = 4 << 10;

/// The PMU of one kind of cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorePmu {
    /// Its folder in /sys/bus/event_source/devices.
    pub name: String,
    /// The event type that names it.
    pub number: Option<u32>,
    /// Processors it belongs to; `None` for all.
    cpus: Option<Vec<u32>>,
}

impl CorePmu {
    /// Whether a processor belongs to it.
    pub fn has(&self, cpu: u32) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu))
    }
}

/// The PMUs that count what cores do: `cpu`, or those that say which
/// processors they belong to (`cpu_core`, `cpu_atom`, `armv8_…`). Those of
/// memory controllers and the like do not; perf(1) tells them apart in the
/// same way (tools/perf/util/pmu.c, is_pmu_core).
///
/// Errors: there is none; what there is.
pub fn core_pmus(root: &Root) -> Result<Vec<CorePmu>, String> {
    let sources = root.names(SOURCES);
    let pmus: Vec<CorePmu> = sources.iter().filter_map(|name| core_pmu(root, name)).collect();
    match (pmus.is_empty(), sources.is_empty()) {
        (false, _) => Ok(pmus),
        (true, true) => Err(format!("no PMU in this machine: /{SOURCES} is empty")),
        (true, false) => {
            Err(format!("no PMU in this machine: its event sources are {}", sources.join(", ")))
        }
    }
}

fn core_pmu(root: &Root, name: &str) -> Option<CorePmu> {
    let read = |file: &str| root.read(&format!("{SOURCES}/{name}/{file}")).ok();
    let cpus = read("cpus").and_then(|list| parse::cpus(&list).ok());
    let number = read("type").and_then(|number| number.parse().ok());
    (name == "cpu" || cpus.is_some()).then(|| CorePmu { name: name.to_owned(), number, cpus })
}

/// The PMU that counts on a processor, for the events of a thread that stays
/// there; `None` where there is only one PMU, which need not be named.
///
/// Errors: none of them belongs to the processor.
pub fn pmu_of(pmus: &[CorePmu], cpu: u32) -> Result<Option<&CorePmu>, String> {
    if pmus.len() == 1 {
        return Ok(None);
    }
    let here = |pmu: &&CorePmu| pmu.number.is_some() && pmu.cpus.is_some() && pmu.has(cpu);
    match pmus.iter().find(here) {
        Some(pmu) => Ok(Some(pmu)),
        None => {
            let names: Vec<&str> = pmus.iter().map(|pmu| pmu.name.as_str()).collect();
            Err(format!("none of the PMUs {} belongs to CPU {cpu}", names.join(", ")))
        }
    }
}

/// Which events mean the last-level cache on this processor.
pub(crate) fn llc(root: &Root) -> Llc {
    let cpuinfo = root.beginning("proc/cpuinfo", CPUINFO_BYTES).unwrap_or_default();
    let intel = |line: &str| line.starts_with("vendor_id") && line.ends_with("GenuineIntel");
    if cpuinfo.lines().any(intel) { Llc::Architectural } else { Llc::Loads }
}

/// Why an event could not be opened, and what to do about it.
pub(crate) fn refused(root: &Root, event: Event, scope: Scope, errno: Errno) -> String {
    let because = match Refusal::from(errno) {
        Refusal::NotPermitted => not_permitted(root, event, scope),
        Refusal::NoSuchEvent => "this processor, or this guest of it, has no such event".to_owned(),
        Refusal::NotTogether => {
            "not supported here, or more than the PMU counts at once".to_owned()
        }
        Refusal::NoDescriptor => "no descriptor left, raise `ulimit -n`".to_owned(),
        Refusal::NoKernelSupport => "the kernel is built without perf events".to_owned(),
        Refusal::Other => return format!("cannot open counter `{event}`: {errno}"),
    };
    format!("cannot open counter `{event}`: {errno}: {because}")
}

/// The level that forbids it, or else whatever stands before the kernel.
pub fn not_permitted(root: &Root, event: Event, scope: Scope) -> String {
    // Documentation/admin-guide/sysctl/kernel.rst; distributions add 3 and 4.
    let highest = match (scope, event.mode) {
        (Scope::Cpu(_), _) => 0,
        (Scope::Thread, Mode::User) => 2,
        (Scope::Thread, Mode::Kernel | Mode::Any) => 1,
    };
    // What is open in user mode alone excludes the kernel, where all of these
    // happen: it would read 0, or the program's own faults.
    let elsewhere = match event.kind {
        _ if scope != Scope::Thread => "",
        Kind::ContextSwitches | Kind::MinorFaults | Kind::MajorFaults => {
            "; getrusage(2) counts the same without it"
        }
        Kind::CpuMigrations => "; /proc counts the same without it",
        _ => "",
    };
    let level = root.read("proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    match level.parse::<i32>() {
        Ok(level) if level > highest => format!(
            "kernel.perf_event_paranoid is {level}, needs {highest} or less; run `sudo setcap \
             cap_perfmon+ep` on the iolens binary (of use over loopback only: in a user namespace \
             of its own a process has no such right), or else `sudo sysctl \
             kernel.perf_event_paranoid={highest}`{elsewhere}"
        ),
        Ok(level) => format!(
            "kernel.perf_event_paranoid is {level} and permits it, so a seccomp filter (of a \
             container) or a security module does not"
        ),
        Err(_) => "kernel.perf_event_paranoid cannot be read".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use iolens_sys::perf_event::Kind;

    use super::*;
    use crate::scripted::Machine;

    const TYPE: &str = "sys/bus/event_source/devices/cpu/type";

    #[test]
    fn a_machine_without_a_pmu_says_what_it_has() {
        let machine = Machine::with(&[("sys/bus/event_source/devices/software/type", "1")]);
        let root = machine.root();
        let why = core_pmus(&root).unwrap_err();
        assert_eq!(why, "no PMU in this machine: its event sources are software");
        let machine = Machine::with(&[]);
        let root = machine.root();
        assert!(core_pmus(&root).unwrap_err().contains("is empty"));
    }

    #[test]
    fn the_only_pmu_needs_no_number() {
        let machine =
            Machine::with(&[(TYPE, "4"), ("sys/bus/event_source/devices/uncore_imc/cpumask", "0")]);
        let root = machine.root();
        let pmus = core_pmus(&root).unwrap();
        assert_eq!(pmus.len(), 1);
        assert_eq!(pmu_of(&pmus, 3), Ok(None));
    }

    #[test]
    fn a_hybrid_machine_counts_on_the_pmu_of_the_processor() {
        let machine = Machine::with(&[
            ("sys/bus/event_source/devices/cpu_core/type", "4"),
            ("sys/bus/event_source/devices/cpu_core/cpus", "0-3"),
            ("sys/bus/event_source/devices/cpu_atom/type", "10"),
            ("sys/bus/event_source/devices/cpu_atom/cpus", "4-7"),
        ]);
        let root = machine.root();
        let pmus = core_pmus(&root).unwrap();
        let number = |cpu| pmu_of(&pmus, cpu).unwrap().and_then(|pmu| pmu.number);
        assert_eq!((number(2), number(5)), (Some(4), Some(10)));
        assert!(pmus.iter().all(|pmu| pmu.has(2) != pmu.has(5)));
        assert!(pmu_of(&pmus, 8).unwrap_err().contains("cpu_atom, cpu_core"));
    }

    #[test]
    fn the_vendor_decides_what_the_last_level_cache_is() {
        let check = |cpuinfo: &str, expected: Llc| {
            let machine = Machine::with(&[("proc/cpuinfo", cpuinfo)]);
            let root = machine.root();
            assert_eq!(llc(&root), expected);
        };
        check("processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t: 1", Llc::Architectural);
        check("processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t: 1", Llc::Loads);
        check("processor\t: 0\nCPU implementer\t: 0x41", Llc::Loads);
    }

    /// The text of a refusal at a level of kernel.perf_event_paranoid.
    fn refusal(level: &str, event: Event, scope: Scope, raw: i32) -> String {
        let machine = Machine::with(&[("proc/sys/kernel/perf_event_paranoid", level)]);
        let root = machine.root();
        let text = refused(&root, event, scope, Errno::from_raw(raw));
        assert!(!text.contains("root"), "{text}");
        text
    }

    // errno(3) on every architecture that Linux shares them on.
    const EPERM: i32 = 1;
    const EACCES: i32 = 13;

    #[test]
    fn a_refusal_says_what_to_do() {
        let check = |mode: Mode, raw: i32, expected: &str| {
            let event = Event { kind: Kind::Cycles, mode, pmu: None };
            let text = refusal("2", event, Scope::Thread, raw);
            assert!(text.contains(expected), "{text}");
        };
        let [enoent, eio, enodev, einval, emfile, enosys, eopnotsupp] = [2, 5, 19, 22, 24, 38, 95];
        check(Mode::Kernel, EACCES, "`cycles:k`: EACCES (permission denied): kernel.perf");
        check(Mode::Kernel, EACCES, "is 2, needs 1 or less; run `sudo setcap cap_perfmon+ep`");
        check(Mode::User, EPERM, "is 2 and permits it, so a seccomp filter");
        check(Mode::User, enoent, "no such event");
        check(Mode::User, enodev, "no such event");
        check(Mode::User, eopnotsupp, "no such event");
        check(Mode::User, einval, "more than the PMU counts");
        check(Mode::User, emfile, "ulimit -n");
        check(Mode::User, enosys, "without perf events");
        check(Mode::User, eio, "`cycles:u`: EIO");
    }

    #[test]
    fn every_level_of_paranoia_is_told_for_every_scope() {
        let (thread, cpu) = (Scope::Thread, Scope::Cpu(0));
        // The lowest level that forbids each, which the kernel's own table has.
        for (mode, scope, least) in
            [(Mode::User, thread, 3), (Mode::Kernel, thread, 2), (Mode::Any, cpu, 1)]
        {
            for level in -1..=4 {
                let event = Event { kind: Kind::Instructions, mode, pmu: None };
                let text = refusal(&level.to_string(), event, scope, EACCES);
                let needs = format!("is {level}, needs {} or less", least - 1);
                let sysctl = format!("`sudo sysctl kernel.perf_event_paranoid={}`", least - 1);
                let permits = format!("is {level} and permits it");
                if level >= least {
                    assert!(text.contains(&needs) && text.contains(&sysctl), "{text}");
                } else {
                    assert!(text.contains(&permits) && text.contains("seccomp"), "{text}");
                }
            }
        }
        let event = Event { kind: Kind::Instructions, mode: Mode::User, pmu: None };
        assert!(refusal("x", event, thread, EACCES).contains("cannot be read"));
    }

    #[test]
    fn what_is_counted_elsewhere_is_named() {
        let check = |kind, scope, expected: bool| {
            let text = refusal("2", Event { kind, mode: Mode::Any, pmu: None }, scope, EACCES);
            assert_eq!(text.contains("counts the same without it"), expected, "{text}");
        };
        check(Kind::ContextSwitches, Scope::Thread, true);
        check(Kind::MinorFaults, Scope::Thread, true);
        check(Kind::CpuMigrations, Scope::Thread, true);
        check(Kind::BranchMisses, Scope::Thread, false);
        check(Kind::ContextSwitches, Scope::Cpu(0), false);
    }
}
