//! What the kernel runs on, and what every measurement on it shares.

use iolens_model::doctor::{Area, Finding};
use iolens_model::units::three_digits;
use iolens_sys::proc::{cpu_ticks, pressure_some_us};

use super::Patient;
use iolens_harness::host;
use iolens_harness::reclaim::{KDAMONDS, Reclaim};

pub(super) fn findings(patient: &Patient<'_>) -> Vec<Finding> {
    vec![
        hypervisor(patient),
        container(patient),
        seccomp(patient),
        yama(patient),
        mitigations(patient),
        clock(patient),
        steal(patient),
        pressure(patient),
        reclaim(patient),
    ]
}

fn ok(name: &str, found: impl Into<String>, source: &str) -> Finding {
    Finding::ok(Area::Machine, name, found, source)
}

fn hypervisor(patient: &Patient<'_>) -> Finding {
    let found = ok("hypervisor", patient.guest.words(), patient.guest.source);
    if !patient.guest.is_virtual() {
        return found;
    }
    found.limits(
        "other guests share it: absolute times drift, ratios hold",
        "none: absolute times of the hardware need bare metal",
    )
}

fn container(patient: &Patient<'_>) -> Finding {
    let container = &patient.container;
    let namespaces = "/proc/self/ns";
    let named = container.named.as_ref();
    let name = named.map_or("unnamed", |(name, _)| name.as_str());
    let source = named.map_or(namespaces, |(_, source)| source);
    let apart = container.apart.as_deref().unwrap_or_default().join(", ");
    let found = match (container.is_one(), named) {
        (true, None) if !patient.is_contained() => {
            ok("container", "none, apart from WSL2's own namespaces", namespaces)
        }
        (true, _) if apart.is_empty() => ok("container", name, source),
        (true, _) => ok("container", format!("{name}; own namespaces: {apart}"), source),
        (false, Some((name, source))) => {
            ok("container", format!("none ({name} left a mark, but no namespaces)"), source)
        }
        (false, None) => ok("container", "none", namespaces),
    };
    if patient.rights.has_machines_users() {
        return found;
    }
    Finding { source: "/proc/self/uid_map".to_owned(), ..found }.limits(
        "capabilities held in here do not count outside: no kernel events, no CAP_IPC_LOCK",
        "none from in here: run outside this user namespace",
    )
}

fn seccomp(patient: &Patient<'_>) -> Finding {
    const SOURCE: &str = "/proc/self/status";
    match patient.rights.seccomp {
        Some(0) => ok("seccomp", "no filter", SOURCE),
        Some(_) => ok("seccomp", "a filter runs on every system call", SOURCE).limits(
            "every call takes longer, for all methods alike; some may be refused",
            patient.started_with("--security-opt seccomp=unconfined").unwrap_or_else(|| {
                "none from in here: the filter came from whatever started this process".to_owned()
            }),
        ),
        None => ok("seccomp", "not in this kernel", SOURCE),
    }
}

/// Not in the way: it restricts attaching as a debugger does, not the events
/// of perf (security/yama/yama_lsm.c, `PTRACE_MODE_ATTACH`).
fn yama(patient: &Patient<'_>) -> Finding {
    let found = match patient.root.read("proc/sys/kernel/yama/ptrace_scope") {
        Ok(scope) => format!("ptrace_scope {}; counters do not need it", first_word(&scope)),
        Err(_) => "not in this kernel".to_owned(),
    };
    ok("Yama", found, "/proc/sys/kernel/yama")
}

fn mitigations(patient: &Patient<'_>) -> Finding {
    const SOURCE: &str = "/sys/devices/system/cpu/vulnerabilities";
    match host::flaws(patient.root) {
        Ok(flaws) if flaws.is_empty() => ok("mitigations", "none needed", SOURCE),
        Ok(flaws) => {
            let active = flaws.iter().filter(|(_, text)| text.contains("Mitigation")).count();
            ok("mitigations", format!("for {active} of {} flaws", flaws.len()), SOURCE)
        }
        Err(_) => ok("mitigations", "not reported", SOURCE).limits(
            "system calls may or may not include the cost of mitigations",
            "none: the kernel does not report it",
        ),
    }
}

/// Readings of the clock that take longer than this are system calls.
const CLOCK_NS_MAX: f64 = 250.0;

fn clock(patient: &Patient<'_>) -> Finding {
    const FILE: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    let name = patient.root.read(FILE).unwrap_or_default();
    let name = if name.is_empty() { "unnamed" } else { first_word(&name) };
    let ns = patient.tried.clock_read_ns;
    let found = format!("{name}, {} ns a reading", three_digits(ns));
    let source = "clocksource0, clock_gettime(2)";
    if ns <= CLOCK_NS_MAX {
        return ok("clock", found, source);
    }
    let remedy = match patient.root.read(&FILE.replace("current", "available")) {
        Ok(list) if name != "tsc" && list.split_whitespace().any(|one| one == "tsc") => {
            format!("echo tsc | sudo tee /{FILE}")
        }
        _ => "none: the kernel trusts no faster clock here".to_owned(),
    };
    ok("clock", found, source)
        .limits("each round trip includes two readings; slices are hardly affected", remedy)
}

fn steal(patient: &Patient<'_>) -> Finding {
    const SOURCE: &str = "/proc/stat";
    let stat = patient.root.read("proc/stat").unwrap_or_default();
    let blind = |found: &str, remedy: &str| {
        ok("stolen time", found, SOURCE)
            .limits("time taken by the hypervisor looks like a slower machine", remedy)
    };
    match cpu_ticks(&stat, "cpu") {
        None => blind("not reported", "none: /proc/stat has no such column"),
        Some(ticks) if ticks.steal > 0 => {
            let percent = 100.0 * ticks.steal as f64 / ticks.total.max(1) as f64;
            ok("stolen time", format!("reported; {}% since boot", three_digits(percent)), SOURCE)
        }
        Some(_) if patient.guest.is_virtual() => {
            blind("none in this guest since boot", "none: the hypervisor may not report it")
        }
        Some(_) => ok("stolen time", "none: no hypervisor", SOURCE),
    }
}

fn pressure(patient: &Patient<'_>) -> Finding {
    const FILE: &str = "proc/pressure/cpu";
    let source = format!("/{FILE}");
    let text = patient.root.read(FILE).unwrap_or_default();
    match pressure_some_us(&text) {
        Some(_) => ok("pressure (PSI)", "reported", &source),
        None => ok("pressure (PSI)", "not reported", &source).limits(
            "time spent waiting for a CPU is not recorded",
            "boot with psi=1 (a kernel built with CONFIG_PSI)",
        ),
    }
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or("empty")
}
/// Only root may look; a file that leaves the page cache is refused by the check of the cache
/// state anyhow.
fn reclaim(patient: &Patient<'_>) -> Finding {
    let reclaim = Reclaim::read(patient.root);
    let found = ok("proactive reclaim", reclaim.words(), &format!("/{KDAMONDS}"));
    match reclaim {
        Reclaim::On { .. } => found.limits(
            "files that are only read drop out of the page cache; warm trials are then refused \
             (cache state)",
            "to disable it: echo off > /sys/kernel/mm/damon/admin/kdamonds/N/state",
        ),
        Reclaim::Off | Reclaim::NotTold => found,
    }
}
