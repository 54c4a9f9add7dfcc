//! The machine's PMUs, as /sys and /proc show them.

use iolens_model::parse;
use iolens_sys::errno::Errno;
use iolens_sys::perf_event::{Event, Mode, Refusal};
use iolens_sys::proc::Root;

use super::table::Llc;

const SOURCES: &str = "sys/bus/event_source/devices";

/// The first processor's entry of /proc/cpuinfo is shorter; all of it takes
/// milliseconds to make on a machine with hundreds.
const CPUINFO_BYTES: usize = 4 << 10;

/// The PMU of one kind of cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CorePmu {
    pub(crate) name: String,
    /// The event type that names it.
    number: Option<u32>,
    /// Processors it belongs to; null for all.
    cpus: Option<Vec<u32>>,
}

/// The PMUs that count what cores do: `cpu`, or those that say which
/// processors they belong to (`cpu_core`, `cpu_atom`, `armv8_…`). Those of
/// memory controllers and the like do not; perf(1) tells them apart in the
/// same way (tools/perf/util/pmu.c, is_pmu_core).
///
/// Errors: there is none; what there is.
pub(crate) fn core_pmus(root: &Root) -> Result<Vec<CorePmu>, String> {
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

/// The number of the PMU that counts on a processor, for the events of a
/// thread that stays there; null where there is only one PMU.
///
/// Errors: none of them belongs to the processor.
pub(crate) fn pmu_of(pmus: &[CorePmu], cpu: u32) -> Result<Option<u32>, String> {
    if pmus.len() == 1 {
        return Ok(None);
    }
    let here = |pmu: &&CorePmu| pmu.cpus.as_ref().is_some_and(|cpus| cpus.contains(&cpu));
    match pmus.iter().find(here).map(|pmu| pmu.number) {
        Some(Some(number)) => Ok(Some(number)),
        _ => {
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
pub(crate) fn refused(root: &Root, event: Event, errno: Errno) -> String {
    let because = match Refusal::from(errno) {
        Refusal::NotPermitted => not_permitted(root, event.mode),
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
pub(crate) fn not_permitted(root: &Root, mode: Mode) -> String {
    // Documentation/admin-guide/sysctl/kernel.rst; distributions add 3 and 4.
    let highest = if mode == Mode::User { 2 } else { 1 };
    let level = root.read("proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    match level.parse::<i32>() {
        Ok(level) if level > highest => format!(
            "kernel.perf_event_paranoid is {level}, needs {highest} or less; run `sudo setcap \
             cap_perfmon+ep` on the iolens binary (of use over loopback only: in a user namespace \
             of its own a process has no such right), or else `sudo sysctl \
             kernel.perf_event_paranoid={highest}`"
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

    /// A machine with these files.
    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        }
        let root = Root::at(dir.path());
        (dir, root)
    }

    const TYPE: &str = "sys/bus/event_source/devices/cpu/type";

    #[test]
    fn a_machine_without_a_pmu_says_what_it_has() {
        let (_dir, root) = machine(&[("sys/bus/event_source/devices/software/type", "1")]);
        let why = core_pmus(&root).unwrap_err();
        assert_eq!(why, "no PMU in this machine: its event sources are software");
        let (_dir, root) = machine(&[]);
        assert!(core_pmus(&root).unwrap_err().contains("is empty"));
    }

    #[test]
    fn the_only_pmu_needs_no_number() {
        let (_dir, root) =
            machine(&[(TYPE, "4"), ("sys/bus/event_source/devices/uncore_imc/cpumask", "0")]);
        let pmus = core_pmus(&root).unwrap();
        assert_eq!(pmus.len(), 1);
        assert_eq!(pmu_of(&pmus, 3), Ok(None));
    }

    #[test]
    fn a_hybrid_machine_counts_on_the_pmu_of_the_processor() {
        let (_dir, root) = machine(&[
            ("sys/bus/event_source/devices/cpu_core/type", "4"),
            ("sys/bus/event_source/devices/cpu_core/cpus", "0-3"),
            ("sys/bus/event_source/devices/cpu_atom/type", "10"),
            ("sys/bus/event_source/devices/cpu_atom/cpus", "4-7"),
        ]);
        let pmus = core_pmus(&root).unwrap();
        assert_eq!(pmu_of(&pmus, 2), Ok(Some(4)));
        assert_eq!(pmu_of(&pmus, 5), Ok(Some(10)));
        assert!(pmu_of(&pmus, 8).unwrap_err().contains("cpu_atom, cpu_core"));
    }

    #[test]
    fn the_vendor_decides_what_the_last_level_cache_is() {
        let check = |cpuinfo: &str, expected: Llc| {
            let (_dir, root) = machine(&[("proc/cpuinfo", cpuinfo)]);
            assert_eq!(llc(&root), expected);
        };
        check("processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t: 1", Llc::Architectural);
        check("processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t: 1", Llc::Loads);
        check("processor\t: 0\nCPU implementer\t: 0x41", Llc::Loads);
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let check = |level: &str, mode: Mode, raw: i32, expected: &str| {
            let (_dir, root) = machine(&[("proc/sys/kernel/perf_event_paranoid", level)]);
            let event = Event { kind: Kind::Cycles, mode, pmu: None };
            let text = refused(&root, event, Errno::from_raw(raw));
            assert!(text.contains(expected), "{text}");
            assert!(!text.contains("root"), "{text}");
        };
        // errno(3) on every architecture that Linux shares them on.
        let [eperm, enoent, eio, eacces, enodev, einval, emfile, enosys, eopnotsupp] =
            [1, 2, 5, 13, 19, 22, 24, 38, 95];
        check("2", Mode::Kernel, eacces, "`cycles:k`: EACCES (permission denied): kernel.perf");
        check("2", Mode::Kernel, eacces, "is 2, needs 1 or less; run `sudo setcap cap_perfmon+ep`");
        check("2", Mode::User, eperm, "is 2 and permits it, so a seccomp filter");
        check("3", Mode::User, eacces, "kernel.perf_event_paranoid=2");
        check("x", Mode::User, eacces, "cannot be read");
        check("2", Mode::User, enoent, "no such event");
        check("2", Mode::User, enodev, "no such event");
        check("2", Mode::User, eopnotsupp, "no such event");
        check("2", Mode::User, einval, "more than the PMU counts");
        check("2", Mode::User, emfile, "ulimit -n");
        check("2", Mode::User, enosys, "without perf events");
        check("2", Mode::User, eio, "`cycles:u`: EIO");
    }
}
