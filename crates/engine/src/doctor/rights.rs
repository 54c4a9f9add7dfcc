//! What this process may do, and which command would let it do more: rights of
//! its program's file first, sysctls after that.

use iolens_sys::proc::Root;

use super::{Patient, has_machines_users};

/// Numbers of capabilities, from include/uapi/linux/capability.h.
const CAP_SYSLOG: u32 = 34;
const CAP_PERFMON: u32 = 38;
/// Before Linux 5.8 there is no CAP_PERFMON, and this one stands for it.
const CAP_SYS_ADMIN: u32 = 21;

/// What /proc/self/status says of rights.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rights {
    effective: u64,
    bounding: u64,
    no_new_privileges: bool,
    /// Mode of seccomp: 0 off, 1 strict, 2 a filter.
    pub(super) seccomp: Option<u32>,
    /// Whether ids here are those of the machine.
    machines_users: bool,
}

impl Rights {
    pub(super) fn read(root: &Root) -> Rights {
        let status = root.read("proc/self/status").unwrap_or_default();
        let field = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            line.map(str::trim)
        };
        let mask = |key: &str| field(key).and_then(|hex| u64::from_str_radix(hex, 16).ok());
        Rights {
            effective: mask("CapEff").unwrap_or(0),
            bounding: mask("CapBnd").unwrap_or(u64::MAX),
            no_new_privileges: field("NoNewPrivs") == Some("1"),
            seccomp: field("Seccomp").and_then(|mode| mode.parse().ok()),
            machines_users: has_machines_users(root),
        }
    }

    /// Whether the kernel counts this process among those that may watch it.
    pub(super) fn may_watch(self) -> bool {
        let held = self.effective & (1 << CAP_PERFMON | 1 << CAP_SYS_ADMIN);
        self.machines_users && held != 0
    }

    /// Whether the kernel shows this process its addresses.
    pub(super) fn may_see_addresses(self) -> bool {
        self.machines_users && self.effective & (1 << CAP_SYSLOG) != 0
    }

    pub(super) fn has_machines_users(self) -> bool {
        self.machines_users
    }

    /// Whether rights given to the program's file can reach this process.
    fn can_gain(self) -> bool {
        let bounds = 1 << CAP_PERFMON | 1 << CAP_SYSLOG;
        !self.no_new_privileges && self.bounding & bounds == bounds
    }
}

/// The highest perf_event_paranoid that lets everybody count, and sample, the
/// kernel in his own threads.
pub(super) const LEVEL_KERNEL: i32 = 1;
/// The highest that lets everybody count what happens on a whole processor.
pub(super) const LEVEL_CPU: i32 = 0;

/// What gives this process the events that a perf_event_paranoid of `level`
/// gives to everybody.
pub(super) fn for_events(patient: &Patient<'_>, level: i32) -> String {
    let sysctl = format!("sudo sysctl kernel.perf_event_paranoid={level}");
    let rights = patient.rights;
    if rights.may_watch() || current_level(patient.root).is_some_and(|now| now <= level) {
        return match sandboxed(patient) {
            Some(command) => command,
            None => "none: its capabilities suffice, so a security module forbids it".to_owned(),
        };
    }
    if !rights.has_machines_users() {
        return format!("outside this container: {sysctl}");
    }
    if let Some(command) = sandboxed(patient) {
        return format!("{command}; or else, on the machine: {sysctl}");
    }
    match capabilities(patient) {
        Some(setcap) => format!("{setcap}; or else: {sysctl}"),
        None => sysctl,
    }
}

/// What shows this process the addresses of kernel symbols.
pub(super) fn for_symbols(patient: &Patient<'_>) -> String {
    let restrict = patient.root.read("proc/sys/kernel/kptr_restrict").unwrap_or_default();
    if restrict == "2" {
        return match capabilities(patient) {
            // Value 2 hides them from everybody, 1 from those without the right.
            Some(setcap) if !patient.rights.may_see_addresses() => {
                format!("sudo sysctl kernel.kptr_restrict=1, and {setcap}")
            }
            _ => "sudo sysctl kernel.kptr_restrict=1".to_owned(),
        };
    }
    if patient.rights.may_see_addresses() {
        return "none: its capabilities suffice, so the kernel has no list".to_owned();
    }
    // Everybody sees them where both permit it (kernel/ksyms_common.c).
    let sysctls = match restrict.as_str() {
        "0" => "sudo sysctl kernel.perf_event_paranoid=1",
        _ => "sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1",
    };
    if !patient.rights.has_machines_users() {
        return format!("outside this container: {sysctls}");
    }
    if let Some(command) = patient.started_with("--cap-add=SYSLOG") {
        return format!("{command}; or else, on the machine: {sysctls}");
    }
    match capabilities(patient) {
        Some(setcap) => format!("{setcap}; or else: {sysctls}"),
        None => sysctls.to_owned(),
    }
}

/// The level of kernel.perf_event_paranoid.
pub(super) fn current_level(root: &Root) -> Option<i32> {
    root.read("proc/sys/kernel/perf_event_paranoid").ok()?.parse().ok()
}

/// The line that gives the program's file the rights, where they would reach
/// the process.
fn capabilities(patient: &Patient<'_>) -> Option<String> {
    let useful = patient.rights.can_gain() && !patient.tried.program_is_nosuid;
    useful.then(|| format!("sudo setcap cap_perfmon,cap_syslog+ep {}", patient.tried.program))
}

/// How a container would be started that may open events.
fn sandboxed(patient: &Patient<'_>) -> Option<String> {
    let flags = "--cap-add=PERFMON --cap-add=SYSLOG --security-opt seccomp=unconfined";
    patient.started_with(flags)
}
