//! Where threads may run, and what decides how fast.

use iolens_model::doctor::{Area, Finding};
use iolens_model::parse;

use super::Patient;
use iolens_harness::cgroup;

pub(super) fn findings(patient: &Patient<'_>) -> Vec<Finding> {
    let mut findings = vec![cpus(patient), quota(patient), smt(patient), isolated(patient)];
    findings.extend(frequency(patient));
    findings
}

fn ok(name: &str, found: impl Into<String>, source: &str) -> Finding {
    Finding::ok(Area::Processors, name, found, source)
}

const CPUS: &str = "sys/devices/system/cpu";

fn cpus(patient: &Patient<'_>) -> Finding {
    let usable = patient.tried.cpus.len();
    if usable == 0 {
        return ok("CPUs", "unknown: the call fails", "sched_getaffinity(2)").lacks(
            "nothing is measured: iolens cannot tell where it may run",
            "none: a filter of system calls (seccomp) may forbid it",
        );
    }
    let online = patient.root.read(&format!("{CPUS}/online")).unwrap_or_default();
    let count = parse::cpus(&online).map_or(usable, |list| list.len().max(usable));
    let found = ok("CPUs", format!("{usable} of {count} online"), "sched_getaffinity(2)");
    match (usable, count) {
        (0 | 1, 0 | 1) => found.limits(
            "both ends take turns on one CPU: each time includes a context switch",
            "none: the machine needs a second CPU",
        ),
        (usable, count) if usable < count => {
            let effect = "more threads than that share CPUs; their settings say so";
            let effect = if usable <= 1 { "both ends take turns on one CPU" } else { effect };
            found.limits(effect, widen(patient, &online))
        }
        _ => found,
    }
}

/// How all processors could be used.
fn widen(patient: &Patient<'_>, online: &str) -> String {
    let taskset = || format!("taskset -c {online} iolens …, unless a cpuset forbids it");
    patient.started_with(&format!("--cpuset-cpus={online}")).unwrap_or_else(taskset)
}

fn quota(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "CPU quota";
    match cgroup::cpu_limit(patient.root) {
        Err(_) => ok(NAME, "none", "/proc/self/cgroup"),
        Ok(limit) => match limit.cpus {
            Some(cpus) if cpus < patient.tried.cpus.len() as f64 => {
                ok(NAME, limit.words(), &limit.source).limits(
                    "threads stop mid-slice once the quota is used up",
                    patient.started_with("--cpus=0").unwrap_or_else(|| {
                        format!("echo {} | sudo tee {}", limit.no_limit(), limit.source)
                    }),
                )
            }
            _ => ok(NAME, limit.words(), &limit.source),
        },
    }
}

fn smt(patient: &Patient<'_>) -> Finding {
    let file = format!("{CPUS}/smt/active");
    let source = format!("/{file}");
    match patient.root.read(&file).as_deref() {
        Ok("1") => ok("SMT", "on", &source).limits(
            "two threads may share one core",
            "echo off | sudo tee /sys/devices/system/cpu/smt/control, or --cpus on different cores",
        ),
        Ok("0") if patient.guest.is_virtual() => ok("SMT", "off, as seen by a guest", &source),
        Ok("0") => ok("SMT", "off", &source),
        _ => ok("SMT", "not reported", &source).limits(
            "unknown whether two threads share a core",
            "none: the kernel does not report it",
        ),
    }
}

fn isolated(patient: &Patient<'_>) -> Finding {
    let file = format!("{CPUS}/isolated");
    let source = format!("/{file}");
    let text = patient.root.read(&file).unwrap_or_default();
    let Ok(list) = parse::cpus(&text) else {
        return ok("isolated CPUs", "none", &source);
    };
    let ours = list.iter().filter(|cpu| patient.tried.cpus.contains(cpu)).count();
    let found = ok("isolated CPUs", format!("{ours} of {} usable", list.len()), &source);
    if ours > 0 && ours == patient.tried.cpus.len() {
        return found.limits(
            "a server's threads and processes stay on one CPU: the kernel moves nobody to another \
             that is isolated",
            "taskset -c with other CPUs for `run server`; other studies pin their threads",
        );
    }
    if ours == list.len() {
        return found;
    }
    found.limits(
        "trials run among other tasks, although isolated CPUs exist (not for servers, whose \
         threads nobody pins)",
        format!("taskset -c {text} iolens … --cpus {text}"),
    )
}

fn frequency(patient: &Patient<'_>) -> Vec<Finding> {
    let read = |file: &str| patient.root.read(&format!("{CPUS}/{file}"));
    let effect = "absolute times follow the clock, ratios hold";
    let governor_file = "cpu0/cpufreq/scaling_governor";
    let source = format!("/{CPUS}/{governor_file}");
    let Ok(governor) = read(governor_file) else {
        let found = ok("frequency", "not reported", &source);
        return vec![match patient.guest.is_virtual() {
            true => found.limits(
                "the host sets it: absolute times follow, ratios hold",
                "none: the host controls it",
            ),
            false => found.limits(effect, "none: the kernel has no cpufreq driver here"),
        }];
    };
    let name = governor.split_whitespace().next().unwrap_or("unnamed");
    let found = ok("frequency", format!("governor {name}"), &source);
    let found = match name {
        "performance" => found,
        _ => found.limits(
            effect,
            "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        ),
    };
    // Two drivers, two files, two meanings of 1.
    let turbo = [("cpufreq/boost", "1", "0"), ("intel_pstate/no_turbo", "0", "1")];
    let turbo = turbo.into_iter().find_map(|(file, on, off)| {
        let value = read(file).ok()?;
        let source = format!("/{CPUS}/{file}");
        Some(match value == on {
            false => ok("turbo", "off", &source),
            true => {
                ok("turbo", "on", &source).limits(effect, format!("echo {off} | sudo tee {source}"))
            }
        })
    });
    [Some(found), turbo].into_iter().flatten().collect()
}
