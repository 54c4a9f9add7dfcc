//! What can be counted and sampled: software events, the PMU, kernel symbols,
//! tracepoints. Rights are tried, not concluded from sysctls.

use iolens_model::doctor::{Area, Finding};
use iolens_model::outcome::PmuCounts;
use iolens_sys::errno::Errno;
use iolens_sys::perf_event::Refusal;
use iolens_sys::proc::sched_number;

use super::Patient;
use super::rights::{self, LEVEL_CPU, LEVEL_KERNEL};
use iolens_harness::counters;
use iolens_harness::surroundings::Hypervisor;
use iolens_harness::tracefs;

/// Name of the finding that says whether kernel time can be sampled.
pub(super) const KERNEL_SAMPLING: &str = "kernel sampling";
/// Name of the finding that says whether kernel addresses have names.
pub(super) const KERNEL_SYMBOLS: &str = "kernel symbols";
/// Name of the finding that says whether there is a PMU.
pub(super) const PMU: &str = "PMU";
/// Name of the finding that says what of the PMU counts.
pub(super) const PMU_COUNTERS: &str = "PMU counters";

const CALL: &str = "perf_event_open(2)";

pub(super) fn findings(patient: &Patient<'_>) -> Vec<Finding> {
    let mut findings = vec![accounts(patient), events(patient), pmu(patient)];
    findings.extend(pmu_counters(patient));
    findings.push(watchdog(patient));
    findings.push(whole_cpu(patient));
    findings.push(sampling(patient));
    findings.push(symbols(patient));
    findings.push(tracepoints(patient));
    findings
}

fn ok(name: &str, found: impl Into<String>, source: &str) -> Finding {
    Finding::ok(Area::Counters, name, found, source)
}

/// What needs no right: CPU time, switches and faults come from getrusage(2).
fn accounts(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "own accounts";
    let sched = patient.root.read("proc/self/sched").unwrap_or_default();
    match sched_number(&sched, "se.nr_migrations") {
        Some(_) => {
            let found = "CPU time, switches, faults, migrations";
            ok(NAME, found, "getrusage(2)")
        }
        None => ok(NAME, "CPU time, switches, faults", "/proc/self/sched").limits(
            "threads that change CPU go unnoticed",
            "none: the kernel is built without CONFIG_SCHED_DEBUG",
        ),
    }
}

/// What a refused event needs: another right, or another kernel.
fn remedy(patient: &Patient<'_>, errno: Errno, level: i32) -> String {
    match Refusal::from(errno) {
        Refusal::NotPermitted => rights::for_events(patient, level),
        Refusal::NoKernelSupport if patient.is_contained() => rights::for_events(patient, level),
        Refusal::NoKernelSupport => "none: the kernel is built without perf events".to_owned(),
        Refusal::NoDescriptor => "ulimit -n 4096".to_owned(),
        Refusal::NoSuchEvent | Refusal::NotTogether | Refusal::Other => {
            format!("none: the kernel says {errno}")
        }
    }
}

fn events(patient: &Patient<'_>) -> Finding {
    let level = rights::current_level(patient.root);
    let level = level.map_or_else(|| "paranoid unknown".to_owned(), |n| format!("paranoid {n}"));
    let right = if patient.rights.may_watch() { ", CAP_PERFMON" } else { "" };
    let tried = patient.tried;
    let made = |what: &str| ok("kernel events", format!("{what}: {level}{right}"), CALL);
    match (tried.count_kernel, tried.count_user) {
        (Ok(()), _) => made("counted"),
        (Err(errno), Ok(())) => made("user time only").limits(
            "no event counts what our threads do in the kernel",
            remedy(patient, errno, LEVEL_KERNEL),
        ),
        (Err(errno), Err(_)) => made("refused").lacks(
            "no events at all, only the accounts above",
            remedy(patient, errno, LEVEL_KERNEL),
        ),
    }
}

const SOURCES: &str = "/sys/bus/event_source/devices";

fn pmu(patient: &Patient<'_>) -> Finding {
    match counters::core_pmus(patient.root) {
        Ok(pmus) => {
            let names: Vec<&str> = pmus.iter().map(|pmu| pmu.name.as_str()).collect();
            ok(PMU, names.join(", "), SOURCES)
        }
        Err(why) => ok(PMU, why.replacen("no PMU in this machine", "none", 1), SOURCES).lacks(
            "no cycles, instructions or cache misses",
            virtual_pmu(patient.guest.hypervisor),
        ),
    }
}

/// How a hypervisor is told to give its guest a PMU.
fn virtual_pmu(hypervisor: Hypervisor) -> &'static str {
    match hypervisor {
        Hypervisor::None => "none: this kernel has no driver for the PMU of this processor",
        Hypervisor::Wsl2 => {
            "[wsl2] hardwarePerformanceCounters=true in .wslconfig, then wsl --shutdown"
        }
        Hypervisor::HyperV => "on the host: Set-VMProcessor NAME -Perfmon @(\"pmu\")",
        Hypervisor::VirtualBox => "none: VirtualBox gives guests no PMU",
        Hypervisor::Vmware => "vpmc.enable = \"TRUE\" in the .vmx file of this guest",
        Hypervisor::Xen => "vpmu=1 on Xen's command line",
        Hypervisor::Parallels => "prlctl set NAME --pmu-virt on",
        Hypervisor::Kvm => "if you control the host: qemu -cpu host,pmu=on",
        Hypervisor::Unnamed => "none: the host would have to provide one",
    }
}

/// Counters that were opened on the PMU and passed their self-test.
fn pmu_counters(patient: &Patient<'_>) -> Option<Finding> {
    counters::core_pmus(patient.root).ok()?;
    let (counted, missing) = &patient.tried.counters;
    let all = PmuCounts::NAMES.len();
    let found = format!("{} of {all} pass their self-test", counted.len());
    let found = ok(PMU_COUNTERS, found, CALL);
    let Some(first) = missing.first() else { return Some(found) };
    let names: Vec<&str> = missing.iter().map(|entry| entry.metric.as_str()).collect();
    let effect = format!("not counted: {}", names.join(", "));
    let remedy = match patient.tried.count_kernel {
        Err(errno) => remedy(patient, errno, LEVEL_KERNEL),
        Ok(()) => format!("none: {}", first.why),
    };
    Some(if counted.is_empty() {
        found.lacks(&effect, remedy)
    } else {
        found.limits(&effect, remedy)
    })
}

fn watchdog(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "NMI watchdog";
    const SOURCE: &str = "/proc/sys/kernel/nmi_watchdog";
    let has_pmu = counters::core_pmus(patient.root).is_ok();
    match (patient.root.read(&SOURCE[1..]).as_deref(), has_pmu) {
        (Ok("1"), true) => ok(NAME, "on", SOURCE).limits(
            "it uses one counter per CPU: large groups may not fit",
            "sudo sysctl kernel.nmi_watchdog=0",
        ),
        (Ok("1"), false) => ok(NAME, "on, but there is no PMU", SOURCE),
        (Ok("0"), _) => ok(NAME, "off", SOURCE),
        _ => ok(NAME, "not in this kernel", SOURCE),
    }
}

fn whole_cpu(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "whole CPUs";
    match patient.tried.count_cpu {
        Ok(()) => ok(NAME, "can be counted", CALL),
        Err(errno) => ok(NAME, format!("refused: {errno}"), CALL).limits(
            "softirq work in other threads shows only in /proc/stat",
            remedy(patient, errno, LEVEL_CPU),
        ),
    }
}

fn sampling(patient: &Patient<'_>) -> Finding {
    let tried = patient.tried;
    match (tried.sample_kernel, tried.sample_user) {
        (Ok(()), _) => ok(KERNEL_SAMPLING, "cpu-clock at 1 kHz, call chains", CALL),
        (Err(errno), Ok(())) => {
            ok(KERNEL_SAMPLING, format!("refused: {errno}; user time can be"), CALL).lacks(
                "no profile of kernel time: copies and pinning stay unseen",
                remedy(patient, errno, LEVEL_KERNEL),
            )
        }
        (Err(errno), Err(_)) => ok(KERNEL_SAMPLING, format!("refused: {errno}"), CALL)
            .lacks("no profiles at all", remedy(patient, errno, LEVEL_KERNEL)),
    }
}

/// What is looked at of the list of symbols. On older kernels the first ones
/// are offsets near 0, hence not only the first line.
const SYMBOLS_BYTES: usize = 64 << 10;

fn symbols(patient: &Patient<'_>) -> Finding {
    const SOURCE: &str = "/proc/kallsyms";
    let (found, is_there) = match patient.root.beginning(&SOURCE[1..], SYMBOLS_BYTES) {
        Err(_) => ("no symbol list", false),
        Ok(list) => {
            let address = |line: &str| u64::from_str_radix(line.split(' ').next()?, 16).ok();
            let addresses: Vec<u64> = list.lines().filter_map(address).collect();
            match (addresses.is_empty(), addresses.iter().any(|&address| address > 0)) {
                (true, _) => ("the list is empty", false),
                (_, false) => ("every address reads 0", true),
                (_, true) => return ok(KERNEL_SYMBOLS, "with addresses", SOURCE),
            }
        }
    };
    let remedy = match is_there {
        true => rights::for_symbols(patient),
        false => "none: needs a kernel built with CONFIG_KALLSYMS".to_owned(),
    };
    ok(KERNEL_SYMBOLS, found, SOURCE).lacks("kernel time cannot be split by function", remedy)
}

fn tracepoints(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "tracepoints";
    const EFFECT: &str = "no event counts of copies, retransmits and switches";
    let root = patient.root;
    let Some(folder) = tracefs::seen(root) else {
        let (found, remedy) = unseen_tracing(patient);
        return ok(NAME, found, "/sys/kernel/tracing").lacks(EFFECT, remedy);
    };
    let source = format!("/{folder}/events");
    let of_use = || counters::tracepoints().map(|name| tracefs::event(folder, name));
    let read = of_use().filter(|event| root.read(&format!("{event}/id")).is_ok()).count();
    let list = format!("{read} of {} that iolens uses", of_use().count());
    match (read, patient.tried.tracepoint) {
        (0, _) if of_use().any(|event| !root.names(&event).is_empty()) => {
            ok(NAME, "their IDs are not readable", &source).lacks(EFFECT, tracefs::remount(folder))
        }
        (0, _) => ok(NAME, "none that iolens uses", &source)
            .lacks(EFFECT, "none: needs a kernel with tracepoints of skb, tcp and sched"),
        (_, Some(Ok(()))) => ok(NAME, list, &source),
        (_, Some(Err(errno))) => ok(NAME, format!("{list}, refused: {errno}"), CALL)
            .lacks(EFFECT, remedy(patient, errno, LEVEL_KERNEL)),
        (_, None) => ok(NAME, format!("{list}, but no ID is a number"), &source)
            .lacks(EFFECT, "none: the kernel does not report it"),
    }
}

/// Why the tracing files are not seen, and what would show them.
fn unseen_tracing(patient: &Patient<'_>) -> (&'static str, String) {
    let systems = patient.root.read("proc/filesystems").unwrap_or_default();
    if !systems.lines().any(|line| line.split_whitespace().last() == Some("tracefs")) {
        let remedy = "none: needs a kernel built with CONFIG_TRACING";
        return ("this kernel has no tracefs", remedy.to_owned());
    }
    let mounts = patient.root.read("proc/self/mounts").unwrap_or_default();
    let is_mounted = mounts.lines().any(|line| line.split(' ').nth(2) == Some("tracefs"));
    if is_mounted {
        return ("tracefs is not readable", tracefs::remount(tracefs::MOUNTS[0]));
    }
    let remedy = patient.started_with("-v /sys/kernel/tracing:/sys/kernel/tracing:ro");
    ("tracefs is not mounted", remedy.unwrap_or_else(tracefs::mount))
}
